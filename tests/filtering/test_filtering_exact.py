"""Particle filters against exact answers: Kalman, a grid, a smoother, expectations.

A mean over runs is compared within four of its standard errors; a correct filter fails
one such comparison with probability below 1e-4. Seeds are fixed.
"""

import numpy as np
import pytest
from kalman import kalman_smoother, plane, rows_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import norm

from skpacbayes.filtering import ClusteredParticleFilter, _sampling
from skpacbayes.filtering._clusters import cells_of, cells_on_line, kmeans_labels
from skpacbayes.filtering._resampling import draw, one_cell
from skpacbayes.filtering.models import (
    LocalLevel,
    StochasticVolatility,
)

SCHEMES = ["multinomial", "stratified", "systematic", "residual"]
FILTERS = {
    "plain": {"n_clusters": None},
    "conservation 0": {"conservation": 0.0},
    "conservation 0.5": {"conservation": 0.5},
    "conservation 1": {"conservation": 1.0},
    "sqmc": {"method": "sqmc", "n_particles": 128},
    "sqmc, not a power of two": {"method": "sqmc", "n_particles": 100},
}


def within_four_errors(samples, expected):
    samples = np.asarray(samples)
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    gap = np.abs(samples.mean(axis=0) - expected)
    assert np.all(gap <= 4 * error + 1e-12), (gap / error).max()


@pytest.mark.slow
@pytest.mark.parametrize("name", FILTERS)
def test_the_likelihood_is_unbiased(name):
    model = plane()
    X = rows_of(model, 10)
    exact = model.kalman(X)[2].sum()
    parameters = {"n_particles": 150} | FILTERS[name]
    estimates = [
        ClusteredParticleFilter(model, random_state=seed, **parameters)
        .fit(X)
        .log_likelihood_
        for seed in range(150)
    ]
    within_four_errors(np.exp(np.array(estimates) - exact), 1.0)


@pytest.mark.parametrize("name", FILTERS)
def test_means_and_spreads_are_those_of_kalman(name):
    """Of single runs with many particles; errors of order 1 / sqrt(n_particles)."""
    model = plane()
    X = rows_of(model, 12)
    means, covariances, log_likelihoods = model.kalman(X)
    parameters = FILTERS[name] | {"n_particles": 20_000, "random_state": 0}
    tracker = ClusteredParticleFilter(model, **parameters)
    found_means, found_stds = tracker.fit_filter(X)
    stds = np.sqrt(covariances.diagonal(axis1=1, axis2=2))
    # seven standard errors with an effective size of a tenth of the particles
    assert_allclose(found_means, means, atol=7 * stds.max() / np.sqrt(2000))
    assert_allclose(found_stds, stds, rtol=7 / np.sqrt(2 * 2000))
    assert_allclose(tracker.log_likelihood_, log_likelihoods.sum(), atol=0.3)
    assert_allclose(tracker.mean_, found_means[-1])
    assert_allclose(np.sqrt(tracker.covariance_.diagonal()), found_stds[-1])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("conservation", [0.0, 0.5, 1.0])
def test_proposition_1(conservation, scheme):
    """Resampling within clusters keeps the expectation of the weighted cloud."""
    rng = np.random.default_rng(0)
    particles = rng.normal(size=(60, 2))
    weights = rng.standard_exponential(60) ** 3
    weights[::9] = 0.0
    weights /= weights.sum()
    functions = np.column_stack([particles, particles**2, np.sin(7 * particles)])
    found = []
    for _ in range(1500):
        labels = kmeans_labels(particles, 6, rng)
        cells, masses = cells_of(labels, weights, conservation)
        ancestors = draw(weights, cells, scheme, rng)
        shares = np.divide(
            masses, cells.counts, out=np.zeros_like(masses), where=cells.counts > 0
        )
        new_weights = shares[labels[ancestors]]
        assert_allclose(new_weights.sum(), 1.0)
        assert weights[ancestors].min() > 0
        found.append(new_weights @ functions[ancestors])
    within_four_errors(found, weights @ functions)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_particle_has_its_expected_offspring(scheme):
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(20))
    counts = [
        np.bincount(draw(weights, one_cell(20), scheme, rng), minlength=20)
        for _ in range(4000)
    ]
    within_four_errors(counts, 20 * weights)
    if scheme == "systematic":
        assert np.all(np.abs(counts - 20 * weights) < 1)
    if scheme == "residual":
        assert np.all(counts >= np.floor(20 * weights))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_cluster_whose_weights_nearly_underflow(scheme):
    """It has offspring, drawn by its own weights."""
    labels = np.repeat([0, 1], [20, 10])
    weights = np.concatenate([np.full(20, 0.05), np.full(10, 1e-309)])
    weights[25] = 0.0
    cells, _ = cells_of(labels, weights, 1.0)
    ancestors = draw(weights, cells, scheme, np.random.default_rng(0))
    counts = np.bincount(ancestors, minlength=30)
    assert_array_equal([counts[:20].sum(), counts[20:].sum()], [20, 10])
    assert counts[25] == 0


