"""Supervised learning on a stream, with uncertainty and without tuning."""

from ._regressor import OnlineVIRegressor

__all__ = ["OnlineVIRegressor"]
