"""Joint posteriors of online classifiers: the step, exact posteriors, and rounding."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skpacbayes import OnlineVIClassifier
from skpacbayes._kernels.online_state import MEANS, N_ROWS_BEFORE
from skpacbayes.online import _expert_choice
from skpacbayes.online._expert_choice import VANISHED


def alone(scale, **options):
    """Return a model of one joint posterior."""
    return OnlineVIClassifier(prior_scale=scale, n_fourier=0, forgetting=0.0, **options)


def posterior_of(model):
    """Return the means of all coefficients from the first row, and their covariance."""
    found = model._state.covariances[0]
    return found[MEANS], found[N_ROWS_BEFORE:]


def averaged(a, V):
    """Return the averaged softmax, as the module's docstring has it."""
    apart = np.diag(V)[:, None] + np.diag(V) - 2 * V
    spread = np.sqrt(1 + math.pi / 8 * apart)
    p = 1 / np.exp((a[:, None] - a) / spread).sum(axis=0)
    return p / p.sum(), spread


def stepped(a, V, label, strength):
    """Solve the equations of the step by plain iteration; return its p and L."""
    moved, changed = a.copy(), V.copy()
    target = np.eye(len(a))[label]
    for _ in range(20_000):
        p, spread = averaged(moved, changed)
        laplacian = -np.outer(p, p) / spread
        laplacian[np.diag_indices(len(a))] -= laplacian.sum(axis=1)
        before = moved
        moved = 0.9 * moved + 0.1 * (a + strength * V @ (target - p))
        new = V @ np.linalg.inv(np.eye(len(a)) + strength * laplacian @ V)
        changed = 0.9 * changed + 0.1 * new
        if abs(moved - before).max() < 1e-13:
            break
    return p, laplacian


@pytest.mark.slow
@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_row_moves_the_posterior_as_the_equations_say(n_classes, weight):
    """Two classes as well: their one score is the difference of two."""
    rng = np.random.default_rng(n_classes)
    X, y = rng.normal(size=(8, 2)), rng.integers(n_classes, size=8)
    n_scores = n_classes if n_classes > 2 else 1
    model = alone(1.5, standardize=False)
    for i in range(8):
        given = {"classes": range(n_classes), "sample_weight": [weight]}
        if i > 0:
            z = np.kron(np.eye(n_scores), np.r_[1.0, X[i]])
            mean, covariance = (part.copy() for part in posterior_of(model))
            a, V = z @ mean, z @ covariance @ z.T
            if n_scores == 1:  # scores of 0 and f
                a, V = np.r_[0.0, a], np.array([[0.0, 0.0], [0.0, V[0, 0]]])
            p, laplacian = stepped(a, V, y[i], weight)
            slope, curvature = np.eye(n_classes)[y[i]] - p, laplacian
            if n_scores == 1:
                slope, curvature = slope[1:], laplacian[1:, 1:]
            precision = np.linalg.inv(covariance) + weight * z.T @ curvature @ z
            expected = mean + weight * covariance @ z.T @ slope
        model.partial_fit(X[i : i + 1], y[i : i + 1], **given)
        if i > 0:
            found, covariance = posterior_of(model)
            assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
            scale = np.sqrt(np.diag(covariance))
            apart = covariance @ precision - np.eye(len(found))
            assert abs(apart / scale[:, None] * scale).max() < 1e-4


@pytest.mark.slow
def test_the_posterior_of_two_classes_is_that_of_quadrature():
    """Means within .3 deviations, deviations within a tenth, on average of 20 streams.

    The steps are Gaussian: the exact posterior of a few rows is not.
    """
    grid = np.linspace(-8, 8, 321)
    first, second = (axis.ravel() for axis in np.meshgrid(grid, grid))
    apart, ratios = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 1))
        y = (rng.random(100) < expit(1.5 * X[:, 0] - 0.5)).astype(int)
        scores = first + second * X
        logs = log_expit(np.where(y[:, None] == 1, scores, -scores)).sum(axis=0)
        logs -= (first**2 + second**2) / (2 * 3.0**2)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        means = np.array([weights @ first, weights @ second])
        deviations = np.sqrt(
            [weights @ first**2 - means[0] ** 2, weights @ second**2 - means[1] ** 2]
        )
        found, covariance = posterior_of(alone(3.0, standardize=False).fit(X, y))
        apart.append((found - means) / deviations)
        ratios.append(np.sqrt(np.diag(covariance)) / deviations)
    assert abs(np.mean(apart, axis=0)).max() < 0.3
    assert abs(np.mean(ratios, axis=0) - 1.0).max() < 0.1
    assert abs(np.array(apart)).max() < 0.7


