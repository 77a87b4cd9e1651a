"""Columns of several kinds: exact posteriors, choice, streams and bad input."""

import itertools
import warnings

import numpy as np
import pytest
from hmm_reference import Paths, invariant_law, largest_score
from hmm_rows import agreement
from hmm_rows import choosing as markov
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import OrdinalEncoder

from skpacbayes.hmm import _dirichlet_process_product_chain as _chain
from skpacbayes.hmm import _dirichlet_process_product_model as _model
from skpacbayes.hmm._dirichlet_process_forecast import state_forecasts, states_now
from skpacbayes.hmm._dirichlet_process_posterior import log_emissions, log_predictives
from skpacbayes.hmm._dirichlet_process_product_answers import distribution_at
from skpacbayes.hmm._dirichlet_process_product_chain import ProductChain
from skpacbayes.hmm._dirichlet_process_product_model import (
    ProductModel,
    ProductParameters,
    ProductUnits,
)
from skpacbayes.hmm._dirichlet_process_series import Units
from skpacbayes.hmm._dirichlet_process_settings import Models

FALSE_ALARM = 1e-4
KINDS = "categorical", "normal", "poisson", "normal"
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .* disagree"),
    pytest.mark.filterwarnings("ignore:The rows hardly tell"),
]


def model_of(kinds, n_categories, n_atoms=1, **options):
    defaults = {
        "concentration": 1.0,
        "transition_prior": 0.8,
        "min_transition": 0.0,
        "stationary": False,
    }
    return ProductModel(2, n_atoms, kinds, n_categories, **(defaults | options))


def units_of(kinds, means, n_categories, rounding=0.0):
    """Units in which normal features are as they are."""
    d = kinds.count("normal")
    normal = Units(np.zeros(d), np.ones(d), np.full(d, rounding))
    values = tuple(map(np.arange, map(float, n_categories)))
    return ProductUnits(kinds, normal, np.array(means), values)


def counts(n_samples=400, seed=0, means=(2.0, 9.0)):
    """Two states of Poisson counts."""
    rng = np.random.default_rng(seed)
    states = (rng.random(n_samples) > 0.95).cumsum() % 2
    return rng.poisson(np.array(means)[states])[:, None].astype(float), states


def categories(n_samples=400, seed=0):
    """Two states of two features of the categories -1, 0 and 5."""
    rng = np.random.default_rng(seed)
    states = (rng.random(n_samples) > 0.95).cumsum() % 2
    tables = np.array([[0.8, 0.15, 0.05], [0.1, 0.2, 0.7]])
    drawn = [rng.choice([-1.0, 0.0, 5.0], 2, p=tables[state]) for state in states]
    return np.array(drawn), states


def mixed(n_samples=400, seed=0):
    """Two states of a measurement, of counts and of categories -1, 0 and 5."""
    named, states = categories(n_samples, seed)
    rng = np.random.default_rng(seed)
    values = rng.normal(1000.0 + 2.0 * states, 1.0)
    whole = rng.poisson(np.array([3.0, 5.0])[states])
    return np.column_stack([values, whole, named[:, 0]]), states


MIXED = ["normal", "poisson", "categorical"]


# The posterior of the states, by enumeration.


def log_dirichlet_multinomial(counts, weight):
    """Log probability of a sequence of categories, the table summed out."""
    counts = np.asarray(counts, dtype=float)
    total = counts.sum(axis=-1)
    n = counts.shape[-1]
    logs = (gammaln(counts + weight) - gammaln(weight)).sum(axis=-1)
    return logs + gammaln(n * weight) - gammaln(n * weight + total)


def log_counts(y, mean):
    """Log probability of the counts of a state, their mean and its rate summed out."""
    if not len(y):
        return 0.0

    def density(rate):
        logs = stats.gamma.logpdf(rate, 1.0, scale=1 / mean) + np.log(rate)
        logs += gammaln(1 + y.sum()) - (1 + y.sum()) * np.log(rate + len(y))
        return np.exp(logs)

    return np.log(quad(density, 0, np.inf)[0]) - gammaln(y + 1.0).sum()


