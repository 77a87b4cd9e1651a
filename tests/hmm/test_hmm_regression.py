"""Regressions with which the states are compared, and the warnings about them."""

import numpy as np
import pytest
from hmm_rows import choosing as markov
from hmm_rows import short_runs
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.signal import lfilter
from scipy.stats import norm, poisson, t
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor

from skpacbayes.hmm._dirichlet_process_product_model import ProductUnits
from skpacbayes.hmm._dirichlet_process_regression import (
    _DECAYS,
    _log_evidence_of_names,
    _log_student,
    _Response,
    best_regression,
)
from skpacbayes.hmm._dirichlet_process_selection import CHANCE
from skpacbayes.hmm._dirichlet_process_series import units_of


def rows_of(X, kinds, bounds):
    units = units_of(X)
    if {"poisson", "categorical"} & set(kinds):
        units = ProductUnits.of(X, kinds)
    return units.learning_rows(X, bounds)


@pytest.mark.parametrize("is_count", [False, True])
def test_evidence_is_the_largest_likelihood_less_a_penalty(is_count):
    rng = np.random.default_rng(0)
    variables = rng.normal(size=(150, 2))
    level = 0.5 + variables @ [0.5, -0.8]
    column = rng.poisson(np.exp(level)) * 1.0 if is_count else rng.normal(level)
    column[20:30] = np.nan
    seen = ~np.isnan(column)
    design = np.column_stack([np.ones(140), variables[seen]])
    penalty = 1.5 * np.log(140)
    if is_count:
        model = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=1000)
        means = model.fit(variables[seen], column[seen]).predict(variables[seen])
        expected = poisson.logpmf(column[seen], means).sum()
    else:
        means = design @ np.linalg.lstsq(design, column[seen])[0]
        deviation = np.sqrt(np.mean((column[seen] - means) ** 2) + 0.01)
        expected = norm.logpdf(column[seen], means, deviation).sum()
        # Rounding adds to the squares, too; there are three kinds of errors.
        expected -= 0.5 * 140 * 0.01 / deviation**2
        penalty += 0.5 * np.log(140) + np.log(3)
    found = _Response(column, is_count, 0.01).log_evidence(list(variables.T))
    assert_allclose(found, expected - penalty, rtol=1e-6)


@pytest.mark.parametrize("degrees", [2.0, 4.0])
def test_the_largest_likelihood_with_student_errors(degrees):
    """No other coefficients or scales have a higher one, without rounding."""
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(200), rng.normal(size=(200, 2))])
    values = design @ [1.0, -2.0, 0.5] + 0.7 * rng.standard_t(degrees, 200)

    def loss(u):
        return -t.logpdf(values, degrees, design @ u[:3], np.exp(u[3])).sum()

    best = minimize(loss, [1.0, -2.0, 0.5, 0.0], method="BFGS").fun
    assert_allclose(_log_student(values, design, degrees, 0.0), -best, atol=1e-3)
    rounded = _log_student(values, design, degrees, 0.01)
    assert rounded < _log_student(values, design, degrees, 0.0)


def test_averages_of_the_rows_before():
    """Each is a loop over the rows, from zero at the first row of a sequence."""
    column = np.random.default_rng(0).normal(size=60)
    column[5] = np.nan
    response = _Response(column, False, 0.0)
    times = np.concatenate([np.arange(25), [0], np.arange(34)])
    for decay, found in zip(_DECAYS, response.averages(times), strict=True):
        now, expected = 0.0, []
        for place, value in zip(times, response.centered, strict=True):
            now = 0.0 if place == 0 else now
            expected.append(now)
            now = decay * now + (1 - decay) * value
        assert_allclose(found, expected, atol=1e-12)


def true_log_likelihood(densities, transitions):
    """Of rows with given densities in the states, (n_rows, n_states)."""
    now, total = np.full(len(transitions), 1 / len(transitions)), 0.0
    for density in densities:
        joint = now * density
        total += np.log(joint.sum())
        now = joint @ transitions / joint.sum()
    return total


