"""Sparse additive models by Gibbs posteriors."""

from ._classifier import SparseAdditiveGibbsClassifier
from ._display import PartialEffectsDisplay
from ._poisson_regressor import SparseAdditiveGibbsPoissonRegressor
from ._ranker import SparseAdditiveGibbsRanker
from ._regressor import SparseAdditiveGibbsRegressor

__all__ = [
    "PartialEffectsDisplay",
    "SparseAdditiveGibbsClassifier",
    "SparseAdditiveGibbsPoissonRegressor",
    "SparseAdditiveGibbsRanker",
    "SparseAdditiveGibbsRegressor",
]