def log_normals(y, model, rounding):
    """Log density of the values of a state, all parameters of their atom summed out.

    Given its variance all is Gaussian; the scale of the variances has a closed form.
    """
    n = len(y)
    logs, step = np.linspace(-12, 12, 2401, retstep=True)
    variances = np.exp(logs)
    shape, of_scale = model.shape, model.scale_shape
    density = -(shape + 1) * logs + of_scale * np.log(model.scale_rate)
    density -= (shape + of_scale) * np.log(model.scale_rate + 1 / variances)
    density += gammaln(shape + of_scale) - gammaln(shape) - gammaln(of_scale)
    of_mean = variances / model.mean_count + model.location_variance
    squares = y @ y - of_mean * y.sum() ** 2 / (variances + n * of_mean)
    density -= 0.5 * (squares + n * rounding) / variances
    density -= 0.5 * ((n - 1) * logs + np.log(variances + n * of_mean))
    return logsumexp(density + logs) + np.log(step) - 0.5 * n * np.log(2 * np.pi)


@pytest.mark.slow
def test_the_posterior_of_states_is_exact():
    """Shapes, tables, means, rates and transitions summed out, for all 64 paths."""
    X = np.array(
        [
            [0, np.nan, 0, 2, 2, 1],
            [0.1, -0.3, 0.8, 2.1, np.nan, 1.0],
            [0, 2, 1, np.nan, 9, 4],
        ]
    ).T
    kinds, rounding = ("categorical", "normal", "poisson"), 0.02
    units = units_of(kinds, [3.0], [3], rounding)
    model = model_of(kinds, (3,))
    logs = []
    paths = np.array(list(itertools.product(range(2), repeat=len(X))))
    for path in paths:
        moves = np.zeros((2, 2))
        np.add.at(moves, (path[:-1], path[1:]), 1)
        log = log_dirichlet_multinomial(moves, 0.8).sum() - np.log(2)
        for state in range(2):
            own = [column[(path == state) & ~np.isnan(column)] for column in X.T]
            table = np.bincount(own[0].astype(int), minlength=3)
            log += log_dirichlet_multinomial(table, 0.5)
            log += log_normals(own[1], model.normals, rounding)
            log += log_counts(own[2], 3.0)
        logs.append(log)
    posterior = np.exp(logs - logsumexp(logs))
    same = paths[:, :, None] == paths[:, None]
    expected = np.einsum("p,pst->st", posterior, same)

    rows = units.learning_rows(X, [0, len(X)])
    chain = ProductChain(rows, model, np.random.default_rng(0))
    together = []
    for _ in range(5000):
        chain.sweep()
        together.append(chain.states[:, None] == chain.states)
    batches = np.reshape(together, (50, -1, 6, 6)).mean(axis=1)
    upper = np.triu_indices(6, 1)
    error = batches.std(axis=0, ddof=1)[upper] / np.sqrt(50)
    scores = (batches.mean(axis=0) - expected)[upper] / error
    assert np.abs(scores).max() < largest_score(15, FALSE_ALARM, n_batches=50)
    assert np.ptp(expected[upper]) > 0.1  # and the rows say something


# The joint distribution of everything.


def joint_scores(n_copies=800, seed=1):
    """Scores of how far two sweeps move points drawn from the model."""
    rng = np.random.default_rng(seed)
    options = {"n_atoms": 3, "stationary": True, "min_transition": 0.1}
    prior = {"mean_count": 0.3, "shape": 3.0, "scale_shape": 2.0, "scale_rate": 3.0}
    model = model_of(KINDS, (3,), location_variance=3.0, **options, **prior)
    units = units_of(KINDS, [3.0], [3])
    before, after = [], []
    for _ in range(n_copies):
        draw, states, rows = joint_draw(model, units, rng)
        before.append(statistics_of(draw, states, rows))
        chain = ProductChain(rows, model, rng, draw)
        chain.sweep()
        chain.sweep()
        after.append(statistics_of(chain.parameters, chain.states, rows))
    steps = np.array(after) - before
    spread = steps.std(axis=0, ddof=1)
    scores = np.sqrt(n_copies) * steps.mean(axis=0)[spread > 0] / spread[spread > 0]
    return scores, largest_score(len(scores), FALSE_ALARM)


