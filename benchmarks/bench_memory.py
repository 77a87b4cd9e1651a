"""How much memory a fit needs beside its table, and how large a saved estimator is.

The estimators of `bench_sizes.py` that fit 100,000 rows of ten features in seconds,
with their defaults, on the same rows; mixtures have one component. The memory
is the largest that Python and NumPy allocate during `fit` of a million rows and hold at
once, over that of the table, 80 MB; work space inside compiled loops is not seen. The
file is the pickle.
"""

import inspect
import pickle
import tracemalloc
import warnings

from _harness import Report, arguments
from bench_sizes import made, rows_for, signature
from sklearn.base import BaseEstimator

import skpacbayes

SMALL, SOME, MANY = 1_000, 100_000, 1_000_000
SLOW = {
    "ABCPosteriorKDE",
    "ClusteredParticleFilter",
    "DirichletProcessHMM",
    "ParticleMarginalMetropolis",
    "ParticleMaximumLikelihood",
    "SMC2",
    "SparseAdditiveGibbsClassifier",
    "SparseAdditiveGibbsPoissonRegressor",
    "SparseAdditiveGibbsRanker",
    "SubspaceMixture",
}
BLOCK = 10_000


def memory_of_fit(name, n_rows):
    """Return the memory of `fit`, in tables."""
    X, y = rows_for(name, n_rows, 0)
    estimator = made(name)
    tracemalloc.start()
    estimator.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{peak / X.nbytes:.1f}"


def kilobytes(estimator):
    return f"{len(pickle.dumps(estimator)) / 1e3:.0f}"


def of_stream(name, n_rows):
    """Return the kilobytes of an estimator that has learnt a stream."""
    estimator = made(name)
    if not hasattr(estimator, "partial_fit"):
        return "-"
    for start in range(0, n_rows, BLOCK):
        X, y = rows_for(name, BLOCK, start)
        first = start == 0 and "classes" in signature(estimator.partial_fit)
        estimator.partial_fit(X, y, **({"classes": [0, 1]} if first else {}))
    return kilobytes(estimator)


def main():
    options = arguments(__doc__)
    report = Report("memory", quick=options.quick)
    some, many = (SMALL, SMALL) if options.quick else (SOME, MANY)
    warnings.simplefilter("ignore")  # memory is asked for, not answers
    rows = []
    for name in skpacbayes.__all__:
        public = getattr(skpacbayes, name)
        estimator = inspect.isclass(public) and issubclass(public, BaseEstimator)
        if not estimator or name in SLOW:
            continue
        sizes = [
            kilobytes(made(name).fit(*rows_for(name, n, 0))) for n in (SMALL, some)
        ]
        rows.append([name, memory_of_fit(name, many), *sizes, of_stream(name, some)])
        print(*rows[-1], flush=True)
    heads = ["tables held by fit", "kB, fit 1e3", "kB, fit 1e5", "kB, stream 1e5"]
    report.table("Memory and size of the file", ["estimator", *heads], rows)
    report.save()


if __name__ == "__main__":
    main()