@pytest.mark.parametrize("n_classes", [2, 4])
def test_one_pass_is_about_as_good_as_all_rows_at_once(n_classes):
    """Beside a batch fit with the same prior, on correlated columns."""
    excess = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2400, 5)) @ rng.normal(size=(5, 5))
        scores = X @ rng.normal(size=(5, n_classes)) + rng.gumbel(
            size=(2400, n_classes)
        )
        y = scores.argmax(axis=1)
        X = X / X[:400].std(axis=0)
        batch = LogisticRegression(C=1.0, max_iter=1000).fit(X[:400], y[:400])
        own = alone(1.0).fit(X[:400], y[:400])
        losses = [
            -np.log(model.predict_proba(X[400:])[np.arange(2000), y[400:]]).mean()
            for model in (own, batch)
        ]
        excess.append(losses[0] - losses[1])
    assert np.mean(excess) < 0.02


@pytest.mark.parametrize("n_classes", [2, 3])
def test_wide_priors_learn_separable_classes(n_classes):
    """The default is then far ahead of a prior of scale 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X @ rng.normal(size=(4, n_classes))).argmax(axis=1)
    model = OnlineVIClassifier(n_fourier=0)
    loss = clone(model).fit(X, y).cumulative_loss_
    assert loss < 0.7 * alone(1.0).fit(X, y).cumulative_loss_


@pytest.mark.filterwarnings("ignore:The values of column")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "unit", [1.0, 1e-12, 1e12, [1.0, 1e9, 1e-9]], ids=["1", "small", "large", "mixed"]
)
@pytest.mark.parametrize("kind", ["normal", "jumps", "collinear", "heavy"])
def test_the_covariance_stays_symmetric_and_positive(kind, unit, n_classes):
    """Also where the spread of columns grows or falls by orders, or rows repeat."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    if kind == "jumps":
        X *= 10.0 ** np.repeat([0, 6, -3, 9, 0, 3], 50)[:, None]
    elif kind == "collinear":
        X[:, 2] = X[:, 0] + X[:, 1]
    elif kind == "heavy":
        X = np.sinh(4 * X)
    y = rng.integers(n_classes, size=300)
    for scale in (1e-3, 1.0, 1e4):
        model = alone(scale)
        for rows in np.array_split(np.arange(300), 6):
            model.partial_fit(X[rows] * unit, y[rows], classes=range(n_classes))
            mean, covariance = posterior_of(model)
            assert np.isfinite(mean).all()
            assert np.array_equal(covariance, covariance.T)
            deviations = np.sqrt(covariance.diagonal())
            assert (deviations > 0).all()
            relative = covariance / np.outer(deviations, deviations)
            assert np.linalg.eigvalsh(relative)[0] > -1e-9
            assert np.isfinite(model.predict_proba(X * unit)).all()


@pytest.mark.filterwarnings("ignore:A row has the value")
def test_the_prior_follows_the_spread_of_the_columns_both_ways():
    """Rows of a first, wide block and their removal: the unit is that of all rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 2)), rng.integers(2, size=3000)
    X[1, 0] = 1e3
    model = alone(0.01).fit(X, y)  # the prior outweighs the rows
    _, covariance = posterior_of(model)
    found = np.sqrt(covariance.diagonal()[1:]) * X.std(axis=0) / 0.01
    assert_allclose(found, 1.0, rtol=0.15)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_weight_0_leave_coefficients_at_0(n_classes):
    """Also in the first call, when no column has a unit yet."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 2)), np.arange(6) % n_classes
    model = OnlineVIClassifier(random_state=0)
    model.partial_fit(X, y, classes=range(n_classes), sample_weight=np.zeros(6))
    for values in (model.coef_, model.intercept_, model.coef_std_):
        assert (values == 0.0).all()
    model.partial_fit(X, y)
    alone = OnlineVIClassifier(random_state=0).fit(X, y)
    assert np.array_equal(model.coef_, alone.coef_)
    assert np.array_equal(model.coef_std_, alone.coef_std_)