@pytest.mark.slow
def test_a_sweep_leaves_the_joint_distribution():
    """Several atoms: points drawn from the model are moved, and stay draws of it."""
    scores, bound = joint_scores()
    assert np.abs(scores).max() < bound


def joint_draw(model, units, rng, n_rows=6):
    """Parameters, states and rows drawn from the model."""
    k, n_atoms = model.n_states, model.n_atoms
    while True:
        transitions = rng.dirichlet(np.full(k, model.transition_prior), k)
        if transitions.min() >= model.min_transition:
            break
    sticks = rng.beta(1.0, model.concentration, (k, n_atoms))
    sticks[:, -1] = 1.0
    before = np.cumprod(np.hstack([np.ones((k, 1)), 1 - sticks[:, :-1]]), axis=1)
    tables = rng.dirichlet(np.full(3, 0.5), (k, n_atoms))
    rates = rng.gamma(1.0, 1 / units.means, (k, 1))
    counts = rng.gamma(1.0, 1 / rates[:, None], (k, n_atoms, 1))
    natural = [np.log(counts), -counts, np.log(tables.clip(1e-300))]
    scales = rng.gamma(model.scale_shape, 1 / model.scale_rate, (k, 2))
    origins = rng.normal(0, model.location_variance**0.5, (k, 2))
    variances = scales[:, None] / rng.gamma(model.shape, 1.0, (k, n_atoms, 2))
    noise = rng.normal(size=variances.shape)
    means = origins[:, None] + np.sqrt(variances / model.mean_count) * noise
    start = invariant_law(transitions)
    with np.errstate(divide="ignore"):
        log_weights = np.log(sticks * before)
    draw = ProductParameters(
        *(transitions, start, log_weights, np.concatenate(natural, axis=-1), rates),
        *(np.ones((k, n_atoms), bool), np.ones(k, dtype=np.int64), means),
        *(np.eye(2) / np.sqrt(variances)[..., None], origins, scales),
    )
    states = np.empty(n_rows, dtype=int)
    values = np.empty((n_rows, 4))
    for t in range(n_rows):
        states[t] = rng.choice(k, p=transitions[states[t - 1]] if t else start)
        atom = states[t], rng.choice(n_atoms, p=np.exp(log_weights[states[t]]))
        values[t, 0] = rng.choice(3, p=tables[atom])
        values[t, [1, 3]] = rng.normal(means[atom], np.sqrt(variances[atom]))
        values[t, 2] = rng.poisson(counts[atom][0])
    values[2, 0] = values[0, 1] = values[5, 2] = np.nan
    values[4] = np.nan
    return draw, states, units.rows(values, [0, n_rows])


def statistics_of(draw, states, rows):
    """Functions of everything with light tails."""
    weights = np.exp(draw.log_weights)
    indicators = np.eye(2)[states]
    logs = np.log(np.einsum("jlff->jlf", draw.factors))
    bounded = np.concatenate([draw.natural, draw.means, logs], axis=-1)
    bounded = np.tanh(bounded / 3)
    values = np.tanh(np.nan_to_num(rows.values) / 3)
    base = np.hstack([draw.rates, draw.origins, np.log(draw.scales)])
    base = np.tanh(base / 2)
    mean = (weights[..., None] * bounded).sum(axis=1)
    parts = [
        *(draw.transitions, draw.transitions**2, draw.start, weights, weights**2),
        *(indicators, bounded, base, base**2, mean, indicators.T @ values),
        np.einsum("kp,kf->kpf", mean, indicators.T @ values),
        np.einsum("kp,kf->kpf", mean, indicators.T @ values**2),
        np.einsum("kf,kp->kfp", base, mean),
        draw.transitions * (indicators[:-1].T @ indicators[1:]),
    ]
    return np.concatenate([np.ravel(part) for part in parts])


def forgetting_normals(monkeypatch):
    """States and atoms drawn without a look at normal features."""
    monkeypatch.setattr(_chain, "add_normals", lambda *given: None)


def of_another_prior(name, **change):
    """A part of the sweep that has another prior."""

    def wrong(monkeypatch):
        right = getattr(_chain, name)

        def drawn(*given):
            *parts, model, rng = given
            return right(*parts, model._replace(**change), rng)

        monkeypatch.setattr(_chain, name, drawn)

    return wrong


