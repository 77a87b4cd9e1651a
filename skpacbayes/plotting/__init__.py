"""Displays of fitted estimators, by scikit-learn's Display convention.

Displays for several families are here; they use public attributes, and import no
family.
"""

from ._choice import ChoiceDisplay
from ._clusters import ClusterCountDisplay, StreamDisplay
from ._ellipses import EllipsesDisplay
from ._emissions import EmissionsDisplay
from ._filter import FilterDisplay
from ._loss import ProgressiveLossDisplay
from ._particles import ParticlesDisplay
from ._regimes import RegimesDisplay
from ._trace import TraceDisplay

__all__ = [
    "ChoiceDisplay",
    "ClusterCountDisplay",
    "EllipsesDisplay",
    "EmissionsDisplay",
    "FilterDisplay",
    "ParticlesDisplay",
    "ProgressiveLossDisplay",
    "RegimesDisplay",
    "StreamDisplay",
    "TraceDisplay",
]
