"""Mixtures of regressions: lines, gates, missing targets, outliers."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skpacbayes.mixture import Regression, TemperedVBMixture
from skpacbayes.mixture._regression import normal_scale


def crossing(n, seed):
    """Rows (x, y) of the lines 1 + 2 x and 1 - 2 x, and their lines."""
    rng = np.random.default_rng(seed)
    x, line = rng.uniform(-1, 1, n), rng.integers(0, 2, n)
    y = 1 + np.where(line, 2, -2) * x + 0.1 * rng.normal(size=n)
    return np.column_stack([x, y]), line


@pytest.mark.slow
@pytest.mark.parametrize("n_components", [2, "auto"])
def test_lines_that_cross_are_found(n_components):
    """Three sets; new targets are as probable as under the truth, within .05 nats."""
    for seed in range(3):
        X, _ = crossing(1400, seed)
        lines = TemperedVBMixture(
            "regression", n_components, max_components=4, n_init=2, random_state=0
        ).fit(X[:400])
        assert lines.n_components_ == 2
        found = lines.parameters_
        slopes = np.sort(found["coefficients"].ravel())
        assert_allclose(slopes, [-2, 2], atol=5 * 0.1 / np.sqrt(200 / 3))
        assert_allclose(found["variances"], 0.01, rtol=5 * np.sqrt(2 / 200))
        x, y = X[400:].T
        truth = np.logaddexp(*(stats.norm.logpdf(y, 1 + b * x, 0.1) for b in (-2, 2)))
        assert lines.score(X[400:]) > np.mean(truth - np.log(2)) - 0.05


def test_inputs_gate_the_lines():
    """The absolute value: a normal input and a line for each side.

    Without the target, the probabilities of the lines are those that the input gives,
    and the mean of the lines predicts.
    """
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-2, 0.7, 300), rng.normal(2, 0.7, 300)])
    X = np.column_stack([x, np.abs(x) + 0.1 * rng.normal(size=600)])
    columns = [("input", "normal", [0]), ("line", "regression", [0, 1])]
    mixture = TemperedVBMixture(columns, 2, random_state=0).fit(X)
    grid = np.array([-3.0, -1.0, 1.0, 3.0])
    unknown = np.column_stack([grid, np.full(4, np.nan)])
    found = mixture.parameters_
    lines = (
        found["line__intercepts"] + grid[:, None] * found["line__coefficients"].ravel()
    )
    means = (mixture.predict_proba(unknown) * lines).sum(axis=1)
    assert_allclose(means, np.abs(grid), atol=0.1)
    predicted, std = mixture.predict_target(unknown, return_std=True)
    assert_allclose(predicted, means, atol=0.01)
    assert_allclose(std, 0.1, rtol=0.1)
    wrong = np.column_stack([grid, [9.0, 9.0, 9.0, 9.0]])
    assert_allclose(mixture.predict_target(wrong), predicted, atol=1e-12)
    drawn, _ = mixture.sample(2000)
    assert abs(np.mean(np.abs(np.abs(drawn[:, 0]) - drawn[:, 1]) < 0.4) - 1) < 0.02


def test_a_missing_target_says_nothing():
    X, _ = crossing(300, 0)
    lines = TemperedVBMixture("regression", 2, random_state=0)
    bound = lines.fit(X).elbo_
    holes = np.vstack([X, np.column_stack([X[:50, 0], np.full(50, np.nan)])])
    unknown = holes[300:]
    assert_allclose(lines.score_samples(unknown), 0, atol=1e-12)
    weights = np.tile(lines.weights_, (50, 1))
    assert_allclose(lines.predict_proba(unknown), weights, atol=0.01)
    with_holes = lines.fit(holes)
    assert abs(with_holes.elbo_ - bound) < 2.0  # the weights count the rows
    X[3, 0] = np.nan
    with pytest.raises(ValueError, match=r"Regression needs inputs .* column 0"):
        lines.fit(X)


def test_outliers_are_told_from_lines():
    """A tenth of the targets is uniform, and at most a tenth of these near a line."""
    X, _ = crossing(600, 0)
    X[:60, 1] = np.random.default_rng(1).uniform(-20, 20, 60)
    lines = TemperedVBMixture(
        "regression", "auto", max_components=4, outliers=True, random_state=0
    ).fit(X)
    assert lines.n_components_ == 2
    labels = lines.predict(X)
    assert (labels[:60] == -1).mean() > 0.9
    assert (labels[60:] == -1).mean() < 0.02
    slopes = np.sort(lines.parameters_["coefficients"].ravel())
    assert_allclose(slopes, [-2, 2], atol=0.1)
    drawn, _ = lines.sample(1000)
    assert np.isfinite(drawn).all()
    assert abs(drawn[:, 0].mean()) < 0.2


def test_units_do_not_matter():
    """Rows in other units: the same lines in these units, and the same labels."""
    X, _ = crossing(300, 0)
    units, origin = np.array([1e3, 1e-2]), np.array([5.0, -7.0])
    lines = TemperedVBMixture("regression", 2, random_state=0)
    before, labels = lines.fit(X).parameters_, lines.predict(X)
    moved = units * X + origin
    after = lines.fit(moved).parameters_
    slopes = before["coefficients"] * units[1] / units[0]
    assert_allclose(after["coefficients"], slopes, rtol=1e-6)
    assert_allclose(after["variances"], before["variances"] * units[1] ** 2, rtol=1e-6)
    assert (lines.predict(moved) == labels).all()


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("n", [24, 200])
def test_a_target_has_the_moments_of_its_density(n, gated):
    """By quadrature of the predictive density, for few rows too."""
    X, _ = crossing(n, 0)
    columns = [("input", "normal", [0]), ("line", "regression", [0, 1])]
    family = columns if gated else "regression"
    lines = TemperedVBMixture(family, 2, random_state=0).fit(X)
    angles = (np.arange(200_000) + 0.5) / 200_000 * np.pi - np.pi / 2
    grid = np.tan(angles)  # the tails are those of Student distributions
    for x in (-3.0, 0.7, 2.0):
        rows = np.column_stack([np.full(len(grid), x), grid])
        density = np.exp(lines.score_samples(rows)) * (1 + grid**2)
        density /= density.sum()
        mean = density @ grid
        std = np.sqrt(density @ (grid - mean) ** 2)
        found = lines.predict_target([[x, np.nan]], return_std=True)
        assert_allclose(np.concatenate(found), [mean, std], rtol=1e-6)


def test_a_target_is_predicted_beside_outliers():
    X, _ = crossing(200, 0)
    lines = TemperedVBMixture("regression", 2, random_state=0).fit(X)
    x, found = 0.7, lines.predict_target([[0.7, np.nan]])
    beside = TemperedVBMixture("regression", 2, outliers=True, random_state=0).fit(X)
    assert_allclose(beside.predict_target([[x, 0.0]]), found, atol=0.05)
    for family in ("normal", [("a", "normal", [0])]):
        assert not hasattr(TemperedVBMixture(family), "predict_target")


def test_intercept_alone_is_a_normal_column():
    """One column: the target, with no input."""
    y = np.random.default_rng(0).normal(3.0, 2.0, (400, 1))
    found = TemperedVBMixture(Regression(), 1, random_state=0).fit(y).parameters_
    assert_allclose(found["intercepts"], y.mean(), rtol=1e-3)
    assert_allclose(found["variances"], y.var(), rtol=0.02)


def test_scale_of_residuals():
    """That of normal residuals, with weights as of the repeated rows."""
    rng = np.random.default_rng(0)
    residuals, counts = np.abs(rng.normal(0.0, 2.0, 4000)), rng.integers(0, 4, 4000)
    assert_allclose(normal_scale(residuals, np.ones(4000)), 2.0, rtol=0.05)
    copies = np.repeat(residuals, counts)
    assert normal_scale(residuals, counts) == normal_scale(copies, np.ones(len(copies)))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25])
@pytest.mark.parametrize("coefficients", [[[1, 2], [1, -2]], [[0, 1], [1.5, 1]]])
def test_starts_find_the_lines_beside_outliers(coefficients, share):
    """Lines that cross and that are parallel, two sets each: the true slopes."""
    for seed in range(100, 102):
        rng = np.random.default_rng(seed)
        x, line = rng.uniform(-1, 1, 400), rng.integers(0, 2, 400)
        intercepts, slopes = np.array(coefficients)[line].T
        y = intercepts + slopes * x + 0.1 * rng.normal(size=400)
        n_outliers = int(share * 400)
        y[:n_outliers] = rng.uniform(-20, 20, n_outliers)
        lines = TemperedVBMixture(
            "regression", 2, outliers=share > 0, n_init=2, random_state=seed
        ).fit(np.column_stack([x, y]))
        found = lines.parameters_
        pairs = np.column_stack([found["intercepts"], found["coefficients"]])
        gaps = np.abs(pairs[:, None] - np.array(coefficients)).max(axis=2)
        assert gaps.min(axis=0).max() < 0.15


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_weights_may_differ_by_twelve_powers_of_ten():
    """A line through one heavy row has hardly an inverse: it is found all the same."""
    X, _ = crossing(400, 0)
    weight = 10 ** np.random.default_rng(0).uniform(-6, 6, 400)
    mixture = TemperedVBMixture("regression", 4, n_init=1, random_state=0)
    mixture.fit(X, sample_weight=weight)
    assert np.isfinite(mixture.elbo_)
    assert np.isfinite(mixture.score_samples(X)).all()


@pytest.mark.parametrize("method", ["fit", "partial_fit", "fit_predict"])
def test_a_target_beside_the_rows_is_not_ignored_in_silence(method):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = x @ [1.0, -2.0] + rng.normal(size=60)
    with_target = [("line", "regression", [0, 1])]
    names = ["regression", "regression"]
    for family in ("regression", Regression(), with_target, names):
        with pytest.warns(UserWarning, match="y is ignored: .*column_stack"):
            getattr(TemperedVBMixture(family, 1), method)(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for family in ("normal", ["normal", "normal"], [("a", "normal", [0])]):
            getattr(TemperedVBMixture(family, 1), method)(x, y)
        getattr(TemperedVBMixture("regression", 1), method)(np.column_stack([x, y]))


@pytest.mark.parametrize("family", [["normal", "poisson"], [1, 2], [("a", "normal")]])
def test_a_list_of_any_form_can_be_looked_at(family):
    """Whether there is a target is asked before the list is validated."""
    mixture = TemperedVBMixture(family, 1)
    assert not hasattr(mixture, "predict_target")
    if family[0] != "normal":
        with pytest.raises(ValueError, match="A list of families needs"):
            mixture.fit(np.ones((9, 2)), np.ones(9))
