"""State of `PACOClusterer` between calls of `partial_fit`."""

import math

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import fdtrc

from ._paco_cells import CellTracker, metric_of
from ._paco_mixture import squared_radius
from ._paco_problem import ALL_DOUBTS
from ._units import exponent_of, scaled

# With refresh="auto", the chain runs after each of the first _EVERY_ROW rows, then each
# time the stream has grown by the share _GROWTH of the rows since. Chains take longer
# with more columns: with _COLUMNS columns or more there are at least 2, and at least d
# / _COLUMNS, rows between chains, and with 2 _COLUMNS or more the share is doubled.
_EVERY_ROW = 200
# The chain is delayed while the latest row is not among the outermost share of rows of
# its cluster: if rows come in random order, or not. In that case a new group shows only
# in a few rows, which must not be taken for the tails of another group.
_OUTSIDE, _OUTSIDE_IN_TURN = 0.05, 0.2
# It is delayed until the stream has grown by a share, or by a larger share while these
# are few rows.
_LEAST_GROWTH, _GROWTH_OF_FEW, _FEW = 0.1, 0.25, 5.0
_COLUMNS = 10
# Number of rows from which the number of clusters is checked, and again each time the
# number of rows has doubled; ALL_DOUBTS is one of these. From then on, another number
# of clusters is checked when the stream has grown by a share since the last check.
_FIRST_DOUBTS, _GROWTH_OF_CHECKED = 20, 0.5
_GROWTH = 0.1
# The chain runs early if more rows than expected are in the outermost share of all
# clusters. The expected share is an exponential mean over the intervals between chains,
# with an initial value.
_FAR, _MEMORY, _FIRST_FAR = 1e-3, 0.9, (1.0, 100.0)


