"""NumPy twins of the kernels of particle filters."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, ndtri
from twins import twin_of

from skpacbayes._kernels import filtering, quasi
from skpacbayes.filtering._sampling import hilbert_curve

UNIT = 2.0**-53


def log_weights(n, seed=0):
    found = np.random.default_rng(seed).normal(size=n)
    return found - logsumexp(found)


@twin_of(filtering.multiply)
def test_multiply(kernel):
    before, terms = log_weights(50), np.random.default_rng(1).normal(size=50)
    terms[3] = -math.inf
    products, excesses = np.empty((2, 50))
    assert kernel(before, terms, products, excesses) == (before + terms).max()
    assert_array_equal(products, before + terms)
    assert_array_equal(excesses, products - products.max())


@pytest.mark.parametrize("value", [math.nan, math.inf])
@twin_of(filtering.multiply)
def test_multiply_refuses(kernel, value):
    terms = np.zeros(5)
    terms[2] = value
    assert math.isnan(kernel(log_weights(5), terms, *np.empty((2, 5))))


@twin_of(filtering.multiply)
def test_multiply_where_nothing_is_left(kernel):
    terms = np.full(5, -math.inf)
    assert kernel(log_weights(5), terms, *np.empty((2, 5))) == -math.inf


@twin_of(filtering.normalise)
def test_normalise(kernel):
    products = 5.0 * np.random.default_rng(0).normal(size=60) - 800.0
    products[4] = -math.inf
    highest, before = products.max(), products.copy()
    weights = np.exp(products - highest)
    evidence, size = kernel(weights, products, highest)
    assert_allclose(evidence, logsumexp(before), rtol=1e-14)
    assert_allclose(weights, np.exp(before - logsumexp(before)), rtol=1e-11)
    assert_allclose(products, before - logsumexp(before), rtol=1e-11)
    assert_allclose(size, 1 / np.sum(weights**2), rtol=1e-12)


@twin_of(filtering.sum_by_root)
def test_sum_by_root(kernel):
    rng = np.random.default_rng(0)
    roots, weights = rng.integers(12, size=40), rng.dirichlet(np.ones(40))
    start, shares = rng.dirichlet(np.ones(40)), np.empty(40)
    found = kernel(roots, weights, start, shares)
    expected = np.bincount(roots, weights, 40)
    assert_allclose(shares, expected)
    changes = np.sum(np.square(expected - start))
    assert_allclose(found, (np.sum(np.square(expected)), changes))


def cells_and_ancestors(kernel, seed, draw):
    """What a kernel draws in four cells, and the inverse of the distribution function.

    `draw(count, rng)` makes the points of a cell.
    """
    rng = np.random.default_rng(seed)
    weights = rng.random(40) * (rng.random(40) < 0.7)
    cuts = np.array([0, 7, 7, 25, 40])  # the second cell is empty
    counts = np.array([12, 0, 3, 25])
    order = rng.permutation(40)
    points = np.concatenate([draw(count, rng) for count in counts])
    ancestors = np.empty(40, dtype=np.int64)
    kernel(weights, order, cuts, counts, points, ancestors)
    expected, child = [], 0
    for start, stop, count in zip(cuts[:-1], cuts[1:], counts, strict=True):
        cell = order[start:stop]
        sums = np.cumsum(weights[cell])
        for point in points[child : child + count]:
            expected.append(cell[np.searchsorted(sums, point * sums[-1])])
        child += count
    return ancestors, expected


@pytest.mark.parametrize("seed", range(5))
@twin_of(filtering.draw_ancestors)
def test_draw_ancestors(kernel, seed):
    assert_array_equal(
        *cells_and_ancestors(
            kernel, seed, lambda count, rng: np.sort(rng.random(count))
        )
    )


@pytest.mark.parametrize("seed", range(5))
@twin_of(filtering.draw_from_strata)
def test_draw_from_strata(kernel, seed):
    def draw(count, rng):
        return (np.arange(count) + rng.random(count)) / max(count, 1)

    assert_array_equal(*cells_and_ancestors(kernel, seed, draw))


@pytest.mark.parametrize("scale", [1.0, 5e-324, 1e300])
@pytest.mark.parametrize("uniform", [0.0, 0.5, 1.0])
@twin_of(filtering.draw_from_strata)
def test_strata_of_particles_without_weight(kernel, uniform, scale):
    """No weight, no offspring, at the ends too; a cell of no weight has its first."""
    weights = scale * np.array([0.0, 1.0, 0.0, 3.0, 0.0, 0.0, 0.0])
    points = np.concatenate([(np.arange(4) + uniform) / 4, [0.5]])
    ancestors = np.empty(5, dtype=np.int64)
    cuts, counts = np.array([0, 5, 7]), np.array([4, 1])
    kernel(weights, np.arange(7), cuts, counts, points, ancestors)
    assert_array_equal(ancestors, [1, 3, 3, 3, 5])


@pytest.mark.parametrize("point", [0.0, 1.0])
@twin_of(filtering.draw_ancestors)
def test_no_weight_no_offspring(kernel, point):
    """Also at the ends of the distribution function."""
    weights = np.array([0.0, 0.2, 0.0, 0.8, 0.0])
    ancestors = np.empty(3, dtype=np.int64)
    points = np.full(3, point)
    ends = np.array([0, 5])
    kernel(weights, np.arange(5), ends, np.array([3]), points, ancestors)
    assert_array_equal(ancestors, 1 if point == 0.0 else 3)


@twin_of(quasi.shift_points)
def test_shift_points(kernel):
    """Quantiles of the digitally shifted points, to the tails."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, 2**53, (300, 3))
    points[:6, 1] = [0, 1, 2**53 - 1, 2**20, 2**45, 2**52]
    shift = np.array([rng.integers(2**53), 0, rng.integers(2**53)])
    rows = rng.permutation(300)
    scratch, normals = np.empty((2, 600))
    firsts, tails = np.empty(300), np.empty(600, dtype=np.int64)
    kernel(points, rows, shift, firsts, scratch, tails, normals)
    assert_array_equal(firsts, (points[rows, 0] ^ shift[0]) * UNIT)
    uniforms = (((points ^ shift) >> 1) + 0.5) * 2 * UNIT
    assert_array_equal(scratch.reshape(300, 2), uniforms[rows, 1:])
    assert_allclose(normals.reshape(300, 2), ndtri(uniforms[rows, 1:]), rtol=1e-13)


