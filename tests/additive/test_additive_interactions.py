"""Interactions of pairs: the exact posterior, what they find, and what they refuse."""

import itertools
import re

import numpy as np
import pytest
from additive_reference import make_chain, total_variation, visited
from scipy.special import comb, logsumexp
from sklearn.datasets import make_friedman1

from skpacbayes.additive import (
    SparseAdditiveGibbsRegressor,
    _chain,
)
from skpacbayes.additive._basis import Dictionary, smallest_products
from skpacbayes.additive._chain import Prior
from skpacbayes.additive._regressor_stream import Rows
from skpacbayes.additive._selection import every_pair
from skpacbayes.plotting import PartialEffectsDisplay

PAIRS = every_pair(range(3))


def small_pairs(n=60, noise=0.6, seed=0):
    """Return a problem of three variables and their pairs, and y in units of noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    X[:, 1] = 0.7 * X[:, 1] + 0.3 * X[:, 0]
    y = X[:, 0] + X[:, 1] + 0.6 * X[:, 2] + X[:, 0] * X[:, 1] - 0.6 * X[:, 0] * X[:, 2]
    y = (y + noise * rng.normal(size=n)) / noise
    y -= y.mean()
    known = Dictionary("legendre", 2, X.min(axis=0), X.max(axis=0))
    return Rows.of(X, y, np.ones(n)).problem(known, False, PAIRS), y


def log_weight(problem, y, model, beta, variance):
    """Log weight of orders of 3 variables and 3 pairs, by the density of y."""
    mains, pairs = np.array(model[:3]), np.array(model[3:])
    s, t = np.count_nonzero(mains), np.count_nonzero(pairs)
    if not mains[PAIRS[pairs > 0]].all():
        return -np.inf
    values = problem.gram.values
    design = np.concatenate([values[j, :k] for j, k in enumerate(model)])
    covariance = np.eye(len(y)) + variance * design.T @ design
    log_prior = sum(model) * np.log(beta) - np.log(comb(3, s) * comb(comb(s, 2), t))
    half_log = np.linalg.slogdet(covariance)[1] / 2
    return log_prior - half_log - y @ np.linalg.solve(covariance, y) / 2


def distance(problem, y, exact, change=None, seed=0):
    """Total variation between a chain's visits and the exact posterior."""
    prior = Prior.of(problem.gram.ranks, 0.5, 6, variance=2.0, n_pairs=3)
    chain = make_chain((None, problem.gram, y), prior, seed=seed)
    if change == "no hierarchy":
        chain.reader = chain.reader.without_pairs()
    if change == "sets not counted":
        prior.log_sizes[1:] = prior.log_sizes[0]
    if _chain.PROMISING < 6:
        chain.choose_among(np.array([4, 0, 1, 5, 2, 3]))
    chain.expect(20_000)
    chain.advance(20_000)
    shares = visited(chain, 6, 2)
    return total_variation(shares, {model: exact.get(model, 0.0) for model in shares})


def exact_pairs(problem, y):
    models = list(itertools.product(*(range(k + 1) for k in problem.gram.ranks)))
    logs = np.array([log_weight(problem, y, m, 0.5, 2.0) for m in models])
    return dict(zip(models, np.exp(logs - logsumexp(logs)), strict=True))


@pytest.mark.parametrize("n_first", [128, 2])
@pytest.mark.parametrize("change", [None, "no hierarchy", "sets not counted"])
def test_the_chain_has_the_exact_distribution(monkeypatch, n_first, change):
    """Over all models with the variables of their pairs, by enumeration.

    20,000 moves are .03 to .05 away in total variation, over 8 runs; chains that may
    hold a pair alone, or whose prior counts no sets of pairs, .14 to .16.
    """
    monkeypatch.setattr(_chain, "PROMISING", n_first)
    monkeypatch.setattr(_chain, "WINDOW", 2)
    problem, y = small_pairs()
    exact = exact_pairs(problem, y)
    assert (distance(problem, y, exact, change) < 0.08) == (change is None)


