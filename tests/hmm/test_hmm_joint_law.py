"""A whole sweep of `DirichletProcessHMM` leaves the joint law of its model as it is.

Each test fails on correct code with probability below 1e-4, were the seeds new; its
seed is fixed. That the tests can fail is tested too, by mistakes made on purpose.
"""

import numpy as np
import pytest
from hmm_points import model_of, parameters_of, point_of, with_gaps
from hmm_reference import JointLaw, largest_score
from numpy.testing import assert_allclose

from skpacbayes._kernels.hmm import draw_states
from skpacbayes.hmm import _dirichlet_process_chain as _chain
from skpacbayes.hmm import _dirichlet_process_durations as _durations
from skpacbayes.hmm import _dirichlet_process_gibbs as _gibbs
from skpacbayes.hmm._dirichlet_process_chain import Chain
from skpacbayes.hmm._dirichlet_process_series import Rows

FALSE_ALARM = 1e-4
JOINT = {
    "shared": ({"n_states": 3, "min_transition": 0.1}, [4, 1, 2]),
    "short sequences": ({"n_states": 3}, [1] * 7),
    "one atom": ({"n_atoms": 1}, [9]),
    "per state": ({"shared": False}, [6, 2]),
    "start apart": ({"stationary": False}, [1, 3, 2, 1]),
    "two features, missing": ({"n_features": 2}, [6, 1]),
    "full, missing": ({"n_features": 2, "full": True, "n_atoms": 1}, [7]),
    "full, per state, missing": (
        {"n_features": 2, "full": True, "shared": False, "n_atoms": 2},
        [6],
    ),
    "durations": ({"shared": False, "n_atoms": 1, "staged": True}, [9, 2]),
    "durations, start apart": (
        {"n_states": 3, "n_atoms": 1, "staged": True, "stationary": False},
        [8, 1, 3],
    ),
}


def statistics_of(point, gaps):
    """Functions of everything with light tails, (n, n_statistics).

    First each part of the point, then what ties the parts together: moves and
    transitions, residuals and shapes, means of states and locations.
    """
    n = len(point["start"])
    transitions, start = point["transitions"], point["start"]
    rows = np.where(gaps, 0.0, np.tanh(point["rows"] / 2))
    indicators = np.eye(start.shape[1])[point["states"]]
    means, locations = np.tanh(point["means"] / 2), np.tanh(point["locations"] / 2)
    deviations = np.sqrt(np.einsum("...ff->...f", point["covariances"]))
    logs = np.log(deviations)
    correlation = point["covariances"][..., -1, 0] / deviations[..., (0, -1)].prod(-1)
    shares = point["weights"][..., None]
    moves = np.einsum("nti,ntj->nij", indicators[:, :-1], indicators[:, 1:])
    of_states = np.einsum("ntj,ntf->njf", indicators, rows)
    centers = point["locations"] + (shares * point["means"]).sum(axis=2)
    places = np.einsum("ntj,njf->ntf", indicators, centers)
    residuals = np.where(gaps, 0.0, np.tanh(point["rows"] - places))
    cross = (residuals[..., 0] * residuals[..., -1]).mean(axis=1)
    average = (shares * means).sum(axis=2), (shares * logs).sum(axis=2)
    parts = [
        *(transitions, start, point["weights"], indicators, means, logs, correlation),
        *(locations, rows, transitions**2, moves, of_states, means**2, locations**2),
        *(point["origins"], point["origins"] ** 2, np.log(point["scales"])),
        (point["origins"][:, :, None] * means).mean(axis=2),
        (np.log(point["scales"])[:, :, None] * logs).mean(axis=2),
        point["weights"] ** 2,
        *(transitions * moves, start * indicators[:, 0], locations * of_states),
        locations.mean(axis=1) * rows.mean(axis=1),
        residuals.mean(axis=1),
        residuals.mean(axis=1) ** 2,
        average[1].mean(axis=1) * (residuals**2).mean(axis=1),
        correlation.mean(axis=2) * cross[:, None],
        rows[:, 1:] * rows[:, :-1],
        locations[:, :1] * locations[:, 1:2],
        locations.mean(axis=1) * average[0].mean(axis=1),
        *_of_durations(point["stages"] * 1.0, transitions, moves),
    ]
    return np.hstack([np.reshape(part, (n, -1)) for part in parts])