def of_another_weight(name, value):
    """A constant of the prior of counts or categories that is another."""
    return lambda monkeypatch: monkeypatch.setattr(_model, name, value)


def swapping_at_another_price(monkeypatch):
    """Atoms swapped under another concentration."""
    right = _chain.swap_neighbors
    monkeypatch.setattr(
        _chain, "swap_neighbors", lambda *given: right(*given[:3], 6.0, given[4])
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "n_copies"),
    [
        (forgetting_normals, 200),
        (of_another_prior("draw_atoms", mean_count=2.0), 400),
        (of_another_weight("CATEGORY_WEIGHT", 1.5), 450),
        (of_another_weight("RATE_SHAPE", 2.0), 300),
        (swapping_at_another_price, 300),
    ],
)
def test_the_joint_distribution_sees_mistakes(mistake, n_copies, monkeypatch):
    mistake(monkeypatch)
    scores, bound = joint_scores(n_copies)
    assert np.abs(scores).max() > bound


@pytest.mark.parametrize("missing", [False, True])
def test_every_path_of_counts(missing):
    """Filter, smoother and score against all paths, by Poisson probabilities."""
    X, _ = counts()
    model = markov(emission="poisson", startprob="dirichlet", n_chains=1).fit(X)
    new = np.array([[3.0], [12.0], [0.0], [7.0], [1.0]])
    if missing:
        new[2] = np.nan
    found = model._answer()
    scores, smoothed = [], []
    draws = found.used_draws()
    for draw in draws:
        logs = np.zeros((5, 2))
        weights = np.exp(draw.log_weights)
        for j in range(2):
            means = np.exp(draw.natural[j, :, 0])
            chance = draw.rates[j, 0] / (1 + draw.rates[j, 0])
            atoms = np.where(
                draw.occupied[j],
                stats.poisson.pmf(new, means),
                stats.nbinom.pmf(new, 1.0, chance),
            )
            seen = ~np.isnan(new[:, 0])
            logs[seen, j] = np.log((atoms * weights[j]).sum(axis=1))[seen]
        paths = Paths(draw.start, draw.transitions, logs)
        scores.append(paths.log_evidence)
        smoothed.append(paths.marginals())
    assert_allclose(model.predict_proba(new), np.mean(smoothed, axis=0), atol=1e-10)
    rows, _ = model._new_rows(new)
    logs = [log_predictives(rows, [draw], found.model).sum() for draw in draws]
    assert_allclose(logs, scores, rtol=1e-9)


# What users see.


@pytest.mark.slow
def test_auto_recognises_counts():
    X, states = counts()
    model = markov().fit(X)
    assert model.emission_ == "poisson"
    assert agreement(states, model.predict(X))[0] > 0.95
    assert_allclose(np.sort(model.locations_[:, 0]), [2, 9], atol=1)
    assert markov().fit(X + 0.5).emission_ != "poisson"
    assert markov().fit(X - 1.0).emission_ != "poisson"


def test_auto_takes_whole_measurements_for_what_they_are():
    """Heart rates vary much less than counts of their mean."""
    rng = np.random.default_rng(0)
    states = (rng.random(400) > 0.95).cumsum() % 2
    X = np.round(60 + 40 * states + 3 * rng.normal(size=400))[:, None]
    model = markov().fit(X)
    assert model.emission_ != "poisson"
    assert agreement(states, model.predict(X))[0] > 0.98


WHOLE = {
    "rounded": lambda rng, n, m: np.round(m + 3.0 + rng.normal(size=n)),
    "rounded, of two states": lambda rng, n, m: np.round(
        2 * m + 9.0 + 2.5 * rng.integers(2, size=n) + rng.normal(size=n)
    ),
    "counts": lambda rng, n, m: rng.poisson(m, size=n),
    "counts of two states": lambda rng, n, m: rng.poisson(m * rng.choice([1, 3], n)),
    "more zeros": lambda rng, n, m: rng.poisson(m, size=n) * rng.integers(2, size=n),
    "far counts": lambda rng, n, m: 2.0 + rng.negative_binomial(2, 2 / (2 + m), n),
    "names from 0": lambda rng, n, m: rng.integers(4, size=n),
    "names from 1": lambda rng, n, m: 1.0 + rng.integers(4, size=n),
}


