"""NumPy twins of the kernels of the summary of a stream, and of cells with scales."""

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from twins import twin_of

from skpacbayes._kernels import paco_cells as cells
from skpacbayes._kernels import paco_points as point_kernels
from skpacbayes._kernels import paco_summary as summary

both_losses = pytest.mark.parametrize("manhattan", [False, True])
NONE = np.empty(0)
NO_CENTERS = np.empty((0, 2))
NO_STRANGERS = NO_CENTERS, NONE


def losses_at(points, centers, manhattan):
    return cdist(points, centers, "cityblock" if manhattan else "sqeuclidean")


def points_of(X, weights, seed=0):
    """Rows of a table: X, weights, no scatter yet, and other sums of some kind."""
    n_others = point_kernels.N_SUMS - 2
    sums = np.random.default_rng(seed).uniform(size=(len(X), n_others))
    return np.column_stack([X, weights, np.zeros(len(X)), sums])


class Table:
    """A table of the summary that `rows` fill, and what goes with it."""

    def __init__(self, rows, n_features, manhattan=False, coordinates=None):
        self.n_features, self.manhattan = n_features, manhattan
        self.columns = np.zeros((n_features + point_kernels.N_SUMS, len(rows) + 1))
        self.columns[:, :-1] = rows.T
        self.scatter = np.zeros((n_features, n_features))
        self.pairs = empty_pairs(len(rows))
        self.metric = None
        if coordinates is not None:
            anchor = rows[0, :n_features].copy()
            places = np.zeros((n_features, len(rows) + 1))
            places[:, :-1] = coordinates.T @ (rows[:, :n_features] - anchor).T
            self.metric = places, coordinates, anchor, np.empty(n_features)

    @property
    def points(self):
        return self.columns[:, :-1].T

    def insert(self, kernel, incoming):
        clock = new_clock()
        clock[point_kernels.POINTS] = self.columns.shape[1] - 1  # the table is full
        kernel(
            incoming,
            len(incoming),
            self.columns,
            self.scatter,
            self.metric,
            self.manhattan or None,
            self.pairs,
            clock,
        )


def empty_pairs(n_points):
    room = n_points + 1
    return np.zeros(room), np.full(room, -1.0), np.zeros(room, dtype=np.int64)


def new_clock(refresh=math.inf):
    clock = np.zeros(point_kernels.N_ENTRIES)
    clock[[point_kernels.DUE, point_kernels.UNIT, point_kernels.KEPT]] = (
        refresh,
        1.0,
        1.0,
    )
    clock[point_kernels.INTERVAL] = 4.0
    return clock


def moments(rows, n_features):
    """Weight, mean, and scatter about it of all rows behind points; the sums."""
    X, weights = rows[:, :n_features], rows[:, n_features]
    mean = np.average(X, axis=0, weights=weights)
    scatter = weights @ np.sum((X - mean) ** 2, axis=1) + rows[:, n_features + 1].sum()
    return [weights.sum(), *mean, scatter, *rows[:, n_features + 2 :].sum(axis=0)]


def merged(rows, n_features):
    """One point for several."""
    found = moments(rows, n_features)
    return np.array([*found[1 : n_features + 1], found[0], *found[n_features + 1 :]])


def merger_loss(rows, n_features, manhattan):
    """What the rows at the points lose when their mean stands for them."""
    mean = np.average(rows[:, :n_features], axis=0, weights=rows[:, n_features])
    losses = losses_at(rows[:, :n_features], mean[None], manhattan)[:, 0]
    return rows[:, n_features] @ losses


@both_losses
@pytest.mark.parametrize("seed", range(5))
@twin_of(point_kernels.place)
def test_insert_makes_the_cheapest_merger(kernel, seed, manhattan):
    """A full table and a newcomer: of all pairs, that of the least loss is merged."""
    rng = np.random.default_rng(seed)
    rows = points_of(rng.normal(size=(7, 9)), rng.uniform(0.5, 3.0, 7), seed)
    table = Table(rows[:6], 9, manhattan)
    table.insert(kernel, rows[6:])
    pairs = [(i, j) for i in range(7) for j in range(i)]
    costs = [merger_loss(rows[list(pair)], 9, manhattan) for pair in pairs]
    pair = list(pairs[np.argmin(costs)])
    expected = np.vstack([np.delete(rows, pair, axis=0), merged(rows[pair], 9)])
    assert_same_points(table.points, expected)
    assert_allclose(table.scatter, scatter_of(rows[pair], 9), atol=1e-12)


