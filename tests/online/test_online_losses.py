"""Softmax, counts and quantiles: their laws, their limits and their certificates."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import log_loss, mean_poisson_deviance

from skpacbayes import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
)
from skpacbayes._kernels.online_losses import expected_gradients


def counts(n=400, d=4, intercept=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.logspace(-2, 2, d) + 5.0
    rate = np.exp(intercept + 0.4 * ((X - 5.0) / np.logspace(-2, 2, d)).sum(axis=1))
    return X, rng.poisson(rate).astype(float), rate


# Several classes.


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_softmax_has_the_better_probabilities(load):
    """Each row predicted before it is learnt: less loss than one against the rest."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = np.ascontiguousarray(X[order]), y[order]
    losses = {}
    for multi_class in ("softmax", "one_vs_rest"):
        model = OnlineVIClassifier(
            loss="log_loss", multi_class=multi_class, random_state=0
        )
        model.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
        found = []
        for t in range(1, len(y)):
            found.append(model.predict_proba(X[t : t + 1])[0])
            model.partial_fit(X[t : t + 1], y[t : t + 1])
        losses[multi_class] = log_loss(y[1:], found)
    assert losses["softmax"] < losses["one_vs_rest"]


@pytest.mark.filterwarnings("ignore:The rows are nearly sorted by class")  # iris
def test_softmax_is_the_default_where_there_is_one():
    X, y = load_iris(return_X_y=True)
    softmax = OnlineVIClassifier(
        loss="log_loss", multi_class="softmax", random_state=0
    ).fit(X, y)
    auto = OnlineVIClassifier(loss="log_loss", random_state=0).fit(X, y)
    assert np.array_equal(auto.predict_proba(X), softmax.predict_proba(X))
    rest = OnlineVIClassifier(
        loss="log_loss", multi_class="one_vs_rest", random_state=0
    ).fit(X, y)
    assert not np.allclose(rest.predict_proba(X), auto.predict_proba(X))
    for options in ({"loss": "hinge"}, {"loss": "log_loss", "method": "oga"}):
        options["random_state"] = 0
        auto = OnlineVIClassifier(**options).fit(X, y)
        rest = OnlineVIClassifier(**options, multi_class="one_vs_rest").fit(X, y)
        assert np.array_equal(auto.decision_function(X), rest.decision_function(X))
        with pytest.raises(ValueError, match="multi_class='softmax' needs loss='log_l"):
            OnlineVIClassifier(**options, multi_class="softmax").fit(X, y)
    two = OnlineVIClassifier(
        loss="log_loss", multi_class="softmax", random_state=0
    ).fit(X, y > 0)
    same = OnlineVIClassifier(loss="log_loss", random_state=0).fit(X, y > 0)
    assert np.array_equal(two.predict_proba(X), same.predict_proba(X))


