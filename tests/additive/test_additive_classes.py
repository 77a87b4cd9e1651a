"""What users do to the additive classifier and ranker, and what they do wrong."""

import copy
import pickle
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import get_scorer, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsRanker,
)
from skpacbayes.additive._classifier import log_odds_of_mean

SHORT = {
    SparseAdditiveGibbsClassifier: {"n_iter": 60, "burn_in": 20, "n_chains": 1},
    SparseAdditiveGibbsRanker: {"n_iter": 80, "burn_in": 30, "n_chains": 1},
}
BOTH = pytest.mark.parametrize("kind", SHORT, ids=lambda kind: kind.__name__)
pytestmark = [  # short chains
    pytest.mark.filterwarnings("ignore:The .* disagree"),
    pytest.mark.filterwarnings("ignore:Another seed may select"),
]


def made(kind, **parameters):
    return kind(**{"random_state": 0, **SHORT[kind], **parameters})


def rows(n_samples=200, n_features=6, seed=0, slope=5.0):
    """Only the first variable matters."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_samples, n_features))
    return X, rng.random(n_samples) < expit(slope * X[:, 0])


@cache
def fitted(kind):
    """Fitted to `rows()`: tests read it, and copy it before they fit it again."""
    return made(kind).fit(*rows())


@BOTH
def test_finds_the_variable_and_its_effect(kind):
    X, _ = rows()
    model = fitted(kind)
    assert_array_equal(model.get_support(indices=True), [0])
    assert model.transform(X).shape == (200, 1)
    effect, std = model.partial_effects(X, 0)
    assert np.corrcoef(effect, X[:, 0])[0, 1] > 0.9
    assert (std >= 0).all()
    nothing, _ = model.partial_effects(X, 5)
    assert abs(nothing).max() < 0.3 * abs(effect).max()
    assert model.coefficients_.shape == (6, 8)
    assert model.models_.shape[1] == 6
    assert_allclose(model.model_weights_.sum(), 1)
    assert model.sample_posterior(3).shape == (3, 6, 8)
    assert 0 < model.acceptance_rate_ < 1


@pytest.mark.slow
@BOTH
def test_same_seed_same_answer_and_pickle(kind):
    X, y = rows()
    first = made(kind, n_chains=2).fit(X, y)
    second = made(kind, n_chains=2, n_jobs=2).fit(X, y)
    scores = first.decision_function(X)
    assert_array_equal(scores, second.decision_function(X))
    loaded = pickle.loads(pickle.dumps(first))
    assert_array_equal(scores, loaded.decision_function(X))
    assert_array_equal(first.predict(X), np.where(scores > 0, True, False))


@BOTH
@pytest.mark.parametrize("labels", [["no", "yes"], [3, 7], [-1.0, 1.0]])
def test_any_labels(kind, labels):
    X, y = rows()
    named = np.array(labels)[y.astype(int)]
    model = made(kind).fit(X, named)
    assert_array_equal(model.classes_, labels)
    assert set(model.predict(X)) <= set(labels)
    scores = fitted(kind).decision_function(X)
    assert_array_equal(model.decision_function(X), scores)


@BOTH
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(200), "greater than one; got 1 class"),
        (np.linspace(0, 1, 200), "Unknown label type"),
        (np.where(np.arange(200) == 5, np.nan, np.arange(200) % 2), "NaN"),
    ],
)
def test_labels_that_are_not_two_classes(kind, y, message):
    X, _ = rows()
    model = copy.deepcopy(fitted(kind))
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert_array_equal(model.decision_function(X), before)  # as it was


def test_the_ranker_is_for_two_classes():
    X, _ = rows()
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        made(SparseAdditiveGibbsRanker).fit(X, np.arange(200) % 3)


@BOTH
def test_not_fitted(kind):
    X, _ = rows()
    for method in ("predict", "decision_function", "transform", "sample_posterior"):
        with pytest.raises(NotFittedError):
            getattr(kind(), method)(X)
    with pytest.raises(NotFittedError):
        kind().certificate()


@pytest.mark.filterwarnings("ignore:features .* are copies of one another")
@BOTH
def test_constant_and_duplicated_columns(kind):
    """A constant is never in; of two copies one is, or both."""
    X, y = rows()
    X = np.column_stack([np.full(200, 3.0), X[:, :3], X[:, 0]])
    model = made(kind).fit(X, y)
    assert model.inclusion_probabilities_[0] == 0
    one_or_both = (model.models_[:, [1, 4]] > 0).any(axis=1)
    assert model.model_weights_ @ one_or_both > 0.9
    assert np.isfinite(model.decision_function(X)).all()


@BOTH
def test_all_columns_constant(kind):
    X, y = np.ones((20, 2)), np.arange(20) < 5
    model = made(kind).fit(X, y)
    assert_array_equal(model.inclusion_probabilities_, [0, 0])
    scores = model.decision_function(X)
    assert np.ptp(scores) == 0
    if kind is SparseAdditiveGibbsClassifier:  # Beta-like: between 1/4 and 1/2
        assert 0.1 < expit(scores[0]) < 0.45
    else:
        assert model.score(X, y) == 0.5


@pytest.mark.slow
@BOTH
def test_more_features_than_rows(kind):
    X, y = rows(n_samples=60, n_features=200, slope=12.0)
    model = made(kind).fit(X, y)
    assert model.inclusion_probabilities_[0] > 0.5
    assert model.get_support().sum() <= 3


@BOTH
def test_separable_classes(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(80, 3))
    y = X[:, 1] > 0
    model = made(kind).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert (model.predict(X) == y).mean() > 0.95
    assert roc_auc_score(y, model.decision_function(X)) > 0.99
    assert np.isfinite(model.coefficients_).all()


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "unit"), [(0.0, 1.0), (1e4, 1e3)])
def test_the_slab_is_wide_where_classes_are_separable(shift, unit):
    """Log loss of new rows: lower than with a scale of 1, which shrinks log odds."""
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(700, 5))
        y = X[:, 0] + X[:, 1] > 0
        X = shift + unit * X
        models = [
            made(SparseAdditiveGibbsClassifier, **given).fit(X[:200], y[:200])
            for given in ({}, {"slab_scale": 1.0})
        ]
        assert models[0].slab_scale_ > 1.5
        losses = [log_loss(y[200:], m.predict_proba(X[200:])) for m in models]
        ratios.append(losses[0] / losses[1])
    assert max(ratios) < 0.9
    pac = made(SparseAdditiveGibbsClassifier, inverse_temperature="pac")
    assert pac.fit(X[:200], y[:200]).slab_scale_ == 1.0


@BOTH
def test_noise_alone_selects_nothing(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 10)), rng.random(200) < 0.4
    model = made(kind).fit(X, y)
    assert not model.get_support().any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no features were selected
        assert model.transform(X).shape == (200, 0)


@BOTH
def test_beyond_the_training_range(kind):
    """A variable far outside of its range counts as half a range from its end."""
    X, _ = rows()
    model = fitted(kind)
    low, high = X.min(axis=0), X.max(axis=0)
    end = np.clip(X + 100, None, high + (high - low) / 2)
    with pytest.warns(UserWarning, match="feature 0 of 200 rows"):
        far, nearer = model.decision_function(X + 100), model.decision_function(end)
    assert_allclose(far, nearer)


@BOTH
def test_extreme_units(kind):
    X, y = rows()
    X = X * [1e12, 1e-12, 1, 1, 1, 1] + [1e13, 0, 0, 0, 0, 0]
    model = made(kind).fit(X, y)
    assert_array_equal(model.get_support(indices=True), [0])


@BOTH
@pytest.mark.parametrize("basis", ["cosine", "fourier", "spline"])
def test_other_bases(kind, basis):
    X, y = rows(slope=8.0)
    model = made(kind, basis=basis, max_order=5).fit(X, y)
    assert model.inclusion_probabilities_[0] > 0.5
    assert model.coefficients_.shape == (6, 5)


@BOTH
@pytest.mark.parametrize("prediction", ["randomized", "map"])
def test_prediction_by_one_function(kind, prediction):
    X, y = rows()
    model = made(kind, prediction=prediction).fit(X, y)
    orders = (model.coefficients_ != 0).sum(axis=1)
    assert any((orders == model_).all() for model_ in model.models_)
    if prediction == "map":
        assert_array_equal(orders, model.models_[0])
    assert roc_auc_score(y, model.decision_function(X)) > 0.7


@BOTH
def test_at_most_so_many_variables(kind):
    X, y = rows()
    y = (X[:, 0] + X[:, 1] > 0) ^ (np.arange(200) % 13 == 0)
    with pytest.warns(ConvergenceWarning, match="increase max_active"):
        model = made(kind, max_active=1).fit(X, y)
    assert ((model.models_ > 0).sum(axis=1) <= 1).all()


@pytest.mark.usefixtures("callbacks")
@BOTH
def test_callbacks_stop_the_chains(kind):
    class StopAtOnce:
        max_estimator_depth = None

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            return True

    X, y = rows()
    model = made(kind).set_callbacks(StopAtOnce()).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("shift", [0.0, 30.0, -600.0, 900.0])
def test_log_odds_of_a_mean_are_exact_at_any_score(shift):
    scores = shift + 10 * np.random.default_rng(0).normal(size=(50, 7))
    positive = logsumexp(log_expit(scores), axis=0)
    negative = logsumexp(log_expit(-scores), axis=0)
    assert_allclose(log_odds_of_mean(scores), positive - negative, rtol=1e-12)


def test_probabilities_average_those_of_the_draws():
    X, _ = rows()
    model = fitted(SparseAdditiveGibbsClassifier)
    scores = np.concatenate([s for _, s in model._answer().scores_of_draws(X)], axis=1)
    assert_allclose(model.predict_proba(X)[:, 1], expit(scores).mean(axis=0))
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert_allclose(expit(model.decision_function(X)), expit(scores).mean(axis=0))


@pytest.mark.slow
@BOTH
def test_rows_of_weight_zero_are_absent(kind):
    """Bit for bit; weights that are all 1 are none."""
    X, y = rows()
    model = made(kind)
    weights = np.where(np.arange(200) < 120, 1.0, 0.0)
    absent = clone(model).fit(X, y, sample_weight=weights)
    few = clone(model).fit(X[:120], y[:120])
    assert_array_equal(absent.decision_function(X), few.decision_function(X))
    same = clone(model).fit(X[:120], y[:120], sample_weight=np.ones(120))
    assert_array_equal(same.decision_function(X), few.decision_function(X))


@BOTH
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.where(np.arange(200) == 5, -1.0, 1.0), "Negative values"),
        (np.where(np.arange(200) == 5, np.nan, 1.0), "contains NaN"),
        (np.ones(199), r"sample_weight.shape == \(199,\), expected \(200,\)"),
        (rows()[1] + 0.0, "greater than one; got 1 class"),
    ],
)
def test_wrong_weights(kind, weights, message):
    X, y = rows()
    model = copy.deepcopy(fitted(kind))
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=weights)
    assert_array_equal(model.decision_function(X), before)  # as it was


def test_weights_of_rows():
    X, y = rows()
    model = made(SparseAdditiveGibbsClassifier)
    heavy = clone(model).fit(X, y, sample_weight=np.where(y, 5.0, 1.0))
    balanced = clone(model).set_params(class_weight={False: 1, True: 5}).fit(X, y)
    assert_array_equal(heavy.predict_proba(X), balanced.predict_proba(X))
    assert heavy.predict_proba(X)[:, 1].mean() > 0.6


@pytest.mark.slow
def test_inverse_temperatures():
    """At a small one the posterior is the prior; "likelihood" is that of n rows."""
    X, y = rows()
    model = fitted(SparseAdditiveGibbsClassifier)
    assert model.inverse_temperature_ == 200
    same = clone(model).set_params(inverse_temperature=200.0).fit(X, y)
    assert_array_equal(model.coefficients_, same.coefficients_)
    prior = clone(model).set_params(inverse_temperature=1e-3, beta=0.5, n_iter=600)
    prior.fit(X, y)
    # Under the prior 0 to 6 variables are equally probable, but for 255/256 to the
    # power of their number: each is in with probability one half.
    assert abs(prior.inclusion_probabilities_.mean() - 0.5) < 0.1


@pytest.mark.slow
def test_ranker_score_is_the_area_under_the_curve():
    X, y = rows()
    ranker = fitted(SparseAdditiveGibbsRanker)
    assert ranker.score(X, y) == roc_auc_score(y, ranker.decision_function(X))
    assert get_scorer("roc_auc")(ranker, X, y) == ranker.score(X, y)
    assert abs(ranker.predict(X).mean() - y.mean()) < 0.01
    few = clone(ranker).set_params(n_iter=60, burn_in=20)
    search = GridSearchCV(few, {"max_order": [1, 4]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["auc", "pairwise_logistic"])
def test_ranker_takes_whole_weights_for_rows_repeated(loss):
    """The posterior is the same, its random numbers are not."""
    X, y = rows()
    weights = np.random.default_rng(0).integers(0, 4, size=200)
    ranker = made(SparseAdditiveGibbsRanker, loss=loss, n_iter=200, burn_in=60)
    ranker.fit(X, y, sample_weight=weights)
    places = np.random.default_rng(1).permutation(np.repeat(np.arange(200), weights))
    repeated = clone(ranker).fit(X[places], y[places])
    scores = repeated.decision_function(X)
    assert np.corrcoef(ranker.decision_function(X), scores)[0, 1] > 0.99
    assert_array_equal(ranker.get_support(), repeated.get_support())
    # Of 200 draws the slope has a relative error of up to .26.
    temperature = repeated.inverse_temperature_
    assert_allclose(ranker.inverse_temperature_, temperature, rtol=0.5)


@BOTH
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_weights_whose_sum_counts_no_rows(kind, scale):
    X, y = rows()
    model = copy.deepcopy(fitted(kind))
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="multiply sample_weight by a constant"):
        model.fit(X, y, sample_weight=np.full(200, scale))
    assert_array_equal(model.decision_function(X), before)  # as it was


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["auc", "pairwise_logistic"])
def test_ranker_weighs_pairs(loss):
    """Half of the rows follow one variable, half another: the heavy ones are heard."""
    X, y = rows(slope=8.0)
    half = np.arange(200) < 100
    y = np.where(half, y, X[:, 1] > 0)
    for heavy, variable in ((half, 0), (~half, 1)):
        weights = np.where(heavy, 1.0, 0.05)
        ranker = made(SparseAdditiveGibbsRanker, loss=loss)
        ranker.fit(X, y, sample_weight=weights)
        # Other variables may have probabilities near one half.
        assert ranker.inclusion_probabilities_.argmax() == variable
        assert ranker.score(X, y, sample_weight=weights) > 0.9
        # As much weight is called positive as is, but for a row's.
        called = weights @ ranker.predict(X) - weights @ y
        assert abs(called) <= 1.0


def test_ranker_minds_the_order_alone():
    """Stretching all scores, or one class's share, is no loss: ties count one half."""
    X, y = rows()
    X = np.sign(X) * (abs(X) > 0.3)  # three values: many ties
    ranker = made(SparseAdditiveGibbsRanker).fit(X, y)
    assert ranker.score(X, y) > 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "slab_scale"),
    [
        (SparseAdditiveGibbsClassifier, 1e10),
        (SparseAdditiveGibbsRanker, 1e10),
        (SparseAdditiveGibbsRanker, 1e150),
    ],
)
def test_functions_that_are_dependent(kind, slab_scale):
    """Of three values, eight functions that are independent over the range alone."""
    X, y = rows()
    model = made(kind, inverse_temperature="pac", slab_scale=slab_scale)
    if kind is SparseAdditiveGibbsRanker:
        model.set_params(loss="auc")
    model.set_params(feature_range=(-2, 2)).fit(X.round(), y)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.certificate().bound)
    if kind is SparseAdditiveGibbsRanker:  # with such a slab the other finds nothing
        assert model.score(X.round(), y) > 0.75