def _of_durations(stages, transitions, moves):
    """Numbers of stages, and what they have to do with stays and runs."""
    stay, stayed = (np.einsum("njj->nj", part) for part in (transitions, moves))
    runs = moves.sum(axis=2) - stayed
    return stages, stages**2, stages * stay, stages * stayed, stages * runs, stay * runs


def joint_law_scores(name, monkeypatch, n_copies, n_sweeps, seed=0):
    """Scores of how far sweeps move points that have the joint law of the model.

    Parameters, states and rows are drawn from the model, many times. Each point is then
    moved by sweeps with, in between, new rows given its parameters and states. A right
    sweep leaves the joint law as it is (Geweke 2004); here the points are independent,
    and differences between the end and the beginning have mean 0.
    """
    options, lengths = JOINT[name]
    model, rng = model_of(**options), np.random.default_rng(seed)
    monkeypatch.setattr(_durations, "STAGES", np.array([1, 2, 3]))
    joint = JointLaw(model, lengths)
    gaps = np.zeros((sum(lengths), model.n_features), dtype=bool)
    if "missing" in name:
        gaps = np.isnan(with_gaps(np.zeros(gaps.shape), partly=True))
    bounds = np.cumsum([0, *lengths])
    point = joint.draw(n_copies, rng)
    before = statistics_of(point, gaps)
    parameters = [parameters_of(point, copy) for copy in range(n_copies)]
    for sweep in range(n_sweeps):
        if sweep:  # the last new point is compared with the rows that it was given
            point["rows"] = joint.rows(point, rng)
        rows_of_copies, moved = np.where(gaps, np.nan, point["rows"]), []
        for copy, rows in enumerate(rows_of_copies):
            chain = Chain(Rows(rows, bounds), model, rng, parameters[copy])
            chain.sweep()
            parameters[copy] = chain.parameters
            moved.append(point_of(chain.parameters, chain.states))
        changed = {key: np.array([one[key] for one in moved]) for key in moved[0]}
        point = {**point, **changed}
    steps = statistics_of(point, gaps) - before
    spread = steps.std(axis=0, ddof=1)
    assert_allclose(steps[:, spread <= 1e-9], 0.0, atol=1e-8)
    varies = spread > 1e-9
    scores = np.sqrt(n_copies) * steps.mean(axis=0)[varies] / spread[varies]
    return scores, largest_score(len(scores), FALSE_ALARM, n_copies)


def ignoring_first_states(monkeypatch):
    """Transitions without the Metropolis correction."""
    right = _chain.draw_transitions

    def wrong(moved, *rest):
        return right(moved._replace(firsts=0 * moved.firsts), *rest)

    monkeypatch.setattr(_chain, "draw_transitions", wrong)


def ignoring_the_bound(monkeypatch):
    """Transitions below `min_transition`."""
    right = _chain.draw_transitions

    def wrong(moved, parameters, model, rng):
        return right(moved, parameters, model._replace(min_transition=0.0), rng)

    monkeypatch.setattr(_chain, "draw_transitions", wrong)


def looking_forward_only(monkeypatch):
    """States drawn from the filter, each by itself."""

    def wrong(laws, ends, sources, chances, *rest):
        draw_states(laws, ends, sources, np.ones_like(chances), *rest)

    monkeypatch.setattr(_gibbs, "draw_states", wrong)


def forgetting_the_step(monkeypatch):
    """Locations drawn as if the atoms' means had not moved."""
    right = _chain.draw_locations
    monkeypatch.setattr(
        _chain, "draw_locations", lambda m, moved, *rest: right(m, 0 * moved, *rest)
    )


def other_prior(**change):
    """Shapes drawn under another prior, where values are missing."""

    def wrong(monkeypatch):
        right = _chain.draw_atoms
        monkeypatch.setattr(
            _chain,
            "draw_atoms",
            lambda moments, means, origins, scales, model, rng: right(
                moments, means, origins, scales, model._replace(**change), rng
            ),
        )

    return wrong


def mixtures_of_other_prior(place, factor):
    """Mixtures updated under a prior one of whose numbers is multiplied."""

    def wrong(monkeypatch):
        right = _chain.update_mixture

        def changed(*given):
            prior = list(given[6])
            prior[place] *= factor
            return right(*given[:6], tuple(prior), *given[7:])

        monkeypatch.setattr(_chain, "update_mixture", changed)

    return wrong


