"""Time of `import skpacbayes` and of first fits, in a new process.

Every figure is CPU time of a fresh process. Imports take turns with that of
`sklearn.cluster`. A first fit is timed after the imports, once with an empty cache of
compiled kernels and once more with the cache that the first left.
"""

import inspect
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _harness import Report, arguments
from sklearn.base import BaseEstimator

import skpacbayes

IMPORT = """
import sys, time
start = time.process_time()
import {module}
sys.stdout.write(str(time.process_time() - start))
"""

FIRST_FIT = """
import sys, time
import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from skpacbayes import {name}

X = np.random.default_rng(0).normal(size=({rows}, 10))
y = (X[:, 0] > 0).astype(int)
if get_tags({name}()).input_tags.positive_only:
    X = np.ceil(abs(X))
first = "{method}" == "partial_fit" and is_classifier({name}())
more = dict(classes=[0, 1]) if first else dict()
times = []
for _ in range(2):
    start = time.process_time()
    estimator = {name}().{method}(X, y, **more)
    if "{method}" == "partial_fit" and hasattr(estimator, "predict"):
        estimator.predict(X[:1])  # what a stream puts off, the first answer needs
    times.append(time.process_time() - start)
sys.stdout.write(" ".join(map(str, times)))
"""

# How long Numba's front end and LLVM take, and the size of what they make.
COMPILATION = """
import os, sys, time
from pathlib import Path
from numba.core import codegen
from skpacbayes.compile import compile_kernels

library, spent, depth = codegen.CPUCodeLibrary, [0.0], [0]

def timed(method):
    def wrapper(*args, **kwargs):
        depth[0] += 1
        start = time.process_time()
        try:
            return method(*args, **kwargs)
        finally:
            depth[0] -= 1
            if not depth[0]:
                spent[0] += time.process_time() - start
    return wrapper

for name in "_optimize_functions", "_optimize_final_module", "_finalize_final_module":
    setattr(library, name, timed(getattr(library, name)))
(seconds,) = compile_kernels(["{name}"]).values()
files = Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*.nb*")
size = sum(file.stat().st_size for file in files)
sys.stdout.write(f"{{seconds}} {{spent[0]}} {{size}}")
"""

IMPORT_BUDGET = 1.15
COLD_BUDGET, WARM_BUDGET = 3.0, 0.6
# A stream begins with a refresh at every row, which is work and no longer a start.
N_ROWS = {"fit": 1000, "partial_fit": 20}
AND_THEN = {"fit": "", "partial_fit": ", and predict"}


def in_new_process(code, cache=None):
    """Numbers that a new process prints; its kernels are cached in `cache`."""
    root = str(Path(skpacbayes.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # users keep their bytecode
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    return [float(number) for number in ran.stdout.split()]


def estimators():
    """Names of the public estimators, without those that are given a filter to run."""
    for name in skpacbayes.__all__:
        public = getattr(skpacbayes, name)
        if inspect.isclass(public) and issubclass(public, BaseEstimator):
            parameters = inspect.signature(public).parameters.values()
            if all(
                parameter.default is not parameter.empty for parameter in parameters
            ):
                yield name


def families():
    """Modules of the public estimators, as `skpacbayes.cluster`."""
    modules = {getattr(skpacbayes, name).__module__ for name in estimators()}
    return sorted({".".join(module.split(".")[:2]) for module in modules})


def imports(report, n_turns):
    """Table of the CPU time of imports, taking turns."""
    modules = ["sklearn.cluster", "skpacbayes", *families(), "sklearn", "numba"]
    seconds = {module: [] for module in modules}
    for turn in range(n_turns + 1):
        for module in modules:
            (spent,) = in_new_process(IMPORT.format(module=module))
            if turn:  # the first turn fills the file cache
                seconds[module].append(spent)
    reference = np.array(seconds["sklearn.cluster"])
    rows = [
        [
            module,
            f"{np.median(spent):.3f}",
            f"{np.median(spent / reference):.2f}",
            f"{IMPORT_BUDGET}" if module.startswith("skpacbayes") else "",
        ]
        for module, spent in seconds.items()
    ]
    report.table(
        f"Import in a new process, median of {n_turns} turns",
        ["module", "CPU s", "ratio to sklearn.cluster", "budget"],
        rows,
    )


def first_fits(report, n_turns):
    """Table of the CPU time of the first fit: cold, warm, and the second fit."""
    rows = []
    for name in estimators():
        for method, n_rows in N_ROWS.items():
            if not hasattr(getattr(skpacbayes, name), method):
                continue
            code = FIRST_FIT.format(name=name, method=method, rows=n_rows)
            cold, warm, again = [], [], []
            for _ in range(n_turns):
                with tempfile.TemporaryDirectory() as cache:
                    cold.append(in_new_process(code, cache)[0])
                    first, second = in_new_process(code, cache)
                    warm.append(first)
                    again.append(second)
            rest = np.median(again)
            rows.append(
                [
                    f"{name}.{method}, {n_rows} rows{AND_THEN[method]}",
                    f"{np.median(cold):.2f}",
                    f"{np.median(warm):.2f}",
                    f"{rest:.3f}",
                    f"{np.median(cold) - rest:.2f}",
                    f"{np.median(warm) - rest:.2f}",
                ]
            )
    report.table(
        f"First fit in a new process, 10 features, median of {n_turns}; "
        f"budget {COLD_BUDGET} s cold, {WARM_BUDGET} s warm",
        [
            "estimator",
            "cold CPU s",
            "warm CPU s",
            "second fit CPU s",
            "compilation, cold",
            "loading, warm",
        ],
        rows,
    )


def parts_of_compilation(report):
    """Table of what machine code in the package would save, and how large it is."""
    rows = []
    for name in estimators():
        with tempfile.TemporaryDirectory() as cache:
            seconds, backend, size = in_new_process(
                COMPILATION.format(name=name), cache
            )
        share = backend / seconds
        rows.append([name, f"{seconds:.1f}", f"{share:.0%}", f"{size / 1e6:.2f}"])
    report.table(
        "All kernels of the default options, compiled: seconds, the share of LLVM, and "
        "the size of the machine code",
        ["estimator", "seconds", "LLVM", "megabytes"],
        rows,
    )


def main():
    options = arguments(__doc__)
    report = Report("import", quick=options.quick)
    imports(report, 3 if options.quick else 15)
    report.save()
    first_fits(report, 1 if options.quick else 3)
    report.save()
    parts_of_compilation(report)
    report.save()


if __name__ == "__main__":
    main()
