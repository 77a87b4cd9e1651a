"""Compilation in less time: the same machine code, and Numba as it was afterwards."""

import contextlib
import re
import sys
from functools import reduce

import numba
import numpy as np
import pytest
from numba.core import errors, inline_closurecall, ir, postproc, ssa, typed_passes
from numba.core.base import BaseContext
from numba.core.cpu import CPUContext
from numba.core.types import functions
from numba.core.typing import Context, templates

import skpacbayes._kernels as kernels
from skpacbayes._kernels import compiling

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def replaced_parts():
    """What `without_repetition` replaces."""
    return (
        inline_closurecall.copy,
        postproc.PostProcessor.run,
        functions.BaseFunction.get_call_type,
        inline_closurecall.InlineClosureCallPass.run,
        typed_passes.NopythonRewrites.run_pass,
        ssa._run_block_rewrite,
        templates._OverloadFunctionTemplate._get_impl,
        BaseContext.get_abi_sizeof,
        CPUContext.load_additional_registries,
        Context.load_additional_registries,
        ir.Stmt.list_vars,
        ir.Expr.list_vars,
    )


def compiled(function, **options):
    """A kernel that is compiled anew, as all are, without a cache."""
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    dispatcher.compile = kernels._compile_faster(dispatcher.compile)
    return dispatcher


def code_and_result():
    """Machine code of a kernel, without its symbols, and what the kernel returns."""

    @kernels.part
    def clipped(x, low):
        if low is not None:
            x = x if x > low else low
        return x

    def add(x, work):
        for j in range(work.shape[0]):
            work[j] += x / (j - 1.0)
        return work.sum()

    callee = compiled(add)

    def caller(X, low, work):
        total = 0.0
        work[:] = 0.0
        for i in range(X.shape[0]):
            row = X[i, 1:]
            for j in range(row.shape[0]):
                total += clipped(row[j], low) ** 2 + max(total, 1.0) / row.shape[0]
            total += callee(total, work) + len(np.zeros(i)) + clipped(total, None)
        return total

    X, work = np.arange(1.0, 13.0).reshape(3, 4), np.empty(4)
    return code_of(compiled(caller), X, 2.0, work)


def with_closures():
    """The same of a function with closures, lists, and expressions of arrays."""

    def caller(X, scale):
        def scaled(x):
            return scale * x + 1.0

        doubled = np.array([scaled(x) for x in X[0]])
        total = 2.0 * doubled[1:] - X[1, 1:] / np.array([1.0, 2.0, 3.0])
        if scale > 1.0:
            scale = 3.0
        return reduce(add, X[2], scale) + total.sum(), total

    return code_of(compiled(caller), np.arange(1.0, 13.0).reshape(3, 4), 2.0)


@numba.njit
def add(x, y):
    return x + y / 3.0


def code_of(kernel, *arguments):
    """Machine code of a kernel, without its symbols, and what the kernel returns."""
    result = kernel(*arguments)
    (code,) = kernel.inspect_asm().values()
    lines = [line for line in code.splitlines() if "_ZN" not in line]
    addresses = re.compile(r"\.const\.\S+|\b\d{9,}\b|0x[0-9a-f]{9,}")
    return [addresses.sub("", line) for line in lines], result


@pytest.mark.slow
@pytest.mark.parametrize("of", [code_and_result, with_closures])
def test_the_machine_code_is_the_same(monkeypatch, of):
    of()  # texts of errors name the line that was the first to need a function
    fast, result = of()
    monkeypatch.setattr(kernels, "without_repetition", contextlib.nullcontext)
    plain, expected = of()
    assert len(plain) > 100
    assert fast == plain
    np.testing.assert_equal(result, expected)
    if of is code_and_result:
        assert not np.isfinite(result)  # 1 / 0 is infinite, by NumPy's model of errors


def test_this_numba_is_known():
    assert compiling.is_known(numba.version_info), "compare, then raise NEWEST_NUMBA"


@pytest.mark.parametrize("version", [(0, 60, 0), (0, 69, 1), (1, 0, 0)])
def test_an_unknown_numba_is_left_as_it_is(monkeypatch, version):
    before = replaced_parts()
    monkeypatch.setattr(numba, "version_info", version)
    with compiling.without_repetition():
        assert replaced_parts() == before
    for private in "inline_closurecall", "postproc":  # modules that are not there
        monkeypatch.delattr(numba.core, private)
        monkeypatch.setitem(sys.modules, f"numba.core.{private}", None)
    monkeypatch.setitem(sys.modules, "numba.core.types.functions", None)
    with compiling.without_repetition():
        pass


def test_numba_is_as_before_afterwards(monkeypatch):
    within = []
    original = postproc.PostProcessor.run

    def look(self, *args, **kwargs):
        within.append(replaced_parts())
        return original(self, *args, **kwargs)

    monkeypatch.setattr(postproc.PostProcessor, "run", look)
    before = replaced_parts()
    assert compiled(lambda x: x + 1.0)(1.0) == 2.0
    assert replaced_parts() == before
    assert len(within) > 0
    assert all(now != then for now, then in zip(within[0], before, strict=True))
    with pytest.raises(errors.TypingError):
        compiled(lambda x: x + "a")(1.0)
    assert replaced_parts() == before
