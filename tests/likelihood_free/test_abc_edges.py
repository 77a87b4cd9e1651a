"""Observations at the edge of the simulations, where the regression extrapolates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta, expon, gamma, norm, poisson, uniform

from skpacbayes import ABCPosteriorKDE
from skpacbayes.likelihood_free._abc_edges import nearest_on_a_line
from skpacbayes.likelihood_free._abc_local import Accepted

NOISE = 0.3  # of log summaries about their parameter, whose prior is N(0, 1)
SHRINK = 1 / (1 + NOISE**2)  # posterior N(SHRINK log x, SHRINK NOISE^2)
LINEAR = {
    "adjustment": "linear",
    "bandwidth": 1.0,
    "n_validation": 100,
    "random_state": 0,
}
# Places of the observations among the sorted summaries, but for the two at the ends.
PLACES = [1, 2, 3, 5, 10, -11, -6, -4, -3, -2]


def simulated(seed, n=5000):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return np.exp(y + NOISE * rng.normal(size=n))[:, None], y


def distances(seed, **parameters):
    """Absolute errors of posterior means, in exact posterior deviations."""
    X, y = simulated(seed)
    observed = np.sort(X, axis=0)[PLACES] * (1 + 1e-9)
    model = ABCPosteriorKDE(**LINEAR, **parameters).fit(X, y)
    exact = SHRINK * np.log(observed[:, 0])
    return np.abs(model.predict(observed) - exact) / (np.sqrt(SHRINK) * NOISE)


@pytest.mark.slow
def test_a_curve_does_not_move_posteriors_at_the_edge():
    """The regression of thousands of neighbors is off by up to four deviations."""
    errors = np.array([distances(seed) for seed in range(4)])
    assert errors.mean() < 0.6
    assert np.quantile(errors, 0.9) < 1.25
    given = np.array([distances(seed, n_neighbors=1000) for seed in range(2)])
    assert given.mean() > 1.0  # a given number is used as it is


def neighbors(n=2000, n_directions=1, at=0.0, curve=0.0, seed=0):
    """Normal summaries, of which parameters are a line or a curve, seen from `at`."""
    rng = np.random.default_rng(seed)
    summaries = rng.normal(size=(n, n_directions))
    gaps = summaries - at
    squares = np.square(gaps).sum(axis=1)
    order = np.argsort(squares)
    values = summaries[:, 0] + curve * np.square(summaries[:, 0])
    draws = (values + 0.1 * rng.normal(size=n))[:, None]
    return Accepted(gaps[order], squares[order], None, draws[order], n - 1)


@pytest.mark.parametrize("n_directions", [1, 3])
def test_neighbors_on_a_line_are_all_taken(n_directions):
    """Four or fewer of five comparisons in twenty disagree by chance."""
    several = [
        neighbors(n_directions=n_directions, at=3.5, seed=seed) for seed in range(20)
    ]
    kept = [nearest_on_a_line(near, "linear") is near for near in several]
    assert np.mean(kept) > 0.5
    assert all(
        np.abs(nearest_on_a_line(near, "linear").mean_with_error("linear")[0][0] - 3.5)
        < 0.4
        for near in several
    )


def test_neighbors_on_a_curve_are_not():
    far = neighbors(at=3.5, curve=1.0)
    near = nearest_on_a_line(far, "linear")
    assert 30 <= near.n_neighbors < far.n_neighbors / 4
    exact = 3.5 + 3.5**2
    errors = [abs(some.mean_with_error("linear")[0][0] - exact) for some in (near, far)]
    assert errors[0] < 0.25 * errors[1]


def test_neighbors_of_another_spread_are_not():
    """At the end of the summaries, where parameters spread in proportion to them."""
    rng = np.random.default_rng(0)
    gaps = np.sort(rng.exponential(size=4000))[:, None] - 0.01
    draws = gaps + 0.01 * (1.0 + 30.0 * gaps) * rng.normal(size=gaps.shape)
    order = np.argsort(np.abs(gaps[:, 0]))
    gaps, draws = gaps[order], draws[order]
    far = Accepted(gaps, np.square(gaps[:, 0]), None, draws, 2000)
    spreads = {}
    for kind in ("linear", "heteroscedastic"):
        near = nearest_on_a_line(far, kind)
        assert near.n_neighbors >= 60
        log_spread, error = near.log_spread_with_error(kind)
        assert np.abs(log_spread[0] - np.log(0.01)) < 0.7 + 3 * error[0]
        spreads[kind] = far.log_spread_with_error(kind)[0][0] - log_spread[0]
    assert spreads["linear"] > 1.0


def test_equal_draws_have_no_spread_that_disagrees():
    far = neighbors(at=3.5)
    draws = np.column_stack([far.draws[:, 0], np.ones(len(far.draws))])
    near = Accepted(far.gaps, np.square(far.gaps[:, 0]), None, draws, 1000)
    for kind in ("linear", "heteroscedastic"):
        spread, error = near.log_spread_with_error(kind)
        assert np.isfinite(spread).all()
        assert error[1] == np.inf
        assert nearest_on_a_line(near, kind).n_neighbors > 60


def test_amid_the_simulations_no_neighbors_are_left_out():
    middle = neighbors(at=0.5, curve=1.0)
    assert nearest_on_a_line(middle, "linear") is middle


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*in the tails")  # one of the four
def test_answers_at_the_edge_keep_to_units_and_whole_weights():
    X, y = simulated(0, 2000)
    observed = np.sort(X, axis=0)[[0, 2, -3, -1]] * 1.001
    model = ABCPosteriorKDE("cv", **LINEAR).fit(X, y)
    same = ABCPosteriorKDE("cv", **LINEAR).fit(2.0**10 * X, 2.0**-10 * y)
    answers = same.predict(2.0**10 * observed)
    assert_allclose(2.0**10 * answers, model.predict(observed), rtol=1e-9)
    counted = ABCPosteriorKDE("cv", **LINEAR).fit(X, y, sample_weight=np.ones(len(X)))
    assert_allclose(counted.predict(observed), model.predict(observed), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2000, 10_000])
def test_whole_numbers_at_the_edge_are_not_those_of_neighbors_on_one_side(n):
    """Posterior means of a Poisson prior are exact within a standard deviation.

    With as many neighbors as in the middle they are off by up to two or three.
    """
    rng = np.random.default_rng(1)
    counts, noise = rng.poisson(4, n), rng.normal(size=n)
    X = (counts + noise)[:, None]
    model = ABCPosteriorKDE(random_state=0).fit(X, counts)
    assert model.adjustment_ is None
    observed = np.quantile(X, [0.002, 0.005, 0.5, 0.995, 0.998])[:, None]
    values = np.arange(30)
    exact = poisson.pmf(values, 4) * norm.pdf(observed, values)
    exact /= exact.sum(axis=1, keepdims=True)
    mean = exact @ values
    deviation = np.sqrt(exact @ np.square(values) - mean**2)
    errors = (model.predict(observed).ravel() - mean) / deviation
    assert np.abs(errors).max() < 1.0


# Summaries that are a parameter times a variable: their priors and that variable.
SCALES = {
    "mean of waiting times": (gamma(2), gamma(10, scale=0.1)),
    "variance": (expon(), gamma(4.5, scale=1 / 4.5)),
    "maximum": (uniform(0, 10), beta(10, 1)),
}


def widths(name, seed, levels):
    """Widths of intervals of 90 % over exact ones, at quantiles of the summary."""
    prior, noise = SCALES[name]
    rng = np.random.default_rng(seed)
    y = prior.rvs(5000, random_state=rng)
    X = (y * noise.rvs(5000, random_state=rng))[:, None]
    observed = np.quantile(X, levels)
    model = ABCPosteriorKDE(random_state=0, bounds=prior.support()).fit(X, y)
    found = np.diff(model.predict_quantiles(observed[:, None], [0.05, 0.95]))[:, 0]
    ratios = np.geomspace(0.1, 10, 20_000)
    exact = []
    for summary in observed:
        scales = summary * ratios
        mass = np.cumsum(prior.pdf(scales) * noise.pdf(summary / scales))
        low, high = np.interp([0.05, 0.95], mass / mass[-1], scales)
        exact.append(high - low)
    return found / exact


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALES)
def test_the_spread_at_the_edge_is_not_that_of_all_neighbors(name):
    """The spread of scale parameters shrinks towards zero.

    With as many neighbors as in the middle, intervals of the latter two are too wide by
    factors of 1.3 to 9.
    """
    found = np.array([widths(name, s, [0.003, 0.006, 0.01, 0.5]) for s in range(3)])
    assert 0.9 < np.exp(np.log(found).mean()) < 1.4
    assert np.abs(np.log(found)).max() < np.log(2.5)
