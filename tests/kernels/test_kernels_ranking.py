"""NumPy twins of the risks of scores that rank."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, logsumexp, xlogy
from sklearn.metrics import roc_auc_score
from twins import twin_of

from skpacbayes._kernels import ranking


def scorings(decimals, seed=0):
    """Scores of 23 positives and 17 negatives; rounded, they have ties."""
    rng = np.random.default_rng(seed)
    positive = rng.normal(0.5, size=(5, 23)).round(decimals)
    negative = rng.normal(size=(5, 17)).round(decimals)
    return positive, negative


def weights_of(kind, seed=1):
    """Weights of the positives and of the negatives."""
    rng = np.random.default_rng(seed)
    if kind == "real":
        return rng.uniform(0.1, 3, size=23), rng.uniform(0.1, 3, size=17)
    return np.sort(rng.integers(1, 4, 23)) + 0.0, rng.integers(1, 4, 17) + 0.0


WEIGHTED = pytest.mark.parametrize("weighted", [None, "real", "whole"])


@twin_of(ranking.misranked)
@WEIGHTED
@pytest.mark.parametrize("decimals", [12, 1, 0])
def test_misranked(kernel, decimals, weighted):
    positive, negative = scorings(decimals)
    own, others = (
        (np.ones(23), np.ones(17)) if weighted is None else weights_of(weighted)
    )
    weights = None
    if weighted:
        sums = np.cumsum(others[negative.argsort(axis=1)], axis=1)
        weights = own[positive.argsort(axis=1)], np.insert(sums, 0, 0.0, axis=1)
    total, out = float(own.sum() * others.sum()), np.empty(5)
    kernel(np.sort(positive, axis=1), np.sort(negative, axis=1), weights, total, out)
    below = positive[:, :, None] < negative[:, None, :]
    equal = positive[:, :, None] == negative[:, None, :]
    losses = below + 0.5 * equal
    expected = np.einsum("tij,i,j->t", losses, own, others) / total
    assert_allclose(out, expected, atol=1e-15)
    y = np.repeat([1, 0], [23, 17])
    for t in range(5):
        auc = roc_auc_score(
            y, np.append(positive[t], negative[t]), sample_weight=np.append(own, others)
        )
        assert_allclose(1 - out[t], auc)


@pytest.mark.parametrize("constant", [0.0, -3.0])
def test_constant_scores_misrank_half(constant):
    out = np.empty(1)
    scores = np.full((1, 4), constant), np.full((1, 3), constant)
    ranking.misranked(*scores, None, 12.0, out)
    assert out == [0.5]


@twin_of(ranking.pairwise_logistic)
@WEIGHTED
@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0])
def test_pairwise_logistic(kernel, scale, weighted):
    positive, negative = scorings(6)
    positive, negative = scale * positive, scale * negative
    out = np.empty(5)
    n_factors = 3 if scale == 40.0 else 10
    own, others = (
        (np.ones(23), np.ones(17)) if weighted is None else weights_of(weighted)
    )
    weights, total = (
        (own, others) if weighted else None,
        float(own.sum() * others.sum()),
    )
    exponentials = np.exp(-positive), np.exp(negative)
    kernel(*exponentials, weights, total, n_factors, np.empty(17), out)
    losses = np.logaddexp(0, negative[:, None, :] - positive[:, :, None])
    expected = np.einsum("tij,i,j->t", losses, own, others) / total
    assert_allclose(out, expected, rtol=1e-12)


MODELS = [((0, 2), (2, 1)), (), ((1, 3),), ((0, 1), (1, 1), (2, 2))]
WIDTH = 3


@twin_of(ranking.propose)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_propose(kernel, unit, known):
    """Normal laws of given Hessian and gradient, by NumPy's linear algebra."""
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(3 * WIDTH, 20))
    weights, linear = rng.uniform(0.1, 1, 20), rng.normal(size=len(flat))
    gram = (flat * weights) @ flat.T
    ridge, spread = 0.7, 2.0
    sizes = np.array([len(model) for model in MODELS])
    pairs = np.array([pair for model in MODELS for pair in model])
    count, largest = len(MODELS), 4
    drawn = np.zeros((3, count, largest))
    noise = rng.normal(size=(count, largest))
    drawn[2] = noise
    factors = np.zeros((count, largest, largest))
    log_volumes, scores = np.empty(count), np.zeros((count, 20))
    kernel(
        (sizes, pairs, np.empty(largest, dtype=np.int64)),
        (gram if known else np.empty((0, 0)), weights, linear),
        flat,
        (WIDTH, ridge, spread, unit),
        drawn,
        factors,
        log_volumes,
        scores,
    )
    for t, model in enumerate(MODELS):
        columns = [j * WIDTH + a for j, order in model for a in range(order)]
        q = len(columns)
        precision = (gram[np.ix_(columns, columns)] + ridge * np.eye(q)) / spread
        factor = np.linalg.cholesky(precision)
        mean = np.linalg.solve(precision, linear[columns] / spread)
        values = mean + np.linalg.solve(factor.T, noise[t, :q])
        if unit and q:
            values /= np.linalg.norm(values)
        assert_allclose(factors[t, :q, :q], factor, atol=1e-12)
        assert_allclose(log_volumes[t], np.log(np.diag(factor)).sum(), atol=1e-12)
        assert_allclose(drawn[0, t, :q], values, rtol=1e-9)
        assert_allclose(drawn[1, t, :q], factor.T @ mean, rtol=1e-9)
        assert_allclose(drawn[2, t, :q], factor.T @ values, rtol=1e-9, atol=1e-12)
        assert (drawn[:, t, q:] == 0).all()
        assert_allclose(scores[t], values @ flat[columns], rtol=1e-9, atol=1e-12)


@twin_of(ranking.directions)
@pytest.mark.parametrize("length", [0.1, 3.0, 40.0])
def test_directions(kernel, length):
    """Against the integral of the normal density along the ray."""
    rng = np.random.default_rng(0)
    totals = np.array([1, 2, 5, 0, 5])
    centers, whitened = length * rng.normal(size=(5, 5)), np.zeros((5, 5))
    log_volumes, out = np.zeros(5), np.empty(5)
    expected = np.zeros(5)
    for t, q in enumerate(totals):
        if q == 0:
            continue
        factor = np.tril(rng.normal(size=(q, q))) + 3 * np.eye(q)
        direction = rng.normal(size=q)
        direction /= np.linalg.norm(direction)
        log_volumes[t] = np.log(np.diag(factor)).sum()
        whitened[t, :q] = along = factor.T @ direction
        center = centers[t, :q]
        peak = along @ center / (along @ along)
        reach = 40 / np.linalg.norm(along)
        low, high = max(0, peak - reach), max(0, peak) + reach
        radius = low + (np.arange(400_000) + 0.5) * (high - low) / 400_000
        squares = ((radius[:, None] * along - center) ** 2).sum(axis=1)
        log_values = xlogy(q - 1, radius) - 0.5 * squares
        log_normal = logsumexp(log_values) + np.log(radius[1] - radius[0])
        log_normal += log_volumes[t] - 0.5 * q * np.log(2 * np.pi)
        log_area = np.log(2) + 0.5 * q * np.log(np.pi) - gammaln(q / 2)
        expected[t] = -log_area - log_normal
    kernel(totals, centers, whitened, log_volumes, out)
    assert_allclose(out, expected, atol=1e-4)  # of the sum