@pytest.mark.filterwarnings("ignore:The rows are nearly sorted by class")  # iris
def test_names_of_the_classes_do_not_matter():
    """Permuted labels permute the answers."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::-3], y[::-3]
    other = np.array([2, 0, 1])[y]
    model = OnlineVIClassifier(loss="log_loss", forgetting="auto", random_state=0).fit(
        X, y
    )
    moved = OnlineVIClassifier(loss="log_loss", forgetting="auto", random_state=0).fit(
        X, other
    )
    expected = model.predict_proba(X)
    assert_allclose(moved.predict_proba(X)[:, [2, 0, 1]], expected, rtol=1e-6)
    assert_allclose(moved.coef_[[2, 0, 1]], model.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(expected.sum(axis=1), 1.0)
    assert model.coef_std_.shape == model.coef_.shape == (3, 4)
    assert model.forgetting_weights_.shape == (3, 6)


# Quantiles.


@pytest.mark.parametrize("method", ["ngvi", "ngvi_explicit", "svb"])
def test_the_median_is_the_quantile_of_one_half(method):
    """Its loss is half the absolute one: the step of the others has another unit."""
    X, _, rate = counts()
    y = rate + np.random.default_rng(0).standard_t(3, size=len(X))
    median = OnlineVIRegressor(method, random_state=0, loss="absolute_error").fit(X, y)
    quantile = OnlineVIRegressor(method, random_state=0, loss="quantile").fit(X, y)
    if method == "svb":  # its steps are over the root of squared gradients
        assert_allclose(quantile.predict(X), median.predict(X), atol=0.1 * np.ptp(y))
        return
    assert_allclose(quantile.predict(X), median.predict(X), rtol=1e-9)
    assert_allclose(2 * quantile.cumulative_loss_, median.cumulative_loss_, rtol=1e-12)
    assert_allclose(quantile.coef_std_, median.coef_std_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The model is linear")
@pytest.mark.parametrize("options", [{}, {"forgetting": "auto"}, {"method": "oga"}])
def test_quantiles_of_the_negative_are_negative(options):
    """Level q of -y is minus level 1 - q of y; levels and units are kept."""
    X, _, rate = counts()
    y = rate + np.random.default_rng(0).normal(size=len(X))
    low = OnlineVIRegressor(
        random_state=0, loss="quantile", quantile=0.2, **options
    ).fit(X, y)
    high = OnlineVIRegressor(
        random_state=0, loss="quantile", quantile=0.8, **options
    ).fit(X, -y)
    assert_allclose(high.predict(X), -low.predict(X), rtol=1e-7, atol=1e-9)
    if not options:
        scaled = OnlineVIRegressor(
            random_state=0, loss="quantile", quantile=0.2, **options
        )
        scaled.fit(X, 1e3 * y - 1e4)
        expected = 1e3 * low.predict(X) - 1e4
        assert_allclose(scaled.predict(X), expected, atol=1e-6 * np.ptp(y))


@pytest.mark.filterwarnings("ignore:The model is linear|The final model has")
@pytest.mark.parametrize("n_equal", [5, 40, 399])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"covariance": "diagonal"},
        {"covariance": "diagonal", "forgetting": "auto"},
        {"loss": "absolute_error"},
        {"loss": "quantile", "quantile": 0.8},
        {"loss": "quantile", "quantile": 0.2, "forgetting": "auto"},
        {"loss": "quantile", "quantile": 0.3, "prior_scale": "auto"},
        {"loss": "quantile", "quantile": 0.8, "fit_intercept": False},
        {"loss": "quantile", "quantile": 0.8, "method": "ngvi_explicit"},
    ],
)
def test_targets_that_are_equal_at_first_have_no_unit(options, n_equal):
    """In other units of the target, a power of two, all rounding is the same."""
    X, _, rate = counts()
    y = rate + np.random.default_rng(0).standard_t(3, size=len(X))
    y[:n_equal] = 0.0 if options.get("fit_intercept") is False else 7.0
    model = OnlineVIRegressor(random_state=0, **options)
    expected = model.fit(X, y).predict(X)
    for unit in (2.0**-20, 2.0**20):
        assert_allclose(model.fit(X, unit * y).predict(X), unit * expected, rtol=1e-9)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9])
def test_share_of_rows_below_a_quantile(level):
    """Of 3,000 new rows, within chance (1e-5) and .02 of the level, skewed noise.

    At a hard edge of the noise, as zero is to an exponential, the share is smaller: the
    step is by the loss expected under a posterior wider than the noise is there.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = X.sum(axis=1) + rng.gumbel(size=6000)
    model = OnlineVIRegressor(random_state=0, loss="quantile", quantile=level).fit(
        X[:3000], y[:3000]
    )
    below = np.sum(y[3000:] < model.predict(X[3000:]))
    low, high = max(level - 0.02, 0.0), level + 0.02
    assert binom.ppf(5e-6, 3000, low) <= below <= binom.isf(5e-6, 3000, high)


def test_expected_gradients_of_the_pinball_loss():
    """Against the differences of its expectation, by sums over a fine grid."""
    f = np.linspace(-9, 9, 200_001)
    density = np.exp(-0.5 * f**2)
    density /= density.sum()
    for y, a, v, level in itertools.product(
        (-1.0, 0.4), (0.0, 2.0), (0.3, 2.0), (0.2,)
    ):

        def expected(a, v, y=y, level=level):
            r = y - (a + math.sqrt(v) * f)
            return density @ np.maximum(level * r, (level - 1) * r)

        actual = expected_gradients(1, y, a, v, level, 1 - level)
        slope = (expected(a + 1e-4, v) - expected(a - 1e-4, v)) / 2e-4
        curvature = (expected(a, v + 1e-4) - expected(a, v - 1e-4)) / 2e-4
        assert_allclose(actual, (slope, curvature), atol=1e-5)


# Counts.


