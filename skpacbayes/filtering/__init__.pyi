# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray

from sklearn.base import BaseEstimator  # type: ignore[import-untyped]

__all__ = [
    "ClusteredParticleFilter",
    "ParticleMarginalMetropolis",
    "ParticleMaximumLikelihood",
    "SMC2",
]

class ClusteredParticleFilter(BaseEstimator):  # type: ignore[misc]
    model: Any
    n_particles: int
    n_clusters: int | None
    conservation: float
    clusterer: Any
    method: Literal["bootstrap", "sqmc"]
    resampling: str
    ess_threshold: float
    proposal: Literal["auto", "prior", "auxiliary"]
    tempering: int | None
    underflow: Literal["warn", "raise"]
    random_state: int | np.random.RandomState | None
    particles_: NDArray[Any]
    weights_: NDArray[Any]
    mean_: NDArray[Any]
    covariance_: NDArray[Any]
    log_likelihood_: float
    log_likelihood_std_: float
    ess_: float
    n_resamplings_: int
    ancestors_: NDArray[Any]
    model_: Any
    n_samples_seen_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, model: Any = ..., *, n_particles: int = ..., n_clusters: int | None = ..., conservation: float = ..., clusterer: Any = ..., method: Literal["bootstrap", "sqmc"] = ..., resampling: str = ..., ess_threshold: float = ..., proposal: Literal["auto", "prior", "auxiliary"] = ..., tempering: int | None = ..., underflow: Literal["warn", "raise"] = ..., random_state: int | np.random.RandomState | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ...) -> Self: ...
    def fit_filter(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def fit_smooth(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def partial_fit(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ...) -> Self: ...
    def filter(self, X: ArrayLike, *, inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def smooth(self, X: ArrayLike, *, inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def sample_trajectories(self, X: ArrayLike, n_trajectories: int = ..., *, inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> NDArray[Any]: ...
    def forecast(self, h: int, *, of: Literal["observations", "states"] = ..., quantiles: Sequence[float] = ..., inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> Any: ...
    def log_likelihoods(self, X: ArrayLike, *, horizon: int = ..., inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> NDArray[Any]: ...
    def predict(self, X: ArrayLike, *, inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> NDArray[Any]: ...
    def score_samples(self, X: ArrayLike, *, inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> NDArray[Any]: ...
    def score(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> float: ...


class ParticleMarginalMetropolis(BaseEstimator):  # type: ignore[misc]
    estimator: Any
    priors: dict[str, Any]
    n_chains: int
    burn_in: int
    n_iter: int
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    posterior_: dict[str, NDArray[Any]]
    r_hat_: float
    acceptance_rate_: float
    estimator_: Any
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, estimator: Any, priors: dict[str, Any], *, n_chains: int = ..., burn_in: int = ..., n_iter: int = ..., n_jobs: int | None = ..., random_state: int | np.random.RandomState | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ...) -> Self: ...
    def intervals(self, level: float = ...) -> dict[str, tuple[float, ...]]: ...
    def score(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ...) -> float: ...
    def to_arviz(self) -> Any: ...


class ParticleMaximumLikelihood(BaseEstimator):  # type: ignore[misc]
    estimator: Any
    parameters: dict[str, Any]
    n_repeats: int
    max_iter: int
    tol: float
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    parameters_: dict[str, float]
    covariance_: NDArray[Any]
    standard_errors_: dict[str, float]
    monte_carlo_errors_: dict[str, float]
    log_likelihood_: float
    log_likelihood_error_: float
    converged_: bool
    n_iter_: int
    estimator_: Any
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, estimator: Any, parameters: dict[str, Any], *, n_repeats: int = ..., max_iter: int = ..., tol: float = ..., n_jobs: int | None = ..., random_state: int | np.random.RandomState | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ...) -> Self: ...
    def intervals(self, level: float = ...) -> dict[str, tuple[float, ...]]: ...
    def score(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ...) -> float: ...


class SMC2(BaseEstimator):  # type: ignore[misc]
    estimator: skpacbayes.ClusteredParticleFilter
    priors: dict[str, Any]
    n_draws: int
    n_moves: int
    random_state: int | np.random.RandomState | None
    posterior_: dict[str, NDArray[Any]]
    weights_: NDArray[Any]
    log_evidence_: float
    mean_: NDArray[Any]
    covariance_: NDArray[Any]
    ess_: float
    acceptance_rate_: float
    n_particles_: int
    n_samples_seen_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, estimator: skpacbayes.ClusteredParticleFilter, priors: dict[str, Any], *, n_draws: int = ..., n_moves: int = ..., random_state: int | np.random.RandomState | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ...) -> Self: ...
    def intervals(self, level: float = ...) -> dict[str, tuple[float, ...]]: ...
    def filter(self, X: ArrayLike, *, inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def forecast(self, h: int, *, of: Literal["observations", "states"] = ..., quantiles: Sequence[float] = ..., inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> Any: ...
    def log_likelihoods(self, X: ArrayLike, *, inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> NDArray[Any]: ...
    def score(self, X: ArrayLike, y: None = ..., *, inputs: ArrayLike | None = ..., random_state: int | np.random.RandomState | None = ...) -> float: ...
    def to_arviz(self) -> Any: ...

