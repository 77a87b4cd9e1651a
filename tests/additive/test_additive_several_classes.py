"""More than two classes: the chain against quadrature, and what users see.

A mean over a chain is compared with the exact one in units of its standard error,
which the means of 40 batches give. Every such score is below 5 in absolute value: by
Student's law with 39 degrees of freedom a right chain fails one of the 45 comparisons
with probability below 1e-3.
"""

import itertools
import math
import pickle

import joblib
import numpy as np
import pytest
from additive_reference import z_score
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, logsumexp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from skpacbayes.additive import SparseAdditiveGibbsClassifier
from skpacbayes.additive._logistic_chains import SoftmaxChain
from skpacbayes.additive._rated_chain import ModelSpace
from skpacbayes.plotting import PartialEffectsDisplay

BETA, VARIANCE, INTERCEPT_VARIANCE = 0.4, 1.5, 100.0
N_CLASSES = 3
NODES, LOG_HERMITE = np.polynomial.hermite_e.hermegauss(7)
LOG_HERMITE = np.log(LOG_HERMITE)
# Two contrasts of the intercepts: the likelihood does not depend on their mean.
CONTRASTS = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2.0], [6.0]])


def cells():
    """One function in three places, a row of each class in each, and weights."""
    place = np.repeat([-1.2, 0.1, 1.1], N_CLASSES)
    codes = np.tile(np.arange(N_CLASSES), 3)
    weights = np.array([5.0, 1, 1, 2, 3, 1, 1, 2, 4])
    return place, codes, weights


def exact_posterior(place, codes, weights, exponent):
    """Probability of each model, and mean probabilities of the classes."""
    models, log_weights, probabilities = evidences(place, codes, weights, exponent)
    shares = np.exp(np.array(log_weights) - logsumexp(log_weights))
    return dict(zip(models, shares, strict=True)), np.tensordot(
        shares, np.array(probabilities), 1
    )


def evidences(place, codes, weights, exponent):
    """Models, their log weights, and mean probabilities of the classes, by quadrature.

    Gauss-Hermite in the contrasts of the intercepts and the coefficients of a model,
    centred and scaled by the mode and the Hessian.
    """
    log_weights, probabilities = [], []
    models = list(itertools.product([False, True], repeat=N_CLASSES))
    for model in models:
        maps = [np.outer(contrast, np.ones(len(place))) for contrast in CONTRASTS]
        maps += [np.outer(np.eye(3)[k], place) for k in np.flatnonzero(model)]
        design = np.array(maps)  # (n_coefficients, n_classes, n_rows)
        variances = np.array([INTERCEPT_VARIANCE] * 2 + [VARIANCE] * sum(model))
        truth = np.eye(3)[codes].T
        mode = np.zeros(len(design))
        for _ in range(60):
            p = np.exp(log_softmax(np.tensordot(mode, design, 1), axis=0))
            gradient = (design * (truth - p) * weights).sum(axis=(1, 2)) * exponent
            gradient -= mode / variances
            mean = (design * p).sum(axis=1, keepdims=True)
            hessian = np.einsum("akn,bkn,kn->ab", design - mean, design, p * weights)
            hessian = exponent * hessian + np.diag(1 / variances)
            mode = mode + np.linalg.solve(hessian, gradient)
        root = np.linalg.inv(np.linalg.cholesky(hessian)).T
        dimension = len(mode)
        nodes = np.array(list(itertools.product(NODES, repeat=dimension)))
        rule = np.array(list(itertools.product(LOG_HERMITE, repeat=dimension)))
        points = mode + nodes @ root.T
        scores = log_softmax(np.tensordot(points, design, 1), axis=1)
        rows = np.arange(len(place))
        values = exponent * (scores[:, codes, rows] @ weights)
        values -= 0.5 * (points**2 / variances).sum(axis=1)
        values -= 0.5 * np.log(variances).sum() + dimension / 2 * math.log(2 * math.pi)
        values += rule.sum(axis=1) + 0.5 * (nodes**2).sum(axis=1)
        evidence = logsumexp(values)
        shares = np.exp(values - evidence)
        evidence += np.linalg.slogdet(root)[1] + sum(model) * math.log(BETA)
        log_weights.append(evidence)
        probabilities.append(np.tensordot(shares, np.exp(scores), 1))
    return models, log_weights, probabilities


