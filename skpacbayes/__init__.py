"""Batch and streaming Bayesian learners for scikit-learn."""

from .certificates import Certificate
from .cluster import PACOClusterer
from .datasets import make_mixture, make_paco_model
from .mixture import TemperedVBGaussianMixture, TemperedVBMultinomialMixture

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "PACOClusterer",
    "TemperedVBGaussianMixture",
    "TemperedVBMultinomialMixture",
    "make_mixture",
    "make_paco_model",
]
