"""The frame holds for a newcomer's estimator, written as `CONTRIBUTING.md` says."""

import ast
import inspect
import os
import pickle
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import running_gaussian
from cases import ESTIMATORS
from running_gaussian import RunningGaussian
from sklearn.utils.estimator_checks import parametrize_with_checks
from states import changes, state_of
from streaming_laws import LAWS, LAWS_OF_PLACE, PLACES, Stream, rounded

import skpacbayes


def rows(n, seed):
    return (rounded(np.random.default_rng(seed).normal(size=(n, 3))),)


# A row of weight two is not, to the last digit, two rows.
STREAM = Stream(
    RunningGaussian,
    rows,
    length=60,
    inexact={"integer_weights": {"_moments": None, "mean_": 1e-12, "variance_": 1e-9}},
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(law):
    law(STREAM)


@pytest.mark.parametrize("law", LAWS_OF_PLACE, ids=lambda law: law.__name__)
@pytest.mark.parametrize("place", [place for place in PLACES if place])
def test_law_elsewhere(law, place):
    law(STREAM.placed(place))


@parametrize_with_checks([RunningGaussian()])
def test_scikit_learn(estimator, check):
    check(estimator)


# Files of tests/common whose tests of the example are left out, and why.
LEFT_OUT = {
    "test_docstrings.py": "sections for each parameter would double its length",
    "test_frame.py": "its tests are this file's own",
}
EXPORTS = {
    "__init__.py": "_FAMILY_OF['RunningGaussian'] = 'mixture'\n"
    "__all__.append('RunningGaussian')\n",
    "mixture/__init__.py": "from ._running_gaussian import RunningGaussian\n"
    "__all__.append('RunningGaussian')\n",
    "_saving.py": "TRUSTED_TYPES.append("
    "'skpacbayes.mixture._running_gaussian.RunningGaussian')\n",
}


@pytest.mark.slow
def test_every_law_of_all_estimators(tmp_path):
    """All tests of tests/common with its name, in a package that exports it."""
    package, own = tmp_path / "skpacbayes", Path(skpacbayes.__file__).parent
    shutil.copytree(own, package, ignore=shutil.ignore_patterns("__pycache__"))
    source = package / "mixture" / "_running_gaussian.py"
    shutil.copy(running_gaussian.__file__, source)
    for file, lines in EXPORTS.items():
        with (package / file).open("a") as exporting:
            exporting.write(lines)
    tests = Path(__file__).parent
    root = tests.parents[1]
    options = [f"--ignore={tests / file}" for file in LEFT_OUT]
    options += [f"--rootdir={root}", "-c", root / "setup.cfg", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-k", "RunningGaussian", *options, tests],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    of_the_example = re.search(r"(\d+) passed", done.stdout)[1]
    assert int(of_the_example) >= 100


def test_it_is_short():
    assert len(inspect.getsource(running_gaussian).splitlines()) < 80


def test_a_pickle_of_another_version_warns(monkeypatch):
    saved = pickle.dumps(RunningGaussian().fit(*rows(9, 0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(saved)
    monkeypatch.setattr("skpacbayes._base.__version__", "99.0")
    message = f"RunningGaussian was saved by skpacbayes {skpacbayes.__version__} and"
    with pytest.warns(skpacbayes._base.VersionWarning, match=message):
        pickle.loads(saved)


@pytest.mark.parametrize("steps", [3, np.int64(3), range(3), iter(range(3))])
def test_tasks_are_a_number_of_any_type_or_the_steps(steps):
    """As a grid over `np.arange` sets a number of iterations."""
    assert list(RunningGaussian()._tasks(steps, "step")) == [0, 1, 2]


class Subclass(RunningGaussian):
    """A user's own: it keeps something of its own, and sets it before `fit`."""

    def fit(self, X, y=None, sample_weight=None):
        self._calls = getattr(self, "_calls", 0) + 1
        return super().fit(X, y, sample_weight)


def test_fit_forgets_what_a_fit_has_set_and_keeps_what_the_user_has():
    X = pd.DataFrame(rows(9, 0)[0], columns=["a", "b", "c"])
    estimator = Subclass().fit(X)
    estimator.note = "mine"
    assert list(estimator.feature_names_in_) == ["a", "b", "c"]
    estimator.partial_fit(X).fit(X.to_numpy())
    assert not hasattr(estimator, "feature_names_in_")
    assert (estimator.note, estimator._calls) == ("mine", 2)


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    estimator = RunningGaussian().fit(*rows(9, 0))
    before = state_of(estimator)
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit([[np.nan, 1.0]])
    estimator.set_params(smallest_variance=-1.0)
    with pytest.raises(ValueError, match="smallest_variance"):
        estimator.fit(*rows(9, 0))
    estimator.set_params(smallest_variance=1e-7)
    assert not changes(before, state_of(estimator))


def test_where_to_read():
    """At most five files for each estimator, the first of which is its own."""
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (`[A-Z].*?) \| (.*) \|$", text, re.MULTILINE)
    named = [name for names, _ in rows for name in re.findall(r"`(\w+)`", names)]
    assert sorted(named) == sorted(ESTIMATORS)
    for names, files in rows:
        found = re.findall(r"`(_\w+\.py)`", files)
        assert 1 <= len(found) <= 5
        for name in re.findall(r"`(\w+)`", names):
            own = Path(inspect.getfile(getattr(skpacbayes, name)))
            assert all((own.parent / file).exists() for file in found)
            shared = "_mixture.py"  # what the faces of one class have in common
            assert own.name in found or shared in found


@pytest.mark.parametrize("name", ESTIMATORS)
def test_public_methods_come_first(name):
    """And those that learn and predict stand in the file of the estimator."""
    public = ESTIMATORS[name]
    own = Path(inspect.getfile(public))
    (definition,) = [
        part
        for part in ast.parse(own.read_text()).body
        if isinstance(part, ast.ClassDef) and part.name == public.__name__
    ]
    methods = [
        part.name for part in definition.body if isinstance(part, ast.FunctionDef)
    ]
    are_private = [method[0] == "_" for method in methods if method[:2] != "__"]
    assert are_private == sorted(are_private)
    shared = "_mixture.py"  # what the faces of one class have in common
    for method in "fit", "partial_fit", "predict":
        found = inspect.unwrap(getattr(public, method, public.fit))
        assert Path(inspect.getfile(found)).name in (own.name, shared)
