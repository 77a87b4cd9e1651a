"""NumPy twins of the kernels of joint posteriors."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from twins import twin_of

from skpacbayes._kernels import online_joint, online_state
from skpacbayes._kernels.online_joint import (
    CURVATURE,
    MIXED,
    SCORES,
    SHIFT,
    SPREAD,
)
from skpacbayes._kernels.online_state import (
    CENTER_OF,
    CENTERS,
    MEAN,
    MEANS,
    N_ROWS_BEFORE,
    N_VECTORS,
    SCATTER_OF,
    SCATTERS,
    SEEN,
    UNITS,
    VARIANCE,
    WEIGHT,
)

D = 3  # features


def posterior(n_scores, seed=0):
    """Return a joint posterior with means and a covariance of any kind."""
    rng = np.random.default_rng(seed)
    size = n_scores * (1 + D)
    found = np.zeros((N_ROWS_BEFORE + size, size))
    found[MEANS] = rng.normal(size=size)
    found[UNITS, : 1 + D] = 1.0
    root = rng.normal(size=(size, size + 2))
    found[N_ROWS_BEFORE:] = root @ root.T / size
    return found


def scratch(n_scores):
    return online_joint.workspace.py_func(n_scores, 1 + D)


def met(found, n_scores, x, origin):
    """Return scratch after `joint_moments`."""
    work = scratch(n_scores)
    online_joint.joint_moments.py_func(found, x, origin, work)
    return work


@twin_of(online_joint.average_softmax)
def test_average_softmax(kernel):
    """The formula; for two classes the averaged sigmoid; scores far apart."""
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 30):
        scores, found = 3 * rng.normal(size=n_classes), np.empty(n_classes)
        root = rng.normal(size=(n_classes, n_classes))
        for covariance in (root @ root.T, np.diag(rng.exponential(size=n_classes))):
            kernel(scores, covariance, found)
            own = np.diag(covariance)
            spread = np.sqrt(1 + math.pi / 8 * (own[:, None] + own - 2 * covariance))
            each = 1 / np.exp((scores[:, None] - scores) / spread).sum(axis=0)
            assert_allclose(found, each / each.sum(), rtol=1e-12)
            if n_classes == 2:
                logit = (scores[1] - scores[0]) / spread[0, 1]
                assert_allclose(found[1], expit(logit))
        kernel(1e9 * scores, covariance, found)
        assert_allclose(found, np.eye(n_classes)[scores.argmax()], atol=1e-100)
        assert found.min() > 0.0


@twin_of(online_joint.workspace)
def test_workspace(kernel):
    vectors, matrices, gains, z = kernel(2, 4)
    assert vectors.shape[1] == 2
    assert matrices.shape[1:] == (2, 2)
    assert gains.shape == (2, 8)
    assert z.shape == (4,)


@twin_of(online_joint.start_at)
def test_start_at(kernel):
    """The first row of positive weight, once, where the prior follows the rows."""
    X, weights = np.arange(6.0).reshape(2, 3), np.array([0.0, 1.0])
    numbers = np.zeros((2, online_state.N_NUMBERS))
    for own, follows, row in ((np.empty(0), True, 0), (weights, True, 1)):
        origin = np.full(3, 9.0)
        kernel(X, own, origin, numbers, follows)
        assert np.array_equal(origin, X[row])
    kernel(X, np.empty(0), origin, numbers, False)
    numbers[:, online_state.STEPS] = 1.0
    kernel(X, np.empty(0), origin, numbers, True)
    assert np.array_equal(origin, X[1])


@pytest.mark.parametrize("n_scores", [1, 3])
@twin_of(online_joint.joint_moments)
def test_joint_moments(kernel, n_scores):
    found, work = posterior(n_scores), scratch(n_scores)
    found[UNITS, 2] = 0.0  # a column that has never varied
    x, origin = np.array([1.0, 5.0, -2.0]), np.array([0.5, 5.0, 0.0])
    kernel(found, x, origin, work)
    z = np.kron(np.eye(n_scores), [1.0, 0.5, 0.0, -2.0])
    covariance = found[N_ROWS_BEFORE:]
    assert_allclose(work[0][SCORES], z @ found[MEANS], rtol=1e-12)
    assert_allclose(work[1][SPREAD], z @ covariance @ z.T, rtol=1e-12)
    assert_allclose(work[2], z @ covariance, rtol=1e-12)


@pytest.mark.parametrize("n_scores", [1, 3])
@twin_of(online_joint.rounding_of)
def test_rounding_of(kernel, n_scores):
    """A bound on the difference of two ways to sum."""
    x, origin = np.array([1e3, -1e3, 1.0]), np.zeros(3)
    for seed in range(20):
        found = posterior(n_scores, seed)
        work = met(found, n_scores, x, origin)
        z = np.kron(np.eye(n_scores), np.r_[1.0, x]).astype(np.longdouble)
        exact = np.diag(z @ found[N_ROWS_BEFORE:].astype(np.longdouble) @ z.T)
        error = abs(exact - np.diag(work[1][SPREAD])).max()
        assert error <= kernel(found, work) < 1e-9 * exact.max()


def expected_step(a, V, label, strength):
    """Solve the equations of the step by plain iteration."""
    n, moved, changed = len(a), a.copy(), V.copy()
    for _ in range(3000):
        own = np.diag(changed)
        spread = np.sqrt(1 + math.pi / 8 * (own[:, None] + own - 2 * changed))
        p = 1 / np.exp((moved[:, None] - moved) / spread).sum(axis=0)
        p /= p.sum()
        curvature = -np.outer(p, p) / spread
        curvature[np.diag_indices(n)] -= curvature.sum(axis=1)
        new = a + strength * V @ (np.eye(n)[label] - p)
        moved = 0.8 * moved + 0.2 * new
        new = V @ np.linalg.inv(np.eye(n) + strength * curvature @ V)
        changed = 0.8 * changed + 0.2 * new
    return strength * (np.eye(n)[label] - p), strength * curvature


@pytest.mark.slow
@twin_of(online_joint.solve_step)
def test_solve_step(kernel):
    """The equations, by plain iteration; the factors are those of b L and I + B'VB."""
    x, origin = np.array([1.0, -1.0, 0.5]), np.zeros(3)
    for label, strength in ((0, 1.0), (2, 2.5)):
        work = met(posterior(3, label), 3, x, origin)
        a, V = work[0][SCORES].copy(), work[1][SPREAD].copy()
        kernel(label, strength, 0.0, work)
        shift, curvature = expected_step(a, V, label, strength)
        B, C = work[1][CURVATURE], work[1][MIXED]
        assert_allclose(work[0][SHIFT], shift, rtol=1e-4, atol=1e-5)
        assert_allclose(B @ B.T, curvature, rtol=1e-4, atol=1e-5)
        assert_allclose(C @ C.T, np.eye(3) + B.T @ V @ B, rtol=1e-10, atol=1e-12)


