# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # type: ignore[import-untyped]

__all__ = [
    "EWARegressor",
    "OnlineVIClassifier",
    "OnlineVIMLPClassifier",
    "OnlineVIMLPRegressor",
    "OnlineVIRegressor",
]

class EWARegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    estimators: Any
    inverse_temperature: Literal["auto"] | float
    loss: Literal["squared_error", "absolute_error"]
    loss_bound: float | None
    estimators_: list[Any]
    weights_: NDArray[Any]
    cumulative_losses_: NDArray[Any]
    cumulative_loss_: float
    n_samples_seen_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, estimators: Any = ..., *, inverse_temperature: Literal["auto"] | float = ..., loss: Literal["squared_error", "absolute_error"] = ..., loss_bound: float | None = ...) -> None: ...
    def get_params(self, deep: bool = ...) -> dict[Any, Any]: ...
    def set_params(self, **params: Any) -> Self: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[Any]: ...
    def certificate(self) -> skpacbayes.Certificate: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> float: ...


class OnlineVIClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    method: Literal["ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el"]
    loss: Literal["log_loss", "hinge"]
    multi_class: Literal["auto", "softmax", "one_vs_rest"]
    inverse_temperature: Literal["auto"] | float
    learning_rate: Literal["auto", "invsqrt"] | float
    prior_scale: Literal["auto"] | float
    forgetting: Literal["on_label_change", "auto"] | float
    standardize: bool
    clip: float | None
    fit_intercept: bool
    average: bool
    n_fourier: Literal["auto"] | int
    random_state: int | np.random.RandomState | None
    classes_: NDArray[Any]
    coef_: Any
    intercept_: Any
    coef_std_: Any
    cumulative_loss_: float
    forgetting_rates_: NDArray[Any]
    forgetting_weights_: NDArray[Any]
    prior_scales_: NDArray[Any]
    prior_scale_weights_: NDArray[Any]
    fourier_weight_: NDArray[Any]
    n_samples_seen_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, method: Literal["ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el"] = ..., *, loss: Literal["log_loss", "hinge"] = ..., multi_class: Literal["auto", "softmax", "one_vs_rest"] = ..., inverse_temperature: Literal["auto"] | float = ..., learning_rate: Literal["auto", "invsqrt"] | float = ..., prior_scale: Literal["auto"] | float = ..., forgetting: Literal["on_label_change", "auto"] | float = ..., standardize: bool = ..., clip: float | None = ..., fit_intercept: bool = ..., mean_bound: Any = ..., scale_bound: Any = ..., average: bool = ..., n_fourier: Literal["auto"] | int = ..., random_state: int | np.random.RandomState | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = ..., sample_weight: ArrayLike | None = ...) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[Any]: ...
    def decision_function(self, X: ArrayLike) -> Any: ...
    def predict_proba(self, X: ArrayLike) -> NDArray[Any]: ...
    def certificate(self, X: ArrayLike | None = ..., y: ArrayLike | None = ..., sample_weight: ArrayLike | None = ...) -> skpacbayes.Certificate: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> float: ...
    def predict_log_proba(self, X: ArrayLike) -> NDArray[Any]: ...


class OnlineVIMLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    hidden_units: int
    loss: Literal["log_loss", "hinge"]
    prior_scale: float
    forgetting: float
    standardize: bool
    clip: float | None
    random_state: int | np.random.RandomState | None
    classes_: NDArray[Any]
    cumulative_loss_: float
    n_samples_seen_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, hidden_units: int = ..., *, loss: Literal["log_loss", "hinge"] = ..., prior_scale: float = ..., forgetting: float = ..., standardize: bool = ..., clip: float | None = ..., random_state: int | np.random.RandomState | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = ..., sample_weight: ArrayLike | None = ...) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[Any]: ...
    def decision_function(self, X: ArrayLike) -> Any: ...
    def predict_proba(self, X: ArrayLike) -> NDArray[Any]: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> float: ...
    def predict_log_proba(self, X: ArrayLike) -> NDArray[Any]: ...


class OnlineVIMLPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    hidden_units: int
    method: Literal["ngvi", "sva", "svb", "oga", "oga_el"]
    learning_rate: Literal["auto", "invsqrt"] | float
    prior_scale: float
    forgetting: float
    standardize: bool
    clip: float | None
    random_state: int | np.random.RandomState | None
    noise_variance_: float
    cumulative_loss_: float
    n_samples_seen_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, hidden_units: int = ..., *, method: Literal["ngvi", "sva", "svb", "oga", "oga_el"] = ..., learning_rate: Literal["auto", "invsqrt"] | float = ..., prior_scale: float = ..., forgetting: float = ..., standardize: bool = ..., clip: float | None = ..., random_state: int | np.random.RandomState | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = ...) -> NDArray[Any]: ...
    @overload
    def predict(self, X: ArrayLike, *, return_std: Literal[True]) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> float: ...


class OnlineVIRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    method: Literal["ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el"]
    loss: Literal["squared_error", "absolute_error", "quantile", "poisson"]
    quantile: float
    covariance: Literal["auto", "full", "diagonal"]
    inverse_temperature: Literal["auto"] | float
    learning_rate: Literal["auto", "invsqrt"] | float
    prior_scale: Literal["auto"] | float | None
    forgetting: Literal["auto"] | float
    standardize: bool
    clip: float | None
    fit_intercept: bool
    average: bool
    n_fourier: Literal["auto"] | int
    random_state: int | np.random.RandomState | None
    coef_: NDArray[Any]
    intercept_: float
    coef_std_: NDArray[Any]
    noise_variance_: float
    cumulative_loss_: float
    forgetting_rates_: NDArray[Any]
    forgetting_weights_: NDArray[Any]
    prior_scales_: NDArray[Any]
    prior_scale_weights_: NDArray[Any]
    fourier_weight_: float
    n_samples_seen_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, method: Literal["ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el"] = ..., *, loss: Literal["squared_error", "absolute_error", "quantile", "poisson"] = ..., quantile: float = ..., covariance: Literal["auto", "full", "diagonal"] = ..., inverse_temperature: Literal["auto"] | float = ..., learning_rate: Literal["auto", "invsqrt"] | float = ..., prior_scale: Literal["auto"] | float | None = ..., forgetting: Literal["auto"] | float = ..., standardize: bool = ..., clip: float | None = ..., fit_intercept: bool = ..., mean_bound: Any = ..., scale_bound: Any = ..., average: bool = ..., n_fourier: Literal["auto"] | int = ..., random_state: int | np.random.RandomState | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> Self: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = ...) -> NDArray[Any]: ...
    @overload
    def predict(self, X: ArrayLike, *, return_std: Literal[True]) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def predict_quantiles(self, X: ArrayLike, quantiles: float | ArrayLike = ...) -> NDArray[Any]: ...
    def certificate(self, X: ArrayLike | None = ..., y: ArrayLike | None = ..., sample_weight: ArrayLike | None = ...) -> skpacbayes.Certificate: ...
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> float: ...

