"""The additive regressor: what it finds, what it refuses, what its options change."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from designs import every_two
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skpacbayes.additive import SparseAdditiveGibbsRegressor
from skpacbayes.additive._basis import usual_range
from skpacbayes.certificates import additive_risk_terms
from skpacbayes.plotting import PartialEffectsDisplay

pytestmark = pytest.mark.filterwarnings("ignore:Another seed may select")  # short runs


def truth(X):
    return np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + X[:, 2]


def data(n=150, p=12, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p))
    return X, truth(X) + noise * rng.normal(size=n)


def quick(**parameters):
    few = {"n_iter": 400, "burn_in": 100, "random_state": 0}
    return SparseAdditiveGibbsRegressor(**(few | parameters))


@pytest.mark.parametrize("basis", ["legendre", "cosine", "spline"])
def test_it_finds_the_variables_and_their_effects(basis):
    X, y = data()
    model = quick(basis=basis).fit(X, y)
    np.testing.assert_array_equal(model.get_support(indices=True), [0, 1, 2])
    new = data(500, seed=1)[0]
    assert np.mean((model.predict(new) - truth(new)) ** 2) < 0.02
    assert model.noise_variance_ == pytest.approx(0.09, rel=0.4)
    effect, std = model.partial_effects(new, 2)
    assert np.mean(abs(effect - new[:, 2] + X[:, 2].mean()) < 3 * std + 0.02) > 0.9


def test_predictions_are_intercept_and_effects():
    X, y = data()
    model = quick().fit(X, y)
    effects = sum(model.partial_effects(X, j)[0] for j in range(X.shape[1]))
    np.testing.assert_allclose(model.predict(X), model.intercept_ + effects, atol=1e-9)
    assert effects.mean() == pytest.approx(0, abs=1e-9)
    draws = model.sample_posterior(2000, random_state=0)
    assert draws.shape == (2000, *model.coefficients_.shape)
    error = draws.std(axis=0) / math.sqrt(2000)
    assert (abs(draws.mean(axis=0) - model.coefficients_) <= 5 * error + 1e-3).all()


def test_intervals_hold_new_rows():
    """95 % of 2000 rows within two deviations: a share of .93 to .98."""
    X, y = data()
    new, target = data(2000, seed=1)
    mean, std = quick().fit(X, y).predict(new, return_std=True)
    assert 0.93 < np.mean(abs(target - mean) < 1.96 * std) < 0.98


def test_models_and_their_weights():
    X, y = data()
    model = quick().fit(X, y)
    assert model.model_weights_.sum() == pytest.approx(1)
    assert (np.diff(model.model_weights_) <= 0).all()
    assert len(np.unique(model.models_, axis=0)) == len(model.models_)
    inclusion = model.model_weights_ @ (model.models_ > 0)
    np.testing.assert_allclose(inclusion, model.inclusion_probabilities_)
    orders = model.model_weights_ @ model.models_
    np.testing.assert_allclose(orders, model.expected_orders_)


def test_the_three_predictions():
    X, y = data()
    mean, randomized, best = (
        quick(prediction=kind).fit(X, y).coefficients_
        for kind in ("mean", "randomized", "map")
    )
    assert np.any(mean != randomized)
    assert np.count_nonzero(best) <= np.count_nonzero(mean)
    model = quick(prediction="map").fit(X, y)
    found = (model.coefficients_ != 0).sum(axis=1)
    assert any((found == visited).all() for visited in model.models_)


@pytest.mark.parametrize(
    "changed",
    [
        {"beta": 0.01},
        {"slab_scale": 0.01},
        {"slab": "l1ball", "radius": 4.0},
        {"inverse_temperature": 20.0},
        {"inverse_temperature": "pac", "radius": 2.0},
        {"noise_variance": 1.0},
        {"max_order": 1},
        {"feature_range": (-2.0, 2.0)},
        {"n_chains": 1},
        {"sampler": "carlin_chib", "n_iter": 100, "burn_in": 20},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The .* disagree")
def test_every_parameter_matters(changed):
    X, y = data(80, 4)
    before = quick().fit(X, y)
    after = quick(**changed).fit(X, y)
    assert np.any(before.predict(X) != after.predict(X))


def test_temperatures():
    X, y = data()
    n = len(y)
    likelihood = quick(noise_variance=0.1).fit(X, y)
    assert likelihood.inverse_temperature_ == pytest.approx(n / 0.2)
    pac = quick(noise_variance=0.1, inverse_temperature="pac", radius=3.0, gamma=0.4)
    assert pac.fit(X, y).inverse_temperature_ == pytest.approx(n * 0.4 / 36.4)
    same = quick(noise_variance=0.1, inverse_temperature=n / 0.2).fit(X, y)
    np.testing.assert_allclose(same.coefficients_, likelihood.coefficients_, atol=1e-12)


@pytest.mark.filterwarnings("ignore:The .* disagree")
def test_gamma_is_of_the_pac_temperature():
    X, y = data(80, 4)
    pac = {"inverse_temperature": "pac", "radius": 1.0, "slab": "l1ball"}
    cold, warm = (quick(gamma=gamma, **pac).fit(X, y) for gamma in (0.9, 0.1))
    assert cold.inverse_temperature_ > 8 * warm.inverse_temperature_


def test_threads_change_nothing():
    X, y = data()
    one, two = quick().fit(X, y), quick(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.coefficients_, two.coefficients_)


def test_at_low_temperature_the_prior_is_left():
    """Inclusion is that of the prior: each size as likely as beta and order allow."""
    X, y = data(60, 3)
    model = quick(
        inverse_temperature=1e-9, slab_scale=1.0, max_order=2, n_iter=20_000
    ).fit(X, y)
    mass = 0.5 + 0.25  # of the orders of one variable
    sizes = mass ** np.arange(4)
    expected = (sizes / sizes.sum()) @ np.arange(4) / 3
    np.testing.assert_allclose(model.inclusion_probabilities_, expected, atol=0.03)


def test_equivariance():
    """Shifted and scaled variables and targets give shifted and scaled predictions."""
    X, y = data()
    model = quick().fit(X, y)
    other = quick().fit(7 * X - 3, 100 * y + 5)
    np.testing.assert_allclose(other.predict(7 * X - 3), 100 * model.predict(X) + 5)
    np.testing.assert_allclose(other.noise_variance_, 1e4 * model.noise_variance_)


def test_a_selector_in_a_pipeline():
    frame = pd.DataFrame(data()[0], columns=[f"v{j}" for j in range(12)])
    y = data()[1]
    pipeline = make_pipeline(
        quick(), PolynomialFeatures(4, include_bias=False), LinearRegression()
    )
    assert pipeline.fit(frame, y).score(frame, y) > 0.85
    model = pipeline[0]
    assert list(model.get_feature_names_out()) == ["v0", "v1", "v2"]
    assert model.transform(frame).shape == (150, 3)
    assert model.get_support(threshold=0.0).all()
    by_name = model.partial_effects(frame, "v1")[0]
    np.testing.assert_array_equal(by_name, model.partial_effects(frame, 1)[0])


# Section 3: bad input and faults.


def test_far_outside_the_range_is_half_a_range_from_its_end():
    X, y = data()
    model = quick().fit(X, y)
    far = np.where(X > 0, 1e6, -1e6)
    low, high = model.feature_ranges_.T
    half = (high - low) / 2
    ends = np.where(X > 0, high + half, low - half)
    with pytest.warns(UserWarning, match="rows is outside of its range"):
        found, nearer = model.predict(far), model.predict(ends)
    np.testing.assert_allclose(found, nearer, rtol=1e-9)
    # The range is one mean distance between rows longer, at both ends.
    np.testing.assert_allclose(high - X.max(axis=0), np.ptp(X, axis=0) / len(X))
    np.testing.assert_allclose(X.min(axis=0) - low, np.ptp(X, axis=0) / len(X))


def test_more_variables_than_rows():
    X, y = data(60, 200, noise=0.1)
    assert set(quick().fit(X, y).get_support(indices=True)) == {0, 1, 2}


@pytest.mark.filterwarnings("ignore:features .* are copies of one another")
def test_constant_and_duplicated_columns():
    """A constant is never in; of twins one is always in, each as often as the other."""
    X, y = data()
    X[:, 5] = 3.0
    X[:, 6] = X[:, 0]
    model = quick(n_iter=3000).fit(X, y)
    found = model.inclusion_probabilities_
    assert found[5] == 0
    assert share_with_any(model, [0, 6]) > 0.99
    assert found[0] == pytest.approx(found[6], abs=0.15)
    assert np.isfinite(model.predict(X)).all()


def share_with_any(model, features):
    """Probability that one of some variables is in."""
    return model.model_weights_ @ (model.models_[:, features] > 0).any(axis=1)


@pytest.mark.filterwarnings("ignore:features .* are copies of one another")
def test_collinear_blocks():
    """A variable, its negative, and a multiple: bases that span the same functions."""
    X, y = data(100, 3)
    X = np.column_stack([X, -X[:, 0], 5 * X[:, 1] + 1])
    model = quick(n_iter=3000).fit(X, y)
    assert share_with_any(model, [0, 3]) > 0.99
    assert share_with_any(model, [1, 4]) > 0.99
    assert np.mean((model.predict(X) - truth(X)) ** 2) < 0.02


@pytest.mark.parametrize(
    ("value", "n", "way"),
    every_two(
        [0.0, 1e9, 3.7, 1e-200],
        [5, 300],
        ["fit", "weights", "stream", "carlin_chib", "spline"],
    ),
)
def test_constant_targets(value, n, way):
    """No mean of equal numbers is rounded, no variable is in, and nothing is warned."""
    X, _ = data(n)
    y = np.full(n, value)
    own = {"sampler": way} if way == "carlin_chib" else {}
    own = {"basis": way} if way == "spline" else own
    model = quick(n_iter=150, burn_in=50, **own)
    if way == "stream":
        for rows in np.array_split(np.arange(n), 3):
            model.partial_fit(X[rows], y[rows])
    else:
        weights = np.linspace(0.3, 2.0, n) if way == "weights" else None
        model.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.predict(X), value, atol=1e-140)
    assert model.inclusion_probabilities_.max() < 0.2
    _, std = model.predict(X, return_std=True)
    assert np.isfinite(std).all()
    assert std.max() <= 1e-6 * max(1.0, abs(value))


@pytest.mark.parametrize("p", [10, 300])
def test_noise_alone(p):
    """The null model: five seeds, no variable in, fewer than one expected."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, p)), rng.normal(size=100)
        found = quick().fit(X, y).inclusion_probabilities_
        assert found.max() < 0.6
        assert found.sum() < 1


