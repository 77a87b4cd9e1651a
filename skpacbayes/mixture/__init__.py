"""Bayesian mixtures, in batches, on streams and on distributed data."""

from ._gaussian import TemperedVBGaussianMixture
from ._multinomial import TemperedVBMultinomialMixture

__all__ = ["TemperedVBGaussianMixture", "TemperedVBMultinomialMixture"]
