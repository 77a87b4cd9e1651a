"""NumPy twins of the parts that the online kernels share."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax
from twins import twin_of

from skpacbayes._kernels import aggregation, online_covariance, online_parts
from skpacbayes._kernels import online_state as names
from skpacbayes._kernels.online_state import LinearState
from skpacbayes._kernels.order import memory_size, order_shape, remembered

NONE = np.empty(0)


def model_of(d, seed=0, **options):
    """State of one model whose vectors are random, its variances positive."""
    rng = np.random.default_rng(seed)
    options = {"full": False, "scales": False, "shifts": False, **options}
    state = LinearState(d, d, 1, 1, **options)
    state.models[:, :, :d] = rng.normal(size=state.models[:, :, :d].shape)
    state.set_variances(rng.exponential(size=(1, d)))
    state.clip = state.mean_bound = state.scale_bound = math.inf
    return state, rng


@twin_of(online_parts.admit)
def test_admit(kernel):
    """A row that is refused changes nothing; else the rows are noted and remembered."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.ones(30)
    noted, bad = names.N_STREAM + order_shape(3, 0)[0], X.copy()
    stream = np.zeros(noted + memory_size(3, 40))
    stream[names.MEMORY_SIZE], bad[-1, -1] = memory_size(3, 40), np.nan
    before = stream.copy()
    assert not kernel(bad, y, NONE, stream)
    assert np.array_equal(stream, before)
    assert kernel(X, y, NONE, stream)
    assert stream[names.N_STREAM] == 30
    assert np.array_equal(remembered(stream[noted:], 3)[0], X)


@twin_of(online_parts.enter)
def test_enter(kernel):
    """A row that is refused changes nothing; else the moments are those of the rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.ones(30)
    stream = np.zeros(names.N_STREAM + order_shape(3, 0)[0])
    moments, Z, bad = np.zeros((3, 3)), np.full((30, 3), 7.0), X.copy()
    kept = np.zeros((30, 4))
    stream[names.CLIP], bad[-1, -1] = math.inf, np.nan
    assert not kernel(bad, y, NONE, moments, NONE, None, stream, Z, kept)
    assert not moments.any()
    assert not stream[names.SEEN]
    assert not stream[names.N_STREAM :].any()
    assert np.all(Z == 7.0)
    assert kernel(X, y, NONE, moments, NONE, None, stream, Z, kept)
    assert stream[names.N_STREAM] == 30  # rows whose order is noted
    assert_allclose(moments[:2], [X.mean(axis=0), 30 * X.var(axis=0)], rtol=1e-12)
    assert_allclose(Z[-1], (X[-1] - X.mean(axis=0)) / X.std(axis=0), rtol=1e-12)


@pytest.mark.parametrize("extrapolates", [False, True])
@twin_of(online_parts.place)
def test_place(kernel, extrapolates):
    """Units of the stream that ends with the row; or the range of the rows so far."""
    state, rng = model_of(3, scales=True)
    state.clip, state.stream[names.SEEN] = 2.0, 4.0
    state.moments[:] = rng.exponential(size=(3, 3))
    Z, x = np.zeros((1, 3)), np.array([0.3, 9.0, -9.0])
    place = state.arguments[:3]
    kernel(x, *place, state.models[0], state.stream, extrapolates, Z)
    center, scatter, _ = state.moments
    mean = (4 * center + x) / 5
    scatter = scatter + 4 / 5 * (x - center) ** 2
    assert_allclose(Z[0], np.clip((x - mean) / np.sqrt(scatter / 5), -2, 2))
    state, _ = model_of(3, full=True, shifts=True)
    state.precisions[:] = [1.0, 0.0, 1.0]  # the second column has never varied
    state.origin[:], state.ranges[:] = 1.0, [[-2.0] * 3, [2.0] * 3]
    Z, x = np.zeros((1, 4)), np.array([0.5, 3.0, 9.0])
    place = state.arguments[:3]
    kernel(x, *place, state.models[0], state.stream, extrapolates, Z)
    assert np.array_equal(Z[0], [-0.5, 0.0, 8.0 if extrapolates else 2.0, 0.0])


@twin_of(online_parts.take_units)
def test_take_units(kernel):
    """Evidence beyond the prior's is multiplied by the shares; the means stay."""
    state, rng = model_of(3)
    state.precisions[:] = 0.5
    state.variances[:] = before = rng.uniform(0.1, 1.0, 3)
    state.means[:] = 3.0
    for row, shares in (
        ([0.0, 0.3, 0.3, 0.3], 1.0),
        ([1.0, 1.0, 0.3, 0.0], [1, 0.3, 0]),
    ):
        kernel(state.models[0], np.array(row), state.stream)
        expected = 0.5 + np.array(shares) * (1 / before - 0.5)
        assert_allclose(1 / state.variances[0], expected, rtol=1e-12)
    assert np.all(state.means == 3.0)


