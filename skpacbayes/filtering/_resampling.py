"""Resampling schemes, all within cells of particles.

Cell j holds the particles ``order[starts[j] : starts[j + 1]]`` and has ``counts[j]``
offspring, drawn by the weights within the cell. In every scheme, the expected number of
offspring of a particle of weight w in a cell of total weight v is ``counts[j] * w /
v``.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .._kernels.filtering import (
    draw_ancestors,
    draw_from_strata,
    stratified_points,
)


class Cells(NamedTuple):
    """A partition of the particles, and the number of offspring of each part."""

    labels: np.ndarray  # (n_particles,)
    order: np.ndarray  # (n_particles,), the particles by label
    starts: np.ndarray  # (n_cells + 1,)
    counts: np.ndarray  # (n_cells,)


@lru_cache(maxsize=8)
def one_cell(n_particles):
    """Return a single cell of all particles, with as many offspring."""
    return Cells(
        np.zeros(n_particles, dtype=np.int64),
        np.arange(n_particles),
        np.array([0, n_particles]),
        np.array([n_particles]),
    )


def systematic(weights, cells, generator):
    """Resample by one uniform number per cell, shifted by equal steps."""
    uniforms = generator.random(len(cells.counts))
    return _inverted_strata(weights, cells, uniforms)


def stratified(weights, cells, generator):
    """Resample by one uniform number in each of equal strata."""
    uniforms = generator.random(len(weights))
    return _inverted_strata(weights, cells, uniforms)


def multinomial(weights, cells, generator):
    """Resample by independent uniform numbers."""
    points = exponential_points(cells.counts, generator)
    return _inverted(draw_ancestors, weights, cells, cells.counts, points)


def exponential_points(counts, generator):
    """Return sorted uniform numbers in each cell: normalised sums of exponentials."""
    points = np.empty(counts.sum())
    start = 0
    for count in counts:
        sums = np.cumsum(generator.standard_exponential(count + 1))
        points[start : start + count] = sums[:-1] / sums[-1]
        start += count
    return points


def residual(weights, cells, generator):
    """Resample by the integer parts of expected offspring, the rest multinomially."""
    n_cells = len(cells.counts)
    totals = np.bincount(cells.labels, weights, minlength=n_cells)
    alive = np.where(totals > 0, totals, 1.0)
    # divided first, as the weights of a cell may be nearly subnormal
    expected = weights / alive[cells.labels] * cells.counts[cells.labels]
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
    """Return the ancestors of the offspring of all cells, (n_particles,)."""
    return SCHEMES[scheme](weights, cells, generator)


def _inverted(invert, weights, cells, counts, points):
    ancestors = np.empty(len(points), dtype=np.int64)
    invert(weights, cells.order, cells.starts, counts, points, ancestors)
    return ancestors


def _inverted_strata(weights, cells, uniforms):
    points = np.empty(len(weights))
    stratified_points(cells.counts, uniforms, points)
    return _inverted(draw_from_strata, weights, cells, cells.counts, points)
