"""NumPy twins of the kernels of online variational inference."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from designs import every_two
from numpy.testing import assert_allclose, assert_array_equal
from online_reference import (
    Reference,
    kept_shares,
    loss_of,
    network_moments,
    slopes,
    standardised,
)
from scipy.optimize import brentq
from states import assert_same_state
from twins import twin_of

from skpacbayes._kernels import aggregation, online, online_full, online_network
from skpacbayes._kernels import online_predict as predict
from skpacbayes._kernels import online_state as names
from skpacbayes._kernels.online_state import LinearState
from skpacbayes._kernels.standardize import add_waves, first_refused, standardize

NAMES = ("ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el")
LOSSES = ("squared_error", "absolute_error", "hinge", "log_loss")
NONE = np.empty(0)


def rows(loss, n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    Z[:, 0] = 1.0
    scores = Z @ rng.normal(size=d) + rng.normal(size=n)
    y = np.sign(scores) if loss in ("hinge", "log_loss") else scores
    return Z, y, rng.choice([0.0, 0.5, 1.0, 2.5], n)


def state_of(reference, loss, method="ngvi", **numbers):
    """One model at the prior of the reference; its rows are taken as they are."""
    d, full = len(reference.m), reference.full
    state = LinearState(d, d, 1, 1, full=full, scales=False, shifts=False)
    state.set_variances(reference.variance()[None])
    state.precisions[:] = reference.prior
    own = state.numbers[0]
    own[names.TEMPERATURE] = 0.0 if reference.estimate else reference.beta
    own[names.FORGETTING], own[names.PRIOR_SCALE] = reference.rho, reference.s
    stream = state.stream
    stream[names.CLIP] = math.inf
    stream[[names.MEAN_BOUND, names.SCALE_BOUND]] = reference.bounds
    stream[names.FLAT] = reference.flat
    stream[names.LOSS_KIND], stream[names.METHOD] = (
        LOSSES.index(loss),
        NAMES.index(method),
    )
    for name, value in numbers.items():
        stream[getattr(names, name)] = value
    return state


def learn(kernel, Z, y, weights, state):
    """Predictions of each row, as the kernel makes them before it learns."""
    predictions = np.full((state.n_experts, len(Z)), np.nan)
    work = state.work_for(len(Z))
    assert kernel(Z, y, weights, *state.arguments, work, predictions)
    return predictions[0]


def assert_learnt(reference, expected, state, predictions, weights=None):
    learnt = slice(None) if weights is None else weights > 0
    expected = np.array(expected)
    assert_allclose(predictions[learnt], expected[learnt], rtol=1e-9, atol=1e-10)
    assert_allclose(state.means[0], reference.m, rtol=1e-9, atol=1e-11)
    assert_allclose(state.cumulative_losses[0], reference.loss_sum, rtol=1e-10)
    assert state.n_steps == reference.t


@pytest.mark.parametrize("forgetting", [0.0, 0.03])
@pytest.mark.parametrize("temperature", ["auto", 0.7])
@pytest.mark.parametrize("loss", LOSSES)
@twin_of(online.learn_natural)
def test_learn_natural(kernel, loss, temperature, forgetting):
    Z, y, weights = rows(loss)
    reference = Reference(
        "ngvi",
        loss,
        Z.shape[1],
        inverse_temperature=temperature,
        forgetting=forgetting,
        intercept=True,
        mean_bound=3.0 if temperature == 0.7 else math.inf,
        scale_bound=0.9 if temperature == 0.7 else math.inf,
    )
    state = state_of(reference, loss)
    expected = [reference.learn(z, t, w) for z, t, w in zip(Z, y, weights, strict=True)]
    predictions = learn(kernel, Z, y, weights, state)
    assert_learnt(reference, expected, state, predictions, weights)
    assert_allclose(state.variances[0], reference.variance(), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 30.0, 1e3])
@pytest.mark.parametrize("loss", LOSSES[1:])
def test_learn_natural_of_extreme_rows(loss, scale):
    """Implicit equations whose steps are tiny, or leap across the loss."""
    Z, y, _ = rows(loss, n=12)
    Z *= scale
    reference = Reference("ngvi", loss, Z.shape[1], inverse_temperature=5.0)
    predictions = learn(online.learn_natural, Z, y, NONE, state_of(reference, loss))
    expected = [reference.learn(z, t) for z, t in zip(Z, y, strict=True)]
    assert_allclose(predictions, expected, rtol=1e-7, atol=1e-7)


def covariance_of(state):
    """The covariance, symmetric and 0 where there is no parameter."""
    n_parameters, width = state.means.shape[1], state.models.shape[2]
    covariance = state.whole_covariance(0)
    assert np.array_equal(state.variances[0], np.diag(covariance))
    assert np.array_equal(covariance, covariance.T)
    assert not state.models[0, :, n_parameters:].any()
    rows = state.covariances[0].reshape(-1, width, names.PANEL)
    assert not rows[:, n_parameters:].any()
    return covariance


@pytest.mark.parametrize("forgetting", [0.0, 0.03, 0.9, 0.999])
@pytest.mark.parametrize("temperature", ["auto", 0.7])
@twin_of(online_full.learn_full)
def test_learn_full(kernel, temperature, forgetting):
    Z, y, weights = rows("squared_error", d=6)
    reference = Reference(
        "ngvi",
        "squared_error",
        Z.shape[1],
        full=True,
        inverse_temperature=temperature,
        forgetting=forgetting,
        intercept=True,
    )
    state = state_of(reference, "squared_error")
    expected = [reference.learn(z, t, w) for z, t, w in zip(Z, y, weights, strict=True)]
    predictions = learn(kernel, Z, y, weights, state)
    assert_learnt(reference, expected, state, predictions, weights)
    found = covariance_of(state)
    assert_allclose(found, np.linalg.inv(reference.P), rtol=1e-8, atol=1e-10)
    assert_allclose(state.residuals[0], reference.residuals, rtol=1e-9)


@pytest.mark.parametrize("forgetting", [0.0, 0.03, 0.3, 0.9, 0.99])
def test_learn_full_in_two_panels(forgetting):
    """With a memory of a row too, where the prior returns on many coordinates at once.

    The margin that keeps the covariance positive shows in the tenth digit here, and
    what has not returned yet grows by up to exp(8), the margin with it.
    """
    d = online_full.PANEL + 6
    Z, y, weights = rows("squared_error", d=d)
    reference = Reference(
        "ngvi", "squared_error", d, full=True, forgetting=forgetting, intercept=True
    )
    state = state_of(reference, "squared_error")
    for z, t, w in zip(Z, y, weights, strict=True):
        reference.learn(z, t, w)
    learn(online_full.learn_full, Z, y, weights, state)
    more = 1.0 if forgetting < 0.1 else np.exp(8) / 100
    assert_allclose(state.means[0], reference.m, rtol=more * 1e-7, atol=more * 1e-8)
    expected = np.linalg.inv(reference.P)
    deviations = np.sqrt(np.diag(expected))
    error = (covariance_of(state) - expected) / np.outer(deviations, deviations)
    assert_allclose(error, 0.0, atol=more * 1e-7)
    assert state.covariances.shape == (1, 2, (d + 2) * names.PANEL)


def test_covariance_stays_positive():
    """Columns that are alike, at scales that leave no digit to a difference."""
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e6, 1e12):
        reference = Reference("ngvi", "squared_error", 8, full=True)
        state = state_of(reference, "squared_error")
        for _ in range(20):
            Z = scale * rng.normal(size=(100, 1)) + rng.normal(size=(100, 8))
            Z[:, 4:] = Z[:, :4]
            y = rng.normal(size=100)
            learn(online_full.learn_full, Z, y, NONE, state)
            found = covariance_of(state)
            deviations = np.sqrt(np.diag(found))
            correlation = found / np.outer(deviations, deviations)
            # no eigenvalue below zero by more than `eigvalsh` itself is off
            assert np.linalg.eigvalsh(correlation)[0] > -8 * 2.0**-52
        assert np.isfinite(state.models).all()


def test_learn_full_on_its_own_scale():
    """The posterior is that of ridge whose penalties are the mean squares of columns.

    They may lag behind by a fifth; a row is predicted within the range of the rows so
    far, by the posterior of the rows so far.
    """
    rng = np.random.default_rng(0)
    X, y, _ = rows("squared_error", n=40, d=4)
    X = X[:, 1:] * [1e-3, 1.0, 1e4]
    X[:7, 1] = X[0, 1]  # a column that begins to vary
    weights = rng.choice([0.0, 1.0, 2.0], 40)
    weights[0] = 1.0
    Z = np.column_stack([np.ones(40), X - X[0]])
    state = LinearState(3, 4, 1, 1, full=True, scales=False, shifts=True)
    state.numbers[0, names.PRIOR_SCALE] = 1.0
    state.stream[names.CLIP], state.stream[names.FLAT] = math.inf, 1.0
    state.set_variances(np.zeros((1, 4)))
    state.ranges[:, 0] = 1.0
    penalties = state.precisions[0]
    last = past = None
    for t in range(40):
        before = state.means[0].copy()
        row = slice(t, t + 1)
        prediction = learn(online_full.learn_full, X[row], y[row], weights[row], state)
        seen = Z[: t + 1][weights[: t + 1] > 0]
        heavy = weights[: t + 1][weights[: t + 1] > 0]
        spread = np.average(seen**2, axis=0, weights=heavy)
        spread -= np.average(seen, axis=0, weights=heavy) ** 2
        varies = spread[1:] > 1e-20
        penalty = np.where(varies, penalties[1:], 1.0)
        assert np.all(spread[1:][varies] <= 1.2000001 * penalty[varies])
        P = (seen.T * heavy) @ seen + np.diag(np.append(0.0, penalty))
        exact = np.linalg.solve(P, (seen.T * heavy) @ y[: t + 1][weights[: t + 1] > 0])
        scale = np.append(1.0, np.sqrt(np.maximum(spread[1:], 1e-12)))
        assert_allclose(
            scale * state.means[0], scale * exact, atol=1e-8, err_msg=str(t)
        )
        if weights[t] and t and np.array_equal(penalties[1:], last):
            inside = np.clip(Z[t], past.min(axis=0), past.max(axis=0))
            assert_allclose(prediction[0], before @ inside, rtol=1e-8, atol=1e-10)
        last, past = penalties[1:].copy(), seen


@pytest.mark.parametrize(
    ("method", "loss", "rate"),
    every_two(NAMES[1:], LOSSES, [0.05, "invsqrt", "auto"]),
)
@twin_of(online.learn_published)
def test_learn_published(kernel, method, loss, rate):
    Z, y, weights = rows(loss)
    natural = method == "ngvi_explicit"
    reference = Reference(
        method,
        loss,
        Z.shape[1],
        learning_rate=rate,
        prior_scale=0.8,
        forgetting=0.02 if natural and rate == "auto" else 0.0,
        inverse_temperature=rate if natural and rate != "invsqrt" else "auto",
        mean_bound=2.0,
        scale_bound=math.inf if natural else 0.7,
    )
    kinds = {"invsqrt": names.INVSQRT, "auto": names.ADAGRAD}
    kind = kinds.get(rate, names.CONSTANT)
    state = state_of(reference, loss, method, RATE_KIND=kind, RATE=0.05)
    expected = [reference.learn(z, t, w) for z, t, w in zip(Z, y, weights, strict=True)]
    predictions = learn(kernel, Z, y, weights, state)
    assert_learnt(reference, expected, state, predictions, weights)
    assert_allclose(state.variances[0], reference.variance(), rtol=1e-9, atol=1e-12)
    if not natural:
        assert_allclose(state.squared_gradients[0], reference.squares, rtol=1e-9)


@pytest.mark.parametrize("clip", [math.inf, 1.5])
@twin_of(standardize)
def test_standardize(kernel, clip):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5)) * [1.0, 1e-3, 1e4, 1.0, 1.0] + [0, 1, 1e3, 7, 0]
    X[:, 3] = 7.0  # constant
    X[:20, 4] = 0.1  # constant, then not
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 50)
    Z, moments, stream = np.zeros((50, 6)), np.zeros((3, 5)), np.zeros(names.N_STREAM)
    kept = Z.copy()
    stream[names.CLIP], stream[names.START] = clip, 1.0
    kernel(X, weights, moments, NONE, 0, stream, Z, kept)
    grows = kept[:, 0] == 1.0
    shares = np.where(grows[:, None], kept[:, 1:], 1.0)
    assert_allclose(shares, kept_shares(X, weights), rtol=1e-9)
    assert 0 < grows.sum() < 25
    assert_allclose(Z[:, 1:], standardised(X, weights, clip), rtol=1e-9, atol=1e-11)
    assert_allclose(Z[:, 0], weights > 0)
    assert_allclose(moments[0], np.average(X, axis=0, weights=weights), rtol=1e-12)
    assert_allclose(stream[names.SEEN], weights.sum())
    X, plain, wide = X[:30], np.zeros((30, 5)), np.zeros(names.N_STREAM)
    wide[names.CLIP] = 1e9
    unscaled = np.empty((3, 0))
    kernel(X, NONE, unscaled, NONE, 0, wide, plain, None)
    assert np.array_equal(plain, X)
    origin, wide[names.SEEN] = np.zeros(5), 0.0
    kernel(X, NONE, unscaled, origin, 5, wide, plain, None)
    assert np.array_equal(plain, X - X[0])
    assert np.array_equal(origin, X[0])
    ones, moments, stream[:] = np.ones(30), np.zeros((3, 5)), 0.0
    stream[names.CLIP] = clip
    kernel(X, NONE, moments, origin, 5, stream, plain, None)
    within = standardised(X, ones, clip)
    t = np.arange(1, 31)[:, None]
    mean = np.cumsum(X, axis=0) / t
    scale = np.sqrt(np.maximum(np.cumsum(X**2, axis=0) / t - mean**2, 0))
    expected = np.where(abs(within) == clip, mean + within * scale, X) - X[0]
    assert_allclose(plain, expected, rtol=1e-6, atol=1e-6)
    origin[:], moments, stream[names.SEEN] = 0.0, np.zeros((3, 5)), 0.0
    kernel(X, NONE, moments, origin, 0, stream, plain, None)
    assert_allclose(plain, within, rtol=1e-9, atol=1e-11)
    assert np.array_equal(origin, X[0])


@twin_of(add_waves)
def test_add_waves(kernel):
    rng = np.random.default_rng(0)
    Z, frequencies, phases = (
        rng.normal(size=(6, 9)),
        rng.normal(size=(3, 5)),
        np.ones(5),
    )
    stream, before = np.zeros(names.N_STREAM), Z.copy()
    stream[names.START] = 1.0
    kernel(Z, 3, np.vstack([frequencies, phases]), stream)
    assert np.array_equal(Z[:, :4], before[:, :4])
    expected = math.sqrt(2 / 5) * np.cos(Z[:, 1:4] @ frequencies + 1.0)
    assert_allclose(Z[:, 4:], expected, rtol=1e-12)


@twin_of(first_refused)
def test_first_refused(kernel):
    X, y = np.ones((5, 2)), np.ones(5)
    assert kernel(X, y, NONE) == -1
    for bad in (np.nan, np.inf, -np.inf, 2e150):
        X[3, 1] = bad
        assert kernel(X, y, NONE) == 3
    X[3, 1], y[2] = 1.0, np.nan
    assert kernel(X, y, NONE) == 2
    for bad in (-1.0, np.nan, np.inf):
        assert kernel(X[:2], y[:2], np.array([1.0, bad])) == 1


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@twin_of(aggregation.note_regressors)
def test_note_regressors(kernel, loss):
    """A constant forecast has the weighted mean of what was seen."""
    rng = np.random.default_rng(0)
    X, y, number = rng.normal(size=(40, 2)), rng.normal(size=40), LOSSES.index(loss)
    weights, found = rng.choice([0.0, 1.0, 2.0], 40), rng.normal(size=40)
    one = aggregation.AggregationState(3, 2)
    for rows in np.split(np.arange(40), [1, 7]):
        own = X[rows], y[rows], weights[rows], number, found[rows]
        kernel(*own, one.order, one.constant)
    assert one.n_noted == np.count_nonzero(weights)
    first, *later = np.flatnonzero(weights)
    assert one.first_loss == weights[first] * loss_of(loss, y[first], found[first])
    constant = [np.average(y[:i], weights=weights[:i]) for i in later]
    losses = [loss_of(loss, y[i], a) for i, a in zip(later, constant, strict=True)]
    assert_allclose(one.constant_loss, weights[later] @ losses, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["FIXED", "ANYTIME", "NOISE"])
@twin_of(aggregation.aggregate)
def test_aggregate(kernel, kind, loss):
    rng = np.random.default_rng(0)
    labels = loss in ("hinge", "log_loss")
    predictions, y = rng.normal(size=(3, 40)), rng.normal(size=40)
    y = np.sign(y) if labels else y
    weights = rng.choice([0.0, 1.0, 2.0], 40)
    losses, totals = np.zeros(3), np.zeros(aggregation.N_TOTALS)
    totals[aggregation.LARGEST] = 20.0
    totals[aggregation.KIND] = getattr(aggregation, kind)
    totals[aggregation.TEMPERATURE] = 0.3
    totals[aggregation.IN_RANGE] = not labels
    totals[[aggregation.LOWEST_TARGET, aggregation.HIGHEST_TARGET]] = (
        math.inf,
        -math.inf,
    )
    found = predictions.copy()
    work = np.empty((2, 3))
    kernel(y, -1, weights, LOSSES.index(loss), found, losses, totals, work)
    cumulative, t, total, rates, rises, last = np.zeros(3), 0, 0.0, 0.0, 0.0, 0.0
    gaps = first = 0.0
    seen = np.empty(0)

    def soft_minimum(rate):
        if rate == 0:
            return cumulative.mean()
        return -np.log(np.mean(np.exp(-rate * cumulative))) / rate

    for i in np.flatnonzero(weights):
        rate = 0.3
        if kind == "ANYTIME":
            rate = math.sqrt(8 * math.log(3) / (t + 1)) / 20
        if kind == "NOISE":  # what all lost on row 1 is put aside
            least = cumulative.min() - first
            rate = 0.3 * total / least if least else 0.0
            rises += max(0.0, soft_minimum(last) - soft_minimum(rate))
        last, t, total = rate, t + 1, total + weights[i] * (t > 0)
        shares = np.exp(-rate * cumulative)
        own = predictions[:, i]
        if not labels and len(seen):
            own = own.clip(seen.min(), seen.max())
        seen = np.append(seen, y[i])
        shares /= shares.sum()
        assert_allclose(found[0, i], shares @ own, rtol=1e-10, atol=1e-12)
        suffered = weights[i] * np.array([loss_of(loss, y[i], a) for a in own])
        if rate:
            soft = -np.log(shares @ np.exp(-rate * suffered)) / rate
            mean = shares @ suffered
            if loss == "log_loss":  # the mean of probabilities
                mean = -weights[i] * np.log(shares @ np.exp(-suffered / weights[i]))
            gaps += max(mean - soft, 0.0)
        cumulative += suffered
        if t == 1 and kind != "FIXED":
            first = suffered.min()
        rates += rate * weights[i] ** 2
    assert_allclose(losses + totals[aggregation.FIRST], cumulative, rtol=1e-12)
    assert_allclose(totals[aggregation.GAPS], gaps, rtol=1e-8, atol=1e-10)
    assert_allclose(totals[aggregation.RISES], rises, rtol=1e-8, atol=1e-10)
    assert totals[aggregation.STEPS] == t
    # the bound of Theorem 1, as observed and as published, and what the rises add
    assert totals[aggregation.LOSS] <= soft_minimum(last) + gaps + rises
    assert gaps <= rates * totals[aggregation.LARGEST] ** 2 / 8


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@twin_of(aggregation.aggregate)
def test_what_all_lose_does_not_hold_weights_back(kernel, loss):
    """With the anytime rate, on any row."""
    answers = []
    for row, far in itertools.product((0, 1, 20), (0.0, 1e3, 1e6)):
        rng = np.random.default_rng(0)
        predictions, y = rng.normal(size=(3, 40)), rng.normal(size=40)
        predictions[:, row] = y[row] - far
        losses, totals = np.zeros(3), np.zeros(aggregation.N_TOTALS)
        totals[aggregation.KIND] = aggregation.ANYTIME
        work = np.empty((2, 3))
        kernel(y, -1, NONE, LOSSES.index(loss), predictions, losses, totals, work)
        answers.append(np.delete(predictions[0], row))
    for found, expected in zip(
        answers, np.repeat(answers[::3], 3, axis=0), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@twin_of(aggregation.aggregation_rate)
def test_aggregation_rate(kernel):
    losses, totals = np.array([4.0, 2.0]), np.zeros(aggregation.N_TOTALS)
    totals[[aggregation.WEIGHT, aggregation.STEPS, aggregation.LARGEST]] = (
        10.0,
        7.0,
        3.0,
    )

    def rate(losses, totals, kind, temperature):
        totals = totals.copy()
        totals[[aggregation.KIND, aggregation.TEMPERATURE]] = kind, temperature
        return kernel(losses, totals)

    anytime = math.sqrt(8 * math.log(2) / 8) / 3
    assert rate(losses, totals, aggregation.FIXED, 0.7) == 0.7
    assert_allclose(rate(losses, totals, aggregation.ANYTIME, 0.0), anytime)
    assert_allclose(rate(losses, totals, aggregation.NOISE, 0.5), 0.5 * 10 / 2)
    assert rate(losses, 0 * totals, aggregation.ANYTIME, 0.0) == 0.0
    assert rate(0 * losses, totals, aggregation.NOISE, 0.5) == 0.0


def experts_after(loss, full, seed=0, n_experts=3):
    """Experts of different rates and scales, each with a posterior of its own."""
    rng = np.random.default_rng(seed)
    Z, y, _ = rows(loss, d=5)
    state = LinearState(5, 5, 1, n_experts, full=full, scales=False, shifts=False)
    state.set_variances(np.ones((n_experts, 5)))
    state.precisions[:] = 1.0
    state.numbers[:, names.FORGETTING] = np.linspace(0.0, 0.05, n_experts)
    state.numbers[:, names.TEMPERATURE] = 0.7
    state.stream[names.CLIP] = state.stream[names.MEAN_BOUND] = math.inf
    state.stream[names.SCALE_BOUND] = math.inf
    state.stream[names.LOSS_KIND] = LOSSES.index(loss)
    state.totals[0, [aggregation.KIND, aggregation.TEMPERATURE]] = (
        aggregation.FIXED,
        0.7,
    )
    learn(online_full.learn_full if full else online.learn_natural, Z, y, NONE, state)
    return state, 3.0 * rng.normal(size=(4, 5))


def covariances_of(state):
    if state.full:
        return [state.whole_covariance(k) for k in range(len(state.models))]
    return [np.diag(variances) for variances in state.variances]


@pytest.mark.parametrize("full", [True, False])
@twin_of(predict.predict_deviations)
def test_predict_deviations(kernel, full):
    """The scores of the experts mixed, and the law of total variance."""
    state, X = experts_after("squared_error", full)
    scores, deviations, clipped = np.empty((4, 1)), np.empty(4), np.empty(4)
    kernel(X, *state.arguments, scores, deviations, clipped)
    shares = np.exp(-0.7 * (state.losses[0] - state.losses[0].min()))
    shares /= shares.sum()
    assert_allclose(state.shares()[0], shares, rtol=1e-12)
    each = state.means @ X.T
    assert_allclose(scores[:, 0], shares @ each, rtol=1e-12)
    along = np.array([((X @ V) * X).sum(axis=1) for V in covariances_of(state)])
    variance = shares @ (0.5 / 0.7 + along + (each - shares @ each) ** 2)
    assert_allclose(deviations, np.sqrt(variance), rtol=1e-10)
    assert (clipped == 0.0).all()
    kernel(1e170 * X, *state.arguments, scores, deviations, clipped)  # overflow
    assert np.isfinite(deviations).all()


@twin_of(predict.write_quantiles)
def test_write_quantiles(kernel):
    """What is clipped weights the two standard quantiles; infinity times 0 is 0."""
    means, clipped = np.array([[1.0], [2.0], [3.0]]), np.array([0.0, 0.25, 0.0])
    deviations = np.array([2.0, 4.0, np.inf])
    standard, student = np.array([-1.5, 0.0, 1.0]), np.array([-2.0, 0.0, 3.0])
    found = np.full((3, 3), np.nan)
    kernel(means, deviations, clipped, standard, student, found)
    expected = [[-2.0, 1.0, 3.0], [-4.5, 2.0, 8.0], [-np.inf, 3.0, np.inf]]
    assert_array_equal(found, expected)


@twin_of(predict.predict_scores)
def test_predict_scores(kernel):
    state, X = experts_after("squared_error", True)
    scores, expected = np.empty((4, 1)), np.empty((4, 1))
    kernel(X, *state.arguments, scores)
    predict.predict_deviations(X, *state.arguments, expected, *np.empty((2, 4)))
    assert_allclose(scores, expected, rtol=1e-14)


@twin_of(predict.predict_probabilities)
def test_predict_probabilities(kernel):
    state, X = experts_after("log_loss", False)
    probabilities = np.empty((4, 2))
    kernel(X, *state.arguments, probabilities)
    scores, variances = X @ state.means.T, X**2 @ state.variances.T
    each = 1 / (1 + np.exp(-scores / np.sqrt(1 + np.pi / 8 * variances)))
    assert_allclose(probabilities[:, 1], each @ state.shares()[0], rtol=1e-12)
    assert_allclose(probabilities.sum(axis=1), 1.0)


def test_state_is_aligned_and_copied():
    state, _ = experts_after("squared_error", True)
    for same in (state.copy(), pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        assert_same_state(same, state)
        for own, array in zip(same.arrays, state.arrays, strict=True):
            assert own.ctypes.data % 64 == 0
            assert not np.shares_memory(own, array)
        same.models[:] = 0.0
        assert state.models.any()


def network(rng, d=3, n_hidden=4):
    state = online_network.NetworkState(d - 1, n_hidden, scales=False)
    state.stream[names.CLIP] = math.inf
    hidden, output = state.hidden[0], state.output[0]
    hidden[0], output[0] = rng.normal(size=(n_hidden, d)), rng.normal(size=n_hidden + 1)
    hidden[1] = rng.uniform(0, 1, (n_hidden, d))
    output[1] = rng.uniform(0, 1, n_hidden + 1)
    return state


@pytest.mark.parametrize("certain", [False, True])
@twin_of(online_network.predict_network)
def test_predict_network(kernel, certain):
    rng = np.random.default_rng(0)
    state = network(rng)
    state.hidden[0, 1, 2] = 0.0  # a unit that is certain
    state.stream[names.METHOD] = names.OGA if certain else names.NGVI
    X = rng.normal(size=(5, 2))
    means, variances = np.empty((5, 1)), np.empty((5, 1))
    kernel(X, *state.arguments, means, variances)
    layers = state.hidden[0, :2], state.output[0, :2]
    rows_ = np.column_stack([np.ones(5), X])
    expected = [network_moments(z, *layers, certain) for z in rows_]
    found = np.column_stack([means, variances])
    assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def expected_loss(z, y, hidden, output, certain=False):
    mean, variance = network_moments(z, hidden, output, certain)
    return (y - mean) ** 2 + variance


def numerical_gradients(f, state):
    """Central differences in each entry of each array of `state`."""
    gradients = []
    for array in state:
        gradient = np.empty_like(array)
        for index in np.ndindex(array.shape):
            kept, step = array[index], 1e-6
            array[index] = kept + step
            above = f()
            array[index] = kept - step
            gradient[index] = (above - f()) / (2 * step)
            array[index] = kept
        gradients.append(gradient)
    return gradients


def forgotten(variance, prior, forgetting):
    """Variance whose precision has given up a share of what the prior does not have."""
    return 1 / ((1 - forgetting) / variance + forgetting / prior)


def learn_two_rows(kernel, method, forgetting):
    """Let a network learn two rows: the first gives the unit of the target.

    Returns the network, its means and variances before, and the second row and target.
    """
    rng = np.random.default_rng(1)
    state = network(rng)
    scalars, stream = state.numbers[0], state.stream
    before = state.hidden[0, :2].copy(), state.output[0, :2].copy()
    X, y = rng.normal(size=(2, 2)), np.array([0.3, 2.0])
    scalars[[online_network.RESIDUALS, online_network.COUNT]] = 0.8, 2.0
    scalars[online_network.PRIOR_SCALE] = 0.7
    scalars[online_network.FORGETTING] = forgetting
    stream[[names.MEAN_BOUND, names.SCALE_BOUND]] = 20.0, 1.0
    stream[names.METHOD], stream[names.RATE] = NAMES.index(method), 0.1
    predictions = np.empty((1, 2))
    assert kernel(X, y, NONE, *state.arguments, state.work_for(2), predictions)
    assert_allclose(predictions[0], [0.0, 0.3])
    assert_allclose(scalars[online_network.LOSS], 0.3**2 + (2.0 - 0.3) ** 2)
    return state, before, np.append(1.0, X[1]), 1.0  # (2 - 1.15) / 0.85


def assert_network(state, means, variances):
    for found, expected in zip(
        state.hidden[0, :2], (means[0], variances[0]), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    for found, expected in zip(
        state.output[0, :2], (means[1], variances[1]), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("forgetting", [0.0, 0.2])
@twin_of(online_network.learn_numbers)
def test_learn_numbers(kernel, forgetting):
    """NGVI solves, for each mean, the quadratic model along the network's slope J.

    J is that at the means, by numerical differences; to it comes the slope of the
    variance; the precisions first move towards those of the prior.
    """
    state, before, z, target = learn_two_rows(kernel, "ngvi", forgetting)
    (W, S), (w, s) = (array.copy() for array in before)
    pairs, scalars = ([W, S], [w, s]), state.numbers[0]
    noise = 0.4
    mean, variance = network_moments(z, *pairs)
    J_W, J_w = numerical_gradients(lambda: network_moments(z, *pairs)[0], [W, w])
    D_W, D_w = numerical_gradients(lambda: network_moments(z, *pairs)[1], [W, w])
    C_S, C_s = numerical_gradients(lambda: network_moments(z, *pairs)[1], [S, s])
    first = J_W / np.where(w[:-1, None] == 0, 1, w[:-1, None]) / z  # P(active)
    C_S = (w[:-1, None] ** 2 + s[:-1, None]) * first * z**2  # its positive part
    along = (J_W**2 * S).sum() + (J_w**2 * s).sum()
    shift = (target - mean) / noise / (1 + along / noise)
    n_hidden, n_inputs = W.shape
    own = np.append(np.full(n_hidden, 0.7**2 / n_hidden), 1.0)
    new_S = 1 / (1 / forgotten(S, 0.7**2 / n_inputs, forgetting) + C_S / noise)
    new_s = 1 / (1 / forgotten(s, own, forgetting) + C_s / noise)
    new_W = W + shift * J_W * S - D_W * new_S / (2 * noise)
    new_w = w + shift * J_w * s - D_w * new_s / (2 * noise)
    scaled = (target - mean) ** 2 / (1 + variance / noise)
    kept = (1 - forgetting) * np.array([0.8, 2.0])
    found = scalars[[online_network.RESIDUALS, online_network.COUNT]]
    assert_allclose(found, kept + np.array([scaled, 1.0]), rtol=1e-6)
    assert_network(state, (new_W, new_w), (new_S, new_s))


@pytest.mark.parametrize("method", ["sva", "svb", "oga", "oga_el"])
@twin_of(online_network.learn_published)
def test_learn_published_network(kernel, method):
    """The published methods step along numerical gradients of the expected loss."""
    state, before, z, target = learn_two_rows(kernel, method, 0.0)
    (W, S), (w, s) = (array.copy() for array in before)
    pairs, rate, certain = ([W, S], [w, s]), 0.1, method == "oga"
    g_W, g_S, g_w, g_s = numerical_gradients(
        lambda: expected_loss(z, target, *pairs, certain), [W, S, w, s]
    )
    g_S, g_s = 2 * np.sqrt(S) * g_S, 2 * np.sqrt(s) * g_s
    new_W, new_w = W - rate * g_W, w - rate * g_w
    new_S = np.clip(np.sqrt(S) - rate * g_S, 0, 1) ** 2
    new_s = np.clip(np.sqrt(s) - rate * g_s, 0, 1) ** 2
    if method == "oga":
        new_S, new_s = S, s
    if method == "sva":
        x, x_w = rate * 0.7 * g_S / 2, rate * 0.7 * g_s / 2
        new_W, new_w = -rate * 0.7**2 * g_W, -rate * 0.7**2 * g_w
        new_S = np.clip(0.7 * (np.sqrt(1 + x**2) - x), 0, 1) ** 2
        new_s = np.clip(0.7 * (np.sqrt(1 + x_w**2) - x_w), 0, 1) ** 2
    if method == "svb":
        x, x_w = rate * S * g_S / 2, rate * s * g_s / 2
        new_W, new_w = W - rate * S * g_W, w - rate * s * g_w
        new_S = np.clip(np.sqrt(S + x**2) - x, 0, 1) ** 2
        new_s = np.clip(np.sqrt(s + x_w**2) - x_w, 0, 1) ** 2
    assert_network(state, (new_W, new_w), (new_S, new_s))


@pytest.mark.parametrize("forgetting", [0.0, 0.2])
@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@twin_of(online_network.learn_labels)
def test_learn_labels(kernel, loss, forgetting):
    """One row: the score moves along the slope to the root of the implicit equation.

    The slope J of the network at the means by numerical differences; the precisions
    grow by twice the slope of the loss in the variance, times the positive part of the
    curvature.
    """
    state = network(np.random.default_rng(1))
    hidden, output, numbers = state.hidden[0], state.output[0], state.numbers[0]
    before = hidden[:2].copy(), output[:2].copy()
    state.stream[names.METHOD] = names.NGVI
    state.stream[names.LOSS_KIND] = LOSSES.index(loss)
    state.prior_scales, state.forgetting = 1.0, forgetting
    X, label = np.array([[0.4, -1.2]]), -1.0
    scores = np.empty((1, 1))
    rest = *state.arguments, state.work_for(1), scores
    assert kernel(X, np.array([label]), NONE, *rest)
    z = np.append(1.0, X[0])
    (W, S), (w, s) = (array.copy() for array in before)
    pairs = [W, S], [w, s]
    mean, variance = network_moments(z, *pairs)
    assert_allclose(scores[0, 0], mean, rtol=1e-12)
    # The logistic loss is that of the probability, averaged over the score.
    score = mean / np.sqrt(1 + np.pi / 8 * variance) if loss == "log_loss" else mean
    assert_allclose(numbers[online_network.LOSS], loss_of(loss, label, score))
    J_W, J_w = numerical_gradients(lambda: network_moments(z, *pairs)[0], [W, w])
    D_W, D_w = numerical_gradients(lambda: network_moments(z, *pairs)[1], [W, w])
    _, C_s = numerical_gradients(lambda: network_moments(z, *pairs)[1], [S, s])
    active = J_W / w[:-1, None] / z
    C_S = (w[:-1, None] ** 2 + s[:-1, None]) * active * z**2
    along = (J_W**2 * S).sum() + (J_w**2 * s).sum()

    def excess(score):
        return score - mean + along * slopes(loss, label, score, along)[0]

    root = brentq(excess, mean - 10 * along, mean + 10 * along, xtol=1e-13)
    shift = -slopes(loss, label, root, along)[0]
    strength = 2 * slopes(loss, label, mean, variance)[1]
    own = np.append(np.full(len(W), 1 / len(W)), 1.0)
    new_S = 1 / (1 / forgotten(S, 1 / W.shape[1], forgetting) + strength * C_S)
    new_s = 1 / (1 / forgotten(s, own, forgetting) + strength * C_s)
    new_W = W + shift * J_W * S - strength * D_W * new_S / 2
    new_w = w + shift * J_w * s - strength * D_w * new_s / 2
    assert_allclose(hidden[1], new_S, rtol=1e-6, atol=1e-7)
    assert_allclose(output[1], new_s, rtol=1e-6, atol=1e-7)
    assert_allclose(hidden[0], new_W, rtol=1e-5, atol=1e-6)
    assert_allclose(output[0], new_w, rtol=1e-5, atol=1e-6)
