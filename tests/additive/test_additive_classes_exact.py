"""Classifier and ranker against posteriors that a sum or an integral gives.

A mean over a chain is compared with the exact one in units of its standard error,
which the means of 40 batches give. Every such score is below 5 in absolute value: by
Student's law with 39 degrees of freedom a right chain fails one of the 69 comparisons
with probability below 1e-3.
"""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from additive_reference import z_score
from scipy.special import log_expit, logsumexp

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsRanker,
    _logistic_chains,
    _rated_chain,
)
from skpacbayes.additive._chain import Prior
from skpacbayes.additive._logistic_chains import LogisticChain, most_probable_slab
from skpacbayes.additive._ranker import ranking_divergence
from skpacbayes.additive._ranker_chain import (
    Misranked,
    PairwiseLogistic,
    RankingChain,
)
from skpacbayes.additive._rated_chain import ModelSpace
from skpacbayes.certificates.additive import log_prior_mass, logistic_normal
from skpacbayes.certificates.pac_bayes import catoni_terms

BETA, VARIANCE, INTERCEPT_VARIANCE = 0.4, 1.5, 100.0
NODES, HERMITE = np.polynomial.hermite_e.hermegauss(14)  # 24: the same to 3e-7


def cells(seed=0):
    """Values of functions in 12 cells, labels, and how many rows each cell has.

    Two variables, of two functions and of one; both labels in each of six cells.
    """
    rng = np.random.default_rng(seed)
    first = np.repeat([[1.2, -0.2, -1.0], [0.7, -1.4, 0.7]], 2, axis=1)
    values = np.zeros((2, 2, 12))
    values[0] = np.tile(first, 2)
    values[1, 0] = np.tile(np.tile([-1.0, 1.0], 3), 2)
    positive = np.arange(12) < 6
    weights = rng.integers(1, 5, size=12).astype(float)
    weights[:2] += 4  # a signal
    return values, positive, weights, np.array([2, 1])


def every_model(ranks):
    return list(itertools.product(*(range(rank + 1) for rank in ranks)))


def log_prior_of(orders):
    size = np.count_nonzero(orders)
    return -math.log(math.comb(len(orders), size)) + sum(orders) * math.log(BETA)


def design_of(values, orders):
    return np.array(
        [values[j, k] for j, order in enumerate(orders) for k in range(order)]
    )


def logistic_posterior(values, positive, weights, ranks, most=2):
    """Log weight, mean intercept and mean probability of each model, by quadrature.

    Gauss-Hermite in as many dimensions as there are coefficients, centered and scaled
    by the mode and the Hessian.
    """
    found = {}
    for orders in every_model(ranks):
        if np.count_nonzero(orders) > most:
            continue
        design = design_of(values, orders).reshape(sum(orders), len(weights))
        design = np.vstack([np.ones(len(weights)), design])
        variances = np.array([INTERCEPT_VARIANCE] + [VARIANCE] * sum(orders))
        sign = np.where(positive, 1.0, -1.0)
        mode = np.zeros(len(design))
        for _ in range(50):
            p = 0.5 + 0.5 * np.tanh(0.5 * (mode @ design))
            gradient = design @ (weights * (positive - p)) - mode / variances
            hessian = (design * (weights * p * (1 - p))) @ design.T
            hessian += np.diag(1 / variances)
            mode = mode + np.linalg.solve(hessian, gradient)
        root = np.linalg.inv(np.linalg.cholesky(hessian)).T
        nodes = np.array(list(itertools.product(NODES, repeat=len(mode))))
        log_rule = np.log(HERMITE)[
            np.array(list(itertools.product(range(len(NODES)), repeat=len(mode))))
        ].sum(axis=1)
        points = mode + nodes @ root.T
        scores = points @ design
        log_values = (weights * log_expit(sign * scores)).sum(axis=1)
        log_values -= 0.5 * (points**2 / variances).sum(axis=1)
        log_values -= 0.5 * np.log(2 * np.pi * variances).sum()
        log_values += log_rule + 0.5 * (nodes**2).sum(axis=1)
        log_evidence = logsumexp(log_values) + np.linalg.slogdet(root)[1]
        shares = np.exp(log_values - logsumexp(log_values))
        found[orders] = (
            log_prior_of(orders) + log_evidence,
            shares @ points[:, 0],
            shares @ (0.5 + 0.5 * np.tanh(0.5 * scores)),
            log_evidence,
        )
    return found