@twin_of(online_joint.solve_single)
def test_solve_single(kernel):
    """One score is the difference of two, of which one is 0."""
    x, origin = np.array([1.0, -1.0, 0.5]), np.zeros(3)
    for label, strength in ((-1, 1.0), (1, 2.5)):
        work = met(posterior(1, 5), 1, x, origin)
        a, v = work[0][SCORES, 0], work[1][SPREAD, 0, 0]
        found, B, C = kernel(label, strength, 0.1, a, v)
        both = np.array([[0.0, 0.0], [0.0, v]])
        shift, curvature = expected_step(
            np.array([0.0, a]), both, (1 + label) // 2, strength
        )
        assert_allclose(found, shift[1], rtol=1e-4)
        assert_allclose(B**2, curvature[1, 1], rtol=1e-4)
        assert_allclose(C**2, 1 + curvature[1, 1] * (v + 0.1), rtol=1e-4)


@twin_of(online_joint.single_moments)
def test_single_moments(kernel):
    """Those of several scores, for one; the scratch may be longer."""
    found, x, origin = posterior(1), np.array([1.0, 5.0, -2.0]), np.ones(3)
    found[UNITS, 2] = 0.0  # a column that has never varied
    vectors, matrices, gains, row = met(found, 1, x, origin)
    z, own = np.empty(1 + D), np.full((2, 3 + D), np.nan)
    expected = vectors[SCORES, 0], matrices[SPREAD, 0, 0]
    assert_allclose(kernel(found, x, origin, z, own), expected, rtol=1e-12)
    assert_allclose(z, row, rtol=0.0)
    assert_allclose(own[0, : 1 + D], gains[0], rtol=1e-12)
    assert np.isnan(own[0, 1 + D :]).all()
    assert np.isnan(own[1]).all()


@twin_of(online_joint.single_rounding_of)
def test_single_rounding_of(kernel):
    found = posterior(1)
    work = met(found, 1, np.array([1e3, -1e3, 1.0]), np.zeros(3))
    expected = online_joint.rounding_of.py_func(found, work)
    assert_allclose(kernel(found, work[3]), expected, rtol=1e-12)


