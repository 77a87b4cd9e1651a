"""Sparse additive Poisson regression of simulated counts, against lines and boosting.

Simulated counts, of Poisson's variance and of more, where four of many variables
matter. The peers are scikit-learn's `PoissonRegressor`, whose penalty is
cross-validated, on the variables and on the functions that ours has, and boosted trees
with Poisson loss; pyGAM's splines, whose one penalty is searched for, are of
`bench_additive_count_tables.py`, which has few variables. Ours is the default, and the
Poisson likelihood.
"""

import warnings

import numpy as np
from _additive_problems import RELEVANT, Expansion, smooth, variables
from _harness import Report, arguments, cpu_seconds
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.additive import SparseAdditiveGibbsPoissonRegressor

N_SEEDS = 4
MOST_OF_SPLINES = 20  # variables for which pyGAM does not take half a minute
ALPHAS = np.logspace(-4, 1, 11)
LEAST = 1e-6  # a mean of the peers


def simulated(n, p, level, spread, correlation, seed):
    """Rows, counts, and 2,000 more rows with their means."""
    rng = np.random.default_rng(seed)
    X, new = variables(n, p, correlation, rng), variables(2000, p, correlation, rng)
    means, expected = (np.exp(level + 0.7 * smooth(each)) for each in (X, new))
    varying = rng.gamma(1 / spread, spread, size=n) if spread else 1.0
    return X, rng.poisson(varying * means), new, expected


DESIGNS = {  # rows, variables, log mean, variance of the factors, correlation
    "mean 1.3, 300 rows, 50 variables": (300, 50, 0.0, 0.0, 0.0),
    "the same, 200 variables": (300, 200, 0.0, 0.0, 0.0),
    "mean 0.3, 1,000 rows": (1000, 50, -1.5, 0.0, 0.0),
    "mean 10": (300, 50, 2.0, 0.0, 0.0),
    "neighbours correlated": (300, 50, 0.0, 0.0, 0.5),
    "mean 1.3, twice Poisson's variance": (300, 50, 0.0, 0.7, 0.0),
    "mean 10, six times Poisson's variance": (300, 50, 2.0, 0.5, 0.0),
}


class SplinesGAM:
    """PoissonGAM, one penalty by its own search; rates are weighted by exposure."""

    def fit(self, X, y, sample_weight=None):
        """Search for the penalty among eleven."""
        from pygam import PoissonGAM

        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        self.varies_ = np.ptp(X, axis=0) > 0
        self.model_ = PoissonGAM().gridsearch(
            X[:, self.varies_],
            y * weights,
            exposure=weights,
            lam=np.logspace(-3, 3, 11),
            progress=False,
        )
        return self

    def predict(self, X):
        """Return means of exposure 1."""
        return self.model_.predict(X[:, self.varies_])


def tuned(*steps):
    """PoissonRegressor after some steps, its penalty by cross-validation."""
    model = make_pipeline(*steps, StandardScaler(), PoissonRegressor(max_iter=1000))
    return GridSearchCV(model, {"poissonregressor__alpha": ALPHAS}, cv=5)


RIVAL = "ours, likelihood"  # on simulated counts only
METHODS = {
    "ours": lambda: SparseAdditiveGibbsPoissonRegressor(random_state=0),
    RIVAL: lambda: SparseAdditiveGibbsPoissonRegressor(
        inverse_temperature="likelihood", random_state=0
    ),
    "PoissonRegressor, linear": tuned,
    "PoissonRegressor, Legendre": lambda: tuned(Expansion()),
    "boosted trees": lambda: HistGradientBoostingRegressor(
        loss="poisson", random_state=0
    ),
    "pyGAM": SplinesGAM,
}


def methods(n_features):
    """Return those that are installed, and can take so many variables."""
    found = dict(METHODS)
    try:
        import pygam  # noqa: F401
    except ImportError:
        del found["pyGAM"]
    else:
        if n_features > MOST_OF_SPLINES:
            del found["pyGAM"]
    return found


def fitted(make, X, y, weights=None):
    """Fit a model; return it, and its CPU seconds."""
    model = make()
    given = {} if weights is None else {"sample_weight": weights}
    if weights is not None and isinstance(model, GridSearchCV):
        given = {"poissonregressor__sample_weight": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = cpu_seconds(lambda: model.fit(X, y, **given))
    return model, seconds


def study(design, n_seeds):
    """Deviance, variables found and selected, and CPU seconds, by method and seed."""
    compared = methods(DESIGNS[design][1])
    found = {name: [] for name in compared}
    for seed in range(n_seeds):
        X, y, new, expected = simulated(*DESIGNS[design], seed)
        for name, make in compared.items():
            model, seconds = fitted(make, X, y)
            means = np.maximum(model.predict(new), LEAST)
            deviance = mean_poisson_deviance(expected, means)
            support = [np.nan, np.nan]
            if hasattr(model, "get_support"):
                chosen = model.get_support(indices=True)
                support = [float((chosen < RELEVANT).sum()), float(len(chosen))]
            found[name].append([float(deviance), *support, seconds])
    return found


def study_of_simulated(report, names, n_seeds):
    """Deviances of the predictions from the true means, and variables found."""
    rows = []
    for design in names:
        found = report.stage(design, lambda: study(design, n_seeds))  # noqa: B023
        for name, results in found.items():
            deviances, right, chosen, seconds = np.array(results).T
            selects = np.isfinite(right).all()
            error = deviances.std(ddof=1) / np.sqrt(n_seeds) if n_seeds > 1 else np.nan
            rows.append(
                [
                    design,
                    name,
                    f"{deviances.mean():.3f} ± {error:.3f}",
                    f"{right.mean():.1f}" if selects else "",
                    f"{(chosen - right).mean():.1f}" if selects else "",
                    f"{np.median(seconds):.1f}",
                ]
            )
            print(" | ".join(rows[-1]), flush=True)
    report.table(
        "Mean Poisson deviance of predictions from the true means at new rows, with "
        f"its standard error over {n_seeds} samples; variables found of four, false "
        "ones; CPU seconds of a fit",
        ["counts", "method", "deviance", "found", "false", "CPU s"],
        rows,
    )


def main():
    options = arguments(__doc__)
    report = Report("additive_counts", quick=options.quick)
    X, y, *_ = simulated(40, 4, 0.0, 0.0, 0.0, 0)
    fitted(METHODS["ours"], X, y)  # compiles
    few = slice(1 if options.quick else None)
    study_of_simulated(report, list(DESIGNS)[few], 1 if options.quick else N_SEEDS)
    report.save()


if __name__ == "__main__":
    main()
