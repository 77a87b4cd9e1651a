"""Rows of no cluster: a uniform background, and false alarms at the stated rate.

A rate is checked on 20,000 rows that were not fitted. The number of clusters, and with
it the fitted noise, come from 1,000 rows: scales are off by up to 4 %, which changes a
rate of .01 by a quarter.
"""

import functools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from designs import every_two
from scipy.special import chdtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_background import (
    chance_groups,
    fit_with_background,
    log_volume,
)
from skpacbayes.cluster._paco_fitting import MixtureProblem

PLACES = np.array([[0.0, 0.0], [14.0, 0.0], [0.0, 14.0]])


def student(rng, n_rows):
    """Rows of a Student distribution with five degrees of freedom."""
    return rng.normal(size=(n_rows, 2)) / np.sqrt(rng.chisquare(5, (n_rows, 1)) / 5)


NOISES = {
    "normal": lambda rng, n: rng.normal(size=(n, 2)),
    "student": student,
    "skewed": lambda rng, n: rng.exponential(size=(n, 2)),
}


def clusters(noise, n_rows, rng):
    """Three clusters far apart."""
    return PLACES[rng.integers(3, size=n_rows)] + NOISES[noise](rng, n_rows)


def far_noise(share, rng):
    """Uniform rows that are far from all clusters."""
    rows = rng.uniform(-8, 22, size=(int(1000 * share), 2))
    gaps = np.linalg.norm(rows[:, None] - PLACES, axis=2).min(axis=1)
    return rows[gaps > 6]


def learnt(X, stream, rng):
    """Fit rows, or read them as a stream."""
    if not stream:
        return PACOClusterer(n_iter=20, random_state=0).fit(X)
    model = PACOClusterer(n_iter=20, refresh=250, random_state=0)
    return model.partial_fit(rng.permutation(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("share", "stream", "place"),
    every_two([0.0, 0.01, 0.05, 0.1], [False, True], [(1.0, 0.0), (1e-3, 1e4)]),
)
def test_rows_of_no_cluster_are_told_from_those_of_clusters(share, stream, place):
    unit, origin = place
    rng = np.random.default_rng([1, int(100 * share)])
    X, noise = clusters("normal", 1000, rng), far_noise(share, rng)
    model = learnt(origin + unit * np.vstack([X, noise]), stream, rng)
    assert model.n_clusters_ == 3
    of_noise = len(noise) / (1000 + len(noise))
    assert abs(model.background_share_ - of_noise) < 0.015
    others = origin + unit * clusters("normal", 20_000, rng)
    for rate in (0.01, 0.001):
        false = (model.predict(others, false_alarm_rate=rate) == -1).mean()
        assert 0.3 * rate < false < 2 * rate
    if share:
        found = model.predict(origin + unit * noise, false_alarm_rate=0.001)
        assert (found == -1).mean() > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("noise", "most"), [("student", 2.0), ("skewed", 3.5)])
def test_tails_of_clusters_are_no_background(noise, most, stream):
    """Noise that is exponential is symmetric in the model: its rate is approximate."""
    rng = np.random.default_rng(2)
    model = learnt(clusters(noise, 1000, rng), stream, rng)
    assert model.n_clusters_ == 3
    assert model.background_share_ < 0.01
    others = clusters(noise, 20_000, rng)
    for rate in (0.01, 0.001):
        false = (model.predict(others, false_alarm_rate=rate) == -1).mean()
        assert false < most * rate


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("n_rows", "share"), [(30, 0.043), (100, 0.015)])
def test_few_rows_give_more_false_alarms_at_new_rows(n_rows, share):
    """The guide's shares at a rate of .01, within four standard errors of 20 fits.

    The share of a fit to 30 rows has a standard deviation of about .033, and of one to
    100 rows of .006, on the 40 tables that the guide's numbers come from.
    """
    found = []
    for seed in range(200, 220):
        rng = np.random.default_rng(seed)
        model = PACOClusterer(random_state=0).fit(clusters("normal", n_rows, rng))
        others = clusters("normal", 2000, rng)
        found.append((model.predict(others, false_alarm_rate=0.01) == -1).mean())
    error = {30: 0.033, 100: 0.006}[n_rows] / math.sqrt(20)
    assert abs(np.mean(found) - share) < 4 * error


