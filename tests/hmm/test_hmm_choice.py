"""The model that is chosen, the warnings where rows contradict one, and forecasts."""

import functools
import warnings
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hmm_rows import agreement, two_states
from hmm_rows import choosing as markov
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import norm, t
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skpacbayes import DirichletProcessHMM
from skpacbayes.hmm._dirichlet_process_dependence import (
    _memories,
    strongest_dependence,
    strongest_memory,
    strongest_trend,
)
from skpacbayes.hmm._dirichlet_process_forecast import rising_roots
from skpacbayes.hmm._dirichlet_process_score import PredictiveScore
from skpacbayes.hmm._dirichlet_process_selection import Candidate, choose_model
from skpacbayes.hmm._dirichlet_process_warnings import warn_of_order

pytestmark = pytest.mark.filterwarnings("ignore:The .* disagree")


def spreads(n_samples=600, seed=0):
    """Rows about 0 whose spread depends on the state."""
    rng = np.random.default_rng(seed)
    states = (rng.random(n_samples) > 0.97).cumsum() % 2
    return (np.array([0.5, 3.0])[states] * rng.normal(size=n_samples))[:, None], states


def correlations(n_samples=600, seed=0):
    """Rows of two features whose correlation depends on the state."""
    rng = np.random.default_rng(seed)
    states = (rng.random(n_samples) > 0.97).cumsum() % 2
    X = rng.normal(size=(n_samples, 2))
    X[:, 1] = np.array([0.9, -0.9])[states] * X[:, 0] + 0.44 * X[:, 1]
    return X, states


@pytest.mark.slow
@pytest.mark.parametrize("rows", [spreads, correlations])
def test_states_without_locations_of_their_own(rows):
    """The default finds them; one shape for all states cannot, and says so."""
    X, states = rows(450)
    model = markov().fit(X)
    assert model.emission_ == "per_state"
    assert model.covariance_type_ == ("full" if rows is correlations else "diag")
    assert agreement(states, model.predict(X))[0] > 0.93
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        translated = markov(emission="translated").fit(X)
    assert any("contradict emission='translated'" in str(w.message) for w in caught)
    assert agreement(states, translated.predict(X))[0] < 0.85


def test_one_shape_for_all_states_is_not_contradicted_where_it_is_right():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        markov(emission="translated").fit(two_states(300)[0])
    assert not [w for w in caught if "contradict" in str(w.message)]


@pytest.mark.parametrize("emission", ["auto", "translated", "per_state"])
def test_rows_without_states_are_reported(emission):
    """One regime, in any units."""
    X = np.random.default_rng(0).normal(size=(300, 1))
    scale, shift = {"auto": (1, 0), "translated": (1e3, 0)}.get(emission, (1e-3, 1e4))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        markov(emission=emission).fit(shift + scale * X)
    assert any("The order of the rows gains" in str(w.message) for w in caught)


@pytest.mark.filterwarnings("ignore:The order of the rows gains")
def test_states_that_rows_do_not_tell_apart_are_reported():
    """States must change often here, so that each row alone tells its state.

    The separation of the states is at most 0.14 with 20 seeds of rows and chains; the
    limit is 0.2.
    """
    X = np.random.default_rng(0).poisson(3, size=(300, 1))
    model = markov(emission="poisson", min_transition=0.3, n_iter=200)
    with pytest.warns(ConvergenceWarning, match="The rows hardly tell 2 states apart"):
        model.fit(X)


