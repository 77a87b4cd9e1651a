"""Versions and system, for bug reports."""

import os
import platform
import sys
from importlib import metadata

from . import __version__

_REQUIRED = ("scikit-learn", "numpy", "scipy", "joblib", "numba", "llvmlite")
_OPTIONAL = (
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "rich",
    "arviz",
    "dask",
    "river",
    "skops",
)


def show_versions():
    """Print information for bug reports.

    It contains the versions of Python, of this package and of the packages that it
    uses, and the folder of Numba's cache of compiled kernels.

    Examples
    --------
    >>> import skpacbayes
    >>> skpacbayes.show_versions()
    <BLANKLINE>
    System:
    ...
    Packages:
      skpacbayes: ...
    """
    sections = {
        "System": _system(),
        "Packages": {"skpacbayes": __version__, **_versions(_REQUIRED)},
        "Optional packages": _versions(_OPTIONAL),
        "Numba's cache": _cache(),
    }
    for title, entries in sections.items():
        print(f"\n{title}:")
        width = max(map(len, entries))
        for name, value in entries.items():
            print(f"  {name:>{width}}: {value}")


def _system():
    return {
        "python": sys.version.replace("\n", " "),
        "executable": sys.executable,
        "machine": platform.platform(),
        "cores": os.cpu_count(),
    }


def _versions(names):
    """Return the version of each installed package, or None."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _cache():
    from ._kernels import cache_folder

    return {
        "folder": cache_folder()
        or "none is writable: kernels are compiled in each process",
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", "not set"),
    }
