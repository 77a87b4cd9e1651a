"""Noise that rows share, or that is larger where few rows decide, is told of."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LassoCV

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsPoissonRegressor,
    SparseAdditiveGibbsRegressor,
)
from skpacbayes.additive._residuals import groups_of_rows, is_sorted

SHORT = {
    SparseAdditiveGibbsRegressor: {"n_iter": 600, "burn_in": 200},
    SparseAdditiveGibbsClassifier: {"n_iter": 60, "burn_in": 30},
    SparseAdditiveGibbsPoissonRegressor: {"n_iter": 60, "burn_in": 30},
}
KINDS = pytest.mark.parametrize("kind", SHORT, ids=lambda kind: kind.__name__)
SHARED, UNEQUAL = "seem to share noise", "rows with a large influence"


def target(kind, score, rng):
    if kind is SparseAdditiveGibbsRegressor:
        return score + rng.normal(size=len(score))
    if kind is SparseAdditiveGibbsClassifier:
        return rng.random(len(score)) < 1 / (1 + np.exp(-1.5 * score))
    return rng.poisson(np.exp(score))


def messages(kind, X, y, **others):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind(random_state=0, **SHORT[kind]).fit(X, y, **others)
    return " ".join(str(each.message) for each in caught)


def of_units(seed):
    """Four variables are those of twenty units with ten rows each; one is not."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(20, 5)), 10, axis=0)
    X[:, 0] = rng.normal(size=200)
    return rng, X, np.repeat(rng.normal(size=20), 10)


@KINDS
@pytest.mark.parametrize(("shift", "scale"), [(0, 1), (1e4, 1e-3), (1e4, 1e3)])
def test_noise_that_rows_of_a_unit_share_is_told_of(kind, shift, scale):
    """In any order of the rows, shifted and scaled."""
    rng, X, unit = of_units(0)
    y, order = target(kind, X[:, 0] + unit, rng), rng.permutation(200)
    X = shift + scale * X
    found = messages(kind, X[order], y[order])
    assert f"Rows with equal values of features 1 and 2 {SHARED}" in found


@KINDS
def test_effects_of_variables_of_units_are_no_shared_noise(kind):
    for seed in range(2):
        rng, X, _ = of_units(seed)
        y = target(kind, X[:, 0] + X[:, 2], rng)
        found = messages(kind, X, y)
        assert SHARED not in found
        assert UNEQUAL not in found


def autoregressive(rng):
    noise = rng.normal(size=200)
    for row in range(1, 200):
        noise[row] += 0.9 * noise[row - 1]
    return noise


def test_noise_that_follows_in_time_is_told_of():
    """Also if variables follow in time, shifted and scaled; not if these alone do."""
    kind = SparseAdditiveGibbsRegressor
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 4))
        X[:, 1] = autoregressive(rng)
        y = X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=200)
        assert SHARED not in messages(kind, X, y)
        y += autoregressive(rng)
        for shift, scale in ((0, 1), (1e4, 1e-3), (1e4, 1e3)):
            found = messages(kind, shift + scale * X, shift + scale * y)
            assert f"Consecutive rows {SHARED}" in found


@KINDS
def test_rows_sorted_by_their_targets_share_no_noise(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = target(kind, X[:, 0], rng)
    order = np.argsort(y, kind="stable")
    assert SHARED not in messages(kind, X[order], y[order])


def test_groups_and_sorted_targets_are_recognised():
    _, X, _ = of_units(0)
    labels, features = groups_of_rows(X)
    assert features == [1, 2, 3, 4]
    assert labels.max() == 19
    assert groups_of_rows(np.random.default_rng(0).normal(size=(50, 3)))[1] == []
    codes = np.repeat([0.0, 1.0, 2.0], 30)[:, None]
    assert is_sorted(codes)
    assert is_sorted(np.arange(90.0)[:, None])
    assert not is_sorted(np.random.default_rng(0).permutation(codes))


def unequal(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1200, 4))
    mean = X[:, 0] + 0.7 * X[:, 1]
    return X, mean, mean + np.exp(X[:, 0]) * rng.normal(size=1200)


@pytest.mark.slow
def test_effects_that_follow_noise_are_told_of():
    """A wrong answer without a warning is worst: an error far above LassoCV's."""
    n_told = 0
    for seed in range(7):
        X, mean, y = unequal(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SparseAdditiveGibbsRegressor(
                n_iter=600, burn_in=200, random_state=0
            ).fit(X[:200], y[:200])
        told = any(UNEQUAL in str(each.message) for each in caught)
        ours, peer = (
            np.mean((fitted.predict(X[200:]) - mean[200:]) ** 2)
            for fitted in (model, LassoCV().fit(X[:200], y[:200]))
        )
        assert told or ours < 5 * peer
        n_told += told
    assert 1 < n_told < 7


@pytest.mark.parametrize(("shift", "scale"), [(0, 1), (1e4, 1e-3), (1e4, 1e3)])
def test_noise_that_is_larger_in_rows_that_decide_is_told_of(shift, scale):
    """Shifted and scaled; noise of one distribution is not told of."""
    kind = SparseAdditiveGibbsRegressor
    X, mean, y = (each[:200] for each in unequal(1))
    assert UNEQUAL in messages(kind, shift + scale * X, shift + scale * y)
    rng = np.random.default_rng(0)
    for equal in (rng.standard_t(3, 200), rng.exponential(size=200)):
        found = messages(kind, shift + scale * X, shift + scale * (mean + equal))
        assert UNEQUAL not in found
        assert SHARED not in found
