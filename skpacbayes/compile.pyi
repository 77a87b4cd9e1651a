# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray


__all__ = [
    "compile_kernels",
    "estimators",
    "main",
]

def compile_kernels(names: Iterable[str] | None = ..., *, options: bool = ...) -> dict[str, float]: ...

def estimators() -> dict[str, Any]: ...

def main(arguments: Any = ...) -> Any: ...
