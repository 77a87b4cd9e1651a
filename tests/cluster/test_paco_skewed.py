"""Clusters whose noise is skewed are not cut, and what counts as skewed."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import gammaln
from sklearn.metrics import adjusted_rand_score

from skpacbayes import PACOClusterer
from skpacbayes.cluster._paco_fitting import MixtureProblem
from skpacbayes.cluster._paco_skewed import (
    SkewedClusters,
    log_ratios_along,
    quantile,
)

NOISE = {
    "exponential": lambda rng, size: rng.exponential(size=size),
    "gamma": lambda rng, size: rng.gamma(2, size=size) / 2**0.5,
    "lognormal": lambda rng, size: np.exp(0.6 * rng.normal(size=size)) / 0.8,
    "half-normal": lambda rng, size: np.abs(rng.normal(size=size)) / 0.6,
    "normal": lambda rng, size: rng.normal(size=size),
}


def groups(kind, n_clusters, n_features, n_rows, seed):
    """Groups 8 standard deviations apart or more, each skewed to any side."""
    rng = np.random.default_rng([seed, n_clusters])
    places = rng.permutation(3**n_features)[:n_clusters]
    centers = 8.0 * np.stack(np.unravel_index(places, (3,) * n_features), axis=1)
    y = rng.integers(n_clusters, size=n_rows)
    sides = np.where(rng.random(centers.shape) < 0.5, -1, 1)
    return centers[y] + sides[y] * NOISE[kind](rng, (n_rows, n_features)), y


def fitted(X, **parameters):
    model = PACOClusterer(random_state=0, n_iter=20, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize(
    ("n_clusters", "n_features", "n_rows"), [(1, 2, 1000), (3, 2, 2000), (5, 4, 1000)]
)
def test_skewed_clusters_are_not_cut(kind, n_clusters, n_features, n_rows):
    X, y = groups(kind, n_clusters, n_features, n_rows, seed=0)
    model = fitted(X)
    assert model.n_clusters_ == n_clusters
    assert adjusted_rand_score(y, model.labels_) > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_skewed_clusters_are_not_cut_in_other_coordinates(seed):
    """A linear map of all columns: the axes are directions, not features."""
    X, y = groups("exponential", 3, 3, 900, seed)
    A = np.random.default_rng(seed).normal(size=(3, 3))
    model, mapped = fitted(X @ A), fitted(X @ A @ A, shape="tied")
    assert model.n_clusters_ == mapped.n_clusters_ == 3
    assert adjusted_rand_score(y, model.labels_) > 0.97
    assert adjusted_rand_score(y, mapped.labels_) > 0.97


def test_a_stream_does_not_cut_skewed_clusters():
    X, y = groups("exponential", 2, 2, 260, seed=1)
    model = PACOClusterer(random_state=0, n_iter=20, refresh=65).partial_fit(X)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(y, model.predict(X)) == 1.0


def gains(x, weights=None, widths=None):
    weights = np.ones(len(x)) if weights is None else weights
    widths = np.zeros(len(x)) if widths is None else widths
    mean = weights @ x / weights.sum()
    return weights @ log_ratios_along(x - mean, widths, weights)


@pytest.mark.slow
def test_the_gain_is_that_of_the_likeliest_parameters():
    """Against a general optimiser over modes, widths and exponents, to 0.02 a row.

    The modes and exponents that are tried are few, and the widths are pulled to those
    of normal noise by five rows in 4,000.
    """
    x = np.random.default_rng(0).exponential(size=4000)

    def least_loss(asymmetric):
        def loss(parameters):
            mode, logs = parameters[0], np.clip(parameters[1:], -9, 9)
            left, right, p = np.exp(logs)
            right = right if asymmetric else left
            gaps = x - mode
            sides = np.where(gaps > 0, gaps / right, -gaps / left) ** p
            return np.mean(sides) + np.log(left + right) + gammaln(1 + 1 / p)

        starts = [(m, np.log(s), 0, np.log(p)) for m in (0.01, 0.7) for s in (0.01, 1)
                  for p in (1, 2)]  # fmt: skip
        options = {"maxiter": 4000, "maxfev": 4000}
        found = (
            minimize(loss, s, method="Nelder-Mead", options=options) for s in starts
        )
        return min(one.fun for one in found)

    best = least_loss(False) - least_loss(True)
    assert abs(gains(x) / len(x) - best) < 0.02


def test_symmetric_noise_gains_nothing():
    """Rows and their mirror images: each side is as wide."""
    x = np.random.default_rng(0).standard_t(3, size=500)
    assert abs(gains(np.concatenate([x, -x]))) < 1e-9


@pytest.mark.parametrize("factor", [1e-3, -1.0, 1e3])
def test_the_gain_does_not_depend_on_unit_and_side(factor):
    x = np.random.default_rng(0).gamma(2, size=301)
    assert_allclose(gains(factor * x), gains(x), rtol=1e-9)


def test_merged_rows_are_as_wide_as_they_were():
    """Pairs of rows, and their means with the variance of each pair: the same."""
    x = np.random.default_rng(0).exponential(size=(400, 2))
    means, widths = x.mean(axis=1), x.var(axis=1)
    assert_allclose(gains(means, np.full(400, 2.0), widths), gains(x.ravel()))


@pytest.mark.parametrize("shape", ["round", "tied"])
def test_a_cluster_must_pay_for_its_skewness(shape):
    """Normal rows gain nothing; exponential ones what is left after the price."""
    rng = np.random.default_rng(0)
    gained = {}
    for kind in ("normal", "exponential"):
        X = NOISE[kind](rng, (500, 4))
        X = X - X.mean(axis=0)
        problem = MixtureProblem(X, np.ones(500), np.zeros(500), np.zeros((4, 4)))
        skewed, single = SkewedClusters(problem), problem.single(shape)
        skewed.look_at(single)
        gained[kind] = skewed.gain(single)
        assert skewed.any == (gained[kind] > 0)
        if kind == "exponential":
            found = skewed.log_ratios(single).sum() * skewed.share
            half_log = np.log(problem.n_evidence) / 2
            n_parameters = (4 * 5 / 2) * half_log
            price = n_parameters if shape == "tied" else 4 * (half_log + np.log(4))
            assert_allclose(gained[kind], found - price - 3.0)
    assert gained["normal"] == 0
    assert gained["exponential"] > 50


def test_quantiles_are_those_of_rows_not_of_points():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(9, 2)), rng.integers(1, 5, 9)
    repeated = np.repeat(points, weights, axis=0)
    expected = np.quantile(repeated, 0.3, axis=0, method="inverted_cdf")
    assert_allclose(quantile(points, 0.3, weights.astype(float)), expected)
