"""Interactions that are detected: where they are, where they are not, what is told."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit, softmax

from skpacbayes._chains import run_chains
from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsPoissonRegressor,
    SparseAdditiveGibbsRegressor,
    _classifier,
    _missing_effects,
    _poisson_regressor,
    _regressor,
    _residuals,
    _selection,
)

# Chains of few sweeps need not agree. Three functions do not follow cosines, and no
# number of them follows jumps.
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:The effects? of feature"
)
NUMBERS = SparseAdditiveGibbsRegressor
COUNTS = SparseAdditiveGibbsPoissonRegressor
CLASSES = SparseAdditiveGibbsClassifier
KINDS = pytest.mark.parametrize(
    "kind", [NUMBERS, COUNTS, CLASSES], ids=["numbers", "counts", "classes"]
)


def model_of(kind, **parameters):
    n_iter = {NUMBERS: 2000, COUNTS: 300, CLASSES: 60}[kind]
    short = {"n_iter": n_iter, "burn_in": max(40, n_iter // 4), "n_chains": 1}
    return kind(**short | {"max_order": 3} | parameters, random_state=0)


def classifier(**parameters):
    return model_of(CLASSES, **parameters)


def drawn(kind, scores, rng):
    """Targets of a kind, given scores."""
    if kind is NUMBERS:
        return scores + rng.normal(size=len(scores))
    if kind is COUNTS:
        return rng.poisson(np.exp(0.4 * scores)).astype(float)
    return rng.random(len(scores)) < expit(scores)


def same_fit(model, other):
    """Whether two fits drew the same models and coefficients."""
    assert_array_equal(model.pairs_, other.pairs_)
    assert_array_equal(model.models_, other.models_)
    assert_array_equal(model.coefficients_, other.coefficients_)
    assert_array_equal(model.inclusion_probabilities_, other.inclusion_probabilities_)


def has_pairs(kind, X, y):
    """Whether a fit has pairs; otherwise it is the same as without interactions."""
    model = model_of(kind).fit(X, y)
    if len(model.pairs_):
        return True
    same_fit(model, model_of(kind, interactions=None).fit(X, y))
    assert hasattr(model, "projected_support")
    return False


def joint(kind, X):
    """Scores of a joint effect of the first two of several variables."""
    if kind == "product":
        return 4 * X[:, 0] * X[:, 1]
    if kind == "one corner":
        return 6.0 * ((X[:, 0] > 0) & (X[:, 1] > 0)) - 1
    if kind == "waves":  # no product of ranks
        return 5 * np.cos(np.pi * X[:, 0]) * np.cos(np.pi * X[:, 1])
    return 3 * np.cos(3 * X[:, 0]) + 2 * X[:, 1]


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("effect", ["product", "one corner", "waves"])
@pytest.mark.filterwarnings("ignore:Residuals depend", "ignore:A random forest")
def test_joint_effects_are_detected_in_any_units(effect, kind):
    """Tables that are shifted and scaled have the same ranks, and so the same fits."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 4))
    y = drawn(kind, joint(effect, X), rng)
    model = model_of(kind, max_order=8).fit(X, y)
    assert len(model.pairs_) == 6
    assert model.pair_probabilities_[0] > 0.9
    without = model_of(kind, max_order=8, interactions=None).fit(X, y)
    assert model.score(X, y) > without.score(X, y)
    for scale in (1e-3, 1e3):
        other = model_of(kind, max_order=8).fit(1e4 + scale * X, y)
        assert len(other.pairs_) == 6
        if kind is NUMBERS:
            other = model_of(kind, max_order=8).fit(X, 1e4 + scale * y)
            assert len(other.pairs_) == 6


@pytest.mark.slow
@KINDS
@pytest.mark.filterwarnings("ignore:Rows that are neighbors")
def test_sums_of_effects_are_fitted_once(kind):
    """Bit for bit as without interactions, in all but a few of 40 tables.

    A product is suggested at a level of .02, and a forest that predicts noise by two
    standard errors is rarer than .023, as it makes squares larger: at a level of .043
    more than 5 of 40 tables have a probability below 8e-3 (the seeds are fixed).
    """
    detected = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=([60, 150, 250][seed % 3], [3, 6][seed % 2]))
        scores = joint("sum", X) if seed % 4 else np.zeros(len(X))
        y = drawn(kind, scores, rng)
        detected += has_pairs(kind, X, y)
    assert detected <= 5


