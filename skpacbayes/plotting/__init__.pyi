# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray


__all__ = [
    "ChoiceDisplay",
    "ClusterCountDisplay",
    "EllipsesDisplay",
    "EmissionsDisplay",
    "FilterDisplay",
    "PartialEffectsDisplay",
    "ParticlesDisplay",
    "ProgressiveLossDisplay",
    "RegimesDisplay",
    "StreamDisplay",
    "TraceDisplay",
]

class ChoiceDisplay:
    curves: dict[str, tuple[NDArray[Any], ...]]
    chosen: float
    xlabel: str
    ylabel: str
    xscale: Literal["linear", "log"]
    ax_: Any
    figure_: Any
    def __init__(self, curves: dict[str, tuple[NDArray[Any], ...]], chosen: float, *, xlabel: str, ylabel: str, xscale: Literal["linear", "log"] = ...) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class ClusterCountDisplay:
    probabilities: NDArray[Any]
    n_clusters: int
    ax_: Any
    figure_: Any
    def __init__(self, probabilities: NDArray[Any], n_clusters: int) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: skpacbayes.PACOClusterer, *, ax: Any = ..., bar_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, ax: Any = ..., bar_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class EllipsesDisplay:
    means: NDArray[Any]
    covariances: NDArray[Any]
    weights: NDArray[Any]
    n_stds: float
    rows: NDArray[Any]
    labels: NDArray[Any]
    names: tuple[str, ...]
    ax_: Any
    figure_: Any
    def __init__(self, means: NDArray[Any], covariances: NDArray[Any], weights: NDArray[Any], *, n_stds: float = ..., rows: NDArray[Any] | None = ..., labels: NDArray[Any] | None = ..., names: tuple[str, ...] = ...) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: skpacbayes.TemperedVBGaussianMixture | skpacbayes.PACOClusterer, X: ArrayLike | None = ..., *, features: tuple[int, ...] | str = ..., n_stds: float = ..., ax: Any = ..., scatter_kwargs: dict[Any, Any] | None = ..., ellipse_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, ax: Any = ..., scatter_kwargs: dict[Any, Any] | None = ..., ellipse_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class EmissionsDisplay:
    grid: NDArray[Any]
    densities: NDArray[Any]
    bands: NDArray[Any]
    rows: NDArray[Any]
    names: list[str]
    name: str
    categorical: bool
    ax_: Any
    figure_: Any
    def __init__(self, grid: NDArray[Any], densities: NDArray[Any], *, bands: NDArray[Any] | None = ..., rows: NDArray[Any] | None = ..., names: list[str] | None = ..., name: str = ..., categorical: bool = ...) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: skpacbayes.DirichletProcessHMM, X: ArrayLike, *, feature: int | str = ..., states: list[int] | None = ..., names: list[str] | None = ..., probability: float = ..., grid: ArrayLike | None = ..., rows: bool = ..., ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class FilterDisplay:
    means: NDArray[Any]
    stds: NDArray[Any]
    times: NDArray[Any]
    n_stds: float
    rows: NDArray[Any]
    name: str
    function: Callable[..., Any]
    ax_: Any
    figure_: Any
    def __init__(self, means: NDArray[Any], stds: NDArray[Any], *, times: NDArray[Any] | None = ..., n_stds: float = ..., rows: NDArray[Any] | None = ..., name: str = ..., function: Callable[..., Any] | None = ...) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: skpacbayes.ClusteredParticleFilter, X: ArrayLike, *, smooth: bool = ..., state: int = ..., times: ArrayLike | None = ..., n_stds: float = ..., rows: bool = ..., function: Callable[..., Any] | None = ..., inputs: ArrayLike | None = ..., ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class PartialEffectsDisplay:
    features: list[int] | tuple[int, ...]
    points: list[NDArray[Any]]
    effects: list[NDArray[Any]]
    stds: list[NDArray[Any]]
    probabilities: list[float]
    names: list[str] | tuple[str, ...]
    marks: list[NDArray[Any]]
    categorical: list[bool]
    axes_: NDArray[Any]
    figure_: Any
    def __init__(self, features: list[int] | tuple[int, ...], points: list[NDArray[Any]], effects: list[NDArray[Any]], stds: list[NDArray[Any]], *, probabilities: list[float], names: list[str] | tuple[str, ...], marks: list[NDArray[Any]] | None = ..., categorical: list[bool] | None = ...) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: skpacbayes.SparseAdditiveGibbsRegressor, X: ArrayLike | None = ..., *, features: Any = ..., target: Any = ..., figure: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, figure: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class ParticlesDisplay:
    particles: NDArray[Any]
    weights: NDArray[Any]
    names: tuple[str, ...]
    ax_: Any
    figure_: Any
    def __init__(self, particles: NDArray[Any], weights: NDArray[Any], *, names: tuple[str, ...] = ...) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: skpacbayes.ClusteredParticleFilter, *, states: tuple[int, ...] = ..., names: tuple[str, ...] | None = ..., ax: Any = ..., scatter_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, ax: Any = ..., scatter_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class ProgressiveLossDisplay:
    n_rows: NDArray[Any]
    losses: NDArray[Any]
    certificate: skpacbayes.Certificate
    name: str
    estimator_: Any
    ax_: Any
    figure_: Any
    def __init__(self, n_rows: NDArray[Any], losses: NDArray[Any], *, certificate: skpacbayes.Certificate | None = ..., name: str = ...) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: Any, X: ArrayLike, y: ArrayLike | None = ..., *, n_points: int = ..., ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class RegimesDisplay:
    values: NDArray[Any]
    probabilities: NDArray[Any]
    times: NDArray[Any]
    name: str
    ax_: Any
    figure_: Any
    def __init__(self, values: NDArray[Any], probabilities: NDArray[Any], *, times: NDArray[Any] | None = ..., name: str = ...) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: skpacbayes.DirichletProcessHMM, X: ArrayLike, *, feature: int | str = ..., times: ArrayLike | None = ..., inputs: ArrayLike | None = ..., ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class StreamDisplay:
    n_rows: NDArray[Any]
    values: NDArray[Any]
    name: str
    truth: NDArray[Any]
    estimator_: Any
    ax_: Any
    figure_: Any
    def __init__(self, n_rows: NDArray[Any], values: NDArray[Any], *, name: str = ..., truth: NDArray[Any] | None = ...) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: Any, X: ArrayLike, y: ArrayLike | None = ..., *, attribute: str = ..., every: int = ..., truth: ArrayLike | None = ..., ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, label: str | None = ..., ax: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...


class TraceDisplay:
    series: dict[str, NDArray[Any]]
    r_hat_: dict[str, float]
    axes_: NDArray[Any]
    figure_: Any
    def __init__(self, series: dict[str, NDArray[Any]]) -> None: ...
    @classmethod
    def from_estimator(cls, estimator: Any, *, n_variables: int = ..., figure: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...
    def plot(self, *, figure: Any = ..., line_kwargs: dict[Any, Any] | None = ...) -> Self: ...