@pytest.mark.parametrize("intercept", [-2.0, 0.5, 6.0])
def test_counts_in_one_pass_are_close_to_a_batch(intercept):
    X, y, rate = counts(3000, intercept=intercept)
    batch = PoissonRegressor(alpha=1e-6, max_iter=1000).fit((X - 5) / X.std(axis=0), y)
    best = mean_poisson_deviance(rate, batch.predict((X - 5) / X.std(axis=0)))
    model = OnlineVIRegressor(random_state=0, loss="poisson").fit(X, y)
    own = mean_poisson_deviance(rate, model.predict(X))
    assert own < best + 0.02 * mean_poisson_deviance(y, rate)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_units_of_features_do_not_matter_to_counts(covariance):
    X, y, _ = counts(200)
    model = OnlineVIRegressor(
        random_state=0, loss="poisson", covariance=covariance
    ).fit(X, y)
    a, b = np.array([1e3, -1e-3, 2.0, 0.5]), np.array([1.0, -5.0, 100.0, 0.0])
    moved = OnlineVIRegressor(
        random_state=0, loss="poisson", covariance=covariance
    ).fit(a * X + b, y)
    assert_allclose(moved.predict(a * X + b), model.predict(X), rtol=1e-6)
    linear = np.exp(X @ model.coef_ + model.intercept_)
    if covariance == "full":  # whose predictions are linear within the range
        assert_allclose(model.predict(X), linear, rtol=1e-6)


def test_weights_are_exposures():
    """A rate over twice the time, of weight two, is one count over that time."""
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(4000, 2)), rng.choice([1.0, 4.0], 4000)
    rate = np.exp(X @ [0.5, -0.3])
    y = rng.poisson(rate * time) / time
    model = OnlineVIRegressor(random_state=0, loss="poisson").fit(
        X, y, sample_weight=time
    )
    assert_allclose(model.coef_, [0.5, -0.3], atol=0.05)
    assert abs(model.intercept_) < 0.05


@pytest.mark.filterwarnings("ignore:.* predictions do not extrapolate")  # rows far away
@pytest.mark.filterwarnings("ignore:The model is linear")
def test_counts_that_are_none_and_counts_that_are_huge():
    X, y, _ = counts(100)
    for options in (
        {},
        {"prior_scale": "auto"},
        {"forgetting": 0.05},
        {"covariance": "diagonal"},
    ):
        options = {"loss": "poisson", **options}
        model = OnlineVIRegressor(random_state=0, **options).fit(X, np.zeros(100))
        assert np.all((model.predict(X) < 0.2) & (model.predict(X) >= 0.0))
        huge = np.where(np.arange(100) % 7 == 3, 1e9, y)
        model.fit(X, huge)
        assert np.isfinite(model.predict(1e3 * X)).all()
        assert np.isfinite(model.cumulative_loss_)


@pytest.mark.filterwarnings("ignore:One row|A row has the value")
@pytest.mark.parametrize("forgetting", [0.0, 0.05, "auto"])
@pytest.mark.parametrize("value", [1e20, 1e90, -1e145])
def test_counts_with_a_value_far_from_all_others(value, forgetting):
    """Its column is then constant for the others, which are learnt as without it."""
    X, y, _ = counts(100)
    X[57, 1] = value
    model = OnlineVIRegressor(loss="poisson", random_state=0, forgetting=forgetting)
    model.partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    found = model.predict(np.delete(X, 57, axis=0))
    assert np.isfinite(model.cumulative_loss_)
    constant = mean_poisson_deviance(np.delete(y, 57), np.full(99, y.mean()))
    assert mean_poisson_deviance(np.delete(y, 57), found) < constant


def test_counts_are_not_negative():
    X, y, _ = counts(50)
    model = OnlineVIRegressor(random_state=0, loss="poisson").fit(X, y)
    before = model.predict(X)
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=r"loss='poisson' needs y >= 0.*got -1"):
            call(X[:1], np.array([-1.0]))
    assert np.array_equal(model.predict(X), before)
    expert = OnlineVIRegressor(random_state=0, loss="poisson")
    ensemble = EWARegressor([("counts", expert)]).fit(X, y)
    assert_allclose(ensemble.predict(X), before, rtol=1e-12)


# Options and certificates.


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"loss": "poisson", "method": "sva"}, "loss='poisson' needs method='ngvi'"),
        ({"quantile": 0.9}, "quantile=0.9 has no effect with loss='squared_error'"),
        ({"loss": "quantile", "covariance": "full"}, "covariance='full' needs"),
    ],
)
def test_options_that_contradict(options, complaint):
    X, y, _ = counts(20)
    with pytest.raises(ValueError, match=complaint):
        OnlineVIRegressor(random_state=0, **options).fit(X, y)