@pytest.mark.slow
def test_ranker_temperatures():
    """The loss weighs as much as rows; "pac" looks at no label but counts."""
    many = fitted(SparseAdditiveGibbsRanker).inverse_temperature_
    few = made(SparseAdditiveGibbsRanker).fit(*rows(50)).inverse_temperature_
    assert 2 < many / few < 8
    X, y = rows()
    ranker = made(SparseAdditiveGibbsRanker, inverse_temperature="pac", gamma=0.5)
    fewest = min(y.sum(), 200 - y.sum())
    assert ranker.fit(X, y).inverse_temperature_ == 0.5 * fewest
    ranker.fit(X, y, sample_weight=np.where(y, 5.0, 1.0))
    assert ranker.inverse_temperature_ == 0.5 * min(5 * y.sum(), 200 - y.sum())


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["auc", "pairwise_logistic"])
def test_ranker_gains_what_it_should_over_constant_scores(loss):
    """The definition of "auto", with the pilot's scores found again."""
    X, y = rows()
    ranker = fitted(SparseAdditiveGibbsRanker)
    if loss != ranker.loss:
        ranker = made(SparseAdditiveGibbsRanker, loss=loss).fit(X, y)
    assert 0.2 * len(y) < ranker.inverse_temperature_ < 10 * len(y)
    set_by_hand = clone(ranker).set_params(
        inverse_temperature=ranker.inverse_temperature_
    )
    assert_array_equal(set_by_hand.fit(X, y).coefficients_, ranker.coefficients_)


