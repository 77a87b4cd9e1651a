"""The families: numbers of components, thin components, mixed columns.

Poisson, Bernoulli and Student components on simulated sets, with outliers and without,
against Gaussians and BIC; components that are thin in some directions; tables with
columns of several kinds against StepMix, k-prototypes (`pip install stepmix kmodes`)
and k-means on one-hot columns.

By default the run is short; --full runs everything. Tables are printed as they come.
"""

import warnings
from pathlib import Path

import numpy as np
from _harness import Report, arguments
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skpacbayes.mixture import Student, TemperedVBGaussianMixture, TemperedVBMixture

PIMA = Path(__file__).parents[2] / "shared" / "data" / "pima.csv.gz"
MOST = 6  # number of components that is tried where three are there


def thin(n, d, K, rng):
    """Components with axes from 1 to 10^-2.5 in directions of their own."""
    centers = 3 * rng.normal(size=(K, d))
    axes = [np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(K)]
    axes = np.array(axes) * np.logspace(0, -2.5, d)
    labels = rng.integers(0, K, n)
    return centers[labels] + np.einsum(
        "nij,nj->ni", axes[labels], rng.normal(size=(n, d))
    )


def thin_components(full):
    """Nats per new row at the true number of components."""
    cases = [(3, 8, 500), (3, 8, 5000), (2, 5, 500), (4, 10, 500), (4, 5, 5000)]
    rows = []
    for K, d, n in cases if full else cases[:2]:
        scores = []
        for seed in range(3 if full else 1):
            X = thin(n + 3000, d, K, np.random.default_rng([seed, K, d]))
            ours = TemperedVBGaussianMixture(K, random_state=0).fit(X[:n])
            theirs = GaussianMixture(K, n_init=3, random_state=0).fit(X[:n])
            scores.append([ours.score(X[n:]), theirs.score(X[n:])])
        mean = np.mean(scores, axis=0)
        rows.append([f"K={K} d={d} n={n}", *(f"{value:.3f}" for value in mean)])
    return rows


def chosen_by_bic(X, most=MOST):
    """Return the Gaussian mixture with the least BIC."""
    fits = [
        GaussianMixture(K, n_init=3, random_state=0).fit(X) for K in range(1, most + 1)
    ]
    return min(fits, key=lambda fit: fit.bic(X))


def draw_poisson(rng):
    """Draw counts with three vectors of rates."""
    rates = np.array([[2.0, 10.0, 5.0], [10.0, 2.0, 5.0], [5.0, 5.0, 18.0]])
    return rng.poisson(rates[rng.integers(0, 3, 400)]).astype(float)


def draw_bernoulli(rng):
    """Fifteen answers, five of which are mostly yes in each of three groups."""
    chances = np.where(np.kron(np.eye(3), np.ones(5)) > 0, 0.9, 0.1)
    return rng.binomial(1, chances[rng.integers(0, 3, 400)]).astype(float)


def draw_student(rng):
    """Three groups with three degrees of freedom."""
    centers = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])
    return centers[rng.integers(0, 3, 400)] + rng.standard_t(3, (400, 2))


def draw_outliers(rng):
    """Draw three such groups, and one row in ten from a box about them."""
    X = draw_student(rng)
    X[:40] = rng.uniform(-20, 30, (40, 2))
    return X


def numbers_found(full):
    """Share of the sets on which three components are found."""
    rows, n_sets = [], 50 if full else 5
    for name, family, draw, outliers in [
        ("Poisson", "poisson", draw_poisson, False),
        ("Bernoulli", "bernoulli", draw_bernoulli, False),
        ("Student, 3 degrees", Student(3.0), draw_student, False),
        ("the same, 10 % outliers", Student(3.0), draw_outliers, False),
        ("the same, outliers=True", Student(3.0), draw_outliers, True),
    ]:
        found = []
        for seed in range(n_sets):
            X = draw(np.random.default_rng(seed))
            ours = TemperedVBMixture(
                family, "auto", max_components=MOST, outliers=outliers, random_state=0
            )
            bare = name == "Bernoulli" or outliers
            bic = np.nan if bare else chosen_by_bic(X).n_components
            found.append([ours.fit(X).n_components_, bic])
        shares = (np.array(found) == 3).mean(axis=0)
        bic = "-" if bare else f"{100 * shares[1]:.0f} %"
        rows.append([f"{name}, {n_sets} sets", f"{100 * shares[0]:.0f} %", bic])
        print(*rows[-1], flush=True)
    return rows


