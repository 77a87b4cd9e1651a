# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin  # type: ignore[import-untyped]

__all__ = [
    "PACOClusterer",
    "SSMCKMeansInit",
    "SubspaceMixture",
]

class PACOClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    max_clusters: int | None
    shape: Literal["auto", "round", "diagonal", "tied"]
    loss: Literal["squared_euclidean", "manhattan"]
    calibration: Literal["clusters", "regret"]
    inverse_temperature: Literal["auto"] | float | Callable[..., Any]
    cluster_penalty: float
    prior: Literal["uniform", "student"]
    prior_scale: float
    radius: Literal["auto"] | float
    variance_term: Literal["auto"] | float
    proposal: Literal["matched", "student"]
    n_iter: int
    n_chains: int
    scale: Literal["auto"] | float
    summary_size: int | None
    refresh: Literal["auto"] | int
    forgetting: Any
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    cluster_centers_: NDArray[Any]
    n_clusters_: int
    cluster_labels_: NDArray[Any]
    cluster_scales_: NDArray[Any]
    background_share_: float
    covariance_: NDArray[Any]
    shape_: Literal["round", "diagonal", "tied"]
    labels_: NDArray[Any]
    inertia_: float
    n_clusters_candidates_: NDArray[Any]
    n_clusters_posterior_: NDArray[Any]
    draw_: NDArray[Any]
    inverse_temperature_: float
    radius_: float
    cluster_shares_: NDArray[Any]
    scale_: float
    acceptance_rate_: float
    forgetting_rate_: float
    cumulative_loss_: float
    n_samples_seen_: int | float
    n_iter_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, max_clusters: int | None = ..., *, shape: Literal["auto", "round", "diagonal", "tied"] = ..., loss: Literal["squared_euclidean", "manhattan"] = ..., calibration: Literal["clusters", "regret"] = ..., inverse_temperature: Literal["auto"] | float | Callable[..., Any] = ..., cluster_penalty: float = ..., prior: Literal["uniform", "student"] = ..., prior_scale: float = ..., radius: Literal["auto"] | float = ..., variance_term: Literal["auto"] | float = ..., proposal: Literal["matched", "student"] = ..., n_iter: int = ..., n_chains: int = ..., scale: Literal["auto"] | float = ..., summary_size: int | None = ..., refresh: Literal["auto"] | int = ..., forgetting: Any = ..., random_state: int | np.random.RandomState | None = ..., n_jobs: int | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: None = ..., sample_weight: ArrayLike | None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: None = ..., sample_weight: ArrayLike | None = ...) -> Self: ...
    def sufficient_statistics(self, X: ArrayLike, sample_weight: ArrayLike | None = ...) -> NDArray[Any]: ...
    def absorb(self, statistics: ArrayLike) -> Self: ...
    def predict(self, X: ArrayLike, *, false_alarm_rate: float | None = ...) -> NDArray[Any]: ...
    def predict_proba(self, X: ArrayLike) -> NDArray[Any]: ...
    def outlier_scores(self, X: ArrayLike) -> NDArray[Any]: ...
    def transform(self, X: ArrayLike) -> NDArray[Any]: ...
    def score_samples(self, X: ArrayLike) -> NDArray[Any]: ...
    def score(self, X: ArrayLike, y: None = ...) -> float: ...
    def certificate(self, X: Any = ..., y: Any = ..., *, confidence: float = ...) -> skpacbayes.Certificate: ...
    def to_arviz(self) -> Any: ...


class SSMCKMeansInit(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    n_clusters: int
    n_particles: int
    n_moves: Literal["auto"] | int
    batch_size: Literal["auto"] | int
    noise_variance: float | None
    proposal: Literal["d2", "data", "sobol"]
    max_passes: int
    random_state: int | np.random.RandomState | None
    cluster_centers_: NDArray[Any]
    labels_: NDArray[Any]
    inertia_: float
    n_batches_: int
    n_swaps_: int
    n_samples_seen_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, n_clusters: int = ..., *, n_particles: int = ..., n_moves: Literal["auto"] | int = ..., batch_size: Literal["auto"] | int = ..., noise_variance: float | None = ..., proposal: Literal["d2", "data", "sobol"] = ..., max_passes: int = ..., random_state: int | np.random.RandomState | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: None = ...) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[Any]: ...
    def transform(self, X: ArrayLike) -> NDArray[Any]: ...
    def score(self, X: ArrayLike, y: None = ...) -> float: ...


class SubspaceMixture(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    n_clusters: Literal["auto"] | int
    variance: Literal["cluster", "shared"]
    weight_concentration: float
    n_init: int
    burn_in: int
    n_iter: int
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    labels_: NDArray[Any]
    n_clusters_: int
    relevant_features_: NDArray[Any]
    cluster_centers_: NDArray[Any]
    weights_: NDArray[Any]
    log_joints_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, n_clusters: Literal["auto"] | int = ..., *, variance: Literal["cluster", "shared"] = ..., weight_concentration: float = ..., n_init: int = ..., burn_in: int = ..., n_iter: int = ..., random_state: int | np.random.RandomState | None = ..., n_jobs: int | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: None = ...) -> Self: ...
    def predict(self, X: ArrayLike) -> NDArray[Any]: ...
    def predict_proba(self, X: ArrayLike) -> NDArray[Any]: ...
    def score_samples(self, X: ArrayLike) -> NDArray[Any]: ...
    def score(self, X: ArrayLike, y: None = ...) -> float: ...
    def to_arviz(self) -> Any: ...

