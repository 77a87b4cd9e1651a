"""Particle filters: hidden states behind a sequence of rows."""

from ._filter import ClusteredParticleFilter

__all__ = ["ClusteredParticleFilter"]
