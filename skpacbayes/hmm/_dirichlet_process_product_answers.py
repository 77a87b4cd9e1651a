"""Posterior quantities for columns of several kinds."""

from functools import cache, partial

import numpy as np
from scipy.special import pdtr
from scipy.stats import nbinom

from ._dirichlet_process_forecast import forecast_quantiles
from ._dirichlet_process_posterior import medians as normal_medians
from ._dirichlet_process_product_model import COUNT_SHAPE, columns_of
from ._dirichlet_process_run import stacked


def number_quantiles(states, draws, model, levels):
    """Return quantiles (n_levels, n_steps, n_features); NaN for categories.

    `states` (n_draws, n_steps, n_states): probabilities times weights of mean 1.
    """
    quantiles = np.full((len(levels), states.shape[1], model.n_features), np.nan)
    normal, counts, _ = columns_of(model.kinds)
    if len(normal):
        normals = [draw.normals() for draw in draws]
        found = forecast_quantiles(states, normals, model.normals, levels)
        quantiles[..., normal] = found
    quantiles[..., counts] = count_quantiles(states, draws, model, levels)
    return quantiles


def count_quantiles(states, draws, model, levels):
    """Return exact quantiles of counts, (n_levels, n_steps, n_counts), by bisection.

    `states` (n_draws, n_steps, n_states). A quantile is the smallest count up to which
    the probability is at least the level.
    """
    quantiles = np.empty((len(levels), states.shape[1], model.n_counts))
    for feature in range(model.n_counts):
        # Most steps and levels ask for the same few counts.
        known = cache(
            partial(distribution_at, draws=draws, model=model, feature=feature)
        )
        for step in range(states.shape[1]):
            now = states[:, step] / len(draws)
            for number, level in enumerate(levels):

                def enough(count, now=now, known=known, level=level):
                    return (now * known(count)).sum() >= level - 1e-12

                quantiles[number, step, feature] = smallest(enough)
    return quantiles


def distribution_at(count, draws, model, feature):
    """Return P(at most `count`) in each state of each draw, (n_draws, n_states)."""
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
    """Return the smallest count for which a monotone condition is true."""
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
    """Return probabilities of categories: of each feature (n_steps, n_categories).

    `states` (n_draws, n_steps, n_states). Of numbers there are none.
    """
    total = 0.0
    for now, draw in zip(states, draws, strict=True):
        weights = np.exp(draw.log_weights) / np.exp(draw.log_weights).sum(1)[:, None]
        known = np.where(draw.occupied, weights, 0.0)
        tables = np.exp(model.parts(draw.natural)[2])
        tables = (known[..., None] * tables).sum(axis=1)
        new = 1.0 - known.sum(axis=1, keepdims=True)
        uniform = 1.0 / np.repeat(model.n_categories, model.n_categories)
        total = total + now @ (tables + new * uniform)
    found = [np.empty((states.shape[1], 0))] * model.n_features
    ends = np.cumsum(model.n_categories)[:-1]
    shares = np.split(total / len(draws), ends, axis=1)
    for f, own in zip(columns_of(model.kinds)[2], shares, strict=True):
        found[f] = own
    return found


def medians(draws, model):
    """Median of each number in each state, of each draw; NaN for categories.

    In standard units, (n_draws, n_states, n_features).
    """
    found = np.full((len(draws), model.n_states, model.n_features), np.nan)
    normal, counts, _ = columns_of(model.kinds)
    if len(normal):
        found[..., normal] = normal_medians(stacked([draw.normals() for draw in draws]))
    for own, draw in zip(found, draws, strict=True):
        for row, state in zip(own, np.eye(model.n_states), strict=True):
            now = state[None, None]
            row[counts] = count_quantiles(now, [draw], model, [0.5])[0, 0]
    return found
