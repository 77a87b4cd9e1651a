"""NumPy twins of the kernels of the mixtures."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from twins import twin_of

from skpacbayes._kernels import mixture

N, D, K = 23, 3, 6


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@twin_of(mixture.quadratic_features)
def test_quadratic_features(kernel):
    X, origin = normal(N, D), normal(D, seed=1)
    for pairs in (np.triu_indices(D), (np.arange(D), np.arange(D))):
        features = np.empty((1 + D + len(pairs[0]), N))
        kernel(X, origin, *pairs, features)
        Z = X - origin
        expected = np.column_stack([np.ones(N), Z, Z[:, pairs[0]] * Z[:, pairs[1]]])
        assert_array_equal(features.T, expected)


@twin_of(mixture.diagonal_log_joint)
def test_diagonal_log_joint(kernel):
    X, constants, means = normal(N, D), normal(K, seed=1), normal(D, K, seed=2)
    precisions, log_joint = normal(D, K, seed=3) ** 2, np.empty((N, K))
    kernel(X, constants, means, precisions, log_joint)
    squares = ((X[:, :, None] - means) ** 2 * precisions).sum(axis=1)
    assert_allclose(log_joint, constants - squares / 2, rtol=1e-13)


@twin_of(mixture.add_diagonal_moments)
def test_add_diagonal_moments(kernel):
    X, shares, origins = normal(N, D), normal(N, K, seed=1) ** 2, normal(D, K, seed=2)
    sums, squares = normal(2, D, K, seed=3)
    gaps = X[:, :, None] - origins
    expected = sums + (gaps * shares[:, None]).sum(axis=0)
    expected_squares = squares + (gaps**2 * shares[:, None]).sum(axis=0)
    kernel(X, shares, origins, sums, squares)
    assert_allclose(sums, expected, rtol=1e-12)
    assert_allclose(squares, expected_squares, rtol=1e-12)


@twin_of(mixture.subtract_row_maximum)
def test_subtract_row_maximum(kernel):
    log_joint, highest = normal(N, K), np.empty(N)
    expected = log_joint - log_joint.max(axis=1, keepdims=True)
    maxima = log_joint.max(axis=1)
    kernel(log_joint, highest)
    assert_array_equal(log_joint, expected)
    assert_array_equal(highest, maxima)


@twin_of(mixture.normalise_rows)
def test_normalise_rows(kernel):
    shares, weight = normal(N, K) ** 2, normal(N, seed=1) ** 2
    sums, totals = shares.sum(axis=1), np.empty(N)
    expected = shares * (weight / sums)[:, None]
    kernel(shares, weight, totals)
    assert_allclose(totals, sums, rtol=1e-14)
    assert_allclose(shares, expected, rtol=1e-14)
    assert_allclose(shares.sum(axis=1), weight, rtol=1e-14)
