"""Importing the package: cheap, possible anywhere, and in one direction."""

import ast
import functools
import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import skpacbayes
from skpacbayes import _kernels

PACKAGE = Path(skpacbayes.__file__).parent
FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
    for path in PACKAGE.rglob("*.py")
}
FRAME = (
    *("_arguments", "_arviz", "_base", "_chains", "_compat", "_extras", "_locks"),
    *("_repeated_rows", "_row_order", "_saving", "_sentinels", "_series"),
    *("_statistics", "_stream", "_validation"),
)
ABOVE = ("__init__", "_show_versions", "compile")  # what may import all of it
NOT_FAMILIES = (*ABOVE, *FRAME, "certificates", "_kernels")
FAMILIES = sorted({name.split(".")[1] for name in FILES} - {*NOT_FAMILIES})

FIND_CACHES = """
import importlib, json, os, pkgutil, sys
import skpacbayes
from skpacbayes import *
from skpacbayes import _kernels

assert os.path.dirname(skpacbayes.__file__).startswith(sys.argv[1])
assert "numba" not in sys.modules  # until a kernel is called
caches = {}
for found in pkgutil.iter_modules(_kernels.__path__):
    module = importlib.import_module(f"skpacbayes._kernels.{found.name}")
    for name, value in vars(module).items():
        if isinstance(value, _kernels.kernel):
            caches[f"{found.name}.{name}"] = value.dispatcher._cache.cache_path
print(json.dumps(caches))
"""


def caches_of_kernels(root, launcher=(), env=os.environ):
    """Where a new process caches each kernel, after importing every public name.

    And what it says of them.
    """
    python = [sys.executable, "-W", "default", "-c", FIND_CACHES, str(root)]
    ran = subprocess.run(
        [*launcher, *python],
        env={**env, "PYTHONPATH": str(root)},
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout), ran.stderr


def kernels():
    """Names of all kernels, each with its file."""
    for found in pkgutil.iter_modules(_kernels.__path__):
        module = importlib.import_module(f"skpacbayes._kernels.{found.name}")
        for name, value in vars(module).items():
            if isinstance(value, _kernels.kernel):
                yield f"{found.name}.{name}"


def test_a_family_is_imported_when_a_name_of_it_is_asked_for():
    """And without Numba, which waits for the first call of a kernel."""
    code = """
import importlib, sys, skpacbayes
assert not any(name.startswith("skpacbayes.") for name in sys.modules)
skpacbayes.datasets
assert "skpacbayes.cluster" not in sys.modules
skpacbayes.PACOClusterer
assert "skpacbayes.cluster" in sys.modules and "skpacbayes.online" not in sys.modules
for family in sys.argv[1:]:
    importlib.import_module(f"skpacbayes.{family}")
    assert not {"numba", "llvmlite"} & sys.modules.keys(), family
"""
    command = [sys.executable, "-W", "error", "-c", code, *FAMILIES]
    subprocess.run(command, cwd=PACKAGE.parent, check=True)


def test_public_names():
    assert set(skpacbayes.__all__) <= set(dir(skpacbayes))
    with pytest.raises(AttributeError, match="'skpacbayes' has no attribute 'Paco'"):
        assert skpacbayes.Paco


