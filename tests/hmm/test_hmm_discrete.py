"""Counts and categories: exact posteriors, choice, streams and bad input."""

import itertools
import warnings

import numpy as np
import pytest
from hmm_reference import Paths, invariant_law, largest_score
from hmm_rows import agreement, markov
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.hmm._dirichlet_process_product_answers import distribution_at
from skpacbayes.hmm._dirichlet_process_product_chain import ProductChain
from skpacbayes.hmm._dirichlet_process_product_model import (
    Categories,
    Counts,
    ProductModel,
    ProductParameters,
)
from skpacbayes.hmm._dirichlet_process_posterior import log_predictives

FALSE_ALARM = 1e-4
pytestmark = [
    pytest.mark.filterwarnings("ignore:The chains disagree"),
    pytest.mark.filterwarnings("ignore:The rows hardly tell"),
]


def model_of(n_categories=(), n_features=1, n_atoms=1, **options):
    defaults = {
        "concentration": 1.0,
        "transition_prior": 0.8,
        "min_transition": 0.0,
        "stationary": False,
    }
    return ProductModel(2, n_atoms, n_features, n_categories, **(defaults | options))


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


@pytest.mark.parametrize("kind", ["counts", "categories"])
def test_the_posterior_of_states_is_exact(kind):
    """Tables, means, rates and transitions summed out, for all 64 paths."""
    y = np.array([0.0, 1.0, 0.0, 2.0, 2.0, 1.0])
    if kind == "counts":
        y = np.array([0.0, 2.0, 1.0, 6.0, 9.0, 5.0])
        units, model = Counts.of(y[:, None]), model_of()
    else:
        units, model = Categories.of(y[:, None]), model_of((3,))
    logs = []
    paths = np.array(list(itertools.product(range(2), repeat=len(y))))
    for path in paths:
        moves = np.zeros((2, 2))
        np.add.at(moves, (path[:-1], path[1:]), 1)
        log = log_dirichlet_multinomial(moves, 0.8).sum() - np.log(2)
        for state in range(2):
            own = y[path == state]
            if kind == "counts":
                log += log_counts(own, y.mean())
            else:
                table = np.bincount(own.astype(int), minlength=3)
                log += log_dirichlet_multinomial(table, 0.5)
        logs.append(log)
    posterior = np.exp(logs - logsumexp(logs))
    same = paths[:, :, None] == paths[:, None]
    expected = np.einsum("p,pst->st", posterior, same)

    rows = units.learning_rows(y[:, None], [0, len(y)])
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


@pytest.mark.parametrize("kind", ["counts", "categories"])
def test_a_sweep_leaves_the_joint_distribution(kind):
    """Several atoms: points drawn from the model are moved, and stay draws of it."""
    n_copies, rng = 1000, np.random.default_rng(1)
    sizes = () if kind == "counts" else (2, 3)
    model = model_of(sizes, 2, n_atoms=3, stationary=True, min_transition=0.1)
    units = Counts(np.array([2.0, 5.0]))
    if kind == "categories":
        units = Categories((np.arange(2.0), np.arange(3.0)))
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
    assert np.abs(scores).max() < largest_score(len(scores), FALSE_ALARM)


def joint_draw(model, units, rng, n_rows=6):
    """Parameters, states and rows drawn from the model."""
    k, n_atoms, d = model.n_states, model.n_atoms, model.n_features
    while True:
        transitions = rng.dirichlet(np.full(k, model.transition_prior), k)
        if transitions.min() >= model.min_transition:
            break
    sticks = rng.beta(1.0, model.concentration, (k, n_atoms))
    sticks[:, -1] = 1.0
    before = np.cumprod(np.hstack([np.ones((k, 1)), 1 - sticks[:, :-1]]), axis=1)
    rates = np.zeros((k, 0))
    if model.n_categories:
        tables = [
            rng.dirichlet(np.full(n, 0.5), (k, n_atoms)) for n in model.n_categories
        ]
        natural = np.log(np.concatenate(tables, axis=-1).clip(1e-300))
    else:
        rates = rng.gamma(1.0, 1 / units.means, (k, d))
        means = rng.gamma(1.0, 1 / rates[:, None], (k, n_atoms, d))
        natural = np.concatenate([np.log(means), -means], axis=-1)
    start = invariant_law(transitions)
    with np.errstate(divide="ignore"):
        log_weights = np.log(sticks * before)
    occupied, stages = np.ones((k, n_atoms), bool), np.ones(k, dtype=np.int64)
    parts = transitions, start, log_weights, natural, rates, occupied, stages
    draw = ProductParameters(*parts)
    states = np.empty(n_rows, dtype=int)
    values = np.empty((n_rows, d))
    for t in range(n_rows):
        states[t] = rng.choice(k, p=transitions[states[t - 1]] if t else start)
        atom = rng.choice(n_atoms, p=np.exp(log_weights[states[t]]))
        if model.n_categories:
            tables = np.split(np.exp(natural[states[t], atom]), [2])
            values[t] = [rng.choice(len(p), p=p / p.sum()) for p in tables]
        else:
            values[t] = rng.poisson(means[states[t], atom])
    values[2, 0] = np.nan
    values[4] = np.nan
    return draw, states, units.rows(values, [0, n_rows])