def test_clusters_share_the_offspring():
    """Between their own size and their weight, by `conservation`; none is lost."""
    labels = np.repeat([0, 1, 2, 3], [40, 30, 20, 10])
    weights = np.repeat([0.9 / 40, 0.1 / 30, 1e-12, 0.0], [40, 30, 20, 10])
    counts = {c: cells_of(labels, weights, c)[0].counts for c in (0.0, 0.5, 1.0)}
    assert_array_equal(counts[0.0], [89, 10, 1, 0])
    assert_array_equal(counts[0.5], [68, 21, 11, 0])
    assert_array_equal(counts[1.0], [45, 33, 22, 0])


def test_a_line_is_cut_into_cells():
    """Sorted cells that hold all particles, near the best of k-means."""
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=300), 50 + rng.normal(size=20), [9.0] * 9])
    weights = rng.dirichlet(np.ones(len(values)))
    cells, masses = cells_on_line(values, 12, weights, 0.5)
    assert_array_equal(np.sort(cells.order), np.arange(len(values)))
    for j in range(12):
        members = cells.order[cells.starts[j] : cells.starts[j + 1]]
        assert_array_equal(cells.labels[members], j)
        assert_allclose(masses[j], weights[members].sum(), atol=1e-12)
    assert np.all(np.diff(cells.labels[np.argsort(values)]) >= 0)
    assert cells.counts.sum() == len(values)
    assert np.all((cells.counts > 0) == (masses > 0))
    scatter = sum(np.ptp(values[cells.labels == j]) ** 2 for j in set(cells.labels))
    assert scatter < 12 * 4**2  # no cell spans the gaps


def grid_filter(model, X, n=1500):
    """Filtered means and log densities of a one-dimensional model, on a grid."""
    spread = model.sigma / np.sqrt(1 - model.phi**2)
    grid = np.linspace(-8 * spread, 8 * spread, n)
    step = grid[1] - grid[0]
    moves = norm.pdf(grid, model.phi * grid[:, None], model.sigma) * step
    law = norm.pdf(grid, 0, spread) * step
    means, evidences = [], []
    for t, row in enumerate(X):
        log_density = model.log_likelihood(grid[:, None], row, t)
        with np.errstate(divide="ignore"):
            joint = np.log(law if t == 0 else law @ moves) + log_density
        evidences.append(logsumexp(joint))
        law = np.exp(joint - evidences[-1])
        means.append(law @ grid)
    return np.array(means), np.array(evidences)


def test_stochastic_volatility_against_a_grid():
    model = StochasticVolatility(0.8, np.sqrt(0.9), 0.7)
    X = 0.7 * np.random.default_rng(0).standard_t(3, size=(30, 1))
    means, evidences = grid_filter(model, X)
    tracker = ClusteredParticleFilter(
        model, method="sqmc", n_particles=2**14, random_state=0
    )
    found, _ = tracker.fit_filter(X)
    # the error of the specification's table at this size, ten times over
    assert_allclose(found[:, 0], means, atol=0.01)
    assert_allclose(tracker.log_likelihood_, evidences.sum(), atol=0.016)


class NoDensity:
    """A linear Gaussian model that keeps its transition density to itself."""

    def __init__(self, model):
        self.n_noise = model.n_noise
        self.initial = model.initial
        self.transition = model.transition
        self.log_likelihood = model.log_likelihood
        self.handles_missing = True


