"""Clusterers, and starting centres for k-means."""

from ._paco import PACOClusterer
from ._ssmc import SSMCKMeansInit

__all__ = ["PACOClusterer", "SSMCKMeansInit"]
