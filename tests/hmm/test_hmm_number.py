"""The posterior of the number of states of `DirichletProcessHMM`: exact evidences.

Estimates of the log evidence are compared with enumeration and quadrature. Their
standard errors are estimated from repetitions: the bounds are quantiles of Student
distributions, so that a test fails on correct code with probability below 1e-4, were
the seeds new. The seeds are fixed.
"""

import copy
import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from scipy.special import gammaln, logsumexp, softmax
from sklearn.base import clone

from skpacbayes.hmm import DirichletProcessHMM
from skpacbayes.hmm import _dirichlet_process_number as _number
from skpacbayes.hmm._dirichlet_process_evidence import log_evidence, log_ratio, sizes_of
from skpacbayes.hmm._dirichlet_process_number import number_of_states
from skpacbayes.hmm._dirichlet_process_selection import Learnt, chain_of
from skpacbayes.hmm._dirichlet_process_series import Series
from skpacbayes.hmm._dirichlet_process_settings import Settings

# Chains are short here; how well they mix is tested elsewhere.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The chains disagree", "ignore:The halves of the chain"
)

# Many short estimates: of a few long ones, the Student quantile would be large.
N_REPEATS = 16
BOUND = stats.t(N_REPEATS - 1).isf(0.5e-4)


def log_dirichlet(counts, prior):
    """Log probability of a sequence with these counts, given a Dirichlet prior."""
    counts = np.asarray(counts, dtype=float)
    total = counts.size * prior
    return (
        gammaln(total)
        - gammaln(total + counts.sum())
        + (gammaln(prior + counts) - gammaln(prior)).sum()
    )


def log_path(path, k, prior):
    """Log probability of a path with free first states, transitions summed out."""
    moves = np.zeros((k, k))
    np.add.at(moves, (path[:-1], path[1:]), 1)
    first = np.bincount(path[:1], minlength=k)
    return sum(log_dirichlet(row, prior) for row in [first, *moves])


def evidence_of_paths(rows, k, prior, log_evidence_of):
    """Log evidence by the sum over all paths."""
    terms = []
    for path in map(np.array, itertools.product(range(k), repeat=len(rows))):
        of_states = (log_evidence_of(rows[path == j]) for j in range(k))
        terms.append(log_path(path, k, prior) + sum(of_states))
    return logsumexp(terms)


def of_categories(values):
    return log_dirichlet(np.bincount(values.astype(int), minlength=2), 0.5)


def of_normals(values):
    """Evidence of normals: the mean is integrated out, then variance and scale."""
    if not len(values):
        return 0.0
    n, mean = len(values), values.mean()
    square = ((values - mean) ** 2).sum()

    def given_origin_and_scale(log_scale, origin):
        # Variance inverse gamma(2, scale), mean N(origin, variance / 0.05).
        scale = np.exp(log_scale)
        half = 0.5 * (square + 0.05 * n / (0.05 + n) * (mean - origin) ** 2)
        logs = (
            gammaln(2 + n / 2)
            - gammaln(2)
            + 2 * np.log(scale)
            - (2 + n / 2) * np.log(scale + half)
            + 0.5 * np.log(0.05 / (0.05 + n))
            - n / 2 * np.log(2 * np.pi)
        )
        prior = stats.gamma(0.5, scale=0.5).logpdf(scale) + log_scale
        return np.exp(logs + prior) * stats.norm(0, np.sqrt(10)).pdf(origin)

    log_scales, origins = np.linspace(-18, 4, 200), np.linspace(-16, 16, 161)
    grid = given_origin_and_scale(log_scales[:, None], origins)
    inner = integrate.simpson(grid, x=origins, axis=1)
    return np.log(integrate.simpson(inner, x=log_scales))


def of_counts(values, mean):
    """Evidence of Poisson counts: mean gamma(1, rho), rho gamma(1, mean of all)."""
    n, total = len(values), values.sum()

    def given_rho(rho):
        logs = np.log(rho) - (1 + total) * np.log(rho + n) + gammaln(1 + total)
        return np.exp(logs - gammaln(values + 1).sum() + np.log(mean) - mean * rho)

    return np.log(integrate.quad(given_rho, 0, np.inf, epsabs=0)[0])


