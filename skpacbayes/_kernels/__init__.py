"""Compiled loops: arrays in, arrays out, and nothing else of the package."""

import functools
import gc

from numba import njit


def kernel(function):
    """Compile `function` for arrays: GIL released, cached on disk where possible."""
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
