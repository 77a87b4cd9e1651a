"""The default of the regressor: a linear model, and curves where they are of use."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from skpacbayes import OnlineVIRegressor
from skpacbayes._kernels.online_state import TOGETHER, WIDE
from skpacbayes.online._expert_choice import FIRST_DROP, VANISHED

from ..common.states import assert_same_state

KINDS = [
    {},
    {"covariance": "diagonal"},
    {"prior_scale": "auto"},
    {"inverse_temperature": 0.5},
    {"loss": "absolute_error"},
    {"loss": "quantile", "quantile": 0.8},
    {"loss": "poisson"},
    {"forgetting": 0.002},
    {"clip": 4.0},
]


def line(n, options, scale=1.0, shift=0.0, d=3):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, d))
    y = X @ np.linspace(0.5, 1.0, d) + rng.normal(size=n)
    if options.get("loss") == "poisson":
        return scale * X + shift, rng.poisson(np.exp(0.4 * y)).astype(float)
    return scale * X + shift, scale * y - shift


def waves(n, d, seed, noise=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    signal = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, signal / signal.std() + noise * rng.normal(size=n)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e3, 1e4)])
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_on_a_line_it_becomes_the_linear_model(options, scale, shift):
    """Bit for bit, however rows are split; and the certificate covers both until then.

    The coefficients are those of the linear model from the first row on.
    """
    if "clip" in options or "inverse_temperature" in options:
        scale, shift = 1.0, 0.0  # neither has a unit
    n = 2 * FIRST_DROP["numbers"] + 50
    X, y = line(n, options, scale, shift)
    model = OnlineVIRegressor(**options, random_state=0)
    whole, pieces = clone(model).fit(X, y), clone(model)
    linear = clone(model).set_params(n_fourier=0)
    for part in np.array_split(np.arange(n), 7):
        pieces.partial_fit(X[part], y[part])
        certificate = pieces.certificate()
        assert certificate.observed <= certificate.bound
        linear.partial_fit(X[part], y[part])
        if "clip" not in options and options.get("prior_scale") is None:
            assert np.array_equal(pieces.coef_, linear.coef_)
    assert_same_state(pieces, whole)
    assert whole.fourier_weight_ == 0.0
    assert not whole._state.phases.size
    if "clip" in options:  # which is in units of running moments then
        assert_allclose(whole.predict(X), linear.predict(X), atol=0.1)
    else:
        assert np.array_equal(whole.predict(X), linear.predict(X))
        assert np.array_equal(whole.coef_std_, linear.coef_std_)
    resumed = pickle.loads(pickle.dumps(pieces)).partial_fit(X[:9], y[:9])
    assert_same_state(resumed, whole.partial_fit(X[:9], y[:9]))


def test_a_row_without_weight_drops_nothing():
    X, y = line(FIRST_DROP["numbers"], {})
    before = OnlineVIRegressor(random_state=0).fit(X, y)
    assert before.fourier_weight_ < VANISHED
    assert before._state.phases.size  # not before there is a row to be learnt
    after = copy.deepcopy(before).partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
    assert_same_state(after, before)
    assert not after.partial_fit(X[:1], y[:1])._state.phases.size


@pytest.mark.parametrize("options", KINDS[:7], ids=str)
def test_curves_are_learnt(options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    y = signal + 0.3 * rng.normal(size=3000)
    if options.get("loss") == "poisson":
        y = rng.poisson(np.exp(0.5 * signal)).astype(float)
    model = OnlineVIRegressor(**options, random_state=0)
    curved = clone(model).fit(X[:2000], y[:2000])
    with pytest.warns(UserWarning, match="a smooth function of the features"):
        linear = clone(model).set_params(n_fourier=0).fit(X[:2000], y[:2000])
    assert curved.fourier_weight_ > 0.99
    assert curved.score(X[2000:], y[2000:]) > linear.score(X[2000:], y[2000:]) + 0.2
    certificate = curved.certificate()
    assert certificate.observed <= certificate.bound


@pytest.mark.parametrize("seed", range(4))
def test_a_curve_that_is_learnt_late_is_not_dropped(seed):
    """In eight dimensions the linear model leads for some thousand rows."""
    X, y = waves(9000, 8, seed)
    model = OnlineVIRegressor(random_state=seed).fit(X[:8500], y[:8500])
    assert model.fourier_weight_ > 0.9
    linear = OnlineVIRegressor(n_fourier=0).fit(X[:8500], y[:8500])  # no warning
    assert model.score(X[8500:], y[8500:]) > linear.score(X[8500:], y[8500:]) + 0.01


@pytest.mark.parametrize("forgetting", [1 / 120, 0.05, 0.9])
def test_a_short_memory_has_linear_models_alone(forgetting):
    X, y = waves(400, 3, 0)
    model = OnlineVIRegressor(forgetting=forgetting, random_state=0).fit(X, y)
    linear = OnlineVIRegressor(forgetting=forgetting, n_fourier=0).fit(X, y)
    assert np.array_equal(model.predict(X), linear.predict(X))
    assert model.noise_variance_ == linear.noise_variance_ > 0.0


def test_where_there_are_no_fourier_features():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 281)), rng.normal(size=40)
    for options, n_features, n_waves in [
        ({}, 281, 0),
        ({}, 280, 120),
        ({"covariance": "full"}, 281, 120),
        ({"covariance": "diagonal"}, 281, 240),
        ({"method": "ngvi_explicit"}, 3, 0),
        ({"method": "sva"}, 3, 0),
    ]:
        model = OnlineVIRegressor(**options, random_state=0)
        model.fit(X[:, :n_features], y)
        assert len(model._state.phases) == n_waves


def test_rows_sorted_by_target_are_learnt_by_the_linear_model():
    X, y = waves(600, 2, 0)
    order = np.argsort(y)
    model, linear = OnlineVIRegressor(random_state=0), OnlineVIRegressor(n_fourier=0)
    with pytest.warns(UserWarning, match="Use shuffled rows"):
        model.fit(X[order], y[order])
    with pytest.warns(UserWarning, match="Use n_fourier='auto'"):
        linear.fit(X[order], y[order])
    assert np.array_equal(model.predict(X), linear.predict(X))


@pytest.mark.parametrize("seed", range(3))
def test_until_curves_are_dropped_its_linear_model_is_the_linear_model(seed):
    """Also its losses, and how it clips rows where columns nearly agree."""
    rng = np.random.default_rng(seed)
    common = rng.standard_t(4, size=2000)
    X = np.column_stack([common, common + 1e-3 * rng.normal(size=2000)])
    y = 1e3 * (X[:, 1] - X[:, 0]) + X[:, 0] + 0.3 * rng.normal(size=2000)
    model = OnlineVIRegressor(random_state=seed).fit(X[:300], y[:300])
    linear = OnlineVIRegressor(n_fourier=0).fit(X[:300], y[:300])
    assert linear.prior_scales_[0] >= WIDE
    assert linear.prior_scales_[0] in model.prior_scales_
    found, alone = model._state, linear._state
    assert len(found.phases)
    assert np.array_equal(found.cumulative_losses[:1], alone.cumulative_losses)
    assert np.array_equal(found.error_counts[:1], alone.error_counts)
    assert model.fourier_weight_ < VANISHED
    assert_allclose(model.predict(X), linear.predict(X), rtol=1e-9, atol=1e-9)


def test_the_error_without_a_theorem_names_the_default():
    X, y = waves(20, 2, 0)
    with pytest.raises(NotImplementedError, match="n_fourier='auto'"):
        OnlineVIRegressor(n_fourier=0).fit(X, y).certificate()


@pytest.mark.parametrize("n_fourier", [0, "auto"])
def test_rows_without_weight_leave_an_average_at_its_prior(n_fourier):
    X, y = waves(9, 2, 0)
    model = OnlineVIRegressor(average=True, n_fourier=n_fourier, random_state=0)
    model.partial_fit(X, y, sample_weight=np.zeros(9))
    assert np.array_equal(model.predict(X), np.zeros(9))
    assert np.array_equal(model.coef_, np.zeros(2))


@pytest.mark.parametrize(("n", "d"), [(30, 3), (60, 5), (200, 5)])
def test_a_line_with_little_noise_is_learnt_as_by_the_linear_model(n, d):
    """Nearly: new rows may be beyond the range of the targets so far."""
    losses = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + 500, d))
        y = X @ rng.normal(size=d) + 0.1 * rng.normal(size=n + 500)
        for n_fourier in (0, "auto"):
            model = OnlineVIRegressor(n_fourier=n_fourier, random_state=seed)
            losses.append(1.0 - model.fit(X[:n], y[:n]).score(X[n:], y[n:]))
    linear, default = np.reshape(losses, (12, 2)).mean(axis=0)
    assert default < 1.25 * linear


def test_a_wide_prior_clips_rows_as_in_the_linear_model():
    """From the first row on: by the linear model, whatever the others are."""
    X, y = waves(40, 2, 0)
    models = [
        OnlineVIRegressor(prior_scale=30.0, n_fourier=n_fourier, random_state=0)
        for n_fourier in (0, "auto")
    ]
    linear, default = (model.fit(X, y)._state for model in models)
    assert len(default.phases)
    assert default.stream[TOGETHER] == linear.stream[TOGETHER] == 1.0
    assert np.array_equal(default.cumulative_losses[:1], linear.cumulative_losses)