def estimates(model, X, n_given=0, n_iter=15, bounds=None):
    series = Series(X, np.array([0, len(X)] if bounds is None else bounds))
    settings = Settings.of(model, series.rows)
    found = []
    prior = settings.models(model.n_states)[-1]
    learnt = Learnt.of(series, prior)
    for seed in range(N_REPEATS):
        rng = np.random.default_rng((7, seed))
        start = chain_of(learnt.rows, prior, rng).parameters
        order = np.r_[np.arange(n_given), n_given + rng.permutation(len(X) - n_given)]
        given = {"n_given": n_given, "n_iter": n_iter, "rng": rng}
        found.append(log_evidence(series, learnt, prior, start, order, **given))
    return np.array(found), learnt


def assert_close(found, exact):
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert error < 0.3
    assert abs(found.mean() - exact) < BOUND * error


FREE = {"startprob": "dirichlet", "min_transition": 0.0, "n_atoms": 1}


@pytest.mark.slow
@pytest.mark.parametrize(("n_states", "n_given"), [(1, 0), (2, 0), (3, 3)])
def test_evidence_of_categories(n_states, n_given):
    """The estimates are those of all paths, also given some rows."""
    rows = np.array([0, 0, 0, 1, 1, 1, 0.0])
    model = DirichletProcessHMM(n_states, emission="categorical", **FREE)
    found, _ = estimates(model, rows[:, None], n_given)
    prior = 1.0 / max(n_states - 1, 1)
    exact = evidence_of_paths(rows, n_states, prior, of_categories)
    if n_given:
        exact -= evidence_of_paths(rows[:n_given], n_states, prior, of_categories)
    assert_close(found, exact)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({"startprob": "stationary"}, 1 / 4),
        ({"startprob": "dirichlet"}, 1 / 3),
        ({"duration": "negative_binomial"}, 1 / 4),
    ],
    ids=str,
)
def test_evidence_of_sequences(options, same):
    """Two sequences with a missing row, where all transitions have probability 1/2.

    `same`: prior probability of each pair of equal first states.
    """
    rows = np.array([0, 0, np.nan, 0, 1, 1, 1, 1])
    prior = {"min_transition": 0.5, "n_atoms": 1, **options}
    model = DirichletProcessHMM(2, emission="categorical", **prior)
    found, _ = estimates(model, rows[:, None], bounds=[0, 4, 8])
    terms, seen = [], ~np.isnan(rows)
    for path in map(np.array, itertools.product(range(2), repeat=8)):
        of_firsts = same if path[0] == path[4] else 0.5 - same
        of_states = (of_categories(rows[seen & (path == j)]) for j in range(2))
        terms.append(np.log(of_firsts) - 6 * np.log(2) + sum(of_states))
    assert_close(found, logsumexp(terms))


@pytest.mark.slow
@pytest.mark.parametrize("n_states", [1, 2])
def test_evidence_of_normals(n_states):
    rows = np.array([-1.0, -0.6, 1.4, 0.9, 1.1])
    model = DirichletProcessHMM(n_states, emission="per_state", **FREE)
    found, learnt = estimates(model, rows[:, None], n_iter=40)
    exact = evidence_of_paths(learnt.rows.values[:, 0], n_states, 1.0, of_normals)
    assert_close(found, exact)


@pytest.mark.slow
def test_evidence_of_counts():
    rows = np.array([0, 1, 0, 7, 9, 6.0])
    model = DirichletProcessHMM(2, emission="poisson", **FREE)
    found, _ = estimates(model, rows[:, None], n_iter=40)
    exact = evidence_of_paths(rows, 2, 1.0, lambda own: of_counts(own, rows.mean()))
    assert_close(found, exact)


def test_bennett_ratio():
    """Normals with ratio exp(3 + x - 1/2), at twice the 1e-4 bound of their means."""
    rng = np.random.default_rng(0)
    forward, backward = rng.normal(0, 1, 4000) + 2.5, rng.normal(1, 1, 4000) + 2.5
    assert abs(log_ratio(forward, backward) - 3.0) < 4.5 / np.sqrt(4000)


def test_sizes():
    assert sizes_of(10) == [10, 7, 5, 3, 2, 1, 0]
    assert sizes_of(10, 4) == [10, 7, 5, 4]
    assert sizes_of(3, 3) == [3]