@pytest.mark.parametrize("kind", ["normal", "poisson"])
def test_no_regression_is_better_than_true_states(kind):
    """A gain above `CHANCE` has a probability below 1 / 100; 25 draws have none."""
    transitions = np.array([[0.95, 0.05], [0.05, 0.95]])
    for seed in range(25):
        rng = np.random.default_rng(seed)
        states = (rng.random(120) < 0.05).cumsum() % 2
        means = np.array([0.0, 1.5]) if kind == "normal" else np.array([1.0, 4.0])
        if kind == "normal":
            X = rng.normal(means[states])[:, None]
            densities = norm.pdf(X, means)
        else:
            X = rng.poisson(means[states])[:, None] * 1.0
            densities = poisson.pmf(X, means)
        volume = units_of(X).log_volume(X).sum() if kind == "normal" else 0.0
        truth = true_log_likelihood(densities, transitions) + volume
        rows = rows_of(X, (kind,), np.array([0, 120]))
        assert best_regression(rows, (kind,), truth).gain < CHANCE


def decaying(rng, times):
    return 0.5 * lfilter([1.0], [1.0, -0.9], rng.normal(size=len(times)))


SERIES = {  # level of the rows; whether it has a season, and depends on rows before
    "trend": (lambda rng, times: 0.01 * times, (False, False)),
    "season": (lambda rng, times: np.sin(2 * np.pi * times / 17.5 + 1), (True, False)),
    "autoregression": (decaying, (False, True)),
}


@pytest.mark.parametrize("n_rows", [2, 5, 10, 20])
def test_few_rows_are_no_evidence_of_a_regression(n_rows):
    """Which could follow them all: of independent rows, at most 1 draw of 20 shows one.

    Expected is 1 of 100, so that the test fails with a probability below 1e-3.
    """
    rng, kinds = np.random.default_rng(0), ("normal",)
    n_found = 0
    for _ in range(40):
        X = rng.normal(size=(n_rows, 1))
        truth = norm.logpdf(X).sum() + units_of(X).log_volume(X).sum()
        rows = rows_of(X, kinds, np.array([0, n_rows]))
        n_found += best_regression(rows, kinds, truth).gain > CHANCE
    assert n_found <= 2


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("kind", ["normal", "heavy", "poisson"])
def test_the_regression_that_made_the_rows_is_found(name, kind):
    """With missing rows, in several sequences, and in other units."""
    draw, (seasonal, on_rows) = SERIES[name]
    rng = np.random.default_rng(1)
    bounds = np.array([0, 150, 400])
    times = np.concatenate([np.arange(150), np.arange(250)])
    level = draw(rng, times)
    X = rng.poisson(np.exp(0.5 + level)) if kind == "poisson" else rng.normal(2 * level)
    if kind == "heavy":
        X, kind = 4 * level + rng.standard_t(1.5, 400), "normal"
    X = np.where(rng.random(400) < 0.05, np.nan, X)[:, None]
    found = best_regression(rows_of(X, (kind,), bounds), (kind,), -np.inf)
    assert found.gain > 15
    assert (found.period is not None, found.on_rows) == (seasonal, on_rows)
    if seasonal:
        assert abs(found.period / 17.5 - 1) < 0.03
    if kind == "normal":
        moved = rows_of(1e4 + 1e-3 * X, (kind,), bounds)
        other = best_regression(moved, (kind,), -np.inf)
        assert_allclose(other.gain, found.gain, rtol=1e-6)
    flat = np.column_stack([X, np.ones(400)])
    flat = best_regression(rows_of(flat, (kind,) * 2, bounds), (kind,) * 2, -np.inf)
    assert flat.gain > 15  # a constant feature adds no gain, only a penalty
    assert flat.gain < found.gain


def test_nothing_is_said_of_constant_rows():
    for kind in ("normal", "poisson"):
        rows = rows_of(np.ones((60, 2)), (kind,) * 2, np.array([0, 1, 60]))
        assert best_regression(rows, (kind,) * 2, -np.inf).gain == 0


