"""Student components: degrees of freedom that are known, or chosen by the bound.

Three groups of 400 rows in all, with tails of several degrees of freedom: the log
density of new rows, and how often "auto" finds three components, beside outliers too.
The rule was chosen on other draws.

By default the run is short; --full runs everything.
"""

import warnings
from time import process_time

import numpy as np
from _harness import Report, arguments
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.mixture import Student, TemperedVBGaussianMixture, TemperedVBMixture

N_ROWS, N_NEW, FIRST_SEED = 400, 5000, 50


def draw(degrees, d, n, rng):
    """Rows of three groups; infinite degrees of freedom are normal."""
    centers = np.zeros((3, d))
    centers[1, 0] = centers[2, 1] = 12.0
    noise = rng.normal(size=(n, d))
    if np.isfinite(degrees):
        noise /= np.sqrt(rng.chisquare(degrees, (n, 1)) / degrees)
    return centers[rng.integers(0, 3, n)] + noise


def mixtures(n_components, **options):
    """Return the families to compare."""
    options = {"max_components": 6, "random_state": 0, **options}
    return [
        TemperedVBMixture(Student("auto"), n_components, **options),
        TemperedVBMixture(Student(4.0), n_components, **options),
        TemperedVBGaussianMixture(n_components, **options),
    ]


def densities(full):
    """Nats per new row below the best of the three; degrees and seconds of "auto"."""
    table = []
    for d in (2, 8):
        for degrees in (np.inf, 30, 10, 4, 2):
            scores, chosen, seconds = [], [], []
            for seed in range(FIRST_SEED, FIRST_SEED + (10 if full else 2)):
                rng = np.random.default_rng(seed)
                X, new = draw(degrees, d, N_ROWS, rng), draw(degrees, d, N_NEW, rng)
                scores.append([])
                seconds.append([])
                for mixture in mixtures(3):
                    start = process_time()
                    mixture.fit(X)
                    seconds[-1].append(process_time() - start)
                    scores[-1].append(mixture.score(new))
                    if len(scores[-1]) == 1:
                        chosen.append(mixture.parameters_["degrees_of_freedom"])
            mean = np.mean(scores, axis=0)
            name = "normal" if degrees == np.inf else f"{degrees} degrees"
            ratio = np.sum(seconds, axis=0)
            table.append(
                [
                    f"{name}, {d} columns",
                    *(f"{value:.3f}" for value in mean - mean.max()),
                    f"{min(chosen):g} to {max(chosen):g}",
                    f"{ratio[0] / ratio[1]:.1f}",
                ]
            )
            print(*table[-1], flush=True)
    return table


def numbers(full):
    """Share of the sets on which three components are found."""
    table, n_sets = [], 20 if full else 2
    for name, degrees, share in (
        ("normal", np.inf, 0.0),
        ("3 degrees", 3, 0.0),
        ("normal, 10 % outliers, outliers=True", np.inf, 0.1),
        ("3 degrees, 10 % outliers, outliers=True", 3, 0.1),
    ):
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + n_sets):
            rng = np.random.default_rng(seed)
            X = draw(degrees, 2, N_ROWS, rng)
            far = int(share * N_ROWS)
            X[:far] = rng.uniform(-20, 30, (far, 2))
            fits = [each.fit(X) for each in mixtures("auto", outliers=share > 0)]
            found.append([fit.n_components_ == 3 for fit in fits])
        shares = 100 * np.mean(found, axis=0)
        table.append([name, *(f"{value:.0f} %" for value in shares)])
        print(*table[-1], flush=True)
    return table


def main(full):
    """Print the tables, and save them."""
    report = Report("mixture_tails", quick=not full)
    names = ['Student("auto")', "Student(4)", "normal"]
    report.table(
        "Nats per new row, below the best",
        ["tails", *names, "degrees chosen", "time, of Student(4)"],
        densities(full),
    )
    report.table("Three components found", ["sets", *names], numbers(full))
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        main(arguments(__doc__, taste=True).full)
