"""Models with the argument `y_prev`, where the row before has missing values."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator

from skpacbayes.filtering import ClusteredParticleFilter

FUNCTIONS = [
    "transition",
    "log_likelihood",
    "log_transition",
    "observation",
    "proposal",
    "log_lookahead",
]


class Echo(BaseEstimator):
    """A state that the row before moves; `forgets` does not replace missing values."""

    n_noise = 1

    def __init__(self, forgets=None):
        self.forgets = forgets

    def _center(self, x, y_prev, function):
        if y_prev is None:
            y_prev = np.zeros(1)
        if function != self.forgets:
            y_prev = np.where(np.isnan(y_prev), x, y_prev)
        return 0.8 * x + 0.1 * y_prev

    def initial(self, z):
        return z

    def transition(self, x, z, t, y_prev):
        return self._center(x, y_prev, "transition") + 0.5 * z

    def log_transition(self, x, x_next, t, y_prev):
        center = self._center(x, y_prev, "log_transition")
        return norm.logpdf(x_next[:, 0], center[:, 0], 0.5)

    def log_likelihood(self, x, y, t, y_prev):
        zero = 0.0 * self._center(x, y_prev, "log_likelihood")
        return norm.logpdf(y[0], x[:, 0] + zero[:, 0])

    def observation(self, x, z, t, y_prev):
        return x + z + 0.0 * self._center(x, y_prev, "observation")

    def proposal(self, x, y, t, y_prev):
        return 0.2 * (y - self._center(x, y_prev, "proposal")), np.array([0.9])

    def log_lookahead(self, x, y, t, y_prev):
        center = self._center(x, y_prev, "log_lookahead")
        return norm.logpdf(y[0], center[:, 0], 1.2)


def answers(model, gaps):
    X = np.random.default_rng(0).normal(size=(30, 1))
    X[gaps] = np.nan
    tracker = ClusteredParticleFilter(
        model, n_particles=200, proposal="auxiliary", random_state=0
    )
    means, _ = tracker.fit_smooth(X)
    return means, tracker.fit(X).forecast(2).means


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("tempering", [None, 1], ids=["plain", "tempered"])
def test_a_function_that_forgets_missing_values_is_told_so(name, tempering):
    """Rows in the middle: no density of moves is checked there before it is used."""
    gaps = [7, 8, 15, 29]
    message = rf"Echo\.{name} .* y_prev has NaN, .* replace them in {name}"
    with pytest.raises(ValueError, match=message):
        answers(Echo(name), gaps)
    model = Echo(name)
    tracker = ClusteredParticleFilter(model, tempering=tempering, random_state=0)
    if name in ("transition", "log_likelihood", "proposal"):
        X = np.zeros((10, 1))
        X[4] = np.nan
        with pytest.raises(ValueError, match=message):
            tracker.fit(X)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_missing_values_there_is_nothing_to_replace(name):
    for found, expected in zip(
        answers(Echo(name), []), answers(Echo(), []), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_missing_values_that_are_replaced():
    assert all(np.isfinite(found).all() for found in answers(Echo(), [7, 8, 15, 29]))