@twin_of(online_parts.suffer)
def test_suffer(kernel):
    state, _ = model_of(3)
    state.averaging = 1.0
    before = state.models[0, names.AVERAGE].copy()
    kernel(state.models[0], 0.7, 2.0, state.numbers[0], state.stream)
    assert_allclose(state.models[0, names.AVERAGE], before + 2.0 * state.means[0])
    found = state.numbers[0, [names.WEIGHT, names.STEPS, names.LOSS]]
    assert_allclose(found, [2.0, 1.0, 1.4])


@twin_of(online_parts.forget)
def test_forget(kernel):
    """Natural parameters move to those of the prior, N(0, 1 / PRIOR)."""
    state, rng = model_of(3)
    state.precisions[:], z = rng.exponential(size=3), np.array([1.0, 0.3, -2.0])
    mean, variance = state.means[0].copy(), state.variances[0].copy()
    a, v = kernel(state.models[0], z, 0.1)
    precision = 0.9 / variance + 0.1 * state.precisions[0]
    assert_allclose(state.variances[0], 1 / precision)
    assert_allclose(state.means[0], 0.9 * mean / variance / precision)
    assert_allclose([a, v], [state.means[0] @ z, (state.variances[0] * z**2).sum()])


@twin_of(online_parts.project)
def test_project(kernel):
    state, _ = model_of(5)
    state.mean_bound, state.scale_bound = 0.4, 0.6
    mean, variance = state.means[0].copy(), state.variances[0].copy()
    kernel(state.models[0], state.stream)
    assert_allclose(state.means[0], np.clip(mean, -0.4, 0.4))
    assert_allclose(state.variances[0], np.minimum(variance, 0.36))
    assert np.abs(mean).max() > 0.4
    assert variance.max() > 0.36


@twin_of(online_parts.inner_product)
def test_inner_product(kernel):
    rng = np.random.default_rng(0)
    for n in range(10):
        x, y = rng.normal(size=(2, n))
        assert_allclose(kernel(x, y), x @ y, atol=1e-14)


@twin_of(online_parts.score_moments)
def test_score_moments(kernel):
    mean, variance, z = np.random.default_rng(0).exponential(size=(3, 7))
    assert_allclose(kernel(mean, variance, z), [mean @ z, variance @ z**2])


@twin_of(online_parts.scale_row)
def test_scale_row(kernel):
    for row, size in (([-0.5, 0.2], 1.0), ([3.0, -1e200], 1e200)):
        scaled = np.empty(2)
        assert kernel(np.array(row), scaled) == size
        assert_allclose(scaled, np.array(row) / size)


@pytest.mark.parametrize("full", [False, True])
@twin_of(online_parts.deviation_along)
def test_deviation_along(kernel, full):
    """sqrt(z'Vz), of rows whose square is no number too."""
    d = names.PANEL + 4
    state, rng = model_of(d, full=full)
    z, work = rng.normal(size=d), np.empty((2, d))
    if full:
        factor = rng.normal(size=(d, 4))
        rows = np.zeros((d, 2 * names.PANEL))
        rows[:, :d] = covariance = factor @ factor.T
        panels = rows.reshape(d, 2, names.PANEL).swapaxes(0, 1)
        state.covariances[0] = panels.reshape(2, -1)
        state.variances[0] = np.diag(covariance)
    else:
        covariance = np.diag(state.variances[0])
    expected = math.sqrt(z @ covariance @ z)
    for size in (1.0, 1e200):
        largest = online_parts.scale_row.py_func(size * z, work[0])
        assert largest == size * np.abs(z).max()
        found = kernel(state.models[0], state.arguments[4], 0, *work)
        assert_allclose(largest * found, size * expected, rtol=1e-12)


