"""Counts: the chain against quadrature, and what users see.

A mean over a chain is compared with the exact one in units of its standard error,
which the means of 40 batches give. Every such score is below 5 in absolute value: by
Student's law with 39 degrees of freedom a right chain fails one of the 40 comparisons
with probability below 1e-3.
"""

import itertools
import math
import pickle

import numpy as np
import pytest
from additive_reference import z_score
from designs import every_two
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.datasets import load_diabetes
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score

from skpacbayes.additive import (
    SparseAdditiveGibbsPoissonRegressor,
    SparseAdditiveGibbsRegressor,
)
from skpacbayes.additive._base import Rows
from skpacbayes.additive._doubts import warn_of_dispersion
from skpacbayes.additive._poisson_regressor import (
    PoissonChain,
    dispersion_of,
    growth_of_dispersion,
    observations,
)
from skpacbayes.additive._rated_chain import ModelSpace, slice_draw
from skpacbayes.plotting import PartialEffectsDisplay

# Chains of few sweeps need not agree.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BETA, VARIANCE, INTERCEPT_VARIANCE = 0.4, 1.5, 100.0
NODES, LOG_HERMITE = np.polynomial.hermite_e.hermegauss(21)
LOG_HERMITE = np.log(LOG_HERMITE)
RANKS = np.array([2, 1])


def cells(level):
    """Two functions of a variable and one of another, in six places, and counts."""
    values = np.zeros((2, 2, 6))
    values[0, 0] = np.linspace(-1.2, 1.2, 6)
    values[0, 1] = 0.5 * (values[0, 0] ** 2 - 0.7)
    values[1, 0] = [0.8, -1.1, 0.3, -0.4, 1.2, -0.8]
    targets = np.array([0.0, 1.0, 0.5, 3.0, 2.0, 6.0]) * level
    weights = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    return values, targets, weights


def exact_posterior(values, targets, exponents):
    """Probability of each model, and means of the rows, by quadrature.

    Gauss-Hermite in the intercept and the coefficients of a model, centred and scaled
    by the mode and the Hessian; the nodes are 1.3 times as far apart, for the tails.
    """
    base = math.log(exponents @ targets / exponents.sum())
    found, means = {}, []
    for orders in itertools.product(*(range(rank + 1) for rank in RANKS)):
        rows = [values[j, k] for j in range(2) for k in range(orders[j])]
        design = np.array([np.ones(values.shape[2]), *rows])
        variances = np.array([INTERCEPT_VARIANCE] + [VARIANCE] * len(rows))
        mode = np.zeros(len(design))
        for _ in range(100):
            mean = exponents * np.exp(base + mode @ design)
            gradient = design @ (exponents * targets - mean) - mode / variances
            hessian = (design * mean) @ design.T + np.diag(1 / variances)
            mode = mode + np.linalg.solve(hessian, gradient) / 2
        root = 1.3 * np.linalg.inv(np.linalg.cholesky(hessian)).T
        dimension = len(mode)
        nodes = np.array(list(itertools.product(NODES, repeat=dimension)))
        rule = np.array(list(itertools.product(LOG_HERMITE, repeat=dimension)))
        points = mode + nodes @ root.T
        scores = base + points @ design
        logs = (targets * scores - np.exp(scores)) @ exponents
        logs -= 0.5 * (points**2 / variances).sum(axis=1)
        logs -= 0.5 * np.log(2 * math.pi * variances).sum()
        logs += rule.sum(axis=1) + 0.5 * (nodes**2).sum(axis=1)
        evidence = logsumexp(logs)
        means.append(np.exp(logs - evidence) @ np.exp(scores))
        evidence += np.linalg.slogdet(root)[1] + sum(orders) * math.log(BETA)
        size = np.count_nonzero(orders)
        found[orders] = evidence - math.log(math.comb(2, size))
    shares = np.array(list(found.values()))
    shares = np.exp(shares - logsumexp(shares))
    return dict(zip(found, shares, strict=True)), shares @ np.array(means)


