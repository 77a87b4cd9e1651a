"""NumPy twins of the risks of scores that rank, and of the mode of a slope."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
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


@twin_of(ranking.logistic_mode)
@pytest.mark.parametrize("n_functions", [0, 1, 2, 7])
@pytest.mark.parametrize("variance", [0.3, 4.0])
def test_logistic_mode(kernel, n_functions, variance):
    """Against a minimiser that knows no derivative of the density."""
    rng = np.random.default_rng(n_functions)
    scores, between = rng.normal(size=30), 9.0
    positive = rng.random(30) < 1 / (1 + np.exp(-scores))
    weights = rng.uniform(0.2, 2.0, size=30)
    out = np.array([1.0, 0.2, 0, 0, 0, 0])
    kernel(scores, positive, weights, n_functions, variance, between, out)

    def log_density(slope, intercept):
        margins = np.where(positive, 1, -1) * (slope * scores + intercept)
        value = -weights @ np.logaddexp(0, -margins) - intercept**2 / (2 * between)
        if n_functions:
            value -= slope**2 / (2 * variance)
        return value + (n_functions > 1) * (n_functions - 1) * np.log(abs(slope))

    if n_functions == 0:
        found = minimize(lambda b: -log_density(1.0, b[0]), [0.0], tol=1e-12)
        slope, intercept = 1.0, found.x[0]
    else:
        found = minimize(lambda x: -log_density(*x), [1.0, 0.0], tol=1e-12)
        slope, intercept = found.x
    assert_allclose(out[:2], [slope, intercept], atol=1e-4)
    assert_allclose(out[5], -found.fun, atol=1e-8)
    h = 1e-4
    for entry, (u, v) in zip(out[2:5], [(h, 0), (None, None), (0, h)], strict=True):
        if u is None or (n_functions == 0 and u):
            continue
        center = log_density(out[0], out[1])
        sides = log_density(out[0] + u, out[1] + v) + log_density(
            out[0] - u, out[1] - v
        )
        assert_allclose(entry, (2 * center - sides) / h**2, rtol=1e-4)
    if n_functions:
        corners = [
            sign * log_density(out[0] + a * h, out[1] + b * h)
            for a, b, sign in [(1, 1, 1), (-1, -1, 1), (1, -1, -1), (-1, 1, -1)]
        ]
        assert_allclose(out[3], -sum(corners) / (4 * h**2), atol=1e-3)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("n_functions", [1, 3])
def test_logistic_mode_of_separated_classes_is_finite(scale, n_functions):
    scores = scale * np.linspace(-1, 1, 20)
    out = np.array([1.0, 0.0, 0, 0, 0, 0])
    positive = scores > 0
    ranking.logistic_mode(scores, positive, np.ones(20), n_functions, 1.0, 100.0, out)
    assert np.isfinite(out).all()