def mixed(found, part):
    """Mean over the models."""
    log_weights = np.array([value[0] for value in found.values()])
    shares = np.exp(log_weights - logsumexp(log_weights))
    return sum(s * v[part] for s, v in zip(shares, found.values(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exponent", "repeated", "with_rates"),
    [(1.0, False, True), (0.5, True, True), (2.0, False, True), (1.0, False, False)],
)
def test_logistic_chain_follows_the_posterior(exponent, repeated, with_rates):
    """Weighted cells, or rows one by one; tempered or not: models and probabilities.

    Models change given the rates, or without them.
    """
    values, positive, weights, ranks = cells()
    found = logistic_posterior(values, positive, exponent * weights, ranks)
    if repeated:
        times = weights.astype(int)
        rows = np.repeat(np.arange(12), times)
        values, positive, weights = (
            values[..., rows],
            positive[rows],
            np.ones(len(rows)),
        )
    else:
        rows = np.arange(12)
    rng = np.random.default_rng([int(10 * exponent), repeated])
    space = ModelSpace(values, ranks, BETA, 2, VARIANCE)
    chain = LogisticChain(space, positive, exponent * weights, rng)
    chain.advance(100, keep=False)
    models, intercepts, probabilities = [], [], []
    for _ in range(1400):
        advance(chain, with_rates)
        orders = np.zeros(2, dtype=int)
        features, levels = chain.model
        orders[features] = levels
        models.append(tuple(orders.tolist()))
        intercepts.append(chain.draw.intercept)
        probabilities.append(0.5 + 0.5 * np.tanh(0.5 * scores_of(chain)))
    log_weights = np.array([value[0] for value in found.values()])
    shares = np.exp(log_weights - logsumexp(log_weights))
    visits = np.array([[m == model for model in found] for m in models])
    assert 0.5 * abs(visits.mean(axis=0) - shares).sum() < 0.06
    for model in range(len(found)):
        if shares[model] > 0.02:
            assert abs(z_score(visits[:, model], shares[model])) < 5
    assert abs(z_score(intercepts, mixed(found, 1))) < 5
    expected = mixed(found, 2)[rows]
    for row in (0, 5, len(rows) - 1):
        assert abs(z_score(np.array(probabilities)[:, row], expected[row])) < 5


@pytest.mark.slow
def test_draws_along_lines_follow_the_posterior_of_a_model():
    """No other moves: intercept and probabilities, given the model."""
    values, positive, weights, ranks = cells()
    found = logistic_posterior(values, positive, weights, ranks)
    space = ModelSpace(values, ranks, BETA, 2, VARIANCE)
    chain = LogisticChain(space, positive, weights, np.random.default_rng(0))
    chain.exchange(np.array([0, 1, 2]), np.zeros(3))
    intercepts, probabilities = [], []
    for _ in range(3000):
        chain.draw_along_lines(4)
        intercepts.append(chain.draw.intercept)
        probabilities.append(0.5 + 0.5 * np.tanh(0.5 * scores_of(chain)))
    _, intercept, expected, _ = found[2, 1]
    assert abs(z_score(intercepts, intercept)) < 5
    for row in (0, 5, 11):
        assert abs(z_score(np.array(probabilities)[:, row], expected[row])) < 5


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_an_effect_changes_where_classes_are_separable(seed):
    """Classes on either side of a threshold, under a wide slab.

    In 200 sweeps with six lines each, the number of functions changed at least 10 times
    in each of 60 such runs. Without lines it did not change in those of two seeds here.
    """
    x = np.repeat(np.linspace(-1, 1, 21), 10)
    powers, _ = np.linalg.qr(x[:, None] ** np.arange(5))
    values = powers[:, 1:].T * np.sqrt(len(x)) / np.arange(1, 5)[:, None]
    space = ModelSpace(values[None], np.array([4]), 0.5, 1, 20.0**2)
    rng = np.random.default_rng(seed)
    chain = LogisticChain(space, x > 0.45, np.ones(len(x)), rng)
    chain.advance(50, keep=False)
    chain.advance(200)
    orders = [len(draw.columns) for draw in chain.kept]
    assert np.count_nonzero(np.diff(orders)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 8.0])
def test_the_slab_of_two_classes_is_the_most_probable(factor, monkeypatch):
    """Few rows, or many with a clear effect: the maximum, on a grid of scales.

    Estimates of 150 sweeps have a deviation of .02 over seeds.
    """
    values, positive, weights, ranks = cells()
    weights = np.where(positive == (values[1, 0] > 0), factor * 4, 0.1) * weights
    logs, scales = [], np.linspace(1.0, 5.0, 41)
    for scale in scales:
        monkeypatch.setitem(globals(), "VARIANCE", scale**2)
        found = logistic_posterior(values, positive, weights, ranks)
        logs.append(logsumexp([value[0] for value in found.values()]))
    logs -= np.log(scales)  # of the log scale
    best = scales[np.argmax(logs)]
    assert (best > 2.5) == (factor > 1)
    space = ModelSpace(values, ranks, BETA, 2, 1.0)
    chain = LogisticChain(space, positive, weights, np.random.default_rng(0))
    assert most_probable_slab(chain, 500) == pytest.approx(best, abs=0.1)


def advance(chain, with_rates):
    """Draw the coefficients, and the model given the rates or, often, without them."""
    chain.sweep(2 if with_rates else 0)
    for _ in range(0 if with_rates else 4):
        chain.change_model()


def scores_of(chain):
    return chain.draw.intercept + chain.effects


@pytest.mark.slow
@pytest.mark.parametrize(("n_chosen", "with_rates"), [(3, True), (2, False)])
def test_choosing_among_some_of_the_variables_leaves_the_posterior(
    n_chosen, with_rates
):
    """Four variables, of which each sweep considers two or three: models, exactly."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(4, 1, 14))
    values -= values.mean(axis=2, keepdims=True)
    positive = rng.random(14) < 0.5 + 0.5 * np.tanh(values[0, 0])
    ranks, weights = np.ones(4, dtype=int), np.ones(14)
    rng = np.random.default_rng(n_chosen)
    space = ModelSpace(values, ranks, BETA, 2, VARIANCE)
    chain = LogisticChain(space, positive, weights, rng)
    chain.n_chosen = n_chosen
    chain.prior = Prior.of(ranks, BETA, 2, variance=VARIANCE, n_variables=n_chosen)
    logs = {
        orders: found[0]
        for orders, found in logistic_posterior(
            values, positive, weights, ranks, most=2
        ).items()
    }
    shares = np.exp(np.array(list(logs.values())) - logsumexp(list(logs.values())))
    models = []
    for _ in range(1600):
        advance(chain, with_rates)
        models.append(tuple(np.isin(np.arange(4), chain.model[0]).astype(int)))
    for orders, share in zip(logs, shares, strict=True):
        if share > 0.02:
            assert abs(z_score([model == orders for model in models], share)) < 5


@pytest.mark.slow
def test_geweke_joint_distribution(monkeypatch):
    """Labels drawn from the scores, scores from the labels: the prior must come out."""
    for module in (_logistic_chains, _rated_chain):
        monkeypatch.setattr(module, "INTERCEPT_VARIANCE", 1.0)
    values, positive, _, ranks = cells()
    rng = np.random.default_rng(0)
    space = ModelSpace(values, ranks, BETA, 2, VARIANCE)
    chain = LogisticChain(space, positive, np.ones(12), rng)
    sizes, totals, squares, intercepts, labels = [], [], [], [], []
    for _ in range(2000):
        chain.sweep(2)
        labelled = rng.random(12) < 0.5 + 0.5 * np.tanh(0.5 * scores_of(chain))
        chain.positive = labelled
        chain.temper(np.ones(12))
        sizes.append(len(chain.model[0]))
        totals.append(len(chain.draw.coefficients))
        squares.append((chain.draw.coefficients**2).sum())
        intercepts.append(chain.draw.intercept)
        labels.append(labelled.mean())
    models = every_model(ranks)
    shares = np.exp([log_prior_of(orders) for orders in models])
    shares /= shares.sum()
    total = shares @ [sum(orders) for orders in models]
    assert abs(z_score(sizes, shares @ [np.count_nonzero(m) for m in models])) < 5
    assert abs(z_score(totals, total)) < 5
    assert abs(z_score(squares, VARIANCE * total)) < 5
    assert abs(z_score(intercepts, 0.0)) < 5
    assert abs(z_score(np.square(intercepts), 1.0)) < 5
    assert abs(z_score(labels, 0.5)) < 5


def ranking_rows(seed=1):
    """Two variables of one function each, 14 positives and 11 negatives."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(2, 1, 25))
    positive = np.arange(25) < 14
    values[0, 0, positive] += 0.8
    return values, positive


def ranking_posterior(law, inverse_temperature, weights=None):
    """Log weight and mean risk of the four models, by sums over a fine grid."""
    found = {}
    for orders in every_model([1, 1]):
        inside = np.flatnonzero(orders)
        if law is Misranked:  # all directions
            angles = 2 * np.pi * (np.arange(4000) + 0.5) / 4000
            points = np.column_stack([np.cos(angles), np.sin(angles)])
            if len(inside) < 2:
                points = np.array([[1.0, 1.0], [-1.0, -1.0]])
            log_prior = np.full(len(points), -math.log(len(points)))
        else:
            line = np.linspace(-7, 7, 121)
            points = np.array(list(itertools.product(line, repeat=2)))
            if len(inside) < 2:
                points = np.repeat(line[:, None], 2, axis=1)
            log_prior = -0.5 * (points[:, : len(inside)] ** 2).sum(axis=1) / VARIANCE
            log_prior -= logsumexp(log_prior)
        scores = np.zeros((len(points), 25))
        for place, feature in enumerate(inside):
            scores += points[:, place, None] * found_values(feature)
        risks = risk_of(law, scores, weights)
        log_values = log_prior - inverse_temperature * risks
        shares = np.exp(log_values - logsumexp(log_values))
        log_weight = log_prior_of(orders) + logsumexp(log_values)
        found[orders] = log_weight, shares @ risks
    return found


def found_values(feature):
    return ranking_rows()[0][feature, 0]


def risk_of(law, scores, weights=None):
    positive, negative = scores[:, :14, None], scores[:, None, 14:]
    if law is Misranked:
        risks = (positive < negative) + 0.5 * (positive == negative)
    else:
        risks = np.logaddexp(0, negative - positive)
    if weights is None:
        return risks.mean(axis=(1, 2))
    pairs = np.outer(weights[:14], weights[14:])
    return (risks * pairs).sum(axis=(1, 2)) / pairs.sum()


LOSSES = pytest.mark.parametrize("law", [Misranked, PairwiseLogistic])


@pytest.mark.slow
@LOSSES
@pytest.mark.parametrize(
    ("share", "weighted", "n_blocks"),
    [(0.2, True, 1), (0.5, False, 2)],
)
def test_ranking_chain_follows_the_posterior(law, share, weighted, n_blocks):
    """Whatever the temperature of the classifier's chain, and however it proposes."""
    values, positive = ranking_rows()
    weights = None
    if weighted:
        weights = np.random.default_rng(2).integers(1, 5, size=25) + 0.0
    temperature = 8.0
    ones = np.ones(25) if weights is None else weights
    target = law(positive, ones, VARIANCE)
    rng = np.random.default_rng(0)
    space = ModelSpace(values, np.array([1, 1]), BETA, 2, VARIANCE)
    proposal = LogisticChain(space, positive, share / ones.mean() * ones, rng)
    chain = RankingChain(proposal, target, temperature)
    chain.advance(100, keep=False)
    chain.n_blocks = n_blocks
    chain.advance(600)
    found = ranking_posterior(law, temperature, weights)
    log_weights = np.array([value[0] for value in found.values()])
    shares = np.exp(log_weights - logsumexp(log_weights))
    for (orders, _), expected in zip(found.items(), shares, strict=True):
        visits = [
            tuple(np.isin([0, 1], draw.columns).astype(int)) == orders
            for draw in chain.kept
        ]
        if expected > 0.02:
            assert abs(z_score(visits, expected)) < 5
    assert abs(z_score([draw.loss for draw in chain.kept], mixed(found, 1))) < 5


@pytest.mark.slow
@pytest.mark.parametrize(("n_usable", "most"), [(1, 1), (2, 2), (5, 4)])
def test_no_block_is_without_variables(n_usable, most):
    """Variables that are constant are in none, however few proposals are accepted."""
    rng = np.random.default_rng(0)
    values, ranks = rng.normal(size=(16, 1, 40)), (np.arange(16) < n_usable).astype(int)
    values[n_usable:] = 0.0
    positive, ones = np.arange(40) < 20, np.ones(40)
    space = ModelSpace(values, ranks, BETA, 2, VARIANCE)
    proposal = LogisticChain(space, positive, ones, rng)
    chain = RankingChain(proposal, Misranked(positive, ones, VARIANCE), 1e9)
    numbers = set()
    for _ in range(200):
        chain.advance(1, keep=False)
        numbers.add(chain.n_blocks)
    assert max(numbers) == most
    assert all(len(block) for block in proposal.blocks(most))


@LOSSES
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_weighted_risks_are_those_of_rows_repeated(law, scale):
    _, positive = ranking_rows()
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, size=25) + 0.0
    order = rng.permutation(25)
    places = np.repeat(order, weights[order].astype(int))
    scores = scale * rng.normal(size=(6, 25)).round(1)  # ties, and large exponentials
    weighted = law(positive[order], weights[order], VARIANCE).risk(scores[:, order])
    repeated = law(positive[places], np.ones(len(places)), VARIANCE)
    assert np.allclose(weighted, repeated.risk(scores[:, places]), rtol=1e-9)
    losses = np.array([risk_of(law, row[None], weights)[0] for row in scores])
    assert np.allclose(weighted, losses, rtol=1e-12)