@KINDS
@pytest.mark.filterwarnings("ignore:Residuals depend")
def test_what_does_not_detect_pairs(kind):
    """A prior that must not depend on the rows, linear effects, a single variable."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 3))
    y = drawn(kind, joint("product", X), rng)
    pac, number = {"inverse_temperature": "pac"}, {"inverse_temperature": 30.0}
    given = {
        NUMBERS: [pac, {"slab": "l1ball"}, {"noise_variance": 1.0}],
        COUNTS: [number],
        CLASSES: [pac, number],
    }
    for some in (*given[kind], {"slab_scale": 0.01}, {"max_order": 1}):
        some["n_iter"] = some["burn_in"] = 20
        model = model_of(kind, **some).fit(X, y)
        same_fit(model, model_of(kind, interactions=None, **some).fit(X, y))
    alone = model_of(kind).fit(X[:, :1], y)
    assert len(alone.pairs_) == 0


def suggest(monkeypatch, **found):
    """Let residuals of any fit suggest pairs."""
    left = _missing_effects.Structure(**found)
    monkeypatch.setattr(_selection, "structure_left", lambda *rows: left)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Rows that are neighbors")
@pytest.mark.parametrize("kind", [NUMBERS, COUNTS], ids=["numbers", "counts"])
def test_pairs_that_predict_no_better_are_dropped(kind, monkeypatch):
    """Of sums of effects, whatever suggests pairs: as without, in most of 20 tables.

    Losses of rows that are left out decrease by two standard errors with a probability
    of .023 where pairs have no effect; in more than 3 of 20 tables with one of .0012.
    """
    suggest(monkeypatch, gain=3.0, share=0.2)
    kept = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(150, 3))
        y = drawn(kind, joint("sum", X), rng)
        kept += has_pairs(kind, X, y)
    assert kept <= 3


def test_one_row_alone_does_not_show_that_losses_are_smaller():
    for n_rows in (2, 20, 2000):
        before = np.ones(n_rows)
        before[0] = 1e6
        assert not _residuals.are_smaller(np.ones(n_rows), before)
        assert _residuals.are_smaller(np.linspace(0.8, 0.9, n_rows), np.ones(n_rows))


@pytest.mark.parametrize("penalty", [0.01, 5.0])
def test_rows_that_are_left_out(penalty):
    """Against as many fits, each without one row, of normal coefficients."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y, weights = X[:, 0] + rng.normal(size=30), rng.uniform(0.5, 2.0, size=30)
    model = model_of(NUMBERS, noise_variance=penalty, slab_scale=1.0, max_order=2)
    model.fit(X, y, weights)
    found = model._answer()
    design = _residuals.design_of(X, found)
    ridge = penalty * np.diag([0.0, *np.ones(design.shape[1] - 1)])

    def scores(rows):
        D, w = design[rows], weights[rows, None]
        return design @ np.linalg.solve(
            D.T @ (w * D) + ridge, D.T @ (w[:, 0] * y[rows])
        )

    everything = scores(np.arange(30))
    result = _residuals.left_out_scores(
        X, everything, y - everything, np.ones(30), weights, found, penalty
    )
    expected = [scores(np.delete(np.arange(30), i))[i] for i in range(30)]
    assert_allclose(result, expected, rtol=1e-8)