@pytest.mark.slow
@pytest.mark.parametrize(("level", "exponent"), [(0.3, 1.0), (1.0, 0.6), (12.0, 1.0)])
def test_the_chain_follows_the_posterior(level, exponent):
    """Models and means, of few and of many counts, of whole numbers and of others."""
    values, targets, weights = cells(level)
    models, means = exact_posterior(values, targets, exponent * weights)
    rng = np.random.default_rng(0)
    space = ModelSpace(values, RANKS, BETA, 2, VARIANCE)
    chain = PoissonChain(space, targets, exponent * weights, rng)
    chain.settle()
    chain.advance(60, keep=False)
    visits, seen = [], []
    for _ in range(1000):
        chain.advance(1)
        orders = np.zeros(2, dtype=int)
        features, levels = chain.model
        orders[features] = levels
        visits.append(tuple(orders.tolist()))
        seen.append(np.exp(chain.log_means))
    scores = [
        z_score([visit == model for visit in visits], probability)
        for model, probability in models.items()
        if probability > 0.02
    ]
    scores += [z_score(np.array(seen)[:, row], means[row]) for row in (0, 2, 5)]
    assert np.abs(scores).max() < 5
    tried, accepted = chain.moves
    assert accepted > 0.6 * tried
    assert chain.kept[-1].loss >= 0
    deviance = d2_tweedie_score(targets, seen[-1], sample_weight=weights, power=1)
    null = np.full(6, weights @ targets / weights.sum())
    ratio = targets / null
    total = weights @ (targets * np.log(np.where(ratio > 0, ratio, 1)) - targets + null)
    assert_allclose(chain.kept[-1].loss, (1 - deviance) * total / weights.sum())


@pytest.mark.slow
def test_where_the_chain_begins_does_not_matter():
    """Expanded about means that are wrong by factors of 3, it follows the same law."""
    values, targets, weights = cells(2.0)
    models, means = exact_posterior(values, targets, weights)
    rng = np.random.default_rng(1)
    space = ModelSpace(values, RANKS, BETA, 2, VARIANCE)
    chain = PoissonChain(space, targets, weights, rng)
    wrong = np.log(3.0) * np.array([1, -1, 1, -1, 1, -1])
    chain._expand(np.log(np.maximum(targets, 0.5)) + wrong)
    visits, seen = [], []
    for _ in range(1500):
        chain.sweep(4)
        visits.append(len(chain.model[0]))
        seen.append(np.exp(chain.log_means))
    expected = sum(np.count_nonzero(m) * share for m, share in models.items())
    assert abs(z_score(visits, expected)) < 5
    for row in range(6):
        assert abs(z_score(np.array(seen)[:, row], means[row])) < 5


def made(**parameters):
    return SparseAdditiveGibbsPoissonRegressor(
        **{
            "n_iter": 60,
            "burn_in": 30,
            "n_chains": 1,
            "max_order": 4,
            "random_state": 0,
            **parameters,
        }
    )