def spreads(n_rows=120):
    """Rows of two states that differ in spread, one of them far from all others."""
    rng = np.random.default_rng(5)
    states = np.arange(n_rows) // 30 % 2
    X = np.array([0.3, 6.0])[states] * rng.normal(size=n_rows)
    X[40] = 150.0
    return X[:, None]


@pytest.fixture(scope="module")
def fitted():
    model = DirichletProcessHMM(2, n_iter=100, burn_in=50, random_state=0)
    return model.fit(spreads())


@pytest.mark.slow
def test_posterior(fitted):
    """Two states are much more probable than one; the far row is given."""
    found = fitted.n_states_posterior([2, 1], n_iter=10)
    assert found.n_states.tolist() == [2, 1]
    assert found.probabilities[0] > 0.999
    assert found.probabilities.sum() == pytest.approx(1.0)
    assert found.log_evidence_std[0] == 0.0
    assert found.log_evidence_std[1] > 0.0
    assert 40 in found.isolated_rows
    again = fitted.n_states_posterior([1], n_iter=10)
    assert_array_equal(again.log_evidence, found.log_evidence[[1]])
    third = fitted.n_states_posterior([1, 3], n_iter=10).log_evidence[1:]
    assert_array_equal(fitted.n_states_posterior([3], n_iter=10).log_evidence, third)
    other = fitted.n_states_posterior([1], n_iter=10, random_state=1)
    assert other.log_evidence[0] != again.log_evidence[0]


