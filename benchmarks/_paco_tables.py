"""Tables with known groups: real ones, canonical ones, and ones generated as these are.

A table is a function of the seed that returns rows and labels; label 0 is noise.
"""

import os
from functools import partial
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from skpacbayes.datasets import make_paco_model

# Tables of clustering-data-v1, as NAME.data.gz and NAME.labels0.gz in folders.
DATA = Path(
    os.environ.get(
        "CLUSTERING_DATA",
        Path(__file__).parents[2] / "shared" / "data" / "clustering",
    )
)
MOST_ROWS = 1000  # of a table that is not of many groups
MOST_ROWS_OF_MANY = 2500


def canonical(folder, name, seed, most_rows=MOST_ROWS, standardised=False):
    """Read a table of `DATA`; at most so many of its rows."""
    rows, labels = (
        np.loadtxt(DATA / folder / f"{name}.{kind}.gz") for kind in ("data", "labels0")
    )
    rows = rows[:, rows.std(axis=0) > 0]
    if standardised:
        rows = StandardScaler().fit_transform(rows)
    return _part(rows, labels.astype(int), seed, most_rows)


def shipped(load, standardised, seed):
    """Load a table that scikit-learn ships."""
    data = load()
    rows = data.data.astype(float)
    if standardised:
        rows = StandardScaler().fit_transform(rows)
    return _part(rows, data.target + 1, seed, MOST_ROWS)


def groups(centers, n_rows, spreads, seed):
    """Round normal groups, of one spread or one for each."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(centers), size=n_rows)
    spreads = np.broadcast_to(spreads, len(centers))[labels, None]
    rows = centers[labels] + spreads * rng.normal(size=(n_rows, centers.shape[1]))
    return rows, labels + 1


def grid(side, gap, n_rows, seed):
    """Round groups on a square grid."""
    places = np.arange(side) * gap
    return groups(
        np.dstack(np.meshgrid(places, places)).reshape(-1, 2), n_rows, 1, seed
    )


def scattered(n_groups, n_features, gap, n_rows, spreads, seed):
    """Round groups whose centres are uniform in a cube, at least `gap` apart."""
    rng = np.random.default_rng([seed, n_groups, n_features])
    side = 2 * gap * n_groups ** (1 / n_features)
    centers = [side * rng.random(n_features)]
    while len(centers) < n_groups:
        center = side * rng.random(n_features)
        if np.linalg.norm(np.array(centers) - center, axis=1).min() > gap:
            centers.append(center)
    return groups(np.array(centers), n_rows, spreads, seed)


def sizes_differ(seed):
    """Three dense and five sparse groups."""
    rng = np.random.default_rng(seed)
    sizes = [600] * 3 + [40] * 5
    centers = [(0, 0), (12, 0), (6, 12)] + [(60, 20 * j) for j in range(-2, 3)]
    labels = np.repeat(np.arange(8), sizes)
    spreads = np.repeat([1.0] * 3 + [2.5] * 5, sizes)[:, None]
    rows = np.array(centers)[labels] + spreads * rng.normal(size=(len(labels), 2))
    return rows, labels + 1


def sheared(model, condition, seed):
    """Draw a model of the paper, mapped by a matrix of that condition number."""
    rows, labels = make_paco_model(model, 400, random_state=seed)
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(rows.shape[1], rows.shape[1])))
    return rows @ left * np.geomspace(1, condition, rows.shape[1]), labels + 1


def blobs(cluster_std, mapping, seed):
    """Three blobs, as scikit-learn's comparison of clusterings draws them."""
    rows, labels = datasets.make_blobs(
        n_samples=500, cluster_std=cluster_std, random_state=170 + seed
    )
    return rows @ mapping, labels + 1


def noisy(table, share, seed):
    """Add a share of uniform noise in the box of the rows."""
    rows, labels = table(seed)
    rng = np.random.default_rng(seed)
    n_noise = int(share * len(rows))
    low, high = rows.min(axis=0), rows.max(axis=0)
    noise = rng.uniform(low, high, (n_noise, rows.shape[1]))
    return np.vstack([rows, noise]), np.append(labels, np.zeros(n_noise, dtype=int))


def two(make, seed, **parameters):
    """Two groups that are not convex."""
    rows, labels = make(500, random_state=seed, **parameters)
    return rows, labels + 1


def _part(rows, labels, seed, most_rows):
    kept = np.random.default_rng(seed).permutation(len(rows))[:most_rows]
    return rows[kept], labels[kept]


_S = partial(scattered, 15, 2, 7.0, 1000, 1.0)
ANISOTROPIC = np.array([[0.6, -0.6], [-0.4, 0.8]])
TABLES = {
    "round": {
        "15 groups": _S,
        "20 groups": partial(scattered, 20, 2, 6.0, 1000, 1.0),
        "15 groups, overlapping": partial(scattered, 15, 2, 4.5, 1000, 1.0),
        "sizes differ": sizes_differ,
        "16 groups, d=32": partial(scattered, 16, 32, 12.0, 1000, 1.0),
        "16 groups, d=128": partial(scattered, 16, 128, 20.0, 1000, 1.0),
        "2 groups, d=8": partial(scattered, 2, 8, 4.0, 1000, 1.0),
        "spreads differ": partial(blobs, [1, 2.5, 0.5], np.eye(2)),
        "grid of 4": partial(grid, 2, 6.0, 400),
    },
    "noisy": {
        f"{name}, {100 * share:g} % noise": partial(noisy, table, share)
        for name, table in {
            "15 groups": _S,
            "grid of 9": partial(grid, 3, 8.0, 1000),
        }.items()
        for share in (0.01, 0.05, 0.1)
    },
    "many": {
        "50 groups": partial(scattered, 50, 2, 6.0, 2500, 1.0),
        "grid of 100": partial(grid, 10, 5.66, 2500),
    },
    "real": {
        f"{name}, {'standardised' if standardised else 'raw'}": partial(
            shipped, getattr(datasets, f"load_{name}"), standardised
        )
        for name in ("iris", "wine", "breast_cancer")
        for standardised in (False, True)
    },
    "sheared": {
        "anisotropic": partial(blobs, 1.0, ANISOTROPIC),
        "Model 3, condition 10": partial(sheared, 3, 10.0),
        "Model 4, condition 10": partial(sheared, 4, 10.0),
        "Model 3, condition 1000": partial(sheared, 3, 1000.0),
    },
    "shaped": {
        "two moons": partial(two, datasets.make_moons, noise=0.05),
        "two circles": partial(two, datasets.make_circles, factor=0.5, noise=0.05),
    },
}
CANONICAL = {
    "round": {
        "sipu": ["s1", "s3", "a1", "d31", "unbalance"],
        "fcps": ["tetra", "hepta"],
    },
    "many": {"sipu": ["a3", "birch2"]},
    "real": {"uci": ["ecoli"]},
    "shaped": {
        "sipu": ["aggregation", "jain"],
        "fcps": ["twodiamonds", "lsun", "wingnut", "engytime", "chainlink", "target"],
    },
}


def all_tables():
    """Return the tables by group and name; canonical ones if `DATA` is there."""
    tables = {group: dict(named) for group, named in TABLES.items()}
    if not DATA.is_dir():
        print(f"{DATA} is absent: the canonical tables are left out.")
        return tables
    for group, folders in CANONICAL.items():
        most = MOST_ROWS_OF_MANY if group == "many" else MOST_ROWS
        for folder, names in folders.items():
            for name in names:
                tables[group][name] = partial(
                    canonical,
                    folder,
                    name,
                    most_rows=most,
                    standardised=folder == "uci",
                )
    return tables