def places_on_curve(cells, n_bits):
    """Walk down the table of the curve, cell by cell."""
    n_features = cells.shape[1]
    curve = hilbert_curve(n_features).reshape(-1, 2**n_features)
    keys, states = np.zeros((2, len(cells)), dtype=np.int64)
    for level in reversed(range(n_bits)):
        corners = (cells >> level & 1) @ 2 ** np.arange(n_features)
        states, places = np.divmod(curve[states, corners], 2**n_features)
        keys = 2**n_features * keys + places
    return keys


@pytest.mark.parametrize(
    ("n_features", "n_bits"), [(1, 6), (2, 5), (3, 3), (4, 2), (5, 2), (8, 1)]
)
def test_the_curve_visits_every_cell_and_steps_to_neighbours(n_features, n_bits):
    cells = np.array(list(itertools.product(range(2**n_bits), repeat=n_features)))
    keys = places_on_curve(cells, n_bits)
    assert_array_equal(np.sort(keys), np.arange(len(cells)))
    steps = np.abs(np.diff(cells[np.argsort(keys)], axis=0))
    assert_array_equal(steps.sum(axis=1), 1)


@pytest.mark.parametrize(("n_features", "n_bits"), [(1, 13), (2, 8), (6, 4)])
@twin_of(quasi.standard_cells)
def test_standard_cells(kernel, n_features, n_bits):
    rng = np.random.default_rng(0)
    units = 10.0 ** np.arange(n_features)
    particles = 3.0 + units * rng.standard_t(2, size=(500, n_features))
    cells = np.full((500, n_features), -1)
    kernel(particles, n_bits, cells)
    scores = (particles - particles.mean(axis=0)) / particles.std(axis=0)
    places = 0.5 + 0.5 * scores / (1 + np.abs(scores))
    assert_array_equal(cells, np.floor(2**n_bits * places))


