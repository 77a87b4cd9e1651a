"""Columns of categories that depend on each other, of which components cut groups."""

import re
import warnings

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats.contingency import association

from skpacbayes.mixture import Categorical, TemperedVBMixture
from skpacbayes.mixture._dependent_categories import DependentCategories, cramers_v

TEXT = "depend on each other within groups"
FAMILIES = "bernoulli", "categorical", "mixed", "missing", "stream"
DEPENDENT = "pairs", "chain", "duplicates"


def drawn(family, dependence, seed, n=800):
    """Return rows of two groups, six columns of categories each, and the family."""
    rng = np.random.default_rng(seed)
    group, z = np.arange(n) % 2, rng.normal(size=(n, 6))
    if dependence == "pairs":
        z[:, 1], z[:, 3] = (0.85 * z[:, j] + 0.53 * z[:, j + 1] for j in (0, 2))
    if dependence == "chain":
        for j in range(1, 4):
            z[:, j] = 0.85 * z[:, j - 1] + 0.53 * z[:, j]
    if dependence == "duplicates":
        z[:, 1] = np.where(rng.random(n) < 0.7, z[:, 0], z[:, 1])
    X = (z < norm.ppf(np.where(group, 0.85, 0.15))[:, None]).astype(float)
    if family == "categorical":
        X += z < norm.ppf(np.where(group, 0.6, 0.05))[:, None]
        return X, "categorical"
    if family == "mixed":
        X = np.column_stack([rng.normal(3 * group), X, rng.poisson(3 + 5 * group)])
        return X, ["normal", *["bernoulli"] * 4, *["categorical"] * 2, "poisson"]
    if family == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, "bernoulli"


def told_by(mixture, fit, *args, **options):
    """Return the warnings of dependent columns that a call gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(mixture, *args, **options)
        assert mixture.n_components_ > 0  # a stream is fitted when it is looked at
    return [str(own.message) for own in caught if TEXT in str(own.message)]


def fitted(family, dependence, seed):
    """Return the number that "auto" chooses, and the warnings of dependent columns."""
    X, kinds = drawn(family, dependence, seed)
    mixture = TemperedVBMixture(kinds, "auto", n_init=1, random_state=0)
    fit = type(mixture).partial_fit if family == "stream" else type(mixture).fit
    told = told_by(mixture, fit, X)
    return mixture.n_components_, told


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dependence", DEPENDENT)
@pytest.mark.slow
def test_dependent_categories_are_told_of_with_the_number_of_groups(family, dependence):
    found, told = fitted(family, dependence, 5)
    assert found > 2
    assert len(told) == 1
    assert " 2 components with dependent pairs" in told[0]
    assert f"better than the {found} that" in told[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_independent_categories_are_not(family):
    assert fitted(family, "none", 6) == (2, [])


@pytest.mark.slow
def test_false_alarms_are_few():
    """At most one in twenty, where chances of four to nine columns are drawn."""
    told = 0
    for seed in range(60):
        rng = np.random.default_rng([9, seed])
        K, d = rng.integers(1, 4), rng.integers(4, 10)
        chances = norm.cdf(rng.normal(size=(K, d)))
        X = rng.random((500, d)) < chances[rng.integers(K, size=500)]
        mixture = TemperedVBMixture("bernoulli", "auto", n_init=1, random_state=0)
        told += len(told_by(mixture, type(mixture).fit, X.astype(float)))
    assert told <= 3


def test_the_warning_names_the_pairs():
    pandas = pytest.importorskip("pandas")
    X, kinds = drawn("mixed", "pairs", 5)
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    mixture = TemperedVBMixture(kinds, "auto", n_init=1, random_state=0)
    with pytest.warns(UserWarning, match=TEXT) as caught:
        mixture.fit(frame)
    text = next(str(each.message) for each in caught if TEXT in str(each.message))
    pairs = re.findall(
        r"column (\d) of X \('(.)'\) with column (\d) of X \('(.)'\)", text
    )
    assert sorted(pairs) == [("1", "b", "2", "c"), ("3", "d", "4", "e")]


def groups_of(X, n_groups=1, family=None):
    """Return groups of rows in equal parts."""
    family = Categorical().begin(X) if family is None else family
    shares = (np.arange(len(X))[:, None] % n_groups == np.arange(n_groups)) * 1.0
    parts = [(family, list(range(X.shape[1])))]
    return DependentCategories(X, np.ones(len(X)), parts, shares)


def test_the_distribution_of_a_group_sums_to_one_and_has_the_pairs():
    X, _ = drawn("categorical", "chain", 0)
    values = np.indices((3,) * 6).reshape(6, -1).T.astype(float)
    groups = groups_of(np.vstack([X, values]))
    share = np.append(np.ones(len(X)), np.zeros(len(values)))
    log_densities, size, _ = groups.described(share)
    forest = groups.forest(share)
    assert {(0, 1), (1, 2), (2, 3)} <= set(forest.edges)
    assert groups.n_parameters(forest.edges) == 12 + 4 * len(forest.edges)
    assert size > groups.n_parameters(forest.edges)
    table = np.exp(log_densities[len(X) :])
    np.testing.assert_allclose(table.sum(), 1.0, rtol=0.02)
    joint = [
        table[(values[:, :2] == pair).all(axis=1)].sum() for pair in values[:1, :2]
    ]
    right = [(X[:, :2] == pair).all(axis=1).mean() for pair in values[:1, :2]]
    np.testing.assert_allclose(joint, right, atol=0.01)


def test_an_edge_has_a_price_so_that_independent_columns_have_few():
    rng = np.random.default_rng(3)
    edges = 0
    for _ in range(50):
        X = rng.integers(3, size=(300, 8)).astype(float)
        edges += len(groups_of(X).forest(np.ones(300)).edges)
    assert edges <= 1


@pytest.mark.parametrize("n_columns", [2, 3])
def test_few_columns_cannot_tell(n_columns):
    X, kinds = drawn("bernoulli", "pairs", 5)
    mixture = TemperedVBMixture(kinds, "auto", n_init=1, random_state=0)
    assert not told_by(mixture, type(mixture).fit, X[:, :n_columns])


def test_a_weight_is_a_repeated_row():
    X, kinds = drawn("bernoulli", "pairs", 5)
    weight = np.arange(len(X)) % 3
    mixture = TemperedVBMixture(kinds, 4, n_init=1, random_state=0).fit(X)
    shares = mixture.predict_proba(X)
    found = []
    for rows, own in ((X, weight), (np.repeat(X, weight, axis=0), None)):
        part = shares if own is not None else np.repeat(shares, weight, axis=0)
        own = np.ones(len(rows)) if own is None else own.astype(float)
        parts = [(Categorical().begin(X), list(range(X.shape[1])))]
        groups = DependentCategories(rows, own, parts, part * own[:, None])
        found.append(
            (*groups.best_merge(), *dict(groups.pairs(groups.forests())).values())
        )
    np.testing.assert_allclose(*found)
    assert found[0][1] > 0


def test_cramers_v_is_that_of_scipy():
    rng = np.random.default_rng(0)
    for shape in ((2, 2), (2, 4), (3, 5)):
        table = rng.integers(1, 30, size=shape)
        np.testing.assert_allclose(cramers_v(table), association(table), rtol=1e-12)
    assert cramers_v(np.array([[3.0, 4.0], [0.0, 0.0]])) == 0.0
