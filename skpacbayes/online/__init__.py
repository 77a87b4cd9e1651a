"""Supervised learning on a stream, with uncertainty and without tuning."""

from ._classifier import OnlineVIClassifier
from ._ewa import EWARegressor
from ._mlp import OnlineVIMLPRegressor
from ._regressor import OnlineVIRegressor

__all__ = [
    "EWARegressor",
    "OnlineVIClassifier",
    "OnlineVIMLPRegressor",
    "OnlineVIRegressor",
]