@twin_of(point_kernels.place)
def test_insert_merges_along_the_long_axis(kernel):
    """In the coordinates of the metric; the scatter is that of the rows' own."""
    rng = np.random.default_rng(1)
    rows = points_of(rng.normal(size=(12, 2)), rng.uniform(0.5, 3.0, 12))
    coordinates = np.array([[0.1, 0.0], [0.05, 10.0]])
    table = Table(rows[:11], 2, coordinates=coordinates)
    table.insert(kernel, rows[11:])
    changed = np.column_stack([rows[:, :2] @ coordinates, rows[:, 2:]])
    pairs = [[i, j] for i in range(12) for j in range(i)]
    pair = min(pairs, key=lambda pair: merger_loss(changed[pair], 2, False))
    assert pair != min(pairs, key=lambda pair: merger_loss(rows[pair], 2, False))
    expected = np.vstack([np.delete(rows, pair, axis=0), merged(rows[pair], 2)])
    assert_same_points(table.points, expected)
    assert_allclose(table.scatter, scatter_of(rows[pair], 2), rtol=1e-12)
    places, _, anchor, _ = table.metric
    moved = (table.points[:, :2] - anchor) @ coordinates
    assert_allclose(places[:, :-1].T, moved, atol=1e-12)


@twin_of(point_kernels.in_metric)
def test_in_metric(kernel):
    rng = np.random.default_rng(0)
    row, anchor, matrix = (
        rng.normal(size=3),
        rng.normal(size=3),
        rng.normal(size=(3, 3)),
    )
    found = np.empty(3)
    kernel(row, 3, (np.empty((3, 1)), matrix, anchor, found))
    assert_allclose(found, (row - anchor) @ matrix, rtol=1e-12)


def assert_same_points(points, expected):
    by_first = [rows[np.argsort(rows[:, 0])] for rows in (points, expected)]
    assert_allclose(*by_first, rtol=1e-12, atol=1e-12)


def scatter_of(rows, n_features):
    """Sum of outer products of rows about their mean."""
    X, weights = rows[:, :n_features], rows[:, n_features]
    gaps = X - np.average(X, axis=0, weights=weights)
    return (gaps * weights[:, None]).T @ gaps


@twin_of(point_kernels.rescale)
def test_rescale_is_a_power_of_two_and_drops_what_is_forgotten(kernel):
    rng = np.random.default_rng(0)
    rows = points_of(rng.normal(size=(9, 3)), rng.uniform(0.5, 3.0, 9))
    rows[[2, 8, 5], 3] = 1e-9
    rows[:, 4] = rng.uniform(size=9)
    table = Table(rows, 3)
    table.scatter[:] = np.diag([1.0, 2.0, 3.0])
    clock = new_clock()
    clock[point_kernels.POINTS], clock[point_kernels.UNIT] = 9, 5.0
    clock[[point_kernels.STEPS, point_kernels.N_STEPS]] = 7.0, 3.0
    kernel(table.columns, table.scatter, None, table.pairs[1], clock)
    assert clock[point_kernels.POINTS] == 6
    assert clock[point_kernels.UNIT] == 1.25
    assert_array_equal(
        clock[[point_kernels.STEPS, point_kernels.N_STEPS]], [1.75, 0.75]
    )
    kept = np.delete(rows, [2, 5, 8], axis=0)
    share = kept[:, 4].sum() / rows[:, 4].sum() / 4
    kept[:, 3:] /= 4
    assert_same_points(table.columns[:, :6].T, kept)
    assert_allclose(table.scatter, share * np.diag([1.0, 2.0, 3.0]), rtol=1e-12)


@both_losses
@twin_of(point_kernels.place)
def test_insert_merges_equal_points(kernel, manhattan):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 2))
    rows = points_of(X[np.arange(20) % 4], rng.uniform(0.5, 3.0, 20))
    table = Table(rows[:4], 2, manhattan)
    table.insert(kernel, rows[4:])
    assert_array_equal(table.points[:, :2], X)
    assert_array_equal(table.points[:, 3], 0.0)
    expected = [merged(rows[k::4], 2)[[2, *range(4, 17)]] for k in range(4)]
    assert_allclose(table.points[:, [2, *range(4, 17)]], expected, rtol=1e-12)


@both_losses
@twin_of(point_kernels.place)
def test_insert_loses_nothing(kernel, manhattan):
    """One by one or all at once is the same."""
    rng = np.random.default_rng(0)
    rows = points_of(rng.normal(size=(80, 3)), rng.uniform(0.5, 3.0, 80))
    table, again = Table(rows[:10], 3, manhattan), Table(rows[:10], 3, manhattan)
    table.insert(kernel, rows[10:])
    assert_allclose(moments(table.points, 3), moments(rows, 3), rtol=1e-12, atol=1e-12)
    between = scatter_of(table.points, 3)
    assert_allclose(between + table.scatter, scatter_of(rows, 3), atol=1e-10)
    assert np.trace(table.scatter) == pytest.approx(table.points[:, 4].sum())
    for i in range(10, 80):
        again.insert(point_kernels.place, rows[i : i + 1])
    assert_array_equal(table.points, again.points)


