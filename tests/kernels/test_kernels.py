"""Every kernel does what NumPy does; the twins stand in `test_*.py`."""

import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from twins import TWINS, kernels, name_of, twin_of

import skpacbayes
from skpacbayes._kernels import allocating, kernel

HERE = Path(__file__).parent
KERNELS = kernels()
PUBLIC = [name for name in KERNELS if "._" not in name]
for file in HERE.glob("test_kernels_*.py"):
    importlib.import_module(file.stem)

FIT_ALL = """
import inspect
import numpy as np
from cases import ESTIMATORS, cheap
from twins import kernels

X = np.random.default_rng(0).exponential(size=(60, 3))  # some take counts only
y = (X[:, 0] > 1).astype(float)
read_only = X.copy()
read_only.setflags(write=False)
learners = {"ParticleMarginalMetropolis", "ParticleMaximumLikelihood", "SMC2"}
for name in sorted(ESTIMATORS.keys() - learners):
    for rows in (X, read_only, np.asfortranarray(X), X.astype(np.float32)):
        estimator = cheap(name).fit(rows, y)
        for method in ("predict", "transform", "score_samples"):
            if hasattr(estimator, method):
                getattr(estimator, method)(rows)
        if hasattr(estimator, "partial_fit"):
            learn = cheap(name).partial_fit
            if "classes" in inspect.signature(learn).parameters:
                learn(rows, y, classes=[0, 1]).partial_fit(rows[:1], y[:1])
            else:
                learn(rows, y).partial_fit(rows[:1], y[:1])
too_many = {}
for name, found in kernels().items():
    signatures = found.dispatcher.signatures
    excluded = [tuple(str(kind) == "none" for kind in kinds) for kinds in signatures]
    if any(excluded.count(one) > 2 for one in excluded):
        too_many[name] = list(map(str, signatures))
assert not too_many, too_many
"""


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


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_kernel_is_compiled_for_two_kinds_of_rows_at_most():
    """Writable and read-only: each further kind costs its user a compilation.

    Arguments that are None exclude code, for another estimator: a kernel of its own.
    """
    tests = [str(HERE), str(HERE.parent / "common")]
    paths = [*tests, str(Path(skpacbayes.__file__).parents[1])]
    subprocess.run(
        [sys.executable, "-c", FIT_ALL],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=True,
    )


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