def swapping_at_another_price(monkeypatch):
    """Atoms swapped under another concentration."""
    right = _chain.swap_neighbors

    def wrong(shapes, atoms, sizes, concentration, rng):
        right(shapes, atoms, sizes, 30.0 * concentration, rng)

    monkeypatch.setattr(_chain, "swap_neighbors", wrong)


def base_of_other_prior(monkeypatch):
    """Origins and scales drawn under another prior."""
    right = _chain.draw_base
    monkeypatch.setattr(
        _chain,
        "draw_base",
        lambda occupied, parameters, model, rng: right(
            occupied, parameters, model._replace(scale_rate=1.5), rng
        ),
    )


def filling_in_means(monkeypatch):
    """Missing values replaced by what is expected instead of drawn."""
    monkeypatch.setattr(Chain, "_complete_rows", _filled_with_centers)


def _filled_with_centers(chain, atoms):
    centers = chain.parameters.centers()
    for t, row in enumerate(chain.rows.values):
        hidden = np.isnan(row)
        if hidden.any() and not hidden.all():
            state = chain.states[t]
            chain._complete[t, hidden] = centers[state, atoms[t], hidden]


def ignoring_the_volume(monkeypatch):
    """Numbers of stages taken by the evidence alone."""
    right = _gibbs.proposed_stages
    monkeypatch.setattr(
        _gibbs, "proposed_stages", lambda *given: (right(*given)[0], 0.0)
    )


def forgetting_the_steps_onward(monkeypatch):
    """Transitions drawn as if a state had one stage."""
    right = _chain.draw_transitions

    def wrong(moved, *rest):
        return right(moved._replace(onward=0 * moved.onward), *rest)

    monkeypatch.setattr(_chain, "draw_transitions", wrong)


# What each does is seen with so many copies and sweeps. What a sweep draws anew
# shows in one of them, and parameters that stray step by step in several. The scores
# grow with the root of the number of copies: here they are about 9, where the bounds
# are 5, as processors round differently, and draws then differ.
MISTAKES = [
    (ignoring_first_states, "short sequences", 2400, 1),
    (ignoring_the_bound, "shared", 1500, 6),
    (looking_forward_only, "per state", 10_500, 2),
    (forgetting_the_step, "one atom", 1800, 6),
    (other_prior(shape=3.6), "two features, missing", 280, 6),
    (other_prior(mean_count=1.2), "two features, missing", 380, 6),
    *[
        (mixtures_of_other_prior(place, factor), "per state", n_copies, 6)
        for place, factor, n_copies in ((0, 6.0, 450), (3, 2.0, 240), (5, 2.0, 850))
    ],
    *[
        (mixtures_of_other_prior(*change), "full, per state, missing", n_copies, 6)
        for change, n_copies in (((1, 1.5), 680), ((3, 2.0), 240), ((5, 2.0), 1080))
    ],
    (filling_in_means, "full, missing", 300, 6),
    (swapping_at_another_price, "shared", 1100, 6),
    (base_of_other_prior, "two features, missing", 450, 6),
    (ignoring_the_volume, "durations, start apart", 720, 6),
    (forgetting_the_steps_onward, "durations, start apart", 860, 6),
]
RIGHT = {(name, 6): 200 for name in JOINT}  # right sweeps, with as many copies
for _, name, n_copies, n_sweeps in MISTAKES:
    RIGHT[name, n_sweeps] = max(n_copies, RIGHT.get((name, n_sweeps), 0))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_sweeps"), RIGHT)
def test_joint_law(name, n_sweeps, monkeypatch):
    """The whole sweep, with as many copies as show the mistakes above."""
    n_copies = RIGHT[name, n_sweeps]
    scores, bound = joint_law_scores(name, monkeypatch, n_copies, n_sweeps)
    assert np.abs(scores).max() < bound


@pytest.mark.slow
@pytest.mark.parametrize(("mistake", "name", "n_copies", "n_sweeps"), MISTAKES)
def test_the_joint_law_sees_mistakes(mistake, name, n_copies, n_sweeps, monkeypatch):
    mistake(monkeypatch)
    scores, bound = joint_law_scores(name, monkeypatch, n_copies, n_sweeps)
    assert np.abs(scores).max() > bound
