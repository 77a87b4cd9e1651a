"""How often the bands of partial effects hold the truth.

The second of eight variables has an effect of deviation about 1 that is smooth, has a
kink, or jumps; the first has a linear effect; the noise has deviation 1. Bands are of
90 %, effect +- 1.645 deviations, for each row; effects are compared with the truth less
its mean over the rows. `LinearGAM` of pyGAM takes splines of third degree, with
penalties chosen by generalised cross-validation. Nothing was chosen on these draws.
"""

import numpy as np
from _harness import Report, arguments

from skpacbayes.additive import SparseAdditiveGibbsRegressor

try:
    import pygam
except ImportError:
    pygam = None

EFFECTS = {
    "linear": lambda x: x,
    "x^2": lambda x: x**2 / 1.4,
    "exp(x)": lambda x: np.exp(x) / 2.16,
    "sin(2 x)": lambda x: 1.4 * np.sin(2 * x),
    "sin(3 x)": lambda x: 1.4 * np.sin(3 * x),
    "|x|, a kink": lambda x: 1.66 * np.abs(x),
    "a step": lambda x: 2.0 * (x > 0),
}


def ours(**options):
    def effect(X, y):
        model = SparseAdditiveGibbsRegressor(random_state=0, **options).fit(X, y)
        return model.partial_effects(X, 1)

    return effect


def splines(X, y):
    terms = sum((pygam.s(f) for f in range(1, X.shape[1])), pygam.s(0))
    model = pygam.LinearGAM(terms).gridsearch(X, y, progress=False)
    effect, limits = model.partial_dependence(1, X, width=0.9)
    return effect, (limits[:, 1] - limits[:, 0]) / (2 * 1.645)


METHODS = {
    "defaults": ours(),
    "max_order=8": ours(max_order=8),
    "max_order=16": ours(max_order=16),
    'basis="spline"': ours(basis="spline"),
    'basis="auto"': ours(basis="auto"),
}
if pygam is not None:
    METHODS["LinearGAM"] = splines


def bands(n, effect, seeds):
    """Shares of rows whose band holds the truth, and half widths, of each method."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng([seed, n])
        X = rng.normal(size=(n, 8))
        truth = effect(X[:, 1])
        y = X[:, 0] + truth + rng.normal(size=n)
        row = []
        for method in METHODS.values():
            mean, deviation = method(X, y)
            gaps = np.abs(mean - mean.mean() - (truth - truth.mean()))
            row.append([np.mean(gaps < 1.645 * deviation), 1.645 * np.mean(deviation)])
        found.append(row)
    return np.mean(found, axis=0)


def main():
    quick = arguments(__doc__).quick
    report, rows = Report("additive_bands", quick=quick), []
    for n in (100,) if quick else (100, 300, 1000):
        for name, effect in EFFECTS.items():
            found = bands(n, effect, range(2 if quick else 10))
            cells = [f"{held:.2f} ({width:.2f})" for held, width in found]
            rows.append([f"n = {n}, {name}", *cells])
    report.table(
        "Share of rows whose band of 90 % holds the true effect, and its half width",
        ["effect", *METHODS],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
