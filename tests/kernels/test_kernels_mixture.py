"""NumPy twins of the kernels of the mixtures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import gammaln, logsumexp, softmax
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


@twin_of(mixture.turn_into_shares)
def test_turn_into_shares(kernel):
    joint, weight = 1e3 * normal(N, K), normal(N, seed=1) ** 2
    highest, log_totals = joint.max(axis=1), np.empty(N)
    shares = np.exp(joint - highest[:, None])
    sums = shares.sum(axis=1)
    expected = shares * (weight / sums)[:, None]
    assert (expected == 0.0).any()
    kernel(joint, weight, log_totals)
    assert_allclose(log_totals, np.log(sums) + highest, rtol=1e-14)
    assert_allclose(joint, expected, rtol=1e-14)
    assert_allclose(joint.sum(axis=1), weight, rtol=1e-14)


@twin_of(mixture.linear_log_densities)
def test_linear_log_densities(kernel):
    rng = np.random.default_rng(0)
    X, constants, table = (
        rng.normal(size=(6, 3)),
        rng.normal(size=4),
        rng.normal(size=(3, 4)),
    )
    X[0] = 0.0
    scores = np.empty((6, 4))
    kernel(X, constants, table, scores)
    assert_allclose(scores, constants + X @ table)


@twin_of(mixture.full_log_densities)
def test_full_log_densities(kernel):
    rng = np.random.default_rng(0)
    X, means = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    factors = np.tril(rng.normal(size=(4, 3, 3)))
    constants, multipliers = rng.normal(size=4), rng.random(4)
    tops = np.array([0.0, 2.5, 0.0, 7.0])
    packed = np.ascontiguousarray(factors[:, *np.tril_indices(3)].T)
    scores = np.empty((6, 4))
    kernel(
        X,
        constants,
        np.ascontiguousarray(means.T),
        packed,
        multipliers,
        tops,
        np.empty(8),
        scores,
    )
    scaled = np.einsum("kij,nkj->nki", factors, X[:, None] - means)
    squares = multipliers * (scaled**2).sum(axis=2)
    expected = constants - np.where(tops > 0, tops * np.log1p(squares), squares / 2)
    assert_allclose(scores, expected)


@pytest.mark.parametrize("pooled", [False, True])
@twin_of(mixture.student_log_densities)
def test_student_log_densities(kernel, pooled):
    rng = np.random.default_rng(0)
    X, means = rng.normal(size=(6, 3)), rng.normal(size=(3, 4))
    scales, constants, tops = (
        rng.random((3, 4)) + 0.1,
        rng.normal(size=4),
        rng.random(4),
    )
    scores = np.empty((6, 4))
    kernel(X, constants, means, scales, tops, pooled, scores)
    squares = (X[:, :, None] - means) ** 2 / scales
    logs = np.log1p(squares.sum(axis=1)) if pooled else np.log1p(squares).sum(axis=1)
    assert_allclose(scores, constants - tops * logs)


@twin_of(mixture.column_log_densities)
def test_column_log_densities(kernel):
    rng = np.random.default_rng(0)
    X, (centers, spreads) = rng.normal(size=(6, 3)), rng.random((2, 3)) + 0.1
    X[1, 2] = np.nan
    constants, means, scales, tops = rng.random((4, 3, 4)) + 0.1
    scores = np.empty((6, 4))
    kernel(X, constants, centers, spreads, means, scales, tops, scores)
    gaps = ((X - centers) / spreads)[:, :, None] - means
    terms = constants - tops * np.log1p(gaps**2 / scales)
    assert_allclose(scores, np.nansum(terms, axis=1))


@twin_of(mixture.tabulated_log_densities)
def test_tabulated_log_densities(kernel):
    """Values that are not in the table make NaN."""
    rng = np.random.default_rng(0)
    X, scores = rng.integers(0, 5, (9, 3)) * 1.0, np.empty((9, 4))
    constants, table = rng.normal(size=4), rng.normal(size=(3, 5, 4))
    X[range(1, 6), [0, 1, 2, 0, 1]] = np.nan, 5.0, -1.0, 0.5, np.inf
    kernel(X, constants, table, scores)
    inside = np.array([0, 6, 7, 8])
    assert np.isnan(scores[1:6, 0]).all()
    picked = table[np.arange(3), X[inside].astype(int)]
    assert_allclose(scores[inside], constants + picked.sum(axis=1))


@twin_of(mixture.line_log_densities)
def test_line_log_densities(kernel):
    rng = np.random.default_rng(0)
    X, (centers, spreads) = rng.normal(size=(6, 3)), rng.random((2, 3)) + 0.1
    X[1, 2] = np.nan
    coefficients, roots = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 3))
    constants, scales = rng.random((2, 4)) + 0.1
    tops, scores = np.array([0.0, 2.5, 0.0, 7.0]), np.empty((6, 4))
    parameters = centers, spreads, coefficients, roots, constants, scales, tops
    kernel(X, *parameters, scores)
    z = (X - centers) / spreads
    inputs = np.column_stack([np.ones(6), z[:, :2]])
    squares = (np.einsum("kij,nj->nki", roots, inputs) ** 2).sum(axis=2)
    gaps = z[:, 2:] - inputs @ coefficients.T
    wide = scales * (1 + squares)
    student = -0.5 * np.log(wide) - tops * np.log1p(gaps**2 / wide)
    normal = -0.5 * (gaps**2 / scales + squares)
    expected = constants + np.where(tops > 0, student, normal)
    assert_allclose(scores, np.where(np.isnan(gaps), 0.0, expected))


@twin_of(mixture.log_sums_of_polynomials)
def test_log_sums_of_polynomials(kernel):
    rng = np.random.default_rng(0)
    X, sums = rng.normal(size=(6, 3)), 5 * rng.normal(size=(4, 3))
    lengths, slopes = np.sqrt((sums**2).sum(axis=1)), rng.normal(size=7)
    coefficients, scores = rng.normal(size=(4, 5, 7)), np.empty((6, 4))
    kernel(X, sums, lengths, coefficients, slopes, np.empty(7), scores)
    t = np.sqrt(((X[:, None] + sums) ** 2).sum(axis=2)) - lengths
    powers = t[:, :, None, None] ** np.arange(5)[:, None]
    terms = (coefficients * powers).sum(axis=2) + slopes * t[:, :, None]
    assert_allclose(scores, logsumexp(terms, axis=2))


@pytest.mark.parametrize("least", [-np.inf, 0.5, np.inf])
@twin_of(mixture.log_sums_of_powers)
def test_log_sums_of_powers(kernel, least):
    """The first two terms, or all five where their sum times x is too small."""
    rng = np.random.default_rng(0)
    X, columns = rng.gamma(1.0, 2.0, (6, 3)), np.array([0, 1, 2, 1])
    powers, constants = rng.normal(size=(2, 4, 5))
    tops, scales = rng.gamma(2.0, 1.0, (2, 4, 5))
    scores = np.empty((6, 4))
    kernel(
        X,
        columns,
        np.arange(5) * 5,
        np.full(4, 2),
        powers.ravel(),
        constants.ravel(),
        tops.ravel(),
        scales.ravel(),
        least,
        np.empty(5),
        scores,
    )
    x = X[:, columns, None]
    terms = powers * np.log(x) + constants - tops * np.log1p(x / scales)
    first, everything = logsumexp(terms[:, :, :2], axis=2), logsumexp(terms, axis=2)
    enough = first + np.log(x[:, :, 0]) > least
    assert_allclose(scores, np.where(enough, first, everything))


@twin_of(mixture.count_log_probabilities)
def test_count_log_probabilities(kernel):
    rng = np.random.default_rng(0)
    X, topics = rng.poisson(1.0, (6, 3)).astype(float), rng.random((3, 4)) + 0.5
    totals, scores = topics.sum(axis=0), np.empty((6, 4))
    kernel(
        X.ravel(),
        np.tile(np.arange(3), 6),
        np.arange(7) * 3,
        topics,
        gammaln(topics),
        totals,
        gammaln(totals),
        scores,
    )
    expected = [
        [
            stats.dirichlet_multinomial(topics[:, k], int(x.sum())).logpmf(
                x.astype(int)
            )
            for k in range(4)
        ]
        for x in X
    ]
    assert_allclose(scores, expected, rtol=1e-9)


@twin_of(mixture.log_probability_of_large_counts)
def test_log_probability_of_large_counts(kernel):
    """Of any counts: the columns without a count may be left out."""
    rng = np.random.default_rng(1)
    topics, kept = rng.random((4, 2)) + 0.5, np.array([0, 1, 3])
    for size in (1.0, 1e3, 1e6):
        x = np.append(np.rint(size * np.array([0.0, 1.0, 7.0])), 0.0)[[0, 1, 3, 2]]
        for k in range(2):
            found = kernel(x[kept], kept, 0, 3, topics, k)
            law = stats.dirichlet_multinomial(topics[:, k], int(x.sum()))
            assert_allclose(found, law.logpmf(x.astype(int)), rtol=1e-6)
    assert kernel(np.zeros(3), kept, 0, 3, topics, 0) == 0.0


@twin_of(mixture.log_rising_rest)
def test_log_rising_rest(kernel):
    for a, c in ((0.01, 3.0), (5.0, 1.0), (40.0, 90.0)):
        m = a + c
        terms = m * np.log(m) - a * np.log(a) - c * np.log(c)
        expected = gammaln(m) - gammaln(a) - gammaln(c + 1) - terms
        assert_allclose(kernel(a, c), expected, rtol=1e-9)


@twin_of(mixture.stirling_error)
def test_stirling_error(kernel):
    for x in (1e-3, 1.0, 15.9, 16.1, 300.0):
        expected = gammaln(x) - (x - 0.5) * np.log(x) + x - 0.5 * np.log(2 * np.pi)
        assert_allclose(kernel(x), expected, atol=1e-11)
    assert_allclose(kernel(1e12), 1 / 12e12)


@twin_of(mixture.deviance)
def test_deviance(kernel):
    for x, mean in ((3.0, 5.0), (9.0, 10.0), (10.0, 9.9), (7.0, 7.0), (1e-9, 4.0)):
        expected = x * np.log(x / mean) + mean - x
        assert_allclose(kernel(x, mean), expected, atol=1e-12)
    assert_allclose(kernel(1e14 + 1e4, 1e14), 0.5e-6, rtol=1e-6)


@twin_of(mixture.normalise_exponentials)
def test_normalise_exponentials(kernel):
    scores = np.random.default_rng(0).normal(0, 300, (6, 4))
    shares = np.empty((6, 4))
    kernel(scores, shares)
    assert_allclose(shares, softmax(scores, axis=1))


@twin_of(mixture.log_sums_of_rows)
def test_log_sums_of_rows(kernel):
    rng = np.random.default_rng(0)
    scores, log_weights = rng.normal(0, 300, (6, 4)), np.log(rng.dirichlet(np.ones(4)))
    scores[0] = -np.inf
    result = np.empty(6)
    kernel(scores, log_weights, result)
    assert_allclose(result, logsumexp(scores + log_weights, axis=1))
