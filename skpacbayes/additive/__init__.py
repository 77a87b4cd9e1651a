"""Sparse additive models by Gibbs posteriors."""

from ._classifier import SparseAdditiveGibbsClassifier
from ._poisson_regressor import SparseAdditiveGibbsPoissonRegressor
from ._ranker import SparseAdditiveGibbsRanker
from ._regressor import SparseAdditiveGibbsRegressor

__all__ = [
    "SparseAdditiveGibbsClassifier",
    "SparseAdditiveGibbsPoissonRegressor",
    "SparseAdditiveGibbsRanker",
    "SparseAdditiveGibbsRegressor",
]
