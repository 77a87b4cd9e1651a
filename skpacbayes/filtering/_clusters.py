"""Cells of a cloud: clusters of its particles, and how many offspring each gets."""

import numpy as np
from sklearn.base import clone

from .._kernels.filtering import move_centers, nearest_centers, spread_centers
from ._resampling import Cells

FIT_ON = 1024  # particles on which the centres are fitted
LLOYD_STEPS = 5


def kmeans_labels(particles, n_clusters, generator):
    """Cluster particles by k-means: D^2 seeding, five steps of Lloyd's algorithm.

    Each coordinate is taken in units of its standard deviation. The centres are fitted
    on at most 1,024 particles, then all go to the nearest.
    """
    columns = np.ascontiguousarray(particles.T)
    scale = columns.std(axis=1, keepdims=True)
    columns = columns / np.where(scale > 0, scale, 1.0)
    n_particles = columns.shape[1]
    labels = np.zeros(n_particles, dtype=np.int64)
    nearest, distances = np.empty(n_particles), np.empty(n_particles)
    some = columns
    if n_particles > FIT_ON:
        places = np.arange(FIT_ON) * n_particles // FIT_ON
        some = np.ascontiguousarray(columns[:, places])
    n_some = some.shape[1]
    scratch = nearest[:n_some], distances[:n_some]
    centers, sizes = np.empty((n_clusters, len(columns))), np.empty(n_clusters)
    spread_centers(some, generator.random(n_clusters), centers, *scratch)
    for _ in range(LLOYD_STEPS):
        nearest_centers(some, centers, labels[:n_some], *scratch)
        move_centers(some, labels[:n_some], centers, sizes)
    nearest_centers(columns, centers, labels, nearest, distances)
    return labels


def labels_by(clusterer, particles, generator):
    """Labels of the particles by a clusterer; one label more is that of noise, -1."""
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
    """Partition the particles by label, and share the offspring among the parts.

    A part of size c and weight v gets about ``(1 - conservation) * n * v +
    conservation * c`` of the n offspring, at least one if it has weight, none
    otherwise.
    """
    n_particles = len(labels)
    sizes = np.bincount(labels)
    small = labels.astype(np.min_scalar_type(len(sizes)))  # a radix sort, if it can be
    order = np.argsort(small, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    masses = np.bincount(labels, weights)
    alive = masses > 0
    wanted = (1 - conservation) * n_particles * masses + conservation * sizes
    wanted = np.where(alive, wanted, 0.0)
    wanted *= n_particles / wanted.sum()
    return Cells(labels, order, starts, rounded(wanted, alive)), masses


def rounded(wanted, alive):
    """Whole numbers near `wanted`, of the same sum, and at least 1 where `alive`."""
    total = round(wanted.sum())
    counts = np.floor(wanted).astype(np.int64)
    # the largest remainders are rounded up
    short = total - counts.sum()
    by_remainder = np.argsort(counts - wanted, kind="stable")
    counts[by_remainder[:short]] += 1
    lacking = alive & (counts == 0)
    while lacking.any():  # of the richest
        counts[lacking.argmax()] += 1
        counts[counts.argmax()] -= 1
        lacking = alive & (counts == 0)
    return counts
