# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray

from sklearn.base import BaseEstimator, DensityMixin  # type: ignore[import-untyped]

__all__ = [
    "DirichletProcessHMM",
]

class DirichletProcessHMM(DensityMixin, BaseEstimator):  # type: ignore[misc]
    n_states: Literal["auto"] | int
    emission: Literal["auto", "translated", "per_state", "poisson", "categorical"] | list[str]
    n_atoms: int
    concentration: float
    transition_prior: Literal["auto"] | float
    min_transition: float
    startprob: Literal["stationary", "dirichlet"]
    duration: Literal["geometric", "negative_binomial"]
    covariance_type: Literal["auto", "diag", "full"]
    n_iter: Literal["auto"] | int
    burn_in: int
    thin: int
    n_chains: int
    window: int | None
    random_state: int | np.random.RandomState | None
    n_jobs: int
    n_states_: int
    n_states_scores_: NDArray[Any]
    emission_: Literal["translated", "per_state", "poisson", "categorical"] | list[str]
    covariance_type_: Literal["diag", "full"]
    transmat_: NDArray[Any]
    transmat_samples_: NDArray[Any]
    n_stages_samples_: NDArray[Any]
    input_effects_: NDArray[Any]
    input_effects_samples_: NDArray[Any]
    startprob_: NDArray[Any]
    locations_: NDArray[Any]
    state_probabilities_: NDArray[Any]
    categories_: list[NDArray[Any]]
    log_likelihoods_: NDArray[Any]
    r_hat_: float
    n_iter_: int
    n_samples_seen_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, n_states: Literal["auto"] | int = ..., *, emission: Literal["auto", "translated", "per_state", "poisson", "categorical"] | list[str] = ..., n_atoms: int = ..., concentration: float = ..., transition_prior: Literal["auto"] | float = ..., min_transition: float = ..., startprob: Literal["stationary", "dirichlet"] = ..., duration: Literal["geometric", "negative_binomial"] = ..., covariance_type: Literal["auto", "diag", "full"] = ..., n_iter: Literal["auto"] | int = ..., burn_in: int = ..., thin: int = ..., n_chains: int = ..., window: int | None = ..., random_state: int | np.random.RandomState | None = ..., n_jobs: int | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: None = ..., lengths: ArrayLike | None = ..., groups: ArrayLike | None = ..., *, inputs: ArrayLike | None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: None = ...) -> Self: ...
    def predict(self, X: ArrayLike, lengths: ArrayLike | None = ..., groups: ArrayLike | None = ..., *, inputs: ArrayLike | None = ...) -> NDArray[Any]: ...
    def predict_proba(self, X: ArrayLike, lengths: ArrayLike | None = ..., groups: ArrayLike | None = ..., *, inputs: ArrayLike | None = ...) -> NDArray[Any]: ...
    def decode(self, X: ArrayLike, lengths: ArrayLike | None = ..., groups: ArrayLike | None = ..., *, inputs: ArrayLike | None = ...) -> tuple[float, NDArray[Any]]: ...
    def score_samples(self, X: ArrayLike, lengths: ArrayLike | None = ..., groups: ArrayLike | None = ..., *, inputs: ArrayLike | None = ...) -> NDArray[Any]: ...
    def score(self, X: ArrayLike, y: None = ..., lengths: ArrayLike | None = ..., groups: ArrayLike | None = ..., *, inputs: ArrayLike | None = ...) -> float: ...
    def forecast(self, n_steps: int = ..., X: ArrayLike | None = ..., quantiles: ArrayLike = ..., *, inputs: ArrayLike | None = ...) -> Any: ...
    def sample(self, n_samples: int = ..., random_state: int | np.random.RandomState | None = ..., *, inputs: ArrayLike | None = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def emission_density(self, grid: Any, state: int | None = ..., quantiles: ArrayLike | None = ...) -> NDArray[Any]: ...
    def n_states_posterior(self, n_states: ArrayLike | None = ..., *, n_iter: int = ..., n_repeats: int = ..., random_state: int | np.random.RandomState | None = ...) -> Any: ...
    def duration_probabilities(self, n_steps: int) -> NDArray[Any]: ...
    def to_arviz(self) -> Any: ...

