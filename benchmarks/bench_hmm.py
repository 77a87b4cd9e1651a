"""Hidden Markov models without a shape for the emissions, against hmmlearn.

Are the states found and the transitions right, where the emissions are Gaussian and
where they are not? hmmlearn's models have five starts and keep the likeliest; ours runs
its two chains at its default parameters. Needs `hmmlearn` (extra `bench`).

    python benchmarks/bench_hmm.py [--quick]
"""

import time
import warnings

import numpy as np
from _harness import Report, arguments
from _hmm_problems import (
    PEERS,
    accuracy,
    best_of_starts,
    error_of_transitions,
)
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.datasets import make_hidden_markov
from skpacbayes.hmm import DirichletProcessHMM

SHAPES = ("gaussian", "bimodal", "heavy-tailed")
EMISSIONS = ("translated", "per_state")
TRUTH = np.full((3, 3), 0.05) + 0.85 * np.eye(3)


def methods(covariance_type, seed):
    """Return what is compared: {name: a function of rows that gives a fit}."""
    peers = {
        name: lambda X, name=name: best_of_starts(name, X, 3, covariance_type)
        for name in PEERS
    }
    ours = {
        f"ours, {emission}": lambda X, emission=emission: DirichletProcessHMM(
            3, emission=emission, covariance_type=covariance_type, random_state=seed
        ).fit(X)
        for emission in EMISSIONS
    }
    return peers | ours


def recovery(n_sets, covariance_type="diag", **data):
    """Accuracy of the states and largest error of the transitions."""
    table = []
    for shape in SHAPES:
        found = {}
        for seed in range(n_sets):
            X, states = make_hidden_markov(shape, 1500, random_state=seed, **data)
            for name, fit in methods(covariance_type, seed).items():
                start = time.process_time()
                model = fit(X)
                seconds = time.process_time() - start
                share, error = np.nan, np.nan
                if model is not None:
                    share, label_of = accuracy(states, model.predict(X), 3)
                    error = error_of_transitions(TRUTH, model.transmat_, label_of)
                found.setdefault(name, []).append((share, error, seconds))
        for name, rows in found.items():
            shares, errors, seconds = np.transpose(rows)
            done = np.isfinite(shares)
            table.append(
                [
                    *(shape, name, f"{done.sum()} of {len(done)}"),
                    *(f"{shares[done].mean():.3f}", f"{shares[done].min():.3f}"),
                    *(f"{errors[done].mean():.3f}", f"{errors[done].max():.3f}"),
                    f"{seconds.mean():.2f}",
                ]
            )
    return table


def main():
    quick = arguments(__doc__).quick
    report = Report("hmm", quick=quick)
    n_sets, n_full = (1, 1) if quick else (10, 4)
    columns = ["emissions", "method", "fits", "accuracy", "worst"]
    columns += ["error of Q", "worst", "CPU s"]
    report.table(
        f"States found, T = 1,500, k = 3, {n_sets} data sets; CPU s of a fit",
        columns,
        recovery(n_sets),
    )
    report.table(
        f"The same with d = 3 and full covariance, {n_full} data sets",
        columns,
        recovery(n_full, "full", n_features=3),
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
