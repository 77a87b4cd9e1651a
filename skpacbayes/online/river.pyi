# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray


__all__ = [
    "RiverClassifier",
    "RiverRegressor",
]

class RiverClassifier:
    estimator: Any
    classes: Any
    n_hashed: int
    def __init__(self, estimator: Any, classes: Any = ..., n_hashed: int = ...) -> None: ...
    def learn_one(self, x: dict[Any, Any], y: Any) -> Any: ...
    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, Any]: ...
    def predict_one(self, x: dict[Any, Any]) -> Any: ...


class RiverRegressor:
    estimator: Any
    n_hashed: int
    def __init__(self, estimator: Any, n_hashed: int = ...) -> None: ...
    def learn_one(self, x: dict[Any, Any], y: float) -> Any: ...
    def predict_one(self, x: dict[Any, Any]) -> float: ...
    def predict_quantiles_one(self, x: dict[Any, Any], quantiles: Sequence[float] = ...) -> dict[float, float]: ...

