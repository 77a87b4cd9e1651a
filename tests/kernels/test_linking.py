"""Callees are optimised within the kernels that call them: the same bits come out."""

import contextlib
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core import codegen

import skpacbayes._kernels as kernels
from skpacbayes._kernels import kernel, linking

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def replaced_parts():
    """What `optimised_once` replaces."""
    return (
        codegen.JITCPUCodegen._library_class,
        codegen.JITCPUCodegen.set_env,
        codegen.JITCPUCodegen._function_pass_manager,
        getattr(codegen, "create_pass_builder", None),
    )


def add_scaled(x, factor, into):
    total = 0.0
    for j in range(x.shape[0]):
        into[j] += factor * x[j] / (1.0 + abs(into[j]))
        total += np.exp(-into[j]) * x[j]
    return total


def check(value):
    if not value < 1e9:
        raise ValueError("too large for a test")
    return np.sqrt(value)


@contextlib.contextmanager
def uncached(monkeypatch):
    """Kernels that no other process compiled."""
    with monkeypatch.context() as patch:
        patch.setattr(numba.core.caching.FunctionCache, "load_overload", no_overload)
        yield


def no_overload(self, *arguments):
    return None


def two_levels():
    """A kernel that calls a kernel that calls a kernel, and these."""
    inner, checked = kernel(add_scaled), kernel(check)

    def middle(X, into):
        total = 0.0
        for i in range(X.shape[0]):
            total += inner(X[i], 1.0 / (i + 3.0), into)
        return checked(abs(total))

    between = kernel(middle)

    def outer(X, into):
        first = between(X, into)
        for j in range(into.shape[0]):
            into[j] = checked(into[j] * into[j]) + first
        return inner(X[0], 0.1, into)

    return kernel(outer), between, inner, checked


def answers(X):
    into = np.zeros(X.shape[1])
    total = two_levels()[0](X, into)
    return total, into


def test_the_results_are_the_same(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 37))
    with uncached(monkeypatch):
        total, into = answers(X)
        monkeypatch.setattr(kernels, "optimised_once", contextlib.nullcontext)
        expected, plain = answers(X)
    assert np.isfinite(expected)
    assert total == expected
    np.testing.assert_array_equal(into, plain)


def test_only_what_python_calls_is_emitted(monkeypatch):
    with uncached(monkeypatch):
        outer, between, inner, checked = two_levels()
        X, into = np.ones((2, 3)), np.zeros(3)
        outer(X, into)

        def emitted(dispatcher):
            (compiled,) = dispatcher.overloads.values()
            return compiled.library._emitted

        assert emitted(outer.dispatcher)
        for callee in between, inner, checked:
            assert not emitted(callee.callee)
            assert callee.dispatcher.overloads == {}  # Python did not call it
        # Python may all the same, and then it is compiled for Python.
        np.testing.assert_allclose(inner(X[0], 1.0, np.zeros(3)), 3 * np.exp(-1.0))
        assert emitted(inner.dispatcher)


def test_a_kernel_that_python_has_called_is_not_compiled_again(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 37))
    with uncached(monkeypatch):
        total, into = answers(X)
        outer, _between, inner, checked = two_levels()
        inner(X[0], 0.1, np.zeros(37))
        found = np.zeros(37)
        assert outer(X, found) == total
        np.testing.assert_array_equal(found, into)
        assert "callee" not in vars(inner)
        assert "callee" in vars(checked)


TWO = """
from skpacbayes._kernels import kernel

@kernel
def inner(x):
    for i in range(len(x)):
        x[i] = x[i] / 2.0 + 1.0
    return x[0]

@kernel
def outer(x):
    return inner(x) + inner(x)
"""
CALL = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import two
from skpacbayes._kernels.online_losses import LOG, implicit_gradients
print(implicit_gradients(LOG, 1.0, 0.3, 1.7, 0.9))
print(sum(implicit_gradients.dispatcher.stats.cache_hits.values()))
for name in sys.argv[2:]:
    getattr(two, name)(x := np.arange(9.0))
    print(x.sum(), sum(getattr(two, name).dispatcher.stats.cache_hits.values()))
"""


def test_kernels_from_the_cache(tmp_path):
    """They give the same, and can be part of another kernel."""
    (tmp_path / "two.py").write_text(TWO)
    inner, outer = "27.0 0\n", "22.5 0\n"

    def run(*names):
        command = [sys.executable, "-c", CALL, str(tmp_path), *names]
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        lines = subprocess.run(
            command, env=environment, capture_output=True, check=True, text=True
        ).stdout.splitlines(keepends=True)
        return lines[0], int(lines[1]), "".join(lines[2:])

    gradients, n_hits, printed = run("inner")
    assert (n_hits, printed) == (0, inner)
    printed = inner.replace(" 0", " 1") + outer
    assert run("inner", "outer") == (gradients, 1, printed)
    printed = (inner + outer).replace(" 0", " 1")
    assert run("inner", "outer") == (gradients, 1, printed)


def test_a_callee_can_raise(monkeypatch):
    with uncached(monkeypatch):
        outer = two_levels()[0]
        for _ in range(2):
            with pytest.raises(ValueError, match="too large for a test"):
                outer(np.full((2, 3), np.nan), np.zeros(3))
        assert np.isfinite(outer(np.ones((2, 3)), np.zeros(3)))


@pytest.mark.parametrize("version", [(0, 60, 0), (0, 69, 1), (1, 0, 0)])
def test_an_unknown_numba_is_left_as_it_is(monkeypatch, version):
    before = replaced_parts()
    monkeypatch.setattr(numba, "version_info", version)
    with linking.optimised_once():
        assert replaced_parts() == before


def test_numba_is_as_before_afterwards():
    before, own = replaced_parts(), dict(vars(codegen.JITCPUCodegen))
    with linking.optimised_once():
        within, inside = replaced_parts(), dict(vars(codegen.JITCPUCodegen))
        with linking.optimised_once():
            pass
        assert dict(vars(codegen.JITCPUCodegen)) == inside
    assert replaced_parts() == before
    assert dict(vars(codegen.JITCPUCodegen)) == own
    assert within != before
    assert within[0] is not before[0]
    with pytest.raises(RuntimeError), linking.optimised_once():
        raise RuntimeError
    assert replaced_parts() == before
