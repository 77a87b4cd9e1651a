"""Types of the public names: up to date, and enough for `mypy --strict`."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import skpacbayes

ROOT = Path(skpacbayes.__file__).parents[1]
MAKER = ROOT / ".ci" / "make_stubs.py"


def test_the_package_says_that_it_has_types():
    assert (ROOT / "skpacbayes" / "py.typed").exists()


@pytest.mark.skipif(not MAKER.exists(), reason="only a clone has the script")
def test_stubs_are_those_of_the_docstrings():
    pytest.importorskip("river", reason="its adapters have stubs, too")
    written = dict(runpy.run_path(str(MAKER))["stubs"]())
    stale = [
        path.relative_to(ROOT).as_posix()
        for path, text in written.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, "run `make stubs`"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Return a folder in which mypy keeps the types of NumPy from test to test."""
    return tmp_path_factory.mktemp("mypy")


def check(program, cache):
    """Return what mypy says of a program."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    done = subprocess.run(
        [*command, "--cache-dir", str(cache), str(program)],
        cwd=ROOT if (ROOT / "pyproject.toml").exists() else cache,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_a_program_with_types_passes(cache):
    program = ROOT / "examples" / "typed_user.py"
    if not program.exists():
        pytest.skip("the package was installed without its examples")
    assert check(program, cache) == ""


def test_mistakes_are_found(tmp_path, cache):
    program = tmp_path / "wrong.py"
    program.write_text(
        "from skpacbayes import PACOClusterer, OnlineVIRegressor\n"
        "PACOClusterer(loss='euclidean')\n"
        "PACOClusterer().fit([[0.0]]).n_clusters_.upper()\n"
        "OnlineVIRegressor().predict([[0.0]], return_std=True).mean()\n"
    )
    said = check(program, cache)
    assert 'wrong.py:2: error: Argument "loss"' in said
    assert 'wrong.py:3: error: "int" has no attribute "upper"' in said
    assert 'wrong.py:4: error: "tuple' in said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of its short chains
def test_the_users_program_runs(capsys):
    program = ROOT / "examples" / "typed_user.py"
    if not program.exists():
        pytest.skip("the package was installed without its examples")
    runpy.run_path(str(program), run_name="__main__")
    assert "4 clusters" in capsys.readouterr().out
