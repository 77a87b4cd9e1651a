"""Bayesian mixtures, in batches, on streams and on distributed data."""

from ..certificates import (
    gaussian_mixture_rate,
    mixture_risk_bound,
    mixture_selection_bound,
    multinomial_mixture_rate,
    variational_risk_bound,
)
from ._gaussian import TemperedVBGaussianMixture
from ._multinomial import TemperedVBMultinomialMixture

__all__ = [
    "TemperedVBGaussianMixture",
    "TemperedVBMultinomialMixture",
    "gaussian_mixture_rate",
    "mixture_risk_bound",
    "mixture_selection_bound",
    "multinomial_mixture_rate",
    "variational_risk_bound",
]
