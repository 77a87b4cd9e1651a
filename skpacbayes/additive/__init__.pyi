# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # type: ignore[import-untyped]
from sklearn.feature_selection import SelectorMixin  # type: ignore[import-untyped]

__all__ = [
    "SparseAdditiveGibbsClassifier",
    "SparseAdditiveGibbsPoissonRegressor",
    "SparseAdditiveGibbsRanker",
    "SparseAdditiveGibbsRegressor",
]

class SparseAdditiveGibbsClassifier(ClassifierMixin, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    basis: Any
    max_order: int
    feature_range: Any
    categorical_features: ArrayLike | str | bool
    beta: float
    slab_scale: Literal["auto"] | float
    inverse_temperature: Literal["likelihood", "pac"] | float
    gamma: float
    score_bound: float
    class_weight: Literal["balanced"] | dict[Any, Any] | None
    n_iter: int
    burn_in: int
    n_chains: int
    max_active: int
    interactions: Literal["detect", "auto"] | None | list[Any] | str
    prediction: Literal["mean", "randomized", "map"]
    random_state: int | np.random.RandomState | None
    n_jobs: int
    classes_: NDArray[Any]
    inclusion_probabilities_: NDArray[Any]
    class_inclusion_probabilities_: NDArray[Any]
    feature_importances_: NDArray[Any]
    inclusion_errors_: NDArray[Any]
    expected_orders_: NDArray[Any]
    coefficients_: NDArray[Any]
    intercept_: float
    models_: NDArray[Any]
    model_weights_: NDArray[Any]
    pairs_: NDArray[Any]
    pair_probabilities_: NDArray[Any]
    basis_: Any
    inverse_temperature_: float
    slab_scale_: float
    acceptance_rate_: float
    r_hat_: float
    feature_ranges_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, basis: Any = ..., *, max_order: int = ..., feature_range: Any = ..., categorical_features: ArrayLike | str | bool | None = ..., beta: float = ..., slab_scale: Literal["auto"] | float = ..., inverse_temperature: Literal["likelihood", "pac"] | float = ..., gamma: float = ..., score_bound: float = ..., class_weight: Literal["balanced"] | dict[Any, Any] | None = ..., n_iter: int = ..., burn_in: int = ..., n_chains: int = ..., max_active: int | None = ..., interactions: Literal["detect", "auto"] | None | list[Any] | str = ..., prediction: Literal["mean", "randomized", "map"] = ..., random_state: int | np.random.RandomState | None = ..., n_jobs: int | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[Any]: ...
    def decision_function(self, X: ArrayLike) -> Any: ...
    def predict_proba(self, X: ArrayLike) -> NDArray[Any]: ...
    def certificate(self, X: ArrayLike | None = ..., y: ArrayLike | None = ..., *, confidence: float = ...) -> skpacbayes.Certificate: ...
    def predict_log_proba(self, X: ArrayLike) -> NDArray[Any]: ...
    def interaction_frame(self) -> Any: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> float: ...
    def sample_posterior(self, n_samples: int = ..., random_state: int | np.random.RandomState | None = ...) -> NDArray[Any]: ...
    def to_arviz(self) -> Any: ...
    def get_support(self, indices: bool = ..., *, threshold: float = ...) -> NDArray[Any]: ...
    def transform(self, X: ArrayLike) -> Any: ...
    def inverse_transform(self, X: ArrayLike) -> Any: ...
    def projected_support(self, X: ArrayLike, *, explained: float = ..., indices: bool = ...) -> NDArray[Any]: ...
    def inclusion_frame(self) -> Any: ...
    def partial_effects(self, X: ArrayLike, feature: Any) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def _get_support_mask(self) -> Any: ...


class SparseAdditiveGibbsPoissonRegressor(RegressorMixin, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    basis: Any
    max_order: int
    feature_range: Any
    categorical_features: ArrayLike | str | bool
    beta: float
    slab_scale: float
    inverse_temperature: Literal["auto", "likelihood"] | float
    n_iter: int
    burn_in: int
    n_chains: int
    max_active: int
    interactions: Literal["detect", "auto"] | None | list[Any] | str
    prediction: Literal["mean", "randomized", "map"]
    random_state: int | np.random.RandomState | None
    n_jobs: int
    inclusion_probabilities_: NDArray[Any]
    feature_importances_: NDArray[Any]
    inclusion_errors_: NDArray[Any]
    expected_orders_: NDArray[Any]
    coefficients_: NDArray[Any]
    intercept_: float
    models_: NDArray[Any]
    model_weights_: NDArray[Any]
    dispersion_: float
    dispersion_growth_: float
    pairs_: NDArray[Any]
    pair_probabilities_: NDArray[Any]
    inverse_temperature_: float
    acceptance_rate_: float
    r_hat_: float
    feature_ranges_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, basis: Any = ..., *, max_order: int = ..., feature_range: Any = ..., categorical_features: ArrayLike | str | bool | None = ..., beta: float = ..., slab_scale: float = ..., inverse_temperature: Literal["auto", "likelihood"] | float = ..., n_iter: int = ..., burn_in: int = ..., n_chains: int = ..., max_active: int | None = ..., interactions: Literal["detect", "auto"] | None | list[Any] | str = ..., prediction: Literal["mean", "randomized", "map"] = ..., random_state: int | np.random.RandomState | None = ..., n_jobs: int | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = ...) -> NDArray[Any]: ...
    @overload
    def predict(self, X: ArrayLike, *, return_std: Literal[True]) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> float: ...
    def interaction_frame(self) -> Any: ...
    def sample_posterior(self, n_samples: int = ..., random_state: int | np.random.RandomState | None = ...) -> NDArray[Any]: ...
    def to_arviz(self) -> Any: ...
    def get_support(self, indices: bool = ..., *, threshold: float = ...) -> NDArray[Any]: ...
    def transform(self, X: ArrayLike) -> Any: ...
    def inverse_transform(self, X: ArrayLike) -> Any: ...
    def projected_support(self, X: ArrayLike, *, explained: float = ..., indices: bool = ...) -> NDArray[Any]: ...
    def inclusion_frame(self) -> Any: ...
    def partial_effects(self, X: ArrayLike, feature: Any) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def _get_support_mask(self) -> Any: ...


class SparseAdditiveGibbsRanker(ClassifierMixin, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    loss: Literal["auc", "pairwise_logistic"]
    basis: Any
    max_order: int
    feature_range: Any
    categorical_features: ArrayLike | str | bool
    beta: float
    slab_scale: float
    inverse_temperature: Literal["auto", "pac"] | float
    gamma: float
    n_iter: int
    burn_in: int
    n_chains: int
    max_active: int
    prediction: Literal["mean", "randomized", "map"]
    random_state: int | np.random.RandomState | None
    n_jobs: int
    classes_: NDArray[Any]
    inclusion_probabilities_: NDArray[Any]
    feature_importances_: NDArray[Any]
    inclusion_errors_: NDArray[Any]
    expected_orders_: NDArray[Any]
    coefficients_: NDArray[Any]
    intercept_: float
    models_: NDArray[Any]
    model_weights_: NDArray[Any]
    inverse_temperature_: float
    acceptance_rate_: float
    r_hat_: float
    feature_ranges_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, loss: Literal["auc", "pairwise_logistic"] = ..., *, basis: Any = ..., max_order: int = ..., feature_range: Any = ..., categorical_features: ArrayLike | str | bool | None = ..., beta: float = ..., slab_scale: float = ..., inverse_temperature: Literal["auto", "pac"] | float = ..., gamma: float = ..., n_iter: int = ..., burn_in: int = ..., n_chains: int = ..., max_active: int | None = ..., prediction: Literal["mean", "randomized", "map"] = ..., random_state: int | np.random.RandomState | None = ..., n_jobs: int | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def decision_function(self, X: ArrayLike) -> NDArray[Any]: ...
    def predict(self, X: ArrayLike) -> NDArray[Any]: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> float: ...
    def certificate(self, X: ArrayLike | None = ..., y: ArrayLike | None = ..., *, confidence: float = ...) -> skpacbayes.Certificate: ...
    def sample_posterior(self, n_samples: int = ..., random_state: int | np.random.RandomState | None = ...) -> NDArray[Any]: ...
    def to_arviz(self) -> Any: ...
    def get_support(self, indices: bool = ..., *, threshold: float = ...) -> NDArray[Any]: ...
    def transform(self, X: ArrayLike) -> Any: ...
    def inverse_transform(self, X: ArrayLike) -> Any: ...
    def projected_support(self, X: ArrayLike, *, explained: float = ..., indices: bool = ...) -> NDArray[Any]: ...
    def inclusion_frame(self) -> Any: ...
    def partial_effects(self, X: ArrayLike, feature: Any) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def _get_support_mask(self) -> Any: ...


class SparseAdditiveGibbsRegressor(RegressorMixin, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    basis: Any
    max_order: Literal["auto"] | int
    feature_range: Any
    categorical_features: ArrayLike | str | bool
    beta: float
    slab: Literal["gaussian", "l1ball"]
    slab_scale: Literal["auto"] | float
    radius: float
    inverse_temperature: Literal["likelihood", "pac"] | float
    gamma: float
    noise_variance: Literal["auto"] | float
    sampler: Literal["collapsed", "carlin_chib"]
    n_iter: int
    burn_in: int
    n_chains: int
    max_active: int
    interactions: Literal["detect", "auto"] | None | list[Any] | str
    prediction: Literal["mean", "randomized", "map"]
    random_state: int | np.random.RandomState | None
    n_jobs: int
    inclusion_probabilities_: NDArray[Any]
    feature_importances_: NDArray[Any]
    inclusion_errors_: NDArray[Any]
    expected_orders_: NDArray[Any]
    coefficients_: NDArray[Any]
    intercept_: float
    models_: NDArray[Any]
    model_weights_: NDArray[Any]
    pairs_: NDArray[Any]
    pair_probabilities_: NDArray[Any]
    slab_scale_: float
    noise_variance_: float
    noise_freedom_: float
    inverse_temperature_: float
    acceptance_rate_: float
    r_hat_: float
    basis_: Any
    feature_ranges_: NDArray[Any]
    n_samples_seen_: int | float
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, basis: Any = ..., *, max_order: Literal["auto"] | int = ..., feature_range: Any = ..., categorical_features: ArrayLike | str | bool | None = ..., beta: float = ..., slab: Literal["gaussian", "l1ball"] = ..., slab_scale: Literal["auto"] | float = ..., radius: float | None = ..., inverse_temperature: Literal["likelihood", "pac"] | float = ..., gamma: float = ..., noise_variance: Literal["auto"] | float = ..., sampler: Literal["collapsed", "carlin_chib"] = ..., n_iter: int = ..., burn_in: int = ..., n_chains: int = ..., max_active: int | None = ..., interactions: Literal["detect", "auto"] | None | list[Any] | str = ..., prediction: Literal["mean", "randomized", "map"] = ..., random_state: int | np.random.RandomState | None = ..., n_jobs: int | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def sufficient_statistics(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> NDArray[Any]: ...
    def absorb(self, statistics: NDArray[Any], memory: float = ...) -> Self: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = ...) -> NDArray[Any]: ...
    @overload
    def predict(self, X: ArrayLike, *, return_std: Literal[True]) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def certificate(self, X: ArrayLike | None = ..., y: ArrayLike | None = ..., *, confidence: float = ...) -> skpacbayes.Certificate: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> float: ...
    def interaction_frame(self) -> Any: ...
    def sample_posterior(self, n_samples: int = ..., random_state: int | np.random.RandomState | None = ...) -> NDArray[Any]: ...
    def to_arviz(self) -> Any: ...
    def get_support(self, indices: bool = ..., *, threshold: float = ...) -> NDArray[Any]: ...
    def transform(self, X: ArrayLike) -> Any: ...
    def inverse_transform(self, X: ArrayLike) -> Any: ...
    def projected_support(self, X: ArrayLike, *, explained: float = ..., indices: bool = ...) -> NDArray[Any]: ...
    def inclusion_frame(self) -> Any: ...
    def partial_effects(self, X: ArrayLike, feature: Any) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def _get_support_mask(self) -> Any: ...

