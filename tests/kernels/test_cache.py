"""A cache of kernels that cannot be read or written costs time, not answers."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import skpacbayes

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is cached")

CALL = """
import sys, warnings
import numpy as np
{before}
from skpacbayes._kernels import kernel
sys.path.insert(0, {folder!r})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import summing
    assert summing.total(np.arange(5.0)) == 10.0
    assert summing.twice(np.arange(5.0)) == 20.0
for warning in caught:
    print(warning.category.__name__, warning.message)
"""
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
DISK_FULL = """
from numba.core import caching
def full(self, *args):
    raise OSError(28, "No space left on device")
caching.IndexDataCacheFile.save = full
"""


@pytest.fixture
def call(tmp_path):
    """Call kernels in a new process; return what it warned of."""
    (tmp_path / "summing.py").write_text(KERNELS)
    cache = tmp_path / "cache"
    cache.mkdir()

    def run(before=""):
        done = subprocess.run(
            [sys.executable, "-c", CALL.format(before=before, folder=str(tmp_path))],
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

    run.cache = cache
    return run


def truncated(path):
    path.write_bytes(path.read_bytes()[:40])


def emptied(path):
    path.write_bytes(b"")


def garbage(path):
    path.write_bytes(b"\x00garbage\xff" * 9)


@pytest.mark.parametrize("spoil", [truncated, emptied, garbage])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_bad_files_are_compiled_around(call, spoil, kind):
    assert call() == ""
    files = list(call.cache.rglob(f"*.{kind}"))
    assert len(files) == 2
    for path in files:
        spoil(path)
    said = call()
    assert said.count("RuntimeWarning") == 1
    assert f"Numba's cache in {call.cache}" in said
    assert call() == ""  # the cache is whole again


def test_a_full_disk_is_compiled_around(call):
    said = call(DISK_FULL)
    assert said.count("RuntimeWarning") == 1
    assert "cannot be written (OSError: [Errno 28]" in said