def simulated(n=300, p=8, level=0.0, spread=0.0, seed=0):
    """Counts by smooth functions of the first three variables, and their means."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, p))
    means = np.exp(level + np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.7 * X[:, 2])
    varying = rng.gamma(1 / spread, spread, size=n) if spread else 1.0
    return X, rng.poisson(varying * means), means


@pytest.mark.slow
def test_effects_means_and_deviations():
    X, y, means = simulated(n=600)
    model = made(n_iter=150).fit(X, y)
    assert_array_equal(model.get_support(indices=True), [0, 1, 2])
    found, std = model.predict(X, return_std=True)
    assert np.mean(np.log(found / means) ** 2) < 0.05
    assert_allclose(((y - found) ** 2).sum(), (std**2).sum(), rtol=0.2)
    assert (std**2 > found).all()
    assert 0.8 < model.dispersion_ < 1.25
    peer = PoissonRegressor(alpha=0.1).fit(X, y)
    assert model.score(X, y) > peer.score(X, y) + 0.1
    draws = model.sample_posterior(2000, random_state=0)
    error = draws.std(axis=0) / math.sqrt(2000) + 1e-12
    assert (abs(draws.mean(axis=0) - model.coefficients_) < 5 * error).all()
    effect, band = model.partial_effects(X, 2)
    truth = 0.7 * (X[:, 2] - X[:, 2].mean())
    assert (abs(effect - truth) < 4 * band + 0.02).all()
    support = model.projected_support(X, indices=True)
    assert sorted(support.tolist()) == [0, 1, 2]
    display = PartialEffectsDisplay.from_estimator(model, X)
    assert display.features == [0, 1, 2]
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), found)
    assert math.isclose(model.score(X, y), d2_tweedie_score(y, found, power=1))


@pytest.mark.parametrize("prediction", ["randomized", "map"])
def test_one_function(prediction):
    X, y, _ = simulated()
    model = made(prediction=prediction).fit(X, y)
    present = model.coefficients_.any(axis=1)
    assert (
        model._answer().posterior.orders().astype(bool).tolist().count(present.tolist())
    )
    values = model._answer().values(X, range(X.shape[1]))
    scores = model.intercept_ + np.tensordot(model.coefficients_, values, 2)
    assert_allclose(model.predict(X), np.exp(scores))


@pytest.mark.slow
def test_exposure_is_a_weight():
    """Counts over exposures, weighed by these: its unit changes the unit of the mean.

    Rows of half the exposure and of the same rate say half as much.
    """
    X, _, means = simulated()
    rng = np.random.default_rng(1)
    exposure = rng.integers(1, 9, size=len(X)) / 4
    claims = rng.poisson(exposure * means)
    settings = {"n_iter": 12, "burn_in": 8}
    years = made(**settings).fit(X, claims / exposure, exposure)
    months = made(**settings).fit(X, claims / (16 * exposure), 16 * exposure)
    assert_allclose(16 * months.predict(X), years.predict(X), rtol=1e-6)
    assert_allclose(months.dispersion_, years.dispersion_, rtol=1e-6)
    assert_allclose(months.inverse_temperature_, 16 * years.inverse_temperature_)
    many = made().fit(X, claims / (1e5 * exposure), 1e5 * exposure)  # no warning
    assert np.mean(np.log(1e5 * many.predict(X) / means) ** 2) < 0.1


OPTIONS = [
    {},
    {"max_order": 8},
    {"basis": "cosine", "inverse_temperature": "likelihood"},
    {"categorical_features": [3]},
    {"interactions": [(0, 1)]},
]


def far_rows(n, rng):
    """Rows of features with heavy tails, and the logarithms of their means."""
    X = rng.standard_t(3, size=(n, 4))
    X[:, 3] = rng.integers(0, 3, size=n)
    return X, 0.7 * np.tanh(X[:, 0]) + 0.5 * np.sin(2 * X[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
@pytest.mark.parametrize("options", OPTIONS, ids=[str(each) for each in OPTIONS])
def test_no_unit_of_exposure_changes_the_answer(options, equal):
    """Inhabitants, and millions of inhabitants: only the unit of the rate changes."""
    rng = np.random.default_rng(0)
    X, logs = far_rows(60, rng)
    exposure = np.full(60, 0.75) if equal else rng.uniform(0.5, 1.5, size=60)
    claims = rng.poisson(4 * exposure * np.exp(logs))
    new = far_rows(200, rng)[0]

    def fit(unit):
        model = made(n_iter=8, burn_in=4, **options)
        return model.fit(X, claims / exposure / unit, exposure * unit)

    one = fit(1.0)
    for unit in (2.0**-28, 2.0**-10, 2.0**20):
        other = fit(unit)
        assert_allclose(unit * other.predict(new), one.predict(new), rtol=1e-8)
        assert_allclose(other.dispersion_, one.dispersion_, rtol=1e-8)
        assert_allclose(
            other.inclusion_probabilities_, one.inclusion_probabilities_, atol=1e-12
        )


@pytest.mark.slow
def test_rates_of_whole_inhabitants_have_the_dispersion_of_their_counts():
    """Rates below a millionth are not whole numbers, and weights no repetitions."""
    X, y, _ = simulated(level=2.0, spread=0.4)
    people = np.random.default_rng(0).integers(9.9e8, 1.01e9, size=len(y))
    rates = made().fit(X, y / people, people.astype(float))
    counts = made().fit(X, y)
    assert counts.dispersion_ > 2
    assert_allclose(rates.dispersion_, counts.dispersion_, rtol=0.2)


@pytest.mark.slow
def test_functions_do_not_explode_between_rows_of_large_exposure():
    """Functions that are large nowhere at the rows, but between them, are left out."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, logs = far_rows(40, rng)
        people = 10 ** rng.uniform(3, 7, size=40)
        deaths = rng.poisson(3e-5 * people * np.exp(logs))
        model = made(max_order=8).fit(X, deaths / people, people)
        new, logs = far_rows(500, rng)
        within = ((new >= X.min(axis=0)) & (new <= X.max(axis=0))).all(axis=1)
        found = np.log(model.predict(new[within]) / 3e-5)
        assert np.mean((found - logs[within]) ** 2) < 1.0


