"""Batch and streaming Bayesian learners for scikit-learn."""

__version__ = "0.1.0"

__all__ = []
