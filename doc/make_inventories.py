"""Write the inventories in `doc/inventories`, to which intersphinx resolves names.

The documentation is built without a network. Each project below puts a public name
on a page whose address follows from the name, so its inventory is written from the
installed package: names that do not exist are not listed. Run this file after adding
a name, or when a new release of a project has new ones::

    python doc/make_inventories.py
"""

import builtins
import inspect
import zlib
from importlib import import_module
from pathlib import Path

from sklearn.utils.discovery import all_displays, all_estimators, all_functions

FOLDER = Path(__file__).parent / "inventories"

# Names beyond those that the functions below collect: (name, role, page).
NUMPY = [
    ("numpy.ndarray", "class", "reference/generated/numpy.ndarray.html#$"),
    ("numpy.random.Generator", "class", "reference/random/generator.html#$"),
    ("numpy.random.RandomState", "class", "reference/random/legacy.html#$"),
    (
        "numpy.random.SeedSequence",
        "class",
        "reference/random/bit_generators/generated/$.html#$",
    ),
    ("numpy.random.default_rng", "function", "reference/random/generator.html#$"),
]
SCIKIT_LEARN = [
    (f"sklearn.{name}", role, "modules/generated/$.html#$")
    for name, role in (
        ("callback.ProgressBar", "class"),
        ("callback.ScoringMonitor", "class"),
        ("exceptions.ConvergenceWarning", "exception"),
        ("exceptions.InconsistentVersionWarning", "exception"),
        ("exceptions.NotFittedError", "exception"),
        ("frozen.FrozenEstimator", "class"),
        ("set_config", "function"),
        ("utils.Bunch", "class"),
        ("utils.metadata_routing.MetadataRequest", "class"),
    )
]
# Labels and terms to which the docstrings of inherited methods refer.
SET_OUTPUT = "auto_examples/miscellaneous/plot_set_output.html"
SCIKIT_LEARN_LABELS = {
    ("label", "accuracy_score"): "modules/model_evaluation.html#accuracy-score",
    ("label", "df_output_transform"): SET_OUTPUT,
    ("label", "metadata_routing"): "metadata_routing.html#metadata-routing",
    ("label", "r2_score"): "modules/model_evaluation.html#r2-score",
    (
        "label",
        "sphx_glr_auto_examples_miscellaneous_plot_set_output.py",
    ): SET_OUTPUT,
    ("term", "meta-estimator"): "glossary.html#term-meta-estimator",
}
JOBLIB = [
    ("joblib.Parallel", "class", "generated/$.html#$"),
    ("joblib.dump", "function", "generated/$.html#$"),
    ("joblib.load", "function", "generated/$.html#$"),
    ("joblib.parallel_config", "class", "generated/$.html#$"),
]


def python():
    """Return the built-in functions, types and exceptions."""
    entries = []
    for name, value in vars(builtins).items():
        if isinstance(value, type) and issubclass(value, BaseException):
            entries.append((name, "exception", "library/exceptions.html#$"))
        elif inspect.isclass(value) or inspect.isbuiltin(value):
            page = (
                "stdtypes" if name in ("dict", "list", "str", "bool") else "functions"
            )
            role = "class" if inspect.isclass(value) else "function"
            entries.append((name, role, f"library/{page}.html#$"))
    return entries


def numpy():
    """Return the functions and types of the main namespace, and some others."""
    module = import_module("numpy")
    page = "reference/generated/$.html#$"
    functions = [
        (f"numpy.{name}", "function", page)
        for name in sorted(module.__all__)
        if inspect.isroutine(getattr(module, name))
    ]
    return functions + NUMPY


def scipy():
    """Return the distributions of SciPy and its special functions."""
    page = "reference/generated/$.html#$"
    stats, special = import_module("scipy.stats"), import_module("scipy.special")
    entries = [
        (f"scipy.stats.{name}", "data", page)
        for name in sorted(stats.__all__)
        if isinstance(getattr(stats, name), stats.rv_continuous | stats.rv_discrete)
    ]
    return entries + [
        (f"scipy.special.{name}", "function", page)
        for name in sorted(special.__all__)
        if callable(getattr(special, name)) and not name.startswith("_")
    ]


def scikit_learn():
    """Return every public estimator, display and function, as its API page lists."""
    page, entries = "modules/generated/$.html#$", []
    for collect, role in (
        (all_estimators, "class"),
        (all_displays, "class"),
        (all_functions, "function"),
    ):
        for name, value in collect():
            module = public_module(value.__module__, name)
            entries.append((f"{module}.{name}", role, page))
    return entries + SCIKIT_LEARN


def public_module(path, name):
    """Return the module from which a name is imported: without private parts."""
    parts = path.split(".")
    for stop in range(1, len(parts) + 1):
        module = ".".join(parts[:stop])
        if hasattr(import_module(module), name):
            return module
    return path


def write(project, version, entries, labels=None):
    """Write an inventory of version 2: text lines, compressed."""
    lines = []
    for name, role, page in entries:
        lines.append(
            f"{name} py:{role} 1 {page.replace('#$', '#' + name).replace('$', name)} -"
        )
    for (role, label), page in (labels or {}).items():
        lines.append(f"{label} std:{role} -1 {page} {label}")
    header = (
        "# Sphinx inventory version 2\n"
        f"# Project: {project}\n"
        f"# Version: {version}\n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    text = "".join(f"{line}\n" for line in sorted(set(lines)))
    data = header.encode() + zlib.compress(text.encode(), 9)
    (FOLDER / f"{project}.inv").write_bytes(data)
    print(f"{project}: {len(lines)} names, {len(data)} bytes")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write("python", "3", python())
    write("numpy", "2", numpy())
    write("scipy", "1", scipy())
    write("scikit-learn", "stable", scikit_learn(), SCIKIT_LEARN_LABELS)
    write("joblib", "stable", JOBLIB)
