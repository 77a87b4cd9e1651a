"""Interactions of classes and of counts: the chains against quadrature; the estimators.

A mean over a chain is compared with the exact one in units of its standard error,
which the means of 40 batches give. Every such score is below 5 in absolute value: by
Student's law with 39 degrees of freedom a right chain fails one of the 16 comparisons
with probability below 1e-3.
"""

import itertools
import math
import pickle

import numpy as np
import pytest
from additive_reference import z_score
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsPoissonRegressor,
)
from skpacbayes.additive._logistic_chains import LogisticChain
from skpacbayes.additive._poisson_regressor import PoissonChain
from skpacbayes.additive._rated_chain import ModelSpace
from skpacbayes.plotting import PartialEffectsDisplay

# Chains of few sweeps need not agree.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BETA, VARIANCE, INTERCEPT_VARIANCE = 0.5, 1.5, 100.0
NODES, LOG_HERMITE = np.polynomial.hermite_e.hermegauss(13)
LOG_HERMITE = np.log(LOG_HERMITE)
MODELS = [(), (0,), (1,), (0, 1), (0, 1, 2)]  # the last with the pair


def cells():
    """Functions of two variables and of their pair, in eight places, and targets."""
    first = np.array([-1.0, -1, 1, 1, -1, -1, 1, 1])
    second = np.array([-1.2, 0.8, -1.2, 0.8, -0.8, 1.2, -0.8, 1.2])
    targets = np.array([1.0, 0, 0, 1, 1, 0, 1, 1])
    weights = np.array([2.0, 2, 1, 3, 1, 1, 1, 2])
    return np.array([first, second, first * second])[:, None], targets, weights


def logistic(scores, targets):
    """Log likelihood of labels, its slope and its curvature."""
    margins = np.where(targets > 0, scores, -scores)
    p = expit(scores)
    return -np.logaddexp(0, -margins), targets - p, p * (1 - p)


def poisson(scores, targets):
    """Log likelihood of counts, its slope and its curvature."""
    means = np.exp(scores)
    return targets * scores - means, targets - means, means


def exact_posterior(likelihood, values, targets, weights, base):
    """Probabilities of the models, and mean scores, by Gauss-Hermite quadrature."""
    logs, averages = [], []
    for model in MODELS:
        design = np.array([np.ones(values.shape[2]), *(values[j, 0] for j in model)])
        variances = np.array([INTERCEPT_VARIANCE] + [VARIANCE] * len(model))
        mode = np.zeros(len(design))
        for _ in range(100):
            _, slope, curvature = likelihood(base + mode @ design, targets)
            gradient = design @ (weights * slope) - mode / variances
            hessian = (design * weights * curvature) @ design.T
            hessian += np.diag(1 / variances)
            mode = mode + np.linalg.solve(hessian, gradient) / 2
        root = 1.2 * np.linalg.inv(np.linalg.cholesky(hessian)).T
        nodes = np.array(list(itertools.product(NODES, repeat=len(mode))))
        rule = np.array(list(itertools.product(LOG_HERMITE, repeat=len(mode))))
        points = mode + nodes @ root.T
        scores = base + points @ design
        found = likelihood(scores, targets)[0] @ weights
        found -= 0.5 * (points**2 / variances).sum(axis=1)
        found -= 0.5 * np.log(2 * math.pi * variances).sum()
        found += rule.sum(axis=1) + 0.5 * (nodes**2).sum(axis=1)
        evidence = logsumexp(found)
        averages.append(np.exp(found - evidence) @ scores)
        evidence += np.linalg.slogdet(root)[1] + len(model) * math.log(BETA)
        # Of one pair there is one set with it and one without: no further factor.
        logs.append(evidence - math.log(math.comb(2, min(len(model), 2))))
    shares = np.exp(np.array(logs) - logsumexp(logs))
    return shares, shares @ np.array(averages)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "likelihood"), [(LogisticChain, logistic), (PoissonChain, poisson)]
)
def test_the_chain_follows_the_posterior(kind, likelihood):
    values, targets, weights = cells()
    if kind is PoissonChain:
        targets = 2 * targets
        base, given = math.log(weights @ targets / weights.sum()), targets
    else:
        base, given = 0.0, targets > 0
    shares, averages = exact_posterior(likelihood, values, targets, weights, base)
    assert shares[-1] > 0.1  # the pair matters
    ranks, pairs = np.ones(3, dtype=int), np.array([[0, 1]])
    space = ModelSpace(values, ranks, BETA, 3, VARIANCE, pairs)
    chain = kind(space, given, weights, np.random.default_rng(0))
    chain.advance(60, keep=False)
    visits, seen = [], []
    for _ in range(1000):
        chain.sweep(6)
        visits.append(tuple(chain.model[0].tolist()))
        seen.append(base + chain.draw.intercept + chain.effects)
    assert set(visits) <= set(MODELS)
    scores = [
        z_score([visit == model for visit in visits], share)
        for model, share in zip(MODELS, shares, strict=True)
        if share > 0.02
    ]
    scores += [z_score(np.array(seen)[:, row], averages[row]) for row in (0, 3, 5)]
    assert np.abs(scores).max() < 5


