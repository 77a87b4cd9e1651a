"""Thirty kinds of tables on which nothing was chosen: how many clusters are found.

Groups of unequal size, spread and shape, rounded, skewed and bounded columns, counts,
categories, angles, outliers, few rows, more columns than rows, and tables without
groups. An answer is right if the number is, and the adjusted Rand index above 0.75;
else it came with a warning, or in silence. `PACOClusterer()` on the table, and on the
same rows, shuffled, as a stream of blocks; peers are Gaussian mixtures of the number
and covariance type of least BIC, and k-means of the largest silhouette.
"""

import warnings

import numpy as np
from _harness import Report, arguments
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture

from skpacbayes.cluster import PACOClusterer

LARGEST, LEAST_INDEX = 12, 0.75
KINDS = {}


def kind(words):
    """Register a kind: a function of a generator that returns rows and groups."""

    def register(make):
        KINDS[words] = make
        return make

    return register


def normal_groups(rng, centers, n_rows, shares=None, spread=1.0):
    """Rows about centres, and their groups."""
    y = rng.choice(len(centers), size=n_rows, p=shares)
    spread = np.broadcast_to(spread, len(centers))[y][:, None]
    noise = rng.normal(size=(n_rows, np.shape(centers)[1]))
    return np.asarray(centers, dtype=float)[y] + spread * noise, y


TRIANGLE = [[0, 0], [8, 0], [4, 7]]
CORNER = np.array([[0, 0], [1, 0], [0, 1]])


@kind("shares of 90, 7 and 3 %")
def unequal(rng):
    return normal_groups(rng, TRIANGLE, 900, [0.9, 0.07, 0.03])


@kind("two in one correlated cloud")
def correlated(rng):
    X, y = normal_groups(rng, [[0, 0], [0, 0]], 600)
    root = np.linalg.cholesky([[1, 0.95], [0.95, 1]])
    return np.array([[0, 0], [-1.5, 1.5]])[y] + X @ root.T, y


@kind("lattice with gaps")
def lattice(rng):
    cells = 6 * np.array([(a, b) for a in range(4) for b in range(4)])
    return normal_groups(rng, cells[rng.permutation(16)[:11]], 1100)


@kind("a shape of its own each")
def own_shapes(rng):
    X, y = normal_groups(rng, [[0, 0]] * 3, 750)
    roots = np.array([[2, 0.45], [0.45, 2], [1, 1]])
    return np.array([[0, 0], [9, 0], [0, 9]])[y] + roots[y] * X, y


@kind("rounded to whole numbers")
def rounded(rng):
    X, y = normal_groups(rng, [[0, 0, 0], [5, 5, 0], [0, 5, 5]], 600)
    return np.round(X), y


@kind("log-normal")
def lognormal(rng):
    X, y = normal_groups(rng, 2.5 * CORNER, 600, spread=0.4)
    return np.exp(X), y


@kind("eight ordinal columns")
def ordinal(rng):
    y = rng.integers(2, size=500)
    share = np.where(y[:, None] == 0, 0.25, 0.75)
    return rng.binomial(6, share, size=(500, 8)).astype(float), y


@kind("a category, one-hot, beside numbers")
def one_hot(rng):
    X, y = normal_groups(rng, [[0, 0], [6, 0], [3, 5]], 600)
    return np.column_stack([X, np.eye(4)[rng.integers(4, size=600)]]), y


@kind("3 % outliers a hundred times as far")
def outliers(rng):
    X, y = normal_groups(rng, TRIANGLE, 600)
    X[rng.permutation(600)[:18]] = 100 * rng.normal(size=(18, 2))
    return X, y


@kind("concentric, one six times as wide")
def concentric(rng):
    return normal_groups(rng, [[0] * 3] * 2, 800, [0.7, 0.3], [1.0, 6.0])


@kind("four of 150 beside three of 4,000")
def small_beside_large(rng):
    y = np.repeat(np.arange(7), [150] * 4 + [4000] * 3)
    places = [[0, 0], [1, 0], [0, 1], [1, 1], [3, 0], [3, 2], [0, 3]]
    return 12.0 * np.array(places)[y] + rng.normal(size=(len(y), 2)), y


@kind("sines and cosines of angles")
def angles(rng):
    y = rng.integers(3, size=600)
    first = np.array([0, 2.1, 4.2])[y] + 0.25 * rng.normal(size=600)
    second = y + 0.3 * rng.normal(size=600)
    parts = [np.cos(first), np.sin(first), np.cos(second), np.sin(second)]
    return np.column_stack(parts), y


@kind("a curved surface in ten columns")
def surface(rng):
    y = rng.integers(4, size=600)
    places = 3.5 * rng.normal(size=(4, 2))[y] + 0.5 * rng.normal(size=(600, 2))
    bent = np.tanh(places @ rng.normal(size=(2, 10)) / 3)
    return bent + 0.05 * rng.normal(size=(600, 10)), y


@kind("18 rows of three groups")
def eighteen_rows(rng):
    y = np.repeat([0, 1, 2], 6)
    return 9.0 * CORNER[y] + rng.normal(size=(18, 2)), y


@kind("40 rows of two groups")
def forty_rows(rng):
    y = np.repeat([0, 1], 20)
    return 5.0 * np.outer(y, [1, 1, 0, 0]) + rng.normal(size=(40, 4)), y


@kind("60 rows, 200 columns")
def wide(rng):
    return normal_groups(rng, 2 * rng.normal(size=(3, 200)), 60)


@kind("columns twice, and nearly twice")
def copies(rng):
    X, y = normal_groups(rng, 3 * rng.normal(size=(3, 4)), 150)
    near = X[:, :2] + 0.01 * rng.normal(size=(150, 2))
    return np.hstack([X, near, 2 * X[:, :1]]), y