def test_each_row_of_a_long_table_is_left_out():
    """Targets of outliers do not reach their own predictions."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(_residuals.MOST_ROWS + 2, 2))
    y = X[:, 0] + rng.normal(size=len(X))
    model = model_of(NUMBERS, max_order=2, n_iter=20).fit(X, y)

    def left_out(y):
        means, ones = model.predict(X), np.ones(len(X))
        return _residuals.left_out_scores(
            X, means, y - means, ones, ones, model._answer(), 1.0
        )

    before = left_out(y)
    for row in (0, 1, 1000, len(X) - 1):
        changed = y.copy()
        changed[row] += 1e3
        after = left_out(changed)
        assert_allclose(after[row], before[row], atol=1e-9)
        assert abs(after - before).max() > 1e-3


def test_classes_of_rows_that_are_left_out():
    """Against the posterior of twelve functions without each of the rows."""
    rng = np.random.default_rng(0)
    logs, weights = log_expit(3 * rng.normal(size=(12, 9))), rng.uniform(0.5, 2, 9)
    # Copies of the functions, as numerous as they are probable given all rows.
    drawn = np.repeat(np.arange(12), rng.integers(1, 9, size=12))
    log_prior = np.log(np.bincount(drawn)) - logs @ weights
    result = _residuals.left_out_log_losses(logs[drawn], weights)
    for row, loss in enumerate(result):
        others = np.delete(np.arange(9), row)
        posterior = softmax(log_prior + logs[:, others] @ weights[others])
        assert_allclose(np.exp(-loss), posterior @ np.exp(logs[:, row]), rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_copies_of_a_row_are_left_out_together(n_classes):
    """Losses are those of weights; a table that says so in few values has no copies."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(40, 2)), rng.integers(1, 4, size=40)
    X[::7, 1] = np.nan
    y = rng.permutation(np.arange(40) % n_classes)
    model = classifier(n_iter=20, interactions=None).fit(X, y)
    copies = rng.permutation(np.repeat(np.arange(40), weights))
    losses = model._left_out_losses(
        model._classes(X, y, sample_weight=weights.astype(float), several=True)
    )
    result = model._left_out_losses(model._classes(X[copies], y[copies], several=True))
    order = list(dict.fromkeys(copies.tolist()))
    assert_allclose(result, losses[order], rtol=1e-9)
    X = np.sign(X)
    found = model._left_out_losses(model._classes(X, y, several=True))
    assert len(found) == 40


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [NUMBERS, COUNTS], ids=["numbers", "counts"])
def test_copies_of_a_row_are_left_out_of_regressions_together(kind):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(40, 2)), rng.integers(1, 4, size=40).astype(float)
    y = X[:, 0] * X[:, 1] + rng.normal(size=40)
    if kind is COUNTS:
        y = rng.poisson(np.exp(y)).astype(float)
    model = model_of(kind, interactions=[(0, 1)]).fit(X, y)
    assert model.pair_probabilities_[0] > 0.5
    copies = rng.permutation(np.repeat(np.arange(40), weights.astype(int)))

    def losses(X, y, weights):
        if kind is NUMBERS:
            rows = model._checked(X, y, weights, reset=True, least=2)
            return model._left_out_squares(rows)
        rows = model._counted(X, y, weights)
        return model._left_out_losses(rows, model.predict(X), rows.weights)

    result = losses(X[copies], y[copies], None)
    order = list(dict.fromkeys(copies.tolist()))
    assert_allclose(result, losses(X, y, weights)[order], rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_chains_without_a_row(n_classes):
    """Chains of all rows, and of all but one: probabilities of the class of this row.

    Their logarithms differ by at most five standard errors, of the means of 40 batches.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(24, 2))
    y = (4 * X[:, 0] * X[:, 1] + rng.logistic(size=24) > 0).astype(int)
    y += (n_classes == 3) * (X[:, 1] + 0.5 * rng.normal(size=24) > 0.3)

    class WithoutRow(CLASSES):
        row = None

        def _chain(self, problem, exponents, variance, rng):
            if self.row is not None:
                exponents = np.where(np.arange(24) == self.row, 0.0, exponents)
            return super()._chain(problem, exponents, variance, rng)

    def likelihoods(model):
        ((_, scores),) = model._answer().scores_of_draws(X)
        if n_classes == 2:
            return expit(np.where(y, scores, -scores))
        return softmax(scores, axis=0)[y, :, np.arange(24)].T

    parameters = {"n_iter": 1000, "n_chains": 1, "max_order": 2, "slab_scale": 2.0}
    model = WithoutRow(interactions=[(0, 1)], random_state=0, **parameters).fit(X, y)
    losses = model._left_out_losses(model._classes(X, y, several=True))
    inverse = 1 / likelihoods(model)
    for row in np.argsort(-losses)[::6]:
        model.row = row
        without = likelihoods(model.fit(X, y))[:, row]
        parts = [one.reshape(40, -1).mean(axis=1) for one in (without, inverse[:, row])]
        errors = [part.std(ddof=1) / part.mean() / math.sqrt(40) for part in parts]
        assert_allclose(np.exp(losses[row]), inverse[:, row].mean(), rtol=1e-9)
        difference = losses[row] + np.log(parts[0].mean())
        assert abs(difference) < 5 * math.hypot(*errors)


@pytest.mark.parametrize("unit", [1e-200, 1e-100, 1.0, 1e100, 1e300])
def test_losses_are_compared_with_their_error_in_any_unit(unit):
    decrease = np.r_[np.full(50, -0.9), np.full(50, 1.0)]  # 5, with an error of 9.5
    assert not _residuals.are_smaller(np.zeros(100), unit * (decrease + 0.13))
    assert _residuals.are_smaller(np.zeros(100), unit * (decrease + 0.15))
    assert not _residuals.are_smaller(np.zeros(100), np.zeros(100))


@pytest.mark.parametrize("unit", [1e-130, 1e-90, 1e90, 1e149])
def test_joint_effects_are_detected_in_huge_and_tiny_units_of_y(unit):
    """The squares of losses, which are squares, are not representable."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(150, 3))
    y = drawn(NUMBERS, joint("product", X), rng)
    model = model_of(NUMBERS, n_iter=300).fit(X, unit * y)
    assert len(model.pairs_) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "module"),
    [(NUMBERS, _regressor), (COUNTS, _poisson_regressor)],
    ids=["numbers", "counts"],
)
def test_tables_of_many_rows_detect_none(kind, module, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 3))
    y = drawn(kind, joint("product", X), rng)
    monkeypatch.setattr(module, "MOST_DETECTED", 299)
    with pytest.warns(UserWarning, match="Residuals depend on the product"):
        model = model_of(kind).fit(X, y)
    same_fit(model, fit_of_sums(X, y, kind))
    monkeypatch.setattr(module, "MOST_DETECTED", 300)
    assert len(model_of(kind).fit(X, y).pairs_) == 3