@pytest.mark.parametrize("n_rows", [100, 1000])
@pytest.mark.parametrize("mean", [6.0, 15.0, 100.0])
@pytest.mark.parametrize("name", WHOLE)
def test_auto_takes_whole_numbers_for_counts_unless_they_vary_too_little(
    name, mean, n_rows
):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = WHOLE[name](rng, n_rows, mean)[:, None].astype(float)
        expected = "normal" if name.startswith("rounded") else "poisson"
        assert Models(markov(), X).recognised == (expected,)


def test_whole_numbers_beside_rounded_measurements():
    rng = np.random.default_rng(0)
    flags, calls = rng.integers(2, size=300), rng.poisson(3.0, size=300)
    degrees = np.round(20 + rng.normal(size=300))
    X = np.column_stack([degrees, calls, flags]).astype(float)
    X[:5] = np.nan
    cheap = markov(n_iter=5, burn_in=5, n_chains=1)
    with pytest.warns(UserWarning, match="Column 2 has two values only"):
        cheap.fit(X)
    assert cheap.emission_ == ["normal", "poisson", "normal"]
    assert Models(markov(), X[:, 1:]).recognised == ("poisson", "poisson")


@pytest.mark.slow
def test_rounding_changes_no_states():
    """Degrees, ages: their spread is near 1, and far below that of counts."""
    rng = np.random.default_rng(0)
    states = (rng.random(400) > 0.95).cumsum() % 2
    X = 20 + 2.5 * states[:, None] + rng.normal(size=(400, 1))
    measured, rounded = (markov().fit(rows) for rows in (X, np.round(X)))
    right = agreement(states, measured.predict(X))[0]
    assert agreement(states, rounded.predict(np.round(X)))[0] > right - 0.02


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Column . has two values only")
def test_auto_recognises_counts_beside_measurements():
    """Not flags, nor what is rounded: these vary less than counts of their mean."""
    rng = np.random.default_rng(0)
    states = (rng.random(300) > 0.95).cumsum() % 2
    X = rng.normal(2.0 * states[:, None], 1.0, (300, 4))
    X[:, 1] = rng.poisson(np.array([1.0, 4.0])[states])
    X[:, 2] = rng.binomial(1, 0.3 + 0.4 * states)
    X[:, 3] = np.round(20.0 + X[:, 3])
    cheap = {"n_iter": 5, "burn_in": 5, "n_chains": 1}
    kinds = ["normal", "poisson", "normal", "normal"]
    assert markov(**cheap).fit(X).emission_ == kinds
    assert markov(**cheap).fit(X[:, [0, 2, 3]]).emission_ in ("translated", "per_state")
    full = markov(covariance_type="full", **cheap).fit(X)
    assert full.covariance_type_ == "full"


@pytest.mark.slow
def test_overdispersed_counts_need_several_atoms():
    rng = np.random.default_rng(3)
    states = (rng.random(900) > 0.95).cumsum() % 2
    means = np.array([2.0, 15.0])[states]
    X = rng.negative_binomial(2, 2 / (2 + means))[:, None].astype(float)
    one, many = (markov(n_atoms=n).fit(X[:600]) for n in (1, 10))
    assert many.score(X[600:]) > one.score(X[600:]) + 0.05