SMALL = {
    "poisson": OnlineVIRegressor(loss="poisson", prior_scale="auto"),
    "quantile": OnlineVIRegressor(loss="quantile", quantile=0.8, prior_scale="auto"),
    "softmax": OnlineVIClassifier(loss="log_loss", n_fourier=0),
}


@pytest.mark.parametrize("name", SMALL)
def test_regret_is_bounded(name):
    """Theorem 1 on small streams; the experts are the models of one prior each.

    Those of numbers predict within the range of the targets.
    """
    for seed in range(3):
        X, y, _ = counts(60, seed=seed)
        if name == "softmax":
            y = np.minimum(y, 2).astype(int)
        model = SMALL[name].fit(X, y)
        certificate = model.certificate()
        assert certificate.observed == model.cumulative_loss_ <= certificate.bound
        assert all(certificate.assumptions.values())
        own = model._state.expert_losses[0]
        best = certificate.terms["loss of the best expert"]
        assert_allclose(best, own.min())
        if name == "softmax":  # the first are those with a joint posterior
            joint = model._state.n_joint
            assert joint == 4
            for k, scale in enumerate(model._state.prior_scales[:joint]):
                alone = clone(model).set_params(prior_scale=scale, forgetting=0.0)
                alone.fit(X, y)
                assert_allclose(own[k], alone.cumulative_loss_, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The rows are nearly sorted")  # they are
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-3, 1e4), (1e3, 1e4)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_regret_of_probabilities_is_a_logarithm(n_classes, scale, shift):
    """On any stream: the loss of the best model, and the log of their number.

    The number counts models that were dropped: they had weight at first. For N models
    of which n remain, the loss is at most that of the best of these, plus log(n) and
    the term of the dropped ones, which is at most log(N / n).
    The labels are drawn, ordered, turned over half-way, or those thought least likely.
    """
    dropped = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(2, size=(90, 3))
        scores = X @ rng.normal(size=(3, n_classes))
        drawn = scores.argmax(axis=1)
        ordered = np.sort(rng.integers(n_classes, size=90))
        turned = np.where(np.arange(90) < 45, drawn, (drawn + 1) % n_classes)
        X = scale * X + shift
        for options in ({}, {"forgetting": "auto"}, {"prior_scale": 3.54}):
            model = OnlineVIClassifier(random_state=0, **options)
            for y in (drawn, ordered, turned, None):
                stream = clone(model)
                least = n_models = 0
                for t in range(90):
                    label = least if y is None else y[t]
                    stream.partial_fit(X[t : t + 1], [label], classes=range(n_classes))
                    least = stream.predict_proba(X[(t + 1) % 90 :][:1])[0].argmin()
                    n_models = max(n_models, stream._state.n_experts)
                losses = stream._state.expert_losses[0]
                regret = stream.cumulative_loss_ - losses.min()
                rounding = 1e-10 * losses.min()
                assert regret <= np.log(n_models) + rounding
                terms = stream.certificate().terms
                assert terms["rate"] <= 1e-12 * losses.min()
                lost = terms.get("dropped experts", 0.0)
                assert lost <= np.log(n_models / len(losses)) + rounding
                assert regret <= np.log(len(losses)) + lost + rounding
                dropped += len(losses) < n_models
    assert dropped  # of the ordered labels


