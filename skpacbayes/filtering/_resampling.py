"""Resampling schemes, all within cells of particles.

Cell j holds the particles ``order[starts[j] : starts[j + 1]]`` and has ``counts[j]``
offspring, drawn by the weights within the cell. Every scheme gives a particle of weight
w in a cell of total v ``counts[j] * w / v`` offspring on average.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .._kernels.filtering import draw_ancestors, draw_from_strata


class Cells(NamedTuple):
    """A partition of the particles, and the number of offspring of each part."""

    labels: np.ndarray  # (n_particles,)
    order: np.ndarray  # (n_particles,), the particles by label
    starts: np.ndarray  # (n_cells + 1,)
    counts: np.ndarray  # (n_cells,)


def one_cell(n_particles):
    """All particles in one cell, with as many offspring."""
    return Cells(
        np.zeros(n_particles, dtype=np.int64),
        np.arange(n_particles),
        np.array([0, n_particles]),
        np.array([n_particles]),
    )


def systematic(weights, cells, generator):
    """One uniform for each cell, shifted by equal steps."""
    counts = cells.counts
    if len(counts) == 1:
        count = int(counts[0])
        points = _grid(count) + generator.random() / count
    else:
        shifts = np.repeat(generator.random(len(counts)), counts)
        points = _stratum(counts) + shifts / np.repeat(counts, counts)
    return _inverted(draw_from_strata, weights, cells, counts, points)


def stratified(weights, cells, generator):
    """One uniform in each of equal steps."""
    each = np.repeat(cells.counts, cells.counts)
    points = _stratum(cells.counts) + generator.random(len(each)) / each
    return _inverted(draw_from_strata, weights, cells, cells.counts, points)


def multinomial(weights, cells, generator):
    """Independent uniforms."""
    points = exponential_points(cells.counts, generator)
    return _inverted(draw_ancestors, weights, cells, cells.counts, points)


def exponential_points(counts, generator):
    """Sorted uniforms in each cell: normalised sums of exponentials."""
    points = np.empty(counts.sum())
    start = 0
    for count in counts:
        sums = np.cumsum(generator.standard_exponential(count + 1))
        points[start : start + count] = sums[:-1] / sums[-1]
        start += count
    return points


def residual(weights, cells, generator):
    """Give each its whole number of offspring, draw the rest multinomially."""
    n_cells = len(cells.counts)
    totals = np.bincount(cells.labels, weights, minlength=n_cells)
    shares = np.divide(cells.counts, totals, out=np.zeros(n_cells), where=totals > 0)
    expected = shares[cells.labels] * weights
    certain = np.floor(expected).astype(np.int64)
    remaining = cells.counts - np.bincount(cells.labels, certain, n_cells).astype(
        np.int64
    )
    points = exponential_points(remaining, generator)
    drawn = _inverted(draw_ancestors, expected - certain, cells, remaining, points)
    return np.concatenate([np.repeat(np.arange(len(weights)), certain), drawn])


# Each scheme is called with weights, cells and a generator, and returns ancestors.
SCHEMES = {
    "systematic": systematic,
    "stratified": stratified,
    "multinomial": multinomial,
    "residual": residual,
}


def draw(weights, cells, scheme, generator):
    """Ancestors of the offspring of all cells, (n_particles,)."""
    return SCHEMES[scheme](weights, cells, generator)


def _inverted(invert, weights, cells, counts, points):
    ancestors = np.empty(len(points), dtype=np.int64)
    invert(weights, cells.order, cells.starts, counts, points, ancestors)
    return ancestors


@lru_cache(maxsize=8)
def _grid(count):
    return np.arange(count) / count


def _stratum(counts):
    """Left ends of ``counts[j]`` equal steps of [0, 1], cell after cell."""
    ends = np.cumsum(counts)
    within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
    return within / np.repeat(counts, counts)
