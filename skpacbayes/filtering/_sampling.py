"""Sampling of ancestors and noise: clustered bootstrap, or quasi-Monte Carlo.

Called with a cloud, each returns the ancestors of the next particles (None without
resampling), their log weights, and standard normals for the transition. An auxiliary
filter passes `lookahead`, the log of an approximate density of the next row at each
particle: ancestors are then drawn in proportion to weight times this density, and
weighted by its inverse.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.stats import qmc

from .._kernels.filtering import draw_ancestors, draw_from_strata
from .._kernels.quasi import hilbert_keys, shift_points, standard_cells
from ._cloud import small_is_zero
from ._clusters import cells_of, cells_on_line, kmeans_labels, labels_by
from ._resampling import draw, one_cell

CURVE_UP_TO = 8  # coordinates, as the table of the curve grows as n * 4 ** n
MOST_SCRAMBLES, MOST_NUMBERS = 64, 2**19  # limits: sets, total size


class Bootstrap:
    """Resampling within clusters, if weights are uneven, and independent noise.

    Algorithm 4 of Fan and Heller for ``conservation=1``; `n_clusters=None` is the
    plain bootstrap filter.
    """

    even_up_to = 0  # number of states in which the particles are evenly spread

    def __init__(
        self,
        n_particles,
        n_clusters,
        conservation,
        clusterer,
        resampling,
        threshold,
        auxiliary=False,
        tempering=None,
    ):
        self.n_particles = n_particles
        self.n_clusters = n_clusters
        self.conservation = conservation
        self.clusterer = clusterer
        self.resampling = resampling
        self.threshold = threshold
        self.auxiliary = auxiliary
        self.tempering = tempering
        self._whole = one_cell(n_particles)
        self._even = even_log_weights(n_particles)

    def __call__(self, cloud, n_noise, generator, lookahead=None):
        ancestors, log_weights = None, None
        if cloud is None:
            log_weights = self._even
        else:
            weights, corrections, size = looking_ahead(cloud, lookahead)
            if size < self.threshold * self.n_particles:
                ancestors, log_weights = self.resample(
                    cloud.particles, weights, generator
                )
                if corrections is not None:
                    log_weights = log_weights + corrections[ancestors]
            else:
                log_weights = cloud.log_weights
        noise = generator.standard_normal((self.n_particles, n_noise))
        return ancestors, log_weights, noise

    def resample(self, particles, weights, generator):
        """Return ancestors by cluster, and weights shared among offspring."""
        if self.n_clusters is None:
            ancestors = draw(weights, self._whole, self.resampling, generator)
            return ancestors, self._even
        cells, masses = self._cells(particles, weights, generator)
        ancestors = draw(weights, cells, self.resampling, generator)
        with np.errstate(divide="ignore", invalid="ignore"):  # empty: no offspring
            log_shares = np.log(masses / cells.counts)
        return ancestors, log_shares[cells.labels[ancestors]]

    def _cells(self, particles, weights, generator):
        """Return clusters with their numbers of offspring, and their weights."""
        n_clusters = max(1, min(self.n_clusters, self.n_particles // 10))
        if self.clusterer is not None:
            labels = labels_by(self.clusterer, particles, generator)
        elif particles.shape[1] == 1:
            values = np.ascontiguousarray(particles[:, 0])
            return cells_on_line(values, n_clusters, weights, self.conservation)
        else:
            labels = kmeans_labels(particles, n_clusters, generator)
        return cells_of(labels, weights, self.conservation)


class QuasiMonteCarlo:
    """Resampling along the Hilbert curve and noise from one scrambled Sobol set.

    Section 2.3 of Chopin et al. (2015), after Gerber and Chopin (2015).
    """

    tempering = None
    even_up_to = 3

    def __init__(self, n_particles, auxiliary=False):
        self.n_particles = n_particles
        self.auxiliary = auxiliary
        self._whole = one_cell(n_particles)
        self._even = even_log_weights(n_particles)

    def __call__(self, cloud, n_noise, generator, lookahead=None):
        n_columns = 1 + n_noise
        random = generator.bit_generator.random_raw(1 + n_columns)
        scramble = int(random[-1]) % n_scrambles(self.n_particles * n_columns)
        first, points = sobol_points(self.n_particles, n_columns, scramble)
        shift = (random[:-1] >> 11).astype(np.int64)
        if self.n_particles & (self.n_particles - 1):
            rows = np.argsort(first ^ shift[0])
            invert = draw_ancestors
        else:  # one point in each of n equal strata: a shift permutes the strata
            top = int(shift[0]) >> (54 - self.n_particles.bit_length())
            rows = self._whole.order ^ top
            invert = draw_from_strata
        uniforms = np.empty(self.n_particles)
        normals, scratch = np.empty((2, self.n_particles * n_noise))
        tails = np.empty(self.n_particles * n_noise, dtype=np.int64)
        shift_points(points, rows, shift, uniforms, scratch, tails, normals)
        noise = normals.reshape(self.n_particles, n_noise)
        if cloud is None:
            return None, self._even, noise
        ancestors = np.empty(self.n_particles, dtype=np.int64)
        weights, corrections, _ = looking_ahead(cloud, lookahead)
        order = along_curve(cloud.particles)
        whole = self._whole
        invert(weights, order, whole.starts, whole.counts, uniforms, ancestors)
        if corrections is None:
            return ancestors, self._even, noise
        return ancestors, self._even + corrections[ancestors], noise


@lru_cache(maxsize=8)
def even_log_weights(n_particles):
    """Return the log weights of equally weighted particles."""
    return np.full(n_particles, -math.log(n_particles))


@small_is_zero
def looking_ahead(cloud, lookahead):
    """Return weights for drawing ancestors, their log correction and size."""
    if lookahead is None:
        return cloud.weights, None, cloud.effective_size
    log_weights = cloud.log_weights + lookahead
    log_weights -= np.logaddexp.reduce(log_weights)
    weights = np.exp(log_weights)
    with np.errstate(invalid="ignore"):  # a particle without weight has no offspring
        corrections = cloud.log_weights - log_weights
    return weights, corrections, 1.0 / float(weights @ weights)


def n_scrambles(size):
    """Return the number of point sets of a size to choose from.

    The variance of a single set may be half as large again as on average. All sets fit
    into four megabytes: large sets are slow to make, and their errors are small.
    """
    return max(1, min(MOST_SCRAMBLES, MOST_NUMBERS // size))


@lru_cache(maxsize=2 * MOST_SCRAMBLES)
def sobol_points(n_points, n_columns, scramble):
    """Return Sobol points as 53-bit integers, sorted by the first column.

    A linear scramble, determined by the number `scramble`, randomises the digits beyond
    the strata: otherwise each column would be a regular grid, with a larger error. A
    digital shift is applied later. The first column is also returned.
    """
    engine = qmc.Sobol(n_columns, scramble=True, bits=53, seed=scramble)
    points = engine.random_base2((n_points - 1).bit_length())[:n_points]
    digits = (points * 2.0**53).astype(np.int64)
    digits = np.ascontiguousarray(digits[np.argsort(digits[:, 0])])
    return np.ascontiguousarray(digits[:, 0]), digits


def along_curve(particles):
    """Return the order of the particles along the Hilbert curve."""
    n_features = min(particles.shape[1], CURVE_UP_TO)
    if n_features < particles.shape[1]:
        particles = np.ascontiguousarray(particles[:, :n_features])
    n_particles = len(particles)
    n_bits = min(math.ceil(math.log2(n_particles) / n_features) + 3, 62 // n_features)
    cells = np.empty((n_particles, n_features), dtype=np.int64)
    standard_cells(particles, n_bits, cells)
    keys = cells[:, 0]
    if n_features > 1:
        keys = np.empty(n_particles, dtype=np.int64)
        hilbert_keys(cells, n_bits, hilbert_curve(n_features), keys)
    # NumPy's stable sort of 16 bits is a radix sort
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    for digit in range(16, n_bits * n_features, 16):
        digits = (keys >> digit).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


@lru_cache(maxsize=CURVE_UP_TO)
def hilbert_curve(n_features):
    """Return the table of the Hilbert curve for the kernel.

    After C. Hamilton, "Compact Hilbert indices", Dalhousie University CS-2006-07, 2006.
    A state is the corner at which the curve enters a cell and the direction in which it
    crosses it.
    """
    n_corners = 1 << n_features
    place_of = {place ^ (place >> 1): place for place in range(n_corners)}
    states, found, table = {(0, 0): 0}, [(0, 0)], []
    for entry, direction in found:  # grows
        for corner in range(n_corners):
            place = place_of[_rotated(corner ^ entry, -direction - 1, n_features)]
            turned = _rotated(_entry(place), direction + 1, n_features)
            across = (direction + _direction(place, n_features) + 1) % n_features
            inner = entry ^ turned, across
            if inner not in states:
                states[inner] = len(states)
                found.append(inner)
            table.append(states[inner] << n_features | place)
    return np.array(table)


def _rotated(bits, by, width):
    """Rotate a word of `width` bits to the left."""
    by %= width
    return (bits << by | bits >> (width - by)) & ((1 << width) - 1)


def _entry(place):
    """Return the corner at which the curve enters a subcell."""
    even = 2 * ((place - 1) // 2) if place else 0
    return even ^ (even >> 1)


def _direction(place, n_features):
    """Return the direction in which the curve crosses a subcell."""
    if place == 0:
        return 0
    odd = place if place % 2 else place - 1
    trailing_ones = (odd ^ (odd + 1)).bit_length() - 1
    return trailing_ones % n_features