@pytest.mark.parametrize("exponent", [450, -450])
def test_targets_of_any_usual_unit(exponent):
    """Powers of two change nothing, to the last digit, up to 1e135 and to 1e-135."""
    X, y = data()
    unit = 2.0**exponent
    usual, other = quick().fit(X, y), quick().fit(X, unit * y)
    np.testing.assert_array_equal(other.predict(X), unit * usual.predict(X))
    assert other.noise_variance_ == unit**2 * usual.noise_variance_


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_targets_whose_variance_is_no_number(unit):
    X, y = data()
    model = quick().fit(X, y)
    with pytest.raises(ValueError, match="divide it by its scale"):
        model.fit(X, unit * y)
    np.testing.assert_array_equal(model.predict(X), quick().fit(X, y).predict(X))


def test_a_stream_refuses_targets_whose_square_is_no_number():
    X, y = data()
    model = quick().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"at most 1e\+150.* got -1e\+200"):
        model.partial_fit(X[:2], np.array([0.0, -1e200]))
    np.testing.assert_array_equal(
        model.predict(X), quick().partial_fit(X, y).predict(X)
    )


def test_without_noise():
    X, _ = data()
    model = quick().fit(X, truth(X))
    assert np.mean((model.predict(X) - truth(X)) ** 2) < 1e-4