def statistics_of(draw, states, rows):
    """Functions of everything with light tails."""
    weights = np.exp(draw.log_weights)
    indicators = np.eye(2)[states]
    bounded = np.tanh(draw.natural / 3)
    values = np.tanh(np.nan_to_num(rows.values) / 3)
    rates = np.tanh(draw.rates)
    mean = (weights[..., None] * bounded).sum(axis=1)
    parts = [
        *(draw.transitions, draw.transitions**2, draw.start, weights, weights**2),
        *(indicators, bounded, rates, rates**2, mean, indicators.T @ values),
        np.einsum("kp,kf->kpf", mean, indicators.T @ values),
        np.einsum("kf,kp->kfp", rates, mean),
        draw.transitions * (indicators[:-1].T @ indicators[1:]),
    ]
    return np.concatenate([np.ravel(part) for part in parts])


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


def test_overdispersed_counts_need_several_atoms():
    rng = np.random.default_rng(3)
    states = (rng.random(900) > 0.95).cumsum() % 2
    means = np.array([2.0, 15.0])[states]
    X = rng.negative_binomial(2, 2 / (2 + means))[:, None].astype(float)
    one, many = (markov(n_atoms=n).fit(X[:600]) for n in (1, 10))
    assert many.score(X[600:]) > one.score(X[600:]) + 0.05


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
    forecast = model.forecast(2)
    assert forecast.quantiles is None
    for f, shares in enumerate(forecast.category_probabilities):
        assert_allclose(shares.sum(axis=1), 1)
        grid = np.full((3, 2), np.nan)
        grid[:, f] = [-1, 0, 5]
        logs = [
            model.score_samples(np.vstack([X, row]))[-1] for row in grid
        ]  # the next row, by the filter
        assert_allclose(np.exp(logs), shares[0], atol=1e-12)
    with pytest.raises(ValueError, match=r"unknown categories \[3\.0\] in column 1"):
        model.predict([[0.0, 3.0]])


def test_forecasts_of_counts_are_quantiles():
    X, _ = counts()
    model = markov(emission="poisson", n_iter=10, n_chains=1).fit(X)
    levels = [0.05, 0.5, 0.95]
    X = X[:40]
    forecast = model.forecast(2, X, levels)
    found = model._answer()
    draws = found.used_draws()
    rows = np.vstack([X, [[np.nan]], [[np.nan]]])
    states = model.predict_proba(rows)[-1]
    assert_allclose(forecast.state_probabilities[1], states, atol=1e-9)
    whole = np.arange(60.0)[:, None]
    masses = [np.exp(model.score_samples(np.vstack([X, y]))[-1]) for y in whole]
    below = np.cumsum(masses)
    assert_array_equal(forecast.quantiles[:, 0, 0], np.searchsorted(below, levels))
    one = distribution_at(1000, draws[:1], found.model, 0)
    assert_allclose(one, 1.0, atol=1e-6)


@pytest.mark.parametrize("kind", ["poisson", "categorical"])
def test_streams_of_discrete_rows(kind):
    X, states = counts(200) if kind == "poisson" else categories(200)
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


@pytest.mark.parametrize(("value", "shown"), [(-1.0, "-1"), (1.5, "1.5"), (2e9, "2e")])
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


def test_categories_taken_for_counts_are_reported():
    """Values 0, 1, 2 of which the middle is rare: counts of a mean cannot do that."""
    rng = np.random.default_rng(0)
    states = (rng.random(500) > 0.95).cumsum() % 2
    tables = np.array([[0.6, 0.0, 0.4], [0.1, 0.0, 0.9]])
    X = np.array([[rng.choice(3, p=tables[state])] for state in states], dtype=float)
    with pytest.warns(ConvergenceWarning, match="contradict emission='poisson'"):
        markov().fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The rows hardly|The chains disagree")
        model = markov().fit(counts(means=(0.5, 3.0))[0])
    assert model.emission_ == "poisson"
