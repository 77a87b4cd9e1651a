"""Weights that are worth fewer rows than their sum."""

import warnings

import numpy as np
import pytest

from skpacbayes.mixture import (
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
)

TEXT = "they are worth"
DRAWS = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "one of nearly zero": lambda rng, n: np.r_[rng.lognormal(0.0, 1.0, n - 1), 1e-9],
    "population": lambda rng, n: rng.uniform(1.0, 900.0, n),
}
FREQUENCIES = {
    "none": lambda rng, n: None,
    "equal": lambda rng, n: np.full(n, 1.7),
    "counts": lambda rng, n: rng.geometric(0.2, n) - 1,
    "counts from two": lambda rng, n: 1 + rng.geometric(0.02, n),
    "mean one": lambda rng, n: (lambda c: c / c.mean())(rng.geometric(0.2, n) - 1),
    "halves": lambda rng, n: rng.integers(1, 20, n) / 2,
    "millions": lambda rng, n: 1e6 * rng.integers(1, 20, n),
    "decay": lambda rng, n: 0.99 ** np.arange(n),
    "nearly equal": lambda rng, n: rng.uniform(0.8, 1.2, n),
}
MIXTURES = {
    "full": TemperedVBGaussianMixture,
    "multinomial": TemperedVBMultinomialMixture,
    "poisson": lambda *numbers, **options: TemperedVBMixture(
        "poisson", *numbers, **options
    ),
}


def counts(n=200, seed=0):
    """Return counts of two groups."""
    rng = np.random.default_rng(seed)
    return rng.poisson([[3.0, 20.0, 8.0], [25.0, 4.0, 8.0]], (n // 2, 2, 3)).reshape(
        n, 3
    )


def said(name, weight, n_components="auto", **options):
    """Return the warnings of unequal weights."""
    options = {"n_init": 1, "random_state": 0} | options
    mixture = MIXTURES[name](n_components, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture.fit(counts(), sample_weight=weight)
    return [str(own.message) for own in caught if TEXT in str(own.message)]


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("draw", DRAWS)
def test_weights_worth_fewer_rows_are_told_of_and_the_factor_ends_it(name, draw):
    weight = DRAWS[draw](np.random.default_rng(1), 200)
    told = said(name, weight)
    assert len(told) == 1
    n_rows = weight.sum() ** 2 / (weight**2).sum()
    assert f"worth {n_rows:.4g} rows" in told[0]
    factor = float(told[0].split("multiply the weights by ")[1][:-1])
    np.testing.assert_allclose(factor * weight.sum(), n_rows, rtol=0.01)
    assert not said(name, factor * weight)


@pytest.mark.parametrize("draw", FREQUENCIES)
def test_frequencies_equal_and_small_weights_are_not(draw):
    weight = FREQUENCIES[draw](np.random.default_rng(1), 200)
    assert not said("poisson", weight)


@pytest.mark.parametrize(
    "options", [{"n_components": 2}, {"inverse_temperature": 0.2}], ids=str
)
def test_nothing_is_said_where_the_number_is_given_or_rows_count_less(options):
    weight = DRAWS["exponential"](np.random.default_rng(1), 200)
    assert not said("poisson", weight, **options)


@pytest.mark.slow
def test_the_factor_avoids_too_many_components():
    """Of normal groups, with exponential weights."""
    more = np.zeros(2, dtype=int)
    for seed in range(30):
        rng = np.random.default_rng([5, seed])
        K = rng.integers(1, 4)
        group = rng.integers(K, size=300)
        X = 5 * rng.normal(size=(K, 3))[group] + rng.normal(size=(300, 3))
        weight = rng.exponential(size=300)
        for i, factor in enumerate([1.0, weight.sum() / (weight**2).sum()]):
            mixture = TemperedVBGaussianMixture("auto", n_init=1, random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mixture.fit(X, sample_weight=factor * weight)
            more[i] += mixture.n_components_ > K
    assert more[1] <= min(more[0], 1)
