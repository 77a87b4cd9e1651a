"""Rows on which every public estimator can be fitted, and cheap settings of each."""

import functools
import inspect
import pickle
import warnings

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator

import skpacbayes
from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering.models import LocalLevel

PUBLIC = {name: getattr(skpacbayes, name) for name in skpacbayes.__all__}
ESTIMATORS = {
    name: value
    for name, value in PUBLIC.items()
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
}
PLAIN = {"n_clusters": None, "proposal": "prior"}  # the fastest filter
LEVEL = {  # the variance of a level, whatever the rows
    "estimator": ClusteredParticleFilter(LocalLevel(), n_particles=16, **PLAIN),
    "priors": {"model__transition_variance": stats.gamma(2)},
    "n_chains": 1,
    "burn_in": 0,
    "n_iter": 2,
}
# The names of tests hold parameters, and must not hold addresses.
type(stats.gamma(2.0)).__repr__ = lambda prior: f"{prior.dist.name}{prior.args}"
FEW_DRAWS = {  # enough particles: fewer are doubled, and run again, at far rows
    "estimator": ClusteredParticleFilter(LocalLevel(), n_particles=64),
    "priors": LEVEL["priors"],
    "n_draws": 4,
    "n_moves": 1,
}
FEW_QUADRATICS = {  # a narrow range, whose search is short
    "estimator": ClusteredParticleFilter(LocalLevel(), n_particles=16),
    "parameters": {"model__transition_variance": stats.gamma(100, scale=0.02)},
    "n_repeats": 2,
    "max_iter": 1,
}
META = {  # those that need parameters
    "ParticleMarginalMetropolis": LEVEL,
    "ParticleMaximumLikelihood": FEW_QUADRATICS,
    "SMC2": FEW_DRAWS,
}
ONE_CHAIN = {"n_chains": 1, "burn_in": 5}
# Settings that may warn of few iterations. The defaults of these estimators are fitted
# by their docstrings' examples, where a warning is an error; those of others, here.
CHEAP: dict = {  # {"EstimatorName": {"parameter": value}}
    "ABCPosteriorKDE": {"n_validation": 20},
    "ClusteredParticleFilter": {"n_particles": 64},
    **META,
    # "auto" fits several models: test_look and test_engines do so.
    "DirichletProcessHMM": {
        "emission": "per_state",
        "covariance_type": "diag",
        "n_chains": 1,
        "n_iter": 5,
        "burn_in": 5,
    },
    "PACOClusterer": {"n_iter": 50, "refresh": 20},
    "SparseAdditiveGibbsClassifier": ONE_CHAIN | {"n_iter": 10},
    "SparseAdditiveGibbsPoissonRegressor": ONE_CHAIN | {"n_iter": 10},
    "SparseAdditiveGibbsRanker": ONE_CHAIN | {"n_iter": 5},
    "SparseAdditiveGibbsRegressor": {"n_iter": 60, "burn_in": 20},
    "SubspaceMixture": {"n_init": 2},
}
ALWAYS = {"random_state": 0}


def cheap(name, **parameters):
    """An estimator that fits in a moment."""
    public = ESTIMATORS[name]
    known = inspect.signature(public).parameters
    settings = {key: value for key, value in ALWAYS.items() if key in known}
    return public(**(settings | CHEAP.get(name, {}) | parameters))


def rows(n=40, seed=0):
    """Rows and targets of two groups: counts, and positive targets."""
    rng = np.random.default_rng(seed)
    y = 1.0 + np.arange(n) % 2
    X = rng.poisson(9.0 * y[:, None] - 6.0, size=(n, 2)).astype(float)
    return X, y


def learn(estimator, method, X, y, classes=(1.0, 2.0), **given):
    """Call `fit` or `partial_fit`."""
    function = getattr(estimator, method)
    if "classes" in inspect.signature(function).parameters:
        given["classes"] = classes
    return function(X, y, **given)


X, Y = rows(40)
METHODS = [
    (name, method)
    for name, public in ESTIMATORS.items()
    for method in ("fit", "partial_fit")
    if hasattr(public, method)
]


def fitted(name, method="fit"):
    """Return a cheap estimator that has learnt X and Y: fitted once, then copied."""
    return pickle.loads(_saved(name, method))


@functools.cache
def _saved(name, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if name in CHEAP else "error")
        return pickle.dumps(learn(cheap(name), method, X, Y))
