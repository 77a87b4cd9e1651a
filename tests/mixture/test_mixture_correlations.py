"""Correlated columns that components without covariances cut in parts."""

import warnings

import numpy as np
import pytest

from skpacbayes.mixture import TemperedVBGaussianMixture, TemperedVBMixture

OPTIONS = {"max_components": 10, "n_init": 1, "random_state": 0}
PRODUCT = [("x", "normal", [0, 1]), ("n", "poisson", [2])]
KINDS = {
    "normal": lambda: TemperedVBMixture("normal", "auto", **OPTIONS),
    "lognormal": lambda: TemperedVBMixture("lognormal", "auto", **OPTIONS),
    "product": lambda: TemperedVBMixture(PRODUCT, "auto", **OPTIONS),
    "diag": lambda: TemperedVBGaussianMixture(
        "auto", covariance_type="diag", **OPTIONS
    ),
}


def rows(kind, n, correlated, seed):
    """Two groups of rows, their columns correlated or not."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    X = rng.normal(size=(n, 2))
    if correlated:
        X = X @ [[1.0, 0.9], [0.0, 0.3]]
    X += 8 * group[:, None]
    if kind == "lognormal":
        return np.exp(X / 4)
    if kind == "product":
        return np.column_stack([X, rng.poisson(3 + 9 * group)])
    return X


def said_of(kind, X):
    """Return whether the warning came, and the number that was chosen."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture = KINDS[kind]().fit(X)
    text = "Columns are correlated within groups"
    return any(text in str(each.message) for each in caught), mixture.n_components_


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [10, 11])
def test_correlated_columns_are_told_of_and_independent_ones_are_not(kind, seed):
    said, n_components = said_of(kind, rows(kind, 400, True, seed))
    assert said
    assert n_components > 2
    said, n_components = said_of(kind, rows(kind, 400, False, seed))
    assert not said
    assert n_components <= 3


@pytest.mark.parametrize("kind", ["uniform", "exponential", "heavy tails"])
def test_columns_of_other_shapes_are_not_called_correlated(kind):
    rng = np.random.default_rng(12)
    X = {
        "uniform": rng.random((400, 2)),
        "exponential": rng.exponential(1.0, (400, 2)),
        "heavy tails": rng.standard_t(3, (400, 2)),
    }[kind]
    said, n_components = said_of("normal", X)
    assert not said
    assert n_components > 1


@pytest.mark.parametrize("beside", [False, True])
def test_lognormal_columns_are_compared_by_their_logarithms(beside):
    """Beside other columns too: the gain is that of normal columns of logarithms."""
    X, texts = rows("product", 400, True, 10) / [2.0, 2.0, 1.0], []
    for name, of_numbers in (("normal", np.asarray), ("lognormal", np.exp)):
        numbers = of_numbers(X[:, :2])
        family = [("x", name, [0, 1]), ("n", "poisson", [2])] if beside else name
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            TemperedVBMixture(family, "auto", **OPTIONS).fit(
                np.column_stack([numbers, X[:, 2]]) if beside else numbers
            )
        texts.append([str(w.message) for w in caught if "nats (BIC)" in str(w.message)])
    assert texts[0] == texts[1]
    assert texts[0]
