"""NumPy twins of the kernels of online variational inference."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from online_reference import Reference, network_moments, standardised
from twins import twin_of

from skpacbayes._kernels import aggregation, online, online_full, online_network
from skpacbayes._kernels.standardise import standardise
from skpacbayes.online._panels import in_panels, whole

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


def state(reference, n_parameters, **numbers):
    model = np.zeros((online.N_VECTORS, n_parameters))
    model[online.VARIANCE] = reference.variance()
    model[online.PRIOR] = reference.prior
    settings = np.zeros(online.N_SETTINGS)
    settings[online.TEMPERATURE] = 0.0 if reference.estimate else reference.beta
    settings[online.FORGETTING] = reference.rho
    settings[online.PRIOR_SCALE] = reference.s
    settings[[online.MEAN_BOUND, online.SCALE_BOUND]] = reference.bounds
    settings[online.FLAT] = reference.flat
    for name, value in numbers.items():
        settings[getattr(online, name)] = value
    return model, np.zeros(online.N_SCALARS), settings


def assert_learnt(reference, expected, model, scalars, predictions):
    assert_allclose(predictions, expected, rtol=1e-9, atol=1e-10)
    assert_allclose(model[online.MEAN], reference.m, rtol=1e-9, atol=1e-11)
    assert_allclose(scalars[online.LOSS], reference.loss_sum, rtol=1e-10)
    assert scalars[online.STEPS] == reference.t


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
    model, scalars, settings = state(reference, Z.shape[1])
    expected = [reference.learn(z, t, w) for z, t, w in zip(Z, y, weights, strict=True)]
    predictions = np.array(expected)  # those of rows of weight 0 stay
    number = LOSSES.index(loss)
    kernel(Z, y, weights, model, scalars, settings, number, predictions)
    assert_learnt(reference, expected, model, scalars, predictions)
    assert_allclose(model[online.VARIANCE], reference.variance(), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 30.0, 1e3])
@pytest.mark.parametrize("loss", LOSSES[1:])
def test_learn_natural_of_extreme_rows(loss, scale):
    """Implicit equations whose steps are tiny, or leap across the loss."""
    Z, y, _ = rows(loss, n=12)
    Z *= scale
    reference = Reference("ngvi", loss, Z.shape[1], inverse_temperature=5.0)
    model, scalars, settings = state(reference, Z.shape[1])
    number = LOSSES.index(loss)
    predictions = np.empty(12)
    online.learn_natural(Z, y, NONE, model, scalars, settings, number, predictions)
    expected = [reference.learn(z, t) for z, t in zip(Z, y, strict=True)]
    assert_allclose(predictions, expected, rtol=1e-7, atol=1e-7)


def full_state(reference, n_parameters, **numbers):
    """`state`, padded to whole lanes, and the covariance."""
    model, scalars, settings = state(reference, n_parameters, **numbers)
    width = n_parameters + -n_parameters % online_full.LANES
    padded = np.zeros((online_full.N_VECTORS, width))
    padded[: len(model), :n_parameters] = model
    return in_panels(padded[online_full.VARIANCE]), padded, scalars, settings


def covariance_of(panels, model, n_parameters):
    covariance = whole(panels)
    assert np.array_equal(model[online_full.VARIANCE], np.diag(covariance))
    assert np.array_equal(covariance, covariance.T)
    return covariance[:n_parameters, :n_parameters]


@pytest.mark.parametrize("forgetting", [0.0, 0.03])
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
    covariance, model, scalars, settings = full_state(reference, 6)
    expected = [reference.learn(z, t, w) for z, t, w in zip(Z, y, weights, strict=True)]
    predictions = np.array(expected)
    padded = np.pad(Z, [(0, 0), (0, 2)])
    fixed = scalars, settings, 6, np.zeros((4, 8)), predictions
    kernel(padded, y, weights, covariance, model, *fixed)
    assert_learnt(reference, expected, model[:, :6], scalars, predictions)
    found = covariance_of(covariance, model, 6)
    assert_allclose(found, np.linalg.inv(reference.P), rtol=1e-8, atol=1e-10)
    assert_allclose(scalars[online.RESIDUALS], reference.residuals, rtol=1e-9)
    assert not model[:, 6:].any()
    assert not whole(covariance)[6:].any()


@pytest.mark.parametrize("forgetting", [0.0, 0.03])
def test_learn_full_in_two_panels(forgetting):
    """The margin that keeps the covariance positive shows in the tenth digit here."""
    d = online_full.PANEL + 6
    Z, y, weights = rows("squared_error", d=d)
    reference = Reference(
        "ngvi", "squared_error", d, full=True, forgetting=forgetting, intercept=True
    )
    panels, model, scalars, settings = full_state(reference, d)
    for z, t, w in zip(Z, y, weights, strict=True):
        reference.learn(z, t, w)
    padded, work = np.pad(Z, [(0, 0), (0, 2)]), np.zeros((4, d + 2))
    state_ = panels, model, scalars, settings
    online_full.learn_full(padded, y, weights, *state_, d, work, NONE)
    assert_allclose(model[online_full.MEAN, :d], reference.m, rtol=1e-7, atol=1e-8)
    found = covariance_of(panels, model, d)
    assert_allclose(found, np.linalg.inv(reference.P), rtol=1e-6, atol=1e-8)
    assert panels.shape == (2, (d + 2) * online_full.PANEL)
    assert not whole(panels)[d:].any()


def test_covariance_stays_positive():
    """Columns that are alike, at scales that leave no digit to a difference."""
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e6, 1e12):
        reference = Reference("ngvi", "squared_error", 8, full=True)
        covariance, model, scalars, settings = full_state(reference, 8)
        for _ in range(20):
            Z = scale * rng.normal(size=(100, 1)) + rng.normal(size=(100, 8))
            Z[:, 4:] = Z[:, :4]
            y = rng.normal(size=100)
            state_ = covariance, model, scalars, settings
            work = np.zeros((4, 8))
            online_full.learn_full(Z, y, NONE, *state_, 8, work, NONE)
            found = covariance_of(covariance, model, 8)
            deviations = np.sqrt(np.diag(found))
            correlation = found / np.outer(deviations, deviations)
            # no eigenvalue below zero by more than `eigvalsh` itself is off
            assert np.linalg.eigvalsh(correlation)[0] > -8 * 2.0**-52
        assert np.isfinite(model).all()


def test_learn_full_on_its_own_scale():
    """The posterior is that of ridge whose penalties are the mean squares of columns.

    They may lag behind by a fifth; a row is predicted within the range of the rows so
    far, by the posterior of the rows so far.
    """
    rng = np.random.default_rng(0)
    Z, y, _ = rows("squared_error", n=40, d=4)
    Z[:, 1:] *= [1e-3, 1.0, 1e4]
    Z[:, 1:] -= Z[0, 1:]
    Z[:7, 2] = 0.0  # a column that begins to vary
    weights = rng.choice([0.0, 1.0, 2.0], 40)
    weights[0] = 1.0
    reference = Reference("ngvi", "squared_error", 4, full=True, intercept=True)
    covariance, model, scalars, settings = full_state(reference, 4, RELATIVE=1.0)
    penalties = model[online_full.PRIOR]
    penalties[:] = 0.0
    model[[online_full.VARIANCE, online_full.LOW, online_full.HIGH]] = [
        [1.0] * 4,
        [1, 0, 0, 0],
        [1, 0, 0, 0],
    ]
    prediction = np.zeros(1)
    last = past = None
    for t in range(40):
        before = model[online_full.MEAN].copy()
        row = slice(t, t + 1)
        work = np.zeros((4, 4))
        fixed = covariance, model, scalars, settings, 4, work, prediction
        online_full.learn_full(Z[row], y[row], weights[row], *fixed)
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
            scale * model[online_full.MEAN], scale * exact, atol=1e-8, err_msg=str(t)
        )
        if weights[t] and t and np.array_equal(penalties[1:], last):
            inside = np.clip(Z[t], past.min(axis=0), past.max(axis=0))
            assert_allclose(prediction[0], before @ inside, rtol=1e-8, atol=1e-10)
        last, past = penalties[1:].copy(), seen


@pytest.mark.parametrize("rate", [0.05, "invsqrt", "auto"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", NAMES[1:])
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
    kinds = {"invsqrt": online.INVSQRT, "auto": online.ADAGRAD}
    model, scalars, settings = state(
        reference,
        Z.shape[1],
        RATE_KIND=kinds.get(rate, online.CONSTANT),
        RATE=0.05,
    )
    expected = [reference.learn(z, t, w) for z, t, w in zip(Z, y, weights, strict=True)]
    predictions = np.array(expected)
    numbers = LOSSES.index(loss), NAMES.index(method)
    kernel(Z, y, weights, model, scalars, settings, *numbers, predictions)
    assert_learnt(reference, expected, model, scalars, predictions)
    variance = model[online.VARIANCE]
    assert_allclose(variance, reference.variance(), rtol=1e-9, atol=1e-12)
    if not natural:
        assert_allclose(scalars[online.SQUARES], reference.squares, rtol=1e-9)


@pytest.mark.parametrize("clip", [math.inf, 1.5])
@twin_of(standardise)
def test_standardise(kernel, clip):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5)) * [1.0, 1e-3, 1e4, 1.0, 1.0] + [0, 1, 1e3, 7, 0]
    X[:, 3] = 7.0  # constant
    X[:20, 4] = 0.1  # constant, then not
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 50)
    Z, moments = np.zeros((50, 6)), np.zeros((3, 5))
    assert kernel(X, X[:, 0], weights, moments, clip, None, 1, Z) == -1
    assert_allclose(Z[:, 1:], standardised(X, weights, clip), rtol=1e-9, atol=1e-11)
    assert_allclose(Z[:, 0], weights > 0)
    assert_allclose(moments[0], np.average(X, axis=0, weights=weights), rtol=1e-12)
    before = moments.copy()
    for bad in (np.nan, np.inf, -np.inf):
        X[30, 2] = bad
        assert kernel(X, X[:, 0], NONE, moments, clip, None, 1, Z) == 30
    assert kernel(X[:30], X[:30, 0], -weights[:30], moments, clip, None, 1, Z[:30]) >= 0
    assert np.array_equal(moments, before)
    X, plain = X[:30], np.zeros((30, 5))
    assert kernel(X, X[:, 0], NONE, None, 1e9, None, 0, plain) == -1
    assert np.array_equal(plain, X)
    assert kernel(X, X[:, 0], NONE, None, 1e9, X[0], 0, plain) == -1
    assert np.array_equal(plain, X - X[0])
    ones, moments = np.ones(30), np.zeros((3, 5))
    assert kernel(X, X[:, 0], NONE, moments, clip, X[0], 0, plain) == -1
    within = standardised(X, ones, clip)
    t = np.arange(1, 31)[:, None]
    mean = np.cumsum(X, axis=0) / t
    scale = np.sqrt(np.maximum(np.cumsum(X**2, axis=0) / t - mean**2, 0))
    expected = np.where(abs(within) == clip, mean + within * scale, X) - X[0]
    assert_allclose(plain, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [aggregation.FIXED, aggregation.ANYTIME])
@twin_of(aggregation.aggregate)
def test_aggregate(kernel, kind):
    rng = np.random.default_rng(0)
    predictions, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    row_losses = (y[:, None] - predictions) ** 2
    weights = rng.choice([0.0, 1.0, 2.0], 40)
    losses, totals = np.zeros(3), np.zeros(aggregation.N_TOTALS)
    totals[aggregation.LARGEST] = 20.0
    out = np.zeros(40)
    kernel(predictions, row_losses, weights, losses, totals, kind, 0.3, out)
    cumulative, t, rates = np.zeros(3), 0, 0.0
    for i in np.flatnonzero(weights):
        t += 1
        fixed = kind == aggregation.FIXED
        rate = 0.3 if fixed else math.sqrt(8 * math.log(3) / t) / 20
        shares = np.exp(-rate * cumulative)
        assert_allclose(out[i], shares @ predictions[i] / shares.sum(), rtol=1e-12)
        cumulative += weights[i] * row_losses[i]
        rates += rate * weights[i] ** 2
    assert_allclose(losses, cumulative, rtol=1e-13)
    assert_allclose(totals[aggregation.RATES], rates, rtol=1e-13)
    assert totals[aggregation.STEPS] == t


@twin_of(aggregation.aggregation_rate)
def test_aggregation_rate(kernel):
    losses, totals = np.array([4.0, 2.0]), np.array([10.0, 7.0, 3.0, 0.0, 0.0])
    anytime = math.sqrt(8 * math.log(2) / 8) / 3
    assert kernel(losses, totals, aggregation.FIXED, 0.7) == 0.7
    assert_allclose(kernel(losses, totals, aggregation.ANYTIME, 0.0), anytime)
    assert_allclose(kernel(losses, totals, aggregation.NOISE, 0.5), 0.5 * 10 / 2)
    assert kernel(losses, 0 * totals, aggregation.ANYTIME, 0.0) == 0.0
    assert kernel(0 * losses, totals, aggregation.NOISE, 0.5) == 0.0


def network(rng, d=3, n_hidden=4):
    hidden = np.zeros((online_network.N_VECTORS, n_hidden, d))
    output = np.zeros((online_network.N_VECTORS, n_hidden + 1))
    hidden[0], output[0] = (
        rng.normal(size=hidden[0].shape),
        rng.normal(size=n_hidden + 1),
    )
    hidden[1], output[1] = (
        rng.uniform(0, 1, hidden[0].shape),
        rng.uniform(0, 1, n_hidden + 1),
    )
    return hidden, output


@pytest.mark.parametrize("certain", [False, True])
@twin_of(online_network.predict_network)
def test_predict_network(kernel, certain):
    rng = np.random.default_rng(0)
    hidden, output = network(rng)
    hidden[1, 2] = 0.0  # a unit that is certain
    Z = rng.normal(size=(5, 3))
    means, variances = np.empty(5), np.empty(5)
    kernel(Z, hidden, output, certain, means, variances)
    expected = [network_moments(z, hidden[:2], output[:2], certain) for z in Z]
    assert_allclose(
        np.column_stack([means, variances]), expected, rtol=1e-11, atol=1e-13
    )


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


@pytest.mark.parametrize("method", ["ngvi", "sva", "svb", "oga", "oga_el"])
@twin_of(online_network.learn_network)
def test_learn_network(kernel, method):
    """Two rows: the first gives the unit of the target, the second is learnt.

    The published methods step along numerical gradients of the exact expected loss.
    NGVI solves, for each mean, the quadratic model along the network's slope J at the
    means (J by numerical differences), plus the slope of the variance.
    """
    rng = np.random.default_rng(1)
    hidden, output = network(rng)
    certain = method == "oga"
    before = hidden[:2].copy(), output[:2].copy()
    Z, y = rng.normal(size=(2, 3)), np.array([0.3, 2.0])
    scalars = np.zeros(online_network.N_SCALARS)
    scalars[[online_network.RESIDUALS, online_network.COUNT]] = 0.8, 2.0
    settings = (1.0, 20.0, 1.0, online_network.CONSTANT)
    number, rate = NAMES.index(method), 0.1
    kernel(Z, y, NONE, hidden, output, scalars, settings, number, rate)
    z, target = Z[1], 1.0  # (2 - 1.15) / 0.85
    (W, S), (w, s) = (array.copy() for array in before)
    pairs = [W, S], [w, s]
    assert_allclose(scalars[online_network.LOSS], 0.3**2 + (2.0 - 0.3) ** 2)
    if method == "ngvi":
        noise = 0.4
        mean, variance = network_moments(z, *pairs)
        J_W, J_w = numerical_gradients(lambda: network_moments(z, *pairs)[0], [W, w])
        D_W, D_w = numerical_gradients(lambda: network_moments(z, *pairs)[1], [W, w])
        C_S, C_s = numerical_gradients(lambda: network_moments(z, *pairs)[1], [S, s])
        first = J_W / np.where(w[:-1, None] == 0, 1, w[:-1, None]) / z  # P(active)
        C_S = (w[:-1, None] ** 2 + s[:-1, None]) * first * z**2  # its positive part
        along = (J_W**2 * S).sum() + (J_w**2 * s).sum()
        shift = (target - mean) / noise / (1 + along / noise)
        new_S, new_s = S / (1 + C_S * S / noise), s / (1 + C_s * s / noise)
        new_W = W + shift * J_W * S - D_W * new_S / (2 * noise)
        new_w = w + shift * J_w * s - D_w * new_s / (2 * noise)
        scaled = (target - mean) ** 2 / (1 + variance / noise)
        assert_allclose(scalars[online_network.RESIDUALS], 0.8 + scaled, rtol=1e-6)
    else:
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
            x, x_w = rate * g_S / 2, rate * g_s / 2
            new_W, new_w = -rate * g_W, -rate * g_w
            new_S = np.clip(np.sqrt(1 + x**2) - x, 0, 1) ** 2
            new_s = np.clip(np.sqrt(1 + x_w**2) - x_w, 0, 1) ** 2
        if method == "svb":
            x, x_w = rate * S * g_S / 2, rate * s * g_s / 2
            new_W, new_w = W - rate * S * g_W, w - rate * s * g_w
            new_S = np.clip(np.sqrt(S + x**2) - x, 0, 1) ** 2
            new_s = np.clip(np.sqrt(s + x_w**2) - x_w, 0, 1) ** 2
    assert_allclose(hidden[0], new_W, rtol=1e-6, atol=1e-7)
    assert_allclose(output[0], new_w, rtol=1e-6, atol=1e-7)
    assert_allclose(hidden[1], new_S, rtol=1e-6, atol=1e-7)
    assert_allclose(output[1], new_s, rtol=1e-6, atol=1e-7)
