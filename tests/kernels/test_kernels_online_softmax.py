"""NumPy twins of the kernels for labels of several classes, and their exact bound."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import root
from scipy.special import logsumexp, softmax
from twins import twin_of

from skpacbayes._kernels import aggregation, online_softmax
from skpacbayes._kernels.online_state import LinearState

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
NONE = np.empty(0)


def solved(scores, widths):
    q, logs, work = np.empty((3, len(scores)))
    solve = online_softmax.solve_tilted.py_func
    constant = solve(scores, widths, -math.inf, q, logs, work)
    return q, constant


@pytest.mark.parametrize("scale", [0.0, 1e-310, 1e-3, 1.0, 30.0, 1e6])
@twin_of(online_softmax.solve_tilted)
def test_solve_tilted(kernel, scale):
    """The equation, and the sum, to the digits that the scores leave.

    From the softmax; and from the solution of another equation, similar or not.
    """
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 50):
        for spread in (0.0, 1.0, 40.0, 1e4):
            scores = spread * rng.normal(size=n_classes)
            widths = scale * rng.exponential(size=n_classes)
            q, logs, work = np.empty((3, n_classes))
            constant = -math.inf
            for change in (0.0, 1e-3, 1.0, 100.0):
                scores = scores + change * widths * (np.arange(n_classes) == 1)
                widths = (1.0 + change) * widths
                constant = kernel(scores, widths, constant, q, logs, work)
                size = 1.0 + widths.max() + np.abs(scores).max()
                assert_allclose(q.sum(), 1.0, rtol=1e-15 * size + 2e-13 * n_classes)
                known = q > 1e-300
                actual = np.log(q[known]) + widths[known] * q[known]
                expected = scores[known] - constant
                assert_allclose(actual, expected, rtol=0, atol=1e-12 * size)
                assert_allclose(logs[known], np.log(q[known]), atol=1e-12 * size)
                assert np.all(scores[~known] - constant < -680)


def expected_logsumexp(a, v):
    """E logsumexp(f): the mean of the largest f_k plus Gumbel noise, less Euler's."""

    def below(t):
        each = np.exp(-np.exp(a[:, None] + np.sqrt(v)[:, None] * NODES - t))
        return np.prod(each @ NODE_WEIGHTS)

    low, high = (a - 8 * np.sqrt(v)).max() - 5, (a + 8 * np.sqrt(v)).max() + 40
    above, _ = quad(lambda t: 1 - below(t), low, high, limit=500)
    under, _ = quad(below, low - 60, low, limit=200)
    return low + above - under - np.euler_gamma


def bound_of(a, v):
    q, _ = solved(a + 0.5 * v, v)
    return 0.5 * q**2 @ v + logsumexp(a + (0.5 - q) * v), q


@pytest.mark.parametrize("scale", [0.01, 1.0, 4.0])
def test_the_bound_is_one(scale):
    """Above the expectation, close to it for small variances; its derivatives."""
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 6):
        a, v = rng.normal(size=n_classes), scale * rng.exponential(size=n_classes)
        bound, q = bound_of(a, v)
        exact = expected_logsumexp(a, v)
        assert exact - 1e-7 <= bound <= exact + 0.02 * v.sum() ** 2
        for k in range(n_classes):
            step = 1e-5 * np.eye(n_classes)[k]
            in_mean = (bound_of(a + step, v)[0] - bound_of(a - step, v)[0]) / 2e-5
            assert_allclose(in_mean, q[k], rtol=1e-6, atol=1e-9)
            in_variance = (bound_of(a, v + step * v[k])[0] - bound) / (1e-5 * v[k])
            assert_allclose(in_variance, 0.5 * q[k] * (1 - q[k]), rtol=2e-3, atol=1e-6)


def test_the_logsumexp_of_the_tests_is_that_of_draws():
    rng = np.random.default_rng(0)
    a, v = np.array([0.3, -1.0, 0.8]), np.array([0.5, 2.0, 0.1])
    draws = logsumexp(a + np.sqrt(v) * rng.normal(size=(100_000, 3)), axis=1)
    error = draws.std() / math.sqrt(len(draws))
    assert abs(expected_logsumexp(a, v) - draws.mean()) < 4.5 * error


def averaged(scores, variances):
    """The softmax averaged over scores of these moments: the formula."""
    apart = scores - scores[:, None]
    apart /= np.sqrt(1 + np.pi / 8 * (variances + variances[:, None]))
    np.fill_diagonal(apart, 0.0)
    each = 1 / np.exp(apart).sum(axis=1)
    return each / each.sum()


