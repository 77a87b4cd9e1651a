"""Displays of fitted estimators, by scikit-learn's Display convention.

They import no family, and use public attributes, or a private method that a family has
for its display.
"""

from ._choice import ChoiceDisplay
from ._clusters import ClusterCountDisplay, StreamDisplay
from ._effects import PartialEffectsDisplay
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
    "PartialEffectsDisplay",
    "ParticlesDisplay",
    "ProgressiveLossDisplay",
    "RegimesDisplay",
    "StreamDisplay",
    "TraceDisplay",
]
