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
from _hmm_families import (
    CONFIRMING,
    FAMILIES,
    confirming_series,
    real_series,
    simulated,
)
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


def fitted(name, X, k, seed):
    """Return a fit, its CPU seconds, and whether it warned."""
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = ours(X, k, seed) if name == "ours" else best_of_starts(name, X, k, "full")
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return fit, time.process_time() - start, warned


def spread_out(X, seed):
    """Rows for densities: whole numbers share out their probability about them.

    Else a density could be as high as it likes at values that repeat. The log density
    of such rows is, on average, at most the log probability of the whole numbers.
    """
    if not (np.floor(X) == X).all():
        return X
    return X + np.random.default_rng(seed).uniform(-0.5, 0.5, X.shape)


def compared(X, new, k, seed, states=None):
    """Cells of a row: accuracies, log densities, R-hat, warning, and seconds."""
    shares, nats, seconds = [], [], []
    for name in (*MAIN_PEERS, "ours"):
        peer = name != "ours"
        rows, ahead = (spread_out(x, seed) if peer else x for x in (X, new))
        fit, spent, warned = fitted(name, rows, k, seed)
        seconds.append(f"{spent:.1f}")
        nats.append("nan" if fit is None else f"{log_density(name, fit, ahead):.3f}")
        if states is not None:
            found = np.zeros(len(X), int) if fit is None else fit.predict(rows)
            shares.append(f"{accuracy(states, found, k)[0]:.3f}")
    last = [f"{fit.r_hat_:.2f}", "yes" if warned else "no"]
    return [*shares, *nats, *last, *seconds]


def families(titles, seed):
    """Accuracy of the states and log density of new rows."""
    table = []
    for title in titles:
        X, states, new, _, k = simulated(title, seed)
        table.append([title, *compared(X, new, k, seed, states)])
    return table


def last_thirds(series, quick):
    """Yield title, number of states, rows to learn and the last third of each series.

    Rows are standardised by those that are learnt; counts are given as they are.
    """
    for title, X, k in series:
        cut = 2 * len(X) // 3
        past = X[:cut][: 500 if quick else None]
        mean, scale = past.mean(axis=0), past.std(axis=0)
        if (np.floor(X) == X).all():
            mean, scale = 0.0, 1.0
        yield title, k, (past - mean) / scale, (X[cut:] - mean) / scale


def forecasts(series, quick):
    """Log density of the last third of real series."""
    return [
        [title, k, *compared(past, new, k, 0)]
        for title, k, past, new in last_thirds(series, quick)
    ]


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
    n_sets, n_full = (1, 1) if quick else (2, 1)
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
    three = ["Gaussian", "GMM", "ours"]
    more = ["R-hat", "warns", *(f"CPU s, {name}" for name in three)]
    nats = [f"nats, {name}" for name in three]
    both = ["family", *(f"accuracy, {name}" for name in three), *nats, *more]
    about = "1,500 rows; nats a row of 3,000 new rows"
    report.table(f"Simulated families, {about}", both, families(FAMILIES, 0))
    report.table(
        f"Simulated families on which nothing was chosen, {about}",
        both,
        families(CONFIRMING, 0),
    )
    for title, series in (
        ("Real series", real_series),
        ("Real series on which nothing was chosen", confirming_series),
    ):
        report.table(
            f"{title}: the last third, given the others",
            ["series", "states", *nats, *more],
            forecasts(series(), quick),
        )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
