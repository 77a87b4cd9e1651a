# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray

from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin  # type: ignore[import-untyped]

__all__ = [
    "ABCPosteriorKDE",
    "PosteriorDisplay",
    "SimulationTable",
    "simulate",
]

class ABCPosteriorKDE(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    n_neighbors: Literal["cv", "rate"] | int | float
    bandwidth: Literal["cv", "silverman", "rate"] | float
    adjustment: Literal["cv", "linear", "heteroscedastic"] | None
    metric: Literal["cv", "mad", "whiten", "regression"] | None
    parameter_transform: Literal["log", "logit"] | list[Any] | None
    bounds: Any
    algorithm: Literal["auto", "brute", "kd_tree"]
    selection: Literal["local", "global"]
    n_validation: int
    random_state: int | np.random.RandomState | None
    n_jobs: int
    n_neighbors_: int
    bandwidth_: float
    adjustment_: str | None
    metric_: str | None
    scale_: NDArray[Any]
    cv_table_: dict[str, NDArray[Any]]
    n_simulations_: int | float
    n_outputs_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    def __init__(self, n_neighbors: Literal["cv", "rate"] | int | float = ..., *, bandwidth: Literal["cv", "silverman", "rate"] | float = ..., adjustment: Literal["cv", "linear", "heteroscedastic"] | None = ..., metric: Literal["cv", "mad", "whiten", "regression"] | None = ..., parameter_transform: Literal["log", "logit"] | list[Any] | None = ..., bounds: Any = ..., algorithm: Literal["auto", "brute", "kd_tree"] = ..., selection: Literal["local", "global"] = ..., n_validation: int = ..., random_state: int | np.random.RandomState | None = ..., n_jobs: int | None = ...) -> None: ...
    def fit(self, X: ArrayLike | skpacbayes.SimulationTable, y: Any = ..., sample_weight: ArrayLike | None = ...) -> Self: ...
    def partial_fit(self, X: ArrayLike | skpacbayes.SimulationTable, y: Any = ..., sample_weight: ArrayLike | None = ...) -> Self: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = ...) -> Any: ...
    @overload
    def predict(self, X: ArrayLike, *, return_std: Literal[True]) -> tuple[Any, NDArray[Any]]: ...
    def predict_quantiles(self, X: ArrayLike, quantiles: float | ArrayLike = ...) -> NDArray[Any]: ...
    def log_density(self, X: ArrayLike, grid: Any) -> NDArray[Any]: ...
    def score_samples(self, X: ArrayLike, y: ArrayLike | None = ...) -> NDArray[Any]: ...
    def score(self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None = ...) -> float: ...
    def loo_score(self, random_state: int | np.random.RandomState | None = ...) -> float: ...
    def sample(self, X: ArrayLike, n_samples: int = ..., random_state: int | np.random.RandomState | None = ...) -> NDArray[Any]: ...
    def to_arviz(self, X: ArrayLike, n_samples: int = ..., random_state: int | np.random.RandomState | None = ...) -> Any: ...
    def kneighbors(self, X: ArrayLike, n_neighbors: int | None = ..., return_distance: bool = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...


class PosteriorDisplay:
    draws: NDArray[Any]
    truth: NDArray[Any]
    names: list[str]
    probability: float
    axes_: NDArray[Any]
    figure_: Any
    def __init__(self, draws: NDArray[Any], *, truth: NDArray[Any] | None = ..., names: list[str] | None = ..., probability: float = ...) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: skpacbayes.ABCPosteriorKDE, X: ArrayLike, *, truth: ArrayLike | None = ..., names: list[str] | None = ..., probability: float = ..., n_samples: int = ..., random_state: int | np.random.RandomState | None = ..., figure: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, figure: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class SimulationTable:
    summaries: Any
    parameters: Any
    n_failed: Any
    bounds: NDArray[Any]


def simulate(prior: Any, simulator: Callable[..., Any], n_simulations: int, *, random_state: int | np.random.RandomState | None = ..., n_jobs: int | None = ..., batch_size: int = ..., vectorized: bool = ..., callback: Callable[..., Any] | None = ..., bounds: Any = ..., proposal: skpacbayes.ABCPosteriorKDE | None = ..., observed: ArrayLike | None = ...) -> skpacbayes.SimulationTable: ...