@short_runs
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (1e4, 1e-3), (-1e6, 1e3)])
def test_a_noisy_season_of_numbers_is_reported(shift, scale):
    rng = np.random.default_rng(3)
    X = 1.5 * np.sin(np.arange(200) * 2 * np.pi / 30)[:, None] + rng.normal(
        size=(200, 1)
    )
    with pytest.warns(ConvergenceWarning, match="a season of (29|30)"):
        markov(3, emission="per_state").fit(shift + scale * X)


@pytest.mark.slow
@short_runs
def test_a_noisy_season_of_counts_is_reported():
    rng = np.random.default_rng(3)
    wave = np.sin(np.arange(200) * 2 * np.pi / 30)
    X = rng.poisson(np.exp(1.0 + 0.7 * wave))[:, None] * 1.0
    with pytest.warns(ConvergenceWarning, match="a season of"):
        markov("auto", n_iter=60, burn_in=60).fit(X)


@pytest.mark.slow
@short_runs
@pytest.mark.parametrize(
    ("step", "duration"), [(2, "negative_binomial"), (3, "geometric")]
)
def test_rows_that_are_observed_at_a_step_are_reported(step, duration):
    """As each transition matrix has others with the same power."""
    states = np.arange(240) // 24 % 2
    X = np.full((240, 2), np.nan)
    rng = np.random.default_rng(0)
    for first in (1, 120):  # another place in each sequence
        places = np.arange(first, first + 117, step)
        X[places] = 5.0 * states[places, None] + rng.normal(size=(len(places), 2))
    model = markov(duration=duration, n_iter=20, burn_in=20)
    with pytest.warns(ConvergenceWarning, match=f"are {step} rows apart"):
        model.fit(X, lengths=[120, 120])
    X[60] = 0.0  # one neighbour suffices to tell them apart
    model.fit(X, lengths=[120, 120])


def one_by_one(pairs, n_categories):
    """Log probability of categories after others, with Jeffreys' prior."""
    seen, total = {}, 0.0
    for before, code in pairs:
        counts = seen.setdefault(before, np.full(n_categories, 0.5))
        total += np.log(counts[code] / counts.sum())
        counts[code] += 1
    return total


def test_the_evidence_of_categories_is_that_of_predicting_one_by_one():
    rng = np.random.default_rng(0)
    codes, firsts = rng.integers(3, size=(60, 1)) * 1.0, (0, 25)
    codes[[7, 8, 40]] = np.nan
    times = np.concatenate([np.arange(25), np.arange(35)])
    known = [(i, int(code)) for i, code in enumerate(codes[:, 0]) if code == code]
    alone = one_by_one([(None, code) for _, code in known], 3)
    after = [None if i in firsts else codes[i - 1, 0] for i, _ in known]
    after = [None if own != own else own for own in after]
    pairs = zip(after, (code for _, code in known), strict=True)
    chained = max(alone, one_by_one(pairs, 3)) - np.log(2)
    assert_allclose(_log_evidence_of_names(codes, times), (alone, chained))


def test_no_chain_of_categories_is_better_than_true_states():
    transitions = np.array([[0.95, 0.05], [0.05, 0.95]])
    chances = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    for seed in range(25):
        rng = np.random.default_rng(seed)
        states = (rng.random(120) < 0.05).cumsum() % 2
        codes = (rng.random(120)[:, None] > chances[states].cumsum(axis=1)).sum(axis=1)
        truth = true_log_likelihood(chances.T[codes], transitions)
        rows = rows_of(codes[:, None] * 1.0, ("categorical",), np.array([0, 120]))
        assert best_regression(rows, ("categorical",), truth).gain < CHANCE


@short_runs
@pytest.mark.slow
@pytest.mark.parametrize("emission", ["categorical", ["categorical", "normal"]])
def test_what_categories_and_columns_beside_them_depend_on(emission):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(2, size=600), rng.normal(np.arange(600) / 200)])
    said = "a (regression on time|row has a correlation)"  # a trend has both
    if emission == "categorical":  # five names in a cycle
        X, said = ((rng.random(400) < 0.9).cumsum() % 5)[:, None], "a Markov chain"
    model = markov(3, emission=emission, n_atoms=1)
    with pytest.warns(ConvergenceWarning, match=f"beyond their states: {said}"):
        model.fit(X)
