"""Columns that are correlated, or of another family, are told of with the number."""

import re
import warnings

import numpy as np
import pytest
from scipy.stats import gamma, norm, poisson

from skpacbayes.mixture import (
    Binomial,
    Gamma,
    LogNormal,
    Poisson,
    TemperedVBMixture,
)
from skpacbayes.mixture._correlated_columns import CorrelatedColumns, log_copula

OPTIONS = {"max_components": 10, "n_init": 1, "random_state": 0}
FAMILIES = {
    "gamma": "gamma",
    "Gamma(3)": Gamma(3.0),
    "poisson": "poisson",
    "binomial": Binomial(20),
    "mixed": ["normal", "poisson", "gamma"],
}


def said(family, X, n_components="auto"):
    """Return the mixture and the texts of the warnings of `fit`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture = TemperedVBMixture(family, n_components, **OPTIONS).fit(X)
    return mixture, [str(each.message) for each in caught]


def rows(kind, n_groups, correlation, seed, n_samples=600):
    """Rows of three columns of which the last two are correlated within groups."""
    rng = np.random.default_rng([51, seed])
    group = np.arange(n_samples) % n_groups
    z = rng.normal(size=(n_samples, 3))
    z[:, 2] = correlation * z[:, 1] + np.sqrt(1 - correlation**2) * z[:, 2]
    chances, means = norm.cdf(z), (6.0 * 4.0**group)[:, None]
    if kind == "poisson":
        return poisson.ppf(chances, means)
    if kind == "binomial":
        return (chances[:, :, None] > rng.random(20)).sum(axis=2).astype(float)
    X = gamma.ppf(chances, 3.0) * means
    if kind == "mixed":
        X[:, 0], X[:, 1] = 4 * group + z[:, 0], poisson.ppf(chances[:, 1], means[:, 0])
    return X


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("kind", ["gamma", "Gamma(3)", "poisson", "mixed"])
def test_correlated_columns_are_named_with_the_number(kind, n_groups):
    family = FAMILIES[kind]
    mixture, texts = said(family, rows(kind, n_groups, 0.85, 0))
    assert mixture.n_components_ > n_groups
    (text,) = [text for text in texts if "correlated within groups" in text]
    assert "column 1 of X with column 2 of X" in text
    assert int(re.search(r"(\d+) components? with correlations", text)[1]) == n_groups
    mixture, texts = said(family, rows(kind, n_groups, 0.0, 0))
    assert mixture.n_components_ == n_groups
    assert not [text for text in texts if "correlated" in text]


@pytest.mark.slow
def test_correlations_of_opposite_signs_do_not_cancel():
    """Two groups of Gamma columns, one with the negated correlation of the other."""
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=1000)
    signs = np.where(groups == 0, 0.85, -0.85)
    first, second = rng.normal(size=(2, 1000))
    second = signs * first + np.sqrt(1 - signs**2) * second
    X = gamma.ppf(norm.cdf(np.column_stack([first, second])), 3.0)
    _, messages = said("gamma", X * np.exp(2.5 * groups)[:, None])
    assert any("2 components with correlations" in text for text in messages)


def test_overdispersed_binomial_columns_with_common_chances_are_told_of():
    mixture, texts = said(Binomial(20), rows("binomial", 1, 0.9, 0))
    assert mixture.n_components_ > 1
    assert [text for text in texts if "(BIC)" in text]


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_two_of_four_counts_with_a_common_factor_are_named(missing):
    rng = np.random.default_rng(52)
    means = np.tile([8.0, 5.0, 9.0, 4.0], (600, 1))
    means[:, :2] *= rng.gamma(4, 0.25, (600, 1))
    X = rng.poisson(means).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    mixture, texts = said("poisson", X)
    assert mixture.n_components_ > 1
    (text,) = [text for text in texts if "correlated within groups" in text]
    assert "column 0 of X with column 1 of X" in text
    assert "1 component with correlations" in text


@pytest.mark.parametrize("family", ["gamma", "lognormal", "poisson"])
def test_groups_may_lack_a_column_and_rows_nearly_all_values_of_one(family):
    """Warnings of NumPy would be errors here: there is nothing to divide."""
    rng = np.random.default_rng(58)
    far = np.arange(400) % 2 == 1
    X = rng.poisson(20.0, (400, 3)) + rng.integers(1, 4, (400, 1)) * 4.0
    X = np.where(far[:, None], 1e4, 1.0) * (X + 1.0)
    X[far, 2] = np.nan
    groups = groups_of(family, X, np.column_stack([~far, far]) * 1.0)
    assert groups.can_read(X)
    assert np.isfinite(groups.best_merge()[1])
    X[:, 2] = np.nan
    assert not CorrelatedColumns.can_read(X)


def groups_of(name, X, shares):
    families = {"gamma": Gamma("auto"), "lognormal": LogNormal(), "poisson": Poisson()}
    parts = [(families[name], list(range(X.shape[1])))]
    return CorrelatedColumns(X, np.ones(len(X)), parts, shares)


@pytest.mark.slow
def test_overdispersed_counts_are_not_called_correlated():
    rng = np.random.default_rng(53)
    means = np.where(np.arange(400)[:, None] % 2, 20.0, 3.0)
    X = rng.negative_binomial(4, 4 / (4 + means), (400, 3)).astype(float)
    _, texts = said("poisson", X)
    assert [text for text in texts if "overdispersed" in text]
    assert not [text for text in texts if "correlated" in text]


POSITIVE = {
    "lognormal": lambda rng, shape: np.exp(0.8 * rng.normal(size=shape)),
    "gamma": lambda rng, shape: rng.gamma(1.8, 1.0, shape),
    "exponential": lambda rng, shape: rng.exponential(1.0, shape),
}
RIGHT = {
    "lognormal": ["lognormal"],
    "gamma": ["gamma"],
    "exponential": ["exponential", "gamma"],
}
TOLD = r"Other families describe the positive|do not have the shape that"


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("family", ["lognormal", "gamma", "exponential", "Gamma(3)"])
@pytest.mark.parametrize("kind", [*POSITIVE])
def test_another_family_of_positive_columns_is_named_with_the_number(
    kind, family, n_groups
):
    rng = np.random.default_rng([54, n_groups])
    scales = 40.0 ** (np.arange(500) % n_groups)
    X = POSITIVE[kind](rng, (500, 2)) * scales[:, None]
    mixture, texts = said(FAMILIES.get(family, family), X)
    found = [text for text in texts if re.search(TOLD, text)]
    if family in RIGHT[kind]:
        assert mixture.n_components_ == n_groups
        assert not found
    else:
        (text,) = found
        assert int(re.search(r"(\d+) components? would", text)[1]) == n_groups
        right = "lognormal" if kind == "lognormal" else "gamma"
        assert f'"{right}"' in text


@pytest.mark.slow
def test_the_better_family_of_each_column_is_named():
    rng = np.random.default_rng(55)
    X = np.column_stack([rng.exponential(1.0, 800), np.exp(rng.normal(size=800))])
    _, texts = said(["lognormal", "gamma"], X)
    (text,) = [text for text in texts if re.search(TOLD, text)]
    assert '"lognormal" for column 1 of X' in text
    assert '"gamma" for column 0 of X' in text
    _, texts = said(["gamma", "lognormal"], X)
    assert not [text for text in texts if re.search(TOLD, text)]


@pytest.mark.parametrize("correlation", [-0.6, 0.3, 0.9])
def test_the_copula_is_a_density(correlation):
    """Its mean under independence is one, up to the noise of the draws."""
    scores = np.random.default_rng(56).normal(size=(200_000, 2))
    matrix = np.array([[1.0, correlation], [correlation, 1.0]])
    weight = np.ones(len(scores))
    found = np.exp(log_copula(scores, matrix, weight, np.zeros(2, dtype=bool)))
    assert abs(found.mean() - 1) < 5 * found.std() / np.sqrt(len(found)) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("family", ["poisson", "binomial"])
@pytest.mark.parametrize("n_features", [2, 4])
def test_counts_that_vary_less_are_not_called_correlated(n_features, family):
    """Groups whose columns are narrower than the family, as ratings from 1 to 5 are."""
    for seed in range(3):
        rng = np.random.default_rng([57, seed])
        means = np.where(np.arange(400)[:, None] % 2, 4.0, 2.0)
        X = np.clip(np.rint(rng.normal(means, 0.8, (400, n_features))), 1, 5)
        _, texts = said(Binomial(5) if family == "binomial" else family, X)
        assert not [text for text in texts if "correlated" in text]


@pytest.mark.parametrize("of_rare", ["gamma", "normal", "poisson", "categorical"])
def test_columns_and_categories_that_few_rows_have(of_rare):
    """The rows that are looked at may have no value of them: `fit` does not fail."""
    rng = np.random.default_rng(59)
    X = rng.gamma(3.0, 1.0, (20_000, 2))
    X[:, 1] = 1.0 if of_rare == "categorical" else np.nan
    X[:3, 1] = [2.0, 3.0, 4.0]
    options = {**OPTIONS, "max_components": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        mixture = TemperedVBMixture(["lognormal", of_rare], "auto", **options).fit(X)
    assert mixture.n_components_ <= 2


@pytest.mark.parametrize("family", ["lognormal", "gamma", "exponential"])
def test_few_values_say_nothing_of_the_family(family):
    """A density at values that many rows share has no upper bound."""
    for X in (np.ones((1, 2)), np.repeat([[5.0, 4.0], [4.0, 9.0]], 50, axis=0)):
        _, texts = said(family, X)
        assert not [text for text in texts if "Other families" in text]
