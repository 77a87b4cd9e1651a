"""Compiled loops: arrays in, arrays out, and nothing else of the package."""

from numba import njit


def kernel(function):
    """Compile `function` for arrays: GIL released, cached on disk where possible."""
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no directory is writable: compile once a process
        return njit(**options)(function)
