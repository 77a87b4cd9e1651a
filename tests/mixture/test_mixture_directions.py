"""Directions in many columns, where Bessel functions underflow."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpacbayes.mixture import TemperedVBMixture, VonMisesFisher
from skpacbayes.mixture._directions import LARGE, log_bessel


def directions(n, d, group, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(d)
    X[np.arange(n), group] += 1.0
    return X / np.sqrt((X**2).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("order", [0.5, 1.0, 24.0, 31.0, 383.0, 5000.0])
def test_bessel_functions_obey_their_recurrence(order):
    """I_(n-1) - I_(n+1) = 2 n / x I_n, where they underflow too."""
    x = np.array([1e-10, 1e-3, 1.0, LARGE - 1, LARGE, 40.0, 1e3])
    here = log_bessel(order, x)
    above, below = log_bessel(order + 1, x), log_bessel(abs(order - 1), x)
    if order < 1:  # I_(-1/2) has a closed form
        below = 0.5 * np.log(2 / np.pi / x) + np.log(np.cosh(np.minimum(x, 700)))
        below[x > 700] = (0.5 * np.log(2 / np.pi / x) + x - np.log(2))[x > 700]
    found = np.exp(below - here) - np.exp(above - here)
    assert_allclose(found, 2 * order / x, rtol=1e-9)


@pytest.mark.parametrize("order", [0.0, 0.5, 12.0])
def test_bessel_functions_of_large_arguments(order):
    """I_n(x) sqrt(2 pi x) exp(-x) -> 1: scipy's function is NaN from about 2e9."""
    x = np.array([1e8, 1e10, 1e14])
    scaled = log_bessel(order, x) - x + 0.5 * np.log(2 * np.pi * x)
    assert_allclose(scaled, -(order**2) / (2 * x), atol=4 * np.spacing(x[-1]))


@pytest.mark.parametrize("d", [64, 800])
def test_directions_in_many_columns(d):
    """The evidence is exact, and two groups are found, as in three columns."""
    group = np.arange(60) % 2
    X = directions(60, d, group)
    one = TemperedVBMixture("von_mises_fisher", 1, inverse_temperature=1.0)
    before = one.fit(X[:10]).elbo_
    density = one.score_samples(X[10:11])[0]
    assert_allclose(one.fit(X[:11]).elbo_ - before, density, rtol=1e-9)
    mixture = TemperedVBMixture(
        "von_mises_fisher", "auto", max_components=4, random_state=0
    ).fit(X)
    assert mixture.n_components_ == 2
    assert np.isfinite(mixture.elbo_)
    labels = mixture.predict(X)
    assert (labels == labels[0]).tolist() == (group == group[0]).tolist()


def test_directions_narrower_than_the_grid_are_told():
    """A wider grid gives them the density of a Gaussian in the tangent plane.

    The mean log density of 200 such rows has the standard deviation .07.
    """
    rng = np.random.default_rng(0)
    X = np.eye(3)[np.zeros(200, dtype=int)] + 1e-6 * rng.normal(size=(200, 3))
    X /= np.sqrt((X**2).sum(axis=1, keepdims=True))
    options = {"n_components": 1, "random_state": 0}
    message = "max_concentration=10000: rows may lie closer"
    family = [("vmf", "von_mises_fisher", [0, 1, 2])]
    for narrow in ("von_mises_fisher", family):
        with pytest.warns(UserWarning, match=message):
            TemperedVBMixture(narrow, **options).fit(X)
    wide = VonMisesFisher(max_concentration=1e14)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixture = TemperedVBMixture(wide, **options).fit(X)
        TemperedVBMixture("von_mises_fisher", 2, random_state=0).fit(
            directions(60, 3, np.arange(60) % 2)
        )
    assert_allclose(mixture.score(X), -np.log(2e-12 * np.pi) - 1, atol=0.35)


def test_many_rows_of_one_direction():
    """The weight of concentrated rows times the grid exceeds scipy's range."""
    X = directions(50, 3, np.zeros(50, dtype=int))
    mixture = TemperedVBMixture("von_mises_fisher", 1)
    mixture.fit(X, sample_weight=np.full(50, 1e7))
    assert np.isfinite(mixture.elbo_)
    mean = X.mean(axis=0) / np.sqrt((X.mean(axis=0) ** 2).sum())
    assert_allclose(mixture.parameters_["directions"][0], mean)
