"""Groups that overlap, and single flat groups: right, or wrong with a warning or not.

Normal groups on a square grid, three standard deviations apart, and single groups of
other noise, which normal components cut in pieces.
"""

import warnings

import numpy as np
from _harness import Report, arguments
from _paco_tables import grid
from sklearn.mixture import GaussianMixture

from skpacbayes.cluster import PACOClusterer

SIDES, SIZES, DISTANCE = (2, 3, 4, 5), (300, 1000, 3000), 3.0


def ball(rng, n_rows, n_features):
    """Rows that are uniform in a ball."""
    directions = rng.normal(size=(n_rows, n_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * rng.random((n_rows, 1)) ** (1 / n_features)


SINGLE = {
    "uniform square": lambda rng, n: rng.uniform(size=(n, 2)),
    "uniform disc": lambda rng, n: ball(rng, n, 2),
    "uniform ball": lambda rng, n: ball(rng, n, 3),
    "uniform, four columns": lambda rng, n: rng.uniform(size=(n, 4)),
    "uniform plus normal": lambda rng, n: (
        rng.uniform(-3, 3, (n, 2)) + rng.normal(size=(n, 2))
    ),
    "disc plus normal": lambda rng, n: 4 * ball(rng, n, 2) + rng.normal(size=(n, 2)),
    "beta": lambda rng, n: rng.beta(2, 2, size=(n, 2)),
    "exponential": lambda rng, n: rng.exponential(size=(n, 2)),
    "normal": lambda rng, n: rng.normal(size=(n, 2)),
}


def ours(X):
    """Return the number of clusters, and whether there is a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return PACOClusterer(random_state=0).fit(X).n_clusters_, bool(caught)


def least_bic(X):
    """Return the number of components of one variance, and False."""
    found = [
        GaussianMixture(k, covariance_type="spherical", random_state=0).fit(X)
        for k in range(1, 31)
    ]
    return min(found, key=lambda model: model.bic(X)).n_components, False


def row_of(name, tables, n_groups):
    """Return a row of the table: right, warned, silent; and those right by BIC."""
    right = warned = by_bic = 0
    for X in tables:
        found, has_warned = ours(X)
        right += found == n_groups
        warned += found != n_groups and has_warned
        by_bic += least_bic(X)[0] == n_groups
    return [name, len(tables), right, warned, len(tables) - right - warned, by_bic]


def main():
    options = arguments(__doc__)
    report = Report("paco_overlap", quick=options.quick)
    seeds = range(300, 301 if options.quick else 304)
    rows = [
        row_of(
            f"{side**2} groups, {n_rows} rows",
            [grid(side, DISTANCE, n_rows, seed)[0] for seed in seeds],
            side**2,
        )
        for side in SIDES
        for n_rows in SIZES
    ]
    for name, make in SINGLE.items():
        tables = [
            make(np.random.default_rng(seed), n_rows)
            for n_rows in (300, 1000)
            for seed in seeds
        ]
        rows.append(row_of(f"one group: {name}", tables, 1))
    report.table(
        "Number of draws in which the number of clusters is right, wrong with a "
        "warning, wrong without one, and right by a Gaussian mixture (spherical, BIC)",
        ["table", "draws", "right", "warned", "silent", "mixture"],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