@LOSSES
def test_weights_of_the_classes_do_not_change_the_risk(law):
    """Every pair has one row of each class."""
    _, positive = ranking_rows()
    scores = np.random.default_rng(0).normal(size=(6, 25))
    risks = [
        law(positive, np.where(positive, heavy, 1.0), VARIANCE).risk(scores)
        for heavy in (1.0, 7.3)
    ]
    assert (risks[0] == risks[1]).all()


def test_the_divergence_of_the_ranker_is_that_of_the_evidence():
    """All four models visited: minus log evidence, less lambda times the risk.

    Of 400 draws the log of a mean weight has a deviation of about 0.05.
    """
    values, positive = ranking_rows()
    temperature = 8.0
    found = ranking_posterior(Misranked, temperature)
    posterior = SimpleNamespace(
        orders=lambda: np.array(list(found)), weights=np.full(4, 0.25)
    )
    ranks = np.array([1, 1])
    problem = SimpleNamespace(
        values=values, targets=positive, functions=SimpleNamespace(orders=ranks)
    )
    prior = Prior.of(ranks, BETA, 2, variance=VARIANCE)
    risk = mixed(found, 1)
    divergence = ranking_divergence(
        problem,
        posterior,
        prior,
        BETA,
        temperature,
        risk,
        Misranked(positive, np.ones(25), VARIANCE),
        0.5 * np.ones(25),
    )
    log_evidence = logsumexp([value[0] for value in found.values()])
    log_evidence -= logsumexp([log_prior_of(orders) for orders in found])
    expected = -log_evidence - temperature * risk
    assert divergence == pytest.approx(expected, abs=0.25)


