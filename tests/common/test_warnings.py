"""A warning points to the line of the user, however deep it is raised."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import skpacbayes


def draws(*shape):
    return np.random.default_rng(0).normal(size=shape)


def effects():
    X = draws(60, 3)
    return X, X[:, 0] + X[:, 1]


def simulations():
    return draws(50, 2), draws(50)


def full(model):
    return model.set_params(max_active=1, n_iter=50, burn_in=0)


class SeesNothingNegative(BaseEstimator):
    n_noise = 1

    def initial(self, z):
        return z

    def transition(self, x, z, t):
        return x + z

    def log_likelihood(self, x, y, t):
        return np.full(len(x), 0.0 if y[0] > 0 else -np.inf)


FILTER = skpacbayes.ClusteredParticleFilter(SeesNothingNegative(), random_state=0)
REGRESSOR = skpacbayes.SparseAdditiveGibbsRegressor
HMM = skpacbayes.DirichletProcessHMM(n_iter=4, burn_in=0, random_state=0)
CASES = {
    "PACO, fit": lambda: skpacbayes.PACOClusterer(2, random_state=0).fit(
        np.repeat(np.arange(4.0), 30)[:, None] + 0.01 * draws(120, 1)
    ),
    "SSMC, fit": lambda: skpacbayes.SSMCKMeansInit(3).fit(np.ones((9, 1))),
    "additive, fit": lambda: full(REGRESSOR(random_state=0)).fit(*effects()),
    "additive, asked of a stream": lambda: (
        full(REGRESSOR(random_state=0)).partial_fit(*effects()).predict(draws(3, 3))
    ),
    "HMM, fit": lambda: HMM.fit(draws(40, 1)),
    "HMM, asked of a stream": lambda: HMM.partial_fit(draws(40, 1)).predict(
        draws(4, 1)
    ),
    "mixture, fit": lambda: skpacbayes.TemperedVBGaussianMixture(
        4, max_iter=1, random_state=0
    ).fit(draws(50, 2)),
    "mixture, asked of a stream": lambda: (
        skpacbayes.TemperedVBGaussianMixture(4, max_iter=1, random_state=0)
        .partial_fit(draws(50, 2))
        .predict(draws(5, 2))
    ),
    "filter, partial_fit": lambda: FILTER.partial_fit(np.ones((9, 1))).partial_fit(
        [[-1.0]]
    ),
    "filter, filter": lambda: FILTER.fit(np.ones((9, 1))).filter([[-1.0]]),
    "ABC, predict": lambda: (
        skpacbayes.ABCPosteriorKDE(10, bandwidth="silverman")
        .fit(*simulations())
        .predict([[99.0, 0.0]])
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_warning_points_to_the_user(case):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        CASES[case]()
    assert {warning.filename for warning in record} == {__file__}