@pytest.mark.slow
def test_categories():
    X, states = categories()
    model = markov(emission="categorical").fit(X)
    assert agreement(states, model.predict(X))[0] > 0.95
    for found in model.categories_:
        assert_array_equal(found, [-1, 0, 5])
    assert not hasattr(model, "locations_")
    drawn, _ = model.sample(50)
    assert set(np.unique(drawn)) <= {-1, 0, 5}
    grid = np.array(list(itertools.product([-1, 0, 5], repeat=2)), dtype=float)
    assert_allclose(model.emission_density(grid).sum(axis=0), 1)
    assert model.forecast().quantiles is None
    for f, shares in enumerate(model.forecast(2, X).category_probabilities):
        assert_allclose(shares.sum(axis=1), 1)
        grid = np.full((3, 2), np.nan)
        grid[:, f] = [-1, 0, 5]
        for step, missing in enumerate([grid[:0], np.full((1, 2), np.nan)]):
            logs = [
                model.score_samples(np.vstack([X, missing, row]))[-1] for row in grid
            ]  # the next row, or the one after, by the filter
            assert_allclose(np.exp(logs), shares[step], atol=1e-12)
    said = r"unknown categories \[3\.0\] in column 1; .* Give NaN in their place"
    with pytest.raises(ValueError, match=said):
        model.predict([[0.0, 3.0]])
    many = np.column_stack([np.zeros(500), np.arange(6, 506)])
    with pytest.raises(ValueError, match=r"15\.0\] and 490 more in column 1"):
        model.predict(many)


@pytest.mark.slow
def test_every_column_has_its_kind():
    """Answers agree with each other, and with sums and integrals, column by column."""
    X, states = mixed()
    X[50, 0], X[60, 1], X[70, 2], X[80] = np.nan, np.nan, np.nan, np.nan
    model = markov(emission=MIXED, n_iter=30, n_chains=1).fit(X)
    assert model.emission_ == MIXED
    assert agreement(states, model.predict(X))[0] > 0.95
    order = np.argsort(model.locations_[:, 0])
    assert_allclose(model.locations_[order, 0], [1000, 1002], atol=0.5)
    assert_allclose(model.locations_[order, 1], [3, 5], atol=1)
    assert np.isnan(model.locations_[:, 2]).all()
    assert [len(known) for known in model.categories_] == [0, 0, 3]
    drawn, of_drawn = model.sample(400, random_state=0)
    assert_array_equal(drawn[:, 1], drawn[:, 1].round())
    assert set(np.unique(drawn[:, 2])) == {-1, 0, 5}
    share = agreement(of_drawn, model.predict(drawn))[0]
    assert share > 0.9

    X, levels = X[:40], [0.1, 0.9]
    forecast = model.forecast(1, X, levels)
    assert np.isnan(forecast.quantiles[..., 2]).all()
    grids = np.linspace(980, 1020, 4001), np.arange(60.0), np.array([-1, 0, 5.0])
    found = model._answer()
    draws = found.used_draws()
    now, weights = states_now(model._new_rows(X)[0], draws, found.model)
    ahead = state_forecasts(now, draws, found.model, 1)[:, 0]
    ahead *= weights[:, None] / weights.sum()
    for f, grid in enumerate(grids):
        new = np.full((len(grid), 3), np.nan)
        new[:, f] = grid
        masses = model.emission_density(new) * (0.01 if f == 0 else 1)
        assert_allclose(masses.sum(axis=0), 1, atol=1e-3)
        if f == 2:
            logs = [model.score_samples(np.vstack([X, row]))[-1] for row in new]
            shares = forecast.category_probabilities
            assert_allclose(np.exp(logs), shares[2][0], atol=1e-9)
            assert [part.shape[1] for part in shares] == [0, 0, 3]
            continue
        below = 0.0
        for draw, states in zip(draws, ahead, strict=True):
            rows, log_volume = model._new_rows(new)
            logs = next(log_emissions(rows, [draw], found.model)) - log_volume
            below = below + states @ np.exp(logs).cumsum(axis=1)
        below *= 0.01 if f == 0 else 1
        expected = grid[np.searchsorted(below, levels)]
        assert_allclose(forecast.quantiles[:, 0, f], expected, atol=0.02)