def test_prior_mass_is_the_sum_over_all_models():
    ranks = np.array([2, 0, 3, 1])
    for most in (1, 2, 3):
        sums = 0.0
        for orders in every_model(ranks):
            size = np.count_nonzero(orders)
            if size <= most:
                sums += BETA ** sum(orders) / math.comb(3, size)
        assert np.isclose(log_prior_mass(ranks, BETA, most), math.log(sums))


def test_the_bound_on_the_evidence_is_below_it_and_near():
    values, positive, weights, ranks = cells()
    for exponent in (1.0, 0.3):
        found = logistic_posterior(values, positive, exponent * weights, ranks)
        for orders, (*_, exact) in found.items():
            design = design_of(values, orders).reshape(sum(orders), 12)
            design = np.vstack([np.ones(12), design])
            variances = np.array([INTERCEPT_VARIANCE] + [VARIANCE] * sum(orders))
            bound, *_ = logistic_normal(design, positive, exponent * weights, variances)
            assert exact - 1.0 < bound < exact + 1e-6


def test_catoni_terms_lie_between_the_risk_and_hoeffding():
    for risk, divergence, temperature in itertools.product(
        (0.0, 0.1, 0.5), (0.0, 5.0), (1.0, 30.0, 200.0)
    ):
        terms = catoni_terms(
            risk,
            divergence,
            count=100,
            inverse_temperature=temperature,
            largest=2.0,
            confidence=0.9,
        )
        assert terms["deviation"] <= temperature * 4 / 800 + 1e-12
        assert sum(terms.values()) > risk
        assert np.isclose(terms["confidence"], math.log(10) / temperature)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .* disagree")  # they are short
