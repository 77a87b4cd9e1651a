"""Compiled loops: arrays in, arrays out, and nothing else of the package.

A file of kernels is imported when it is first asked for as an attribute of this package
(``_kernels.kmeans.lloyd(...)``), and Numba with the first of them: a process that
fits nothing does without both.
"""

import functools
import gc
from importlib import import_module
from importlib.util import find_spec


def __getattr__(name):
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def kernel(function):
    """Compile `function` for arrays: GIL released, cached on disk where possible."""
    from numba import njit

    options = {"nogil": True, "error_model": "numpy"}
    try:
        compiled = njit(cache=True, **options)(function)
    except RuntimeError:  # no directory is writable: compile once a process
        compiled = njit(**options)(function)
    if compiled is not function:  # with NUMBA_DISABLE_JIT it is
        compiled.compile = _without_collection(compiled.compile)
    return compiled


def _without_collection(compile_for):
    """Compile while the garbage collector rests: a fifth of the time.

    The compiler makes millions of objects that live until it ends. The collector would
    look at all of them again and again.
    """

    @functools.wraps(compile_for)
    def wrapper(signature):
        resting = not gc.isenabled()
        gc.disable()
        try:
            return compile_for(signature)
        finally:
            if not resting:
                gc.enable()

    return wrapper