@pytest.mark.slow
def test_a_frame_of_names_numbers_and_gaps():
    """Answers are those of the encoder's codes, and come without a warning."""
    pandas = pytest.importorskip("pandas")
    X, _ = mixed(120)
    X[5, 0], X[6, 1], X[7, 2] = np.nan, np.nan, np.nan
    frame = pandas.DataFrame(X, columns=["heat", "calls", "lamp"])
    frame["lamp"] = frame["lamp"].map({-1: "off", 0: "amber", 5: "red"})
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    table = make_column_transformer((encoder, ["lamp"]), remainder="passthrough")
    table.set_output(transform="pandas")  # the names come first
    kinds = ["categorical", "normal", "poisson"]
    cheap = {"emission": kinds, "n_iter": 40, "burn_in": 20, "n_chains": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The halves")  # of 40 sweeps
        codes = table.fit_transform(frame.astype({"lamp": "category"}))
        named, plain = (markov(**cheap).fit(C) for C in (codes, codes.to_numpy()))
        for answer in (
            lambda model: model.forecast(2).state_probabilities,
            lambda model: model.forecast(2).quantiles,
            lambda model: model.sample(3)[0],
            lambda model: model.state_probabilities_,
            lambda model: model.duration_probabilities(3),
            lambda model: model.locations_,
            lambda model: model.emission_density([[0.0, 1000.0, 2.0]]),
        ):
            assert_array_equal(answer(named), answer(plain))
        new = table.transform(frame[:3].assign(lamp=["blue", np.nan, "red"]))
        gaps = codes[:3].to_numpy()
        gaps[:, 0] = np.nan, np.nan, 2
        assert_array_equal(named.predict(new), plain.predict(gaps))
    with pytest.raises(ValueError, match="same order"):
        named.predict(codes.iloc[:, ::-1])


def test_values_of_their_own_are_reported():
    """Numbers that are taken for categories say nothing of states."""
    X, _ = mixed(60)
    cheap = {"n_iter": 5, "burn_in": 5, "n_chains": 1}
    for f in range(3):
        kinds = np.where(np.arange(3) == f, "categorical", "normal").tolist()
        with pytest.warns(ConvergenceWarning, match=f"column {f} are in one row only"):
            markov(emission=kinds, **cheap).fit(np.roll(X, f, axis=1))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*in one row only")
        markov(emission=MIXED, **cheap).fit(X)


def test_a_list_of_one_kind_is_that_kind():
    (X, _), (whole, _) = mixed(120), counts(120)
    cheap = {"n_iter": 5, "burn_in": 5, "n_chains": 1}
    for kind, rows in [("per_state", X[:, :1]), ("poisson", whole)]:
        name = "normal" if kind == "per_state" else kind
        one, other = (markov(emission=e, **cheap).fit(rows) for e in (kind, [name]))
        assert one.emission_ == other.emission_ == kind
        assert_array_equal(one.transmat_samples_, other.transmat_samples_)


def test_the_order_and_the_units_of_columns_do_not_matter():
    X, _ = mixed(200)
    given = {"n_iter": 20, "burn_in": 20, "n_chains": 1}
    here = markov(emission=MIXED, **given).fit(X)
    moved = X * [8.0, 1.0, 1.0] - [64.0, 0.0, 0.0]
    for rows, kinds in [(moved, MIXED), (X[:, [1, 2, 0]], [*MIXED[1:], MIXED[0]])]:
        there = markov(emission=kinds, **given).fit(rows)
        assert_allclose(there.transmat_samples_, here.transmat_samples_, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emission": ["normal", "poisson"]}, "of 2 features, but X has 3"),
        ({"emission": ["normal", "student", "normal"]}, "'student' for a feature"),
        ({"emission": ["poisson", "poisson", "normal"]}, "1000.* in column 0"),
        (
            {"emission": ["normal", "normal", "poisson"], "covariance_type": "full"},
            "covariance_type='full' needs features of one kind",
        ),
    ],
)
def test_lists_that_do_not_fit(options, message):
    X, _ = mixed(60)
    X[:, 2] = X[:, 1]
    for method in ("fit", "partial_fit"):
        model = markov(**options)
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(X)
        assert not hasattr(model, "n_features_in_")


def test_forecasts_of_counts_are_quantiles():
    X, _ = counts()
    model = markov(emission="poisson", n_iter=10, n_chains=1).fit(X)
    levels = [0.05, 0.5, 0.95]
    X = X[:40]
    forecast = model.forecast(2, X, levels)
    found = model._answer()
    draws = found.used_draws()
    for step, missing in enumerate([X[:0], [[np.nan]]]):
        masses = [
            np.exp(model.score_samples(np.vstack([X, missing, [[y]]]))[-1])
            for y in range(60)
        ]
        below = np.cumsum(masses)
        expected = np.searchsorted(below, levels)
        assert_array_equal(forecast.quantiles[:, step, 0], expected)
    one = distribution_at(1000, draws[:1], found.model, 0)
    assert_allclose(one, 1.0, atol=1e-6)


