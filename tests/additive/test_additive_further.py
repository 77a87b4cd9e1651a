"""Effects that need more functions than the fit has: evidence, warnings, trials."""

import pickle
import re
import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_t

from skpacbayes.additive import (
    SparseAdditiveGibbsPoissonRegressor,
    SparseAdditiveGibbsRegressor,
)
from skpacbayes.additive._further_functions import (
    log_odds,
    log_weights,
    with_signs,
)

KINDS = pytest.mark.parametrize(
    "kind",
    [SparseAdditiveGibbsRegressor, SparseAdditiveGibbsPoissonRegressor],
    ids=lambda kind: kind.__name__,
)


def rows(kind, n=1000, seed=0, wave=3.0):
    """The second of four normal variables has an effect of several waves."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    scores = X[:, 0] + 1.4 * np.sin(wave * X[:, 1])
    if kind is SparseAdditiveGibbsRegressor:
        return X, scores + rng.normal(size=n)
    return X, rng.poisson(np.exp(0.5 * scores)).astype(float)


def messages(kind, X, y, weights=None, **options):
    """Return the messages of the warnings of a fit of few iterations."""
    n_iter = 300 if kind is SparseAdditiveGibbsRegressor else 80
    few = {"n_iter": n_iter, "burn_in": n_iter // 2, "interactions": None}
    few["max_order"] = 8  # given, so that more are told of
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind(**few | options, random_state=0).fit(X, y, weights)
    return " ".join(str(each.message) for each in caught)


def told(kind, X, y, weights=None, **options):
    """Return the features and the numbers of functions of the warnings of a fit."""
    found = messages(kind, X, y, weights, **options)
    return re.findall(r"features? (.*) needs? more .* Use max_order=(\d+)", found)


def test_log_weights_are_those_of_the_joint_distribution_of_the_targets():
    """Student's t with the intercept projected out: differences of orders."""
    rng = np.random.default_rng(0)
    n, ridge, beta = 40, 0.3, 0.4
    others = np.vstack([np.ones(n), rng.normal(size=(2, n))])
    own, targets = rng.normal(size=(5, n)), rng.normal(size=n)
    found = log_weights(others, own, targets, n, ridge, beta)
    contrasts = np.linalg.svd(np.ones((1, n)))[2][1:]
    expected = []
    for order in range(1, 6):
        design = contrasts @ np.vstack([others[1:], own[:order]]).T
        shape = np.eye(n - 1) + design @ design.T / ridge
        # The limit of few degrees of freedom is the prior 1 / s^2 of the variance.
        law = multivariate_t(shape=shape, df=1e-9)
        expected.append(law.logpdf(contrasts @ targets) + order * np.log(beta))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-5)


@pytest.mark.slow
@KINDS
def test_effects_that_need_more_functions_are_told_of(kind):
    """In any unit, with copies and missing values; not with enough functions."""
    X, y = rows(kind, 1000 if kind is SparseAdditiveGibbsRegressor else 1500)
    assert told(kind, X, y) == [("1", "16")]
    assert told(kind, 1e3 * X + 1e4, y) == [("1", "16")]
    assert told(kind, np.r_[X, X], np.r_[y, y]) == [("1", "16")]
    assert told(kind, X, y, max_order=16) == []
    X[::9, 1] = np.nan
    assert [feature for feature, _ in told(kind, X, y)] == ["1"]


@pytest.mark.slow
@KINDS
def test_effects_of_the_functions_of_the_fit_are_not_told_of(kind):
    """Draws of polynomials of degree up to 8, of three kinds of variables."""
    for seed in range(24 if kind is SparseAdditiveGibbsRegressor else 6):
        rng = np.random.default_rng(seed)
        draw = (rng.normal, rng.uniform, rng.exponential)[seed % 3]
        X = draw(size=(150, 4))
        low, high = X.min(axis=0), X.max(axis=0)
        places, degree = (2 * X - low - high) / (high - low), 1 + seed % 8
        coefficients = rng.normal(size=degree) / np.arange(1, degree + 1)
        scores = np.polynomial.legendre.legval(places[:, 0], [0, *coefficients])
        scores = X[:, 1] + 1.5 * scores / scores.std()
        y = scores + rng.normal(size=150)
        if kind is SparseAdditiveGibbsPoissonRegressor:
            y = rng.poisson(np.exp(0.4 * scores)).astype(float)
        assert told(kind, X, y) == []


NOISE = {
    "unequal": lambda X, rng: np.exp(0.7 * X[:, 1]) * rng.normal(size=len(X)),
    "heavy tails": lambda X, rng: rng.standard_t(2, size=len(X)),
    "skewed": lambda X, rng: np.exp(rng.normal(size=len(X))),
    "product": lambda X, rng: 2 * X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=len(X)),
}


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISE)
def test_noise_and_products_are_not_taken_for_further_functions(noise):
    """At a probability of .01 two or more of 20 tables have one of .017."""
    kind, n_told = SparseAdditiveGibbsRegressor, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=([100, 200, 400][seed % 3], 4))
        n_told += len(told(kind, X, X[:, 0] + X[:, 1] ** 2 + NOISE[noise](X, rng)))
    assert n_told <= 1


