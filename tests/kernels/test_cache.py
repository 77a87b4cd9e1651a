"""A cache of kernels that cannot be read or written costs time, not answers."""

import itertools
import zipfile

import numba
import pytest
from processes import KERNELS, python

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is cached")

CALL = """
import sys, warnings
import numpy as np
{before}
from skpacbayes._kernels import kernel
for folder in {folders!r}:
    sys.path.insert(0, folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import summing
        assert summing.total(np.arange(5.0)) == 10.0
        assert summing.twice(np.arange(5.0)) == 20.0
    for warning in caught:
        print(folder, warning.category.__name__, warning.message)
    del sys.modules["summing"]
"""
DISK_FULL = """
from numba.core import caching
def full(self, *args):
    raise OSError(28, "No space left on device")
caching.IndexDataCacheFile.save = full
"""


def call(folders, cache, before=""):
    """Call kernels of folders in a new process; return the lines of its warnings."""
    code = CALL.format(before=before, folders=[str(folder) for folder in folders])
    return python("-c", code, cache=cache).splitlines()


def truncated(path):
    path.write_bytes(path.read_bytes()[:40])


def emptied(path):
    path.write_bytes(b"")


def garbage(path):
    path.write_bytes(b"\x00garbage\xff" * 9)


def changed(path):
    """Change a few bytes within the code: LLVM would end the process, or run it."""
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    path.write_bytes(content)


def test_bad_files_are_compiled_around(tmp_path):
    """Each kind of damage in a folder of its own: a process warns once of each."""
    faults = list(itertools.product(("nbi", "nbc"), (truncated, emptied, garbage)))
    faults.append(("nbc", changed))
    folders = [tmp_path / f"{kind} {spoil.__name__}" for kind, spoil in faults]
    for folder in folders:
        folder.mkdir()
        (folder / "summing.py").write_text(KERNELS)
    cache = tmp_path / "cache"
    assert call(folders, cache) == []
    for folder, (kind, spoil) in zip(folders, faults, strict=True):
        files = [path for path in cache.rglob(f"*.{kind}") if folder.name in str(path)]
        assert len(files) == 2
        for path in files:
            spoil(path)
    said = call(folders, cache)
    assert len(said) == len(folders)
    for line, folder in zip(said, folders, strict=True):
        assert line.startswith(f"{folder} RuntimeWarning Numba's cache in {cache}")
        assert f"{folder.name}_" in line
        assert ("has changed" in line) == folder.name.startswith("nbc")
    assert call(folders, cache) == []  # the cache is whole again


def test_a_full_disk_is_compiled_around(tmp_path):
    (tmp_path / "summing.py").write_text(KERNELS)
    (said,) = call([tmp_path], tmp_path / "cache", DISK_FULL)
    assert "RuntimeWarning" in said
    assert "cannot be written (OSError: [Errno 28]" in said


def test_a_wheel_on_the_path_says_that_nothing_is_kept(tmp_path):
    """As does a read-only install without a home: test_import."""
    wheel = tmp_path / "summing.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("summing.py", KERNELS)
    (said,) = call([wheel], tmp_path / "cache")
    assert "RuntimeWarning Numba finds no folder for its cache" in said
    assert "NUMBA_CACHE_DIR" in said