@pytest.mark.parametrize("kind", ["poisson", "categorical", "mixed"])
def test_streams_of_discrete_rows(kind):
    draw = {"poisson": counts, "categorical": categories, "mixed": mixed}[kind]
    (X, states), kind = draw(200), MIXED if kind == "mixed" else kind
    X = X.copy()
    X[7], X[50, 0] = np.nan, np.nan
    stream = markov(emission=kind)
    for part in np.array_split(X, 7):
        stream.partial_fit(part)
    whole = markov(emission=kind).partial_fit(X)
    assert_array_equal(stream.transmat_samples_, whole.transmat_samples_)
    stream.partial_fit(X[:30])
    assert stream.emission_ == kind
    assert agreement(states, stream.predict(X))[0] > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Rows depend")  # 20 rows come twice
def test_a_stream_goes_on_where_its_rows_change_their_kind():
    X, _ = counts(200)
    model = markov().partial_fit(X)
    assert model.emission_ == "poisson"
    model.partial_fit(X[:20] + 0.5)
    assert model.emission_ != "poisson"
    chosen = markov(emission="categorical").partial_fit(X.clip(0, 9))
    assert len(chosen.categories_[0]) == 10
    chosen.partial_fit([[12.0]])
    assert len(chosen.categories_[0]) == 11


@pytest.mark.parametrize("emission", ["auto", "categorical", "mixed"])
def test_a_window_learns_values_that_are_new(emission):
    """A row may have no probability yet, of whatever kind, at any time."""
    X, emission = (counts if emission == "auto" else mixed)(60)[0], emission
    if emission == "categorical":
        X = X[:, 2:]
    elif emission == "mixed":
        emission = MIXED
    model = markov(emission=emission, window=50, n_iter=20, burn_in=20, n_chains=1)
    shares = model.partial_fit(X).state_probabilities_
    new = X[-1:].copy()
    new[0, -1] = 7.5
    shares = model.partial_fit(new).state_probabilities_
    assert_allclose(shares.sum(), 1)
    assert emission == "auto" or model.categories_[-1].tolist() == [-1, 0, 5, 7.5]
    assert emission != "auto" or model.emission_ != "poisson"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-1.0, "-1 in"),
        (1.5, "1.5 in"),
        (2e9, "2e.09 in"),
        (1 + 1e-9, "1.000000001 in"),  # 1 would be a count
        (1e9 + 1, "1000000001.0 in"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict"])
def test_rows_that_are_no_counts(value, shown, method):
    X, _ = counts(60)
    model = markov(emission="poisson", n_iter=5, burn_in=5)
    if method != "fit":
        model.partial_fit(X)
    before = model.__dict__.get("_series")
    with pytest.raises(ValueError, match=f"whole numbers .* but X has {shown}"):
        getattr(model, method)([[value], [1.0]])
    assert model.__dict__.get("_series") is before
    with pytest.raises(ValueError, match="emission"):
        model.fit(X + 0.25)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The order of the rows gains")  # with 5 sweeps
def test_categories_taken_for_counts_are_reported():
    """Values 0, 1, 2 of which the middle is rare: counts of a mean cannot do that."""
    rng = np.random.default_rng(0)
    states = (rng.random(500) > 0.95).cumsum() % 2
    tables = np.array([[0.6, 0.0, 0.4], [0.1, 0.0, 0.9]])
    X = np.array([[rng.choice(3, p=tables[state])] for state in states], dtype=float)
    with pytest.warns(ConvergenceWarning, match="contradict emission='poisson'"):
        markov().fit(X)
    beside = np.hstack([rng.normal(size=X.shape), X])
    expected = r"emission=\['normal', 'poisson'\]: with .*'categorical'\]"
    with pytest.warns(ConvergenceWarning, match=expected):
        markov(emission=["normal", "poisson"], n_iter=5).fit(beside)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", message="The rows hardly|The .* disagree: R-hat"
        )
        model = markov().fit(counts(means=(0.5, 3.0))[0])
    assert model.emission_ == "poisson"
