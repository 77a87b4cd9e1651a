"""Hidden Markov models: what a sweep costs, and how well real series are forecast.

A sweep of ours against an iteration of hmmlearn's EM algorithm; the log density of rows
to come, of the stock market and of electricity. hmmlearn's models have five starts and
keep the likeliest; ours runs its two chains at its default parameters. Needs `hmmlearn`
(extra `bench`); the electricity is read from ../shared/data where that is present.

    python benchmarks/bench_hmm_speed.py [--quick]
"""

import warnings

import numpy as np
from _harness import Report, arguments, interleaved, median_ratio
from _hmm_problems import (
    PEERS,
    best_of_starts,
    electricity,
    log_density_of_peer,
    monthly_returns,
)
from hmmlearn.hmm import GMMHMM, GaussianHMM
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import TimeSeriesSplit

from skpacbayes.datasets import make_hidden_markov
from skpacbayes.hmm import DirichletProcessHMM

EMISSIONS = ("translated", "per_state")
SWEEPS = 20
LARGEST_FOR_PEERS = 20_000  # rows, in the table of times


def ours_for(n_iter, X, emission):
    """Run this many sweeps of one chain with eight atoms."""
    model = DirichletProcessHMM(
        3,
        emission=emission,
        covariance_type="diag",
        n_atoms=8,
        n_iter=n_iter,
        burn_in=0,
        n_chains=1,
        random_state=0,
    )
    return lambda: model.fit(X)


def peer_for(model, n_iter, X, **options):
    """Run this many iterations of EM, converged or not."""
    peer = model(3, n_iter=n_iter, tol=-np.inf, random_state=0, **options)
    return lambda: peer.fit(X)


def times(sizes, n_turns):
    """CPU milliseconds of a sweep and of an iteration of EM, start apart."""
    table = []
    peers = {
        "GaussianHMM": (GaussianHMM, {}),
        "scaling": (GaussianHMM, {"implementation": "scaling"}),
        "GMMHMM": (GMMHMM, {"n_mix": 8}),
    }
    for n in sizes:
        X, _ = make_hidden_markov("bimodal", n, random_state=0)
        present = peers if n <= LARGEST_FOR_PEERS else {}
        actions = {}
        for n_iter, part in [(1 + SWEEPS, "all"), (1, "start")]:
            for emission in EMISSIONS:
                actions[f"{emission} {part}"] = ours_for(n_iter, X, emission)
            for name, (model, options) in present.items():
                actions[f"{name} {part}"] = peer_for(model, n_iter, X, **options)
        seconds = interleaved(actions, n_turns)
        each = {
            name: (seconds[f"{name} all"] - seconds[f"{name} start"]) / SWEEPS
            for name in (*EMISSIONS, *present)
        }
        for emission in EMISSIONS:
            ratios = [
                f"{median_ratio(each, peer, emission):.1f}" if peer in each else "-"
                for peer in peers
            ]
            spent = np.median(each[emission])
            row = [f"{n:,}", emission, f"{1e3 * spent:.2f}", f"{1e6 * spent / n:.2f}"]
            table.append(row + ratios)
    return table


def forecasts(series, n_splits, seed=0):
    """Mean log density of a row that the fit has not seen, over splits in time."""
    table = []
    for title, X, n_states in series:
        scores = {}
        for train, test in TimeSeriesSplit(n_splits).split(X):
            mean, scale = X[train].mean(axis=0), X[train].std(axis=0)
            past, future = (X[train] - mean) / scale, (X[test] - mean) / scale
            for name in PEERS:
                fit = best_of_starts(name, past, n_states, "full")
                score = np.nan
                if fit is not None:
                    score = log_density_of_peer(fit, future) / len(future)
                scores.setdefault(name, []).append(score)
            for emission in EMISSIONS:
                fit = DirichletProcessHMM(
                    n_states,
                    emission=emission,
                    covariance_type="full",
                    random_state=seed,
                ).fit(past)
                scores.setdefault(f"ours, {emission}", []).append(fit.score(future))
        for name, values in scores.items():
            table.append(
                [
                    *(title, n_states, name, f"{np.mean(values):.3f}"),
                    " ".join(f"{value:.3f}" for value in values),
                ]
            )
    return table


def real_series(quick):
    """Return the series, and their numbers of states."""
    returns = monthly_returns()
    series = [
        ("S&P 500, monthly returns", returns[:, :1], 2),
        ("S&P 500, IBM, Microsoft", returns, 2),
    ]
    rows = electricity()
    if rows is None:
        print("\nelec2 is left out: ../shared/data/elec2.csv.gz is not there")
        return series
    rows = rows[: 1200 if quick else None]
    return [*series, ("electricity, 4-hourly price and demand", rows, 4)]


def main():
    quick = arguments(__doc__).quick
    report = Report("hmm_speed", quick=quick)
    report.table(
        "CPU time of a sweep, k = 3, 8 atoms, d = 1, and of an EM iteration of "
        "the peers in units of it (GMMHMM with 8 components)",
        [
            *("T", "ours", "ms a sweep", "us a row and sweep"),
            *("GaussianHMM", "GaussianHMM, scaling", "GMMHMM"),
        ],
        times([2000, 20_000] if quick else [2000, 20_000, 200_000], 2 if quick else 5),
    )
    report.table(
        "Mean log density of the rows to come, nats a row (standardised features)",
        ["series", "states", "method", "mean", "splits"],
        forecasts(real_series(quick), 2 if quick else 4),
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