def test_weights_select_rows():
    X, y = data(300)
    spoilt = y.copy()
    spoilt[::2] = 50.0
    weights = np.ones(300)
    weights[::2] = 0
    weighted = quick().fit(X, spoilt, sample_weight=weights)
    alone = quick().fit(X[1::2], y[1::2])
    np.testing.assert_allclose(weighted.predict(X), alone.predict(X))
    with pytest.raises(ValueError, match="is positive for 1 rows"):
        quick().fit(X, y, sample_weight=np.eye(300)[0])


def test_chains_that_disagree_are_told_of():
    """One starts at the truth, the others at nothing, and none has time to move."""
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="R-hat .* Increase n_iter"):
        model = quick(n_iter=6, burn_in=0, n_chains=4).fit(X, y)
    assert model.r_hat_ > 1.1


def test_a_full_model_is_told_of():
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="number of variables in a model, 2:"):
        model = quick(max_active=2).fit(X, y)
    assert (model.models_ > 0).sum(axis=1).max() == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sampler": "carlin_chib", "slab": "l1ball"}, "needs slab='gaussian'"),
        ({"feature_range": (1.0, 0.0)}, "feature_range must be two finite ends"),
        ({"feature_range": (0.0, [1.0, 2.0])}, "feature_range must be"),
        ({"feature_range": (0.0, math.nan)}, "feature_range must be"),
        ({"feature_range": (0.0,)}, "feature_range must be"),
    ],
)
def test_parameters_that_do_not_agree(parameters, message):
    X, y = data(40, 3)
    model = quick().fit(X, y)
    before = pickle.dumps(model)
    refused = model.set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        refused.fit(X, y)
    again = pickle.loads(before)
    np.testing.assert_array_equal(refused.predict(X), again.predict(X))


