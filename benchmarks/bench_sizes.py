"""What each estimator takes, and how long it needs for how many rows.

Every estimator with its defaults, on rows of ten features (a sequence, counts, labels
or a table of simulations where it asks for them): CPU seconds of `fit` for 1,000 and
100,000 rows, and of `partial_fit` in blocks of 100,000 for 10,000,000. A size is left
out, as "-", where the smaller one says that it would take longer than two minutes, or
where there is no stream. Kernels are compiled before. The other columns are read off
the class.
"""

import functools
import inspect
import math
import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import get_tags

import skpacbayes
from skpacbayes.filtering.models import LocalLevel

SIZES, BLOCK = (1_000, 100_000, 10_000_000), 100_000
LONGEST = 120.0  # seconds
NOT_BY_ROWS = {  # many filters over all rows
    "ParticleMarginalMetropolis",
    "ParticleMaximumLikelihood",
    "SMC2",
}
COUNTS = {"TemperedVBMultinomialMixture"}
SEQUENCES = {"ClusteredParticleFilter", "DirichletProcessHMM"}
CENTERS = np.random.default_rng(1).normal(scale=4, size=(5, 10))


def rows_for(name, n_rows, seed):
    """Rows of five groups, and targets."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(5, size=n_rows)
    if name in SEQUENCES:  # a group for a hundred rows
        groups = groups[np.arange(n_rows) // 100]
    X = CENTERS[groups] + rng.normal(size=(n_rows, 10))
    if name in COUNTS:
        return rng.poisson(np.exp(X / 4)).astype(float), None
    y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=n_rows)
    if "Poisson" in name:
        return X, rng.poisson(np.exp(y / 8)).astype(float)
    labels = is_classifier(getattr(skpacbayes, name)()) or "Ranker" in name
    return X, (y > 0).astype(int) if labels else y


def made(name):
    public = getattr(skpacbayes, name)
    named = {"random_state": 0} if "random_state" in signature(public) else {}
    if name == "ClusteredParticleFilter":
        return public(LocalLevel(), **named)
    return public(**named)


def signature(function):
    return inspect.signature(function).parameters


def stream(name, n_rows):
    """Learn rows in blocks; CPU seconds of learning alone."""
    estimator, seconds = made(name), 0.0
    for start in range(0, n_rows, BLOCK):
        X, y = rows_for(name, min(BLOCK, n_rows - start), start)
        more = {}
        if start == 0 and "classes" in signature(estimator.partial_fit):
            more["classes"] = [0, 1]
        seconds += cpu_seconds(
            lambda X=X, y=y, m=more: estimator.partial_fit(X, y, **m)
        )
        if seconds > LONGEST:
            return None
    return seconds


def times(name, sizes):
    """CPU seconds for each size, as far as there is time."""
    X, y = rows_for(name, 200, 5)
    made(name).fit(X, y)  # compiles
    spent, before = [], 0.0
    for size in sizes:
        growth = size / sizes[max(len(spent) - 1, 0)]
        streams = hasattr(made(name), "partial_fit")
        if spent and (spent[-1] is None or before * growth > LONGEST):
            spent.append(None)
        elif size > BLOCK:
            spent.append(stream(name, size) if streams else None)
        else:
            X, y = rows_for(name, size, 0)
            before = cpu_seconds(functools.partial(made(name).fit, X, y))
            spent.append(before)
    return spent


def shown(seconds):
    return "-" if seconds is None else f"{seconds:.2g}"


def takes(name):
    """Streams, weights, missing values, certificate: yes or no."""
    estimator = made(name)
    facts = (
        hasattr(estimator, "partial_fit"),
        "sample_weight" in signature(estimator.fit),
        get_tags(estimator).input_tags.allow_nan,
        hasattr(type(estimator), "certificate"),
    )
    return ["yes" if fact else "no" for fact in facts]


def main():
    options = arguments(__doc__)
    report = Report("sizes", quick=options.quick)
    sizes = SIZES[:1] if options.quick else SIZES
    warnings.simplefilter("ignore")  # seconds are asked for, not answers
    rows = []
    for name in skpacbayes.__all__:
        public = getattr(skpacbayes, name)
        estimator = inspect.isclass(public) and issubclass(public, BaseEstimator)
        if estimator and name not in NOT_BY_ROWS:
            rows.append([name, *map(shown, times(name, sizes)), *takes(name)])
            print(*rows[-1], flush=True)
    heads = [f"1e{math.log10(size):.0f}" for size in sizes]
    last = ["stream", "weights", "missing", "certificate"]
    report.table("CPU seconds by number of rows", ["estimator", *heads, *last], rows)
    report.save()


if __name__ == "__main__":
    main()
