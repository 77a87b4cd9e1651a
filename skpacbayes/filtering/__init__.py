"""Particle filters and inference for state-space models."""

from ._filter import ClusteredParticleFilter
from ._maximum_likelihood import ParticleMaximumLikelihood
from ._pmmh import ParticleMarginalMetropolis
from ._smc2 import SMC2

__all__ = [
    "SMC2",
    "ClusteredParticleFilter",
    "ParticleMarginalMetropolis",
    "ParticleMaximumLikelihood",
]