@pytest.mark.filterwarnings("ignore:Another seed may select")
def test_the_certificate_holds_as_often_as_it_says():
    """Features of known range, 14 bounds at 50 %: none may fail.

    If each failed one time in two, 14 would hold with probability 6e-5.
    """
    rng = np.random.default_rng(0)
    X_new = rng.uniform(-1, 1, size=(4000, 2))
    y_new = rng.random(4000) < 0.5 + 0.5 * np.tanh(2 * X_new[:, 0])
    options = {
        "max_order": 2,
        "feature_range": (-1, 1),
        "inverse_temperature": "pac",
        "n_chains": 1,
        "random_state": 0,
    }
    for seed in range(7):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(60, 2))
        y = rng.random(60) < 0.5 + 0.5 * np.tanh(2 * X[:, 0])
        classifier = SparseAdditiveGibbsClassifier(n_iter=20, burn_in=10, **options)
        ranker = SparseAdditiveGibbsRanker(loss="auc", n_iter=20, burn_in=10, **options)
        loss = -np.log(
            np.take_along_axis(
                classifier.fit(X, y).predict_proba(X_new), y_new[:, None].astype(int), 1
            )
        ).mean()
        assert loss < classifier.certificate(confidence=0.5).bound
        shortfall = 1 - ranker.fit(X, y).score(X_new, y_new)
        assert shortfall < ranker.certificate(confidence=0.5).bound
