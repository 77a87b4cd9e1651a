"""The default prior and the families: densities of new rows, numbers of components.

Gaussian mixtures on components that are thin in some directions and on the tables that
scikit-learn ships, against scikit-learn's two; Poisson, Bernoulli and Student
components on simulated sets, with outliers and without, against Gaussians and BIC;
missing values, against imputation.
"""

import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.pipeline import make_pipeline

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import Student, TemperedVBGaussianMixture, TemperedVBMixture

LARGEST = 10  # number of components that is tried
FEW = 6  # the same where three are there
TABLES = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer, 10 columns": load_breast_cancer,
    "diabetes": load_diabetes,
}


def thin(n, d, K, rng):
    """Components with axes from 1 to 10^-2.5 in directions of their own."""
    centers = 3 * rng.normal(size=(K, d))
    axes = [np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(K)]
    axes = np.array(axes) * np.logspace(0, -2.5, d)
    labels = rng.integers(0, K, n)
    return centers[labels] + np.einsum(
        "nij,nj->ni", axes[labels], rng.normal(size=(n, d))
    )


def thin_components(quick):
    """Nats per new row at the true number of components."""
    cases = [(3, 8, 500), (3, 8, 5000), (2, 5, 500), (4, 10, 500), (4, 5, 5000)]
    rows = []
    for K, d, n in cases[:2] if quick else cases:
        scores = []
        for seed in range(1 if quick else 3):
            X = thin(n + 3000, d, K, np.random.default_rng([seed, K, d]))
            ours = TemperedVBGaussianMixture(K, random_state=0).fit(X[:n])
            theirs = GaussianMixture(K, n_init=3, random_state=0).fit(X[:n])
            scores.append([ours.score(X[n:]), theirs.score(X[n:])])
        mean = np.mean(scores, axis=0)
        rows.append([f"K={K} d={d} n={n}", *(f"{value:.3f}" for value in mean)])
    return rows


def chosen_by_bic(X, most=LARGEST):
    """Return the Gaussian mixture with the least BIC."""
    fits = [
        GaussianMixture(K, n_init=3, random_state=0).fit(X) for K in range(1, most + 1)
    ]
    return min(fits, key=lambda fit: fit.bic(X))


def real_tables(quick):
    """Nats per new row, a third of the standardised rows, and CPU seconds."""
    rows = []
    for name, load in TABLES.items():
        X = load().data[:, :10] if "10" in name else load().data
        X = X / X.std(axis=0)
        scores, seconds = [], []
        for seed in range(1 if quick else 5):
            order = np.random.default_rng(seed).permutation(len(X))
            train, test = np.split(X[order], [2 * len(X) // 3])
            ours = TemperedVBGaussianMixture(
                "auto", max_components=LARGEST, random_state=seed
            )
            bayes = BayesianGaussianMixture(
                n_components=LARGEST, n_init=3, max_iter=500, random_state=seed
            )
            found = []
            seconds.append(
                [
                    cpu_seconds(lambda: ours.fit(train)),  # noqa: B023
                    cpu_seconds(lambda: found.append(chosen_by_bic(train))),  # noqa: B023
                    cpu_seconds(lambda: bayes.fit(train)),  # noqa: B023
                ]
            )
            scores.append([fit.score(test) for fit in (ours, found[0], bayes)])
        values = [*np.mean(scores, axis=0), *np.mean(seconds, axis=0)]
        rows.append([name, *(f"{value:.2f}" for value in values)])
    return rows


def temperatures(quick):
    """Components found at each inverse temperature, and nats per new row."""
    alphas, rows = (0.1, 0.3, 0.9), []
    for name, load in TABLES.items():
        X, y = load(return_X_y=True)
        X = X[:, :10] if "10" in name else X
        X = X / X.std(axis=0)
        classes = len(np.unique(y)) if name != "diabetes" else "-"
        found, scores = [], []
        for alpha in alphas:
            model = TemperedVBGaussianMixture(
                "auto", max_components=FEW, inverse_temperature=alpha, random_state=0
            )
            found.append(model.fit(X).n_components_)
            scores.append([])
            for seed in range(1 if quick else 3):
                order = np.random.default_rng(seed).permutation(len(X))
                train, test = np.split(X[order], [2 * len(X) // 3])
                scores[-1].append(model.fit(train).score(test))
        means = (f"{np.mean(values):.2f}" for values in scores)
        rows.append([name, classes, *found, *means])
    names = [f"{alpha}" for alpha in alphas]
    columns = [
        *(f"K at {name}" for name in names),
        *(f"nats at {name}" for name in names),
    ]
    return ["table", "classes", *columns], rows


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


def numbers_found(quick):
    """Share of the sets on which three components are found."""
    rows, n_sets = [], 5 if quick else 50
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
                family, "auto", max_components=FEW, outliers=outliers, random_state=0
            )
            bare = name == "Bernoulli" or outliers
            bic = np.nan if bare else chosen_by_bic(X, FEW).n_components
            found.append([ours.fit(X).n_components_, bic])
        shares = (np.array(found) == 3).mean(axis=0)
        bic = "-" if bare else f"{100 * shares[1]:.0f} %"
        rows.append([f"{name}, {n_sets} sets", f"{100 * shares[0]:.0f} %", bic])
    return rows


def missing_values(quick):
    """Nats per new complete row after a fit to rows of which a part is missing."""
    rows, n_sets = [], 2 if quick else 5
    for share in (0.0, 0.2, 0.4):
        scores = []
        for seed in range(n_sets):
            X, _ = make_mixture(
                n_samples=6000, n_components=3, n_features=4, random_state=seed
            )
            train, test = X[:1000], X[1000:]
            missing = np.random.default_rng(seed).random(train.shape) < share
            holes = np.where(missing, np.nan, train)
            plain = GaussianMixture(3, n_init=3, random_state=0)
            models = [
                TemperedVBGaussianMixture(3, random_state=0),
                make_pipeline(SimpleImputer(), plain),
                make_pipeline(IterativeImputer(random_state=0), plain),
            ]
            scores.append([model.fit(holes).score(test) for model in models])
        mean = np.mean(scores, axis=0)
        rows.append([f"{100 * share:.0f} %", *(f"{value:.3f}" for value in mean)])
    return rows


def main(quick):
    """Print and save all tables."""
    report = Report("mixture_families", quick=quick)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        report.table(
            "Thin components, nats per new row",
            ["components", "ours", "GaussianMixture"],
            thin_components(quick),
        )
        names = ["ours", "BIC", "BayesianGM"]
        report.table(
            "Real tables, nats per new row and CPU seconds of the choice",
            ["table", *names, *(f"{name}, s" for name in names)],
            real_tables(quick),
        )
        report.table(
            "The inverse temperature: components of the table, nats per new row",
            *temperatures(quick),
        )
        report.table(
            "Three components found",
            ["sets", "the family", "Gaussians, BIC"],
            numbers_found(quick),
        )
        report.table(
            "Missing values, nats per new row",
            ["missing", "ours", "mean, GaussianMixture", "iterative, GaussianMixture"],
            missing_values(quick),
        )
    report.save()


if __name__ == "__main__":
    main(arguments(__doc__).quick)
