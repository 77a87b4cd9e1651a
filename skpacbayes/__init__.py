"""Batch and streaming Bayesian learners for scikit-learn."""

from .certificates import Certificate
from .cluster import PACOClusterer
from .datasets import make_paco_model

__version__ = "0.1.0"

__all__ = ["Certificate", "PACOClusterer", "make_paco_model"]
