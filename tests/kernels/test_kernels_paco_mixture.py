"""NumPy twins of the kernels of mixtures of one shape."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t
from twins import twin_of

from skpacbayes._kernels import paco_mixture as kernels
from skpacbayes._kernels import paco_tree

RNG = np.random.default_rng(0)
POINTS = np.vstack([RNG.normal(size=(30, 2)), RNG.normal([5, 1], 1, (20, 2))])
WEIGHTS = RNG.uniform(0.5, 2, len(POINTS))
CENTERS = np.array([[0.5, 0.0], [4.0, 0.0]])


def run(kernel, *, shape=0, own=False, dof=0, max_iter=1, pull=2.0):
    """EM from two centres; the kernel's state by name."""
    d, k, n = 2, 2, len(POINTS)
    state = {
        "points": POINTS.copy(),
        "weights": WEIGHTS,
        "spreads": np.zeros(n),
        "scatter": np.zeros((d, d)),
        "overall": np.cov(POINTS.T),
        "coordinates": np.eye(d),
        "shape": shape,
        "own": own,
        "dof": dof,
        "pull": pull,
        "smallest": 1e-12,
        "max_iter": max_iter,
        "tolerance": -math.inf,
        "k": k,
        "centers": CENTERS.T.copy(),
        "scales": np.array([1.5, 0.8]) if own else np.full(2, 1.2),
        "shares": np.array([0.7, 0.3]),
        "masses": np.zeros(k),
        "labels": np.zeros(n, dtype=np.int64),
        "robust": np.ones(n),
        "sums": np.empty((d, k)),
        "moments": np.empty((8, k)),
        "pooled": np.empty((2, d, d)),
    }
    return kernel(*state.values()), state


def log_joint(points, centers, scales, shares, dof):
    """Log of share and density of each component at each point."""
    columns = []
    for center, scale, share in zip(centers, scales, shares, strict=True):
        if dof == 0:
            noise = multivariate_normal(center, scale)
        else:
            noise = multivariate_t(center, scale * np.eye(2), dof)
        columns.append(math.log(share) + noise.logpdf(points))
    return np.column_stack(columns)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("dof", [0, 5, 6])
@twin_of(kernels.fit_mixture)
def test_fit_mixture(kernel, own, dof):
    _, before = run(kernel, own=own, dof=dof, max_iter=0)
    centers, scales, shares = before["centers"].T, before["scales"], before["shares"]
    joint = log_joint(POINTS, centers, scales, shares, dof)
    parts = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)) * WEIGHTS[:, None]
    ratios = cdist(POINTS, centers, "sqeuclidean") / scales
    bounded = np.ones_like(parts) if dof == 0 else (dof + 2) / (dof + ratios)
    thick, masses = (parts * bounded).sum(axis=0), parts.sum(axis=0)
    new = (parts * bounded).T @ POINTS / thick[:, None]
    square = (parts * bounded * cdist(POINTS, new, "sqeuclidean")).sum(axis=0)
    if own:
        harmonic = np.mean(1 / scales)
        expected = (square / 2 + 2.0 / harmonic) / (masses + 2.0)
    else:
        expected = np.full(2, square.sum() / (2 * masses.sum()))
    likelihoods, after = run(kernel, own=own, dof=dof, max_iter=1)
    assert_allclose(after["centers"].T, new, rtol=1e-5, atol=1e-5)  # skips far parts
    assert_allclose(after["scales"], expected, rtol=1e-5)
    assert_allclose(after["shares"], masses / WEIGHTS.sum(), rtol=1e-5)
    joint = log_joint(POINTS, new, expected, masses / WEIGHTS.sum(), dof)
    assert_allclose(likelihoods[0], WEIGHTS @ logsumexp(joint, axis=1), rtol=1e-5)
    assert_allclose(likelihoods[1], WEIGHTS @ joint.max(axis=1), rtol=1e-5)
    assert_array_equal(after["labels"], joint.argmax(axis=1))


@pytest.mark.parametrize("shape", [kernels.DIAGONAL, kernels.TIED])
@twin_of(kernels.fit_mixture)
def test_fit_mixture_whitens(kernel, shape):
    """Coordinates keep their determinant; the likelihood is that of the rows."""
    _, state = run(kernel, shape=shape, max_iter=30)
    coordinates = state["coordinates"]
    assert_allclose(np.linalg.det(coordinates), 1.0, rtol=1e-9)
    assert_allclose(state["points"], POINTS @ coordinates, rtol=1e-9, atol=1e-12)
    likelihoods, _ = run(kernel, shape=shape, max_iter=30)
    spherical, _ = run(kernel, max_iter=30)
    assert likelihoods[0] > spherical[0] - 0.1
    if shape == kernels.DIAGONAL:
        assert_allclose(coordinates, np.diag(np.diag(coordinates)))