def test_functions_of_a_pair_are_beyond_those_of_its_variables():
    """Over weighted rows: no covariance, and standard deviations 1 / (a b)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[:, 1] += X[:, 0]
    weights = rng.integers(1, 4, 400).astype(float)
    known = Dictionary("legendre", 4, X.min(axis=0), X.max(axis=0))
    problem = Rows.of(X, X[:, 0], weights).problem(known, False, PAIRS)
    values = problem.gram.values
    for number, (i, j) in enumerate(PAIRS):
        order = problem.pairs.orders[number]
        assert order > 0
        own = values[3 + number, :order]
        np.testing.assert_allclose(own @ weights, 0.0, atol=1e-8)
        for other in values[i], values[j]:
            np.testing.assert_allclose((own * weights) @ other.T, 0.0, atol=1e-8)
        square = np.diag((own * weights) @ own.T / weights.sum())
        products = problem.pairs.products[number] + 1.0
        assert set(np.round(square, 8)) <= set(np.round(products.prod(1) ** -2, 8))
    again = problem.pairs(X[:7], [2, 0])
    np.testing.assert_allclose(again, values[[5, 3], :, :7], atol=1e-12)


def test_the_smallest_products_come_first():
    first = smallest_products(8, 8, 6).tolist()
    assert first == [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [2, 0]]
    binary = smallest_products(1, 2, 3).tolist()
    assert binary == [[0, 0], [0, 1], [-1, -1]]


def quick(**parameters):
    usual = {"n_iter": 1000, "burn_in": 300, "random_state": 0, "interactions": "auto"}
    return SparseAdditiveGibbsRegressor(**usual | parameters)


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(200, 8, noise=1.0, random_state=0)
    return X, y, *make_friedman1(1000, 8, random_state=1)


@pytest.fixture(scope="module")
def found(friedman):
    return quick().fit(*friedman[:2])


def test_the_one_interaction_is_found(friedman, found):
    """That of the first two variables, which are a fifth of the variance."""
    X, y, new, truth = friedman
    likely = found.pairs_[found.pair_probabilities_ >= 0.5]
    assert likely.tolist() == [[0, 1]]
    assert found.get_support(indices=True).tolist() == [0, 1, 2, 3, 4]
    without = quick(interactions=None).fit(X, y)
    risks = [np.mean((m.predict(new) - truth) ** 2) for m in (found, without)]
    assert risks[0] < risks[1] / 4
    mains, pairs = found.models_[:, :8], found.models_[:, 8:]
    models, numbers = np.nonzero(pairs)
    assert mains[models[:, None], found.pairs_[numbers]].all()


def test_effects_add_up(friedman, found):
    X = friedman[0][:20]
    total = found.intercept_ + sum(found.partial_effects(X, j)[0] for j in range(8))
    total += sum(found.partial_effects(X, tuple(p))[0] for p in found.pairs_)
    np.testing.assert_allclose(total, found.predict(X))
    draws = found.sample_posterior(500, random_state=0)
    assert draws.shape == (500, 8 + 28, 8)
    np.testing.assert_allclose(draws.mean(axis=0), found.coefficients_, atol=0.3)
    std = found.predict(X, return_std=True)[1]
    assert (std > np.sqrt(found.noise_variance_)).all()


@pytest.mark.filterwarnings("ignore:Another seed may select other variables")
@pytest.mark.filterwarnings("ignore:Rows that are neighbors")
def test_without_interactions_none_is_found():
    """Of 28 pairs in each of five tables, whose columns are correlated by .9."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 8)) + 3 * rng.normal(size=(150, 1))
        y = X[:, 0] + np.sin(X[:, 3]) + rng.normal(size=150)
        model = quick(n_iter=500).fit(X, y)
        assert model.pair_probabilities_.max() < 0.5


