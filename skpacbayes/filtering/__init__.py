"""Particle filters: hidden states behind a sequence of rows."""

from ._filter import ClusteredParticleFilter
from ._pmmh import ParticleMarginalMetropolis

__all__ = ["ClusteredParticleFilter", "ParticleMarginalMetropolis"]
