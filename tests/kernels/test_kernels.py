"""Every kernel does what NumPy does; the twins stand in `test_*.py`."""

import importlib
import inspect
from pathlib import Path

import numba
import numpy as np
import pytest
from twins import TWINS, kernels, name_of, twin_of

from skpacbayes._kernels import allocating, kernel

HERE = Path(__file__).parent
KERNELS = kernels()
PUBLIC = [name for name in KERNELS if "._" not in name]
for file in HERE.glob("test_kernels_*.py"):
    importlib.import_module(file.stem)


@pytest.mark.parametrize("name", PUBLIC)
def test_kernel_has_a_twin(name):
    """Those with a leading underscore are tested through the kernels that call them."""
    assert name in TWINS, f"no test is marked @twin_of({name})"


DECORATORS = kernel, allocating


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_compiled_by_one_of_two_decorators(name):
    expected = [make(lambda: None).dispatcher.targetoptions for make in DECORATORS]
    assert all(options["nogil"] for options in expected)
    assert KERNELS[name].dispatcher.targetoptions in expected


@pytest.mark.slow
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_numba_refuses_a_kernel_that_makes_an_array_and_does_not_say_so():
    """Without counts of references the array would be lost, or freed in use."""
    for function in (lambda n: np.empty(n).size, lambda n: (np.arange(3)[:n],)):
        with pytest.raises(numba.core.errors.NumbaError):
            kernel(function)(2)
    # On lines of their own, as the cache knows functions by their lines.
    for function in (lambda n: np.empty(n).size, lambda n: (np.arange(3)[:n],)):
        allocating(function)(2)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_numba_refuses_a_kernel_that_returns_a_view():
    with pytest.raises(numba.core.errors.NumbaError):
        kernel(lambda x: x[1:])(np.ones(3))


@pytest.mark.parametrize("name", PUBLIC)
def test_kernel_says_what_it_does(name):
    assert inspect.getdoc(KERNELS[name])


def test_a_twin_runs_compiled_and_not():
    @kernel
    def double(x):
        return 2 * x

    def test_double(kernel):
        assert kernel(2.0) == 4.0

    try:
        (mark,) = twin_of(double)(test_double).pytestmark
        assert TWINS[name_of(double)] == "test_double"
    finally:
        TWINS.pop(name_of(double), None)
    name, forms = mark.args
    assert name == "kernel"
    both = [double, double.py_func]
    assert list(forms) == (both[1:] if numba.config.DISABLE_JIT else both)