class Stream:
    """The incoming points, the clock and the last row of a stream in the plane."""

    def __init__(self, manhattan=False, refresh=math.inf):
        self.manhattan = manhattan
        self.points = np.empty((0, 17))
        self.clock = new_clock(refresh)
        self.notes = point_kernels.new_notes(2)
        self.previous = np.array([0.0, 0.0, -1.0])

    def meet(
        self,
        kernel,
        X,
        weights=NONE,
        begin=0,
        inverse_unit=1.0,
        forecast=NO_CENTERS,
        centers=NO_CENTERS,
        room=100,
        strangers=NO_STRANGERS,
    ):
        incoming = np.empty((room, 17))
        stop, n_incoming = kernel(
            X,
            weights,
            begin,
            (inverse_unit, 1e6),
            self.manhattan or None,
            (0.5 * 0.3, 0.3, np.concatenate([forecast, centers]), len(forecast)),
            None,
            None,
            strangers,
            incoming,
            self.notes,
            self.previous,
            self.clock,
        )
        self.points = np.vstack([self.points, incoming[:n_incoming]])
        return stop


def assert_same(one, other):
    assert_array_equal(one.points, other.points)
    assert_array_equal(one.clock, other.clock)
    assert_array_equal(one.previous, other.previous)


@both_losses
@twin_of(summary.meet)
def test_meet(kernel, manhattan):
    """Each row is a point that carries what it met."""
    rng = np.random.default_rng(0)
    X = 4.0 * rng.normal(size=(25, 2))
    forecast, centers = rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
    stream = Stream(manhattan)
    stop = stream.meet(kernel, X, inverse_unit=0.25, forecast=forecast, centers=centers)
    assert stop == 25
    Z = X / 4.0
    losses = losses_at(Z, forecast, manhattan).min(axis=1)
    labels = losses_at(Z, centers, manhattan).argmin(axis=1)
    steps = np.diff(Z, axis=0)
    lengths = np.abs(steps) if manhattan else steps**2
    together = np.concatenate([[False], labels[1:] == labels[:-1]])
    lengths = np.concatenate([[0.0], lengths.sum(axis=1)])
    ones = np.ones(25)
    expected = np.column_stack(
        [
            Z,
            ones,
            0 * ones,
            0.15 * ones,
            0.15 * losses,
            0.15 * losses**2,
            lengths * together,
            together,
            np.eye(8)[np.arange(25) // 4],
        ]
    )
    assert_allclose(stream.points, expected, rtol=1e-12, atol=1e-14)
    largest = np.max(np.sum(Z**2, axis=1))
    expected = [25, math.inf, losses.sum(), largest, 7.5, 0, np.sum(steps**2), 24]
    assert_allclose(stream.clock[:8], expected, rtol=1e-12)
    runs = [point_kernels.RUN_SQUARES, point_kernels.RUN]
    assert_array_equal(stream.clock[runs], [25, 1])  # no row repeats
    stream.clock[runs] = 0.0
    assert_array_equal(stream.clock[8:], new_clock()[8:])
    assert_array_equal(stream.previous, [*Z[-1], labels[-1]])


@twin_of(summary.meet)
def test_meet_reads_weights_as_copies(kernel):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(20, 2)), rng.integers(0, 4, 20)
    weighted, copied, parts = Stream(), Stream(), Stream()
    assert weighted.meet(kernel, X, weights.astype(float), centers=X[:2]) == 20
    copied.meet(kernel, np.repeat(X, weights, axis=0), centers=X[:2])
    assert_same(weighted, copied)
    for rows in (slice(0, 7), slice(7, 8), slice(8, 20)):
        parts.meet(kernel, X[rows], weights[rows].astype(float), centers=X[:2])
    assert_same(weighted, parts)
    fractional, split = Stream(), Stream()
    fractional.meet(kernel, X, np.full(20, 2.5))
    split.meet(kernel, np.repeat(X, 3, axis=0), np.tile([1.0, 1.0, 0.5], 20))
    assert_same(fractional, split)