@pytest.mark.slow
def test_certificates_exist_under_pac_alone():
    few = {"n_iter": 60, "burn_in": 20}
    X, y = rows(100, 3)
    for kind in SHORT:
        with pytest.raises(NotImplementedError, match="pac"):
            made(kind, **few).fit(X, y).certificate()
        pac = {"inverse_temperature": "pac", **few}
        if kind is SparseAdditiveGibbsRanker:
            pac["loss"] = "auc"
        unknown = made(kind, **pac).fit(X, y).certificate()
        ranges = "ranges of the features known before the rows"
        assert unknown.assumptions[ranges] is False
        model = made(kind, feature_range=(-1, 1), **pac).fit(X, y)
        certificate = model.certificate()
        new = model.certificate(*rows(100, 3, seed=1))
        assert new.bound == certificate.bound
        assert new.observed != certificate.observed
        assert_allclose(model.certificate(X, y).observed, certificate.observed)
        assert certificate.assumptions[ranges] is True
        assert_allclose(sum(certificate.terms.values()), certificate.bound)
        assert certificate.observed < certificate.bound
        assert certificate.terms["divergence"] > 0
        with pytest.raises(NotImplementedError, match="rows of equal weights"):
            model.fit(X, y, sample_weight=1.0 + y).certificate()
    pairs = made(SparseAdditiveGibbsRanker, loss="pairwise_logistic", **few)
    with pytest.raises(NotImplementedError, match="auc"):
        pairs.set_params(inverse_temperature="pac").fit(X, y).certificate()