def rows(n=400, p=6, seed=0):
    """Two variables whose effects are joint alone, and one with its own."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, p))
    return X, 4 * X[:, 1] * X[:, 4] + 1.5 * X[:, 2], rng


def classifier(**parameters):
    settings = {"n_iter": 60, "burn_in": 40, "max_order": 3, "n_chains": 1}
    return SparseAdditiveGibbsClassifier(**settings | parameters, random_state=0)


def counter(**parameters):
    settings = {"n_iter": 60, "burn_in": 40, "max_order": 3, "n_chains": 1}
    return SparseAdditiveGibbsPoissonRegressor(**settings | parameters, random_state=0)


def labelled(kind):
    """Rows, and targets of a kind, with a joint effect."""
    X, scores, rng = rows()
    if kind is counter:
        return X, rng.poisson(np.exp(0.7 * scores))
    return X, rng.random(len(X)) < expit(2 * scores)


KINDS = pytest.mark.parametrize("kind", [classifier, counter])


@KINDS
def test_joint_effects_are_found(kind):
    X, y = labelled(kind)
    model = kind(interactions="auto").fit(X, y)
    assert_array_equal(model.get_support(indices=True), [1, 2, 4])
    assert len(model.pairs_) == 15
    likely = model.pairs_[model.pair_probabilities_ > 0.5]
    assert_array_equal(likely, [[1, 4]])
    assert model.models_.shape[1] == 6 + 15
    assert len(model.coefficients_) == 6 + 15
    assert model.inclusion_probabilities_.shape == (6,)
    frame = model.interaction_frame()
    assert (frame["first"].iloc[0], frame["second"].iloc[0]) == (1, 4)
    effect, std = model.partial_effects(X, (4, 1))
    truth = (8 if kind is classifier else 2.8) * X[:, 1] * X[:, 4]
    assert np.corrcoef(effect, truth)[0, 1] > 0.95
    assert (std > 0).any()
    display = PartialEffectsDisplay.from_estimator(model, X)
    assert display.features == [1, 2, 4, (1, 4)]
    with pytest.warns(UserWarning, match="on the product of features 1 and 4: their"):
        without = kind(interactions=None).fit(X, y)
    assert model.score(X, y) > without.score(X, y) + 0.1
    assert len(without.pairs_) == 0
    assert not hasattr(model, "projected_support")
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))
    assert "pair_included" in model._chain_draws().posterior


@KINDS
@pytest.mark.parametrize("interactions", ["auto", [(0, 1)]], ids=str)
def test_a_pair_without_effects_of_its_variables_is_found(kind, interactions):
    """From any seed: a chain that had lost both variables never found it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 4))
    scores = X[:, 0] * X[:, 1]
    y = rng.random(300) < expit(8 * scores)
    if kind is counter:
        y = rng.poisson(np.exp(2 * scores))
    for seed in range(2):
        model = kind(interactions=interactions, n_iter=20).set_params(random_state=seed)
        model.fit(X, y)
        assert model.pairs_[model.pair_probabilities_ > 0.9].tolist() == [[0, 1]]


