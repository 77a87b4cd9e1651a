"""A new process of Python, with the cache of kernels of this one or its own."""

import os
import subprocess
import sys
from pathlib import Path

import skpacbayes


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