class Reference:
    """Softmax models on rows Z, one expert; the equations solved by `scipy`."""

    def __init__(self, n_classes, d, scale, rate):
        self.m = np.zeros((n_classes, d))
        self.P = np.full((n_classes, d), scale**-2.0)
        self.prior, self.rate, self.total = scale**-2.0, rate, 0.0

    def learn(self, z, label, strength, weight):
        own = -np.log(averaged(self.m @ z, (1 / self.P) @ z**2)[label])
        self.total += weight * own
        if self.rate:
            P = (1 - self.rate) * self.P + self.rate * self.prior
            self.m, self.P = (1 - self.rate) * self.P * self.m / P, P
        a, v = self.m @ z, (1 / self.P) @ z**2
        hit = np.eye(len(a))[label]
        before = self.solve(a + 0.5 * v, v)
        b = strength * weight
        q = self.solve(a + 0.5 * v + b * v * hit, v + b * v)
        self.m = self.m + b * (hit - q)[:, None] * z / self.P
        self.P = self.P + b * (before * (1 - before))[:, None] * z**2
        return own

    @staticmethod
    def solve(c, w):
        q = softmax(c - w / len(c))
        found = root(lambda x: x - c + w * softmax(x), np.log(q) + c.mean(), tol=1e-14)
        return softmax(found.x)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.0, 0.02])
@twin_of(online_softmax.learn_softmax)
def test_learn_softmax(kernel, rate):
    rng = np.random.default_rng(0)
    scales, n_classes, n, d = (0.5, 2.0), 4, 25, 3
    Z, y = rng.normal(size=(n, d)), rng.integers(n_classes, size=n)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    state = LinearState(d, d, n_classes, 2, full=False, scales=False, shifts=False)
    assert state.losses.shape == (n_classes, 2)
    state = LinearState(
        d, d, n_classes, 2, full=False, scales=False, shifts=False, joint=True
    )
    each = np.tile(scales, n_classes)
    state.set_variances(np.repeat(each[:, None] ** 2, d, axis=1))
    state.precisions[:] = each[:, None] ** -2
    state.temperatures, state.forgetting = 0.7, rate
    state.clip = state.mean_bound = state.scale_bound = math.inf
    state.temperature_kind, state.aggregate_temperature = aggregation.FIXED, 0.7
    references = [Reference(n_classes, d, scale, rate) for scale in scales]
    work = state.work_for(n)
    assert kernel(Z, y.astype(float), weights, *state.arguments, work, np.empty((2, n)))
    losses, total = np.zeros(2), 0.0
    for z, label, weight in zip(Z, y, weights, strict=True):
        if weight == 0:
            continue
        shares = softmax(-0.7 * losses)
        found = [r.learn(z, label, 0.7, weight) for r in references]
        total -= weight * np.log(shares @ np.exp(np.negative(found)))
        losses += weight * np.array(found)
    assert_allclose(state.losses[0], losses, rtol=1e-9)
    assert_allclose(state.aggregate_loss, total, rtol=1e-9)
    assert_allclose(state.cumulative_losses.sum(), losses.sum(), rtol=1e-9)
    for e, reference in enumerate(references):
        assert_allclose(state.means[e::2], reference.m, rtol=1e-8, atol=1e-10)
        assert_allclose(state.variances[e::2], 1 / reference.P, rtol=1e-9)
    before = state.copy()
    Z[3, 1] = np.nan
    assert not kernel(
        Z, y.astype(float), weights, *state.arguments, work, np.empty((2, n))
    )
    assert np.array_equal(before.models, state.models)


@twin_of(online_softmax.predict_softmax)
def test_predict_softmax(kernel):
    """The formula, and how far it is from the averaged softmax."""
    rng = np.random.default_rng(1)
    state = LinearState(3, 3, 4, 1, full=False, scales=False, shifts=False, joint=True)
    state.means[:], state.clip = rng.normal(size=(4, 3)), math.inf
    state.set_variances(rng.exponential(size=(4, 3)))
    X, found = rng.normal(size=(5, 3)), np.empty((5, 4))
    kernel(X, *state.arguments, found)
    scores, variances = X @ state.means.T, X**2 @ state.variances.T
    expected = [averaged(*moments) for moments in zip(scores, variances, strict=True)]
    assert_allclose(found, expected, rtol=1e-12)
    noise = rng.normal(size=(20_000, 5, 4))
    drawn = softmax(scores + np.sqrt(variances) * noise, axis=2).mean(axis=0)
    assert np.abs(found - drawn).max() < 0.05
    state.means[:] *= 1e6
    kernel(X, *state.arguments, found)
    assert_allclose(found.sum(axis=1), 1.0)