class Stream:
    """The summary of the rows, and the forecast for the next row.

    Parameters
    ----------
    setting : Setting
    summary : StreamSummary
    refresh : int or "auto"
    rng : Generator
    """

    def __init__(self, setting, summary, refresh, rng):
        n_features = summary.n_features
        self.setting = setting
        self.summary = summary
        self.tracker = CellTracker(setting.manhattan) if setting.calibrated else None
        self.rng = rng
        self.refresh = refresh
        self.forecast = np.empty((0, n_features))
        self.centers = np.empty((0, n_features))
        self.coordinates = np.eye(n_features)
        self.labels = np.empty(0, dtype=np.int64)
        self.scales, self.limit, self.refreshed_at = np.empty(0), 0.0, 0.0
        self.may_wait = (
            refresh == "auto" and setting.calibrated and summary.forgetting == 0.0
        )
        self.far_of_rows = np.array(_FIRST_FAR)
        self.temperature = 0.0
        self.first_temperature = None
        self.from_the_start = True
        self.waiting = None  # points not yet in the summary
        self.every_row = self._after(0.0) <= 1
        if summary.watch is not None:
            summary.watch.early = refresh == "auto"
        self.decreasing = True
        self.warned = False
        # Powers of two: where doubts are looked for next; passed when sentinels were.
        self.doubts_at, self.n_doublings = _FIRST_DOUBTS, 0
        # Rows and clusters at the last check, and whether one is due.
        self.checked_at, self.n_checked, self.due = 0.0, 0, False
        self.summary.schedule(self._after(0.0))

    def draw_from_prior(self):
        """Draw the forecast of the first row from a prior that is fixed before it."""
        setting = self.setting
        if not (setting.regret and setting.radius != "auto"):
            return
        n_features = self.summary.n_features
        n_clusters = self.rng.choice(setting.largest_prior, p=setting.size_prior()) + 1
        prior = setting.center_prior(setting.largest_prior, float(setting.radius))
        self.forecast = prior.draw(n_clusters, n_features, self.rng)
        first = setting.temperature_for(1.0, n_features, float(setting.radius))
        self.temperature = first  # lambda_0 = lambda_1
        self._expect()

    def begin_with(self, rows):
        """Start from rows that had no forecast.

        They are added to the summary when it is first needed: most fits do not go on to
        a stream.
        """
        zeros = np.zeros(len(rows.points))  # rows that have not been merged
        self.waiting = np.column_stack([rows.points, rows.weights, zeros])
        self.from_the_start = False

    @property
    def n_rows(self):
        """Weight of the rows read."""
        waiting = 0.0 if self.waiting is None else self.waiting[:, -2].sum()
        return self.summary.n_rows + float(waiting)

    def _take_waiting(self):
        """Add the rows that the stream starts from to the summary."""
        if self.waiting is not None:
            self.summary.absorb(self.waiting)
            self.summary.follow(self.labels)
            self.waiting = None

    def absorb(self, statistics):
        """Add points of other summaries, which had no forecast."""
        self._take_waiting()
        self.from_the_start = False
        self.summary.absorb(statistics)

    def read(self, X, weights, begin):
        """Read rows from `begin` until a refresh is due; return the next index."""
        return self.summary.read(X, weights, begin)

    def refreshes(self, X, weights):
        """Read rows, and yield wherever a refresh is due."""
        self._take_waiting()
        begin = self.read(X, weights, 0)
        while self.summary.due:
            if self._explained():
                self.every_row = False
                after_next = self._after(self.summary.n_rows)
                self.summary.schedule(min(after_next, self._latest))
            else:
                yield begin
            begin = self.read(X, weights, begin)

    @property
    def _latest(self):
        """Return the latest position of the next chain."""
        n_rows = min(self.refreshed_at, _EVERY_ROW)
        few = min(_GROWTH_OF_FEW * n_rows, _FEW)
        return self.refreshed_at + max(few, _LEAST_GROWTH * n_rows)

    def _explained(self):
        """Return whether the last row is well within a cluster."""
        if not self.may_wait or self.summary.n_rows >= self._latest:
            return False
        gaps = (self.centers - self.summary.last_row) @ self.coordinates
        unit = exponent_of(self.scales)
        gaps, scales = scaled(gaps, -unit), scaled(self.scales, -unit)
        with np.errstate(over="ignore"):  # of a row that is far from all centres
            if self.setting.manhattan:  # as if noise were normal
                squares = np.abs(gaps).sum(axis=1) ** 2 / gaps.shape[1]
            else:
                squares = (gaps**2).sum(axis=1)
        return bool((squares < self.limit * scales**2).any())

    def refreshed(self, outcome):
        """Set the outcome of a chain, whose draw is the next forecast.

        A cluster that remains keeps its label, and a new one takes the lowest free
        label. Returns the order of the clusters by label.
        """
        n_rows = self.summary.n_rows
        self.every_row &= self._after(n_rows) <= n_rows + 1
        if self.first_temperature is None:
            self.first_temperature = outcome.temperature
        else:
            self.decreasing &= outcome.temperature <= self.temperature
        self.temperature = outcome.temperature
        self.forecast = outcome.draw
        self.coordinates = outcome.coordinates
        labels = self._labels_of(outcome.centers)
        order = np.argsort(labels)
        self.labels = labels[order]
        n_before = len(self.centers)
        self.centers = np.ascontiguousarray(outcome.centers[order])
        self.scales, self.refreshed_at = outcome.spreads[order], n_rows
        self._count_check()
        self._expect()
        self.summary.measure_by(outcome.coordinates)
        self.summary.follow(self.labels)
        if self.may_wait:
            self._expect_within(outcome.dof, grown=len(self.centers) > n_before)
        self.summary.schedule(self._after(n_rows))
        return order

    def _expect_within(self, dof, grown):
        """Set the distances from the clusters within which rows are expected.

        `grown`: whether there are more clusters than before. Far rows were then their
        first rows, and do not make far rows expected.
        """
        summary, d = self.summary, self.centers.shape[1]
        outside = _OUTSIDE if summary.exchangeable else _OUTSIDE_IN_TURN
        self.limit = squared_radius(outside, d, dof)
        if not grown:
            n_met = summary.n_rows - float(summary.refreshed)
            self.far_of_rows = _MEMORY * self.far_of_rows + [float(summary.far), n_met]
        square = squared_radius(_FAR, d, math.inf)
        reach = self.scales * math.sqrt(square)
        if self.setting.manhattan:  # as if noise were normal
            reach *= np.sqrt(d)
        n_far, n_rows = self.far_of_rows
        share = n_far / n_rows
        if math.isfinite(dof):
            share = max(share, fdtrc(d, dof, square / d))
        summary.expect_within(reach, share)

    def doubting(self):
        """Return whether to check the clusters of the last chain.

        Since the last call a chain ran after the rows had doubled, or found another
        number of clusters.
        """
        due, self.due = self.due, False
        return due

    def _count_check(self):
        """Set whether a check is due; which chains count depends on the rows alone."""
        n_rows, n_clusters = self.refreshed_at, len(self.centers)
        due = n_rows >= self.doubts_at
        while n_rows >= self.doubts_at:
            early = self.doubts_at < ALL_DOUBTS
            self.doubts_at *= 2
            if early:
                self.doubts_at = min(self.doubts_at, ALL_DOUBTS)
        if n_clusters != self.n_checked and n_rows >= ALL_DOUBTS:
            due |= n_rows >= (1 + _GROWTH_OF_CHECKED) * self.checked_at
        if due:
            self.checked_at, self.n_checked, self.due = n_rows, n_clusters, True

    def doubled(self):
        """Return whether the rows have passed a power of two since the last call."""
        before, self.n_doublings = self.n_doublings, int(self.n_rows).bit_length()
        return self.n_doublings > before

    def forget(self):
        """Drop the rows of dead clusters, and rows of no weight, before a refresh.

        A cluster is dead if so long a gap without its rows is unlikely in random order.
        """
        summary = self.summary
        if summary.forgetting == 0.0:
            return
        gone = np.zeros(summary.n_points, dtype=bool)
        labels = summary.watch.gone(summary.n_rows) if summary.watch else ()
        if len(labels):
            points = summary.places_and_weights()[0] @ self.coordinates
            metric = metric_of(summary.manhattan)
            gaps = cdist(points, self.centers @ self.coordinates, metric)
            gone = np.isin(self.labels[gaps.argmin(axis=1)], labels)
        if not gone.all():
            summary.drop(gone)

    def _expect(self):
        """Set the forecast for the next rows in the summary."""
        self.summary.expect(
            self.forecast, self.centers, self.temperature, self.setting.variance_term
        )

    def _labels_of(self, centers):
        """Return labels, matched to the former clusters by their common rows."""
        if len(self.centers) == 0:
            return np.arange(len(centers))
        points, weights = self.summary.places_and_weights()
        metric = metric_of(self.summary.manhattan)
        shared = np.zeros((len(self.centers), len(centers)))
        points = points @ self.coordinates
        before = cdist(points, self.centers @ self.coordinates, metric).argmin(axis=1)
        after = cdist(points, centers @ self.coordinates, metric).argmin(axis=1)
        np.add.at(shared, (before, after), weights)
        labels = np.full(len(centers), -1)
        for old, new in zip(*linear_sum_assignment(-shared), strict=True):
            if shared[old, new] > 0:
                labels[new] = self.labels[old]
        free = np.setdiff1d(np.arange(len(centers) + len(labels)), labels)
        labels[labels < 0] = free[: (labels < 0).sum()]
        return labels

    def _after(self, n_rows):
        """Return the position of the refresh after one at `n_rows`."""
        if self.refresh != "auto":
            return n_rows + self.refresh
        n_features = self.summary.n_features
        fewest = 1 if n_features < _COLUMNS else max(2, n_features // _COLUMNS)
        growth = _GROWTH if n_features < 2 * _COLUMNS else 2 * _GROWTH
        grown = n_rows - _EVERY_ROW
        if self.summary.forgetting != 0.0:
            grown = min(grown, self.summary.weight)
        return n_rows + max(fewest, np.floor(growth * grown))
