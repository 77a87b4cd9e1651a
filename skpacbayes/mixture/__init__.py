"""Bayesian mixtures, in batches, on streams and on distributed data."""

from ._gaussian import TemperedVBGaussianMixture

__all__ = ["TemperedVBGaussianMixture"]
