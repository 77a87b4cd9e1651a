"""Batch and streaming Bayesian learners for scikit-learn."""

from .certificates import Certificate
from .cluster import PACOClusterer
from .datasets import make_paco_model
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
    "make_paco_model",
]
