"""Exchanges of components: what they reach, and that their bounds are bounds."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import (
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
    _exchanges,
    _learner,
    _moves,
    _search,
)
from skpacbayes.mixture._ascent import Fit, State


def no_exchange(fit, X, sample_weight, settled=None, **_):
    return fit, settled


def gaussian(n_components, **parameters):
    return TemperedVBGaussianMixture(n_components, **{"random_state": 0, **parameters})


@pytest.mark.slow
def test_one_start_with_exchanges_reaches_the_best_of_eight_starts(monkeypatch):
    """Twelve components from one run of k-means, which misses some on most sets."""
    monkeypatch.setattr(_search, "SEEDINGS", 1)
    missed = []
    for seed in range(4):
        X, _ = make_mixture(
            n_samples=1500, n_components=12, separation=4, random_state=seed
        )
        exchanged = gaussian(12, n_init=1).fit(X)
        with monkeypatch.context() as patch:
            patch.setattr(_learner, "exchange_components", no_exchange)
            one, eight = (gaussian(12, n_init=n).fit(X).elbo_ for n in (1, 8))
        assert exchanged.elbo_ >= one - 1e-9 * abs(one)
        assert exchanged.elbo_ > eight - 1e-3 * len(X)
        assert (np.diff(exchanged.elbo_history_) >= -1e-9 * abs(one)).all()
        assert exchanged.elbo_history_[-1] == exchanged.elbo_
        missed.append(eight - one > 1e-2 * len(X) or exchanged.elbo_ > one + 10)
    assert any(missed)


def test_exchanges_also_help_counts(monkeypatch):
    """From one run of k-means; singular vectors find these topics at once."""
    monkeypatch.setattr(_search, "SEEDINGS", 1)
    monkeypatch.setattr(_search, "other_starts", lambda *_, **__: [])
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(15, 0.3), 8)
    rows = rng.multinomial(30, topics[rng.integers(0, 8, 400)])
    gains = []
    for seed in range(6):
        fits = []
        for exchange in (_learner.exchange_components, no_exchange):
            with monkeypatch.context() as patch:
                patch.setattr(_learner, "exchange_components", exchange)
                mixture = TemperedVBMultinomialMixture(8, n_init=1, random_state=seed)
                fits.append(mixture.fit(rows).elbo_)
        gains.append(fits[0] - fits[1])
    assert min(gains) >= -1e-6
    assert max(gains) > 10


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("window", [0, 300])
def test_a_group_that_comes_late_gets_a_component(kind, window):
    """The first block shows three groups to four components, then comes a fourth.

    The bound stays below that of the same law with the best responsibilities, and no
    row is lost; with a window, the four groups get a component each.
    """
    rng = np.random.default_rng(0)
    centers = 8.0 * np.array([[0, 0], [0, 1], [1, 0], [1.25, 1]])
    labels = np.append(rng.integers(0, 3, 150), rng.integers(0, 4, 1050))
    X = centers[labels] + rng.normal(size=(1200, 2))
    stream = gaussian(4, covariance_type=kind, block_size=150, window=window)
    stream.partial_fit(X)
    assert_allclose(stream.statistics_[:, 0].sum(), 1200)
    current = stream._answer().stream
    mixture = current.learned.mixture
    best = mixture.bound(current.state, mixture.e_step(current.state, X)[1])
    assert stream.elbo_ <= best + 1e-9 * abs(best)
    if window:
        found = stream.predict(X)
        assert adjusted_rand_score(labels, found) > 0.95


def test_one_and_two_components_have_nothing_to_exchange():
    X, _ = make_mixture(n_samples=200, n_components=2, random_state=0)
    for K in (1, 2):
        assert gaussian(K).fit(X).n_components_ == K


def test_history_is_whole_where_the_bound_steps_down(monkeypatch):
    """With missing values an exchange may lower the bound: the criterion counts."""
    family = SimpleNamespace(missing_gains=lambda components: np.array(components))
    mixture = SimpleNamespace(family=family, enough=lambda *arguments: 0.1)

    def fit_with(correction, history):
        state = State(np.ones(3), (correction,))
        return Fit(mixture, state, None, history, True)

    before = fit_with(0.0, [-9.0, -5.0])
    for after, expected in (
        (fit_with(4.0, [-8.0, -6.0]), [-9.0, -5.0, -6.0]),
        (fit_with(0.0, [-6.0, -4.0, -3.0]), [-9.0, -5.0, -4.0, -3.0]),
    ):
        found = iter([(after, None), (None, None)])
        monkeypatch.setattr(
            _exchanges, "best_exchange", lambda *_, found=found: next(found)
        )
        monkeypatch.setattr(_exchanges, "followed", lambda fit, *_: fit)
        fit, _ = _exchanges.exchange_components(
            before, np.zeros((5, 2)), None, seed=0, options={"tol": 1e-5}
        )
        assert fit.history == expected
        assert fit.bound == after.bound


@pytest.mark.parametrize(
    "mixture",
    [
        gaussian(4),
        gaussian(4, covariance_type="tied"),
        gaussian(4, covariance_type="diag"),
        gaussian(4, covariance_prior=np.eye(2)),
        gaussian(4, outliers=True),
        TemperedVBMultinomialMixture(4, random_state=0),
        *(
            TemperedVBMixture(family, 4, random_state=0)
            for family in (
                "student",
                "regression",
                "gamma",
                [("a", "normal", [0]), ("b", "gamma", [1])],
            )
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("missing", [False, True])
def test_candidates_are_judged_by_their_bounds(mixture, missing):
    """The components that change give the bound and the state after an M-step."""
    X = np.abs(make_mixture(n_samples=120, n_components=4, random_state=1)[0])
    if missing:
        if not mixture.__sklearn_tags__().input_tags.allow_nan:
            return
        X[::3, -1] = np.nan
    answer = clone(mixture).fit(X)._answer()
    engine, state, total = answer.mixture, answer.state, answer.statistics
    pair = _moves.merged(engine, state, total, 0, 1)
    candidates = [
        _moves.Candidate(pair[[0, 2, 3]], np.array([0, 2, 3]), np.array([0])),
        _moves.cut(total, 0.3 * total, 0.7 * total, 2),
    ]
    criteria, state_of = _moves.judged(engine, state, total, candidates)
    for i, candidate in enumerate(candidates):
        after = candidate.state(engine, state)
        expected = engine.criterion_of(after, candidate.statistics)
        assert_allclose(criteria[i], expected, rtol=1e-10)
        log_joint, other = np.empty((2, 5, len(candidate.source)))
        engine.density(after).log_joint(X[:5], log_joint)
        engine.density(state_of(i)).log_joint(X[:5], other)
        assert_allclose(other, log_joint, rtol=1e-10)
