"""Clusterers, and starting centres for k-means."""

from ._paco import PACOClusterer
from ._ssmc import SSMCKMeansInit
from ._subspace import SubspaceMixture

__all__ = ["PACOClusterer", "SSMCKMeansInit", "SubspaceMixture"]
