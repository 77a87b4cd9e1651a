"""Observations in the tails of the simulations are told of, and hardly any others."""

import warnings

import numpy as np
import pytest
from scipy.stats import norm

from skpacbayes import ABCPosteriorKDE

GRID = np.linspace(-8, 8, 8001)
LINKS = {
    "sinh": np.sinh,
    "cubic": lambda t: t + t**3,
    "exponential": np.exp,
    "square": lambda t: t * abs(t),
}


def summaries(link, parameters, n_summaries, rng):
    """Draw summaries: a function of a parameter, with noise of rising deviation."""
    deviations = 0.5 + 0.15 * np.arange(n_summaries)
    noise = rng.normal(size=(len(parameters), n_summaries))
    return LINKS[link](parameters)[:, None] + deviations * noise


def exact_levels(link, observation):
    """Distribution function of the exact posterior on the grid, by quadrature."""
    deviations = 0.5 + 0.15 * np.arange(len(observation))
    terms = norm.logpdf(observation[:, None], LINKS[link](GRID), deviations[:, None])
    heights = norm.logpdf(GRID) + terms.sum(axis=0)
    levels = np.exp(heights - heights.max()).cumsum()
    return levels / levels[-1]


def table_of(link, n_summaries, n_rows=3000, **parameters):
    rng = np.random.default_rng([n_summaries, n_rows])
    theta = rng.normal(size=n_rows)
    model = ABCPosteriorKDE(random_state=0, n_neighbors=200, **parameters)
    return model.fit(summaries(link, theta, n_summaries, rng), theta), rng


def quantiles(model, X):
    """Return the interval of 90 %, and whether a warning and that of tails came."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ends = np.ravel(model.predict_quantiles(X, [0.05, 0.95]))
    told = [i for i in caught if "in the tails" in str(i.message)]
    assert len(told) <= 1
    return ends, bool(caught), bool(told)


@pytest.mark.slow
@pytest.mark.parametrize("n_summaries", [1, 2, 3, 5])
@pytest.mark.parametrize("link", list(LINKS))
def test_intervals_that_miss_the_posterior_are_told_of(link, n_summaries):
    """Parameters 4 deviations out: an interval with less than half the mass warns."""
    model, rng = table_of(link, n_summaries)
    for sign in (1, -1):
        for x in summaries(link, np.full(4, 4.0 * sign), n_summaries, rng):
            ends, told, _ = quantiles(model, x[None])
            mass = np.diff(np.interp(ends, GRID, exact_levels(link, x)))[0]
            assert told or mass > 0.5


@pytest.mark.parametrize("metric", ["mad", "whiten", "regression"])
@pytest.mark.parametrize("n_summaries", [1, 3, 6])
def test_observations_from_the_simulator_are_not_told_of(n_summaries, metric):
    """Of 1000, 7 or fewer: 1 on average, and 8 with a probability below 1e-4.

    An observation is exchangeable with the 3000 simulations, so that at most 2 of them
    are as far with a probability of 3 / 3001.
    """
    model, rng = table_of("sinh", n_summaries, metric=metric)
    X = summaries("sinh", rng.normal(size=1000), n_summaries, rng)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(X)
    told = [str(i.message) for i in caught if "in the tails" in str(i.message)]
    assert not told or int(told[0].split(" of ")[0]) <= 7


@pytest.mark.parametrize("unit", [1.0, 1e-100, 1e100])
def test_tails_have_no_unit_and_no_order(unit):
    """The same rows are told of, alone and among others, in any unit and order."""
    rng = np.random.default_rng(0)
    theta = np.clip(rng.normal(size=(2000, 1)), -3, 3)
    X = np.sinh(theta) + 0.5 * rng.normal(size=(2000, 3))
    observed = np.sinh(np.array([[0.0], [3.4], [1.0], [-3.5]])) + np.zeros(3)
    order = rng.permutation(2000)
    model = ABCPosteriorKDE(random_state=0, n_neighbors=100)
    model.fit(unit * X[order], theta[order])
    with pytest.warns(UserWarning, match="2 of 4 observations are in the tails"):
        model.predict(unit * observed)
    for row, told in enumerate([False, True, False, True]):
        assert quantiles(model, unit * observed[[row]])[2] == told


@pytest.mark.slow
def test_simulations_are_never_in_the_tails():
    model, _ = table_of("sinh", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(model._table.summaries[:, :3000].T)