@pytest.mark.parametrize("seed", [1, 2])
def test_two_variables_without_effects_of_their_own(seed):
    """Chains that begin at no variable do not find them: R-hat would be 2."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (200, 5))
    model = quick().fit(X, X[:, 1] * X[:, 3] + 0.2 * rng.normal(size=200))
    assert model.get_support(indices=True).tolist() == [1, 3]
    assert model.pairs_[model.pair_probabilities_.argmax()].tolist() == [1, 3]
    assert model.pair_probabilities_.max() > 0.99


def test_candidates_are_those_given_or_of_the_most_probable_variables(monkeypatch):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (150, 6)), columns=list("abcdef"))
    y = X["b"] + X["e"] * X["b"] + X["e"] + 0.2 * rng.normal(size=150)
    model = quick(interactions=[("e", "b"), (0, 1), ("b", "e")]).fit(X, y)
    assert model.pairs_.tolist() == [[0, 1], [1, 4]]
    frame = model.interaction_frame()
    assert frame.loc[0, ["first", "second"]].tolist() == ["b", "e"]
    assert frame["probability"].tolist() == sorted(model.pair_probabilities_)[::-1]
    np.testing.assert_array_equal(
        model.partial_effects(X, ("e", "b"))[0], model.partial_effects(X, (1, 4))[0]
    )
    with pytest.raises(ValueError, match=r"feature \('a', 'f'\) is not one of the"):
        model.partial_effects(X, ("a", "f"))
    monkeypatch.setattr("skpacbayes.additive._selection.MOST_PAIRED", 2)
    assert quick().fit(X, y).pairs_.tolist() == [[1, 4]]


def test_what_interactions_do_not_have_is_refused(friedman, found):
    X, y, *_ = friedman
    for name in "partial_fit", "sufficient_statistics", "absorb", "projected_support":
        assert not hasattr(found, name)
        with pytest.raises(AttributeError) as raised:
            getattr(found, name)
        assert f"{name} needs interactions=None" in str(raised.value.__cause__)
    with pytest.raises(NotImplementedError, match="certificate needs"):
        found.certificate()
    for other in {"slab": "l1ball"}, {"sampler": "carlin_chib"}:
        with pytest.raises(ValueError, match=f"{next(iter(other.values()))}"):
            quick(**other).fit(X, y)
    for pairs in [(1, 1)], [(0, 1, 2)], [(3,)], [1, 4], ["ab"]:
        wanted = re.escape(f"got {pairs[0]!r}")
        with pytest.raises(ValueError, match=f"two different variables, {wanted}"):
            quick(interactions=pairs).fit(X, y)


def test_a_pair_is_drawn_as_a_map(friedman, found):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    display = PartialEffectsDisplay.from_estimator(found, friedman[0])
    assert display.features == [0, 1, 2, 3, 4, (0, 1)]
    assert display.names[-1] == ("x0", "x1")
    first, second = display.points[-1]
    row = np.zeros((1, 8))
    row[0, :2] = first[3], second[17]
    effect, std = found.partial_effects(row, (0, 1))
    np.testing.assert_allclose(display.effects[-1][17, 3], effect[0])
    np.testing.assert_allclose(display.stds[-1][17, 3], std[0])
    (colors,) = display.axes_[-1].collections
    np.testing.assert_allclose(colors.get_array().reshape(40, 40), display.effects[-1])
    one = PartialEffectsDisplay.from_estimator(found, features=[(1, 0)])
    assert one.axes_[0].get_ylabel() == "x1"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_draws_of_pairs_are_in_arviz(found):
    pytest.importorskip("arviz", reason="ArviZ is not installed")
    draws = found.to_arviz().posterior["pair_included"]
    assert draws["pair"].to_numpy()[0] == "0, 1"
    means = draws.astype(float).mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(means, found.pair_probabilities_)
