"""Choice of the rate of forgetting of a stream, and detection of dead clusters."""

import math

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import chi2

from .._kernels import paco_summary as kernels
from ._units import scaled

# Rates that are compared: memories of all rows, 400, 100 and 30.
RATES = np.array([0.0, 1 / 400, 1 / 100, 1 / 30])
# Longest memory of a forecast, over that of the summary.
_LONGER = 4.0
# Factor by which a cluster's share changes between refreshes if it was split or merged:
# its forecasts then restart.
_REGROUPED = 1.4
# Probability, for rows in random order, of a gap without rows after which a cluster is
# removed; and probability that a row of a cluster counts as outside of it.
_SILENCE, _OUTSIDE = 1e-6, 1e-3
# Weight of the last interval in the expected share of far rows.
_LEARNT = 0.1


class Watch:
    """Forecasts with several rates of forgetting, and the last row of each cluster.

    A forecast is a mixture whose means and shares follow the rows with an exponential
    memory; `kernels.watch` compares their log densities of about the last 100 rows, and
    chooses the slowest rate that no other rate beats clearly. If rows come in runs of
    one cluster, the forecasts expect the cluster of the row before, and the patience
    with a cluster without rows is that of its runs. If consecutive rows of a cluster
    are correlated about a centre that stays, the forecasts expect the row near its
    predecessor, so that the correlation is no reason to forget. All lengths are in the
    unit of the summary, in the coordinates of its metric. `early`: whether a refresh
    may be early.
    """

    def __init__(self, n_features):
        self.early = True
        self.labels = np.empty(0, dtype=np.int64)
        self.means = np.empty((len(RATES), 0, n_features))
        self.masses = np.empty((len(RATES), 0))
        self.scores = np.zeros(len(RATES))
        self.variances = np.empty(0)
        self.last, self.patience = np.empty(0), np.empty(0)
        self.shares = np.empty(0)
        self.order = np.zeros(kernels.N_ORDER)
        self.order[[kernels.BEFORE, kernels.FREE]] = -1.0, n_features
        self.visits = np.empty((kernels.N_VISITS, 0))
        self.latest = np.empty((2, 0, n_features))
        self.copies = 1.0  # of a row, on average
        self.matrix, self.anchor = np.eye(n_features), np.zeros(n_features)
        self.limit = np.full(1, chi2.isf(_OUTSIDE, n_features))

    @property
    def arrays(self):
        """Return the arguments of `kernels.watch`; None before there are clusters."""
        if len(self.labels) == 0:
            return None
        return (
            RATES,
            self.means,
            self.masses,
            self.scores,
            self.variances,
            self.last,
            self.patience if self.early else np.full(len(self.labels), np.inf),
            self.limit,
            self.order,
            self.visits,
            self.latest,
            np.empty(len(self.labels)),
        )

    @property
    def in_runs(self):
        """Whether rows come in runs of one cluster."""
        return bool(self.order[kernels.STAY] > 0)

    @property
    def correlation(self):
        """Correlation of consecutive rows of a cluster; 0 if it may be chance."""
        return float(self.order[kernels.ALIKE])

    @staticmethod
    def nearest_rate(rate):
        """Return the element of `RATES` nearest to `rate`."""
        return float(RATES[np.abs(RATES - rate).argmin()])

    def set_unit(self, step):
        """Multiply the unit of all lengths by 2^-step."""
        self.means, self.anchor = scaled(self.means, step), scaled(self.anchor, step)
        self.variances = scaled(self.variances, 2 * step)
        self.latest = scaled(self.latest, step)

    def gone(self, now):
        """Return labels of clusters without a row for too long, if others had one."""
        self._set_patience()
        silent = now - self.last > self.patience
        self.last[silent] = now  # each is returned once
        return self.labels[silent] if not silent.all() else self.labels[:0]

    def follow(self, summary, rows, centers, labels):
        """Set the clusters after a refresh; those that remain keep their forecasts."""
        known = dict(zip(self.labels, range(len(self.labels)), strict=True))
        before = np.array([known.get(label, -1) for label in labels], dtype=int)
        now, since = summary.n_rows, float(summary.refreshed)
        inverse, anchor = np.linalg.inv(self.matrix), self.anchor
        former = self.means @ inverse + anchor
        if summary.metric is not None:
            _, self.matrix, self.anchor, _ = summary.metric
        places = (centers - self.anchor) @ self.matrix
        sizes, variances, self.order[kernels.FREE] = self._cells(rows, places)
        shares = sizes / sizes.sum()
        means = np.tile(places, (len(RATES), 1, 1))
        most = 1 / np.maximum(RATES, 1 / (_LONGER * sizes.sum()))
        masses = np.minimum(most[:, None] * shares, sizes)
        last, visited = np.full(len(labels), now), np.ones(len(labels), dtype=bool)
        visits = np.zeros((kernels.N_VISITS, len(labels)))
        visits[kernels.RECENT] = np.minimum(sizes, 1 / RATES[-1])
        for new, old in enumerate(before):
            if old < 0:
                continue
            last[new], visited[new] = self.last[old], self.last[old] > since
            visits[:, new] = self.visits[:, old]
            ratio = shares[new] / self.shares[old]
            followed = (former[:, old] - self.anchor) @ self.matrix
            gap = ((followed[0] - places[new]) ** 2).sum() / variances[new]
            lost = self.in_runs and gap > self.limit[0]
            if 1 / _REGROUPED < ratio < _REGROUPED and not lost:
                means[:, new] = followed
                masses[:, new] = np.minimum(self.masses[:, old], _LONGER * sizes[new])
            else:
                visits[kernels.KNOWN, new] = 0.0
            if not visited[new]:
                shares[new] = self.shares[old]
        change, moved = inverse @ self.matrix, (anchor - self.anchor) @ self.matrix
        latest = np.zeros((2, *places.shape))
        kept = visits[kernels.KNOWN] > 0
        latest[:, kept] = self.latest[:, before[kept]] @ change
        latest[0, kept] += moved
        self.latest = latest
        self.labels, self.means, self.masses = labels, means, masses
        self.variances, self.shares, self.last = variances, shares, last
        at = np.flatnonzero((before >= 0) & (before == self.order[kernels.BEFORE]))
        self.order[kernels.BEFORE] = at[0] if len(at) else -1
        self.visits = visits
        self.copies = max(rows.run_squares / rows.weights.sum(), 1.0)
        self._set_patience()
        if not self.early:
            summary.far_expected = math.inf
        elif now > since:
            share = summary.far / (now - since)
            summary.far_expected += _LEARNT * (share - summary.far_expected)
        summary.far, summary.refreshed = 0.0, now

    def _set_patience(self):
        """Set the longest gap without rows of each cluster.

        If rows come in runs, n runs of a cluster within s rows make a gap of more than
        g rows as probable as (s / (s + g))^n: that of a Poisson process whose rate has
        the improper prior of density 1 / rate.
        """
        self.patience = math.log(_SILENCE) / np.log1p(-np.clip(self.shares, 1e-9, 0.5))
        self.patience *= self.copies
        if self.in_runs:
            n_runs, spans = self.visits[[kernels.RUNS, kernels.SPANS]]
            ratios = -math.log(_SILENCE) / np.maximum(n_runs, 1.0)
            gaps = np.maximum(spans, 1.0) * np.expm1(ratios)
            self.patience = np.maximum(self.patience, gaps)

    def _cells(self, rows, places):
        """Return the weight and the variance of the rows nearest to each centre.

        And the number of independent features: the squared trace of the covariance
        about the centres over the trace of its square.
        """
        points = (rows.points - self.anchor) @ self.matrix
        losses = cdist(points, places, "sqeuclidean")
        owners, d = losses.argmin(axis=1), points.shape[1]
        scatter = np.trace(self.matrix.T @ rows.scatter @ self.matrix)
        width = scatter / max(np.trace(rows.scatter), 1e-300)
        squares = rows.weights * (losses.min(axis=1) + width * rows.spreads)
        sizes = np.bincount(owners, rows.weights, minlength=len(places))
        sums = np.bincount(owners, squares, minlength=len(places))
        common = max(squares.sum() / rows.weights.sum(), 1e-300)
        gaps = (points - places[owners]) * np.sqrt(rows.weights)[:, None]
        total = gaps.T @ gaps + self.matrix.T @ rows.scatter @ self.matrix
        free = np.trace(total) ** 2 / max((total**2).sum(), 1e-300)
        variances = (sums + 2 * common) / (d * (sizes + 2))
        return np.maximum(sizes, 1e-9), variances, max(free, 1.0)
