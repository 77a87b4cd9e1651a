"""A cache of kernels that cannot be read or written costs time, not answers."""

import shutil

import numba
import pytest
from processes import python

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


def call(folder, cache, before=""):
    """Call kernels of a folder in a new process; return what it warned of."""
    return python("-c", CALL.format(before=before, folder=str(folder)), cache=cache)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder of kernels, and a cache that holds them compiled."""
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "summing.py").write_text(KERNELS)
    (folder / "cache").mkdir()
    assert call(folder, folder / "cache") == ""
    return folder, folder / "cache"


def truncated(path):
    path.write_bytes(path.read_bytes()[:40])


def emptied(path):
    path.write_bytes(b"")


def garbage(path):
    path.write_bytes(b"\x00garbage\xff" * 9)


@pytest.mark.parametrize("spoil", [truncated, emptied, garbage])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_bad_files_are_compiled_around(filled, tmp_path, spoil, kind):
    folder, whole = filled
    cache = shutil.copytree(whole, tmp_path / "cache")
    files = list(cache.rglob(f"*.{kind}"))
    assert len(files) == 2
    for path in files:
        spoil(path)
    said = call(folder, cache)
    assert said.count("RuntimeWarning") == 1
    assert f"Numba's cache in {cache}" in said
    assert call(folder, cache) == ""  # the cache is whole again


def test_a_full_disk_is_compiled_around(filled, tmp_path):
    said = call(filled[0], tmp_path, DISK_FULL)
    assert said.count("RuntimeWarning") == 1
    assert "cannot be written (OSError: [Errno 28]" in said
