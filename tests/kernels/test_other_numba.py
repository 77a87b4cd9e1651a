"""Numba code of other libraries works in a process that has run our kernels."""

import numba
import pytest
from processes import KERNELS, python

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

OURS = f"""
import numpy as np
from skpacbayes._kernels import allocating
{KERNELS}

@allocating
def doubled(x):
    return 2.0 * x

def run():
    assert total(np.arange(4.0)) == 6.0
    assert doubled(np.arange(4.0)).sum() == 12.0
"""
THEIRS = """
import numpy as np
from numba import njit

@njit
def mean_of_tail(x, n):
    return x.mean() if n <= 0 else largest_of_tail(x[1:], n - 1)

@njit
def largest_of_tail(x, n):
    return x.max() if n <= 0 else mean_of_tail(x[1:], n - 1)

@njit
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

@njit
def counts(x):
    found = {0: 0}
    for value in x:
        found[int(value) % 2] = found.get(int(value) % 2, 0) + 1
    return found[0], found[1]

def run():
    x = np.arange(6.0)
    assert mean_of_tail(x, 3) == 5.0
    assert mean_of_tail(x, 2) == 3.5
    assert fibonacci(10) == 55
    assert counts(x) == (3, 3)
"""


@pytest.mark.parametrize("order", ["ours theirs ours", "theirs ours theirs"])
def test_other_numba_code_runs_before_and_after_our_kernels(tmp_path, order):
    """A recursive function ended the process, after kernels compiled or loaded.

    Numba's runtime was not emitted if one of our kernels was the first to need it.
    """
    (tmp_path / "ours.py").write_text(OURS)
    (tmp_path / "theirs.py").write_text(THEIRS)
    program = f"""
import importlib, sys
sys.path.insert(0, {str(tmp_path)!r})
for name in {order!r}.split():
    importlib.import_module(name).run()
print("done")
"""
    for _ in ("compiled", "loaded from the cache"):
        assert python("-c", program, cache=tmp_path) == "done\n"