def fit_of_sums(X, y, kind=NUMBERS):
    with pytest.warns(UserWarning, match="Residuals depend on the product"):
        return model_of(kind, interactions=None).fit(X, y)


def test_streams_have_no_pairs():
    """A stream after a fit that detected some warns, and goes on as without."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 3))
    y = drawn(NUMBERS, joint("product", X), rng)
    model = model_of(NUMBERS).fit(X[:200], y[:200])
    assert len(model.pairs_) == 3
    with pytest.warns(UserWarning, match="partial_fit drops the interactions"):
        model.partial_fit(X[200:], y[200:])
    assert len(model.pairs_) == 0
    same_fit(model, fit_of_sums(X[:200], y[:200]).partial_fit(X[200:], y[200:]))
    row = model_of(NUMBERS).fit(X[:200], y[:200])
    with pytest.warns(UserWarning, match="partial_fit drops the interactions"):
        row.partial_fit(X[200:201], y[200:201])
    sums = row.sufficient_statistics(X[201:], y[201:])
    row.fit(X[:200], y[:200])
    row.partial_fit(X[200:], y[200:], sample_weight=np.zeros(100))
    with pytest.raises(ValueError, match="leave a positive weight"):
        row.absorb(np.zeros_like(sums), memory=0.0)
    same_fit(row, model_of(NUMBERS).fit(X[:200], y[:200]))
    with pytest.warns(UserWarning, match="absorb drops the interactions"):
        row.absorb(sums)


@pytest.mark.slow
@KINDS
@pytest.mark.filterwarnings("ignore:Residuals are larger in rows")
def test_joint_effects_are_detected_with_weights_and_missing_values(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 3))
    y = drawn(kind, joint("product", X) - 1, rng)
    X[rng.random(X.shape) < 0.05] = np.nan
    weights = rng.uniform(0.5, 2.0, size=500)
    weights = weights if kind is CLASSES else weights * np.exp(0.5 * X[:, 2])
    weights = np.where(np.isfinite(weights), weights, 1.0)
    more = {"class_weight": "balanced"} if kind is CLASSES else {}
    for prediction in ("mean", "map", "randomized"):
        model = model_of(kind, prediction=prediction, **more).fit(X, y, weights)
        assert len(model.pairs_) == 3


@pytest.mark.slow
@KINDS
def test_structure_that_pairs_do_not_explain_is_told(kind):
    """A joint effect of three variables, which a forest finds."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 3))
    y = drawn(kind, 4 * np.sign(X).prod(axis=1), rng)
    with pytest.warns(UserWarning, match="A random forest predicts .*% of the squared"):
        model_of(kind).fit(X, y)


