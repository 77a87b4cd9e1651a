"""One cluster that is two groups with one centre is named; one group is not."""

import warnings

import numpy as np
import pytest
from designs import every_two
from sklearn.exceptions import ConvergenceWarning

from skpacbayes import PACOClusterer
from skpacbayes.cluster._paco_crossing import shares_of_crossing_groups
from skpacbayes.cluster._paco_fitting import MixtureProblem

NAMED = "two groups with about one centre"


def crossing(rng, correlations, n_rows, n_features=2):
    """Rows of two normal groups that differ in one correlation."""
    roots = [np.linalg.cholesky([[1, r], [r, 1]]) for r in correlations]
    X = rng.normal(size=(n_rows, n_features))
    for rows, root in zip(np.array_split(np.arange(n_rows), 2), roots, strict=True):
        X[rows, :2] = X[rows, :2] @ root.T
    return rng.permutation(X)


def problem_of(X, weights=None):
    X = X - np.average(X, axis=0, weights=weights)
    n, d = X.shape
    weights = np.ones(n) if weights is None else weights
    return MixtureProblem(X, weights, np.zeros(n), np.zeros((d, d)))


@pytest.mark.parametrize("correlations", [(0.9, -0.9), (0.95, 0.0)])
@pytest.mark.parametrize("n_features", [2, 6])
def test_groups_that_cross_are_found_in_any_coordinates(correlations, n_features):
    rng = np.random.default_rng(0)
    X = crossing(rng, correlations, 800, n_features)
    change = rng.normal(size=(n_features, n_features))
    for rows in (X, X @ change, np.round(X, 1)):
        shares = shares_of_crossing_groups(problem_of(rows))
        np.testing.assert_allclose(shares, 0.5, atol=0.15)
        np.testing.assert_allclose(shares.sum(), 1.0)


def test_weights_are_rows():
    rng = np.random.default_rng(1)
    X, weights = crossing(rng, (0.9, -0.9), 300), rng.integers(1, 4, size=300)
    weighted = shares_of_crossing_groups(problem_of(X, weights.astype(float)))
    repeated = shares_of_crossing_groups(problem_of(X.repeat(weights, axis=0)))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6)


def test_rows_that_stand_for_others_are_counted_once():
    rng = np.random.default_rng(2)
    problems = []
    for X in (rng.normal(size=(4000, 8)), crossing(rng, (0.9, -0.9), 4000)):
        problems.append(problem_of(X, np.full(len(X), 20.0)))
        problems[-1].row_weight = 20.0
    assert shares_of_crossing_groups(problems[0]) is None
    np.testing.assert_allclose(shares_of_crossing_groups(problems[1]), 0.5, atol=0.15)


ONE_GROUP = {
    "normal": lambda rng, size: rng.normal(size=size),
    "Student": lambda rng, size: (
        rng.normal(size=size) / np.sqrt(rng.chisquare(3, (size[0], 1)) / 3)
    ),
    "heavy columns": lambda rng, size: rng.standard_t(3, size=size),
    "one heavy column": lambda rng, size: np.column_stack(
        [rng.laplace(size=size[0]), rng.normal(size=size)[:, 1:]]
    ),
    "two scales": lambda rng, size: (
        rng.normal(size=size) * rng.choice([1, 3], (size[0], 1))
    ),
    "skewed": lambda rng, size: rng.gamma(2, size=size),
    "log-normal": lambda rng, size: np.exp(0.6 * rng.normal(size=size)),
    "uniform": lambda rng, size: rng.uniform(size=size),
    "rounded": lambda rng, size: np.round(2 * rng.normal(size=size)),
    "counts": lambda rng, size: rng.poisson(3, size=size).astype(float),
}


@pytest.mark.parametrize("kind", ONE_GROUP)
def test_one_group_is_not_taken_for_two(kind):
    for n_rows, n_features in ((150, 2), (400, 3), (1000, 2)):
        rng = np.random.default_rng(n_rows)
        X = ONE_GROUP[kind](rng, (n_rows, n_features))
        X = X @ rng.normal(size=(n_features, n_features))
        assert shares_of_crossing_groups(problem_of(X)) is None


@pytest.mark.parametrize(
    ("seed", "unit", "stream"), every_two([2, 3, 4], [1e-3, 1e3], [False, True])
)
def test_the_clusterer_says_so(seed, unit, stream):
    """These tables were one cluster without a warning."""
    X = unit * (crossing(np.random.default_rng(seed), (0.95, 0.0), 300) + 1e2)
    model = PACOClusterer(random_state=0, n_iter=20, refresh=100)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if stream:
            for block in np.array_split(X, 3):
                model.partial_fit(block)
        else:
            model.fit(X)
    said = [str(one.message) for one in caught if NAMED in str(one.message)]
    assert said or model.n_clusters_ > 1
    assert all(one.category is ConvergenceWarning for one in caught)


def test_a_single_cluster_that_was_asked_for_is_not_doubted():
    X = crossing(np.random.default_rng(3), (0.9, -0.9), 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PACOClusterer(1, random_state=0, n_iter=20).fit(X)