def test_dispersion_counts_repeated_rows():
    """A weight is a number of rows where it and the targets are whole."""
    _, y, means = simulated(spread=1.0)
    y = y.astype(float)
    weights = np.random.default_rng(0).integers(1, 4, size=len(y)).astype(float)
    again = np.repeat(np.arange(len(y)), weights.astype(int))
    rows = Rows(None, y[again], np.ones(len(again)))
    weighted = Rows(None, y, weights)
    assert_allclose(
        dispersion_of(weighted, means, 3.0), dispersion_of(rows, means[again], 3.0)
    )
    rates = Rows(None, y / weights, weights)
    assert_allclose(
        dispersion_of(rates, means / weights, 3.0),
        dispersion_of(Rows(None, y, np.ones(len(y))), means, 3.0),
        rtol=0.2,  # but for the weights of its correction
    )


def test_overdispersed_counts():
    """With "auto" the dispersion divides the exponent; "likelihood" warns."""
    X, y, means = simulated(level=2.0, spread=0.4, n=400)
    model = made().fit(X, y)
    assert 3 < model.dispersion_ < 10
    dispersions = 1 + model.dispersion_growth_ * model.predict(X)
    assert_allclose(model.inverse_temperature_, sum(1 / dispersions), rtol=0.1)
    found, std = model.predict(X, return_std=True)
    assert_allclose(((y - found) ** 2 / std**2).mean(), 1, rtol=0.25)
    with pytest.warns(UserWarning, match="times as much as Poisson's"):
        sure = made(inverse_temperature="likelihood").fit(X, y)
    assert sure.inverse_temperature_ == len(y)
    assert sure.get_support().sum() > model.get_support().sum()
    error = np.log(found / means)
    assert np.mean(error**2) < np.mean(np.log(sure.predict(X) / means) ** 2)


def overdispersed(kind, means, rng):
    """Counts of these means, and the growth of their dispersion."""
    if kind == "negative binomial":
        return rng.poisson(means * rng.gamma(2.0, 0.5, size=len(means))), 0.5
    if kind == "zeros":  # of variance m + m^2 share / (1 - share)
        return rng.poisson(means / 0.6) * (rng.random(len(means)) < 0.6), 0.4 / 0.6
    if kind == "log-normal":
        rates = means * np.exp(0.6 * rng.normal(size=len(means)) - 0.18)
        return rng.poisson(rates), math.expm1(0.36)
    if kind == "constant":
        return rng.negative_binomial(means / 2, 1 / 3), 0.0
    return rng.poisson(means), 0.0


KINDS_OF_COUNTS = ["negative binomial", "zeros", "log-normal", "constant", "poisson"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_COUNTS)
def test_dispersion_that_grows_with_the_mean_is_told_from_constant(kind):
    """In 40 of 40 tables of 2,000 rows; the growth is right within a third."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        means = np.exp(rng.normal(size=2000) + 1.0)
        y, growth = overdispersed(kind, means, rng)
        found = growth_of_dispersion(Rows(None, y, np.ones(2000)), means, 0.0)
        assert_allclose(found, growth, rtol=0.33)
        twice = Rows(None, y, np.full(2000, 2.0))  # as repeated; one row less for means
        assert_allclose(growth_of_dispersion(twice, means, 0.0), found, rtol=1e-2)
        years = rng.integers(1, 9, size=2000) + 0.5
        rates = Rows(None, y / years, years)
        same = growth_of_dispersion(rates, means / years, 0.0)
        assert_allclose(same, found, rtol=1e-9)


@pytest.mark.parametrize("level", [1e2, 1e5, 1e8, 1e10])
def test_dispersion_of_counts_of_any_size(level):
    """Constant dispersions are told from growing ones, small and large."""
    rng = np.random.default_rng(2)
    means = level * np.exp(rng.normal(size=300))
    for constant in (0.0, 2.0, level / 20):
        rates = means if constant == 0 else rng.gamma(means / constant, constant)
        rows = Rows(None, rng.poisson(rates).astype(float), np.ones(300))
        assert growth_of_dispersion(rows, means, 0.0) == 0
    for growth in (0.5, 20 / level):
        rates = means * rng.gamma(1 / growth, growth, size=300)
        rows = Rows(None, rng.poisson(rates).astype(float), np.ones(300))
        assert_allclose(growth_of_dispersion(rows, means, 0.0), growth, rtol=0.33)


def test_rows_that_count_less_are_not_taken_for_unequal_weights():
    """The dispersion gives nearly all of the weight to thirty rows of small counts."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 2))
    X[:, 0] = rng.random(600) < 0.95
    means = np.exp(7.0 * X[:, 0] - 1.5)
    y = rng.poisson(means * rng.gamma(1.0, 1.0, size=600))
    model = made().fit(X, y, sample_weight=np.full(600, 0.9))  # warnings are errors
    assert model.dispersion_growth_ > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_COUNTS)
