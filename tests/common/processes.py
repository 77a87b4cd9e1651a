"""A new process of Python, with the cache of kernels of this one or its own."""

import os
import subprocess
import sys
from pathlib import Path

import skpacbayes

# A module of two kernels.
KERNELS = """
from skpacbayes._kernels import kernel

@kernel
def total(x):
    result = 0.0
    for i in range(x.shape[0]):
        result += x[i]
    return result

@kernel
def twice(x):
    return 2.0 * total(x)
"""


def python(*arguments, cache=None):
    """Run Python on this package; return its output.

    `cache`: the folder of Numba's cache, None for that of this process.
    """
    own = {"NUMBA_CACHE_DIR": str(cache)} if cache else {}
    done = subprocess.run(
        [sys.executable, *arguments],
        env={
            **os.environ,
            **own,
            "PYTHONPATH": str(Path(skpacbayes.__file__).parents[1]),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