@twin_of(online_parts.noise_of)
def test_noise_of(kernel):
    """Squared residuals over degrees of freedom, or all squares over the rows."""
    state, _ = model_of(4, full=True)
    state.precisions[0], state.variances[0] = [0.0, 2.0, 3.0, 4.0], [5.0, 0.2, 0.3, 0.0]
    model, numbers = state.models[0], state.numbers[0]
    assert kernel(model, numbers, True) == (math.inf, 0.0)
    used = 0.6 + 0.1  # without a flat prior, or a column that has never varied
    penalty = (state.precisions[0] * state.means[0] ** 2)[1:3].sum()
    numbers[names.STEPS], numbers[names.COUNT] = 6.0, 5.0
    numbers[names.RESIDUALS] = 7.0 + penalty
    expected = 7.0 / (5.0 - used), 5.0 - used
    assert_allclose(kernel(model, numbers, True), expected)
    assert_allclose(kernel(model, numbers, False), [(7.0 + penalty) / 5.0, 5.0])
    numbers[names.COUNT] = 0.5  # rows of small weights
    share = 1.0 - used / 5.0
    expected = 7.0 / (0.5 * share), 0.5
    assert_allclose(kernel(model, numbers, True), expected)
    state.precisions[0, 1:3] = 1e-9  # the coefficients take all rows
    numbers[names.STEPS], numbers[names.COUNT] = 3.0, 2.0
    expected = numbers[names.RESIDUALS] / 2.0, 1.5
    assert_allclose(kernel(model, numbers, True), expected)
    numbers[names.FORGETTING] = 0.1
    assert_allclose(kernel(model, numbers, True), [expected[0], 2.0])


@twin_of(online_parts.score_of)
def test_score_of(kernel):
    """The mean times the first parameters, or the average of the means."""
    state, rng = model_of(6)
    z, model, numbers = rng.normal(size=6), state.models[0], state.numbers[0]
    numbers[[names.SIZE, names.WEIGHT]] = 4, 2.5
    found = kernel(z, model, numbers, state.stream)
    assert_allclose(found, model[names.MEAN, :4] @ z[:4])
    state.averaging = 1.0
    found = kernel(z, model, numbers, state.stream)
    assert_allclose(found, model[names.AVERAGE, :4] @ z[:4] / 2.5)


@twin_of(online_parts.weigh_scores)
def test_weigh_scores(kernel):
    """The mean of the experts' scores, each within the range of the targets so far."""
    rng = np.random.default_rng(0)
    state = LinearState(4, 4, 1, 3, full=False, scales=False, shifts=False)
    state.means[:], z = rng.normal(size=(3, 4)), rng.normal(size=4)
    state.losses[:], state.aggregate_temperature = [1.0, 2.0, 5.0], 0.4
    state.temperature_kind, state.within_range = aggregation.FIXED, 1.0
    state.lowest_target, state.highest_target = -0.5, 0.5
    shares, scores = np.empty(3), np.empty(3)
    models, _, *rest = state.arguments[3:]
    mean = kernel(z, models, *rest, 0, shares, scores)
    assert_allclose(scores, np.clip(state.means @ z, -0.5, 0.5))
    assert_allclose(shares, softmax(-0.4 * state.losses[0]))
    assert_allclose(mean, shares @ scores)
    assert np.abs(state.means @ z).max() > 0.5


