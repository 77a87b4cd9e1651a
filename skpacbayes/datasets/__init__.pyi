# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray


__all__ = [
    "make_hidden_markov",
    "make_mixture",
    "make_paco_model",
    "make_subspace_groups",
]

def make_hidden_markov(shape: Literal["gaussian", "bimodal", "heavy-tailed"] = ..., n_samples: int = ..., *, n_states: int = ..., n_features: int = ..., transition_matrix: ArrayLike | None = ..., separation: float = ..., random_state: int | np.random.RandomState | None = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...

def make_mixture(shape: Literal["gaussian", "heavy-tailed", "skewed", "outliers"] = ..., n_samples: int = ..., *, n_components: int = ..., n_features: int = ..., separation: float = ..., random_state: int | np.random.RandomState | None = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...

def make_paco_model(model: Any, n_samples: int = ..., random_state: int | np.random.RandomState | None = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...

def make_subspace_groups(n_features: int = ..., n_samples_per_group: int = ..., *, spread: float = ..., random_state: int | np.random.RandomState | None = ...) -> tuple[NDArray[Any], NDArray[Any]]: ...