@twin_of(summary.meet)
def test_meet_forgets(kernel):
    """In units of the weight of the last row, row i weighs kept^(rows after it)."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    stream, plain = Stream(), Stream()
    stream.clock[point_kernels.KEPT] = 0.9
    stream.meet(kernel, X)
    plain.meet(kernel, X)
    ages = np.arange(20)[::-1]
    unit = stream.clock[point_kernels.UNIT]
    forgotten = plain.points * 0.9 ** ages[:, None]
    assert_allclose(stream.points[:, 2:] / unit, forgotten[:, 2:], rtol=1e-12)
    steps = (np.diff(X, axis=0) ** 2).sum(axis=1) @ 0.9 ** ages[1:]
    assert stream.clock[point_kernels.STEPS] / unit == pytest.approx(steps)
    assert stream.clock[point_kernels.SEEN] == 20
    stream.clock[point_kernels.KEPT] = 1e-3
    assert stream.meet(kernel, X) == 4  # weights have to be rescaled


class Forecast:
    """What `watch` does for one rate: a mixture of Student densities."""

    def __init__(self, rate, means, masses):
        self.rate, self.means, self.masses, self.score = rate, means, masses, 0.0

    def meet(self, row, weight, counted, variances, before, stay, far, steps):
        self.masses = self.masses * (1 - self.rate) ** weight
        shares = (self.masses + 0.5) / (self.masses + 0.5).sum()
        if before >= 0:
            shares = (1 - stay) * shares + stay * (np.arange(3) == before)
        ratios = ((row - self.means) ** 2).sum(axis=1) / variances
        if steps.alike > 0:
            expected = self.means + steps.alike * (steps.rows - self.means)
            expected[steps.known == 0] = self.means[steps.known == 0]
            variances = variances * (1 - steps.alike**2 * (steps.known > 0))
            ratios = ((row - expected) ** 2).sum(axis=1) / variances
        heights = np.log(shares) - np.log(variances) - 3.5 * np.log1p(ratios / 5)
        self.score = 0.99**counted * self.score + counted * logsumexp(heights)
        j = np.argmax(heights)
        if not (stay and far):
            self.masses[j] += weight
            self.means[j] += weight / self.masses[j] * (row - self.means[j])


class Order:
    """What `watch` counts of runs of rows of one cluster."""

    def __init__(self, stay):
        self.before, self.evidence, self.stay = -1, 3.0 if stay else 0.0, stay
        self.pairs, self.changes = 0.0, 0.0
        self.recent, self.runs, self.spans, self.last = np.zeros((4, 3))

    def meet(self, cluster, at, counted):
        kept, gap, entered = 0.999, at - self.last[cluster], 0.0
        if self.before >= 0:
            share = self.recent[self.before] / self.recent.sum()
            entered = float(cluster != self.before)
            ratio = 0.5 + 0.5 * (1 - entered) / share
            self.evidence += counted * np.log(ratio)
            self.evidence = min(max(self.evidence, 0.0), 30.0)
            self.pairs = kept**counted * self.pairs + counted
            self.changes = kept**counted * self.changes + counted * entered
        began = self.stay == 0 and self.evidence > 14
        if self.evidence == 0:
            self.stay = 0.0
        elif self.stay:
            self.stay = 1 - (self.changes + 1) / (self.pairs + 2)
        elif began:
            self.pairs, self.changes, self.stay, self.runs = 0.0, 0.0, 0.5, np.zeros(3)
        self.recent *= (1 - 1 / 30) ** counted
        self.recent[cluster] += counted
        self.runs[cluster] = kept**gap * self.runs[cluster] + entered
        self.spans[cluster] = kept**gap * self.spans[cluster] + gap
        self.before = cluster
        return began


class Steps:
    """What `watch` counts of the steps between consecutive rows of a cluster."""

    def __init__(self, n_independent):
        self.n_independent = n_independent
        self.rows, self.steps, self.known = (
            np.zeros((3, 2)),
            np.zeros((3, 2)),
            np.zeros(3),
        )
        self.n, self.squares, self.products, self.alike = 0.0, 0.0, 0.0, 0.0

    def meet(self, row, cluster, counted, variances):
        step, kept = row - self.rows[cluster], (1 - 1 / 300) ** counted
        if self.known[cluster] == 2:
            unit = counted / variances[cluster]
            self.n = kept * self.n + counted
            self.squares = kept * self.squares + unit * (step @ step)
            product = unit * (step @ self.steps[cluster])
            self.products = kept * self.products + product
        self.rows[cluster], self.steps[cluster] = row, step
        self.known[cluster] = min(self.known[cluster] + 1, 2)
        before, self.alike = self.alike, 0.0
        if self.squares > 0:
            found = 1 + 2 * self.products / self.squares
            found = min(found, 1 - self.squares / (2 * 2 * self.n))
            errors = 2 if before else 4
            if found > errors * np.sqrt(2 / (self.n_independent * self.n)):
                self.alike = min(found, 0.95)
        return before == 0 and self.alike > 0

    @property
    def sums(self):
        return [self.alike, self.n, self.squares, self.products, self.n_independent]


@pytest.mark.parametrize("weight", [1.0, 0.5])
@pytest.mark.parametrize("order", ["random", "runs", "runs at first", "correlated"])
@twin_of(summary.watch)
def test_watch(kernel, order, weight):
    rng = np.random.default_rng(0)
    rows = 3.0 * rng.normal(size=(80, 2))
    if order == "correlated":
        for i in range(1, 80):
            rows[i] = 0.97 * rows[i - 1] + 0.08 * rows[i]
    if order == "runs":
        rows = np.repeat(rows[:8], 10, axis=0) + 0.1 * rng.normal(size=(80, 2))
    stay = 0.4 if order == "runs at first" else 0.0
    rates, variances = np.array([0.0, 0.02, 0.2]), np.array([1.0, 2.0, 0.5])
    means, masses = rng.normal(size=(3, 3, 2)), rng.uniform(1, 9, size=(3, 3))
    twins = [
        Forecast(*parts) for parts in zip(rates, means.copy(), masses, strict=True)
    ]
    last, patience, limit = np.zeros(3), np.full(3, 15.0), np.array([4.0])
    scores = np.zeros(3)
    runs, visits = Order(stay), np.zeros((4, 3))
    steps = Steps(n_independent=1.9)
    noted = np.array([-1, runs.evidence, 0, 0, stay, *steps.sums])
    latest = np.zeros((2, 3, 2))
    watched = (rates, means, masses.copy(), scores, variances, last, patience, limit)
    watched += (noted, visits, latest, np.empty(3))
    clock = new_clock()
    clock[point_kernels.EXPECTED] = 0.3
    n_far, late, chosen, stays, correlated = 0.0, None, set(), set(), set()
    for t, row in enumerate(rows):
        now = (t + 1) * weight
        counted = 0.0 if t % 7 == 3 else weight  # 0: a copy
        kernel(row, 2, weight, counted, watched, clock)
        ratios = ((row - twins[0].means) ** 2).sum(axis=1) / variances
        near = ratios.min() <= 4.0
        stay, began = runs.stay, False
        scored = 0.0 if stay and not near else counted  # a far row is of no cluster
        for twin in twins:
            order_known = runs.before, stay, not near, steps
            twin.meet(row, weight, scored, variances, *order_known)
        best, margin = twins[0], 3.0 * (1 + steps.alike) / (1 - steps.alike)
        for twin in twins[1:]:
            best = twin if twin.score > best.score + margin else best
        if near:
            cluster = np.argmin(ratios)
            assert last[cluster] == now
            began = runs.meet(cluster, now, counted) if counted else False
            if counted:
                began |= steps.meet(row, cluster, counted, variances)
            runs.last[cluster] = now
        else:
            runs.before = -1
        if began:
            best = twins[0]
            for twin in twins:
                twin.score = 0.0
        stays.add(runs.stay > 0)
        correlated.add(steps.alike > 0)
        found = [runs.before, runs.evidence, runs.pairs, runs.changes, runs.stay]
        assert_allclose(noted, found + steps.sums, rtol=1e-10, atol=1e-12)
        known = [runs.recent, runs.runs, runs.spans, steps.known]
        assert_allclose(visits, known, rtol=1e-10)
        assert_allclose(latest, [steps.rows, steps.steps])
        n_far += counted * (ratios.min() > 4.0)
        assert clock[point_kernels.FAR] == n_far
        chosen.add(best.rate)
        assert clock[point_kernels.KEPT] == 1 - best.rate
        if late is None and (n_far > 6.0 + 0.3 * now or (now - last > 15.0).any()):
            late = now + 1.0
        assert clock[point_kernels.DUE] == (late or math.inf)
        clock[point_kernels.SEEN] = now
    assert late
    assert len(chosen) > 1 or order != "random"
    assert (True in correlated) == (order == "correlated") or weight < 1.0
    assert (order in ("random", "correlated")) == (stays == {False}) or weight < 1.0
    for r, twin in enumerate(twins):
        assert_allclose(means[r], twin.means, rtol=1e-10)
        assert_allclose(watched[2][r], twin.masses, rtol=1e-10)
        assert scores[r] == pytest.approx(twin.score)


@twin_of(summary.meet)
def test_meet_stops_at_the_refresh_and_where_there_is_no_room(kernel):
    X = np.random.default_rng(0).normal(size=(10, 2))
    stream = Stream(refresh=4.0)
    assert stream.meet(kernel, X) == 4
    assert stream.clock[0] == len(stream.points) == 4
    stream.clock[point_kernels.DUE] = 9.0
    assert stream.meet(kernel, X, begin=4) == 9
    assert_array_equal(stream.points[:, :2], X[:9])
    cut, whole = Stream(refresh=4.0), Stream()
    weights = np.full(10, 2.5)
    assert cut.meet(kernel, X, weights) == 1  # 2.5 + 1 + 1 rows: half a row is due
    assert (cut.clock[0], cut.clock[point_kernels.REMAINING]) == (4.5, 0.5)
    cut.clock[point_kernels.DUE] = math.inf
    begin = 1
    while begin < 10:
        begin = cut.meet(kernel, X, weights, begin, room=4)
    whole.meet(kernel, X, weights)
    assert_array_equal(cut.points, whole.points)
    assert cut.clock[0] == 25.0


@pytest.mark.parametrize("bad", [2e6, -2e6, math.inf, math.nan])
@twin_of(summary.meet)
def test_meet_stops_before_a_row_beyond_the_limit(kernel, bad):
    X = np.random.default_rng(0).normal(size=(10, 2))
    X[6, 1] = bad
    stream, before = Stream(), Stream()
    assert stream.meet(kernel, X) == 6
    assert stream.clock[point_kernels.REMAINING] == 1.0  # it is still to be read
    stream.clock[point_kernels.REMAINING] = 0.0
    before.meet(kernel, X[:6])
    assert_same(stream, before)


def some_cells(manhattan, seed=0):
    """Weighted points with spreads about two places; a start of centres and all."""
    rng = np.random.default_rng(seed)
    points = np.vstack([rng.normal(size=(30, 2)), 3 + 2 * rng.normal(size=(30, 2))])
    weights = rng.integers(1, 4, 60).astype(float)
    spreads = rng.exponential(0.2, 60)
    start = np.array([[0.5, -0.5], [2.0, 3.0]]), np.array([1.5, 2.5]), np.full(2, 0.5)
    order = np.empty((0, 0), dtype=np.int64)
    if manhattan:
        order = np.ascontiguousarray(np.argsort(points, axis=0).T)
    return points, weights, spreads, order, start


def fitted(kernel, manhattan, max_iter, prior_size=2.0, tempering=1.0, spread=1.0):
    points, weights, spreads, order, start = some_cells(manhattan)
    centers, scales, shares = (part.copy() for part in start)
    logs = np.empty(60)
    objective = kernel(
        (points, np.ascontiguousarray(points.T), weights, spread * spreads, order),
        manhattan or None,
        (prior_size, tempering, 1e-9),
        max_iter,
        (centers, scales, shares),
        logs,
        (*np.full((2, 2, 60), np.nan), *np.full((2, 2), np.nan)),
    )
    return objective, centers, scales, shares, logs


def joint_logs(points, spreads, centers, scales, shares, manhattan):
    """Mean log density of cell and rows, for the rows spread about each point."""
    if manhattan:
        law = stats.laplace(centers, scales[:, None])
        density, slope = law.logpdf(points[:, None]), 1.0
    else:
        law = stats.norm(centers, np.sqrt(scales)[:, None])
        density, slope = law.logpdf(points[:, None]), 0.5
    return density.sum(axis=2) - slope * spreads[:, None] / scales + np.log(shares)


def em_step(problem, cell, manhattan, prior_size):
    points, weights, spreads, _, _ = problem
    joint = joint_logs(points, spreads, *cell, manhattan)
    parts = weights[:, None] * np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    mass = parts.sum(axis=0)
    centers = parts.T @ points / mass[:, None]
    if manhattan:
        for j, f in np.ndindex(2, 2):
            order = np.argsort(points[:, f])
            passed = np.cumsum(parts[order, j])
            centers[j, f] = points[order[np.argmax(passed >= mass[j] / 2)], f]
    losses = losses_at(points, centers, manhattan) + spreads[:, None]
    pull = prior_size * stats.hmean(cell[1])
    scales = ((parts * losses).sum(axis=0) / 2 + pull) / (mass + prior_size)
    return centers, scales, mass / mass.sum()


@both_losses
@pytest.mark.parametrize("max_iter", [0, 1, 3])
@twin_of(cells.fit_cells)
def test_fit_cells(kernel, max_iter, manhattan):
    problem = some_cells(manhattan)
    points, weights, spreads, _, cell = problem
    for _ in range(max_iter):
        cell = em_step(problem, cell, manhattan, 2.0)
    objective, *found, logs = fitted(kernel, manhattan, max_iter, tempering=0.7)
    for one, other in zip(found, cell, strict=True):
        assert_allclose(one, other, rtol=1e-9)
    expected = logsumexp(joint_logs(points, spreads, *cell, manhattan), axis=1)
    constant = 2 * (math.log(2) if manhattan else math.log(2 * math.pi) / 2)
    assert_allclose(logs - constant, expected, rtol=1e-9, atol=1e-9)
    _, scales, shares = cell
    ratio = stats.hmean(scales) / scales
    pull = np.sum(ratio - 1 - np.log(ratio)) * 2.0 * 2 * (1.0 if manhattan else 0.5)
    size = 0.5 * (2 + 2) * np.sum(np.log(20 + weights.sum() * shares))
    assert_allclose(objective, 0.7 * weights @ logs - size - pull, rtol=1e-9)


@pytest.mark.parametrize("max_iter", [1, 2, 4])
@twin_of(cells.fit_cells)
def test_fit_cells_is_a_spherical_gaussian_mixture(kernel, max_iter):
    """Without prior and spread, weights being copies."""
    points, weights, _, _, (centers, scales, shares) = some_cells(False)
    peer = GaussianMixture(
        2,
        covariance_type="spherical",
        means_init=centers,
        precisions_init=1 / scales,
        weights_init=shares,
        reg_covar=0.0,
        tol=0.0,
        max_iter=max_iter,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(np.repeat(points, weights.astype(int), axis=0))
    _, *found, logs = fitted(kernel, False, max_iter, prior_size=0.0, spread=0.0)
    assert_allclose(found[0], peer.means_, rtol=1e-9)
    assert_allclose(found[1], peer.covariances_, rtol=1e-9)
    assert_allclose(found[2], peer.weights_, rtol=1e-9)
    density = peer.score_samples(points)
    assert_allclose(logs - math.log(2 * math.pi), density, rtol=1e-9, atol=1e-9)


@both_losses
@twin_of(cells.fit_cells)
def test_fit_cells_climbs(kernel, manhattan):
    """Without prior the likelihood never falls, and the last step gains little."""
    _, weights, _, _, _ = some_cells(manhattan)
    path = [
        weights @ fitted(kernel, manhattan, max_iter, prior_size=0.0)[-1]
        for max_iter in (0, 1, 2, 4, 8, 200, 400)
    ]
    assert np.all(np.diff(path) >= -1e-9)
    assert path[1] > path[0] + 1.0
    assert path[-1] == path[-2]  # it has stopped by itself


@twin_of(point_kernels.note_values)
def test_note_values(kernel):
    """The first 100 distinct values, the rows that repeat them, and the least gap.

    Values that differ by rounding are one; a column of which fewer than half of 1,000
    rows repeat a value is not looked at any more; merged points have no values.
    """
    rng = np.random.default_rng(0)
    n_rows, most = 1300, point_kernels.MOST_VALUES
    columns = [
        rng.integers(2, size=n_rows),
        rng.permutation(np.repeat(np.arange(150), 9))[:n_rows],
        rng.normal(size=n_rows),
        rng.choice([0.3, 0.1 + 0.2, 7.0], size=n_rows),
    ]
    points = points_of(np.column_stack(columns), np.full(n_rows, 2.0))
    points[::10, [4, 4 + 1]] = 6.0, 1.0  # merged
    values, notes = point_kernels.new_notes(4)
    for part in np.array_split(points, 7):
        kernel(part, 0, len(part), values, notes, 2.0)
    whole = points[points[:, 5] == 0.0]
    for f in (0, 1, 3):
        first = []
        for value in whole[:, f]:
            if not np.isclose(value, first, rtol=1e-12).any() and len(first) < most:
                first.append(value)
        found = values[f, : int(notes[f, point_kernels.N_VALUES])]
        assert_allclose(np.unique(np.round(found, 9)), np.sort(first), rtol=1e-12)
        repeated = np.isclose(whole[:, [f]], np.array(first), rtol=1e-12).any(axis=1)
        assert notes[f, point_kernels.ROWS] == len(whole)
        assert abs(
            notes[f, point_kernels.REPEATED] - (repeated.sum() - len(first))
        ) <= len(found) - len(first)
        least, count, following = notes[f, point_kernels.ENDS :][:3]
        lowest = points[:, f].min()
        assert (least, count) == (lowest, (points[:, f] == lowest).sum())
        assert following == np.unique(points[points[:, f] > least, f])[0]
    assert notes[1, point_kernels.LEAST_GAP] == 1.0
    assert math.isinf(notes[0, point_kernels.LEAST_GAP])
    assert 1000 <= notes[2, point_kernels.ROWS] < len(whole)
    assert notes[2, point_kernels.LEAST_GAP] < 1e-3


@both_losses
@twin_of(summary.learn)
def test_learn_meets_and_places(kernel, manhattan):
    """As `meet` and `place` do, one after the other; nothing if a row is too large."""
    rows = np.random.default_rng(0).normal(size=(20, 2))
    forecast = np.array([[0.0, 0.0], [1.0, 1.0]])

    def state(n_points=8):
        table, scatter = np.zeros((17, n_points + 1)), np.zeros((2, 2))
        previous = np.array([0.0, 0.0, -1.0])
        clock = new_clock()
        clock[point_kernels.KEPT] = 0.01  # weights are rescaled on the way
        return (
            table,
            scatter,
            *empty_pairs(n_points),
            *point_kernels.new_notes(2),
            previous,
            clock,
        )

    def arguments(table, scatter, *others):
        *pairs, values, notes, previous, clock = others
        points = table, scatter, tuple(pairs)
        return points, (values, notes), previous, clock

    def fixed(limit=100.0):
        known = (0.3, 0.5, forecast, 1), None, None, NO_STRANGERS
        return (1.0, limit), manhattan or None, *known

    done = state()
    assert kernel(rows, NONE, *fixed(), np.empty((7, 17)), *arguments(*done))
    expected = state()
    (table, scatter, pairs), notes, previous, clock = arguments(*expected)
    begin, incoming = 0, np.empty((7, 17))
    while begin < 20:
        begin, n_incoming = summary.meet(
            rows, NONE, begin, *fixed(), incoming, notes, previous, clock
        )
        point_kernels.place(
            incoming, n_incoming, table, scatter, None, manhattan or None, pairs, clock
        )
        if clock[point_kernels.UNIT] > summary.LARGEST_UNIT:
            point_kernels.rescale(table, scatter, None, pairs[1], clock)
    for one, other in zip(done, expected, strict=True):
        assert_allclose(one, other, rtol=1e-12)
    before = [part.copy() for part in done]
    assert not kernel(
        rows, NONE, *fixed(limit=1.0), np.empty((7, 17)), *arguments(*done)
    )
    for one, other in zip(done, before, strict=True):
        assert_array_equal(one, other)


@both_losses
@twin_of(summary.meet)
def test_rows_outside_of_all_clusters_ask_for_a_refresh(kernel, manhattan):
    """It is due after the row that follows the one with which they are too many."""
    rng = np.random.default_rng(0)
    centers, limits = np.array([[0.0, 0.0], [9.0, 0.0]]), np.array([2.0, 3.0])
    X = centers[rng.integers(2, size=80)] + rng.normal(size=(80, 2))
    stream = Stream(manhattan)
    stream.clock[point_kernels.SEEN] = stream.clock[point_kernels.REFRESHED] = 50.0
    stream.clock[point_kernels.EXPECTED] = 0.02
    n_read = stream.meet(kernel, X, strangers=(centers, limits))
    far = (losses_at(X, centers, manhattan) >= limits).all(axis=1)
    expected = 0.02 * np.arange(1, 81)
    late = far & (np.cumsum(far) > 2 + expected + 3 * np.sqrt(expected))
    first = int(np.argmax(late))
    assert 8 < first < 60
    assert n_read == first + 2
    assert stream.clock[point_kernels.FAR] == far[:n_read].sum()
    quiet = Stream(manhattan)
    assert quiet.meet(kernel, X) == 80  # no clusters are known


@both_losses
@twin_of(summary.learn)
def test_a_block_is_not_read_at_once_if_it_asks_for_a_refresh(kernel, manhattan):
    rng = np.random.default_rng(0)
    strangers = np.zeros((1, 2)), np.full(1, 4.0)
    rows = rng.normal(scale=0.3, size=(30, 2))

    def learn(X):
        clock, table = new_clock(), np.zeros((17, 64))
        done = kernel(
            X, NONE, (1.0, 100.0), manhattan or None, (0.0, 0.0, NO_CENTERS, 0), None,
            None, strangers, np.empty((30, 17)), (table, np.zeros((2, 2)),
            empty_pairs(63)), point_kernels.new_notes(2),
            np.array([0.0, 0.0, -1.0]), clock,
        )  # fmt: skip
        return done, clock[point_kernels.SEEN], clock[point_kernels.FAR]

    assert learn(rows) == (True, 30.0, 0.0)
    rows[10:12] += 50.0
    assert learn(rows) == (True, 30.0, 2.0)
    rows[12] += 50.0
    assert learn(rows) == (False, 0.0, 0.0)
