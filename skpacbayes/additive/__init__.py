"""Sparse additive models by Gibbs posteriors."""

from ._regressor import SparseAdditiveGibbsRegressor

__all__ = ["SparseAdditiveGibbsRegressor"]
