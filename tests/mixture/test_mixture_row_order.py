"""What a fit says of rows that depend on their order, and of rows that do not."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from skpacbayes.mixture import TemperedVBGaussianMixture, TemperedVBMixture
from skpacbayes.mixture._row_order import autocorrelations

OPTIONS = {"n_init": 1, "max_components": 4, "random_state": 0}


def gaussian(n_components="auto", **options):
    return TemperedVBGaussianMixture(n_components, **OPTIONS, **options)


def family(name):
    return TemperedVBMixture(name, "auto", **OPTIONS)


def said(mixture, X, learn="fit"):
    """Fit, and return the texts of warnings of the order of rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(mixture, learn)(X)
        assert mixture.n_components_ > 1
    texts = [str(each.message) for each in caught]
    return [text for text in texts if "their order" in text or "count the" in text]


def walk(n_rows=200, n_features=2):
    return np.random.default_rng(1).normal(size=(n_rows, n_features)).cumsum(axis=0)


def groups(rng, n_rows=120):
    labels = rng.integers(0, 3, n_rows)
    places = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    return places[labels] + rng.normal(size=(n_rows, 2)), labels


@pytest.mark.parametrize(
    ("mixture", "shift", "scale"),
    [
        (gaussian(), 0, 1),
        (gaussian(covariance_type="tied"), 1e6, 1e5),
        (gaussian(covariance_type="diag"), -3, 1e-6),
        (gaussian(outliers=True), 1e6, 1e5),
        (family("normal"), -3, 1e-6),
        (family("student"), 1e6, 1e5),
        (family([("walk", "normal", [0, 1])]), -3, 1e-6),
    ],
)
def test_pieces_of_a_walk_are_named(mixture, shift, scale):
    (message,) = said(mixture, shift + scale * walk())
    assert "columns [0, 1]" in message
    assert "DirichletProcessHMM" in message


@pytest.mark.parametrize("name", ["gamma", "exponential"])
def test_pieces_of_a_walk_of_positive_numbers_are_named(name):
    assert said(family(name), np.exp(walk()))


def test_trends_columns_and_streams_are_named():
    rng = np.random.default_rng(0)
    X = np.linspace(0, 20, 300)[:, None] + rng.normal(size=(300, 1))
    assert said(gaussian(), X[::-1])
    assert said(gaussian(), X, "partial_fit")
    noise = rng.normal(size=(150, 2))
    (message,) = said(gaussian(), np.c_[noise[:, 0], walk(150), noise[:, 1]])
    assert "columns [1, 2]" in message
    X = walk(5000)  # more rows than are checked
    X[rng.random(X.shape) < 0.1] = np.nan
    assert said(family("normal").set_params(max_components=2), X)
    assert not said(gaussian(2), walk())  # the number was given


@pytest.mark.parametrize(("first", "step"), [(1.7e9, 0.5), (3, -1e-6)])
def test_a_column_that_counts_the_rows_is_named(first, step):
    """It is a column of intervals, also beside groups."""
    rng = np.random.default_rng(0)
    X, _ = groups(rng)
    counter = first + step * np.arange(len(X))
    (message,) = said(gaussian(), np.c_[X, counter])
    assert "count the rows" in message
    assert "[2]" in message
    assert not said(gaussian(), np.c_[X, rng.permutation(counter)])
    ignored = [("groups", "normal", [0, 1])]
    assert not said(family(ignored), np.c_[X, counter])


@pytest.mark.slow
def test_sorted_and_repeated_rows_are_not_named():
    """Independent rows, by group, by a column, with equal values too, or copied."""
    rng = np.random.default_rng(0)
    X, labels = groups(rng)
    X[:, 1] += X[:, 0]
    by_group, by_column = np.argsort(labels, kind="stable"), np.argsort(X[:, 0])
    for rows in X[by_group], X[by_column[::-1]], X[by_column].round(1):
        assert not said(gaussian(), rows)
    assert not said(gaussian(), np.sort(X[:, :1], axis=0))
    assert not said(gaussian(), np.repeat(X, 3, axis=0))
    X[rng.random(X.shape) < 0.1] = np.nan
    assert not said(family("normal"), np.repeat(X, 3, axis=0))
    assert not said(gaussian(), load_iris().data)  # by group, which overlap


def test_lines_of_a_regression_are_not_named():
    """The target follows the input, by which rows may be sorted or not."""
    rng = np.random.default_rng(0)
    x = np.tile(np.linspace(-3, 3, 20), 8)
    y = x * rng.choice([-2.0, 2.0], len(x)) + 0.3 * rng.normal(size=len(x))
    assert not said(family("regression"), np.c_[x, y])


def test_the_level_in_random_order_is_kept():
    """No alarm in 300 tables of columns of all kinds, with components of any sizes."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        n_rows = rng.integers(16, 120)
        owners = rng.integers(0, rng.integers(2, 5), n_rows)
        rows = np.c_[rng.standard_cauchy(n_rows), rng.poisson(1.0, n_rows)]
        rows[rng.random(rows.shape) < 0.1] = np.nan
        found.append(autocorrelations(rows, owners))
    assert np.max(found) == 0.0
