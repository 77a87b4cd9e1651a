"""What the search for mixtures is made of: trees, changes of coordinates, mergers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import cut_tree, linkage
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from skpacbayes import make_paco_model
from skpacbayes.cluster._paco_covariances import fit_with_covariances
from skpacbayes.cluster._paco_fitting import PULL, MixtureProblem, inverse_root
from skpacbayes.cluster._paco_search import Search, find_mixture
from skpacbayes.cluster._paco_tree import Tree, _nodes

RNG = np.random.default_rng(0)
POINTS = np.vstack([RNG.normal(size=(60, 3)), RNG.normal([9, 1, 0], 1, (40, 3))])


def problem_of(points, weights=None):
    weights = np.ones(len(points)) if weights is None else weights
    spreads, scatter = np.zeros(len(points)), np.zeros((points.shape[1],) * 2)
    return MixtureProblem(points - points.mean(axis=0), weights, spreads, scatter)


def test_nodes():
    merges = np.array([[0, 3], [1, 2], [4, 3], [3, 2]])
    masses = np.array([1.0, 2, 3, 4, 5])
    parents, entropies = _nodes(merges, masses)
    assert_array_equal(parents, [5, 6, 6, 5, 7, 7, 8, 8, 8])
    assert_allclose(entropies[0], 15 * math.log(15))
    assert_allclose(entropies[1], 10 * math.log(10) + 5 * math.log(5))
    assert_allclose(entropies[4], (masses * np.log(masses)).sum())


@pytest.mark.parametrize("n_clusters", [1, 2, 7, 99, 100])
def test_the_tree_is_cut_as_scipy_cuts_it(n_clusters):
    labels = Tree(problem_of(POINTS), "round").labels(n_clusters)
    assert_array_equal(np.unique(labels), np.arange(n_clusters))
    expected = cut_tree(linkage(POINTS, "ward"), n_clusters).ravel()
    same = labels[:, None] == labels
    assert_array_equal(same, expected[:, None] == expected)
    first = np.unique(labels, return_index=True)[1]
    assert_array_equal(first, np.sort(first))  # numbered by their first points


def state_of(shape, own=False, dof=5.0, k=4):
    problem = problem_of(POINTS * [1, 5, 0.2])
    return problem.state(Tree(problem, shape).mixture(k), shape, own, dof)


@pytest.mark.parametrize("shape", ["diagonal", "tied"])
@pytest.mark.parametrize("dof", [5.0, math.inf])
def test_coordinates_keep_their_determinant(shape, dof):
    state = state_of(shape, dof=dof, k=2)
    state.run(30, 1e-6)
    problem, coordinates = state.problem, state.coordinates
    assert_allclose(abs(np.linalg.det(coordinates)), 1.0, rtol=1e-9)
    assert_allclose(state.points, problem.points @ coordinates, rtol=1e-9, atol=1e-12)
    inside = coordinates.T @ problem.total @ coordinates
    assert_allclose(state.overall, inside, rtol=1e-8, atol=1e-12)
    if shape == "diagonal":
        assert_allclose(coordinates, np.diag(np.diag(coordinates)))
    covariance = coordinates.T @ problem.pooled(state.mixture()) @ coordinates
    widths = np.diag(covariance)
    assert widths.max() < 1.5 * widths.min()  # 600 times before
    round_state = state_of("round", dof=dof, k=2)
    round_state.run(30, 1e-6)
    assert state.log_likelihoods[0] > round_state.log_likelihoods[0]


def test_a_column_without_variance_stays_finite():
    change = inverse_root(np.diag([4.0, 0.0, 1e-20]))
    assert np.isfinite(change).all()
    assert_allclose(change[0, 0], 0.5)


@pytest.mark.parametrize("shape", ["round", "diagonal", "tied"])
@pytest.mark.parametrize("own", [False, True])
def test_the_pair_whose_merger_costs_least_is_merged(shape, own):
    """By the likelihood of all pairs, one by one; the moments are those of both."""
    state = state_of(shape, own, k=6)
    state.run(4, -math.inf)
    n_rows, d = state.problem.n_rows, state.problem.d
    masses, centers = state.masses.copy(), state.centers.T.copy()
    scales, shares = state.scales.copy(), state.shares.copy()
    best, pair = -math.inf, None
    for a in range(6):
        for b in range(a):
            both = masses[a] + masses[b]
            gap = centers[a] - centers[b]
            added = masses[a] * masses[b] / both * (gap @ gap)
            gain = both * math.log(both)
            gain -= sum(masses[j] * math.log(masses[j]) for j in (a, b))
            if own:
                merged = masses[a] * scales[a] + masses[b] * scales[b] + added / d
                gain -= d / 2 * both * math.log(merged / both)
                gain += sum(d / 2 * masses[j] * math.log(scales[j]) for j in (a, b))
            else:
                width = n_rows * (1 if shape == "tied" else d)
                gain -= width / 2 * math.log1p(added / scales[0] / width)
            if gain > best:
                best, pair = gain, [a, b]
    state.merge(1)
    assert state.k == 5
    assert_allclose(state.shares[:5].sum(), shares.sum())
    center = masses[pair] @ centers[pair] / masses[pair].sum()
    gaps = np.abs(state.centers.T[:5] - center).max(axis=1)
    assert gaps.min() < 1e-12
    assert_allclose(state.masses[gaps.argmin()], masses[pair].sum())
    for j in set(range(6)) - set(pair):
        assert np.abs(state.centers.T[:5] - centers[j]).max(axis=1).min() == 0


@pytest.mark.parametrize("own", [False, True])
def test_mergers_at_once_are_those_one_by_one(own):
    at_once, one_by_one = state_of("round", own, k=30), state_of("round", own, k=30)
    at_once.merge(20)
    for _ in range(20):
        one_by_one.merge(1)
    assert at_once.k == one_by_one.k == 10
    assert_allclose(at_once.centers[:, :10], one_by_one.centers[:, :10], rtol=1e-9)


def test_covariances_of_their_own_with_normal_tails():
    """Two long groups of different directions, from a bad start: as scikit-learn's."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 2)) * [5, 0.5], rng.normal(size=(200, 2)) / 2])
    X[200:] = X[200:] * [1, 8] + [0, 12]
    problem = problem_of(X)
    start = problem.fit(Tree(problem, "round").mixture(2), "round", False, math.inf, 20)
    found = fit_with_covariances(problem, start, start.labels)
    expected = GaussianMixture(2, random_state=0).fit_predict(X)
    assert adjusted_rand_score(expected, found.labels) > 0.98
    assert_array_equal(found.robust, 1.0)
    assert np.isfinite(found.scales).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_search_of_one_kind_finds_sizes_as_likely_as_that_of_all_kinds(seed):
    """Along a stream, groups that overlap are compared as by `fit`."""
    X, _ = make_paco_model(2, 450, random_state=seed)
    everything = problem_of(X)
    shapes = "round", "diagonal", "tied"
    full = find_mixture(everything, shapes)
    again = find_mixture(everything, shapes, ("round", False, math.inf, False, False))
    assert full.kind[:3] == again.kind[:3] == ("round", False, math.inf)
    best = max(one.evidence for one in full.sizes.values())
    for k in full.sizes.keys() & again.sizes.keys():
        if full.sizes[k].evidence > best - 10:
            assert again.sizes[k].evidence > full.sizes[k].evidence - 1.0


