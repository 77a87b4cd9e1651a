"""Clusterers that find the number of clusters."""

from ._paco import PACOClusterer

__all__ = ["PACOClusterer"]
