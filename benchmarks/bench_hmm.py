"""Hidden Markov models without a shape for the emissions, against hmmlearn.

Are the states found and the transitions right, where the emissions are Gaussian and
where they are not? How well are new rows predicted? hmmlearn's models have five starts
and keep the likeliest; ours is given the number of states, and nothing else. Needs
`hmmlearn` (extra `bench`).

    python benchmarks/bench_hmm.py [--quick]
"""

import time
import warnings

import numpy as np
from _harness import Report, arguments
from _hmm_families import FAMILIES, real_series, simulated
from _hmm_problems import (
    PEERS,
    accuracy,
    best_of_starts,
    error_of_transitions,
    log_density_of_peer,
)
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.datasets import make_hidden_markov
from skpacbayes.hmm import DirichletProcessHMM

SHAPES = ("gaussian", "bimodal", "heavy-tailed")
TRUTH = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
MAIN_PEERS = ("GaussianHMM", "GMMHMM")


def ours(X, n_states, seed=0):
    """Return our fit, of which only the number of states is given."""
    return DirichletProcessHMM(n_states, random_state=seed).fit(X)


def methods(covariance_type, seed):
    """Return what is compared: {name: a function of rows that gives a fit}."""
    peers = {
        name: lambda X, name=name: best_of_starts(name, X, 3, covariance_type)
        for name in PEERS
    }
    return peers | {"ours": lambda X: ours(X, 3, seed)}


def log_density(name, fit, X):
    """Log density of rows, in nats a row."""
    if name == "ours":
        return fit.score(X)
    return log_density_of_peer(fit, X) / len(X)


def families(n_sets):
    """Accuracy of the states and log density of new rows."""
    table = []
    for title, (_, k) in FAMILIES.items():
        found = {}
        for seed in range(n_sets):
            X, states, new, _, _ = simulated(title, seed)
            for name in (*MAIN_PEERS, "ours"):
                start = time.process_time()
                fit = (
                    ours(X, k) if name == "ours" else best_of_starts(name, X, k, "full")
                )
                seconds = time.process_time() - start
                row = [np.nan, np.nan, np.nan, seconds]
                if fit is not None:
                    row[0] = accuracy(states, fit.predict(X), k)[0]
                    row[1] = log_density(name, fit, new)
                if name == "ours":
                    row[2] = fit.r_hat_
                found.setdefault(name, []).append(row)
        for name, rows in found.items():
            share, nats, r_hat, seconds = np.nanmean(rows, axis=0)
            table.append(
                [
                    *(title, name, f"{share:.3f}", f"{nats:.3f}"),
                    *(f"{r_hat:.2f}" if name == "ours" else "-", f"{seconds:.2f}"),
                ]
            )
    return table


def forecasts(quick):
    """Log density of the last third of real series, standardised by the others."""
    table = []
    for title, X, k in real_series():
        cut = 2 * len(X) // 3
        past = X[:cut][: 500 if quick else None]
        mean, scale = past.mean(axis=0), past.std(axis=0)
        past, new = (past - mean) / scale, (X[cut:] - mean) / scale
        for name in (*MAIN_PEERS, "ours"):
            fit = (
                ours(past, k)
                if name == "ours"
                else best_of_starts(name, past, k, "full")
            )
            nats = np.nan if fit is None else log_density(name, fit, new)
            table.append([title, k, name, f"{nats:.3f}"])
    return table


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
    n_sets, n_full = (1, 1) if quick else (3, 1)
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
    report.table(
        "Simulated families, 1,500 rows; nats a row of 3,000 new rows",
        ["family", "method", "accuracy", "nats a row", "R-hat", "CPU s"],
        families(1),
    )
    report.table(
        "Real series: the last third, given the others",
        ["series", "states", "method", "nats a row"],
        forecasts(quick),
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