def mixed_tables():
    """Yield names, rows, families of the columns, and labels or None."""
    diabetes = load_diabetes(scaled=False)
    families = ["normal", "categorical", *["normal"] * 8]
    yield "diabetes, sex a category", diabetes.data, families, None
    if PIMA.exists():
        pima = np.loadtxt(PIMA, delimiter=",", skiprows=1)
        yield "pima", pima[:, :-1], ["poisson", *["normal"] * 7], pima[:, -1]
    try:
        from river import datasets
    except ImportError:
        return
    rows, labels = zip(*datasets.Phishing(), strict=True)
    X = 2 * np.array([list(row.values()) for row in rows], dtype=float)
    yield "phishing", X, ["categorical"] * X.shape[1], np.array(labels)
    rows = [list(row.values()) for row, _ in datasets.SolarFlare()]
    coded = [
        np.unique(column, return_inverse=True)[1] for column in zip(*rows, strict=True)
    ]
    X = np.array(coded, dtype=float).T
    kept = X.max(axis=0) > 0
    yield "solar flares", X[:, kept], ["categorical"] * kept.sum(), None


def by_family(families):
    """Return triples (name, family, columns) from the family of each column."""
    return [
        (name, name, [i for i, family in enumerate(families) if family == name])
        for name in dict.fromkeys(families)
    ]


def one_hot(X, families):
    """Return standardised numbers beside one-hot categories."""
    is_category = np.array(families) == "categorical"
    parts = [
        (StandardScaler, ~is_category),
        (lambda: OneHotEncoder(sparse_output=False), is_category),
    ]
    return np.hstack(
        [make().fit_transform(X[:, part]) for make, part in parts if part.any()]
    )


def peers(X, train, test, families, K, seed):
    """Yield names, labels of all rows, and nats per new row or None."""
    yield (
        "k-means",
        KMeans(K, n_init=3, random_state=seed).fit_predict(one_hot(X, families)),
        None,
    )
    try:
        import pandas as pd
        from kmodes.kmodes import KModes
        from kmodes.kprototypes import KPrototypes
        from stepmix.stepmix import StepMix
        from stepmix.utils import get_mixed_descriptor
    except ImportError:
        return
    categories = [i for i, name in enumerate(families) if name == "categorical"]
    if len(categories) == X.shape[1]:
        labels = KModes(K, n_init=3, random_state=seed).fit_predict(X)
        yield "k-modes", labels, None
    elif categories:
        scaled = X.copy()
        others = [i for i in range(X.shape[1]) if i not in categories]
        scaled[:, others] = StandardScaler().fit_transform(X[:, others])
        prototypes = KPrototypes(K, n_init=3, random_state=seed)
        labels = prototypes.fit_predict(scaled, categorical=categories)
        yield "k-prototypes", labels, None
    names = [f"x{i}" for i in range(X.shape[1])]
    kinds = {
        "continuous": [n for i, n in enumerate(names) if i not in categories],
        "categorical": [names[i] for i in categories],
    }
    frame, descriptor = get_mixed_descriptor(
        pd.DataFrame(X, columns=names), **{k: v for k, v in kinds.items() if v}
    )
    step = StepMix(
        K, measurement=descriptor, n_init=3, progress_bar=0, random_state=seed
    )
    step.fit(frame.iloc[train])
    log_density = step.score(frame.iloc[test])
    yield "StepMix", step.fit(frame).predict(frame), log_density


def split(X, families, rng):
    """Return indices of rows to fit, with every category, and of a third of them."""
    order = rng.permutation(len(X))
    firsts = [
        np.unique(X[order, column], return_index=True)[1]
        for column, family in enumerate(families)
        if family == "categorical"
    ]
    firsts = np.unique(np.concatenate([[0], *firsts]))
    order = np.concatenate([order[firsts], np.delete(order, firsts)])
    return np.split(order, [2 * len(X) // 3])


def mixed_columns(full):
    """Compare groups with labels (Rand index), and densities, in nats per new row."""
    table = []
    for name, X, families, labels in mixed_tables():
        K, found = 2 if labels is not None else 3, {}
        for seed in range(3 if full else 1):
            train, test = split(X, families, np.random.default_rng(seed))
            ours = TemperedVBMixture(by_family(families), K, random_state=seed)
            nats = ours.fit(X[train]).score(X[test])
            results = [("ours", ours.fit(X).predict(X), nats)]
            results += peers(X, train, test, families, K, seed)
            for method, groups, nats in results:
                rand = np.nan
                if labels is not None:
                    rand = adjusted_rand_score(labels, groups)
                nats = np.nan if nats is None else nats
                found.setdefault(method, []).append([rand, nats])
        for method, values in found.items():
            mean = np.mean(values, axis=0)
            cells = ("-" if np.isnan(value) else f"{value:.3f}" for value in mean)
            table.append([f"{name}, K={K}", method, *cells])
            print(*table[-1], flush=True)
    return table


def main(full):
    """Print all tables as they come, and save them."""
    report = Report("mixture_families", quick=not full)
    report.table(
        "Three components found",
        ["sets", "the family", "Gaussians, BIC"],
        numbers_found(full),
    )
    report.save()
    report.table(
        "Columns of several kinds: adjusted Rand index, nats per new row",
        ["table", "method", "ARI", "nats"],
        mixed_columns(full),
    )
    report.save()
    report.table(
        "Thin components, nats per new row",
        ["components", "ours", "GaussianMixture"],
        thin_components(full),
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main(arguments(__doc__, taste=True).full)
