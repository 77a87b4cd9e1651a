"""Sparse additive models by Gibbs posteriors."""

from ._display import PartialEffectsDisplay
from ._regressor import SparseAdditiveGibbsRegressor

__all__ = ["PartialEffectsDisplay", "SparseAdditiveGibbsRegressor"]