@twin_of(aggregation.weigh_next)
def test_weigh_next(kernel):
    losses, totals, shares = (
        np.array([1.0, 3.0]),
        np.zeros(aggregation.N_TOTALS),
        np.empty(2),
    )
    totals[aggregation.KIND] = aggregation.NOISE
    totals[[aggregation.TEMPERATURE, aggregation.WEIGHT, aggregation.RATE]] = 0.5, 4, 1
    kernel(losses, totals, shares)  # the rate rises from 1 to 2
    assert_allclose(shares, softmax(-2.0 * losses))
    soft = [-np.log(np.mean(np.exp(-rate * losses))) / rate for rate in (1.0, 2.0)]
    found = totals[[aggregation.RATE, aggregation.RISES]]
    assert_allclose(found, [2.0, soft[0] - soft[1]])


@twin_of(aggregation.count_losses)
def test_count_losses(kernel):
    losses, totals, own = (
        np.ones(2),
        np.zeros(aggregation.N_TOTALS),
        np.array([0.5, 4.0]),
    )
    kernel(1.5, 0.1, own, 2.0, losses, totals)
    assert_allclose(losses, 1.0 + 2.0 * own)
    entries = [aggregation.WEIGHT, aggregation.STEPS, aggregation.GAPS]
    assert_allclose(totals[entries], [2.0, 1.0, 0.1])
    assert_allclose(totals[[aggregation.LOSS, aggregation.LARGEST]], [3.0, 3.5])

    losses[:] = totals[:] = 0.0  # what all lose on row 1 is put aside
    totals[aggregation.KIND] = aggregation.NOISE
    kernel(1.5, 0.0, own, 2.0, losses, totals)
    kernel(1.5, 0.0, own, 1.0, losses, totals)
    assert_allclose(losses, 3.0 * own - 1.0)
    put_aside = totals[[aggregation.FIRST, aggregation.FIRST_WEIGHT]]
    assert_allclose(put_aside, [1.0, 2.0])
    assert_allclose(totals[[aggregation.LOSS, aggregation.LARGEST]], [4.5, 3.5])


def drawn_shares(rng, rate, scores=(0.0, 1.0, 2.0, 500.0, 1e4)):
    """Cumulative losses, the shares they have at a rate, and the logs of those."""
    scores = rng.permutation(scores)
    rate = rate or 1.0
    return 5.0 + scores / rate, softmax(-scores), -scores - logsumexp(-scores)


@twin_of(aggregation.pool)
def test_pool(kernel):
    """The loss of the mean probability; no gap at rates and weights up to 1."""
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-3, 1.0, 30.0, 700.0, 1e5):
        own = rng.uniform(0, size, 5)
        for rate, weight in ((1.0, 1.0), (0.3, 1.0), (1.0, 0.2), (2.0, 1.0), (1.0, 3)):
            losses, shares, logs = drawn_shares(rng, rate)
            expected = -logsumexp(-own, b=shares)
            loss, gap = kernel(own, weight, losses, shares, rate)
            assert_allclose(loss, expected, rtol=1e-12, atol=1e-12)
            soft = -logsumexp(logs - rate * weight * own) / rate
            right = max(weight * expected - soft, 0.0)
            assert_allclose(gap, right, rtol=1e-12, atol=1e-10)
            assert gap >= 0.0
            assert size > 700 or rate * weight > 1.0 or gap <= 1e-12
        assert kernel(own, 1.0, losses, shares, 0.0)[1] == 0.0


@twin_of(online_parts.moderate)
def test_moderate(kernel):
    for a, v in ((0.0, 1.0), (2.0, 0.0), (-3.0, 5.0)):
        assert_allclose(kernel(a, v), a / math.sqrt(1 + math.pi * v / 8))


