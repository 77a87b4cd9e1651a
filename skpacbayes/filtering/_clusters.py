"""Cells of a cloud: clusters of particles, and their numbers of offspring."""

import numpy as np
from sklearn.base import clone

from .._kernels.filtering import cut_line, share_offspring
from .._kernels.kmeans import draw_centers, run_lloyd
from ._resampling import Cells

FIT_ON = 1024  # largest number of particles for fitting the centres
LLOYD_STEPS = 5


def kmeans_labels(particles, n_clusters, generator):
    """Cluster particles by k-means: D^2 seeding, five steps of Lloyd's algorithm.

    Coordinates are scaled by their standard deviations. The centres are fitted on at
    most 1,024 particles; then each particle is assigned to the nearest centre.
    """
    columns = np.ascontiguousarray(particles.T)
    scale = columns.std(axis=1, keepdims=True)
    columns = columns / np.where(scale > 0, scale, 1.0)
    n_particles = columns.shape[1]
    some = columns
    if n_particles > FIT_ON:
        places = np.arange(FIT_ON) * n_particles // FIT_ON
        some = np.ascontiguousarray(columns[:, places])
    points, ones = np.ascontiguousarray(some.T), np.ones(n_particles)
    n_some = len(points)
    drawn, labels = np.empty(n_clusters, np.int64), np.empty(n_particles, np.int64)
    losses, work = np.empty((2, n_particles)), np.empty((2, n_clusters))
    found = ones[:n_some], labels[:n_some], np.empty((2, n_some))
    draw_centers(
        some,
        found[0],
        generator.random(n_clusters),
        drawn,
        *found[2],
        *[None] * 4,
    )
    centers = points[drawn]
    run_lloyd(points, some, found[0], LLOYD_STEPS, centers, *found[1:], work, None)
    if n_some < n_particles:
        run_lloyd(points, columns, ones, 0, centers, labels, losses, work, None)
    return labels


def labels_by(clusterer, particles, generator):
    """Return the labels by a clusterer; noise (-1) becomes a further label."""
    clusterer = clone(clusterer, safe=False)
    if "random_state" in getattr(clusterer, "get_params", dict)():
        clusterer.set_params(random_state=int(generator.integers(2**31 - 1)))
    found = np.asarray(clusterer.fit_predict(particles.copy()))
    if found.shape != (len(particles),):
        raise ValueError(
            f"{type(clusterer).__name__}.fit_predict returned an array of shape "
            f"{found.shape}, expected ({len(particles)},)."
        )
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def cells_of(labels, weights, conservation):
    """Partition the particles by label, and allocate offspring to the parts.

    A part of size c and weight v gets about ``(1 - conservation) * n * v +
    conservation * c`` of the n offspring, at least one if it has weight, none
    otherwise.
    """
    sizes = np.bincount(labels)
    small = labels.astype(np.min_scalar_type(len(sizes)))  # for a radix sort
    order = np.argsort(small, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    masses = np.bincount(labels, weights)
    return shared(labels, order, starts, masses, conservation)


def cells_on_line(values, n_clusters, weights, conservation):
    """Return `cells_of` k-means clusters of one-dimensional particles.

    The clusters are by five steps of Lloyd's algorithm on sorted values.
    """
    n_particles = len(values)
    order = np.argsort(values)
    starts = np.empty(n_clusters + 1, dtype=np.int64)
    labels = np.empty(n_particles, dtype=np.int64)
    centers, masses = np.empty((2, n_clusters))
    cut_line(
        values[order], order, weights, LLOYD_STEPS, centers, starts, labels, masses
    )
    return shared(labels, order, starts, masses, conservation)


def shared(labels, order, starts, masses, conservation):
    """Allocate offspring to the cells; return the cells and their weights."""
    counts = np.empty(len(masses), dtype=np.int64)
    sizes, scratch = np.diff(starts), np.empty(len(masses))
    share_offspring(masses, sizes, conservation, scratch, counts)
    return Cells(labels, order, starts, counts), masses