@pytest.mark.parametrize("n_single", [4, 60])
@pytest.mark.parametrize("dof", [math.inf, 5.0])
@pytest.mark.parametrize(("unit", "row_weight"), [(1.0, 1.0), (1e3, 5.0)])
def test_variances_of_single_rows_do_not_vanish(n_single, dof, unit, row_weight):
    """Not even if these are nearly all clusters: that of the rest is their limit.

    The variance of a single row is at least the pull's share of it.
    """
    points = unit * np.random.default_rng(0).normal(size=(1500, 20))
    points[:n_single] *= 6.0
    problem = problem_of(points, np.full(len(points), row_weight))
    problem.row_weight = row_weight
    labels = np.zeros(len(points), dtype=np.int64)
    labels[:n_single] = np.arange(1, n_single + 1)
    start = problem.cut(problem.single("round"), labels)
    mixture = problem.fit(start, "round", True, dof, 100, -math.inf)
    assert_allclose(mixture.masses[1:], row_weight)
    ratios = mixture.scales[1:] / mixture.scales[0]
    assert ratios.min() > 0.99 * PULL / (PULL + row_weight)
    assert ratios.max() < 1


@pytest.mark.parametrize("columns", [None, [0, 1, 2]])
@pytest.mark.parametrize(("n_groups", "unit"), [(1, 1.0), (4, 1e-3), (200, 1e3)])
def test_the_number_of_a_tree_of_drawn_points(n_groups, unit, columns):
    """Points of five rows each: neither is noise cut, nor are small groups merged."""
    rng = np.random.default_rng(n_groups)
    places = 9.0 * np.array(np.unravel_index(np.arange(n_groups), (6, 6, 6))).T
    points = rng.normal(size=(4000, 12))
    points[:, :3] += places[rng.integers(n_groups, size=4000)]
    problem = problem_of(unit * points, np.full(len(points), 5.0))
    problem.row_weight = 5.0
    drawn, others = problem.subset(1400), problem.subset(1400, skipped=1400)
    assert not np.isin(drawn.points[:, 0], others.points[:, 0]).any()
    tree = Tree(drawn, "round", columns)
    assert abs(tree.n_clusters(700, others) - n_groups) <= 0.05 * n_groups


