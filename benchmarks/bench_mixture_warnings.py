"""What a fit says by itself: outliers as a component, columns without a density.

Simulated sets as in `bench_mixture_choice.py`, from seeds that were not looked at while
the rules were chosen: how often the number of components is right, how often a fit
warns that a component seems to be outliers, where the number is wrong and where it is
right, and how often it is right with outliers=True. Then real tables, rows as they are:
the column that is named, if any.

By default the run is short; --full runs everything.
"""

import warnings

import numpy as np
from _harness import Report, arguments
from bench_mixture_choice import data
from bench_mixture_tables import TABLES, tables
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.mixture import TemperedVBGaussianMixture

FIRST_SEED = 1000
LINES = [  # title, shape, separation, rows a parameter
    ("separated", "gaussian", 6.0, 5),
    ("overlapping", "gaussian", 3.0, 10),
    ("3 % outliers", "outliers", 6.0, 5),
    ("heavy tails", "heavy-tailed", 6.0, 5),
    ("skewed", "skewed", 6.0, 5),
]


def fitted(X, most, **options):
    """Return the mixture, and what it says of the data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture = TemperedVBGaussianMixture(
            "auto", max_components=most, n_init=2, random_state=0, **options
        ).fit(X)
    others = [w for w in caught if w.category is not ConvergenceWarning]
    return mixture, [str(warning.message) for warning in others]


def outliers(full):
    """Count right numbers and warnings."""
    rows, count = [], 20 if full else 4
    for title, shape, separation, rows_a_parameter in LINES:
        right, warned, cleaned = [], [], []
        for seed in range(FIRST_SEED, FIRST_SEED + count):
            X, _, _, K = data(seed, shape, separation, 0.9, rows_a_parameter)
            mixture, messages = fitted(X, K + 3)
            right.append(mixture.n_components_ == K)
            warned.append(any("seems to be outliers" in each for each in messages))
            if warned[-1]:
                mixture, _ = fitted(X, K + 3, outliers=True)
            cleaned.append(mixture.n_components_ == K)
        right, warned = np.array(right), np.array(warned)
        rows.append(
            [
                f"{title}, {count} sets",
                f"{right.sum()}",
                f"{(warned & right).sum()} of {right.sum()}",
                f"{(warned & ~right).sum()} of {(~right).sum()}",
                f"{np.sum(cleaned)}",
            ]
        )
        print(*rows[-1], flush=True)
    return rows


def real_tables(full):
    """Say what is said of real tables."""
    rows = []
    for name, X in tables(None if full else list(TABLES)[:4]):
        mixture, messages = fitted(X, 10)
        said = [message.split(":")[0] for message in messages] or ["nothing"]
        rows.append([name, mixture.n_components_, "; ".join(said)])
        print(*rows[-1], flush=True)
    return rows


def main(full):
    """Print and save both tables."""
    report = Report("mixture_warnings", quick=not full)
    names = ["sets", "right number", "warned where right", "warned where wrong"]
    names += ["right number, outliers=True where warned"]
    report.table("A component that is outliers", names, outliers(full))
    report.save()
    report.table(
        "Real tables, rows as they are", ["table", "K", "said"], real_tables(full)
    )
    report.save()


if __name__ == "__main__":
    main(arguments(__doc__, taste=True).full)