@pytest.mark.slow
def test_exposures_are_no_numbers_of_rows():
    """Of counts, the weights are precisions: their sum is no number of rates."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(150, 3))
        exposures = 10 ** rng.uniform(-1, 3, size=150)
        counts = rng.poisson(exposures * np.exp(X[:, 0] + X[:, 1] ** 2))
        kind = SparseAdditiveGibbsPoissonRegressor
        assert told(kind, X, counts / exposures, exposures) == []


@KINDS
@pytest.mark.slow
def test_unequal_residuals_of_missing_functions_are_no_noise(kind):
    """Where few rows are, functions that are missing leave large residuals."""
    for seed in range(3):
        X, y = rows(kind, 1500, seed)
        found = messages(kind, X, y)
        assert "large influence" not in found
        assert "more than 8 functions" in found or "max_order, such as" in found


def test_signs_keep_the_sizes_of_residuals():
    """Positive signs give the targets, but for the shares that the fit leaves."""
    rng = np.random.default_rng(0)
    others, few = (
        np.vstack([np.ones(60), rng.normal(size=60)]),
        rng.normal(size=(3, 60)),
    )
    targets = rng.normal(size=60) + 3 * few[0]
    signs = np.array([np.ones(60), -np.ones(60)])
    setting = 60, 1e-9, 1e-6  # so small a factor allows for one function only
    both = with_signs(signs, others, few, targets, *setting)
    design = np.vstack([others, few[:1]]).T
    hat = design @ np.linalg.pinv(design)
    np.testing.assert_allclose(both.mean(axis=0), hat @ targets, rtol=1e-6)
    scaled = (targets - hat @ targets) / np.sqrt(1 - hat.diagonal())
    np.testing.assert_allclose((both[0] - both[1]) / 2, scaled, rtol=1e-5)


def test_weights_of_several_tables_are_those_of_each():
    rng = np.random.default_rng(0)
    others, own = (
        np.vstack([np.ones(40), rng.normal(size=40)]),
        rng.normal(size=(5, 40)),
    )
    tables = rng.normal(size=(3, 40))
    found = log_weights(others, own, tables, 40, 0.3, 0.4)
    each = [log_weights(others, own, table, 40, 0.3, 0.4) for table in tables]
    np.testing.assert_allclose(found, each)
    assert (log_odds(others, own[:3], own, tables, 40, 0.3, 0.4) < 0).all()
    few = others[:, :12], own[:3, :12], own[:, :12], tables[:, :12]
    assert (log_odds(*few, 12, 0.3, 0.4) == -np.inf).all()  # too few rows


@pytest.mark.parametrize(
    "options",
    [{"noise_variance": 1.0}, {"max_order": 1}, {"basis": "fourier"}],
    ids=["given noise", "lines", "waves"],
)
def test_nothing_is_told_where_scales_or_functions_are_chosen(options):
    assert (
        told(
            SparseAdditiveGibbsRegressor, *rows(SparseAdditiveGibbsRegressor), **options
        )
        == []
    )


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 1500])
def test_more_functions_are_kept_where_they_hold_the_truth(n):
    """The stream goes on with them; rows of a sum and of a table alike."""
    kind = SparseAdditiveGibbsRegressor
    X, y = rows(kind, n)
    truth = 1.4 * np.sin(3 * X[:, 1])
    held = []
    for order in (8, "auto"):
        model = kind(max_order=order, interactions=None, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        effect, deviation = model.partial_effects(X, 1)
        gaps = abs(effect - effect.mean() - truth + truth.mean())
        held.append((gaps < 1.645 * deviation).mean())
    assert held[1] > held[0] + 0.2
    width = model.coefficients_.shape[1]
    assert width in (16, 32)
    assert pickle.loads(pickle.dumps(model)).partial_fit(X, y).predict(X).shape == (n,)
    sums = model.sufficient_statistics(X, y)
    assert len(sums) == 2 + 4 * width
    assert model.absorb(sums).coefficients_.shape == (4, width)
    assert model.partial_fit(X, y).coefficients_.shape == (4, width)
    line = X[:, 0] + np.random.default_rng(0).normal(size=n)
    assert model.fit(X, line).coefficients_.shape == (4, 8)  # begins anew


def test_nothing_changes_where_no_variable_needs_more():
    """Fits with "auto" are those of 8 functions, bit for bit."""
    kind = SparseAdditiveGibbsRegressor
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 3))
    y = X[:, 0] + np.exp(X[:, 1]) + 0.5 * rng.normal(size=100)
    few = {"n_iter": 200, "burn_in": 100, "interactions": None, "random_state": 0}
    for basis in ("legendre", "auto"):
        model = kind(basis=basis, **few).fit(X, y)
        other = kind(basis=basis, max_order=8, **few).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), other.predict(X))


@pytest.mark.slow
def test_more_functions_are_dropped_where_left_out_rows_lose(monkeypatch):
    """The fit is then that without them, and the stream has its functions."""
    kind = SparseAdditiveGibbsRegressor
    X, y = rows(kind, 1000)
    few = {"n_iter": 200, "burn_in": 100, "interactions": None, "random_state": 0}
    losses = iter([np.zeros(1), np.ones(1)])
    monkeypatch.setattr(kind, "_left_out_squares", lambda self, rows: next(losses))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(**few).fit(X, y)
        assert next(losses, None) is None  # more were tried
        other = kind(max_order=8, **few).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    assert len(model.sufficient_statistics(X, y)) == 2 + 4 * 8
