"""Bayesian mixtures, in batches, on streams and on distributed data."""

from ..certificates import (
    gaussian_mixture_rate,
    mixture_risk_bound,
    mixture_selection_bound,
    multinomial_mixture_rate,
    variational_risk_bound,
)
from ._categories import Binomial, Categorical
from ._conditional import ConditionalMixture
from ._directions import VonMisesFisher
from ._family import ExponentialFamily, Family, check_family
from ._gaussian import TemperedVBGaussianMixture
from ._mixture import TemperedVBMixture
from ._multinomial import TemperedVBMultinomialMixture
from ._normal_columns import LogNormal, Normal
from ._product import ProductFamily
from ._rates import Gamma, Poisson
from ._regression import Regression
from ._student import Student

__all__ = [
    "Binomial",
    "Categorical",
    "ConditionalMixture",
    "ExponentialFamily",
    "Family",
    "Gamma",
    "LogNormal",
    "Normal",
    "Poisson",
    "ProductFamily",
    "Regression",
    "Student",
    "TemperedVBGaussianMixture",
    "TemperedVBMixture",
    "TemperedVBMultinomialMixture",
    "VonMisesFisher",
    "check_family",
    "gaussian_mixture_rate",
    "mixture_risk_bound",
    "mixture_selection_bound",
    "multinomial_mixture_rate",
    "variational_risk_bound",
]