@pytest.mark.slow
def test_weights_of_classes_are_no_products():
    """Residuals of a rare class of large weight are not 0 in the mean at all X."""
    for seed in (0, 1, 3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(1000, 4))
        y = rng.random(1000) < expit(3 * X[:, 0] + 3 * X[:, 1] - 5)
        assert len(classifier(class_weight="balanced").fit(X, y).pairs_) == 0


@pytest.mark.slow
def test_products_of_very_many_columns_are_not_tested(monkeypatch):
    """Their number grows with the square, and so would memory."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, _missing_effects.MOST_TESTED + 1))
    y = rng.random(60) < 0.5
    monkeypatch.setattr(_missing_effects, "most_joint_pair", None)  # no call
    classifier(max_order=2).fit(X, y)
    with pytest.raises(TypeError, match="not callable"):
        classifier(max_order=2).fit(X[:, :-1], y)


@pytest.mark.slow
def test_the_product_that_was_detected_is_a_candidate():
    """Of variables that are not among the twenty most probable ones."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(500, 60))
        y = rng.random(500) < expit(8 * X[:, 3] * X[:, 17])
        model = classifier(max_order=2).fit(X, y)
        assert len(model.pairs_) == 190
        assert [3, 17] in model.pairs_.tolist()


@KINDS
@pytest.mark.parametrize("interactions", [None, "auto"])
def test_structure_is_told_where_no_other_effect_is(interactions, kind, monkeypatch):
    """Also if a product is suggested, but too weak for its own warning."""
    suggest(monkeypatch, gain=5.0, share=0.2, large=True, pair=(0, 1))
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 3))
    y = drawn(kind, np.zeros(60), rng)
    with pytest.warns(UserWarning, match="A random forest predicts 20%"):
        model_of(kind, interactions=interactions).fit(X, y)


