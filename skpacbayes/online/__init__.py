"""Online supervised learning with uncertainty and without tuning."""

from ._classifier import OnlineVIClassifier
from ._ewa import EWARegressor
from ._mlp import OnlineVIMLPRegressor
from ._mlp_classifier import OnlineVIMLPClassifier
from ._regressor import OnlineVIRegressor

__all__ = [
    "EWARegressor",
    "OnlineVIClassifier",
    "OnlineVIMLPClassifier",
    "OnlineVIMLPRegressor",
    "OnlineVIRegressor",
]
