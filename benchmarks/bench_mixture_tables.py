"""Gaussian mixtures on real tables, and the inverse temperature that is chosen.

Log densities of new rows against scikit-learn's two, on four tables that scikit-learn
ships and on others where river is installed or ../shared/data is there. A component of
no width on rows that coincide has a density without meaning. Rounding is undone first,
by uniform noise of the width of a unit, and columns with an atom are left out: a value
that a tenth of the rows share, where the unit is finer. The second table has the same
columns as they are. Then the inverse temperature "auto" against 0.9: on simulated
mixtures, where it may cost nothing, on copies of rows, on rows that depend on their
neighbours, with outliers.

By default the run is short; --full runs everything.
"""

import warnings
from pathlib import Path

import numpy as np
from _harness import Report, arguments, cpu_seconds
from sklearn.datasets import (
    fetch_california_housing,
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import TemperedVBGaussianMixture, TemperedVBMixture

DATA = Path(__file__).parents[2] / "shared" / "data"
LARGEST = 10  # number of components that is tried
MOST_ROWS = 1500
FEWEST_VALUES = 10  # of a column that is taken for continuous
ATOM = 0.1  # of the rows have one value, and the unit is less than that of the spread


def of_river(name):
    """Numbers of a table that river ships."""
    from river import datasets

    table = getattr(datasets, name)()
    return np.array([[float(value) for value in row.values()] for row, _ in table])


def of_shared(name, **options):
    """Numbers of a file of ../shared/data."""
    return np.loadtxt(DATA / name, **options)


def california():
    """Californian houses."""
    home = str(DATA / "sklearn_data_home")
    return fetch_california_housing(data_home=home, download_if_missing=False).data


TABLES = {  # the first four were looked at while the defaults were chosen
    "iris": lambda: load_iris().data,
    "wine": lambda: load_wine().data,
    "breast cancer, 10 columns": lambda: load_breast_cancer().data[:, :10],
    "diabetes": lambda: load_diabetes(scaled=False).data,
    "pima": lambda: of_shared("pima.csv.gz", delimiter=",", skiprows=1)[:, :-1],
    "ecoli": lambda: of_shared("clustering/uci/ecoli.data.gz"),
    "housing": california,
    "segment": lambda: of_river("ImageSegments"),
    "bananas": lambda: of_river("Bananas"),
    "yeast, 10 columns": lambda: of_river("Yeast")[:, :10],
}


def tables(names=None):
    """Yield names and tables, all or those that are named: at most so many rows."""
    for name, load in TABLES.items():
        if names is not None and name not in names:
            continue
        try:
            X = load()
        except (OSError, ImportError):
            print(f"{name} is left out: it is not here.")
            continue
        yield name, X[np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]]


def continuous_tables(names=None):
    """Yield names and tables, without the columns of few values or with an atom."""
    for name, X in tables(names):
        yield name, X[:, [is_continuous(column) for column in X.T]]


