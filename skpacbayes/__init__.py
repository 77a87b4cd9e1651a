"""Batch and streaming Bayesian learners for scikit-learn."""

from .certificates import Certificate
from .cluster import PACOClusterer
from .datasets import make_mixture, make_paco_model
from .mixture import (
    TemperedVBGaussianMixture,
    TemperedVBMultinomialMixture,
    gaussian_mixture_rate,
    mixture_risk_bound,
    mixture_selection_bound,
    multinomial_mixture_rate,
    variational_risk_bound,
)
from .online import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
)

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "EWARegressor",
    "OnlineVIClassifier",
    "OnlineVIMLPRegressor",
    "OnlineVIRegressor",
    "PACOClusterer",
    "TemperedVBGaussianMixture",
    "TemperedVBMultinomialMixture",
    "gaussian_mixture_rate",
    "make_mixture",
    "make_paco_model",
    "mixture_risk_bound",
    "mixture_selection_bound",
    "multinomial_mixture_rate",
    "variational_risk_bound",
]