def test_the_density_of_rows_and_background_is_one():
    """By quadrature, over the box of the rows, in which all clusters lie."""
    rng = np.random.default_rng(3)
    noise = far_noise(0.1, rng)
    X = 5.0 + 2.0 * np.vstack([clusters("normal", 1000, rng), noise])
    model = PACOClusterer(random_state=0).fit(X)
    assert model.background_share_ > 0.05
    low, high = X.min(axis=0), X.max(axis=0)
    sides = [np.linspace(*ends, 600) for ends in zip(low, high, strict=True)]
    places = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    mean = np.exp(model.score_samples(places)).mean()
    assert mean * np.prod(high - low) == pytest.approx(1.0, abs=5e-3)


@pytest.mark.parametrize("seed", range(3))
def test_noise_beside_clusters_is_no_group_that_overlaps(seed):
    """The density of clusters and background is compared with that of more clusters."""
    rng = np.random.default_rng(30 + seed)
    X = np.vstack([clusters("normal", 600, rng), far_noise(0.1, rng)])
    model = PACOClusterer(random_state=0).fit(X)
    assert model.background_share_ > 0.05


@pytest.mark.parametrize("dof", [math.inf, 5.0])
def test_em_is_likelier_with_each_iteration(dof):
    rng = np.random.default_rng(4)
    X = np.vstack([clusters("normal", 300, rng), far_noise(0.1, rng)])
    X -= X.mean(axis=0)
    zeros = np.zeros(len(X))
    problem = MixtureProblem(X, np.ones(len(X)), zeros, np.zeros((2, 2)))
    mixture = problem.fit(three(problem), "round", False, dof, 20)
    before = -math.inf
    for _ in range(3):
        mixture = fit_with_background(problem, mixture, "round", False, dof)
        assert mixture.log_likelihoods[0] >= before - 1e-9
        before = mixture.log_likelihoods[0]
    assert mixture.masses.sum() + mixture.background * len(X) == pytest.approx(
        len(X), rel=1e-3
    )


def three(problem):
    """Three components, as a start."""
    start = problem.single("round")
    places = PLACES - PLACES.mean(axis=0)
    masses = np.full(3, problem.n_rows / 3)
    return type(start)(
        "round", False, math.inf, np.eye(2), places, np.ones(3), masses / masses.sum(),
        masses,
    )  # fmt: skip


def test_the_region_changes_with_the_coordinates():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    matrix = rng.normal(size=(3, 3))
    volumes = []
    for rows in (X, X @ matrix):
        none = np.zeros(len(rows)), np.zeros((3, 3))
        problem = MixtureProblem(rows - rows.mean(axis=0), np.ones(len(rows)), *none)
        volumes.append(log_volume(problem, "tied"))
    expected = math.log(abs(np.linalg.det(matrix)))
    assert volumes[1] - volumes[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("shape", ["round", "diagonal", "tied"])
def test_the_region_is_that_of_all_rows_where_a_part_is_searched(shape):
    """A feature that one row alone has is constant in most parts of the rows."""
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.normal(size=(400, 2)), np.arange(400) == 7])
    X -= X.mean(axis=0)
    problem = MixtureProblem(X, np.ones(400), np.zeros(400), np.zeros((3, 3)))
    part = problem.subset(40)
    assert np.ptp(part.points[:, 2]) == 0
    for smaller in (part, part.subset(20)):
        assert log_volume(smaller, shape) == log_volume(problem, shape)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rare", [0, 1, 3])