def test_scores_are_clipped_under_pac():
    X, y = rows(slope=20.0)
    model = made(
        SparseAdditiveGibbsClassifier, inverse_temperature="pac", score_bound=0.5
    ).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.max() <= expit(0.5) + 1e-12
    assert probabilities.min() >= expit(-0.5) - 1e-12


def test_feature_range_must_be_a_range():
    X, y = rows()
    with pytest.raises(ValueError, match="feature_range"):
        made(SparseAdditiveGibbsClassifier, feature_range=(1, -1)).fit(X, y)


@pytest.mark.parametrize("names", [False, True])
def test_inclusion_probabilities_reach_select_from_model_and_a_frame(names):
    """SelectFromModel needs no importance_getter; the frame has names and errors."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 6))
    y = rng.random(200) < 1 / (1 + np.exp(-4 * X[:, 4]))
    columns = list("abcdef")
    if names:
        X = pandas.DataFrame(X, columns=columns)
    classifier = SparseAdditiveGibbsClassifier(n_iter=60, burn_in=20, random_state=0)
    selector = SelectFromModel(classifier, threshold=0.5).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = classifier.fit(X, y)
    assert_array_equal(selector.get_support(), found.get_support())
    frame = found.inclusion_frame()
    assert frame.index[0] == ("e" if names else 4)
    order = frame.index if not names else [columns.index(name) for name in frame.index]
    assert_array_equal(frame["probability"], found.inclusion_probabilities_[order])
    assert_array_equal(frame["error"], found.inclusion_errors_[order])
    assert_array_equal(frame["expected_order"], found.expected_orders_[order])


@pytest.mark.parametrize(
    "names", [(-1, 1), (0.0, 1.0), (False, True), ("no", "yes")], ids=str
)
def test_the_score_of_a_ranking_is_of_the_classes_of_the_fit(names):
    """Other labels have another order, and gave 1 - AUC in silence."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 1))
    positive = X[:, 0] + 0.3 * rng.normal(size=60) > 0
    y = np.array(names)[positive.astype(int)]
    ranker = SparseAdditiveGibbsRanker(n_iter=20, burn_in=10, random_state=0).fit(X, y)
    found = ranker.score(X, y)
    assert found > 0.9
    for same in (y.tolist(), pd.Series(y), pd.Categorical(y)):
        assert ranker.score(X, same) == found
    for other in (np.where(positive, "bad", "good"), np.where(positive, 2, 3)):
        with pytest.raises(ValueError, match="y must be of the classes"):
            ranker.score(X, other)