@pytest.mark.parametrize("scale", [10.0, 100.0, 1000.0])
@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_steps_of_wide_priors_solve_their_equations(n_classes, scale):
    """To a twentieth of the variances: the iterations are cut off at a number."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(60, 4))
    y = (X @ rng.normal(size=(4, n_classes))).argmax(axis=1)
    model = alone(scale, standardize=False)
    n_scores = n_classes if n_classes > 2 else 1
    off = []
    for i in range(60):
        z = np.kron(np.eye(n_scores), np.r_[1.0, X[i]])
        if i > 0:
            V = z @ posterior_of(model)[1] @ z.T
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=range(n_classes))
        if i > 0:
            mean, covariance = posterior_of(model)
            after, changed = z @ mean, z @ covariance @ z.T
            if n_scores == 1:
                variances = np.diag([0.0, changed[0, 0]])
                p, spread = averaged(np.r_[0.0, after], variances)
                laplacian = np.array([[p[0] * p[1] / spread[0, 1]]])
            else:
                p, spread = averaged(after, changed)
                laplacian = -np.outer(p, p) / spread
                laplacian[np.diag_indices(n_classes)] -= laplacian.sum(axis=1)
            expected = np.linalg.solve(np.eye(n_scores) + V @ laplacian, V)
            off.append(abs(changed - expected).max() / expected.max())
    assert max(off) < 0.05


@pytest.mark.filterwarnings("ignore:The final model")
@pytest.mark.parametrize("options", [{}, {"loss": "hinge"}, {"forgetting": "auto"}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scales_that_are_left_out_change_no_probability(
    options, n_classes, monkeypatch
):
    """Also where the relation changes in the middle, while all others forget."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 4))
    scores = X @ [3.0, 1.0, -2.0, 0.0] * np.repeat([1.0, -1.0], 1500)
    y = np.digitize(scores + rng.logistic(size=3000), [0.0, 2.0][: n_classes - 1])
    model = OnlineVIClassifier(n_fourier=0, **options)
    fewer = clone(model).partial_fit(X, y, classes=range(n_classes))
    monkeypatch.setattr(_expert_choice, "_hopeless", lambda state: False)
    whole = clone(model).partial_fit(X, y, classes=range(n_classes))
    n_left_out = whole._state.n_experts - fewer._state.n_experts
    assert n_left_out > 0
    error = n_left_out * VANISHED
    assert_allclose(fewer.cumulative_loss_, whole.cumulative_loss_, rtol=error)
    assert_allclose(fewer.predict_proba(X), whole.predict_proba(X), atol=error)


@pytest.mark.parametrize("n_fourier", [0, "auto"])
@pytest.mark.parametrize("cuts", [[-1.0, 1.0], [-3.0, 0.0, 3.0]])
def test_wide_scales_stay_where_classes_are_separable(cuts, n_fourier, monkeypatch):
    """They are behind for hundreds of rows, and have all of the weight later."""
    X = np.random.default_rng(0).normal(size=(2100, 4))
    y = np.digitize(X @ [3.0, 1.0, -2.0, 0.0], cuts)
    model = OnlineVIClassifier(n_fourier=n_fourier, random_state=0)
    fewer = clone(model).partial_fit(X, y, classes=range(1 + len(cuts)))
    monkeypatch.setattr(_expert_choice, "_hopeless", lambda state: False)
    whole = clone(model).partial_fit(X, y, classes=range(1 + len(cuts)))
    n_left_out = whole._state.n_experts - fewer._state.n_experts
    assert n_left_out > 0
    error = n_left_out * VANISHED
    assert_allclose(fewer.cumulative_loss_, whole.cumulative_loss_, rtol=error)
    assert_allclose(fewer.predict_proba(X), whole.predict_proba(X), atol=error)