def test_what_is_not_a_variable():
    X, y = data(40, 3)
    model = quick().fit(X, y)
    for feature in (3, -1):
        with pytest.raises(ValueError, match="feature must be from 0 to 2"):
            model.partial_effects(X, feature)
    with pytest.raises(ValueError, match="'v1' is not known: features had no names"):
        model.partial_effects(X, "v1")
    named = quick().fit(pd.DataFrame(X, columns=["u", "v", "w"]), y)
    with pytest.raises(ValueError, match="'v1' is not one of"):
        named.partial_effects(pd.DataFrame(X, columns=["u", "v", "w"]), "v1")
    for feature in (1.5, [0], None):
        with pytest.raises(TypeError, match="feature must be an instance of int"):
            model.partial_effects(X, feature)
    for number in (-1, 0, 2.5):
        with pytest.raises((TypeError, ValueError), match="n_samples"):
            model.sample_posterior(number)
    for name in ("coefficients_", "r_hat_", "inclusion_probabilities_"):
        with pytest.raises(NotFittedError):
            getattr(quick(), name)


@pytest.mark.parametrize("slab", ["gaussian", "l1ball"])
@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_slabs_as_wide_as_may_be(slab, size):
    X, y = data(40, 3)
    name = "slab_scale" if slab == "gaussian" else "radius"
    model = quick(slab=slab, **{name: size})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of tiny balls
        assert np.isfinite(model.fit(X, y).predict(X, return_std=True)).all()
    with pytest.raises(ValueError, match=rf"{name}' parameter .* range \[1e-150"):
        model.set_params(**{name: size**2}).fit(X, y)


def test_one_row_of_a_stream_tells_of_no_variable():
    X, y = data(40, 3)
    model = quick().partial_fit(X[:1], y[:1])
    assert (
        model.inclusion_probabilities_.dtype == model.coefficients_.dtype == np.float64
    )
    assert not model.coefficients_.any()


# Streams and distributed rows.


def test_a_stream_finds_what_fit_finds():
    X, y = data(1800, 5)
    stream = quick(max_order=8)
    for start in range(0, 1800, 300):
        stream.partial_fit(X[start : start + 300], y[start : start + 300])
    batch = quick(max_order=8, feature_range=(*stream.feature_ranges_.T,)).fit(X, y)
    np.testing.assert_allclose(stream.predict(X), batch.predict(X), atol=0.02)
    assert list(stream.get_support(indices=True)) == [0, 1, 2]
    assert stream.n_samples_seen_ == 1800


def test_chains_go_on_from_where_they_ended():
    X, y = data(2100, 5)
    stream = quick(max_order=8).partial_fit(X[:1000], y[:1000])
    assert stream._stream.ends is None
    stream.partial_fit(X[1000:], y[1000:])
    models, noise = stream._stream.ends
    assert stream._stream.n_run == 2024  # 1000 rows and four blocks
    assert {0, 1, 2} <= set(models[1][0])
    assert noise == pytest.approx(0.09, rel=0.2)


def test_statistics_of_parts_add_up():
    X, y = data(900, 4)
    first = quick(max_order=8, feature_range=(-1.0, 1.0)).partial_fit(X[:100], y[:100])
    parts = [
        clone_with_state(first).sufficient_statistics(X[i::4], y[i::4])
        for i in range(4)
    ]
    merged = clone_with_state(first).absorb(sum(parts), memory=0.0)
    assert merged.n_samples_seen_ == 900
    batch = quick(max_order=8, feature_range=(-1.0, 1.0)).fit(X, y)
    np.testing.assert_allclose(
        merged.inclusion_probabilities_, batch.inclusion_probabilities_, atol=1e-6
    )
    np.testing.assert_allclose(merged.predict(X), batch.predict(X), atol=1e-6)
    added = clone_with_state(first).absorb(parts[0])
    assert added.n_samples_seen_ == 100 + 225