@pytest.mark.slow
@pytest.mark.parametrize(("exponent", "repeated"), [(1.0, True), (2.0, False)])
def test_the_chain_follows_the_posterior(exponent, repeated):
    """Models, and probabilities of the classes; rows one by one, or weighted."""
    place, codes, weights = cells()
    models, probabilities = exact_posterior(place, codes, weights, exponent)
    rows = np.arange(len(place))
    if repeated:
        rows = np.repeat(rows, weights.astype(int))
        weights = np.ones(len(rows))
    chain = SoftmaxChain(
        ModelSpace(place[None, None, rows], np.array([1]), BETA, 1, VARIANCE),
        codes[rows] == np.arange(N_CLASSES)[:, None],
        exponent * weights,
        np.random.default_rng(0),
    )
    chain.advance(100, keep=False)
    found, seen = [], []
    for _ in range(800):
        chain.advance(1)
        found.append([len(part.draw.columns) > 0 for part in chain.classes])
        seen.append(np.exp(log_softmax(chain._scores(), axis=0)))
    found, seen = np.array(found), np.array(seen)
    scores = [
        z_score((found == model).all(axis=1), probability)
        for model, probability in models.items()
        if probability > 0.02
    ]
    cell_of = np.searchsorted(rows, np.arange(len(place)))[::N_CLASSES]
    for k in range(N_CLASSES):
        for cell in cell_of:
            scores.append(z_score(seen[:, k, cell], probabilities[k, rows[cell]]))
    assert np.abs(scores).max() < 5
    intercepts = np.array(
        [[draw.intercept for draw in part.kept] for part in chain.classes]
    )
    assert_allclose(intercepts.sum(axis=0), 0, atol=1e-9)


@pytest.mark.slow
def test_a_drawn_slab_follows_the_posterior(monkeypatch):
    """One scale of all classes: models and the scale, by Gauss-Legendre in its inverse.

    With five nodes in each other dimension, models have their probabilities to .002.
    """
    place, codes, weights = cells()
    nodes, rule = np.polynomial.hermite_e.hermegauss(5)
    monkeypatch.setattr(f"{__name__}.NODES", nodes)
    monkeypatch.setattr(f"{__name__}.LOG_HERMITE", np.log(rule))
    inverses, rule = np.polynomial.legendre.leggauss(8)
    inverses = 0.5 + 0.5 * inverses
    scales, rule = 1 / inverses, rule * inverses  # its density is 2 / scale^3
    logs = []
    for deviation in scales:
        monkeypatch.setattr(f"{__name__}.VARIANCE", deviation**2)
        models, log_weights, _ = evidences(place, codes, weights, 1.0)
        logs.append(log_weights)
    logs = np.array(logs) + np.log(rule)[:, None]
    shares = np.exp(logs - logsumexp(logs))
    chain = SoftmaxChain(
        ModelSpace(place[None, None], np.array([1]), BETA, 1, None),
        codes == np.arange(N_CLASSES)[:, None],
        weights,
        np.random.default_rng(0),
    )
    chain.advance(100, keep=False)
    chain.advance(1000)
    found = np.array([[len(d.columns) > 0 for d in c.kept] for c in chain.classes]).T
    scores = [
        z_score((found == model).all(axis=1), share)
        for model, share in zip(models, shares.sum(axis=0), strict=True)
        if share > 0.02
    ]
    inverse = [1 / (1 + draw.slab_scale) for draw in chain.kept]
    scores.append(z_score(inverse, shares.sum(axis=1) @ (1 / (1 + scales))))
    assert np.abs(scores).max() < 5


def made(**parameters):
    return SparseAdditiveGibbsClassifier(
        **{
            "n_iter": 60,
            "burn_in": 30,
            "n_chains": 1,
            "max_order": 4,
            "random_state": 0,
            **parameters,
        }
    )


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return train_test_split(X, y, random_state=1, stratify=y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_probabilities_are_those_of_the_classes(wine):
    X, X_test, y, y_test = wine
    model = made().fit(X, np.array(["a", "b", "c"])[y])
    probabilities = model.predict_proba(X_test)
    assert probabilities.shape == (len(X_test), 3)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_allclose(np.exp(model.decision_function(X_test)), probabilities)
    assert_array_equal(
        model.predict(X_test), model.classes_[probabilities.argmax(axis=1)]
    )
    logistic = LogisticRegression().fit(scale(X), y)
    shifted = (X_test - X.mean(axis=0)) / X.std(axis=0)
    peer = log_loss(y_test, logistic.predict_proba(shifted))
    assert log_loss(y_test, probabilities) < peer + 0.05
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X_test), probabilities)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_shapes_of_what_is_fitted():
    X, y = load_iris(return_X_y=True)
    model = made().fit(X, y)
    by_class = model.class_inclusion_probabilities_
    assert by_class.shape == (3, 4)
    assert (model.inclusion_probabilities_ >= by_class.max(axis=0) - 1e-12).all()
    assert (model.inclusion_probabilities_ <= by_class.sum(axis=0) + 1e-12).all()
    assert model.coefficients_.shape == (3, 4, 4)
    assert_allclose(model.intercept_.sum(), 0, atol=1e-9)
    assert model.models_.shape[1] == 4
    assert_allclose(model.model_weights_.sum(), 1)
    draws = model.sample_posterior(4000, random_state=0)
    assert draws.shape == (4000, 3, 4, 4)
    error = draws.std(axis=0) / math.sqrt(4000) + 1e-12
    assert (abs(draws.mean(axis=0) - model.coefficients_) < 5 * error).all()
    effect, std = model.partial_effects(X, 2)
    assert effect.shape == std.shape == (150, 3)
    assert_allclose(effect.mean(axis=0), 0, atol=0.1)
    assert model.transform(X).shape == (150, model.get_support().sum())
    with pytest.raises(AttributeError, match="projected_support"):
        model.projected_support(X)
    two = made().fit(X[:100], y[:100])
    assert_array_equal(
        two.class_inclusion_probabilities_, [two.inclusion_probabilities_]
    )
    assert isinstance(two.intercept_, float)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("prediction", ["randomized", "map"])
