"""Heavy tails: a few far rows neither hide effects nor make some up."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.linear_model import LassoCV

from skpacbayes.additive import SparseAdditiveGibbsRegressor
from skpacbayes.additive._regressor_start import (
    fit_student,
    is_biased,
    normal_log_likelihood,
    sloped_log_likelihood,
)

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{words}")
    for words in ("The chains disagree", "Another seed may")
]


def quick(**parameters):
    usual = {"n_iter": 500, "burn_in": 300, "random_state": 0}
    return SparseAdditiveGibbsRegressor(**usual | parameters)


def rows(noise, seed, n=100, p=10):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 500, p))
    f = 1.5 * X[:, 0] - np.sin(2 * X[:, 1]) + X[:, 2]
    return X[:n], f[:n] + noise(rng, n), X[n:], f[n:]


def wild(rng, n):
    """Noise of deviation 1, of 15 in one row of fourteen."""
    return rng.normal(size=n) * np.where(rng.random(n) < 0.07, 15, 1)


def t2(rng, n):
    return rng.standard_t(2, size=n)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "share"), [(wild, 0.6), (t2, 0.9)])
def test_far_rows_hide_no_effects(noise, share):
    """Errors against LassoCV's, and against those under normal noise."""
    risks, found = [], []
    for seed in range(200, 206):
        X, y, new, truth = rows(noise, seed)
        model = quick().fit(X, y)
        found.append(model.noise_freedom_)
        normal = quick(noise_variance=model.noise_variance_).fit(X, y)
        models = model, normal, LassoCV().fit(X, y)
        risks.append([np.mean((each.predict(new) - truth) ** 2) for each in models])
    ours, normal, lasso = np.mean(risks, axis=0)
    assert ours < share * min(normal, lasso)
    assert np.isfinite(found).sum() >= 4


@pytest.mark.parametrize(
    "noise",
    [
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.exponential(size=n) - 1,
        lambda rng, n: rng.uniform(-2, 2, size=n),
    ],
)
def test_light_or_one_sided_noise_is_left_as_it_is(noise):
    """A mean is where the rows are, not where those near most others are."""
    found = []
    for seed in range(8):
        X, y, *_ = rows(noise, seed)
        found.append(quick(n_iter=10, burn_in=0).fit(X, y).noise_freedom_)
    assert np.isinf(found).sum() >= 7


