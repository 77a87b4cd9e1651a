"""Streams of which a window is kept: exact weights, bounded memory, the contract."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

import skpacbayes
from skpacbayes.datasets import make_hidden_markov
from skpacbayes.hmm import DirichletProcessHMM
from skpacbayes.hmm import _dirichlet_process_posterior as posterior
from skpacbayes.hmm._dirichlet_process_series import Series

FEW = {"n_iter": 30, "burn_in": 10, "n_chains": 1, "random_state": 0}


def rows_of(d=1, n=240, seed=0):
    X, states = make_hidden_markov(
        "gaussian", n, n_states=2, n_features=d, separation=4, random_state=seed
    )
    return X, states


def counts(n=240):
    rng = np.random.default_rng(0)
    states = np.repeat(np.arange(n // 20) % 2, 20)
    return rng.poisson(np.array([1, 6])[states])[:, None].astype(float)


KINDS = {
    "per_state, full": (rows_of(2)[0], {"emission": "per_state"}),
    "translated": (rows_of()[0], {"emission": "translated"}),
    "poisson": (counts(), {"emission": "poisson"}),
    "categorical": (counts().clip(0, 4), {"emission": "categorical"}),
}


@pytest.fixture(autouse=True)
def _short_chains():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.mark.parametrize("kind", KINDS)
def test_rows_after_a_run_weigh_its_draws(kind):
    """As Bayes' formula says, and the states are those of each draw's own filter."""
    X, options = KINDS[kind]
    X = X.copy()
    X[185] = np.nan
    if X.shape[1] > 1:
        X[190, 0] = np.nan
    model = DirichletProcessHMM(2, window=300, covariance_type="full", **FEW, **options)
    run = model.partial_fit(X[:180])._answer()
    draws = run.used_draws()
    model.partial_fit(X[180:200])
    model.predict(X[:3])  # asked in between: the weights go on from there
    model.partial_fit(X[200:])
    online = model._answer().online
    rows = run.units.rows(X, [0, len(X)])
    found = [posterior.filtered_states(rows, draw, run.model) for draw in draws]
    logs = np.array([log_densities[180:].sum() for _, log_densities, _ in found])
    assert_allclose(online.log_weights, logs - logsumexp(logs), atol=1e-7)
    assert np.ptp(logs) > 1  # the rows say something of the draws
    last = np.array([probabilities[:, -1] for probabilities, *_ in found])
    expected = np.exp(logs - logsumexp(logs)) @ last
    assert_allclose(model.state_probabilities_, expected, atol=1e-8)
    missing = np.vstack([X, np.full((2, X.shape[1]), np.nan)])
    ahead = model.forecast(2).state_probabilities
    assert_allclose(ahead, model.predict_proba(missing)[-2:], atol=1e-8)
    # an answer is the mean over draws as often as they weigh
    used = [
        int(np.flatnonzero((part == run.draws.log_weights).all((1, 2)))[0])
        for part in model._answer().draws.log_weights  # no two draws have the same
    ]
    shares = np.bincount(used, minlength=len(draws)) / len(draws)
    assert np.abs(shares - np.exp(online.log_weights)).max() <= 1.01 / len(draws)


def test_the_state_now_is_the_last_one_smoothed():
    X, _ = rows_of()
    model = DirichletProcessHMM(2, **FEW).fit(X)
    assert_allclose(model.state_probabilities_, model.predict_proba(X)[-1], atol=1e-12)


@pytest.mark.slow
def test_any_cut_gives_the_same_state():
    X, _ = rows_of(n=400)
    answers = []
    for size in (1, 7, 60, 300):
        model = DirichletProcessHMM(2, window=100, **FEW)
        for start in range(0, 300, size):
            model.partial_fit(X[start : min(start + size, 300)])
        now = model.state_probabilities_  # the chains run here
        for start in range(300, 340, size):
            model.partial_fit(X[start : min(start + size, 340)].tolist())
            model = pickle.loads(pickle.dumps(model))
        answers.append((now, model.state_probabilities_, model.transmat_))
        assert model.n_samples_seen_ == 340
        assert model._answer().online.n_run == 300
    for other in answers[1:]:
        for one, same in zip(answers[0], other, strict=True):
            assert_array_equal(one, same)


def test_memory_is_bounded_and_chains_run_each_half_window():
    X, states = rows_of(n=600)
    model = DirichletProcessHMM(2, window=100, emission="per_state", **FEW)
    runs, sizes, right = [], [], []
    for t in range(600):
        model.partial_fit(X[t : t + 1])
        if t >= 100:
            right.append(model.state_probabilities_.argmax() == states[t])
            runs.append(model._answer().online.n_run)
            if t % 100 == 99:
                sizes.append(len(pickle.dumps(model)))
    assert list(np.unique(runs)) == list(range(101, 601, 50))
    assert len(model._series.rows) == 100
    assert max(sizes[1:]) < 1.1 * sizes[0]
    assert len(model._series._buffer) <= 2 * 101
    # the names of the states stay, over all runs
    assert max(np.mean(right), 1 - np.mean(right)) > 0.95


def test_a_window_forgets():
    rng = np.random.default_rng(0)
    states = np.repeat(np.arange(40) % 2, 10)
    X = (4.0 * states + rng.normal(size=400))[:, None]
    X[200:] += 20.0
    with_window, without = (
        DirichletProcessHMM(2, window=window, **FEW).partial_fit(X)
        for window in (200, None)
    )
    assert abs(np.diff(np.sort(with_window.locations_[:, 0]))[0] - 4) < 1
    assert with_window.locations_.min() > 15
    assert without.locations_.min() < 10


def test_a_series_drops_its_first_rows():
    X = np.arange(60.0)[:, None]
    series = Series(X[:20], np.array([0, 5, 20]))
    longer, n = series, 20
    for size in (3, 1, 30, 2, 4):
        longer = longer.extended(X[n : n + size], 18)
        n += size
        assert_array_equal(longer.rows, X[max(0, n - 18) : n])
        assert longer.n_seen == n
        assert longer.bounds[-1] == len(longer) == 18
    assert_array_equal(longer.bounds, [0, 18])
    assert_array_equal(series.rows, X[:20])
    two = series.extended(X[20:22], 18)  # the first sequence keeps one row
    assert_array_equal(two.bounds, [0, 1, 18])


def test_what_is_no_window():
    with pytest.raises(ValueError, match="window"):
        DirichletProcessHMM(2, window=1).fit(np.zeros((5, 1)))


def test_a_stream_goes_on_from_skops():
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    X, _ = rows_of(n=120)
    model = DirichletProcessHMM(2, window=80, **FEW).partial_fit(X[:100])
    now = model.state_probabilities_
    loaded = io.loads(io.dumps(model), trusted=skpacbayes.TRUSTED_TYPES)
    assert_array_equal(loaded.state_probabilities_, now)
    for one in (model, loaded):
        one.partial_fit(X[100:])
    assert_array_equal(loaded.state_probabilities_, model.state_probabilities_)
    assert loaded._answer().online.n_run == 100
