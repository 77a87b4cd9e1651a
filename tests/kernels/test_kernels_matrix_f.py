"""NumPy twins of the kernels of the default prior of Gaussian components."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma, expit, gammaln
from sklearn.cluster import kmeans_plusplus
from twins import twin_of

from skpacbayes._kernels import matrix_f
from skpacbayes.mixture._search import TRIALS, greedy_centers

K, D = 4, 3
NU, M, FACTOR = 5.0, 2.0, 0.3


def positive(*shape, seed=0):
    return np.random.default_rng(seed).exponential(size=shape)


def balanced(values, counts):
    """Return the gap of b^2 + (s + N - m) b = (m + nu) s, relative to its terms."""
    s, b = values
    terms = b**2, (s + counts - M) * b, -(M + NU) * s
    return sum(terms) / sum(map(np.abs, terms))


@twin_of(matrix_f.digamma)
def test_digamma(kernel):
    x = np.geomspace(1e-3, 1e8, 200)
    found = np.array([kernel(each) for each in x])
    assert_allclose(found, digamma(x), rtol=1e-13, atol=1e-13)


@twin_of(matrix_f.shrink)
@pytest.mark.parametrize("n_origins", [1, K])
def test_shrink(kernel, n_origins):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(20, D)), positive(20, K)
    weight[:, 0] = 0.0  # a component without rows
    origins, mean, priors = (
        rng.normal(size=(n_origins, D)),
        rng.normal(size=D),
        positive(K),
    )
    gaps = X[:, None] - origins
    gaps = np.broadcast_to(gaps, (20, K, D))
    first, second = np.triu_indices(D)
    sums = np.einsum("ik,ikj->kj", weight, gaps)
    products = np.einsum("ik,ikj->kj", weight, gaps[..., first] * gaps[..., second])
    statistics = np.column_stack([weight.sum(axis=0), sums, products])
    means, precisions, scatter = np.empty((K, D)), np.empty(K), np.empty((K, D, D))
    step = int(n_origins > 1)
    kernel(statistics, origins, step, mean, priors, means, precisions, scatter)
    totals = priors + weight.sum(axis=0)
    expected = (weight.T @ X + priors[:, None] * mean) / totals[:, None]
    # Rows, and the prior mean as so many of them, about the posterior mean.
    around = X[:, None] - expected
    spread = np.einsum("ik,ikj,ikm->kjm", weight, around, around)
    shift = expected - mean
    spread += priors[:, None, None] * shift[:, :, None] * shift[:, None]
    assert_allclose(precisions, totals, rtol=1e-14)
    assert_allclose(means, expected, rtol=1e-12)
    assert_allclose(scatter, spread, rtol=1e-11, atol=1e-11)


@twin_of(matrix_f.inverse_scale)
def test_inverse_scale(kernel):
    for s, count in zip(positive(50) * 10, positive(50, seed=1) * 10, strict=True):
        b = kernel(s, count, NU, M) - s
        assert b > 0
        assert abs(balanced((s, b), count)) < 1e-13
    assert kernel(0.0, 0.0, NU, M) == M


@twin_of(matrix_f.inverse_scales)
def test_inverse_scales(kernel):
    scatter, counts, values = positive(50), positive(50, seed=1), np.empty(50)
    kernel(scatter, counts, NU, M, values)
    assert_allclose(balanced((scatter, values - scatter), counts), 0, atol=1e-13)


@twin_of(matrix_f.weigh_axes)
def test_weigh_axes(kernel):
    eigenvalues, counts, blur = positive(K, D), positive(K, seed=1), positive(D, seed=2)
    axes = np.random.default_rng(0).normal(size=(K, D, D))
    eigenvalues[:, 0] = -1e-20  # lost by rounding
    values, weights = eigenvalues.copy(), np.empty((K, D))
    kernel(values, axes, counts, counts, blur, NU, M, FACTOR, weights)
    least = counts[:, None] * np.einsum("i,gij->gj", blur, axes**2)
    scatter = np.maximum(eigenvalues, least) / FACTOR
    halves = values / FACTOR - scatter
    assert_allclose(balanced((scatter, halves), counts[:, None]), 0, atol=1e-12)
    assert_allclose(weights**2 * values, np.tile(NU + counts, (D, 1)).T, rtol=1e-13)


@twin_of(matrix_f.log_determinants)
def test_log_determinants(kernel):
    degrees, values, result = D + positive(K), positive(K, D, seed=1), np.empty(K)
    kernel(degrees, values, result)
    halves = (degrees[:, None] - np.arange(D)) / 2
    expected = digamma(halves) + np.log(2) - np.log(values)
    assert_allclose(result, expected.sum(axis=1), rtol=1e-12, atol=1e-12)


@twin_of(matrix_f.complete)
def test_complete(kernel):
    gaps = np.random.default_rng(0).normal(size=(K, D))
    rows, logs, blur = positive(K, seed=1), positive(K, seed=2), positive(D, seed=3)
    for precisions in (positive(K, D, D, seed=4), positive(K, 1, D, seed=4)):
        whole = precisions
        if precisions.shape[1] == 1:
            whole = precisions * np.eye(D)
        constants, expected = np.empty((2, K))
        kernel(gaps, precisions, blur, rows, logs, 0.5, 2.0, constants, expected)
        lost = np.einsum("kii,i->k", whole, blur) + D / rows + D * np.log(2 * np.pi)
        squares = np.einsum("ki,kij,kj->k", gaps, whole, gaps) + D / rows
        assert_allclose(constants, 0.5 * (logs - lost), rtol=1e-12)
        assert_allclose(expected, (0.5 + D / 2) / (2.0 + 0.5 * squares), rtol=1e-12)


@twin_of(matrix_f.divergences)
def test_divergences(kernel):
    degrees, spectrum, result = D + positive(K), positive(K, 2, D, seed=1), np.empty(K)
    kernel(degrees, spectrum, NU, M, 0.7, result)
    halves = (degrees[:, None] - np.arange(D)) / 2
    log_scale = np.log(spectrum).sum(axis=2) - D * np.log(degrees)[:, None]
    constant = (digamma(halves).sum(axis=1) + D * np.log(2))[:, None]
    expected = 0.5 * (degrees - NU)[:, None] * (constant + log_scale)
    expected -= 0.5 * degrees[:, None] * (log_scale + D * (1 + np.log(2)))
    expected -= gammaln(halves).sum(axis=1)[:, None] + 0.7
    expected += 0.5 * (NU + M) * np.log1p(spectrum).sum(axis=2)
    assert_allclose(result, expected.sum(axis=1), rtol=1e-12)


@twin_of(matrix_f.best_log_factor)
def test_best_log_factor(kernel):
    spectrum = positive(20) * 1e4
    for start in (-8.0, 0.0, 8.0):
        u = kernel(spectrum, 12.0, start)
        assert_allclose(expit(u + np.log(spectrum)).sum(), 12.0, rtol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_centers_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(80, D)), rng.exponential(size=80)
    options = {"sample_weight": weight, "n_local_trials": TRIALS}
    expected, _ = kmeans_plusplus(X, 7, random_state=seed, **options)
    assert_allclose(greedy_centers(X, weight, 7, seed), expected, rtol=0)