@twin_of(quasi.standard_cells)
def test_standard_cells_of_a_constant_coordinate(kernel):
    particles = np.column_stack([np.arange(5.0), np.full(5, 2.0)])
    cells = np.empty((5, 2), dtype=np.int64)
    kernel(particles, 3, cells)
    assert_array_equal(cells[:, 1], 4)


@pytest.mark.parametrize(("n_features", "n_bits"), [(2, 8), (3, 5), (6, 4)])
@twin_of(quasi.hilbert_keys)
def test_hilbert_keys(kernel, n_features, n_bits):
    cells = np.random.default_rng(0).integers(0, 2**n_bits, (500, n_features))
    keys = np.full(500, -1)
    kernel(cells, n_bits, hilbert_curve(n_features), keys)
    assert_array_equal(keys, places_on_curve(cells, n_bits))


@twin_of(filtering.stratified_points)
def test_stratified_points(kernel):
    rng = np.random.default_rng(0)
    counts = np.array([3, 0, 5, 1])
    for uniforms in (rng.random(4), rng.random(9)):
        points = np.empty(9)
        kernel(counts, uniforms, points)
        each = np.repeat(counts, counts)
        within = np.concatenate([np.arange(c) for c in counts])
        shifts = np.repeat(uniforms, counts) if len(uniforms) == 4 else uniforms
        assert_allclose(points, (within + shifts) / each, rtol=1e-15)


@twin_of(filtering.share_offspring)
def test_share_offspring(kernel):
    rng = np.random.default_rng(0)
    for conservation in (0.0, 0.3, 1.0):
        sizes = rng.integers(0, 40, 12)
        masses = rng.dirichlet(np.full(12, 0.2)) * (sizes > 0)
        masses[2] = 0.0
        masses /= masses.sum()
        counts, scratch = np.empty(12, dtype=np.int64), np.empty(12)
        kernel(masses, sizes, conservation, scratch, counts)
        n = sizes.sum()
        wanted = (1 - conservation) * n * masses + conservation * sizes
        wanted = np.where(masses > 0, wanted, 0.0)
        wanted *= n / wanted.sum()
        expected = np.floor(wanted).astype(int)
        largest = np.argsort(expected - wanted, kind="stable")
        expected[largest[: n - expected.sum()]] += 1
        while np.any(lacking := (masses > 0) & (expected == 0)):
            expected[lacking.argmax()] += 1
            expected[expected.argmax()] -= 1
        assert_array_equal(counts, expected)


@twin_of(filtering.cut_line)
def test_cut_line(kernel):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=40), [7.0] * 5, 30 + rng.normal(size=9)])
    weights = rng.dirichlet(np.ones(54))
    order = np.argsort(values)
    centers, masses = np.empty((2, 6))
    starts, labels = np.empty(7, dtype=np.int64), np.empty(54, dtype=np.int64)
    kernel(values[order], order, weights, 4, centers, starts, labels, masses)
    shares = (np.arange(6) + 0.5) / 6
    expected = values[order][(54 * shares).astype(int)]
    expected = 0.5 * (expected + values.min() + shares * np.ptp(values))
    for step in range(5):
        borders = 0.5 * (expected[1:] + expected[:-1])
        found = np.searchsorted(borders, values)
        if step < 4:
            for j in set(found):
                expected[j] = values[found == j].mean()
    assert_allclose(centers, expected)
    assert_array_equal(labels, found)
    assert_allclose(masses, np.bincount(found, weights, minlength=6))
    assert_array_equal(np.diff(starts), np.bincount(found, minlength=6))
