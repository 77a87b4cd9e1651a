"""Groups that too few rows per parameter hide from "auto" are told."""

import re
import warnings

import numpy as np
import pytest

from skpacbayes import TemperedVBGaussianMixture
from skpacbayes.mixture import TemperedVBMixture

OPTIONS = {"max_components": 10, "n_init": 1, "random_state": 0}


def groups(n_groups, n_samples, n_features, kind, seed):
    """Rows of groups that are 8 deviations apart, and have one covariance."""
    rng = np.random.default_rng([41, seed])
    labels = rng.integers(0, n_groups, n_samples)
    centers = rng.normal(size=(n_groups, n_features)) * 8 / np.sqrt(2 * n_features)
    X = centers[labels] + rng.normal(size=(n_samples, n_features))
    if kind == "mixed":
        X = X @ rng.normal(size=(n_features, n_features))
    if kind == "one factor":
        X = X + 2 * rng.normal(size=(n_samples, 1))
    return X


def told(mixture, X, *, in_calls_of=None):
    """Return the number of other components that a warning names, or None.

    It is the own number if the warning says that another type suits them better.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if in_calls_of is None:
            mixture.fit(X)
        else:
            for start in range(0, len(X), in_calls_of):
                mixture.partial_fit(X[start : start + in_calls_of])
        own = mixture.n_components_  # pending rows are fitted when asked for
    for text in [str(each.message) for each in caught]:
        if found := re.search(r"but (\d+) components? with", text):
            return int(found[1])
        if "the bound of the same components is" in text:
            return own
    return None


@pytest.mark.parametrize("kind", ["round", "mixed", "one factor"])
@pytest.mark.parametrize(("n_groups", "n_features"), [(3, 30), (5, 20)])
def test_groups_with_one_covariance_are_told(kind, n_groups, n_features):
    """Also beside three or more components, and beside broad directions."""
    n_samples = {3: 300, 5: 400}[n_groups]
    X = groups(n_groups, n_samples, n_features, kind, 3)
    mixture = TemperedVBGaussianMixture("auto", **OPTIONS)
    number = told(mixture, X)
    assert mixture.n_components_ < n_groups
    assert number is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block_size", "calls"), [(100, 7), (300, 300), ("auto", 7), (None, 300)]
)
def test_streams_tell_as_fits_do(block_size, calls):
    X = groups(3, 300, 30, "round", 1)
    mixture = TemperedVBGaussianMixture("auto", block_size=block_size, **OPTIONS)
    number = told(mixture, X, in_calls_of=calls)
    assert mixture.n_components_ < 3
    assert number is not None


@pytest.mark.slow
@pytest.mark.parametrize("unequal", [False, True])
def test_normal_columns_tell_of_groups(unequal):
    rng = np.random.default_rng(42)
    labels = np.arange(150) % 2
    X = rng.normal(size=(150, 200)) + 6 / np.sqrt(200) * labels[:, None]
    X = X * np.exp(3 * rng.normal(size=200)) if unequal else X
    mixture = TemperedVBMixture("normal", "auto", **OPTIONS)
    assert told(mixture, X) == 2
    assert mixture.n_components_ == 1
    Z = X / X.std(axis=0)
    named = TemperedVBGaussianMixture("auto", covariance_type="spherical", **OPTIONS)
    found = named.fit(Z).predict(Z)
    assert max(np.mean(found == labels), np.mean(found != labels)) > 0.98


SHAPES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "mixed": lambda rng, shape: rng.normal(size=shape) @ rng.normal(size=shape[1:] * 2),
    "tails": lambda rng, shape: (
        rng.normal(size=shape) / np.sqrt(rng.chisquare(8, (shape[0], 1)))
    ),
    "skew": lambda rng, shape: rng.gamma(3, size=shape),
    "box": lambda rng, shape: rng.uniform(size=shape),
}


@pytest.mark.parametrize("draw", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("n_features", [5, 15])
def test_one_group_is_not_told_of_others(draw, n_features):
    X = draw(np.random.default_rng(43), (8 * n_features, n_features))
    for mixture in (
        TemperedVBGaussianMixture("auto", **OPTIONS),
        TemperedVBMixture("normal", "auto", **OPTIONS),
    ):
        number = told(mixture, X)
        assert number in (None, mixture.n_components_)