def test_a_feature_that_is_rarely_not_zero_hides_no_background(rare):
    rng = np.random.default_rng([7, rare])
    X = np.vstack([clusters("normal", 2850, rng), rng.uniform(-8, 22, (150, 2))])
    feature = np.zeros(len(X))
    feature[rng.choice(len(X), rare, replace=False)] = 1.0
    model = PACOClusterer(n_iter=20, random_state=0)
    model.fit(rng.permutation(np.column_stack([X, feature])))
    assert 0.03 < model.background_share_ < 0.07


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(4))
def test_groups_of_three_rows_are_no_background(seed):
    """There are more groups than are looked for in so few rows."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.uniform(0, 80, size=(10, 5)), 3, axis=0)
    X += rng.normal(size=X.shape)
    assert PACOClusterer(n_iter=20, random_state=0).fit(X).background_share_ == 0


@functools.cache
def numbers_near(n_stray, radius):
    """Numbers of rows near each row, itself included, a row for each background."""
    rng = np.random.default_rng(n_stray)
    numbers = []
    for _ in range(4000 if n_stray == 20 else 400):
        rows = rng.uniform(size=(n_stray, 2))
        gaps = np.abs(rows[:, None] - rows)
        near = (np.minimum(gaps, 1.0 - gaps) ** 2).sum(axis=2) <= radius**2
        numbers.append(near.sum(axis=1))
    return np.array(numbers)


@pytest.mark.parametrize("n_stray", [20, 200])
@pytest.mark.parametrize("n_own", [2, 3, 5])
def test_chance_groups_are_counted(n_own, n_stray):
    """The expected number of rows with so many near them, against a simulation.

    On a torus, so that no row is near an edge. The mean of the numbers in 4,000
    backgrounds, or 400 of more rows, is within five standard errors, and the Poisson
    process is off by a share of 1 / n_stray for each neighbour.
    """
    radius = 0.1
    numbers = (numbers_near(n_stray, radius) >= n_own).sum(axis=1)
    scales = np.array([radius**2 / chdtri(2, 0.01)])
    sizes = np.array([float(n_own)]), np.array([float(n_stray)])
    expected = chance_groups(*sizes, scales, math.inf, 0.0, 2)[0]
    error = 5.0 * np.std(numbers) / math.sqrt(len(numbers))
    error += expected * (n_own + 1) / n_stray
    assert abs(np.mean(numbers) - expected) < error


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("n_features", "times", "unit", "origin"),  # of many rows, a part is searched
    [
        (1, 1, 1.0, 0.0),
        (2, 1, 1.0, 0.0),
        (3, 1, 1.0, 0.0),
        (3, 1, 1e-3, 1e4),
        (6, 1, 1e3, 0.0),
        (1, 10, 1e-3, 1e4),
        (2, 10, 1.0, 0.0),
        (3, 10, 1e3, 0.0),
    ],
)
def test_far_rows_are_no_clusters(n_features, times, unit, origin):
    """Outliers are background, also two that are near each other by chance."""
    rng = np.random.default_rng([2, n_features, times])
    labels = rng.integers(4, size=400 * times)
    places = np.zeros((4, n_features))
    places[:, 0] = 9.0 * np.arange(4)
    X = places[labels] + rng.normal(size=(400 * times, n_features))
    far = rng.uniform(-200.0, 200.0, size=(12 * times, n_features))
    if n_features < 3:  # in more, chance does not bring two so near each other
        far[0] = far[1] + 1.0
    Z = origin + unit * np.vstack([X, far])
    model = PACOClusterer(random_state=0).fit(Z)
    assert model.n_clusters_ == 4
    assert abs(model.background_share_ - 12 / 412) < 0.01
    if unit == 1.0 and times == 1:
        stream = PACOClusterer(n_iter=20, refresh=100, random_state=0)
        assert stream.partial_fit(rng.permutation(Z)).n_clusters_ == 4


FAR = {
    "normal": lambda rng, n, d: 100.0 * rng.normal(size=(n, d)),
    "uniform": lambda rng, n, d: rng.uniform(-200.0, 200.0, size=(n, d)),
    "student": lambda rng, n, d: (
        30.0 * rng.standard_t(3, size=(n, 1)) * rng.normal(size=(n, d))
    ),
}


@pytest.mark.parametrize(
    ("far", "n_features", "n_rows", "n_far", "unit", "origin"),
    [
        ("normal", 3, 4000, 120, 1e3, 1e4),
        ("student", 1, 4000, 400, 1.0, 0.0),
        *((far, 2, 400, 40, 1e-3, 1e4) for far in FAR),
        *((far, 3, 400, 40, 1.0, 0.0) for far in FAR),
        ("uniform", 6, 400, 40, 1.0, 0.0),
    ],
)
def test_many_far_rows_are_background_or_one_cluster_that_is_named(
    far, n_features, n_rows, n_far, unit, origin
):
    """Wide noise that is not uniform is as likely a cluster, one and no more."""
    rng = np.random.default_rng([8, n_features, n_rows, n_far])
    places = np.zeros((4, n_features))
    places[:, 0] = 9.0 * np.arange(4)
    near = places[rng.integers(4, size=n_rows)] + rng.normal(size=(n_rows, n_features))
    X = origin + unit * np.vstack([near, FAR[far](rng, n_far, n_features)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PACOClusterer(n_iter=20, random_state=0).fit(rng.permutation(X))
    messages = " ".join(str(each.message) for each in caught)
    assert model.n_clusters_ in ((4,) if far == "uniform" else (4, 5))
    if model.n_clusters_ == 4:  # some Student rows are near
        assert abs(model.background_share_ - n_far / len(X)) < 0.025
    else:
        assert "5, but the cluster of scale" in messages
        assert "covers all others" in messages


@pytest.mark.parametrize("stream", [False, True])
def test_a_wide_cluster_of_few_rows_is_named(stream):
    rng = np.random.default_rng(9)
    X = np.vstack([clusters("normal", 950, rng), 4 + 60 * rng.normal(size=(50, 2))])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = learnt(X, stream, rng)
    messages = " ".join(str(each.message) for each in caught)
    assert model.n_clusters_ == 3 or "covers all others" in messages


@pytest.mark.filterwarnings("ignore:.*no gap:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(2))
def test_a_wide_cluster_of_many_rows_is_a_cluster(seed):
    """Around a tight one, with 30 % of the rows."""
    rng = np.random.default_rng([10, seed])
    wide = rng.uniform(size=800) < 0.3
    X = np.where(wide, 6.0, 1.0)[:, None] * rng.normal(size=(800, 3))
    model = PACOClusterer(n_iter=20, random_state=0).fit(X)  # "covers" is an error
    assert model.n_clusters_ == 2
    assert model.background_share_ == 0


def test_a_background_of_many_rows_is_named():
    """A shell about a cluster."""
    rng = np.random.default_rng(11)
    shell = rng.normal(size=(400, 3))
    shell *= 45.0 / np.linalg.norm(shell, axis=1, keepdims=True)
    X = np.vstack([3.0 * rng.normal(size=(400, 3)), shell])
    with pytest.warns(ConvergenceWarning, match="belong to no cluster"):
        PACOClusterer(n_iter=20, random_state=0).fit(X)


def test_which_clusters_cover_all_others():
    """Moved, and in other units; the second is too far, then too wide."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(30, 2))
    zeros = np.zeros(30), np.zeros((2, 2))
    mixture = three(MixtureProblem(X - X.mean(axis=0), np.ones(30), *zeros))
    for unit, origin in ((1.0, 0.0), (1e3, 1e4)):
        for places, scales, expected in (
            ([[0, 0], [1, 0], [0, 2]], [9, 1, 1], [True, False, False]),
            ([[0, 0], [9, 0], [0, 2]], [9, 1, 1], [False] * 3),
            ([[0, 0], [1, 0], [0, 2]], [9, 4, 1], [False] * 3),
            ([[0, 0]], [9], [False]),
        ):
            centers = origin + unit * np.array(places, dtype=float)
            spread = unit**2 * np.array(scales, dtype=float)
            found = replace(mixture, centers=centers, scales=spread).covering
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("n_rows", "n_features"), [(300, 5), (600, 5), (600, 8)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_flat_clusters_are_not_background(k, n_rows, n_features):
    """Uniform noise in a cube is flatter than a normal one, as the background is."""
    rng = np.random.default_rng([k, n_rows, n_features])
    y = rng.integers(k, size=n_rows)
    X = rng.uniform(-1, 1, size=(n_rows, n_features))
    X[:, 0] += 6.0 * y
    model = PACOClusterer(random_state=0, n_iter=20).fit(X)
    assert model.n_clusters_ == k
    assert model.background_share_ == 0


@pytest.mark.parametrize(("n_sides", "gap"), [(5, 5.0), (5, 5.66), (8, 5.0)])
def test_many_clusters_are_no_background(n_sides, gap):
    """One cluster and a background of most rows have nearly the evidence of a grid."""
    corners = gap * np.indices((n_sides, n_sides)).reshape(2, -1).T
    rng = np.random.default_rng(n_sides)
    labels = rng.integers(n_sides**2, size=25 * n_sides**2)
    X = corners[labels] + rng.normal(size=(len(labels), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another number of clusters
        model = PACOClusterer(random_state=0).fit(X)
    assert model.background_share_ == 0
    assert adjusted_rand_score(labels, model.labels_) > 0.9