def test_one_far_count_is_told_of(kind):
    """Without it there is no warning of 20 tables; warnings are errors."""
    rng = np.random.default_rng(3)
    for number in range(20):
        means = np.exp(1.0 + 0.8 * rng.normal(size=200))
        y = overdispersed(kind, means, rng)[0].astype(float)
        rows = Rows(None, y, np.ones(200))
        growth = growth_of_dispersion(rows, means, 0.0)
        dispersion = dispersion_of(rows, means, 0.0)
        warn_of_dispersion(*observations(rows, means), dispersion, growth)
        y[number] = 10_000.0
        growth = growth_of_dispersion(rows, means, 0.0)
        dispersion = dispersion_of(rows, means, 0.0)
        with pytest.warns(UserWarning, match="One count, 10000 where .* is expected"):
            warn_of_dispersion(*observations(rows, means), dispersion, growth)
    X = rng.integers(2, size=(200, 3))  # no effect can follow one row
    with pytest.warns(UserWarning, match="of the dispersion: effects may be hidden"):
        made().fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_COUNTS)
def test_deviations_of_small_and_of_large_counts(kind):
    """Squared errors are the variances in both halves; noise selects no variable.

    The mean of 1,000 squared errors over their variances has a standard deviation of
    about .15 for the smaller and .1 for the larger counts, as the growth has.
    """
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(3200, 12))
    means = np.exp(1.0 + 2.5 * X[:, 0])
    y, growth = overdispersed(kind, means, rng)
    model = made(n_iter=200, burn_in=100).fit(X[:1200], y[:1200])
    assert (model.dispersion_growth_ > 0) == (growth > 0)
    assert_array_equal(model.get_support(indices=True), [0])
    found, std = model.predict(X[1200:], return_std=True)
    squares = (y[1200:] - found) ** 2 / std**2
    large = found > np.median(found)
    assert_allclose([squares[large].mean(), squares[~large].mean()], 1, rtol=0.45)
    total = 1200 / model.inverse_temperature_
    expected = 1 + model.dispersion_growth_ * means[:1200]
    if growth:
        assert_allclose(total, 1 / np.mean(1 / expected), rtol=0.1)


@pytest.mark.slow
def test_poisson_counts_are_not_taken_for_dispersed():
    for level in (-2.5, 4.0):
        X, y, _ = simulated(level=level)
        model = made(max_order=8, inverse_temperature="likelihood")
        assert 0.6 < model.fit(X, y).dispersion_ < 1.4  # no warning
        assert made(max_order=8).fit(X, y).inverse_temperature_ > 0.75 * len(y)