def is_continuous(column):
    """Whether a column has many values and no atom."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) < FEWEST_VALUES:
        return False
    coarse = np.diff(values).min() > ATOM * column.std()
    return coarse or counts.max() <= ATOM * len(column)


def without_rounding(X, rng):
    """Add uniform noise of the width of the smallest gap where values coincide."""
    X = X.copy()
    for column in X.T:
        values = np.unique(column)
        if len(values) < len(column):
            column += np.diff(values).min() * rng.uniform(-0.5, 0.5, len(column))
    return X


def chosen_by_bic(X, most=LARGEST):
    """Return the Gaussian mixture with the least BIC."""
    fits = [
        GaussianMixture(K, n_init=3, random_state=0).fit(X) for K in range(1, most + 1)
    ]
    return min(fits, key=lambda fit: fit.bic(X))


def densities(full, *, rounded):
    """Nats per new row, a third of the standardised rows, and CPU seconds."""
    rows = []
    for name, X in continuous_tables(None if full else list(TABLES)[:4]):
        scores, seconds, found = [], [], []
        for seed in range(3 if full else 1):
            rng = np.random.default_rng(seed)
            table = X if rounded else without_rounding(X, rng)
            table = (table / table.std(axis=0))[rng.permutation(len(X))]
            train, test = np.split(table, [2 * len(X) // 3])
            fits = {
                "ours": TemperedVBGaussianMixture(
                    "auto", max_components=LARGEST, random_state=seed
                ).fit,
                "BIC": chosen_by_bic,
                "bayes": BayesianGaussianMixture(
                    n_components=LARGEST, n_init=3, max_iter=500, random_state=seed
                ).fit,
            }
            models = {}
            seconds.append(
                [
                    cpu_seconds(lambda: models.update({key: fit(train)}))  # noqa: B023
                    for key, fit in fits.items()
                ]
            )
            scores.append([model.score(test) for model in models.values()])
            found.append(models["ours"].n_components_)
        mean = np.mean(scores, axis=0)
        times = [f"{value:.2f}" for value in np.mean(seconds, axis=0)]
        behind = f"{mean[0] - mean[1:].max():+.3f}"
        numbers = "/".join(map(str, found))
        rows.append([name, numbers, *(f"{v:.3f}" for v in mean), behind, *times])
        print(*rows[-1], flush=True)
    return rows


def slowly(n, rng, memory=0.95):
    """Rows of one normal distribution, each near the one before."""
    X = rng.normal(size=(n, 2))
    for i in range(1, n):
        X[i] = memory * X[i - 1] + np.sqrt(1 - memory**2) * X[i]
    return X


def copied(X, rng):
    """Two thirds of the rows, three times each in any order, and the others."""
    X = (without_rounding(X, rng) / X.std(axis=0))[rng.permutation(len(X))]
    train, test = np.split(X[:450], [300])
    return rng.permutation(np.repeat(train, 3, axis=0)), test


def situations():
    """Yield titles, sets of rows to fit and new rows of a seed, families."""

    def simulated(seed, **options):
        X, _ = make_mixture(n_samples=2400, random_state=seed, **options)
        return X[:400], X[400:]

    def counts(seed):
        rng = np.random.default_rng(seed)
        rates = rng.gamma(4.0, 2.0, (3, 4))
        X = rng.poisson(rates[rng.integers(0, 3, 2400)])
        return X[:400], X[400:]

    def contaminated(seed):
        train, test = simulated(seed)
        rng = np.random.default_rng(seed)
        train[:40] = rng.uniform(train.min(axis=0) - 3, train.max(axis=0) + 3, (40, 2))
        return train, test

    def dependent(seed):
        rng = np.random.default_rng(seed)
        return slowly(600, rng), slowly(20_000, rng, 0.0)

    yield "simulated, 4 components", simulated, "gaussian"
    yield "counts, 3 components", counts, "poisson"
    yield "skewed, 4 groups", lambda seed: simulated(seed, shape="skewed"), "gaussian"
    yield "10 % outliers in the fitted rows", contaminated, "gaussian"
    yield "one group, slowly visited", dependent, "gaussian"
    for name, X in continuous_tables(("breast cancer, 10 columns", "pima", "housing")):
        yield (
            f"{name}, rows three times",
            lambda seed, X=X: copied(X, np.random.default_rng(seed)),
            "gaussian",
        )
    if (DATA / "elec2.csv.gz").exists():
        elec = of_shared("elec2.csv.gz", delimiter=",", skiprows=1)[:, 1:6]
        elec = elec[:, elec.std(axis=0) > 0]

        def market(seed):
            start = 20_000 + 4000 * seed
            train = without_rounding(elec, np.random.default_rng(seed))
            later = train[start + 1000 : start + 4000]
            spread = train[start : start + 4000].std(axis=0)
            return train[start : start + 1000] / spread, later / spread

        yield "electricity, half-hours in order", market, "gaussian"


def temperatures(full):
    """Nats per new row at 0.9 and at the temperature that is chosen, and the price."""
    rows = []
    for title, draw, family in situations():
        gains, chosen, times, numbers = [], [], [], []
        for seed in range(5 if full else 1):
            train, test = draw(seed)
            scores, seconds, found = [], [], []
            for alpha in (0.9, "auto"):
                options = {
                    "n_components": "auto",
                    "max_components": LARGEST,
                    "inverse_temperature": alpha,
                    "random_state": 0,
                }
                if family == "gaussian":
                    model = TemperedVBGaussianMixture(**options)
                else:
                    model = TemperedVBMixture(family, **options)
                seconds.append(cpu_seconds(lambda: model.fit(train)))  # noqa: B023
                scores.append(model.score(test))
                found.append(model.n_components_)
            gains.append(scores[1] - scores[0])
            chosen.append(model.inverse_temperature_)
            times.append(seconds[1] / seconds[0])
            numbers.append(found)
        error = np.std(gains) / np.sqrt(max(1, len(gains) - 1))
        rows.append(
            [
                title,
                "/".join(f"{alpha:g}" for alpha in chosen),
                *("/".join(map(str, each)) for each in np.transpose(numbers)),
                f"{np.mean(gains):+.3f} ({error:.3f})",
                f"{np.median(times):.1f}",
            ]
        )
        print(*rows[-1], flush=True)
    return rows


def main(full):
    """Print and save all tables, as they come."""
    report = Report("mixture_tables", quick=not full)
    names = ["table", "K", "ours", "BIC", "BayesianGM", "ours - better"]
    names += ["ours, s", "BIC, s", "BayesianGM, s"]
    report.table(
        "Nats per new row, rounding undone",
        names,
        densities(full, rounded=False),
    )
    report.save()
    report.table(
        "Nats per new row, rows as they are", names, densities(full, rounded=True)
    )
    report.save()
    report.table(
        'The inverse temperature "auto" against 0.9, nats per new row',
        ["rows", "chosen", "K at 0.9", "K", "gain (error)", "times the seconds"],
        temperatures(full),
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main(arguments(__doc__, taste=True).full)