def clone_with_state(model):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.filterwarnings("ignore:Rows that are neighbors")
def test_statistics_that_are_refused():
    X, y = data(100, 3)
    model = quick(max_order=2).fit(X, y)
    good = model.sufficient_statistics(X, y)
    allowed = np.sqrt(np.outer(good.diagonal(), good.diagonal()))
    for bad, message in [
        (good[:-1], "have shape"),
        (np.full_like(good, np.nan), "must be finite"),
        (-good, "must be finite, with non-negative weight"),
        (np.where(good == good[0, 2], 1000 * good, good), "Cauchy-Schwarz"),
        (np.where(np.eye(8), good, -0.9 * allowed), "negative eigenvalue"),
        (np.triu(good), "not symmetric"),
        (good - 2 * np.diag([0, 0, *good.diagonal()[2:]]), "squares are negative"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.absorb(bad)
    with pytest.raises(ValueError, match=r"memory=2 should be a number from 0 to 1"):
        model.absorb(good, memory=2)
    with pytest.raises(ValueError, match="leave a positive weight"):
        model.absorb(0 * good, memory=0)
    assert model.n_samples_seen_ == 100


def test_many_rows_are_summed():
    """`fit` keeps sums of products, not rows, where those are smaller."""
    X, y = data(1500, 4)
    model = quick(max_order=6).fit(X, y)
    assert model._stream.rows is None
    assert len(pickle.dumps(model)) < X.nbytes
    assert list(model.get_support(indices=True)) == [0, 1, 2]


# The certificate, the display.


def certified(n=2000, seed=0, **parameters):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    y = 0.5 * X[:, 0] + 0.2 * rng.normal(size=n)
    model = quick(
        inverse_temperature="pac",
        slab="l1ball",
        radius=1.0,
        feature_range=(-1.0, 1.0),
        max_order=3,
        **{"n_iter": 4000, "noise_variance": 0.04, **parameters},
    )
    return model.fit(X, y)


@pytest.mark.slow
def test_certificate():
    """The bound is above the risk, .04 + .25 E(posterior error), and not vacuous."""
    model = certified()
    certificate = model.certificate()
    assert certificate.observed < certificate.bound < 0.25 / 3 + 0.04
    assert certificate.bound == pytest.approx(sum(certificate.terms.values()))
    known = [name for name in certificate.assumptions if "known" in name]
    assert all(certificate.assumptions[name] for name in known)
    of_few = certified(200)
    few = of_few.certificate()
    assert few.terms["divergence"] > certificate.terms["divergence"]
    surer = of_few.certificate(confidence=0.999)
    assert surer.bound > few.bound
    text = str(certificate)
    assert "cannot be checked" in text
    X = np.random.default_rng(9).uniform(-1, 1, (4000, 3))
    y = 0.5 * X[:, 0] + 0.2 * np.random.default_rng(8).normal(size=4000)
    new = model.certificate(X, y)
    assert new.bound == certificate.bound
    # The noise is 0.04; its mean square over 4000 rows has a deviation of 0.0009.
    assert 0.04 - 0.003 < new.observed < new.bound


@pytest.mark.filterwarnings("ignore:The .* disagree")
def test_certificate_says_what_was_estimated():
    X, y = data(100, 3)
    model = quick(inverse_temperature="pac", slab="l1ball").fit(X, y)
    assumptions = model.certificate().assumptions
    assert assumptions["noise_variance is known, not estimated"] is False
    assert assumptions["radius is known, not estimated"] is False


UNITS = "each row has weight 1"


@pytest.mark.filterwarnings("ignore:The .* disagree", "ignore:sample_weight")
def test_weighted_rows_are_not_more_rows():
    """Bounds of 15 rows that count as 15,000 fail, and are not said to hold."""
    model = certified(15, n_iter=200)
    assert model.certificate().assumptions[UNITS] is True
    X = np.random.default_rng(0).uniform(-1, 1, (15, 3))
    y = 0.5 * X[:, 0] + 0.2 * np.random.default_rng(1).normal(size=15)
    weights = np.full(15, 1000.0)
    for heavy in (
        clone(model).fit(X, y, sample_weight=weights),
        clone(model).partial_fit(X, y).partial_fit(X, y, sample_weight=weights),
        clone(model).partial_fit(X, y, sample_weight=weights).partial_fit(X, y),
    ):
        certificate = heavy.certificate()
        assert certificate.assumptions[UNITS] is False
        assert certificate.verdict.startswith("No guarantee")
    statistics = model.sufficient_statistics(X, y)
    absorbed = clone(model).partial_fit(X, y).absorb(statistics)
    assert absorbed.certificate().assumptions[UNITS] is None
    absorbed.absorb(statistics, memory=0.5)
    assert absorbed.certificate().assumptions[UNITS] is False


@pytest.mark.filterwarnings("ignore")  # of the chains
def test_the_certificate_names_what_the_rows_contradict():
    name = "y is within the radius and the noise of its mean"
    model = certified(200, n_iter=200)
    assert model.certificate().assumptions[name] is True
    X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    far = clone(model).fit(X, np.where(X[:, 0] > 0.9, 9.0, 0.0))
    assert far.certificate().assumptions[name] is False


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the chains
@pytest.mark.parametrize("n_samples", [5, 20, 200])
def test_a_posterior_at_the_edge_of_the_ball_has_a_certificate(n_samples):
    """The bound is finite, and above the risk, also where most normals leave the ball.

    At 50 %, all of 10 bounds would hold with probability 0.001 if they were exact.
    """
    grid = np.random.default_rng(9).uniform(-1, 1, (2000, 3))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (n_samples, 3))
        y = X[:, 0] + 0.1 * rng.normal(size=n_samples)
        model = certified(10, n_iter=50, noise_variance=0.01, gamma=0.95).fit(X, y)
        bound = model.certificate(confidence=0.5).bound
        assert math.isfinite(bound)
        assert model.certificate(grid, grid[:, 0]).observed + 0.01 < bound


@pytest.mark.filterwarnings("ignore")  # of the chains, and of so many categories
@pytest.mark.parametrize(
    ("parameters", "known"),
    [
        ({"basis": "legendre"}, True),
        ({"basis": "auto"}, False),
        ({"categorical_features": [2]}, False),
        ({"basis": PolynomialFeatures(2, include_bias=False)}, None),
    ],
)
def test_a_basis_chosen_by_the_rows_voids_the_certificate(parameters, known):
    assumptions = certified(60, n_iter=50, **parameters).certificate().assumptions
    assert assumptions["the basis is known, not chosen by the rows"] is known


@pytest.mark.filterwarnings("ignore")  # of the chains
def test_a_bound_above_every_risk_says_nothing():
    assert "says nothing" in certified(5, n_iter=50).certificate().verdict


@pytest.mark.filterwarnings("ignore:The .* disagree")
@pytest.mark.parametrize(
    "changed", [{"slab": "gaussian"}, {"inverse_temperature": 9.0}]
)
def test_no_certificate_elsewhere(changed):
    X, y = data(100, 3)
    parameters = {"inverse_temperature": "pac", "slab": "l1ball", **changed}
    model = quick(n_iter=50, **parameters).fit(X, y)
    with pytest.raises(NotImplementedError, match="needs inverse_temperature='pac'"):
        model.certificate()


def test_inequality_behind_the_bound():
    """E exp(t (2 W g - g^2)) <= exp(-kappa t E g^2), by quadrature over W and laws."""
    rng = np.random.default_rng(0)
    radius, variance = 1.0, 0.3
    for t in (0.05, 0.2, 1.0):
        terms = additive_risk_terms(
            1.0 + variance,
            0.0,
            n_samples=1.0,
            inverse_temperature=t,
            noise_variance=variance,
            radius=radius,
        )
        kappa = 1 / (1 + terms["contraction"])
        for _ in range(50):
            g = rng.uniform(-2 * radius, 2 * radius, 5)
            weights = rng.dirichlet(np.ones(5))
            # E exp(2 t W g) of normal noise is exp(2 t^2 variance g^2), exactly.
            left = weights @ np.exp(2 * t**2 * variance * g**2 - t * g**2)
            assert left <= np.exp(-kappa * t * (weights @ g**2)) + 1e-12
    with pytest.raises(ValueError, match="must be below"):
        additive_risk_terms(
            1.0,
            0.0,
            n_samples=10,
            inverse_temperature=10.0,
            noise_variance=1.0,
            radius=1.0,
        )


def test_display():
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"v{j}" for j in range(12)])
    model = quick().fit(frame, y)
    display = PartialEffectsDisplay.from_estimator(model, frame)
    assert display.names == ["v0", "v1", "v2"]
    assert len(display.axes_) == 3
    effect = model.partial_effects(frame, 1)[0]
    drawn = np.interp(X[:, 1], display.points[1], display.effects[1])
    np.testing.assert_allclose(drawn, effect, atol=1e-3)
    one = PartialEffectsDisplay.from_estimator(model, features=["v7"])
    assert one.axes_[0].get_xlabel() == "v7"
    with pytest.raises(ValueError, match="at least one variable"):
        PartialEffectsDisplay.from_estimator(model, features=[])
    with pytest.raises(ValueError, match="feature names should match"):
        PartialEffectsDisplay.from_estimator(model, frame[["v0"]])