def test_one_function_of_all_classes_in_one_draw(prediction):
    X, y = load_iris(return_X_y=True)
    model = made(prediction=prediction).fit(X, y)
    found = model._answer()
    joint = np.hstack([part.coefficients.ravel() for part in found.classes])
    draws = np.hstack(
        [
            np.array(
                [
                    part.posterior.mean_of([i]).ravel()
                    for i in range(len(found.runs) * 60)
                ]
            )
            for part in found.classes
        ]
    )
    same = (draws != 0) == (joint != 0)
    assert same.all(axis=1).any()  # a model that was drawn, of all classes together
    if prediction == "randomized":
        assert (draws == joint).all(axis=1).any()
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X, y) > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_order_of_the_labels_does_not_matter():
    """But for the random numbers: probabilities agree within the chains' error."""
    X, y = load_iris(return_X_y=True)
    one = made(n_iter=150, n_chains=1).fit(X, y).predict_proba(X)
    other = made(n_iter=150, n_chains=1).fit(X, -y).predict_proba(X)[:, ::-1]
    assert abs(one - other).max() < 0.25
    assert abs(one - other).mean() < 0.015


def test_what_is_for_two_classes_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="needs two classes, got 3"):
        made(inverse_temperature="pac").fit(X, y)
    with pytest.raises(ValueError, match="got 1 class"):
        made().fit(X, np.zeros(len(X), dtype=int))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_of_weight_zero_and_weights_of_classes():
    X, y = load_iris(return_X_y=True)
    weights = np.ones(150)
    weights[::3] = 0
    kept = clone(made()).fit(X[weights > 0], y[weights > 0])
    weighted = clone(made()).fit(X, y, sample_weight=weights)
    assert_array_equal(kept.predict_proba(X), weighted.predict_proba(X))
    heavy = made(class_weight={0: 1.0, 1: 1.0, 2: 5.0}).fit(X, y)
    plain = made().fit(X, y)
    assert heavy.predict_proba(X)[:, 2].sum() > plain.predict_proba(X)[:, 2].sum()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", [2, 3])
def test_effects_change_to_the_class_that_has_them(seed):
    """One class's effect is nearly minus the same on all others, in more functions.

    Chains that move one class at a time stay in the model that they find first: the
    probabilities were .19 and .33.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(300, 3))
    scores = [3 * np.sin(3 * X[:, 0]), 6 * X[:, 1] ** 2 - 2, 3 * X[:, 2]]
    y = (np.column_stack(scores) + rng.gumbel(size=(300, 3))).argmax(axis=1)
    model = made(n_iter=100, slab_scale=1.0, random_state=seed).fit(X, y)
    assert np.diag(model.class_inclusion_probabilities_).min() > 0.6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_scale_of_the_slab_follows_the_classes(wine):
    """Separable classes have a wide slab; labels without effects select nothing."""
    X, _, y, _ = wine
    shuffled = np.random.default_rng(0).permutation(y)
    wide = made(max_order=2).fit(X, y)
    narrow = made(max_order=2).fit(X, shuffled)
    assert wide.slab_scale_ > narrow.slab_scale_ >= 1.0
    assert narrow.inclusion_probabilities_.max() < 0.5
    assert made(max_order=2, slab_scale=2.0).fit(X, y).slab_scale_ == 2.0
    assert made(max_order=2).fit(X, shuffled > 0).slab_scale_ == 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_class_of_its_own_effect_is_drawn():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 5))
    scores = np.column_stack([4 * X[:, 0], 4 * X[:, 1], np.zeros(400)])
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    model = made(n_iter=200).fit(X, y)
    by_class = model.class_inclusion_probabilities_
    assert by_class[0, 0] > 0.9
    assert by_class[1, 1] > 0.9
    assert model.inclusion_probabilities_[2:].max() < 0.5
    display = PartialEffectsDisplay.from_estimator(model, X, features=[0], target=0)
    assert_allclose(display.effects[0][[0, -1]], [-4, 4], atol=1.5)
    with pytest.raises(ValueError, match="target must be one of the classes"):
        PartialEffectsDisplay.from_estimator(model, features=[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_threads_processes_and_float_errors_change_nothing():
    X, y = load_iris(return_X_y=True)
    settings = {"n_iter": 5, "burn_in": 2, "n_chains": 3}
    expected = made(**settings).fit(X, y).predict_proba(30 * X)
    for backend in ["threading", "loky"]:
        with joblib.parallel_config(backend=backend, n_jobs=2):
            found = made(**settings, n_jobs=2).fit(X, y)
        assert_array_equal(found.predict_proba(30 * X), expected)
    with np.errstate(all="raise"):
        found = made(**settings).fit(X, y)
        assert_array_equal(found.predict_proba(30 * X), expected)
        found.decision_function(1e4 * X)
