"""Which test is the NumPy twin of which kernel."""

import contextlib
import functools
import importlib
import pkgutil

import numba
import pytest

import skpacbayes._kernels

TWINS: dict = {}  # {"module.kernel": name of the test}


def name_of(kernel):
    return f"{kernel.__module__.removeprefix('skpacbayes._kernels.')}.{kernel.__name__}"


@functools.cache
def kernels():
    """Every kernel of the package, by name."""
    package = skpacbayes._kernels
    modules = [
        importlib.import_module(f"{package.__name__}.{found.name}")
        for found in pkgutil.iter_modules(package.__path__)
    ]
    return {
        name_of(value): value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, skpacbayes._kernels.kernel)
        if value.__module__ == module.__name__
    }


def called():
    """Return the kernels that were called."""
    return [one for one in kernels().values() if "dispatcher" in vars(one)]


def signatures():
    """Return the types of arguments that kernels were called with, by kernel."""
    return {name_of(one): one.dispatcher.signatures for one in called()}


@contextlib.contextmanager
def in_python():
    """Let kernels run as Python, also those that others call: nothing is compiled."""
    types = {type(one): one.py_func for one in kernels().values()}
    before = {kind: vars(kind).get("__call__") for kind in types}
    for kind, function in types.items():
        kind.__call__ = staticmethod(function)
    try:
        yield
    finally:
        for kind, call in before.items():
            if call is None:
                del kind.__call__
            else:
                kind.__call__ = call


def twin_of(kernel):
    """Mark a test as the twin of a kernel.

    The test takes the argument `kernel` and runs twice: on the compiled kernel and on
    the Python function it was compiled from, where all other kernels are Python, too.
    It compares what the kernel does to what NumPy does in other words::

        @twin_of(kmeans.add_rows)
        def test_add_rows(kernel): ...
    """

    def register(test):
        TWINS[name_of(kernel)] = test.__name__
        forms = {"compiled": kernel, "python": kernel.py_func}
        if numba.config.DISABLE_JIT:
            del forms["compiled"]
        return pytest.mark.parametrize("kernel", forms.values(), ids=forms)(test)

    return register