def test_callbacks_see_the_chains(callbacks):
    X, y = data(150, 3)
    model = clone(quick()).set_callbacks(callbacks.ProgressBar())
    np.testing.assert_array_equal(
        model.fit(X, y).predict(X), quick().fit(X, y).predict(X)
    )


@pytest.mark.filterwarnings("ignore:Rows that are neighbors")
def test_a_few_rows_far_away_do_not_stretch_the_range():
    """In the whole range of a skewed variable polynomials follow the few rows."""
    rng = np.random.default_rng(0)
    X, new = np.exp(1.5 * rng.normal(size=(2, 2000, 2)))
    y = np.log(X[:, 0]) + 0.5 * rng.normal(size=2000)
    usual, whole = (
        np.mean((model.fit(X, y).predict(new) - np.log(new[:, 0])) ** 2)
        for ends in (None, (X.min(axis=0), X.max(axis=0)))
        for model in [quick(feature_range=ends, max_order=8)]
    )
    assert usual < whole / 2


@pytest.mark.filterwarnings(
    "ignore:Residuals are larger in rows with"
)  # of a cut range
@pytest.mark.parametrize("tail", ["Cauchy", "lognormal"])
def test_effects_that_go_on_in_heavy_tails_are_not_cut(tail):
    """Linear effects, at rows in the range of `fit`; the usual range would cut them."""
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, new = rng.standard_t(1, (2, 300, 4))
        if tail == "lognormal":
            X, new = np.exp(1.5 * rng.normal(size=(2, 300, 4)))
        y = X[:, 0] - X[:, 1] + rng.normal(size=300)
        inside = ((new >= X.min(axis=0)) & (new <= X.max(axis=0))).all(axis=1)
        truth = (new[:, 0] - new[:, 1])[inside]
        models = (
            quick(feature_range=ends).fit(X, y)
            for ends in (None, usual_range(X, np.ones(300)))
        )
        errors.append(
            [np.mean((m.predict(new[inside]) - truth) ** 2) for m in models]
            / truth.var()
        )
    found, cut = np.max(errors, axis=0)
    assert found < 0.02
    assert cut > 0.1