@pytest.fixture
def read_only_package(tmp_path):
    """A copy of the package in a directory that its owner may not write to."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "skpacbayes", ignore=ignore)
    everything = [tmp_path, *tmp_path.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield tmp_path
    for path in everything:
        path.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is cached")
def test_import_where_nothing_is_writable(read_only_package):
    """No cache in the package, none in a home: the kernels do without, and say so."""
    launcher = ()
    if os.geteuid() == 0:  # root may write to anything, unless it gives that up
        launcher = ("setpriv", "--bounding-set", "-dac_override")
        try:
            subprocess.run([*launcher, "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("root may write to anything, and cannot give that up here")
    absent = str(read_only_package / "no home")
    env = {"HOME": absent, "XDG_CACHE_HOME": absent, "PATH": os.environ["PATH"]}
    caches, said = caches_of_kernels(read_only_package, launcher, env)
    assert said.count("Warning: ") == said.count("RuntimeWarning: Numba finds no") == 1
    assert set(caches) == set(kernels())
    cached = [name for name, directory in caches.items() if directory]
    assert not cached


@functools.cache
def parsed(module):
    """The syntax tree of a file of the package, which tests do not change."""
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def imports(module):
    """Absolute names of what a file of the package imports."""
    package = module if FILES[module].stem == "__init__" else module.rpartition(".")[0]
    package = package.removesuffix(".__init__")
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")
            above = above[: len(above) + 1 - node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                known = inner in FILES or f"{inner}.__init__" in FILES
                yield inner if known else source


@pytest.mark.parametrize("module", sorted(FILES))
def test_names_of_a_file_are_given_once(module):
    """A second constant of the same name changes what uses the first one."""
    body = parsed(module).body
    defined = [one.name for one in body if isinstance(one, ast.FunctionDef)]
    defined += [one.name for one in body if isinstance(one, ast.ClassDef)]
    for one in body:
        if isinstance(one, ast.Assign):
            parts = (part for target in one.targets for part in ast.walk(target))
            defined += [part.id for part in parts if isinstance(part, ast.Name)]
    again = {name for name in defined if name != "_" and defined.count(name) > 1}
    assert not again


def allowed(module):
    """Parts of the package that a module may import, by the design."""
    part = module.split(".")[1]
    if part in ABOVE:
        return {"__version__"} | {name.split(".")[1] for name in FILES}
    if part == "_kernels":
        return {"_kernels"}
    if part in NOT_FAMILIES:
        return {"_kernels", *FRAME, "certificates", "__version__"}
    return {"_kernels", *FRAME, "certificates", part}


@pytest.mark.parametrize("module", sorted(FILES))
def test_imports_go_one_way(module):
    ours = [name.split(".") for name in imports(module)]
    parts = {name[1] for name in ours if name[0] == "skpacbayes" and len(name) > 1}
    assert parts <= allowed(module)


@pytest.mark.parametrize(
    "module", [name for name in sorted(FILES) if name.split(".")[1] == "_kernels"]
)
def test_kernels_import_nothing_but_their_decorator(module):
    """And other kernels: the cache of each depends on the files of all."""
    allowed, parents = (
        {"collections", "math", "numpy", "typing"},
        ["skpacbayes._kernels"],
    )
    if module.endswith(("__init__", "compiling", "linking")):  # the decorator
        allowed |= {"contextlib", "copy", "functools", "gc", "hashlib", "pathlib"}
        allowed.add("warnings")
        parents += ["numba", "llvmlite"]
    others = {name for name in imports(module) if name not in allowed}
    assert all(name.startswith(tuple(parents)) for name in others)


def private_names_of_scikit_learn(tree):
    """Yield the private names of scikit-learn that a file imports or uses."""
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        names = [name for name in names if name.split(".")[0] == "sklearn"]
        if names:
            imported |= {alias.asname or alias.name for alias in node.names}
        yield from (name for name in names if "._" in name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match("_(?!_)", node.attr):
            asked = ast.unparse(node)
            if asked.split(".")[0] in imported | {"sklearn"}:
                yield asked


@pytest.mark.parametrize("module", sorted(FILES))
def test_private_names_of_scikit_learn_are_in_one_file(module):
    """A release of scikit-learn that moves one of them breaks one file."""
    found = set(private_names_of_scikit_learn(parsed(module)))
    assert (not found) or module == "skpacbayes._compat"


@pytest.mark.parametrize(
    "line",
    [
        "from sklearn.utils.validation import _num_samples",
        "from sklearn.utils._tags import get_tags",
        "import sklearn.utils._tags",
        "from sklearn.utils import validation; validation._num_samples([1])",
        "import sklearn; sklearn.base._fit_context",
    ],
)
def test_a_private_name_of_scikit_learn_is_found(line):
    assert list(private_names_of_scikit_learn(ast.parse(line)))