@twin_of(aggregation.mixability_gap)
def test_mixability_gap(kernel):
    """At most what Hoeffding's lemma says; none at rate 0, or where experts agree."""
    rng = np.random.default_rng(0)
    for size in (1e-3, 1.0, 1e3, 1e200):
        own = rng.uniform(0, size, 5)
        for rate in (1.0 / size, 1e6 / size):  # one that was dropped decides
            losses, shares, logs = drawn_shares(rng, rate)
            gap = kernel(own, 2.0, losses, shares, rate)
            assert 0.0 < gap <= min(rate * size * (size / 2), 2.0 * size)
            expected = 2.0 * shares @ own + logsumexp(logs - 2.0 * rate * own) / rate
            assert_allclose(gap, expected, rtol=1e-9)
            assert kernel(own, 2.0, losses, shares, 0.0) == 0.0
            same = np.full(5, size)
            assert kernel(same, 2.0, losses, shares, rate) <= 1e-15 * size
    # half the rate times the variance, where that is low
    shares, own = np.array([0.3, 0.7]), np.array([2.0, 5.0])
    for rate in (1e-300, 1e-12, 1e-6):
        half = 0.5 * rate * 0.3 * 0.7 * 3.0**2
        gap = kernel(own, 1.0, -np.log(shares) / rate, shares, rate)
        assert_allclose(gap, half, rtol=1e-5)
    # the mean, where the rate is so high that the soft minimum is the least loss
    own, shares = np.array([1.0, 3.0]), np.full(2, 0.5)
    assert_allclose(kernel(own, 1.0, np.zeros(2), shares, 1e300), 1.0)


def full_model(d, seed=0):
    """State of one model of full covariance, and that as a matrix."""
    state, rng = model_of(d, seed, full=True)
    factor = rng.normal(size=(d, d))
    covariance = factor @ factor.T + np.eye(d)
    width = state.models.shape[2]
    rows = np.zeros((width, len(state.covariances[0]) * names.PANEL))
    rows[:d, :d] = covariance
    panels = rows.reshape(width, -1, names.PANEL).swapaxes(0, 1)
    state.covariances[0] = panels.reshape(len(panels), -1)
    state.variances[0] = np.diag(covariance)
    return state, covariance, np.zeros((3, width)), rng


@twin_of(online_covariance.settle)
def test_settle(kernel):
    state, covariance, (owed, _, _), rng = full_model(6)
    owed[:6] = h = rng.normal(size=6)
    kernel(state.covariances[0], owed, 1.5)
    assert_allclose(state.whole_covariance(0), 1.5 * (covariance - np.outer(h, h)))
    assert not owed.any()


@twin_of(online_covariance.condition)
def test_condition(kernel):
    """Bayes' formula for a Gaussian; the downdate owed comes first."""
    state, covariance, (owed, gain, x), rng = full_model(6)
    mean, settle = state.means[0].copy(), online_covariance.settle
    owed[:6], x[:6] = 0.1 * rng.normal(size=6), rng.normal(size=6)
    covariance = covariance - np.outer(owed[:6], owed[:6])
    along = kernel(state.models[0], state.covariances[0], owed, gain, x, 0.7, 2.0)
    settle(state.covariances[0], owed, 1.0)
    v, own = x[:6] @ covariance @ x[:6], covariance @ x[:6]
    assert_allclose(along, v)
    assert_allclose(state.means[0], mean + 0.7 * own / (0.5 + v))
    expected = covariance - np.outer(own, own) / (0.5 + v)
    assert_allclose(state.whole_covariance(0), expected, rtol=1e-10, atol=1e-11)


@twin_of(online_covariance.follow)
def test_follow(kernel):
    """The prior's precision is the mean square of a column over its scale squared.

    What is added to it is a measurement of 0 on that coordinate.
    """
    state, covariance, (owed, gain, axis), _ = full_model(4)
    model, mean = state.models[0], state.means[0].copy()
    model[[names.CENTER, names.SCATTER]] = 0.0
    state.precisions[0] = [1e9, 1e9, 0.25, 1e9]  # one column has grown
    state.numbers[0, names.WEIGHT], state.numbers[0, names.PRIOR_SCALE] = 3.0, 2.0
    z = 6.0 * np.ones(4)
    arguments = state.covariances[0], owed, gain, axis, np.zeros(4)
    kernel(model, *arguments, z, 1.0, state.numbers[0])
    online_covariance.settle(state.covariances[0], owed, 1.0)
    assert_allclose(model[names.CENTER], 1.5)
    assert_allclose(model[names.SCATTER], 36 - 4 * 1.5**2)
    assert_allclose(state.precisions[0, 2], (36 - 4 * 1.5**2) / (4 * 2.0**2))
    precision = np.linalg.inv(covariance)
    shift = precision @ mean
    precision[2, 2] += state.precisions[0, 2] - 0.25
    expected = np.linalg.inv(precision)
    assert_allclose(state.whole_covariance(0), expected, rtol=1e-10, atol=1e-11)
    assert_allclose(state.means[0], expected @ shift, rtol=1e-10, atol=1e-11)


