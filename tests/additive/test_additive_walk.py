"""The walk over models visits them as often as it should."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from skpacbayes.additive import _walk
from skpacbayes.additive._walk import (
    BACK,
    FREQUENCIES,
    Neighbourhoods,
    State,
    step,
)

RANKS = np.array([2, 1, 3])
N_STEPS, THINNING = 12_000, 4


def every_model(ranks, max_active):
    orders = itertools.product(*(range(rank + 1) for rank in ranks))
    models = [tuple((j, k) for j, k in enumerate(m) if k) for m in orders]
    return [model for model in models if len(model) <= max_active]


def target(models):
    """Log weights of the models, some far from others."""
    rng = np.random.default_rng(3)
    return dict(zip(models, rng.normal(scale=0.8, size=len(models)), strict=True))


def noisy(log_target):
    """Weights of models: their own times 0.2 or 1.8, by chance.

    The mean is the model's own, as that of target / pseudo-prior under the pseudo-prior
    is the model's evidence.
    """

    def weigh(models, rng):
        noise = np.where(rng.random(len(models)) < 0.5, 0.2, 1.8)
        return list(noise), np.array([log_target[m] for m in models]) + np.log(noise)

    return weigh


def walk(log_target, move, seed):
    """Visits of each model."""
    rng = np.random.default_rng(seed)
    state = State((), 1.0, log_target[()])
    visits = dict.fromkeys(log_target, 0)
    for number in range(N_STEPS):
        state = move(state, rng)
        if number % THINNING == 0:
            visits[state.model] += 1
    return np.array(list(visits.values()))


def chi_square_p_value(visits, log_target):
    expected = np.exp(list(log_target.values()))
    expected *= visits.sum() / expected.sum()
    statistic = ((visits - expected) ** 2 / expected).sum()
    return chi2.sf(statistic / 2, len(visits) - 1)  # visits count half: correlation


@pytest.mark.parametrize("n_candidates", [None, 1, 2])
@pytest.mark.parametrize("max_active", [2, 3])
def test_visits_follow_the_target(n_candidates, max_active):
    """A wrong ratio is found by the next test; a right one fails once in 1e4 seeds."""
    log_target = target(every_model(RANKS, max_active))
    neighbourhoods = Neighbourhoods(RANKS, max_active, n_candidates)
    weigh = noisy(log_target)

    def move(state, rng):
        state, kind, _ = step(state, neighbourhoods, weigh, rng)
        assert kind in FREQUENCIES
        return state

    visits = walk(log_target, move, seed=0)
    assert chi_square_p_value(visits, log_target) > 1e-4


def test_the_ratio_as_printed_fails(monkeypatch):
    """The test of the test: accept with probability min(1, w' / w)."""
    log_target = target(every_model(RANKS, 3))
    neighbourhoods = Neighbourhoods(RANKS, 3)
    weigh = noisy(log_target)
    # A ratio that accepts always shows the proposal.
    monkeypatch.setattr(_walk, "corrected_log_ratio", lambda *_: np.inf)

    def move(state, rng):
        proposal, _, _ = step(state, neighbourhoods, weigh, rng)
        printed = proposal.log_weight - state.log_weight
        return proposal if np.log(rng.random()) < printed else state

    visits = walk(log_target, move, seed=0)
    assert chi_square_p_value(visits, log_target) < 1e-12


@pytest.mark.parametrize("max_active", [1, 2, 3])
def test_neighbourhoods_are_symmetric_and_complete(max_active):
    """A move leads from one model to another just if the move back returns."""
    models = every_model(RANKS, max_active)
    neighbourhoods = Neighbourhoods(RANKS, max_active)
    rng = np.random.default_rng(0)
    reached = set()
    for model in models:
        for kind in neighbourhoods.log_probabilities(model):
            found, log_share = neighbourhoods.draw(model, kind, rng)
            assert log_share == 0
            assert len(set(found)) == len(found)
            for other in found:
                assert other in models
                assert (other == model) == (kind == "stay")
                back, _ = neighbourhoods.draw(other, BACK[kind], rng)
                assert model in back
                reached.add((model, other))
    add_or_delete = {
        (m, o)
        for m in models
        for o in models
        if len(set(m) ^ set(o)) == 1 or m == o != ()
    }
    assert add_or_delete <= reached


def test_subsets_hold_what_they_must_and_are_uniform():
    """Given one member, each other is as probable; z-scores below 5, 9 of them."""
    ranks = np.array([2, 2, 2, 2, 2])
    neighbourhoods = Neighbourhoods(ranks, 5, n_candidates=4)
    rng = np.random.default_rng(0)
    held = ((1, 2),)
    counts = {}
    n_draws = 3000
    for _ in range(n_draws):
        models, log_share = neighbourhoods.draw((), "add", rng, holding=held)
        assert models[0] == held
        assert len(set(models)) == 4
        for model in models[1:]:
            counts[model] = counts.get(model, 0) + 1
    assert np.isclose(log_share, np.log(0.4))
    p = 3 / 9
    z = (np.array(list(counts.values())) - n_draws * p) / np.sqrt(n_draws * p * (1 - p))
    assert len(counts) == 9
    assert abs(z).max() < 5


def test_variables_without_functions_never_enter():
    neighbourhoods = Neighbourhoods(np.array([0, 2, 0]), 3)
    assert list(neighbourhoods.log_probabilities(())) == ["add"]
    rng = np.random.default_rng(0)
    assert sorted(neighbourhoods.draw((), "add", rng)[0]) == [((1, 1),), ((1, 2),)]
    full = Neighbourhoods(np.array([0, 1]), 2).log_probabilities(((1, 1),))
    assert set(full) == {"delete", "stay"}


def test_a_single_model_stays():
    neighbourhoods = Neighbourhoods(np.array([0, 0]), 2)
    state = State((), None, 0.0)
    assert step(state, neighbourhoods, None, np.random.default_rng(0)) == (
        state,
        "stay",
        False,
    )