@pytest.mark.parametrize("backward", [True, False])
def test_smoothing(backward):
    model = plane()
    X = rows_of(model, 12)
    means, stds = kalman_smoother(model, X)
    tracker = ClusteredParticleFilter(
        model if backward else NoDensity(model),
        n_particles=2000 if backward else 20_000,
        random_state=0,
    )
    found_means, found_stds = tracker.fit_smooth(X)
    # seven standard errors of 200 trajectories, or of as many ancestors
    assert_allclose(found_means, means, atol=7 * stds.max() / np.sqrt(200))
    assert_allclose(found_stds, stds, rtol=7 / np.sqrt(2 * 200))
    filtered = model.kalman(X)[0]
    nearer = np.abs(found_means - means) < np.abs(found_means - filtered)
    assert nearer[:-1].mean() > 0.8  # it does look back


def test_sqmc_is_worth_many_particles():
    """Ten times smaller squared errors than the bootstrap, at 1,024 particles."""
    model = plane()
    X = rows_of(model, 10)
    exact = model.kalman(X)[2].sum()

    def mean_square(**parameters):
        found = [
            ClusteredParticleFilter(
                model, n_particles=1024, random_state=seed, **parameters
            )
            .fit(X)
            .log_likelihood_
            for seed in range(25)
        ]
        return np.mean(np.square(np.array(found) - exact))

    # ratios of two chi-squares of 25 degrees exceed 5 with probability below 1e-4
    assert 10 * mean_square(method="sqmc") < 5 * mean_square(n_clusters=None)


def test_local_level_recovers_its_variances():
    rng = np.random.default_rng(0)
    level = np.cumsum(rng.normal(0, [0.5, 20.0], size=(20_000, 2)), axis=0)
    X = level + rng.normal(0, [1.0, 10.0], size=level.shape)
    model = LocalLevel().observe(X)
    assert_allclose(model.step_**2, [0.25, 400.0], rtol=0.15)
    assert_allclose(model.noise_, [1.0, 100.0], rtol=0.15)
    given = LocalLevel(transition_variance=[2.0, 3.0], observation_variance=4.0)
    assert_array_equal(given.observe(X).step_, np.sqrt([2.0, 3.0]))
    assert_array_equal(given.observe(X).noise_, 4.0)


@pytest.mark.parametrize("cuts", [[], [1, 2, 3], range(1, 60)])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_local_level_learns_from_rows_with_gaps(every, cuts):
    """Steps over missing rows count, however a stream is cut."""
    rng = np.random.default_rng(every)
    level = np.cumsum(rng.normal(size=(20_000 * every, 2)), axis=0)
    X = level + rng.normal(size=level.shape)
    seen = np.zeros(X.shape, dtype=bool)
    seen[1::every, 0], seen[:, 1] = True, rng.random(len(X)) < 1 / every
    X[~seen] = np.nan
    model, whole = LocalLevel(), LocalLevel().observe(X)
    for block in np.split(X, cuts):
        model = model.observe(block)
    # five standard deviations of the moments
    assert_allclose(model.step_**2, 1.0, rtol=0.3)
    assert_allclose(model.noise_, 1.0, rtol=0.25)
    assert_array_equal(model.sums_, whole.sums_)
    tracker = ClusteredParticleFilter(n_particles=20, random_state=0).fit(X[:30, :1])
    assert tracker.log_likelihood_ < 0  # the rows were weighed


def test_every_set_of_points_is_even_in_each_coordinate_and_unlike_the_others():
    n, n_columns = 64, 3
    seen = set()
    for scramble in range(_sampling.n_scrambles(n * n_columns)):
        first, points = _sampling.sobol_points(n, n_columns, scramble)
        assert_array_equal(first, np.sort(points[:, 0]))
        strata = np.sort(points >> (53 - 6), axis=0)
        assert_array_equal(strata, np.arange(n)[:, None].repeat(n_columns, axis=1))
        seen.add(points.tobytes())
    assert len(seen) == _sampling.MOST_SCRAMBLES


def test_the_points_of_a_row_are_not_always_the_same_set(monkeypatch):
    """One set alone has a larger variance than the average of all, or a smaller one."""
    asked, points_of = [], _sampling.sobol_points

    def sobol_points(n_points, n_columns, scramble):
        asked.append(scramble)
        return points_of(n_points, n_columns, scramble)

    monkeypatch.setattr(_sampling, "sobol_points", sobol_points)
    draw = _sampling.QuasiMonteCarlo(64)
    generator = np.random.default_rng(0)
    for _ in range(200):
        draw(None, 1, generator)
    assert len(set(asked)) > 40  # of 64: 61 are expected