@twin_of(online_covariance.beyond_range)
def test_beyond_range(kernel):
    state, _, (_, _, z), _ = full_model(4)
    state.ranges[:] = [[-1.0] * 4, [1.0] * 4]
    z[:4] = [0.5, 3.0, -4.0, 1.0]
    row = state.models[0], z, state.stream
    assert_allclose(kernel(*row), state.means[0] @ [0.0, 2.0, -3.0, 0.0])
    assert np.array_equal(state.ranges, [[-1, -1, -4, -1], [1, 3, 1, 1]])
    assert kernel(*row) == 0.0


@twin_of(online_parts.bring_within)
def test_bring_within(kernel):
    """One by one, or the row as a whole, whichever changes the prediction less."""
    state, _ = model_of(4, full=True, shifts=True)
    state.ranges[:] = [[-1.0] * 4, [1.0] * 4]
    state.models[0, names.CENTER, :4] = 0.5
    state.means[:] = [100.0, -100.0, 1.0, 0.0]
    rows = [[1.5, 1.49, 0.0, 0.0], [0.0, -0.2, 0.0, 3.0], [0.0, -0.2, 0.0, -1.0]]
    for z, clipped, share in zip(rows, (1.0, 0.0, 0.0), (0.5, 0.2, 1.0), strict=True):
        z = np.array(z)
        whole = (1.0 - share) * (state.means[0] @ (z - 0.5))
        for together in (0.0, 1.0):
            state.stream[names.TOGETHER] = together
            if together and abs(whole) < abs(clipped):
                expected = whole, share
            else:
                expected = clipped, 1.0
            found = kernel(state.models[0], z, state.stream)
            assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
            place, Z = state.arguments[:3], np.zeros((1, 4))
            online_parts.place(z, *place, state.models[0], state.stream, False, Z)
            change = state.means[0] @ (z - Z[0])
            assert_allclose(change, found[0], rtol=1e-10, atol=1e-10)


@twin_of(online_covariance.forget_covariance)
def test_forget_covariance(kernel):
    """The covariance grows; the prior returns on one coordinate, four times as strong.

    After three steps that is the fourth.
    """
    state, covariance, (owed, gain, axis), _ = full_model(4)
    state.precisions[0], state.forgetting = 0.7, 0.1
    state.numbers[0, names.STEPS], mean = 3.0, state.means[0].copy()
    arguments = state.models[0], state.covariances[0], owed, gain, axis
    kernel(*arguments, state.numbers[0], state.stream)
    online_covariance.settle(state.covariances[0], owed, 1.0)
    precision = 0.9 * np.linalg.inv(covariance)
    shift = precision @ mean
    precision[3, 3] += 0.1 * 4 * 0.7
    expected = np.linalg.inv(precision)
    assert_allclose(state.whole_covariance(0), expected, rtol=1e-10, atol=1e-11)
    assert_allclose(state.means[0], expected @ shift, rtol=1e-10, atol=1e-11)


@twin_of(online_parts.is_to_forget)
def test_rows_that_are_to_forget(kernel):
    """None, all, or those whose label is not that of the row before."""
    labels = [1.0, 1.0, -1.0, -1.0, -1.0, 1.0]
    counts = np.zeros(names.N_NUMBERS)
    assert not any(kernel(label, counts) for label in labels)
    counts[names.FORGETTING] = 0.1
    assert all(kernel(label, counts) for label in labels)
    counts[names.LAST_LABEL] = np.nan
    found = [kernel(label, counts) for label in labels]
    assert found == [True, False, True, False, False, True]
