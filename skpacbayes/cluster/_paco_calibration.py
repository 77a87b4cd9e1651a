"""The automatic inverse temperature: for a batch, and along a stream."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import cdist

from ._paco_cells import (
    CellTracker,
    cell_noise,
    largest_number,
    metric_of,
    spread_losses,
)
from ._paco_chain import CenterPrior
from ._paco_path import (
    LARGEST_EVIDENCE,
    Path,
    floor_scale,
    noise_scales,
    rows_loss,
)
from ._paco_rivals import rivals_of_noise

# What splitting noise gains, as a share of its cost: with one noise scale for all rows,
# and with one for each cell of a stream. In the second case 0.32 would more often miss
# groups that have just appeared than it would split noise.
_GAIN_PER_COST, _GAIN_BY_CELL = 0.32, 0.40
# Largest lambda n s^2 for each cluster, enough for all clusters that can be separated.
_MOST = 20.0
# Number of rows of a cell that count in full, over the mean number of rows of a cell:
# otherwise the noise of a large group would pay for a second centre.
_FULL_SHARE = 1.5
# Log odds from which the mixture decides the number of clusters.
UNDECIDED = 20.0
# Log odds within which other numbers of clusters are named as rivals.
_ALMOST_AS_WELL = 10.0
# Least number of rows of a stream for lambda; with fewer rows lambda is that of this
# number.
_WARM_UP = 100.0


@dataclass(frozen=True)
class Calibration:
    """Quantities of the quasi-posterior that are estimated from the noise in the data.

    `row_weights` (n_points,): factors of the points' weights in the loss; `path`: the
    k-means solutions under these weights; `temperature`: the inverse temperature;
    `rivals`: numbers of clusters that the rows do not exclude, with the number of
    standard errors by which their evidence is lower than that of `n_clusters`.
    """

    row_weights: np.ndarray
    path: Path
    temperature: float
    n_clusters: int | None = None
    rivals: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Splitting:
    """Inverse temperatures at which splitting the noise of a cluster does not pay.

    `radius`: R of the prior. The penalty of a cluster is taken to be 1, whatever the
    prior's penalty is: otherwise a larger penalty would be undone by a larger lambda.
    """

    n_features: int
    radius: float
    manhattan: bool

    def inverse_temperature(self, n_clusters, n_rows, scale, share=_GAIN_PER_COST):
        """Inverse temperature at which splitting noise gains a `share` of its cost.

        Halving one of `n_clusters` equal clusters of normal noise of that `scale`
        lowers the loss by the share 2 / pi of the variance along one direction, plus
        the effect of fitting one more centre to few rows. The centre costs the log of
        the ratio of the prior's volume to the quasi-posterior's, plus the penalty. So
        lambda is inversely proportional to the loss and, for many rows, to their
        number.
        """
        d = self.n_features
        gain = 2 / (math.pi * n_clusters) + 2 * d / n_rows
        factor = 12.0  # lambda n s^2: the start of the fixed-point iteration
        for _ in range(4):
            variance = scale**2 * n_clusters / factor
            if not self.manhattan:
                variance /= 2
            cost = self.center_cost(variance)
            factor = max(min(share * cost / gain, _MOST * n_clusters), 1.0)
        return factor / (n_rows * scale ** (1 if self.manhattan else 2))

    def center_cost(self, variance):
        """Return the prior cost of one more centre, in log odds, with its penalty.

        `variance`: variance of a feature of the centre under the quasi-posterior.
        """
        d = self.n_features
        log_ball = -CenterPrior(np.zeros(1), 2 * self.radius).log_constant(d)
        variance = max(variance, np.finfo(np.float64).tiny)  # beside a row at 1e200
        return 1.0 + log_ball - d / 2 * math.log(2 * math.pi * variance)

    def evidence_cost(self, n_clusters, n_rows, scale):
        """Return the penalty of the log evidence for the centres and their scale.

        Squared loss: log(n) / 2 per parameter. Manhattan loss: a centre costs
        `center_cost`. The BIC penalty corresponds to a prior as narrow as the noise,
        under which, with heavy tails, a centre for each far row would pay.
        """
        if self.manhattan:
            return n_clusters * self.center_cost(scale**2 * n_clusters / n_rows)
        n_parameters = n_clusters * self.n_features + 1
        return n_parameters / 2 * math.log(n_rows)


def calibrate_by_mixture(rows, found, most, splitting, rng, scale=None):
    """Calibrate by the mixture of largest evidence.

    If one normal noise describes all clusters and the evidence of the mixtures is
    close, the number of clusters is that of the largest normalised quasi-likelihood,
    unless fewer clusters with other noise describe the rows better.
    Otherwise rows are weighted by the inverse variance of their cluster, and rows in
    heavy tails weigh less. The inverse temperature is one at which the quasi-posterior
    prefers this number of clusters.

    Parameters
    ----------
    rows : Rows
        In the coordinates of the mixture.
    found : Found
        From `find_mixture`.
    most : int
        Largest number of clusters.
    splitting : Splitting
    rng : Generator
    scale : float or None
        Noise scale of all rows, if given.
    """
    mixture, sizes = found.mixture, found.sizes
    rivals = {k: behind for k, (_, behind) in found.rivals.items()}
    n_rows = float(rows.weights.sum())
    n_clusters = min(mixture.n_clusters, most)
    n_sizes = min(most, max(n_clusters + 4, 1 + n_clusters * 5 // 4, 8))
    weights = np.ones(len(rows.points))
    starts, path = [sizes[k].centers for k in sizes if k <= n_sizes], None
    if (mixture.simple and not found.skewed) or scale is not None:
        near = close_sizes(sizes, UNDECIDED, n_clusters, n_sizes)
        path = Path.find(rows.points, rows.weights, n_sizes, False, rng, starts, near)
        fits = noise_scales(path, rows, splitting, scale, near)
        k = fits[0].n_clusters
        few = scale is not None or k <= n_clusters or k not in sizes
        if few or found.is_normal(sizes[k]):  # else pieces of clusters
            scale, n_clusters = fits[0].scale, k
            near = close_sizes(sizes, _ALMOST_AS_WELL, k, n_sizes)
            rivals = rivals_of_noise(
                [fit for fit in fits if fit.n_clusters in near], found, rows
            )
    else:
        labels, weights = mixture.robust_weights(rows.points, rows.spreads)
        weights = weights * (mixture.scales.min() / mixture.scales)[labels]
    centers = mixture.centers
    if len(centers) != n_clusters:
        centers = sizes[n_clusters].centers if n_clusters in sizes else None
    if centers is None:  # no mixture has so few clusters
        own = rows.points, rows.weights * weights, n_sizes, False, rng, starts
        path = path or Path.find(*own, [n_clusters])
        centers = path.centers[n_clusters - 1, :n_clusters]
    near = range(max(1, n_clusters - 3), min(n_clusters + 3, n_sizes) + 1)
    owners = cdist(rows.points, centers, "sqeuclidean").argmin(axis=1)
    sizes_of = np.bincount(owners, rows.weights * weights, minlength=n_clusters)
    weights = weights * _counted(np.maximum(sizes_of, 1e-300))[owners]
    path = Path.find(
        rows.points,
        rows.weights * weights,
        n_sizes,
        False,
        rng,
        [centers, *starts],
        near,
    )
    if scale is None:
        loss = path.losses[n_clusters - 1]
        scale = math.sqrt(loss / (n_rows * rows.points.shape[1]))
        single = rows_loss(rows, path.centers[0, :1], False)
        floor = floor_scale(single, n_rows, rows.points.shape[1], False)
        scale = max(scale, floor)
    temperature = splitting.inverse_temperature(n_clusters, n_rows, scale)
    rivals = {k: behind for k, behind in rivals.items() if k <= most}
    return Calibration(weights, path, temperature, n_clusters, rivals)


def close_sizes(sizes, window, n_clusters, most):
    """Return the range of `n_clusters` and the sizes of evidence within a `window`."""
    highest = max(one.evidence for one in sizes.values())
    close = [k for k in sizes if sizes[k].evidence > highest - window]
    close = [k for k in (*close, n_clusters) if k <= most]
    return range(min(close), max(close) + 1)


def calibrate_batch(rows, max_clusters, splitting, rng, scale=None):
    """Calibrate with one noise scale, or with one for each cell if clusters differ.

    `scale`: noise scale of all rows, if given.
    """
    alike, centers = _one_scale(rows, max_clusters, splitting, rng, scale)
    if scale is not None or equally_spread(rows, centers, splitting.manhattan):
        return alike
    most = largest_number(rows, max_clusters)
    cells = CellTracker(splitting.manhattan).follow(rows, None, max_clusters)
    return _scale_by_cell(rows, cells, most, splitting, rng)


def calibrate_stream(rows, past, tracker, max_clusters, splitting, rng):
    """Calibrate a stream with a noise scale for each cell, or with one for all rows.

    One scale for all rows is used if the rows come in random order, it finds as many
    clusters as there are cells or one more, and the spreads of these clusters do not
    differ. `past`: the last row, and whether the rows come in random order.
    """
    most = largest_number(rows, max_clusters)
    last_row, exchangeable = past
    cells = tracker.follow(rows, last_row, max_clusters)
    if exchangeable and rows.weights.sum() >= _WARM_UP:
        n_cells = len(cells.shares)
        alike, centers = _one_scale(rows, _few(n_cells, most), splitting, rng)
        agreed = n_cells <= len(centers) <= n_cells + 1
        if agreed and equally_spread(rows, centers, splitting.manhattan):
            return alike
    return _scale_by_cell(rows, cells, most, splitting, rng)


def _few(n_cells, most):
    """Return the largest number of clusters to try, given the number of cells."""
    return min(max(n_cells + 4, 8), most)


def _one_scale(rows, max_clusters, splitting, rng, scale=None):
    """Calibrate with one noise scale; also return the centres of largest evidence."""
    manhattan, n_rows = splitting.manhattan, float(rows.weights.sum())
    path = Path.find(rows.points, rows.weights, max_clusters, manhattan, rng)
    best = noise_scales(path, rows, splitting, scale)[0]
    scale, n_clusters = best.scale, best.n_clusters
    temperature = splitting.inverse_temperature(n_clusters, n_rows, scale)
    centers = path.centers[n_clusters - 1, :n_clusters]
    counted = _counted(path.cell_weights[n_clusters - 1, :n_clusters])
    weights = np.ones(len(rows.points))
    if counted.min() < 1:
        losses = cdist(rows.points, centers, metric_of(manhattan))
        weights = counted[losses.argmin(axis=1)]
        path = Path.find(
            rows.points,
            rows.weights * weights,
            max_clusters,
            manhattan,
            rng,
            [centers],
        )
    return Calibration(weights, path, temperature), centers


def _scale_by_cell(rows, cells, most, splitting, rng):
    """Calibrate with rows weighted by the inverse noise scale of their cell."""
    manhattan, n_cells = splitting.manhattan, len(cells.shares)
    noise = cell_noise(rows, cells, manhattan)
    weights = noise.common / noise.scales * _counted(noise.sizes, noise.in_turn)
    weights = weights[noise.labels]
    path = Path.find(
        rows.points,
        rows.weights * weights,
        _few(n_cells, most),
        manhattan,
        rng,
        [cells.centers],
    )
    scale = noise.common if manhattan else math.sqrt(noise.common)
    judged = max(rows.weights.sum(), _WARM_UP)
    temperature = splitting.inverse_temperature(n_cells, judged, scale, _GAIN_BY_CELL)
    return Calibration(weights, path, temperature)


def _counted(sizes, in_turn=False):
    """Return the weight of a row in cells of the given sizes: below 1 in large cells.

    Cells whose rows come `in_turn` are excepted: they may hold two groups, whose
    distance should pay for a second centre.
    """
    full = np.where(in_turn, sizes, _FULL_SHARE * sizes.mean())
    return full / np.maximum(sizes, full)


def equally_spread(rows, centers, manhattan):
    """Return whether one noise scale describes the clusters better than one each.

    Compares the two by the Bayesian information criterion, with the evidence of at most
    1,000 rows: with more rows, the truncated tails of the cells would make any two
    scales differ.
    """
    n_features, n_clusters = rows.points.shape[1], len(centers)
    losses = cdist(rows.points, centers, metric_of(manhattan))
    labels = losses.argmin(axis=1)
    own = losses.min(axis=1) + spread_losses(rows, manhattan)
    sizes = np.bincount(labels, rows.weights, minlength=n_clusters)
    sums = np.bincount(labels, rows.weights * own, minlength=n_clusters)
    several = (sizes > 1) & (sums > 0)
    degrees = sizes[several] - 1
    scales = sums[several] / degrees
    common = scales @ degrees / degrees.sum() if several.any() else 1.0
    half = 1.0 if manhattan else 0.5
    gain = half * n_features * degrees @ np.log(common / scales)
    n_rows = rows.weights.sum()
    evidence = min(n_rows, LARGEST_EVIDENCE)
    return gain * evidence / n_rows <= 0.5 * (n_clusters - 1) * math.log(evidence)
