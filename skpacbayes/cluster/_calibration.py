"""The automatic inverse temperature: for a batch, and along a stream."""

from dataclasses import dataclass, field

import numpy as np

from ._local_scales import row_scales
from ._path import noise_scale


@dataclass(frozen=True)
class Calibration:
    """What the quasi-posterior takes from the noise in the data.

    `row_weights` (n_points,): factors of the points' weights in the loss;
    `temperature`: the inverse temperature; `max_clusters`: how many clusters are worth
    trying; `starts`: centres worth a try.
    """

    row_weights: np.ndarray
    temperature: float
    max_clusters: int
    starts: list = field(default_factory=list)


def inverse_temperature(n_clusters, n_rows, unit):
    """lambda = max(12, 4.5 n_clusters) / (n_rows unit), unit s^2 (Manhattan: s).

    So lambda times the loss of one cluster's noise is the same whatever the number of
    rows, of clusters, and the unit of the data: splitting a cluster then does not pay,
    and merging two does not either.
    """
    return max(12.0, 4.5 * n_clusters) / (n_rows * unit)


def calibrate_batch(path, n_rows, manhattan, scale):
    """One noise scale for all rows: that of the likeliest solution of the path."""
    scale, n_clusters = noise_scale(path, n_rows, manhattan, scale)
    unit = scale if manhattan else scale**2
    return inverse_temperature(n_clusters, n_rows, unit)


def calibrate_stream(tracker, rows, exponent, last_row, max_clusters):
    """A noise scale for each cell of the stream, and weights that make them equal."""
    tracker.set_unit(exponent)
    n_rows = rows.weights.sum()
    cells = tracker.update(rows, last_row, max(1, min(max_clusters, int(n_rows / 2))))
    n_cells = len(cells.shares)
    labels, scales, common = row_scales(rows, cells, tracker.manhattan)
    few = min(max(n_cells + 4, 8), max_clusters, max(1, int(n_rows / 2)))
    return Calibration(
        common / scales[labels],
        inverse_temperature(n_cells, max(n_rows, 100.0), common),
        few,
        [cells.centers],
    )