@twin_of(kernels.fit_mixture)
def test_student_components_of_too_different_densities_have_no_likelihood(kernel):
    """Where exp of their difference is not a number, rather than a wrong one."""
    points = np.random.default_rng(0).normal(size=(8, 600))
    args = [points, np.ones(8), np.zeros(8), np.zeros((600, 600)), np.eye(600)]
    args += [np.eye(600), 0, True, 5, 2.0, 1e-12, 0, 0.0, 2, np.zeros((600, 2))]
    args += [np.array([1.0, 10.0]), np.full(2, 0.5), np.zeros(2)]
    args += [np.zeros(8, dtype=np.int64), np.ones(8), np.empty((600, 2))]
    args += [np.empty((8, 2)), np.empty((2, 600, 600))]
    assert kernel(*args)[0] == -math.inf
    args[15] = np.array([1.0, 2.0])
    assert math.isfinite(kernel(*args)[0])


@twin_of(paco_tree.ward)
def test_ward(kernel):
    """The merges of scipy, where weights are 1; the sum of squares, where not."""
    points = np.random.default_rng(0).normal(size=(3, 40))
    merges, costs = np.empty((39, 2), dtype=np.int64), np.empty(39)
    work = np.empty(40), np.empty(41, dtype=np.int64)
    kernel(points.copy(), np.ones(40), merges, costs, *work)
    assert_allclose(np.sort(costs), linkage(points.T, "ward")[:, 2] ** 2 / 2)
    weights = np.random.default_rng(1).uniform(0.5, 3, 40)
    kernel(points.copy(), weights.copy(), merges, costs, *work)
    gaps = points - (points @ weights / weights.sum())[:, None]
    assert_allclose(costs.sum(), (weights * gaps**2).sum())


@twin_of(paco_tree.cut_tree)
def test_cut_tree(kernel):
    merges = np.array([[0, 3], [1, 2], [4, 3], [3, 2]])
    masses = np.array([1.0, 2, 3, 4, 5])
    labels, entropies = np.empty(5, dtype=np.int64), np.full(5, np.nan)
    kernel(merges, masses, 2, labels, entropies)
    assert_array_equal(labels, [0, 1, 1, 0, 0])
    assert_allclose(entropies[1], 10 * math.log(10) + 5 * math.log(5))
    assert_allclose(entropies[4], (masses * np.log(masses)).sum())
    kernel(merges, masses, 5, labels, entropies)
    assert_array_equal(labels, np.arange(5))


@twin_of(kernels._change_coordinates)
def test_change_coordinates(kernel):
    matrix = np.cov(RNG.normal(size=(3, 10)))
    factor = np.tril(RNG.uniform(0.5, 1, size=(3, 3)))
    inverse = np.linalg.inv(factor)
    changed = matrix.copy()
    kernel(changed, factor)
    assert_allclose(changed, inverse @ matrix @ inverse.T, rtol=1e-9)


@twin_of(kernels.merge_once)
def test_merge_once(kernel):
    """The pair whose merger gains most, of all pairs, is merged, by its moments."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        centers, masses = rng.normal(size=(2, 4)), rng.uniform(1, 5, 4)
        gains = np.full((4, 4), -np.inf)
        for a in range(4):
            for b in range(a):
                both = masses[a] + masses[b]
                added = masses[a] * masses[b] / both
                added *= ((centers[:, a] - centers[:, b]) ** 2).sum()
                gains[a, b] = both * math.log(both)
                gains[a, b] -= masses[a] * math.log(masses[a])
                gains[a, b] -= masses[b] * math.log(masses[b])
                gains[a, b] -= masses.sum() * math.log1p(added / masses.sum() / 2 / 0.5)
        a, b = np.unravel_index(gains.argmax(), gains.shape)
        merged = (masses[a] * centers[:, a] + masses[b] * centers[:, b]) / (
            masses[a] + masses[b]
        )
        state = centers.copy(), np.full(4, 0.5), masses / masses.sum()
        table = np.full((2, 4), -1.0)
        left = kernel(2, 4, False, 0, masses.sum(), masses.copy(), *state, table)
        assert left == 3
        gaps = np.abs(state[0][:, :3] - merged[:, None]).max(axis=0)
        assert gaps.min() < 1e-12
        assert_allclose(state[2][:3].sum(), 1.0)