@twin_of(online_joint.move_single)
def test_move_single(kernel):
    """As the step of several scores moves the posterior, for one."""
    found, expected = posterior(1), posterior(1)
    work = met(found, 1, np.array([1.0, -1.0, 0.5]), np.zeros(3))
    gains = np.c_[work[2], np.full((1, 2), np.nan)]
    work[0][SHIFT], work[1][CURVATURE], work[1][MIXED] = 0.7, 0.4, 1.3
    online_joint.move.py_func(expected, 1e-9, work)
    kernel(found, gains, 0.7, 0.4, 1.3, 1e-9)
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("n_scores", [1, 3])
@twin_of(online_joint.move)
def test_move(kernel, n_scores):
    """The precision of the scores is added to that of the coefficients."""
    x, origin = np.array([1.0, -1.0, 0.5]), np.zeros(3)
    found = posterior(n_scores)
    before = found.copy()
    work, rng = met(found, n_scores, x, origin), np.random.default_rng(2)
    work[0][SHIFT] = rng.normal(size=n_scores)
    B = np.tril(rng.normal(size=(n_scores, n_scores)))
    inside = np.eye(n_scores) + B.T @ work[1][SPREAD] @ B
    work[1][CURVATURE], work[1][MIXED] = B, np.linalg.cholesky(inside)
    kernel(found, 0.0, work)
    z = np.kron(np.eye(n_scores), np.r_[1.0, x])
    covariance = before[N_ROWS_BEFORE:]
    precision = np.linalg.inv(covariance) + z.T @ B @ B.T @ z
    assert_allclose(
        found[N_ROWS_BEFORE:] @ precision, np.eye(len(precision)), atol=1e-9
    )
    shift = covariance @ z.T @ work[0][SHIFT]
    assert_allclose(found[MEANS], before[MEANS] + shift, rtol=1e-12)


@pytest.mark.parametrize("n_scores", [1, 3])
@twin_of(online_joint.meet_columns)
def test_meet_columns(kernel, n_scores):
    """The moments of the columns; the prior where a mean square has changed."""
    rng = np.random.default_rng(3)
    rows, scale = np.r_[np.zeros((1, D)), rng.normal(size=(20, D))], 2.0
    rows[:6, 2] = 0.0  # begins to vary later
    rows[10, 1] = 30.0  # the mean square grows, then falls
    weights = rng.uniform(0.5, 2.0, 21)
    found, origin = posterior(n_scores), np.zeros(D)
    found[UNITS, 1 : 1 + D] = 0.0
    own = np.arange(n_scores)[:, None] * (1 + D) + np.arange(1, 1 + D)
    covariance = found[N_ROWS_BEFORE:]
    covariance[own.ravel()] = covariance[:, own.ravel()] = 0.0
    numbers = np.zeros(online_state.N_NUMBERS)
    numbers[online_state.PRIOR_SCALE] = scale
    for x, weight in zip(rows, weights, strict=True):
        kept, unit = found.copy(), found[UNITS].copy()
        work = met(found, n_scores, x, origin)
        kernel(x, weight, origin, found, numbers, work)
        numbers[WEIGHT] += weight
        change = np.tile(found[UNITS] - unit, 1)[: n_scores * (1 + D)]
        precisions = np.zeros(len(change))
        for k in range(n_scores):
            precisions[k * (1 + D) : (k + 1) * (1 + D)] = change[: 1 + D] / scale**2
        old = kept[N_ROWS_BEFORE:]
        old_unit = np.tile(unit[: 1 + D], n_scores)
        begins = (precisions > 0) & (old_unit == 0)
        same = np.flatnonzero(old_unit > 0)
        block = np.ix_(same, same)
        if len(same):
            before = np.linalg.inv(old[block])
            after = before + np.diag(precisions[same])
            new = found[N_ROWS_BEFORE:][block]
            assert_allclose(new @ after, np.eye(len(same)), atol=1e-7)
            mean = np.linalg.solve(after, before @ kept[MEANS, same])
            assert_allclose(found[MEANS, same], mean, rtol=1e-7, atol=1e-9)
        for k in np.flatnonzero(begins):
            assert_allclose(found[N_ROWS_BEFORE + k, k], 1 / precisions[k])
    center = weights @ rows / weights.sum()
    assert_allclose(found[CENTERS, 1 : 1 + D], center)
    scatter = weights @ np.square(rows - center)
    assert_allclose(found[SCATTERS, 1 : 1 + D], scatter)
    ratio = found[UNITS, 1 : 1 + D] / (scatter / weights.sum())
    assert (ratio < 1.2 * (1 + 1e-9)).all()
    assert (ratio > 1 / 1.2 / (1 + 1e-9)).all()


@twin_of(online_joint.tell_marginals)
def test_tell_marginals(kernel):
    """A score by the marginals, of a standardised row, is that of the posterior."""
    rng, n_scores, n_experts = np.random.default_rng(0), 3, 2
    found, origin = posterior(n_scores), rng.normal(size=D)
    moments = np.abs(rng.normal(size=(3, D)))
    stream = np.zeros(online_state.N_STREAM)
    stream[SEEN] = 5.0
    models = np.zeros((n_scores * n_experts, N_VECTORS, 1 + D))
    kernel(found, origin, moments, 1, models, stream)
    unit = np.sqrt(moments[SCATTER_OF] / 5.0)
    x = rng.normal(size=D)
    z = np.r_[1.0, (x - moments[CENTER_OF]) / unit]
    expected = np.kron(np.eye(n_scores), np.r_[1.0, x - origin]) @ found[MEANS]
    assert_allclose(models[1::2, MEAN] @ z, expected, rtol=1e-12)
    variances = found[N_ROWS_BEFORE:].diagonal().reshape(n_scores, -1)[:, 1:]
    assert_allclose(models[1::2, VARIANCE, 1:], variances * unit**2)
    assert not models[0::2].any()