def test_groups_of_two_drawn_points_are_not_one():
    """Each as one row, they are no evidence of groups; other points are."""
    rng = np.random.default_rng(0)
    places = 9.0 * np.array(np.unravel_index(np.arange(400), (20, 20))).T
    points = places[rng.integers(400, size=4000)] + rng.normal(size=(4000, 2))
    problem = problem_of(points, np.full(len(points), 3.0))
    problem.row_weight = 3.0
    tree = Tree(problem.subset(1000), "round")
    assert tree.n_clusters(500, problem.subset(1000, skipped=1000)) >= 400


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("n_rows", [4, 5, 6])
def test_whether_the_likelihood_of_student_clusters_is_bounded(n_rows, own):
    """It has no bound if each cluster can be one row, with the others as its tail."""
    d, dof, k = 20, 5.0, 3  # bounded from 1 + 20 / 5 rows on
    points = RNG.normal(size=(k * n_rows, d))
    labels = np.arange(k).repeat(n_rows)
    problem = problem_of(points)
    cut = problem.cut(problem.single("round"), labels)
    clusters = replace(cut, centers=problem.points[::n_rows], own=own, dof=dof)

    def log_likelihood(variance):
        narrow = replace(clusters, scales=np.full(k, variance))
        densities = narrow.log_densities(problem.points)
        return densities[np.arange(len(points)), labels].sum()

    grows = log_likelihood(1e-40) > log_likelihood(1e-20) + 1e-6
    assert clusters.likelihood_is_bounded == (not grows)
    assert grows == (n_rows < 5)


def test_a_previous_mixture_of_a_kind_that_is_not_promising_is_no_start():
    """Unless a search is of one kind, which may be that of another number."""
    problem = problem_of(POINTS)
    normal, own = ("round", False, math.inf), ("round", True, math.inf)
    found = find_mixture(problem, ("round",), (*normal, False, False)).mixture
    for all_kinds in (False, True):
        search = Search(problem, Tree(problem, "round"), 2)
        search.keep(problem.fit(found, *normal, 5))
        search.previous = problem.fit(found, *own, 5)
        search.begin_with_previous(all_kinds)
        kinds = {one.kind for one in search.mixtures}
        assert kinds == ({normal} if all_kinds else {normal, own})
