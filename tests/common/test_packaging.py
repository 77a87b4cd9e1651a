"""What a packager gets: every file that git keeps, and metadata that say where."""

import ast
import json
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import skpacbayes

ROOT = Path(skpacbayes.__file__).parents[1]
README = ROOT / "benchmarks/README.md"


@pytest.fixture(scope="module")
def tracked():
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not in a clone: nothing says which files there should be")
    listed = ["git", "ls-files", "-z"]
    said = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    files = set(said.stdout.strip("\0").split("\0"))
    return {name for name in files if (ROOT / name).exists()}


@pytest.mark.slow
def test_the_source_distribution_has_every_file(tracked, tmp_path):
    pytest.importorskip("setuptools", "77", reason="it builds the package")
    copy, out = tmp_path / "copy", tmp_path / "out"
    for name in tracked:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    out.mkdir()
    build = [sys.executable, "-c", "from setuptools import setup; setup()", "sdist"]
    options = ["--formats", "tar", "--dist-dir", str(out)]  # not compressed: quicker
    subprocess.run([*build, *options], cwd=copy, capture_output=True, check=True)
    with tarfile.open(next(out.glob("*.tar"))) as archive:
        files = [entry.name for entry in archive.getmembers() if entry.isfile()]
    packed = {name.partition("/")[2] for name in files}
    assert tracked - packed == set()
    made = {"PKG-INFO", "setup.cfg"}
    strange = {name for name in packed - tracked - made if "." in Path(name).name}
    assert {name for name in strange if ".egg-info" not in name} == set()


@pytest.fixture(scope="module")
def project():
    path = ROOT / "pyproject.toml"
    if not path.exists():
        pytest.skip("the package was installed without its project file")
    return tomllib.loads(path.read_text("utf-8"))


def test_the_conda_recipe_asks_for_what_the_project_does(project):
    recipe = (ROOT / "conda/meta.yaml").read_text("utf-8")
    sections = re.findall(r"^  (host|run):\n((?:    - .*\n)+)", recipe, re.M)
    asked = {
        section: set(lines.replace(" ", "").strip("-\n").split("\n-"))
        for section, lines in sections
    }
    python = "python" + project["project"]["requires-python"]
    assert asked["run"] == {python, *project["project"]["dependencies"]}
    assert asked["host"] == {python, "pip", *project["build-system"]["requires"]}


def test_the_oldest_dependencies_are_tested(project):
    path = ROOT / ".ci/oldest.txt"
    if not path.exists():
        pytest.skip("only a clone has the constraints")
    tested = dict(re.findall(r"^([\w-]+)==([\d.]+)$", path.read_text("utf-8"), re.M))
    for requirement in project["project"]["dependencies"]:
        name, _, oldest = requirement.partition(">=")
        assert tested[name] in (oldest, f"{oldest}.0")


def test_each_python_that_is_named_is_tested(project):
    path = ROOT / ".github/workflows/ci.yml"
    if not path.exists():
        pytest.skip("only a clone has the workflows")
    classifiers = " ".join(project["project"]["classifiers"])
    named = re.findall(r"Python :: (3\.\d+)", classifiers)
    assert f"python: {json.dumps(named)}" in path.read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"Python {named[0]} to {named[-1]}" in readme
    assert project["project"]["requires-python"] == f">={named[0]}"


RESULTS = sorted((ROOT / "benchmarks/results").glob("*[!k].json"))  # no `_quick`


@pytest.mark.parametrize("result", RESULTS, ids=[path.stem for path in RESULTS])
def test_saved_tables_are_of_a_script_and_read_the_same_in_both_forms(result):
    harness = runpy.run_path(str(ROOT / "benchmarks/_harness.py"))
    content = json.loads(result.read_text("utf-8"))
    assert (ROOT / f"benchmarks/bench_{result.stem}.py").exists()
    assert result.with_suffix(".md").read_text("utf-8") == harness["page"](content)


def test_the_list_of_benchmarks_has_every_script():
    if not (ROOT / "benchmarks").exists():
        pytest.skip("the package was installed without its benchmarks")
    listed = set(re.findall(r"^\| `(bench_\w+\.py)", README.read_text("utf-8"), re.M))
    assert listed == {path.name for path in (ROOT / "benchmarks").glob("bench_*.py")}


SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_what_a_benchmark_always_imports_is_installed_for_it(script, project):
    """`make bench` installs the extra; what else a script compares with may be absent.

    A package that another one happens to need may not be there tomorrow.
    """
    names = [
        name
        for node in ast.parse(script.read_text("utf-8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    ]
    extras = project["project"]["optional-dependencies"]["bench"]
    installed = {
        re.split(r"[^\w-]", needed)[0].replace("scikit-learn", "sklearn")
        for needed in [*project["project"]["dependencies"], *extras]
    }
    ours = {path.stem for path in script.parent.glob("*.py")} | {"skpacbayes"}
    tops = {name.partition(".")[0] for name in names}
    assert tops <= installed | ours | sys.stdlib_module_names