JUMPS = [
    OnlineVIRegressor(random_state=0, prior_scale="auto"),
    OnlineVIRegressor(random_state=0, prior_scale="auto", inverse_temperature=0.5),
    OnlineVIRegressor(random_state=0, loss="absolute_error", forgetting="auto"),
    OnlineVIRegressor(random_state=0, loss="poisson", forgetting="auto"),
    EWARegressor(),
    EWARegressor(inverse_temperature=0.1),
    OnlineVIClassifier(
        inverse_temperature=20.0, standardize=False, prior_scale="auto", random_state=0
    ),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", JUMPS, ids=repr)
def test_regret_is_bounded_where_losses_jump(model):
    """Rows of great losses, which experts of no weight would have predicted.

    A constant target too, whose losses are rounding.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(300, 4))
    y = np.round(np.exp(np.clip(X[:, 0], -3.0, 4.0))) + 1.0
    burst = np.where(np.arange(300) % 100 == 99, 1e4, y)
    late = np.where(np.arange(300) < 200, 0.0, 1e3 * X[:, 1] ** 2)
    labels = (X @ rng.normal(size=(4, 4))).argmax(axis=1)
    targets = [y, burst, burst[1:], late, np.full(300, 7.0), 1e3 * y]
    for y in [labels] if hasattr(model, "predict_proba") else targets:
        for scale in (1.0, 1e4):
            certificate = clone(model).fit(scale * X[: len(y)], y).certificate()
            assert certificate.observed <= certificate.bound


@pytest.mark.parametrize("n_classes", [2, 4])
def test_cumulative_loss_is_that_of_the_probabilities(n_classes):
    """Minus the log of the probability of each label, before it is learnt.

    In the first rows, the evidence that a growing unit discounts is known only then.
    """
    X, y, _ = counts(120)
    y = np.minimum(y, n_classes - 1).astype(int)
    assert len(np.unique(y)) == n_classes
    for options in ({}, {"forgetting": 0.0, "prior_scale": 1.0}):
        model = OnlineVIClassifier(**options).partial_fit(
            X[:40], y[:40], classes=range(n_classes)
        )
        before, loss = model.cumulative_loss_, 0.0
        for t in range(40, 120):
            loss -= np.log(model.predict_proba(X[t : t + 1])[0, y[t]])
            model.partial_fit(X[t : t + 1], y[t : t + 1])
        assert_allclose(model.cumulative_loss_ - before, loss, rtol=1e-9)


PREDICT_AS_THEY_LEARN = [
    OnlineVIRegressor(covariance="diagonal", random_state=0),
    OnlineVIRegressor(loss="quantile", quantile=0.5, n_fourier=0),
    OnlineVIMLPRegressor(random_state=0),
    OnlineVIMLPRegressor(random_state=0, clip=None, forgetting=0.0),
    OnlineVIMLPRegressor(random_state=0, method="sva"),
    OnlineVIMLPClassifier(random_state=0),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", PREDICT_AS_THEY_LEARN, ids=repr)
def test_the_cumulative_loss_is_that_of_the_predictions(model):
    """From row 4 on: all columns have varied. One row is far from the others."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(80, 3)) * [1.0, 1e-3, 1e3] + [0.0, 5.0, 1e4]
    X[60] += X.std(axis=0) * 30.0
    y = X[:, 0] + rng.normal(size=80)
    if is_classifier(model):
        y = (y > 0.0).astype(int)
    model = clone(model).fit(X[:3], y[:3])
    for x, target in zip(X[3:, None], y[3:, None], strict=True):
        before = model.cumulative_loss_
        if is_classifier(model):
            expected = -np.log(model.predict_proba(x)[0, target[0]])
        else:
            error = target[0] - model.predict(x)[0]
            expected = 0.5 * abs(error) if model.loss == "quantile" else error**2
        model.partial_fit(x, target)
        found = model.cumulative_loss_ - before
        assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * before)


def test_no_certificate_of_a_single_model():
    X, y, _ = counts(30)
    for loss in ("poisson", "quantile"):
        model = OnlineVIRegressor(n_fourier=0, loss=loss).fit(X, y)
        with pytest.raises(NotImplementedError, match="A theorem covers"):
            model.certificate()
        with pytest.raises(NotImplementedError, match="predictive distribution needs"):
            model.predict(X, return_std=True)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("shift", [0.0, 50.0])
def test_labels_scores_and_probabilities_agree(classes, shift):
    """Rows close to the boundary between classes, and far from the data."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    y = (X @ rng.normal(size=(3, classes)) + rng.normal(size=(400, classes))).argmax(1)
    rows = np.concatenate([0.2 * rng.normal(size=(3000, 3)), X + shift])
    for options in (
        {},
        {"forgetting": "auto"},
        {"multi_class": "one_vs_rest"},
        {"n_fourier": "auto", "random_state": 0},
        {"method": "svb"},
    ):
        model = OnlineVIClassifier(**options).fit(X, y)
        likely, scores = model.predict_proba(rows), model.decision_function(rows)
        np.testing.assert_array_equal(model.predict(rows), likely.argmax(axis=1))
        found = scores > 0 if classes == 2 else scores.argmax(axis=1)
        np.testing.assert_array_equal(found, likely.argmax(axis=1))
        np.testing.assert_allclose(likely.sum(axis=1), 1.0, rtol=1e-12)
        if classes == 2:
            odds = likely[:, 1] / likely[:, 0]
            np.testing.assert_allclose(np.exp(scores), odds, rtol=1e-10)
