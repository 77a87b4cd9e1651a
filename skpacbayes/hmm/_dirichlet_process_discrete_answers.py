"""What draws of the parameters say of counts and categories."""

import numpy as np
from scipy.special import logsumexp, pdtr
from scipy.stats import nbinom

from ._dirichlet_process_discrete_chain import densities_of
from ._dirichlet_process_discrete_model import COUNT_SHAPE

_NEVER = -1e300  # logarithm of the weight of an atom that is left out


def densities(rows, draw, model):
    """Probabilities of new rows in each state, and the log of their unit.

    An atom without rows has the mean of its probabilities over the prior.
    """
    known = np.where(draw.occupied, draw.log_weights, _NEVER)
    highest, found, _ = densities_of(rows, draw._replace(log_weights=known))
    new = logsumexp(np.where(draw.occupied, _NEVER, draw.log_weights), axis=1)
    logs = new[:, None] + model.log_new(rows, draw.rates)
    logs[:, np.isnan(rows.values).all(axis=1)] = -np.inf
    unit = np.maximum(highest, logs.max(axis=0))
    found *= np.exp(highest - unit)
    found += np.exp(logs - unit)
    return np.maximum(found, np.finfo(float).tiny), unit


def emissions(states, draw, model, rng):
    """Draw a row for each state: counts, or codes of categories."""
    weights = np.exp(draw.log_weights).cumsum(axis=1)[states]
    thresholds = rng.random(len(states)) * weights[:, -1]
    atoms = (weights[:, :-1] <= thresholds[:, None]).sum(axis=1)
    natural = draw.natural[states, atoms]
    if not model.n_categories:
        return rng.poisson(model.means(natural)).astype(float)
    codes = np.empty((len(states), model.n_features))
    for f, block in enumerate(model.blocks()):
        passed = np.exp(natural[:, block]).cumsum(axis=1)
        thresholds = rng.random(len(states)) * passed[:, -1]
        codes[:, f] = (passed[:, :-1] <= thresholds[:, None]).sum(axis=1)
    return codes


def count_quantiles(states, draws, model, levels):
    """Quantiles of counts, (n_levels, n_steps, n_features): exact, by bisection.

    `states` (n_draws, n_steps, n_states). A quantile is the smallest count up to which
    the probability is at least the level.
    """
    quantiles = np.empty((len(levels), states.shape[1], model.n_features))
    for feature in range(model.n_features):
        for step in range(states.shape[1]):
            now = states[:, step] / len(draws)
            for number, level in enumerate(levels):

                def enough(count, now=now, feature=feature, level=level):
                    found = distribution_at(count, draws, model, feature)
                    return (now * found).sum() >= level - 1e-12

                quantiles[number, step, feature] = smallest(enough)
    return quantiles


def distribution_at(count, draws, model, feature):
    """Probability of at most `count` in each state of each draw, (n_draws, k)."""
    found = []
    for draw in draws:
        weights = np.exp(draw.log_weights)
        below = pdtr(count, model.means(draw.natural)[..., feature])
        known = np.where(draw.occupied, weights * below, 0.0).sum(axis=1)
        new = np.where(draw.occupied, 0.0, weights).sum(axis=1)
        chance = draw.rates[:, feature] / (1.0 + draw.rates[:, feature])
        known += new * nbinom.cdf(count, COUNT_SHAPE, chance)
        found.append(known / weights.sum(axis=1))
    return np.array(found)


def smallest(enough):
    """Return the smallest count for which a condition that stays true is true."""
    if enough(0):
        return 0
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def category_probabilities(states, draws, model):
    """Probabilities of categories: of each feature (n_steps, n_categories).

    `states` (n_draws, n_steps, n_states).
    """
    total = 0.0
    for now, draw in zip(states, draws, strict=True):
        weights = np.exp(draw.log_weights) / np.exp(draw.log_weights).sum(1)[:, None]
        known = np.where(draw.occupied, weights, 0.0)
        tables = (known[..., None] * np.exp(draw.natural)).sum(axis=1)
        new = 1.0 - known.sum(axis=1, keepdims=True)
        uniform = np.concatenate([np.full(n, 1.0 / n) for n in model.n_categories])
        total = total + now @ (tables + new * uniform)
    return [total[:, block] / len(draws) for block in model.blocks()]


def count_medians(draws, model):
    """Posterior mean of the median of each count in each state, (k, n_features)."""
    k, found = model.n_states, []
    for draw in draws:
        for state in np.eye(k):
            found.append(count_quantiles(state[None, None], [draw], model, [0.5])[0, 0])
    return np.reshape(found, (len(draws), k, -1)).mean(axis=0)