@pytest.mark.parametrize("inverse_temperature", ["auto", "likelihood"])
def test_predictions_are_not_limited_by_the_largest_count(inverse_temperature):
    """Within a given range of the features an effect continues beyond the rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    y = rng.poisson(np.exp(1 + 1.5 * X[:, 0] + X[:, 1]))
    model = made(
        inverse_temperature=inverse_temperature,
        max_order=1,
        feature_range=(-2.0, 2.0),
        slab_scale=2.0,
    ).fit(X, y)
    mean, std = model.predict(np.array([[2.0, 2.0]]), return_std=True)
    assert mean > 5 * y.max()
    assert abs(math.exp(6) - mean) < 3 * std


@pytest.mark.slow
def test_counts_without_an_event_or_with_large_numbers():
    X, y, _ = simulated()
    with pytest.warns(UserWarning, match="All of the .* counts are zero"):
        nothing = made().fit(X, np.zeros(len(X)))
    assert (nothing.predict(X) < 0.02).all()
    assert (nothing.predict(X) > 0).all()
    large = made().fit(X, 1e6 * y)
    assert np.isfinite(large.predict(X)).all()
    one = np.zeros(len(X))
    one[0] = 1000.0
    influence = pytest.warns(UserWarning, match="larger in rows with a large influence")
    with influence, pytest.warns(UserWarning, match="One count, 1000 where"):
        lonely = made().fit(X, one)
    mean, std = lonely.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    same = made().fit(np.ones_like(X), y)
    assert_allclose(same.predict(X[:1]), y.mean(), rtol=0.05)
    assert not same.get_support().any()


@pytest.mark.filterwarnings("ignore:All of the .* counts are zero")
@pytest.mark.parametrize(
    ("value", "n", "way"),
    every_two(
        [0.0, 0.7, 5.0, 1e-9, 1e6],
        [4, 100],
        ["plain", "weights", "pairs", "spline", "map"],
    ),
)
def test_equal_targets_select_nothing(value, n, way):
    """As in `SparseAdditiveGibbsRegressor`; each row has the same prediction."""
    X = np.random.default_rng(n).normal(size=(n, 3))
    own = {"spline": {"basis": "spline"}, "map": {"prediction": "map"}}
    own["pairs"] = {"interactions": "auto"}
    settings = {"n_iter": 20, "burn_in": 10, "random_state": 0, **own.get(way, {})}
    weights = np.linspace(0.3, 2.0, n) if way == "weights" else None
    model = SparseAdditiveGibbsPoissonRegressor(**settings)
    model.fit(X, np.full(n, value), sample_weight=weights)
    assert not model.inclusion_probabilities_.any()
    assert not model.pair_probabilities_.any()
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(std).all()
    assert_array_equal(mean, mean[0])


def test_targets_need_not_be_whole():
    """As of scikit-learn's `PoissonRegressor`."""
    X, y = load_diabetes(return_X_y=True)
    model = made(n_iter=100).fit(X, y / 10)
    assert model.score(X, y / 10) > PoissonRegressor().fit(X, y / 10).score(X, y / 10)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([-1.0, 2.0], "y must be non-negative counts, got -1."),
        ([math.nan, 2.0], "contains NaN"),
        ([math.inf, 2.0], "contains infinity"),
        ([1e12, 1e12], "must sum to less than 1e"),
        ([1e300, 1e300], "must sum to less than 1e"),
    ],
)
def test_targets_that_are_no_counts(y, message):
    with pytest.raises(ValueError, match=message):
        made().fit([[0.0], [1.0]], y)


@pytest.mark.filterwarnings("ignore:feature .* rows is outside")
def test_float_errors_do_not_matter():
    X, y, _ = simulated()
    expected = made(n_iter=10).fit(X, y).predict(30 * X)
    with np.errstate(all="raise"):
        found = made(n_iter=10).fit(X, y)
        assert_array_equal(found.predict(30 * X), expected)
        found.predict(1e4 * X, return_std=True)


def test_slice_sampling_ends_from_a_start_that_is_out_of_reach():
    """There the density nearly vanishes, and is larger however small the length is."""

    def log_density(log_length):
        return 2 * log_length - 1e13 * math.exp(min(log_length, 600.0))

    rng = np.random.default_rng(0)
    found = [0.0]
    for _ in range(200):
        found.append(slice_draw(log_density, found[-1], 0.5, rng))
    # The length is gamma distributed: shape 2, mean 2e-13; the tolerance is six errors.
    assert abs(np.log10(np.exp(found[50:])).mean() + 12.8) < 0.3


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("level", [0.0, 4.0])
@pytest.mark.parametrize(
    "kind", [SparseAdditiveGibbsPoissonRegressor, SparseAdditiveGibbsRegressor]
)
def test_equal_targets_have_a_score(kind, level):
    """Of a fit on them and of one on others; a search over parameters goes on then."""
    X, equal = np.random.default_rng(0).normal(size=(20, 2)), np.full(20, level)
    settings = {"n_iter": 20, "burn_in": 20, "random_state": 0}
    for targets in (equal, np.arange(20)):
        model = kind(**settings).fit(X, targets)
        assert 0 <= model.score(X, equal) <= 1
        assert 0 <= model.score(X, equal.tolist(), np.ones(20)) <= 1
