"""A package that is optional and missing is named, with the extra that installs it."""

import inspect
import sys

import pytest

import skpacbayes
from skpacbayes._extras import extra_module

DISPLAYS = [name for name in skpacbayes.__all__ if name.endswith("Display")]


@pytest.mark.parametrize("name", DISPLAYS)
def test_displays_name_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    display = getattr(skpacbayes, name)
    takes_rows = "X" in inspect.signature(display.from_estimator).parameters
    with pytest.raises(ImportError) as raised:
        display.from_estimator(object(), *([None] if takes_rows else []))
    said = f'{name}.from_estimator needs matplotlib: pip install "skpacbayes[plot]"'
    assert str(raised.value) == said


def test_show_versions(capsys):
    skpacbayes.show_versions()
    said = capsys.readouterr().out
    for expected in ("python", "numba", "scikit-learn", "folder", "NUMBA_CACHE_DIR"):
        assert f" {expected}: " in said
    assert f"skpacbayes: {skpacbayes.__version__}\n" in said


def test_a_package_that_lacks_another_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import absent_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="No module named 'absent_dependency'"):
        extra_module("half_installed", "arviz", "to_arviz")
