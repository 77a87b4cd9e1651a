"""Rows that were learnt are no rows after the stream: questions about them warn."""

import pickle

import numpy as np
import pytest
from designs import every_two
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from test_filtering_pmmh import PRIOR, rows, tracker

from skpacbayes.filtering import (
    SMC2,
    ClusteredParticleFilter,
    ParticleMarginalMetropolis,
    ParticleMaximumLikelihood,
)
from skpacbayes.filtering._seen_rows import N_KEPT, first_and_last, warn_of_seen_rows

FOLLOWING = ("filter", "smooth", "log_likelihoods", "score", "sample_trajectories")
ALTERNATIVES = ("predict", "score_samples")


def walk(n, shift=0.0, unit=1.0):
    return shift + unit * np.random.default_rng(0).normal(size=(n, 1)).cumsum(axis=0)


def in_blocks(model, X):
    """The model after a stream in blocks of one, two, ... rows."""
    start, size = 0, 1
    while start < len(X):
        model.partial_fit(X[start : start + size])
        start, size = start + size, size + 1
    return model


@pytest.mark.parametrize(
    ("method", "size", "place", "learn"),
    every_two(
        FOLLOWING + ALTERNATIVES,
        [20, 40, 200],
        [(0.0, 1.0), (1e4, 1e-3), (-1e4, 1e3)],
        [ClusteredParticleFilter.fit, in_blocks],
    ),
)
def test_every_question_about_rows_learnt_warns(method, size, place, learn):
    X = walk(size + 20, *place)
    X[3] = np.nan
    X, new = X[:size], X[size:]
    model = learn(ClusteredParticleFilter(n_particles=20, random_state=0), X)
    ask = getattr(pickle.loads(pickle.dumps(model)), method)
    said = "alternatives" if method in ALTERNATIVES else "after the stream"
    for first in (X, X[: size // 2], np.concatenate([X, new])):
        with pytest.warns(UserWarning, match=f"^X begins with the first .*{said}"):
            ask(first)
    with pytest.warns(UserWarning, match=f"^X ends with the last .*{said}"):
        ask(X[size // 3 :])
    ask(new)  # no warning: errors otherwise
    ask(X[-1:])


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner",
    [
        SMC2(tracker(), PRIOR, n_draws=20, random_state=0),
        ParticleMarginalMetropolis(
            tracker(), PRIOR, n_iter=20, burn_in=0, n_chains=1, random_state=0
        ),
        ParticleMaximumLikelihood(
            tracker(), {"model__transition_variance": (0.01, 9.0)}, random_state=0
        ),
    ],
    ids=lambda learner: type(learner).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_samplers_of_parameters_warn_once(learner):
    X = rows(45)
    learner = clone(learner).fit(X[:25])
    for method in ("filter", "log_likelihoods", "score"):
        if hasattr(learner, method):
            with pytest.warns(UserWarning, match="were learnt") as caught:
                getattr(learner, method)(X[:25])
            assert len(caught) == 1
            getattr(learner, method)(X[25:])


def test_a_search_over_later_rows_does_not_warn():
    search = GridSearchCV(
        ClusteredParticleFilter(n_particles=20, random_state=0),
        {"n_clusters": [None, 2]},
        cv=TimeSeriesSplit(3),
        error_score="raise",
    )
    search.fit(walk(60)).score(walk(80)[60:])


def test_another_fit_forgets_the_rows():
    X = walk(60)
    model = ClusteredParticleFilter(n_particles=20, random_state=0).fit(X[:30])
    model.fit(X[30:]).filter(X[:30])


def test_series_that_begin_alike_by_chance_do_not_warn():
    """Rare counts, states that last, constant rows and gaps; 100 pairs of each."""
    rng = np.random.default_rng(0)
    draws = {
        "rare counts": lambda n: rng.poisson(0.02, n),
        "two states": lambda n: rng.random() < 0.5 + np.zeros(n),
        "states that last": lambda n: np.cumsum(rng.random(n) < 0.02) % 2,
        "few values": lambda n: rng.integers(3, size=n),
        "gaps": lambda n: np.full(n, np.nan),
    }
    for draw in draws.values():
        for size in rng.integers(2, 200, size=100):
            learnt, new = (draw(size).astype(float)[:, None] for _ in range(2))
            warn_of_seen_rows(first_and_last(learnt), new, "")


@pytest.mark.parametrize("size", [3, 200])
def test_ends_do_not_depend_on_the_blocks(size):
    X, ends = np.arange(2.0 * size).reshape(size, 2), None
    for row in X:
        ends = first_and_last(row[None], ends)
    for found, expected in zip(ends, first_and_last(X), strict=True):
        np.testing.assert_array_equal(found, expected)
        assert len(found) == min(size, N_KEPT)