@kind("exponential noise")
def exponential(rng):
    y = rng.integers(3, size=600)
    return 7.0 * CORNER[y] + rng.exponential(size=(600, 2)), y


@kind("Laplace noise")
def laplace(rng):
    y = rng.integers(4, size=800)
    places = 9.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    return places[y] + rng.laplace(size=(800, 2)), y


@kind("uniform squares")
def squares(rng):
    y = rng.integers(4, size=800)
    places = 2.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    return places[y] + rng.uniform(size=(800, 2)), y


@kind("Student noise, two degrees")
def student(rng):
    y = rng.integers(3, size=700)
    return 15.0 * CORNER[y] + rng.standard_t(2, size=(700, 2)), y


@kind("spreads of .1, 1 and 5")
def spreads(rng):
    return normal_groups(rng, 40 * CORNER, 900, spread=[0.1, 1, 5])


@kind("six in a row, four apart")
def in_a_row(rng):
    return normal_groups(rng, 4 * np.outer(np.arange(6), [1, 0]), 900)


@kind("four on a line")
def on_a_line(rng):
    return normal_groups(rng, [[0], [5], [11], [20]], 600)


@kind("counts")
def counts(rng):
    y = rng.integers(3, size=600)
    rates = np.array([[2, 2, 20], [20, 2, 2], [8, 20, 8]])
    return rng.poisson(rates[y]).astype(float), y


@kind("shares of a whole")
def shares(rng):
    y = rng.integers(3, size=500)
    alphas = 3 * np.array([[8, 1, 1, 1], [1, 8, 1, 1], [2, 2, 6, 6]])
    return np.array([rng.dirichlet(alphas[j]) for j in y]), y


@kind("one group: a banana")
def banana(rng):
    x = rng.normal(size=600)
    return np.column_stack([x, x**2 + 0.3 * rng.normal(size=600)]), np.zeros(600, int)


@kind("one group: a disc")
def disc(rng):
    angle, radius = rng.uniform(0, 2 * np.pi, 700), np.sqrt(rng.uniform(size=700))
    return (radius * [np.cos(angle), np.sin(angle)]).T, np.zeros(700, int)


@kind("one group: a normal column")
def one_column(rng):
    return rng.normal(size=(500, 1)), np.zeros(500, int)


@kind("one group: a season")
def season(rng):
    time = np.arange(700) / 20
    rows = np.column_stack([np.sin(time), np.cos(time)])
    return rows + 0.2 * rng.normal(size=(700, 2)), np.zeros(700, int)


def judged(n_found, labels, y):
    """Whether an answer is right."""
    n_groups = len(np.unique(y))
    close = n_groups == 1 or adjusted_rand_score(y, labels) > LEAST_INDEX
    return n_found == n_groups and close


def ours(X, y, *, stream, rng):
    """Whether right, and whether it warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PACOClusterer(random_state=0)
        if stream:
            for block in np.array_split(rng.permutation(X), max(1, len(X) // 100)):
                model.partial_fit(block)
        else:
            model.fit(X)
        return judged(model.n_clusters_, model.predict(X), y), bool(caught)


def least_bic(X, y):
    """Whether a Gaussian mixture is right."""
    largest = min(LARGEST, len(X) // 4)
    found = [
        GaussianMixture(k, covariance_type=shape, n_init=2, random_state=0).fit(X)
        for shape in ("full", "tied", "diag", "spherical")
        for k in range(1, largest + 1)
        if not (shape in ("full", "tied") and X.shape[1] > len(X) // 2)
    ]
    best = min(found, key=lambda model: model.bic(X))
    return judged(best.n_components, best.predict(X), y), False


def largest_silhouette(X, y):
    """Whether k-means is right; it never says one cluster."""
    found = [
        KMeans(k, n_init=3, random_state=0).fit(X).labels_
        for k in range(2, min(LARGEST, len(X) // 4) + 1)
    ]
    best = max(
        found, key=lambda z: silhouette_score(X, z, sample_size=2000, random_state=0)
    )
    return judged(best.max() + 1, best, y), False


def main():
    options = arguments(__doc__)
    report = Report("paco_kinds", quick=options.quick)
    seeds = range(10, 11 if options.quick else 14)
    methods = {
        "PACOClusterer": lambda X, y, rng: ours(X, y, stream=False, rng=rng),
        "the same, stream": lambda X, y, rng: ours(X, y, stream=True, rng=rng),
        "Gaussian mixture, BIC": lambda X, y, rng: least_bic(X, y),
        "k-means, silhouette": lambda X, y, rng: largest_silhouette(X, y),
    }
    totals = {method: np.zeros(3, dtype=int) for method in methods}
    rows = []
    for words, make in KINDS.items():
        row = [words]
        for method, answer in methods.items():
            right, warned = 0, 0
            for seed in seeds:
                rng = np.random.default_rng(seed)
                X, y = make(rng)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    is_right, has_warned = answer(X, y, rng)
                right += is_right
                warned += has_warned and not is_right
            silent = len(seeds) - right - warned
            totals[method] += [right, warned, silent]
            wrong = [f"{warned} warned"] * (warned > 0) + [f"{silent} silent"] * (
                silent > 0 and method.startswith(("PACO", "the same"))
            )
            row.append(f"{right}" + (f" ({', '.join(wrong)})" if wrong else ""))
        rows.append(row)
    rows.append(
        ["all"]
        + [
            f"{right}" + (f" ({warned} warned, {silent} silent)" if place < 2 else "")
            for place, (right, warned, silent) in enumerate(totals.values())
        ]
    )
    report.table(
        f"Right answers of {len(seeds)} draws of each kind; of the others, how many "
        "came with a warning",
        ["kind", *methods],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