@pytest.mark.parametrize("interactions", ["auto", [(0, 1)]], ids=str)
def test_the_slab_is_wide_where_a_pair_separates_the_classes(interactions):
    """Log loss of new rows: lower than with a scale of 1; noise has that scale."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(900, 4))
    y = X[:, 0] * X[:, 1] > 0
    losses = []
    for given in ({}, {"slab_scale": 1.0}):
        model = classifier(interactions=interactions, **given).fit(X[:250], y[:250])
        losses.append(-np.log(model.predict_proba(X[250:])[range(650), 1 * y[250:]]))
    assert np.mean(losses[0]) < 0.9 * np.mean(losses[1])
    noise = rng.permutation(y[:250])
    assert classifier(interactions=interactions).fit(X[:250], noise).slab_scale_ == 1


@KINDS
def test_constant_columns_take_no_place_among_the_candidates(kind):
    X, y = labelled(kind)
    X = np.hstack([np.ones((len(X), 20)), X])
    model = kind(interactions="auto", n_iter=20, burn_in=20).fit(X, y)
    assert_array_equal(np.unique(model.pairs_), np.arange(20, 26))


@KINDS
def test_without_interactions_none_is_found(kind):
    """Of 15 pairs of variables whose correlation is 0.8."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 6)) + 2 * rng.normal(size=(300, 1))
    scores = 0.5 * X[:, 0] - 0.5 * X[:, 3]
    y = rng.random(300) < expit(2 * scores)
    if kind is counter:
        y = rng.poisson(np.exp(scores))
    model = kind(interactions="auto").fit(X, y)
    assert model.pair_probabilities_.max() < 0.5


@KINDS
def test_pairs_by_name_and_among_many(kind):
    pandas = pytest.importorskip("pandas")
    X, y = labelled(kind)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = kind(interactions=[("e", "b"), (0, 2)], n_iter=30).fit(frame, y)
    assert_array_equal(model.pairs_, [[0, 2], [1, 4]])
    assert model.pair_probabilities_[1] > 0.9
    assert model.interaction_frame()["first"].iloc[0] == "b"
    # Of more than 20 variables the likeliest are paired: both have an effect alone.
    rng = np.random.default_rng(1)
    wide = rng.uniform(-1, 1, size=(300, 24))
    scores = 3 * (wide[:, 21] + wide[:, 23] + wide[:, 21] * wide[:, 23])
    y = (
        rng.random(300) < expit(scores)
        if kind is classifier
        else rng.poisson(np.exp(scores / 3))
    )
    model = kind(interactions="auto", n_iter=20, burn_in=20).fit(wide, y)
    assert len(model.pairs_) == 190
    assert [21, 23] in model.pairs_.tolist()
    with pytest.raises(ValueError, match="pairs of two different variables"):
        kind(interactions=[(0, 0)]).fit(wide, y)


def test_pairs_of_several_classes():
    X, scores, rng = rows()
    noise = rng.gumbel(size=(len(X), 3))
    both = np.column_stack([2 * scores, 0 * scores, 4 * X[:, 0]])
    y = (both + noise).argmax(axis=1)
    model = classifier(interactions=[(1, 4), (0, 5)], n_iter=40).fit(X, y)
    assert model.class_inclusion_probabilities_.shape == (3, 6)
    assert model.coefficients_.shape == (3, 8, 3)
    assert model.pair_probabilities_[model.pairs_.tolist().index([1, 4])] > 0.9
    effect, _ = model.partial_effects(X, (1, 4))
    assert effect.shape == (len(X), 3)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_certificates_and_pairs_exclude_each_other():
    X, y = labelled(classifier)
    with pytest.raises(ValueError, match="interactions needs inverse_temperature"):
        classifier(inverse_temperature="pac", interactions="auto").fit(X, y)


# Pairs only where residuals ask for them.
