"""NumPy twins of the kernels of two labels with joint posteriors."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from twins import twin_of

from skpacbayes._kernels import aggregation, online, online_labels, online_losses
from skpacbayes._kernels.online_state import (
    CLIP,
    FORGETTING,
    LAST_LABEL,
    LOSS_KIND,
    MEAN_BOUND,
    MEANS,
    N_ROWS_BEFORE,
    PRIOR_SCALE,
    SCALE_BOUND,
    TEMPERATURE,
    LinearState,
)

D, N_ROWS, STRENGTH = 3, 50, 0.7


def rows():
    """Return rows, labels and weights, some of them 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, D))
    y = np.sign(X[:, 0] + rng.normal(size=N_ROWS))
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.5], N_ROWS)


def state_of(n_experts, n_joint):
    """Return the priors of experts, of which some forget; features are not scaled."""
    state = LinearState(
        *(D, 1 + D, 1, n_experts),
        **dict(full=False, scales=False, shifts=False, n_labels=2, n_joint=n_joint),
    )
    state.set_variances(np.full((n_experts, 1 + D), 4.0))
    state.precisions[:] = 0.25
    own, stream = state.numbers, state.stream
    own[:, TEMPERATURE], own[:, PRIOR_SCALE], own[1:, FORGETTING] = STRENGTH, 2.0, 0.03
    own[-1, LAST_LABEL] = math.nan
    stream[[CLIP, MEAN_BOUND, SCALE_BOUND]] = math.inf
    stream[LOSS_KIND] = aggregation.LOG
    state.totals[:, aggregation.TEMPERATURE] = 1.0
    state.set_joint_priors()
    return state


@pytest.mark.parametrize("weighted", [False, True])
@twin_of(online_labels.learn_labels)
def test_learn_labels(kernel, weighted):
    """Diagonal experts learn as those of `learn_natural` do, up to rounding.

    After one row, the joint expert solves the equations of `online_joint`.
    """
    X, y, weights = rows()
    weights = weights if weighted else np.empty(0)
    one, other = state_of(3, 0), state_of(3, 0)
    found, expected = np.zeros((2, 3, N_ROWS))
    joint = list(one.arguments)
    joint[1], joint[4] = np.empty(0), np.empty((0, 0, 0))  # of no expert
    work = one.work_for(N_ROWS)
    assert kernel(X, y, weights, *joint, work, found)
    assert online.learn_natural(X, y, weights, *other.arguments, work, expected)
    for name in ("models", "numbers", "losses", "totals"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14, err_msg=name)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    state = state_of(1, 1)
    rest = *state.arguments, state.work_for(1), np.empty((1, 1))
    assert kernel(X[:1], y[:1], np.empty(0), *rest)
    z, (posterior,) = np.r_[1.0, X[0]], state.covariances
    mean, covariance = posterior[MEANS], posterior[N_ROWS_BEFORE:]
    before, after = 4.0 * z @ z, z @ covariance @ z
    spread = math.sqrt(1.0 + math.pi / 8.0 * after)
    wrong = expit(-y[0] * (mean @ z) / spread)
    assert_allclose(mean, STRENGTH * y[0] * wrong * 4.0 * z, rtol=1e-5)
    curvature = STRENGTH * wrong * (1.0 - wrong) / spread
    assert_allclose(1.0 / after - 1.0 / before, curvature, rtol=1e-5)


@pytest.mark.parametrize("kind", ["FIXED", "NOISE"])
@twin_of(aggregation.aggregate_labels)
def test_aggregate_labels(kernel, kind):
    """The aggregate of the logistic loss."""
    _, y, weights = rows()
    found = np.random.default_rng(1).normal(size=(3, N_ROWS))
    expected, work = found.copy(), np.empty((2, 3))
    ours, theirs = state_of(3, 0), state_of(3, 0)
    for state in (ours, theirs):
        state.totals[0, aggregation.KIND] = getattr(aggregation, kind)
    kernel(y, weights, found, ours.losses[0], ours.totals[0], work)
    own = theirs.losses[0], theirs.totals[0]
    aggregation.aggregate.py_func(y, -1, weights, aggregation.LOG, expected, *own, work)
    assert_allclose(found, expected, rtol=1e-12)
    assert_allclose(ours.losses, theirs.losses, rtol=1e-12)
    assert_allclose(ours.totals, theirs.totals, rtol=1e-9, atol=1e-12)


@twin_of(aggregation.log_loss)
def test_log_loss(kernel):
    for y in (-1.0, 1.0):
        for a in (-800.0, -1.5, 0.0, 2.0, 800.0):
            assert_allclose(kernel(y, a), np.logaddexp(0.0, -y * a), rtol=1e-14)


@twin_of(online_losses.implicit_logistic)
def test_implicit_logistic(kernel):
    """The gradients are those at the new score, and at the old one for the variance."""
    expected = online_losses.expected_gradients.py_func
    for y, a, v, strength in ((1.0, 0.3, 0.5, 1.0), (-1.0, 2.0, 9.0, 4.0)):
        da, dv = kernel(y, a, v, strength)
        after = expected(aggregation.LOG, y, a - strength * v * da, v)[0]
        assert_allclose(da, after, rtol=1e-6)
        assert_allclose(dv, expected(aggregation.LOG, y, a, v)[1], rtol=1e-12)
