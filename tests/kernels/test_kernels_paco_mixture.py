"""NumPy twins of the kernels of mixtures of one shape."""

import math
from dataclasses import replace

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
from skpacbayes.cluster._paco_fitting import EMState, MixtureProblem

RNG = np.random.default_rng(0)
POINTS = np.vstack([RNG.normal(size=(30, 2)), RNG.normal([5, 1], 1, (20, 2))])
WEIGHTS = RNG.uniform(0.5, 2, len(POINTS))
CENTERS = np.array([[0.5, 0.0], [4.0, 0.0]])
ROW = 1.5  # weight of a row: the degree of freedom that a centre takes


def run(
    kernel, *, changing=False, own=False, dof=0, max_iter=1, pull=2.0, background=()
):
    """EM from two centres; the kernel's answer, and its state by name."""
    d, k, n = 2, 2, len(POINTS)
    share, log_uniform = background or (0.0, -math.inf)
    cloud = kernels.Cloud(POINTS.copy(), WEIGHTS, np.zeros(n), WEIGHTS.sum())
    kind = kernels.Kind(changing, own, dof, pull, ROW, 1e-12, log_uniform)
    components = kernels.Components(
        CENTERS.T.copy(),
        np.array([1.5, 0.8]) if own else np.full(2, 1.2),
        np.array([0.7, 0.3]),
        np.zeros(k),
    )
    found = kernels.Found(
        np.zeros(n, dtype=np.int64),
        np.ones(n),
        np.empty((k, d)),
        np.empty((8, k)),
        np.zeros((n, k)),
        np.empty((k, d)),
    )
    until = 0, max_iter, -math.inf, -math.inf
    answer = kernel(cloud, kind, *until, k, share, components, found)
    return answer, components._asdict() | found._asdict()


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
@twin_of(kernels.run_em)
def test_run_em(kernel, own, dof):
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
        free = (masses - ROW + 2.0) / (masses + 2.0)
        harmonic = np.mean(free / scales)
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


@pytest.mark.parametrize("log_uniform", [-4.0, -800.0, 800.0])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("dof", [0, 5])
@twin_of(kernels.run_em)
def test_run_em_with_a_background(kernel, own, dof, log_uniform):
    """One more component, of a density that is the same everywhere."""
    background = 0.2, log_uniform
    answer, state = run(kernel, own=own, dof=dof, max_iter=0, background=background)
    centers, scales = state["centers"].T, state["scales"]
    joint = log_joint(POINTS, centers, scales, state["shares"], dof)
    alone = math.log(0.2) + log_uniform
    every = np.column_stack([joint, np.full(len(POINTS), alone)])
    totals = logsumexp(every, axis=1)
    assert_allclose(answer[0], WEIGHTS @ totals, rtol=1e-6)  # skips far parts
    assert_allclose(answer[1], WEIGHTS @ every.max(axis=1), rtol=1e-9)
    outside = np.exp(alone - totals)
    expected = max(WEIGHTS @ outside / WEIGHTS.sum(), 1e-9)
    assert_allclose(answer[4], expected, rtol=1e-6)
    best = joint.argmax(axis=1)
    assert_array_equal(state["labels"], best)
    parts = np.exp(joint - totals[:, None]) * WEIGHTS[:, None]
    assert_allclose(state["masses"], parts.sum(axis=0), rtol=1e-5, atol=1e-9)
    ratios = cdist(POINTS, centers, "sqeuclidean") / scales
    bounded = np.ones_like(parts) if dof == 0 else (dof + 2) / (dof + ratios)
    robust = bounded[np.arange(len(best)), best] * (1 - outside)
    assert_allclose(state["robust"], robust, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("dof", [0, 5])
@twin_of(kernels.run_em)
def test_run_em_asks_for_other_coordinates(kernel, dof):
    """It returns what the pooled covariance is made of."""
    _, before = run(kernel, dof=dof, max_iter=1)
    likelihoods, after = run(kernel, changing=True, dof=dof, max_iter=30)
    assert likelihoods[2:] == (2, True, 0.0)
    centers, scales = before["centers"].T, before["scales"]
    joint = log_joint(POINTS, centers, scales, before["shares"], dof)
    parts = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)) * WEIGHTS[:, None]
    if dof:
        parts *= (dof + 2) / (dof + cdist(POINTS, centers, "sqeuclidean") / scales)
    assert_allclose(after["within"], parts / scales, atol=1e-3 * WEIGHTS.max())
    assert (after["within"] == 0).any()  # shares below 1e-3
    steps = after["centers"] - before["centers"]
    assert_allclose(after["sums"], steps.T, atol=1e-12)
    assert_array_equal(after["origins"], before["centers"].T)
    assert_allclose(after["moments"][2], 1 / scales, rtol=1e-12)
    assert_allclose(after["moments"][7], parts.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("dof", [math.inf, 5.0])
@pytest.mark.parametrize("shape", ["diagonal", "tied"])
def test_coordinates_change_by_the_covariance_within_components(
    monkeypatch, shape, dof
):
    """About the centres of the M step; the diagonal alone if the shape is one."""
    found, scatter = [], np.zeros((2, 2))
    problem = MixtureProblem(POINTS, WEIGHTS, np.zeros(len(POINTS)), scatter)
    start = replace(
        problem.single(shape),
        centers=CENTERS @ problem.whitened(shape),
        scales=np.full(2, 1.2),
        shares=np.array([0.7, 0.3]),
        masses=np.ones(2),
    )
    before = problem.state(start, shape, False, dof)
    before.run(1, -math.inf)
    monkeypatch.setattr(EMState, "_whiten", lambda self, within: found.append(within))
    after = problem.state(start, shape, False, dof)
    after.run(2, -math.inf)
    points, centers = before.points, before.centers.T
    known = int(dof) if math.isfinite(dof) else 0
    joint = log_joint(points, centers, before.scales, before.shares, known)
    parts = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)) * WEIGHTS[:, None]
    if known:
        ratios = cdist(points, centers, "sqeuclidean") / before.scales
        parts *= (known + 2) / (known + ratios)
    expected = 0.0
    new = (parts.T @ points) / parts.sum(axis=0)[:, None]
    for j in range(2):
        gaps = points - new[j]
        expected += (gaps * parts[:, [j]]).T @ gaps / before.scales[j]
    if shape == "diagonal":
        expected = np.diag(np.diag(expected))
    assert_allclose(found[0], expected, rtol=2e-3, atol=2e-3)  # shares below 1e-3


@twin_of(kernels.run_em)
def test_student_components_of_too_different_densities_have_no_likelihood(kernel):
    """Where exp of their difference is not a number, rather than a wrong one."""
    points = np.random.default_rng(0).normal(size=(8, 600))
    cloud = kernels.Cloud(points, np.ones(8), np.zeros(8), 8.0)
    kind = kernels.Kind(False, True, 5, 2.0, 1.0, 1e-12, -math.inf)
    sums, moments, within = np.empty((2, 600)), np.empty((8, 2)), np.empty((8, 0))
    labels = np.zeros(8, dtype=np.int64)
    found = kernels.Found(
        labels, np.ones(8), sums, moments, within, np.empty_like(sums)
    )
    for largest, is_finite in ((10.0, False), (2.0, True)):
        scales = np.array([1.0, largest])
        components = kernels.Components(
            np.zeros((600, 2)), scales, np.full(2, 0.5), np.zeros(2)
        )
        fit = kernel(cloud, kind, 0, 0, -math.inf, 0.0, 2, 0.0, components, found)[0]
        assert math.isfinite(fit) if is_finite else fit == -math.inf


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