@pytest.mark.slow
@pytest.mark.usefixtures("callbacks")
@pytest.mark.filterwarnings("ignore:Residuals depend")
@pytest.mark.parametrize("several", [False, True])
@KINDS
def test_a_callback_sees_one_task_and_stops_before_the_second_run(kind, several):
    class StopAt:
        def __init__(self, last):
            self.n_parts, self.last, self.setups = 0, last, 0

        def setup(self, estimator, context):
            self.setups += 1

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.n_parts += context.parent is not None
            return self.n_parts >= self.last

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 3))
    y = drawn(kind, joint("product", X), rng).astype(float)
    y = y + (X[:, 2] > 0.8) if several else y
    without = model_of(kind, interactions=None).fit(X, y)
    watched = StopAt(np.inf)
    model = model_of(kind).set_callbacks(watched).fit(X, y)
    same_fit(model, model_of(kind).fit(X, y))
    assert len(model.pairs_) == 3
    assert watched.setups == 1
    n_parts = watched.n_parts  # of the first run, and one for the second
    for last in (1, n_parts // 2, n_parts - 1):
        stop = StopAt(last)
        found = model_of(kind).set_callbacks(stop).fit(X, y)
        assert len(found.pairs_) == 0
        assert (stop.n_parts, stop.setups) == (last, 1)
    same_fit(found, without)  # stopped at the end of the first run


def waves(n_rows, period, rng):
    """Two variables, and classes that depend on a wave of one of them."""
    X = rng.uniform(-1, 1, size=(n_rows, 2))
    scores = 4 * np.sign(np.sin(2 * np.pi * X[:, 0] / period))
    return X, rng.random(n_rows) < expit(scores)


@pytest.mark.slow
@pytest.mark.parametrize("interactions", [None, "detect"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rough_effects_are_found(n_classes, interactions):
    """Eight waves, which eight polynomials cannot follow."""
    X, y = waves(1000, 0.25, np.random.default_rng(0))
    y = np.where((n_classes == 3) & (X[:, 1] > 0.5), 2, y)
    past, new = slice(600), slice(600, None)
    parameters = {"max_order": 8, "interactions": interactions, "n_iter": 150}
    model = classifier(**parameters).fit(X[past], y[past])
    assert model.basis_ == "cosine"
    assert model.coefficients_.shape[-1] == 32
    smooth = classifier(basis="legendre", **parameters)
    with pytest.warns(UserWarning, match="Rows that are neighbors|A random forest"):
        smooth.fit(X[past], y[past])
    assert model.score(X[new], y[new]) > smooth.score(X[new], y[new]) + 0.1


@pytest.mark.slow
def test_smooth_effects_are_fitted_as_with_polynomials(monkeypatch):
    """Whatever suggests cosines, and with pairs: bit for bit in all of six tables."""
    suggest(monkeypatch, gain=3.0, share=0.2)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(150, 3))
        y = drawn(CLASSES, joint(["sum", "product"][seed % 2], X), rng)
        model = classifier(max_order=8).fit(X, y)
        assert model.basis_ == "legendre"
        same_fit(model, classifier(max_order=8, basis="legendre").fit(X, y))


@pytest.mark.slow
def test_cosines_that_predict_no_better_end_early(monkeypatch):
    """After a quarter of their draws; others have as many draws as are asked for."""
    n_iter = []

    def counted(chains, **parameters):
        n_iter.append(parameters["n_iter"])
        run_chains(chains, **parameters)

    monkeypatch.setattr(_classifier, "run_chains", counted)
    suggest(monkeypatch, gain=3.0, share=0.2)
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(150, 3))
    parameters = {"max_order": 8, "interactions": None, "n_iter": 50}
    model = classifier(**parameters).fit(X, drawn(CLASSES, joint("sum", X), rng))
    assert (model.basis_, n_iter) == ("legendre", [12])
    n_iter.clear()
    model = classifier(**parameters).fit(*waves(1000, 0.25, rng))
    assert (model.basis_, n_iter) == ("cosine", [12, 38])
    assert model._has_all_draws()


@pytest.mark.filterwarnings("ignore:Rows that are neighbors", "ignore:A random forest")
def test_what_does_not_try_cosines(monkeypatch):
    """A given basis, temperature or scale; a table of too many values."""
    X, y = waves(300, 0.25, np.random.default_rng(0))
    suggest(monkeypatch, gain=3.0, share=0.2, rough=True)
    for some in (
        {"basis": "spline"},
        {"inverse_temperature": "pac"},
        {"inverse_temperature": 30.0},
        {"slab_scale": 0.01},
        {"max_order": 1},
    ):
        model = classifier(n_iter=20, burn_in=20, interactions=None, **some).fit(X, y)
        assert model.basis_ == some.get("basis", "legendre")
    monkeypatch.setattr(_classifier, "MOST_ROUGH", 4 * 3 * X.size - 1)
    assert classifier(n_iter=20).fit(X, y).basis_ == "legendre"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Residuals depend")
def test_products_of_few_rows_are_suggested():
    """By the product of ranks; nine products of functions show too little in all."""
    n_suggested = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(120, 6))
        y = rng.random(120) < expit(2 * X[:, 0] + 2 * X[:, 1] + 4 * X[:, 0] * X[:, 1])
        n_suggested += len(classifier().fit(X, y).pairs_) > 0
    assert n_suggested >= 4