@pytest.mark.parametrize("emission", ["poisson", "categorical"])
def test_counts_without_states_are_reported(emission):
    X = np.random.default_rng(0).poisson(3, size=(200, 1)).clip(0, 4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        markov(emission=emission).fit(X)
    assert any("The order of the rows" in str(w.message) for w in caught)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
@pytest.mark.parametrize("emission", ["auto", "translated", "per_state"])
def test_rows_without_order_have_one_state(emission, covariance_type):
    """Shapes with sharp edges take many Gaussians: more of them are no more states."""
    n_features = 1 + (covariance_type == "full")
    X = np.random.default_rng(1).gamma(0.5, size=(300, n_features))
    options = {"emission": emission, "covariance_type": covariance_type}
    few = {"n_iter": 20, "burn_in": 20, "n_chains": 1, "min_transition": 0.3}
    model = markov("auto", **few, **options).fit(X)  # of three states at most
    assert model.n_states_ == 1
    if (emission, covariance_type) == ("auto", "diag"):  # where two predict better
        assert (np.ptp(model.n_states_scores_) * len(X)) > 15


@pytest.mark.slow
@pytest.mark.parametrize(
    ("emission", "duration"),
    [
        ("per_state", "geometric"),
        ("poisson", "negative_binomial"),
        ("categorical", "geometric"),
    ],
)
def test_sequences_that_begin_in_one_state_are_reported(emission, duration):
    """Transitions whose stationary distribution explains the starts are not theirs."""
    rng = np.random.default_rng(0)
    states = (rng.random((60, 8)) > 0.9).cumsum(axis=1) % 2
    values = 8 * states + rng.integers(3, size=states.shape)
    found = {}
    for startprob in ("stationary", "dirichlet"):
        for begins, flips in (("in one", 0), ("in any", np.arange(60)[:, None] % 2)):
            rows = np.where(flips, 10 - values, values).reshape(-1, 1)
            options = {"emission": emission, "duration": duration}
            few = {"n_iter": 50, "burn_in": 20, "n_chains": 1, "startprob": startprob}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                markov(**options, **few).fit(rows, lengths=[8] * 60)
            said = [w for w in caught if "use startprob='dirichlet'" in str(w.message)]
            found[startprob, begins] = len(said)
    assert found.pop(("stationary", "in one")) == 1
    assert set(found.values()) == {0}


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (1e4, 1e-3), (-1e4, 1e3)])
def test_a_season_is_reported(shift, scale):
    """Its parts are taken for states, rows of which depend on those a season before."""
    t, rng = np.arange(240), np.random.default_rng(0)
    X = 5 * np.sin(2 * np.pi * t / 12) + 3 * (t // 40 % 2) + rng.normal(size=240)
    with pytest.warns(
        ConvergenceWarning, match="rows that are (12|72) apart have a corr"
    ):
        markov(emission="per_state").fit(shift + scale * X[:, None])


def test_a_feature_that_was_never_observed_is_reported():
    X = np.column_stack([two_states(60)[0], np.full(60, np.nan)])
    with pytest.warns(UserWarning, match=r"observed of the features \[1\]"):
        markov(1, n_iter=10, burn_in=10).fit(X)


def inertia(states, seed=0):
    """Rows of an autoregression whose coefficient depends on the state."""
    X = np.random.default_rng(seed).normal(size=len(states))
    for i in range(1, len(X)):
        X[i] += np.array([0.9, -0.3])[states[i]] * X[i - 1]
    return X[:, None]


def test_rows_that_depend_on_those_before_are_reported():
    X = inertia(np.arange(600) // 60 % 2)
    with pytest.warns(ConvergenceWarning, match="Rows depend on the rows before them"):
        markov(emission="per_state").fit(X)


@pytest.mark.parametrize("seed", range(5))
def test_dependence_beyond_the_states(seed):
    """Of neighbours in a state and a sequence only; outliers and gaps say nothing.

    At independent rows the bound of five standard errors is passed with probability
    below 1e-5.
    """
    rng = np.random.default_rng(seed)
    states = np.arange(800) // 40 % 2
    whole = np.array([0, 800])
    X = inertia(states, seed)
    X[rng.random(800) < 0.1] = np.nan
    assert strongest_dependence(X, states, whole).correlation > 0.75
    independent = rng.standard_t(2, (800, 3)) + 9.0 * states[:, None]
    independent[rng.random((800, 3)) < 0.1] = np.nan
    independent[100:102] = 1e9
    assert strongest_dependence(independent, states, whole).correlation == 0
    both = np.hstack([independent, -X])
    assert strongest_dependence(both, states, whole).correlation > 0.75
    pairs = np.repeat(rng.normal(size=(400, 1)), 2, axis=0)
    joined = np.arange(0, 801, 2)
    cut = np.array([0, *range(1, 800, 2), 800])
    one = np.zeros(800, dtype=int)
    assert strongest_dependence(pairs, one, joined).correlation > 0.9
    assert strongest_dependence(pairs, one, cut).correlation == 0
    assert strongest_dependence(np.ones((800, 1)), one, whole).correlation == 0


@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_trend_is_reported(shift, scale, sign):
    """Of rows about their states, in each sequence from its beginning."""
    rng = np.random.default_rng(0)
    states, bounds = np.arange(900) // 30 % 2, np.array([0, 300, 900])
    level = 2.5 * states + rng.standard_normal(900)
    times = np.concatenate([np.arange(300), np.arange(600)])
    level[rng.random(900) < 0.1] = np.nan
    X = np.column_stack([rng.standard_t(2, 900), level + 0.002 * sign * times])
    found = strongest_trend(shift + scale * X, states, bounds)
    assert found * sign > 0.25
    still = np.column_stack([X[:, 0], level])
    assert strongest_trend(shift + scale * still, states, bounds) == 0
    assert strongest_trend(np.ones((900, 1)), states, bounds) == 0
    assert strongest_trend(X, states, np.arange(901)) == 0  # one row each


EMISSIONS = {
    "normal": lambda rng, level: level + rng.normal(size=len(level)),
    "t with gaps": lambda rng, level: np.where(
        rng.random(len(level)) < 0.1, np.nan, level + rng.standard_t(2, len(level))
    ),
    "spreads": lambda rng, level: np.exp(level) * rng.normal(size=len(level)),
    "counts": lambda rng, level: rng.poisson(np.exp(0.7 * level)).astype(float),
    "flags": lambda rng, level: (rng.random(len(level)) < 0.2 + 0.2 * level) * 1.0,
}


@pytest.mark.parametrize("emission", EMISSIONS)
def test_memory_given_the_states(emission):
    """Its error is standard normal if the states explain the rows, whatever they last.

    It is found if the rows follow a level that moves by small steps, and is the same in
    other units.
    """
    errors, bounds = [], np.array([0, 150, 600])
    for seed in range(40):
        rng = np.random.default_rng(seed)
        lasts = rng.integers(8, 13, 600) if seed % 2 else rng.geometric(0.1, 600)
        states = (np.cumsum(rng.integers(1, 3, 600)) % 3).repeat(lasts)[:600]
        values = EMISSIONS[emission](rng, states)
        errors.append(_memories(values[:, None], states, bounds)[:, 0, 1])
    assert np.abs(np.mean(errors, axis=0)).max() < 3.5 / np.sqrt(40)
    assert 0.65 < np.std(errors, axis=0).min() < np.std(errors, axis=0).max() < 1.4
    moving = 1.5 + 1.5 * np.sin(np.arange(600) / 30)
    values, path = EMISSIONS[emission](rng, moving)[:, None], np.arange(600) // 9 % 2
    found = strongest_memory(values, [path], bounds)
    assert (found.correlation > 0.1) == (emission != "spreads")  # about one level
    assert strongest_memory(3.0 * values - 7.0, [path], bounds) == found


def test_a_fit_warns_of_slow_changes():
    rng = np.random.default_rng(0)
    X = 3 * np.sin(np.arange(400) / 40)[:, None] + rng.normal(size=(400, 1))
    with pytest.warns(ConvergenceWarning, match="Rows depend on the rows before them"):
        markov(3, n_iter=50, burn_in=50).fit(X)


def test_a_fit_warns_of_a_trend():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 1)) + 0.004 * np.arange(500)[:, None]
    X += 2.5 * (np.arange(500)[:, None] // 25 % 2)
    with pytest.warns(ConvergenceWarning, match="Rows have a trend"):
        markov().fit(X)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_number_of_states(k):
    rng = np.random.default_rng(k)
    states = (rng.random(500) > 0.95).cumsum() % k
    X = 5.0 * states[:, None] + rng.standard_t(4, size=(500, 1))
    model = markov("auto").fit(X)
    assert model.n_states_ == k
    assert k + 2 <= len(model.n_states_scores_) <= 12
    assert np.all(np.diff(model.n_states_scores_[:k]) > 0.1)
    assert model.transmat_.shape == (k, k)
    assert not len(markov(k, n_atoms=1).fit(X).n_states_scores_)


class Scored(Candidate):
    """A candidate of given scores, and the gain of its order in nats."""

    def __init__(self, n_states, scores, gain, correction):
        self.model = Number(n_states)
        self.scores, self.correction = scores, correction
        self.chain = SimpleNamespace(gains=lambda *_: (gain, 0.0))


class Number(NamedTuple):
    """A model that has a number of states only."""

    n_states: int
    shared: bool = False
    full: bool = False


def chosen_by(errors, gain, correction=0.1):
    """Return the number that is chosen, the best one of scores, and the warnings.

    Two states have the best score; one is worse by so many standard errors.
    """
    gaps = np.tile([-1.0, 1.0], 200) + errors / np.sqrt(400)  # deviation 1, 400 rows
    scores = np.zeros(400), gaps, gaps - 0.01, gaps - 0.02
    tried = {
        Number(n): Scored(n, own, gain, correction)
        for n, own in enumerate(scores, start=1)
    }
    settings = SimpleNamespace(
        n_states=None, largest=4, models=lambda n: [Number(n)], rivals=lambda _: []
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = choose_model(tried, settings, 0)
    said = [str(warning.message) for warning in caught]
    return found.model.n_states, 1 + found.scores.argmax(), said


@pytest.mark.parametrize(
    ("errors", "gain", "chosen", "warns"),
    [(1.5, 90, 1, False), (2.5, 90, 1, True), (2.5, 4, 1, False), (3.5, 90, 2, False)],
)
def test_a_number_of_states_that_is_perhaps_better_is_named(
    errors, gain, chosen, warns
):
    """From two standard errors, where order matters; from three on it is chosen."""
    found, best, said = chosen_by(errors, gain)
    assert (found, best) == (chosen, 2)
    assert len(said) == warns
    assert not warns or ("chose 1," in said[0] and "n_states=2." in said[0])


def short_gaps(n_rows, total):
    """Two candidates whose scores differ by nats in total, and 2.5 standard errors."""
    gaps = np.tile([-1.0, 1.0], n_rows // 2) * total / np.sqrt(n_rows) / 2.5
    gaps += total / n_rows
    return Scored(2, gaps, 90.0, 0.0), Scored(1, np.zeros(n_rows), 90.0, 0.0)


@pytest.mark.parametrize("n_rows", [20, 40, 100, 400])
def test_a_short_series_needs_fewer_nats_for_a_doubt(n_rows):
    """Five nats and 0.01 per row; in long series 15, as chains differ by more there."""
    least = 5.0 + 0.01 * n_rows
    better, other = short_gaps(n_rows, least + 0.1)
    assert better.perhaps_better(other)
    assert not better.clearly_better(other)
    better, other = short_gaps(n_rows, least - 0.1)
    assert not better.perhaps_better(other)


def test_a_long_series_needs_fifteen_nats_for_a_doubt():
    for n_rows in (1000, 20000):
        better, other = short_gaps(n_rows, 15.1)
        assert better.perhaps_better(other)
        better, other = short_gaps(n_rows, 14.9)
        assert not better.perhaps_better(other)


@pytest.mark.slow
def test_regimes_of_a_short_series_are_not_missed_in_silence():
    """Of forty rows with two levels, and none where there is one."""
    told = {1: 0, 2: 0}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        states = np.arange(seed, 40 + seed) // 10 % 2
        for number in told:
            X = 8.0 * (number - 1) * states + rng.normal(size=40)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = markov("auto").fit(X[:, None])
            said = any("not clearly worse" in str(w.message) for w in caught)
            told[number] += said or model.n_states_ == 2
    assert told[1] == 0
    assert told[2] >= 5


@pytest.mark.slow
@pytest.mark.parametrize(("n_atoms", "reliable"), [(10, False), (1, True)])
def test_a_number_of_states_chosen_by_unreliable_scores_is_doubted(n_atoms, reliable):
    """The two regimes of 50 features may be missed; the advice of the warning helps."""
    rng = np.random.default_rng(0)
    states = np.arange(300) // 30 % 2
    X = rng.normal(size=(300, 50))
    X[:, :5] += 3.0 * states[:, None]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = markov("auto", n_atoms=n_atoms).fit(X)
    doubted = [w for w in caught if "not reliable" in str(w.message)]
    assert len(doubted) == (not reliable)
    assert not reliable or agreement(states, model.predict(X))[0] > 0.99


def test_a_warning_names_the_number_that_was_chosen():
    """Scores prefer two states, and then the order of the rows leaves one."""
    chosen, best, said = chosen_by(3.5, gain=4, correction=9.0)
    assert (chosen, best, len(said)) == (1, 2, 1)
    assert "chose 1 by predictive scores that are not reliable" in said[0]


def test_predictive_score():
    logs = np.random.default_rng(0).normal(size=(7, 5))
    score = PredictiveScore(5)
    for draw in logs:
        score.add(draw)
    expected = np.log(np.exp(logs).mean(axis=0)) - logs.var(axis=0, ddof=1)
    assert_allclose(score.of_rows(), expected, rtol=1e-12)
    assert_allclose(score.corrections(), logs.var(axis=0, ddof=1), rtol=1e-12)


def test_a_choice_is_made_again_when_rows_have_grown():
    X, states = spreads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = markov().partial_fit(X[:10])
        assert model.n_states_ == 2
        chosen = model._answer().chains.n_chosen
        model.partial_fit(X[10:13])
        assert model._answer().chains.n_chosen == chosen == 10
        model.partial_fit(X[13:])
    assert model.emission_ == "per_state"
    assert model._answer().chains.n_chosen == 600
    assert agreement(states, model.predict(X))[0] > 0.9


def test_asking_changes_nothing():
    X, _ = two_states(200)
    asked, silent = markov().partial_fit(X), markov().partial_fit(X)
    asked.predict(X)
    first = asked.transmat_samples_
    assert_array_equal(silent.transmat_samples_, first)
    assert_array_equal(asked.transmat_samples_, first)


# Forecasts.


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("emission", ["translated", "per_state"])
def test_forecasts_are_exact(emission, given):
    """The distribution function at the quantiles, from every draw, state and atom.

    Draws have equal weights after the rows that were learnt. After rows that are given,
    a row has the exponent 0.98^a in the weight if a rows came since.
    """
    X, _ = two_states(120, distance=4.0, n_features=2)
    X[::9, 1] = np.nan
    few = {"n_iter": 10, "n_chains": 1}
    model = markov(emission=emission, covariance_type="full", **few).fit(X)
    levels, h = [0.1, 0.5, 0.9], 3
    forecast = model.forecast(h, X if given else None, quantiles=levels)
    assert forecast.quantiles.shape == (3, h, 2)
    found = model._answer()
    offset, unit, _ = found.units
    draws, prior = found.used_draws(), found.model
    below = np.zeros((3, h, 2))
    states = np.zeros((h, 2))
    rows, _ = model._new_rows(X)
    filtered = [filtered_by_hand(rows, draw, prior) for draw in draws]
    exponents = given * 0.98 ** np.arange(len(X))[::-1]
    log_weights = np.array([logs @ exponents for _, logs in filtered])
    shares = np.exp(log_weights - logsumexp(log_weights))
    assert given == (shares.max() > 1.5 / len(shares))
    for draw, (law, _), share_of_draw in zip(draws, filtered, shares, strict=True):
        for step in range(h):
            law = law @ draw.transitions
            states[step] += share_of_draw * law
            for j, share in enumerate(law):
                g = 0 if prior.shared else j
                y = (forecast.quantiles[:, step] - offset) / unit
                weights = np.exp(draw.log_weights[g])
                known = draw.occupied[g]
                inverses = np.linalg.inv(draw.factors[g])
                deviations = np.sqrt((inverses**2).sum(axis=-1))
                place = draw.locations[j] + draw.means[g]
                atoms = norm.cdf(y[:, None], place, deviations)
                part = (weights[known, None] * atoms[:, known]).sum(axis=1)
                scale = np.sqrt(draw.scales[g] * (1 + 1 / prior.mean_count) / 2)
                center = draw.locations[j] + draw.origins[g]
                part += weights[~known].sum() * t.cdf(y, 4, center, scale)
                below[:, step] += share_of_draw * share * part
    expected = np.broadcast_to(np.array(levels)[:, None, None], below.shape)
    assert_allclose(below, expected, atol=1e-6)
    assert_allclose(forecast.state_probabilities, states, atol=1e-12)
    if not given:
        nothing = np.full((h, 2), np.nan)
        ahead = model.predict_proba(np.vstack([X, nothing]))[-h:]
        assert_allclose(forecast.state_probabilities, ahead, atol=1e-9)


def filtered_by_hand(rows, draw, model):
    """Return probabilities of the last state, and the log density of each row."""
    from skpacbayes.hmm._dirichlet_process_posterior import log_emissions

    logs = next(iter(log_emissions(rows, [draw], model)))
    law, evidence = draw.start, []
    for step, densities in enumerate(np.exp(logs - logs.max(axis=0)).T):
        law = (law @ draw.transitions if step else law) * densities
        evidence.append(law.sum())
        law /= evidence[-1]
    return law, logs.max(axis=0) + np.log(evidence)


def test_roots_of_rising_functions():
    """Those of bisection to 1e-12, also on steps, plateaus and tails, in few calls."""
    rng = np.random.default_rng(0)
    at, n_calls = rng.uniform(-9.0, 9.0, 60), 0
    width = 10.0 ** rng.uniform(-6.0, 1.0, 60)
    levels = np.tile([0.5, 0.05, 1 - 1e-6, 0.3, 0.7], 12)
    steps = np.arange(60) % 4 == 0

    def above(points, which):
        nonlocal n_calls
        n_calls += 1
        gaps = points - at[which]
        far = norm.cdf((gaps + 10.0) / width[which])
        smooth = 0.5 * (norm.cdf(gaps / width[which]) + far)
        return np.where(steps[which], gaps >= 0.0, smooth) - levels[which]

    low, high, every = np.full(60, -80.0), np.full(60, 80.0), np.arange(60)
    found = rising_roots(above, low, high, above(low, every), above(high, every))
    assert n_calls <= 2 + 12 + 2 * np.log2(160.0 / 1e-14)  # every second one halves
    for _ in range(70):
        middle = 0.5 * (low + high)
        after = above(middle, every) >= 0.0
        low, high = np.where(after, low, middle), np.where(after, middle, high)
    sharp = (levels != 0.5) | steps  # else any point between the two is a root
    assert_allclose(found[sharp], low[sharp], atol=1e-12)
    assert_allclose(above(found, every)[~steps], 0.0, atol=1e-7)


def test_far_forecasts_are_of_the_stationary_distribution():
    X, _ = two_states(300)
    model = markov(n_iter=10).fit(X)
    far = model.forecast(60)
    assert_allclose(far.state_probabilities[-1], model.startprob_, atol=0.01)
    low, middle, high = far.quantiles[:, -1, 0]
    assert low < middle < high
    assert np.mean((low < X) & (high > X)) > 0.85
    farther = model.forecast(4000)  # which costs little more
    assert_allclose(farther.quantiles[:, :60], far.quantiles, rtol=1e-9)
    assert_allclose(farther.quantiles[:, -1, 0], [low, middle, high], atol=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_steps": 0}, r"n_steps=0 should be an integer of at least 1\."),
        ({"n_steps": True}, r"n_steps=True should be an integer of at least 1\."),
        ({"n_steps": 1.5}, r"n_steps=1.5 should be"),
        ({"quantiles": [0.0, 0.5]}, r"quantiles=\[0.0, 0.5\] should be one or more"),
        ({"quantiles": []}, r"quantiles=\[\] should be one or more numbers"),
    ],
)
def test_forecasts_asked_for_wrongly(arguments, message):
    model = markov(n_atoms=1).fit(two_states(60, stay=0.9)[0])
    with pytest.raises(ValueError, match=message):
        model.forecast(**arguments)


def test_samples_of_other_seeds():
    model = markov(1, n_iter=10, burn_in=10).fit(two_states(60)[0])
    assert_array_equal(model.sample(5)[0], model.sample(5, random_state=0)[0])
    assert not np.array_equal(model.sample(5)[0], model.sample(5, random_state=1)[0])


@functools.cache
def _in_plain_units():
    X, _ = two_states(200, distance=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return X, markov(n_iter=30).fit(X)


@pytest.mark.parametrize(("shift", "unit"), [(1e4, 1.0), (0.0, 1e-3), (0.0, 1e3)])
def test_origin_and_unit_do_not_matter(shift, unit):
    """Chains see rows in standard units: but for rounding, the same states."""
    X, expected = _in_plain_units()
    moved = markov(n_iter=30).fit(shift + unit * X)
    proba = moved.predict_proba(shift + unit * X)
    assert_allclose(proba, expected.predict_proba(X), atol=1e-3)
    values = shift + unit * expected.forecast(2).quantiles
    assert_allclose(moved.forecast(2).quantiles, values, rtol=1e-6, atol=1e-3 * unit)


# Seeds.


def overlapping(n_samples=300):
    """Two states whose rows overlap, and hardly stay: many are anybody's guess."""
    rng = np.random.default_rng(4)
    states = rng.integers(2, size=n_samples)
    return rng.normal(size=(n_samples, 1)) + 2.5 * states[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [spreads, correlations, overlapping])
def test_seeds_agree_on_the_states_or_warn(rows):
    """Of four seeds all give the same states as most do, or those that do not warn."""
    X = rows() if rows is overlapping else rows(250)[0]
    covariances = "full" if rows is correlations else "diag"
    model = markov(emission="per_state", covariance_type=covariances)
    found, silent = [], []
    for seed in range(4):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(model.set_params(random_state=seed).fit(X).predict(X))
        silent.append(not caught)
    agree = np.array([[agreement(a, b)[0] >= 0.95 for b in found] for a in found])
    with_most = agree[agree.sum(axis=1).argmax()]
    assert not (~with_most & silent).any()
    if rows is not overlapping:
        assert with_most.sum() >= 3


@pytest.mark.parametrize(
    "gains", [[(1.0, 0.0), (90.0, 80.0)], [(90.0, 80.0), (1.0, 0.0)]]
)
def test_what_one_chain_alone_says_is_no_warning(gains):
    """Of the order, and of the first states: all chains must agree on the same."""
    model = SimpleNamespace(n_states=2, stationary=True)
    rows = SimpleNamespace(bounds=np.array([0, 5, 10]))
    chains = [
        SimpleNamespace(model=model, rows=rows, gains=lambda *_, pair=pair: pair)
        for pair in gains
    ]
    runs = [SimpleNamespace(chain=chain) for chain in chains]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_order(runs, SimpleNamespace(n_states=2), None)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("values", [(0, 1), (-2.5, 1e6)])
def test_flags_that_are_taken_for_measurements_are_named(method, values):
    """Not where their kind is given, all columns are counts, or one value is rare."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["heat", "on"])
    frame["on"] = np.where(rng.random(80) < 0.4, *values)
    quick = DirichletProcessHMM(1, n_iter=10, burn_in=5, n_chains=1, random_state=0)
    kinds = {"emission": ["normal", "categorical"]}
    rare = frame.assign(on=np.where(np.arange(80) < 9, *values))
    counts = pd.DataFrame(rng.poisson(3, size=(80, 2)), columns=["calls", "on"])
    counts["on"] = (rng.random(80) < 0.4).astype(int)
    for parameters in {}, {"emission": "per_state"}:
        with pytest.warns(UserWarning, match="Column on has two values only"):
            getattr(clone(quick).set_params(**parameters), method)(frame)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Column .* has two values only")
        warnings.simplefilter("ignore", ConvergenceWarning)
        for parameters, silent in (kinds, frame), ({}, rare), ({}, counts):
            getattr(clone(quick).set_params(**parameters), method)(silent)


@pytest.mark.slow
def test_values_that_many_rows_share_are_named():
    """Not where numbers are rounded, counted or missing, nor flags by their kind."""
    rng = np.random.default_rng(0)
    rain = rng.gamma(2.0, size=(120, 1)) * (rng.random((120, 1)) < 0.6)
    quick = DirichletProcessHMM(n_iter=10, burn_in=5, emission="per_state")
    with pytest.warns(
        UserWarning, match="Column 0 has the value 0 in .* hardly repeat"
    ):
        quick.fit(rain)
    with pytest.warns(UserWarning, match="hardly repeat"):
        clone(quick).partial_fit(rain)
    kinds = ["categorical", "normal"]
    flagged = np.hstack([rain == 0, np.where(rain == 0, np.nan, rain)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        for silent in (rain.round(1), np.rint(50 * rain), flagged[:, 1:]):
            clone(quick).fit(silent)
        clone(quick).set_params(emission=kinds).fit(flagged)
