"""NumPy twins of the kernels for counts: the row's posterior, by minimisation."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize
from scipy.special import softmax, xlogy
from twins import twin_of

from skpacbayes import OnlineVIRegressor
from skpacbayes._kernels import aggregation, online_counts
from skpacbayes._kernels.online_state import LinearState


def half_deviance(y, f):
    return np.exp(f) - y * f - y + xlogy(y, y)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4])
@twin_of(online_counts.implicit_log_rate)
def test_implicit_log_rate(kernel, size):
    """The root by `brentq`; rows that are extreme, and steps that leap."""
    rng = np.random.default_rng(0)
    for y in (0.0, 0.3, 4.0, 1e6, 1e150):
        for a in (-30.0, 0.0, 3.0, 40.0):
            for strength in (1e-3, 1.0, 50.0):
                spread = size * rng.exponential(size=4)
                v = spread.sum()

                def excess(x, a=a, y=y, spread=spread, v=v, strength=strength):
                    rate = math.exp(x)
                    after = (spread / (1.0 + strength * rate * spread)).sum()
                    return x - (a + strength * v * (y - rate)) - 0.5 * after

                low, high = -800.0, 400.0
                if excess(low) > 0.0:
                    low = a + strength * v * y - 10.0
                    low = min(low, -1e5)
                expected = brentq(excess, low, high, xtol=1e-12, rtol=1e-13)
                x, after = kernel(y, a, v, strength, spread)
                assert_allclose(x, expected, rtol=1e-7, atol=1e-8)
                rate = strength * math.exp(x)
                assert_allclose(after, (spread / (1 + rate * spread)).sum(), rtol=1e-9)


def state_of(d, n_experts, full, scales, rate):
    state = LinearState(d, d, 1, n_experts, full=full, scales=False, shifts=False)
    state.precisions[:] = np.array(scales)[:, None] ** -2.0
    state.set_variances(np.repeat(np.array(scales)[:, None] ** 2.0, d, axis=1))
    state.temperatures, state.forgetting = 0.7, rate
    state.clip = state.mean_bound = state.scale_bound = math.inf
    state.temperature_kind, state.aggregate_temperature = aggregation.FIXED, 0.7
    state.within_range = n_experts > 1
    state.lowest_target, state.highest_target = math.inf, -math.inf
    return state


def posterior(mean, covariance, z, y, strength, full):
    """Gaussian of least expected loss, times the strength, plus divergence."""
    d, precision = len(mean), np.linalg.inv(covariance)
    lower = np.tril_indices(d) if full else np.diag_indices(d)

    def unpack(x):
        factor = np.zeros((d, d))
        factor[lower] = x[d:]
        factor[np.diag_indices(d)] = np.exp(factor[np.diag_indices(d)])
        return x[:d], factor

    def objective(x):
        m, factor = unpack(x)
        a, v = m @ z, ((factor.T @ z) ** 2).sum()
        kl = 0.5 * np.trace(precision @ factor @ factor.T)
        kl += 0.5 * (m - mean) @ precision @ (m - mean)
        kl -= np.log(np.diag(factor)).sum()
        return strength * (math.exp(a + 0.5 * v) - y * a) + kl

    factor = np.linalg.cholesky(covariance)
    factor[np.diag_indices(d)] = np.log(np.diag(factor))
    start = np.concatenate([mean, factor[lower]])
    m, factor = unpack(minimize(objective, start, method="BFGS", tol=1e-9).x)
    return m, factor @ factor.T


@pytest.mark.parametrize("full", [True, False])
@twin_of(online_counts.learn_counts)
def test_learn_counts(kernel, full):
    """Each row's posterior minimises the variational objective."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(5, 3)), np.array([3.0, 0.0, 8.0, 1.0, 0.5])
    weights = np.array([1.0, 2.0, 0.5, 0.0, 1.0])
    state = state_of(3, 1, full, [1.5], 0.0)
    predictions, work = np.empty((1, 5)), state.work_for(5)
    assert kernel(Z, y, weights, *state.arguments, work, predictions)
    mean, covariance, total = np.zeros(3), 2.25 * np.eye(3), 0.0
    for t in range(5):
        if weights[t] == 0:
            continue
        assert_allclose(predictions[0, t], mean @ Z[t], atol=1e-4)
        total += weights[t] * half_deviance(y[t], mean @ Z[t])
        strength = 0.7 * weights[t]
        mean, covariance = posterior(mean, covariance, Z[t], y[t], strength, full)
    assert_allclose(state.means[0], mean, atol=1e-4)
    found = state.whole_covariance(0) if full else np.diag(state.variances[0])
    assert_allclose(found, covariance, atol=1e-4)
    assert_allclose(np.diag(found), state.variances[0])
    assert_allclose(state.cumulative_losses[0], total, rtol=1e-4)
    before = state.copy()
    assert not kernel(Z, y - 1.0, weights, *state.arguments, work, predictions)
    assert np.array_equal(before.models, state.models)


@pytest.mark.parametrize("full", [True, False])
def test_experts_of_counts_are_aggregated(full):
    """Experts learn on their own; their logs of rates, in range, are averaged."""
    rng, n = np.random.default_rng(0), 40
    X, y, ones = rng.standard_t(1, (n, 3)), rng.poisson(2.0, n) * 1.0, np.empty(0)
    options = {"loss": "poisson", "forgetting": 0.02, "inverse_temperature": 0.7}
    options["n_fourier"] = 0
    options["covariance"] = "full" if full else "diagonal"
    own, losses, total = np.empty((3, n)), np.zeros(3), 0.0
    for k, scale in enumerate((0.3, 1.0, 3.0)):
        alone = OnlineVIRegressor(prior_scale=scale, **options)
        alone._begin(3)
        assert alone._learn(X, y, ones, own[k : k + 1])
    for t in range(n):
        within = np.minimum(own[:, t], math.log1p(y[:t].max()) if t else math.inf)
        mean = softmax(-0.7 * losses) @ within
        total += half_deviance(y[t], mean)
        losses += half_deviance(y[t], within)
    model, predictions = OnlineVIRegressor(prior_scale="auto", **options), own.copy()
    model._begin(3)
    assert model._learn(X, y, ones, predictions)
    state = model._state
    assert_allclose(predictions[0, -1], mean, rtol=1e-9)
    assert_allclose(state.losses[0], losses, rtol=1e-9)
    assert_allclose(state.aggregate_loss, total, rtol=1e-9)
    assert np.any(own > math.log1p(y.max()))