@pytest.mark.parametrize("seed", [1000, 1001])
def test_counts_are_left_as_they_are(seed):
    """Their variance is their mean: the largest are no far rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 10))
    y = rng.poisson(np.exp(1 + 0.6 * X[:, 0] + 0.5 * X[:, 1] + 0.4 * X[:, 2])[:100])
    assert quick(n_iter=10, burn_in=0).fit(X[:100], y).noise_freedom_ == np.inf


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_heavy_tails_whose_scale_grows_are_heavy(seed):
    X, y, _, _ = rows(lambda rng, n: np.zeros(n), seed)
    y = y + np.exp(y / 5) * t2(np.random.default_rng(seed), len(y))
    assert quick(n_iter=10, burn_in=0).fit(X, y).noise_freedom_ < 5


def test_far_rows_on_one_side_come_with_a_warning():
    """Of the skewed and of the wrong only a person can tell."""
    rng = np.random.default_rng(0)
    X, y, *_ = rows(lambda rng, n: rng.normal(size=n), 0)
    y[rng.choice(100, 6, replace=False)] += 30
    with pytest.warns(UserWarning, match="6 targets lie far above .* and 0 far below"):
        assert quick().fit(X, y).noise_freedom_ == np.inf


def test_far_rows_are_counted_with_their_weights():
    """Three rows of weight 2 are six rows."""
    rng = np.random.default_rng(0)
    X, y, *_ = rows(lambda rng, n: rng.normal(size=n), 0)
    y[rng.choice(100, 3, replace=False)] += 30
    words = "6 targets lie far above .* and 0 far below"
    with pytest.warns(UserWarning, match=words):
        quick().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    with pytest.warns(UserWarning, match=words):
        quick().fit(X, y, sample_weight=np.full(100, 2.0))


@pytest.mark.filterwarnings("ignore:.* targets lie far above|.*R-hat")
@pytest.mark.parametrize("noise", [wild, t2])
@pytest.mark.parametrize("weight", [1e4, 1e7, 1e9, 1e12])
def test_one_row_with_nearly_all_the_weight(noise, weight):
    """The scale of most of the weight is 0, and has no likelihood."""
    X, y, _, _ = rows(noise, 0)
    weights = np.where(np.arange(len(y)) == 3, weight, 1.0)
    with pytest.warns(UserWarning, match="sample_weight sums to"):
        model = quick().fit(X, y, sample_weight=weights)
    assert_allclose(model.predict(X[3:4]), y[3], rtol=0.1)


def test_weights_are_repeated_rows_and_a_stream_is_its_rows():
    X, y, new, _ = rows(wild, 3)
    weights = np.random.default_rng(1).integers(1, 4, len(y))
    weighted = quick().fit(X, y, sample_weight=weights)
    repeated = quick().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    streamed = quick().partial_fit(X[:40], y[:40], weights[:40])
    streamed.partial_fit(X[40:], y[40:], weights[40:])
    assert weighted.noise_freedom_ < 3
    assert weighted.noise_freedom_ == repeated.noise_freedom_
    np.testing.assert_allclose(repeated.predict(new), weighted.predict(new), rtol=1e-6)
    np.testing.assert_array_equal(streamed.predict(new), weighted.predict(new))


def test_deviations_cover_the_targets():
    """The variance of the noise is that of all rows, far ones included."""
    X, y, *_ = rows(wild, 3, n=400)
    model = quick().fit(X, y)
    assert model.noise_freedom_ < 4
    mean, std = model.predict(X, return_std=True)
    assert np.mean((y - mean) ** 2) == pytest.approx(np.mean(std**2), rel=0.1)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_any_scale(scale):
    X, y, *_ = rows(wild, 0)
    usual, scaled = quick().fit(X, y), quick().fit(X, scale * y)
    assert scaled.noise_freedom_ == usual.noise_freedom_
    np.testing.assert_allclose(scaled.predict(X) / scale, usual.predict(X), rtol=1e-6)


def test_students_t_is_fitted_by_its_likelihood():
    rng = np.random.default_rng(0)
    residuals, weights = rng.standard_t(2, size=200), rng.integers(1, 4, 200)
    value, freedom, scale, factors = fit_student(residuals, weights)

    def log_likelihood(freedom, scale):
        return weights @ student.logpdf(residuals, freedom, scale=scale)

    assert value == pytest.approx(log_likelihood(freedom, scale))
    for other in (1.05 * scale, scale / 1.05):
        assert value > log_likelihood(freedom, other)
    assert weights @ factors == pytest.approx(weights.sum(), rel=1e-6)


def test_variance_that_grows_with_predictions_is_found():
    rng = np.random.default_rng(0)
    predictions, weights = rng.uniform(-1, 1, 2000), rng.integers(1, 4, 2000)
    even = rng.normal(size=2000)
    grown = np.exp(predictions) * even
    normal = normal_log_likelihood(grown, weights)
    found = sloped_log_likelihood(grown, 5 + 3 * predictions, weights)
    truth = weights @ norm.logpdf(grown, scale=np.exp(predictions))
    assert found - normal == pytest.approx(truth - normal, rel=0.02)
    repeated = (np.repeat(each, weights) for each in (grown, predictions))
    assert found == pytest.approx(
        sloped_log_likelihood(*repeated, np.ones(sum(weights)))
    )
    excess = sloped_log_likelihood(even, predictions, weights)
    assert 0 <= excess - normal_log_likelihood(even, weights) < 10
    constant = sloped_log_likelihood(even, 1e6 + even - even, weights)
    assert constant == pytest.approx(normal_log_likelihood(even, weights))


def test_bias_is_told_from_chance():
    rng = np.random.default_rng(0)
    predictions, ones = rng.normal(size=300), np.ones(300)
    found = [
        is_biased(rng.standard_t(2, size=300), predictions, ones, 1.0)
        for _ in range(200)
    ]
    assert np.mean(found) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert is_biased(rng.exponential(size=300), predictions, ones, 1.0)
    assert is_biased(predictions + rng.normal(size=300), predictions, ones, 1.0)
    skewed = rng.exponential(size=300) - 1
    assert is_biased(skewed - skewed.mean(), predictions, ones, 0.5)