def test_the_usual_range_is_that_of_the_rows_unless_few_are_far():
    rng = np.random.default_rng(0)
    near = np.column_stack([rng.normal(size=200), rng.uniform(size=200) < 0.1])
    weights = rng.integers(1, 4, 200)
    low, high = usual_range(near, np.ones(200))
    np.testing.assert_array_equal(low, near.min(axis=0))
    np.testing.assert_array_equal(high, near.max(axis=0))
    far = np.exp(3 * near)
    weighed = usual_range(far, weights.astype(float))
    repeated = usual_range(np.repeat(far, weights, axis=0), np.ones(weights.sum()))
    np.testing.assert_array_equal(weighed, repeated)
    assert weighed[1][0] < far[:, 0].max()
    assert weighed[0][0] == far[:, 0].min()


@pytest.mark.parametrize("exponent", [1023, -900])
def test_variables_of_any_unit(exponent):
    """Powers of two change nothing, to the last digit; a range may exceed 2^1024."""
    X, y = data()
    X = X * (1.8 / np.abs(X).max())
    scaled = 2.0**exponent * X
    with np.errstate(invalid="ignore"):  # of scikit-learn's sum
        found = quick().fit(scaled, y)
    np.testing.assert_array_equal(found.predict(scaled), quick().fit(X, y).predict(X))


def test_the_largest_numbers_have_a_range():
    X = np.array([[1e308], [-1e308], [1e308]])
    low, high = usual_range(X, np.ones(3))
    assert (low, high) == (-1e308, 1e308)