@pytest.mark.parametrize(("given", "prior"), [("auto", 1.0), (0.2, 0.2)])
def test_prior_of_the_transitions(given, prior, monkeypatch):
    """It is uniform for all numbers, unless it is given; fits begin with the chain."""
    seen = []

    def recorded(series, learnt, model, start, order, **others):
        seen.append((model.n_states, model.transition_prior, start))
        return log_evidence(series, learnt, model, start, order, **others)

    monkeypatch.setattr(_number, "log_evidence", recorded)
    short = {"n_iter": 30, "burn_in": 20, "n_chains": 1, "random_state": 0}
    model = DirichletProcessHMM(3, transition_prior=given, **short).fit(spreads(60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.n_states_posterior([2, 3], n_iter=2, n_repeats=2)
    assert {own[:2] for own in seen} == {(2, prior), (3, prior)}
    first = [own[2].transitions for own in seen if own[0] == 3]
    assert_array_equal(first[0], model._answer().chains.states[0][0].transitions)


def test_parameters_set_after_the_fit_are_not_used(fitted):
    """They take effect at the next fit."""
    changed = copy.deepcopy(fitted).set_params(n_atoms=1, min_transition=0.9)
    expected = fitted.n_states_posterior([1, 2], n_iter=5)
    found = changed.n_states_posterior([1, 2], n_iter=5)
    assert_array_equal(found.log_evidence, expected.log_evidence)


@pytest.mark.slow
def test_units_and_origin(fitted):
    """In other units, the evidence changes by the log of the unit of each row."""
    found = fitted.n_states_posterior([1, 2], n_iter=10)
    moved = clone(fitted).fit(1e4 + 1024.0 * spreads())
    moved = moved.n_states_posterior([1, 2], n_iter=10)
    assert_array_equal(moved.isolated_rows, found.isolated_rows)
    assert_allclose(moved.probabilities, found.probabilities, atol=1e-6)
    n_others = 120 - len(found.isolated_rows)
    change = found.log_evidence - moved.log_evidence
    assert_allclose(change, n_others * np.log(1024), rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "n_features"),
    [
        ({"emission": "poisson"}, 2),
        ({"covariance_type": "full"}, 2),
        ({"duration": "negative_binomial"}, 1),
        ({"emission": "translated"}, 1),
        ({"window": 20}, 1),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The evidence of")  # from few draws
def test_every_kind(options, n_features):
    """Every model has an evidence, with missing values and in several sequences."""
    X = np.random.default_rng(0).poisson(5.0, size=(30, n_features))
    X = X + 20.0 * (np.arange(30)[:, None] // 5 % 2)
    X[3], X[5, 0] = np.nan, np.nan
    model = DirichletProcessHMM(2, n_iter=20, burn_in=20, random_state=0, **options)
    if "window" in options:
        model = model.partial_fit(X[:25]).partial_fit(X[25:])
    else:
        model = model.fit(X, lengths=[10, 20])
    found = model.n_states_posterior([1, 2], n_iter=5, n_repeats=2)
    assert np.isfinite(found.log_evidence).all()
    assert found.probabilities.sum() == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:The rows hardly tell")  # which are noise
def test_few_rows_for_the_features():
    """If no row predicts another one, nothing is compared, and a warning says so."""
    X = np.random.default_rng(0).normal(size=(10, 6))
    X = np.vstack([X, np.full((20, 6), np.nan)])
    model = DirichletProcessHMM(2, n_iter=20, burn_in=20, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="depend on 0 of 10 rows"):
        found = model.n_states_posterior([1, 2], n_iter=20, n_repeats=2)
    assert sorted(found.isolated_rows) == list(range(10))
    assert found.probabilities.tolist() == [0.5, 0.5]


class KnownNumbers:
    """Numbers of states whose evidence is known up to an error."""

    def __init__(self, means, error=0.0, n_fitted=1, largest=12):
        self.means, self.error = means, error
        self.found = SimpleNamespace(model=SimpleNamespace(n_states=n_fitted))
        self.settings = SimpleNamespace(largest=largest)
        self.isolated = np.arange(0)

    def estimates(self, n_states):
        errors = self.error * np.array([-1.0, 1.0, -1.0, 1.0]) * (-1) ** n_states
        return self.means[n_states - 1] + errors


def test_search_ends():
    """The search ends after two improbable numbers, not before the fitted one."""
    found = number_of_states(KnownNumbers([0, 9, 10, 2, 9, 3, 2, 1, 0]), None)
    assert found.n_states.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert_allclose(found.probabilities, softmax(found.log_evidence))
    found = number_of_states(KnownNumbers([9, 0, 0, 0, 0], n_fitted=4), None)
    assert found.n_states.tolist() == [1, 2, 3, 4, 5]
    found = number_of_states(KnownNumbers([0, 1, 2], largest=3), None)
    assert found.n_states.tolist() == [1, 2, 3]


def test_doubtful_lead():
    """There is a warning if the interval of the lead includes 0, and is not narrow."""
    with pytest.warns(UserWarning, match="2 states is higher than that of 1 by 3.0"):
        number_of_states(KnownNumbers([0, 3.0], error=1.0), [1, 2])
    number_of_states(KnownNumbers([0, 7.0], error=1.0), [1, 2])
    number_of_states(KnownNumbers([0, 0.3], error=0.3), [1, 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_states": [0, 1]}, "n_states=0 should be an integer of at least 1"),
        ({"n_states": [1.5]}, "n_states=1.5 should be an integer"),
        ({"n_states": [2, 2]}, "should be different numbers"),
        ({"n_states": []}, "should have at least one number"),
        ({"n_states": 1001}, "at most 1 / min_transition = 1000"),
        ({"n_iter": 0}, "n_iter=0 should be"),
        ({"n_repeats": 1}, "n_repeats=1 should be an integer of at least 2"),
    ],
)
def test_wrong_arguments(fitted, arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted.n_states_posterior(**arguments)


@pytest.mark.parametrize("n_repeats", [2, 3, 4, 10])
def test_a_wrong_number_is_warned_of_however_few_the_repetitions(n_repeats):
    """A wrong number wins without a warning as rarely as intervals of 95 % miss.

    Estimates of three states, whose evidence is 3 nats less, have an error of 8 nats.
    Without a warning, the lead of the wrong number is beyond its interval (2.5 %), or
    the interval is narrower than 2 nats by chance (2.2 % at two repetitions, for which
    Student's density at 0 is highest): at most 94 of 2,000 trials are expected, and
    more than 130 have a probability below 2e-4.
    """
    rng = np.random.default_rng(n_repeats)
    silent = 0
    for _ in range(2000):
        noise = rng.normal(scale=8.0 / np.sqrt(2.0), size=(2, n_repeats))
        estimates = {2: noise[0], 3: noise[1] - 3.0}
        numbers = SimpleNamespace(isolated=np.arange(0), estimates=estimates.get)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = number_of_states(numbers, [2, 3])
        silent += not caught and found.log_evidence.argmax() == 1
    assert silent <= 130
