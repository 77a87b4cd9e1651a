"""What the benchmarks share: paired timing, tables, results on disk.

Times are CPU seconds of one thread. Methods that are compared take turns within one
process on the same data, so that a busy machine slows all of them alike; what is
quoted is the median over the turns of a ratio taken within a turn.
"""

import argparse
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import skpacbayes

RESULTS = Path(__file__).parent / "results"
LIBRARIES = [
    "skpacbayes",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "river",
    "hmmlearn",
    "dynamax",
    "pomegranate",
    "particles",
    "pygam",
    "sbi",
    "interpret-core",
    "skglm",
]


def arguments(description, *, taste=False):
    """Options of the command line: `--quick`, a taste in a fraction of the time.

    With `taste`, that is the default, and `--full` asks for everything.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer and smaller runs, to see it work"
    )
    if taste:
        parser.add_argument("--full", action="store_true", help="everything")
    return parser.parse_args()


def cpu_seconds(action):
    """CPU time of one call, over all threads of the process."""
    start = time.process_time()
    action()
    return time.process_time() - start


def interleaved(actions, n_turns=7, n_warm_up=1):
    """CPU seconds of each action in each turn.

    Parameters
    ----------
    actions : dict of str to callable
        What is timed, by name. In each turn each action runs once; who begins moves on
        from turn to turn.
    n_turns : int
        Number of turns that count.
    n_warm_up : int
        Number of turns before them, which compile and fill caches.

    Returns
    -------
    dict of str to ndarray of shape (n_turns,)
    """
    names = list(actions)
    seconds = {name: np.empty(n_turns) for name in names}
    for turn in range(-n_warm_up, n_turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            spent = cpu_seconds(actions[name])
            if turn >= 0:
                seconds[name][turn] = spent
    return seconds


def median_ratio(seconds, name, reference):
    """Median over the turns of the time of `name` in units of that of `reference`."""
    return float(np.median(seconds[name] / seconds[reference]))


def machine():
    """Describe the machine: its cores, system and versions, never its name."""
    versions = {"Python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    if "skpacbayes" not in versions:  # run from a checkout that is not installed
        import skpacbayes

        versions["skpacbayes"] = skpacbayes.__version__
    cores = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return f"{cores}; " + ", ".join(f"{k} {v}" for k, v in versions.items())


def further_behind(losses):
    """Return which methods are further from the best than two standard errors.

    losses : ndarray of shape (n_methods, n_rows)
    """
    gaps = losses - losses[losses.mean(axis=1).argmin()]
    return gaps.mean(axis=1) > 2 * gaps.std(axis=1) / np.sqrt(gaps.shape[1])


def code():
    """Return a hash of the files of the library and of the benchmarks."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for folder in (here, Path(skpacbayes.__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


class Report:
    """Tables of one benchmark: printed as they come, then saved together as JSON.

    Parameters
    ----------
    name : str
        Name of the file in `results/`.
    quick : bool
        A quick run is saved apart, as `name_quick.json`, which git ignores.
    threads : int or None
        Limit of the threads of BLAS and OpenMP; None leaves them alone.
    """

    def __init__(self, name, *, quick=False, threads=1):
        self.name, self.quick, self.threads = name, quick, threads
        self.tables = []
        self._start = time.process_time()
        self._limits = threadpool_limits(threads)
        self._code = code()
        self._kept = RESULTS / f"{name}_stages{'_quick' * quick}.json"
        print(f"{name}{' (quick)' * quick}, {datetime.date.today()}, {machine()}")

    def stage(self, name, ask):
        """Return `ask()`, or what it gave in a run that was interrupted.

        Results of stages are kept as JSON until the tables are saved, or a file of the
        library or of the benchmarks changes.
        """
        done = json.loads(self._kept.read_text()) if self._kept.exists() else {}
        done = done.get(self._code, {})
        if name not in done:
            done[name] = ask()
            self._kept.write_text(json.dumps({self._code: done}))
        return done[name]

    def table(self, title, columns, rows):
        """Print a table in Markdown, and keep it."""
        self.tables.append({"title": title, "columns": columns, "rows": rows})
        print(f"\n{in_markdown(self.tables[-1])}", flush=True)

    def save(self):
        """Write the tables and what they were measured on, as JSON and in Markdown."""
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.name}{'_quick' * self.quick}.json"
        content = {
            "benchmark": self.name,
            "quick": self.quick,
            "date": datetime.date.today().isoformat(),
            "machine": machine(),
            "threads": self.threads,
            "cpu_seconds": round(time.process_time() - self._start, 1),
            "tables": self.tables,
        }
        path.write_text(json.dumps(content, indent=1, default=_plain) + "\n")
        path.with_suffix(".md").write_text(page(json.loads(path.read_text())))
        self._kept.unlink(missing_ok=True)
        print(f"\n{content['cpu_seconds']} CPU s; saved in results/{path.name}")


def in_markdown(table):
    """Title and rows of a table in Markdown."""
    rows = [table["columns"], *table["rows"]]
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    lines = [f"| {' | '.join(map(str.ljust, row, widths))} |" for row in cells]
    return "\n".join([table["title"], "", *lines])


def page(content):
    """Everything that a benchmark saved, as a page of Markdown."""
    head = f"# `python benchmarks/bench_{content['benchmark']}.py`"
    run = f"{content['date']}, {content['machine']}; {content['cpu_seconds']} CPU s"
    tables = map(in_markdown, content["tables"])
    return "\n\n".join([head, run, *tables]) + "\n"


def _plain(value):
    """NumPy's numbers and arrays, as JSON knows them."""
    return value.tolist()
