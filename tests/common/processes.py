"""A new process of Python, with a cache of kernels of its own."""

import os
import subprocess
import sys
from pathlib import Path

import skpacbayes


def python(*arguments, cache):
    """Run Python on this package, with Numba's cache in a folder; return its output."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={
            **os.environ,
            "NUMBA_CACHE_DIR": str(cache),
            "PYTHONPATH": str(Path(skpacbayes.__file__).parents[1]),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
