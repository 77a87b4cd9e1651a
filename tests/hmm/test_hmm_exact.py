"""The sampler of `DirichletProcessHMM` against exact answers: paths, joint laws.

Each test of chance fails on correct code with probability below 1e-4, were the seeds
new; its seed is fixed.
"""

import numpy as np
import pytest
from hmm_points import model_of, parameters_of, with_gaps
from hmm_reference import (
    JointLaw,
    Paths,
    invariant_law,
    largest_score,
    log_densities_of,
    mixture_log_density,
    split,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skpacbayes._kernels.hmm import accept_transitions, draw_states, smooth, viterbi
from skpacbayes.hmm import _dirichlet_process_bounds as _bounds
from skpacbayes.hmm import _dirichlet_process_transitions as _transitions
from skpacbayes.hmm._dirichlet_process_durations import (
    Moved,
    Steps,
    filtered_stages,
    ways_into,
)
from skpacbayes.hmm._dirichlet_process_model import Parameters, densities_of
from skpacbayes.hmm._dirichlet_process_random import draw_dirichlet
from skpacbayes.hmm._dirichlet_process_series import Rows

FALSE_ALARM = 1e-4


LENGTHS = [[7], [1, 4, 2], [1] * 7]
MODELS = {
    "shared": {"n_states": 3},
    "per state": {"n_states": 3, "shared": False},
    "two features": {"n_states": 2, "n_features": 2},
    "full": {"n_states": 2, "n_features": 2, "full": True, "shared": False},
    "start apart": {"n_states": 3, "stationary": False},
}


@pytest.fixture(params=MODELS, ids=lambda name: name)
def law(request):
    return model_of(**MODELS[request.param])


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_every_path(law, lengths, missing):
    """Densities, filter, smoother and Viterbi are those of all paths."""
    joint = JointLaw(law, lengths)
    point = joint.draw(1, np.random.default_rng(3))
    rows = point["rows"][0]
    if missing:
        rows = with_gaps(rows, partly=law.n_features > 1)
    parameters = parameters_of(point)
    given = Rows(rows, np.cumsum([0, *lengths]))
    expected = log_densities_of(rows, point, law)

    highest, densities, _ = densities_of(given, parameters, law)
    assert_allclose(np.log(densities).T + highest[:, None], expected, atol=1e-11)

    steps = Steps.of(parameters, law)
    laws, evidence = filtered_stages(densities, steps, given.bounds)
    log_evidence = highest + np.log(evidence)
    smoothed = laws.copy()
    smooth(smoothed, *steps.ways, *ways_into(steps.matrix.T), given.bounds)
    states = np.empty(7, dtype=np.int64)
    best = viterbi(
        np.ascontiguousarray(expected.T),
        *steps.ways[:2],
        np.log(steps.ways[2]),
        np.log(parameters.start),
        given.bounds,
        np.empty((law.n_states, 7), dtype=np.int64),
        states,
    )
    total = 0.0
    for part in split(lengths):
        paths = Paths(point["start"][0], point["transitions"][0], expected[part])
        assert_allclose(log_evidence[part].sum(), paths.log_evidence, atol=1e-12)
        assert_allclose(smoothed[:, part].T, paths.marginals(), atol=1e-12)
        last = Paths(
            point["start"][0],
            point["transitions"][0],
            expected[part.start : part.start + 1],
        )
        assert_allclose(laws[:, part.start], last.posterior, atol=1e-12)
        path, log_joint = paths.best()
        assert_array_equal(states[part], path)
        total += log_joint
    assert_allclose(best, total, atol=1e-11)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_paths_are_drawn_from_their_law(missing):
    """Each of the 243 paths of a sequence, beside two others, as often as it should."""
    model, lengths, n_draws = model_of(3), [1, 5, 2], 30_000
    point = JointLaw(model, lengths).draw(1, np.random.default_rng(8))
    rows = with_gaps(point["rows"][0], partly=False) if missing else point["rows"][0]
    parameters = parameters_of(point)
    given = Rows(rows, np.cumsum([0, *lengths]))
    steps = Steps.of(parameters, model)
    of_rows = densities_of(given, parameters, model)[1]
    laws, _ = filtered_stages(of_rows, steps, given.bounds)
    densities = log_densities_of(rows, point, model)
    rng = np.random.default_rng(9)
    uniforms = rng.random((n_draws, 8))
    drawn = np.empty((n_draws, 8), dtype=np.int64)
    moves, firsts = np.empty((3, 3)), np.empty(3)
    all_moves = np.zeros((3, 3))
    for row, states in zip(uniforms, drawn, strict=True):
        draw_states(laws, *steps.ways, given.bounds, row, states, moves, firsts)
        all_moves += moves
        assert firsts.sum() == 3
    expected_moves = np.zeros((3, 3))
    for part in split(lengths):
        paths = Paths(point["start"][0], point["transitions"][0], densities[part])
        expected_moves += paths.pairs()
        digits = 3 ** np.arange(paths.paths.shape[1])
        counts = np.zeros(3 ** len(digits))
        np.add.at(counts, drawn[:, part] @ digits, 1)
        expected = np.zeros_like(counts)
        expected[paths.paths @ digits] = n_draws * paths.posterior
        rare = expected < 10
        pooled = np.append(counts[~rare], counts[rare].sum())
        pooled_expected = np.append(expected[~rare], expected[rare].sum())
        pooled, pooled_expected = (
            part[pooled_expected > 0] for part in (pooled, pooled_expected)
        )
        assert stats.chisquare(pooled, pooled_expected).pvalue > FALSE_ALARM / 3
    # a sum of at most five indicators: its variance is at most five times its mean
    error = np.sqrt(5 * expected_moves / n_draws)
    assert np.all(np.abs(all_moves / n_draws - expected_moves) < 6 * error)


def atoms_given_states(rows, point, model):
    """P(z_t = l | x_t = j, y_t), (k, T, L)."""
    shares = np.empty((model.n_states, len(rows), model.n_atoms))
    for j in range(model.n_states):
        for atom in range(model.n_atoms):
            shape = 0 if model.shared else j
            shares[j, :, atom] = mixture_log_density(
                rows,
                [point["weights"][0, shape, atom]],
                [point["locations"][0, j] + point["means"][0, shape, atom]],
                point["covariances"][0, shape, atom : atom + 1],
            )
    shares = np.exp(shares - shares.max(axis=2, keepdims=True))
    return shares / shares.sum(axis=2, keepdims=True)


@pytest.mark.parametrize("name", ["shared", "per state", "full"])
def test_atoms_are_drawn_from_their_law(name):
    model, n_copies = model_of(**MODELS[name]), 20_000
    point = JointLaw(model, [4]).draw(1, np.random.default_rng(5))
    rows = point["rows"][0]
    copies = Rows(np.tile(rows, (n_copies, 1)), [0, 4 * n_copies])
    uniforms = np.random.default_rng(6).random(4 * n_copies)
    _, _, atoms = densities_of(copies, parameters_of(point), model, uniforms)
    expected = atoms_given_states(rows, point, model)
    n_tests = expected[..., 0].size
    for j in range(model.n_states):
        for t in range(4):
            counts = np.bincount(atoms[j, t::4], minlength=model.n_atoms)
            possible = expected[j, t] * n_copies > 5
            assert counts[~possible].sum() < 50
            if possible.sum() > 1:
                laws = expected[j, t, possible]
                found = counts[possible]
                pvalue = stats.chisquare(found, found.sum() * laws / laws.sum()).pvalue
                assert pvalue > FALSE_ALARM / n_tests


@pytest.mark.slow
@pytest.mark.parametrize("step", [_bounds.slice_pairs, _bounds.bounded_row])
def test_a_row_of_transitions_is_truncated_dirichlet(step):
    """Two states: a beta law between bounds; the slices that stand in for rejection."""
    law, least = stats.beta(2.5, 40.0), 0.1
    between = law.cdf([least, 1 - least])
    rng, row = np.random.default_rng(0), np.array([0.5, 0.5])
    alphas = np.array([2.5, 40.0])
    draws = []
    for _ in range(4000):
        row = step(row, alphas, least, rng)
        draws.append(row[0])
    # every fourth is as good as independent: eight slice steps on one coordinate each
    uniform = (law.cdf(draws[::4]) - between[0]) / np.diff(between)
    assert stats.kstest(uniform, "uniform").pvalue > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize(
    ("firsts", "min_transition"),
    [
        ([0, 0, 0], 0.0),
        ([0, 0, 0], 0.3),
        ([40, 2, 1], 0.0),
        ([40, 2, 1], 0.05),
        ([40, 2, 1], 0.3),
    ],
)
def test_transitions_given_states(firsts, min_transition):
    """Three states, by importance sampling from the prior; at 0.3 rejection fails."""
    model = model_of(3, min_transition=min_transition, transition_prior=1.3)
    moves = np.array([[9.0, 2.0, 0.0], [1.0, 5.0, 2.0], [0.0, 1.0, 0.0]])
    firsts = np.array(firsts, dtype=float)
    rng = np.random.default_rng(1)
    # by importance: uniform on the simplices above the least entry
    n = 20_000
    share = 1 - 3 * min_transition
    grid = min_transition + share * rng.dirichlet(np.ones(3), (n, 3))
    logs = ((moves + 0.3) * np.log(grid)).sum(axis=(1, 2))
    balance = np.swapaxes(grid, 1, 2) - np.eye(3)
    balance[:, 2] = 1.0
    laws = np.linalg.solve(balance, np.tile([[0.0], [0.0], [1.0]], (n, 1, 1)))[..., 0]
    logs += (firsts * np.log(laws.clip(1e-300))).sum(axis=1)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    flat = np.hstack([grid.reshape(n, 9), grid.reshape(n, 9) ** 2])
    expected = weights @ flat
    spread = np.sqrt((weights**2) @ (flat - expected) ** 2)

    start = draw_dirichlet(np.ones((3, 3)), rng)
    start = min_transition + share * start
    parameters = Parameters(start, invariant_law(start), *[None] * 6)
    parameters = parameters._replace(stages=np.ones(3, dtype=np.int64))
    chain = []
    for _ in range(2000):
        transitions, law = _transitions.draw_transitions(
            Moved(moves, firsts, np.zeros(3)), parameters, model, rng
        )
        parameters = parameters._replace(transitions=transitions, start=law)
        chain.append(transitions.ravel())
    assert_allclose(law, invariant_law(transitions), atol=1e-12)
    assert transitions.min() >= min_transition
    chain = np.array(chain)
    batches = np.hstack([chain, chain**2]).reshape(50, -1, 18).mean(axis=1)
    error = np.sqrt(batches.var(axis=0, ddof=1) / 50 + spread**2)
    scores = (batches.mean(axis=0) - expected) / error
    assert np.abs(scores).max() < largest_score(18, FALSE_ALARM, n_batches=50)


@pytest.mark.parametrize("concentration", [0.01, 1.0])
@pytest.mark.parametrize("staged", [False, True])
def test_steps_of_many_states_are_those_of_few(staged, concentration):
    """The formula of Sherman and Morrison decides as the solution of each matrix."""
    rng, k = np.random.default_rng(7), _transitions._MANY_STATES + 1
    stays = np.diag(10 ** rng.uniform(-3, 3, k))

    def drawn():
        rows = draw_dirichlet(np.full((k, k), concentration), rng) + stays
        rows = np.maximum(rows, 1e-5)
        return rows / rows.sum(axis=1, keepdims=True)

    model = model_of(k)._replace(staged=staged)
    stages = rng.integers(1, 5, size=k) if staged else np.ones(k, dtype=np.int64)
    firsts = np.where(np.arange(k) % 7 == 0, 3.0, 0.0)
    proposed, old = drawn(), drawn()
    thresholds = -rng.standard_exponential(k)
    start = _transitions.stationary_of(old, stages, model)
    expected, law = old.copy(), start.copy()
    work = np.empty((k, k)), np.empty(k)
    steps = proposed, staged, stages, firsts, thresholds, expected, law
    accept_transitions(*steps, *work)
    given = proposed, stages, firsts, thresholds, old.copy(), start, model
    found, found_law = _transitions._accepted(*given)
    assert_array_equal(found, expected)
    assert_allclose(found_law, law, rtol=1e-9)
    taken = (found == proposed).all(axis=1)
    assert 0 < taken.sum() < k


def draws_of_bounded_row(step, n_states, onward, alphas, least):
    """Steps of a row in turn, from equal shares."""
    rng, row, draws = (
        np.random.default_rng(n_states),
        np.full(n_states, 1 / n_states),
        [],
    )
    pulls = np.linspace(0.0, 4.0, n_states) if step == "pulls" else np.zeros(n_states)
    for _ in range(1000):
        if step == "stages":
            row = _bounds.update_bounded(row, alphas, least, 1, onward, rng)
        elif step == "drawn":
            row = _bounds.bounded_row(row, alphas, least, rng)
        else:
            row = _bounds.slice_pairs(row, alphas, least, rng, pulls)
        assert row.min() >= least * (1 - 1e-12)
        assert_allclose(row.sum(), 1.0)
        draws.append(row)
    return np.array(draws), pulls


@pytest.mark.slow
@pytest.mark.parametrize("prior", [0.15, 0.6])
@pytest.mark.parametrize("n_states", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("step", "onward"),
    [("slices", 0.0), ("pulls", 0.0), ("drawn", 0.0), ("stages", 0.0), ("stages", 6.0)],
)
def test_updates_of_bounded_rows_keep_the_law(step, onward, n_states, prior):
    """Against importance sampling: even and odd numbers of entries, pulls, stages."""
    rng, least = np.random.default_rng(10 + n_states), 0.03
    alphas = np.linspace(prior, 5.0, n_states)
    draws, pulls = draws_of_bounded_row(step, n_states, onward, alphas, least)
    share = 1 - n_states * least
    grid = least + share * rng.dirichlet(np.full(n_states, 0.5), 100_000)
    logs = ((alphas - 1) * np.log(grid)).sum(axis=1) - grid @ pulls
    logs += onward * np.log1p(-grid[:, 1]) + 0.5 * np.log(grid - least).sum(axis=1)
    weights = np.exp(logs - logs.max())
    expected = weights @ grid / weights.sum()
    errors = weights**2 @ (grid - expected) ** 2 / weights.sum() ** 2
    batches = draws.reshape(40, 25, n_states).mean(axis=1)
    errors += batches.var(axis=0, ddof=1) / 40
    scores = (batches.mean(axis=0) - expected) / np.sqrt(errors)
    # Student's with 39 degrees of freedom, of `n_states` entries
    least_pvalue = n_states * 2 * stats.t.sf(np.abs(scores).max(), 39)
    assert least_pvalue > FALSE_ALARM


@pytest.mark.slow
def test_rows_of_many_states_keep_the_law():
    """With more states than rejection is tried for, against rejection."""
    rng, least, n = np.random.default_rng(4), 2e-4, 24
    alphas, row, draws = np.full(n, 0.3), np.full(n, 1 / n), []
    assert n > _bounds._MOST_STATES
    for _ in range(4000):
        row = _bounds.bounded_row(row, alphas, least, rng)
        draws.append([row.max(), (row**2).sum(), np.log(row).sum(), row[0]])
    free = rng.dirichlet(alphas, 100_000)
    free = free[free.min(axis=1) >= least]
    expected = np.column_stack(
        [free.max(axis=1), (free**2).sum(axis=1), np.log(free).sum(axis=1), free[:, 0]]
    )
    assert len(expected) > 500
    batches = np.reshape(draws, (40, 100, 4)).mean(axis=1)
    errors = batches.var(axis=0, ddof=1) / 40 + expected.var(axis=0) / len(expected)
    scores = (batches.mean(axis=0) - expected.mean(axis=0)) / np.sqrt(errors)
    assert 4 * 2 * stats.t.sf(np.abs(scores).max(), 39) > FALSE_ALARM


@pytest.mark.parametrize("stays", [20_000.0, 2e5, 2e6])
@pytest.mark.parametrize("onward", [0.0, 3.0])
def test_a_bound_far_from_the_likely_rows(onward, stays):
    """Rows without a move into a state: all entries are close to the least one."""
    rng, least = np.random.default_rng(0), 0.01
    alphas, row = np.array([0.1, 0.1, stays]), np.array([0.01, 0.01, 0.98])
    for _ in range(20):
        row = _bounds.update_bounded(row, alphas, least, 2, onward, rng)
        assert least * (1 - 1e-12) <= row[:2].min() <= row[:2].max() < 0.02
        drawn = _bounds.bounded_row(row, alphas, least, rng)
        assert least <= drawn[:2].min() <= drawn[:2].max() < 0.02


def test_few_stays_far_below_many_moves_to_the_next_stage():
    """Then the probability to leave is close to the largest one."""
    rng, row = np.random.default_rng(0), np.array([0.4, 0.5, 0.1])
    for _ in range(20):
        row = _bounds.update_bounded(row, np.array([1.0, 1.0, 0.5]), 0.1, 2, 9e3, rng)
        assert 0.1 <= row[2] < 0.102


@pytest.mark.parametrize("n_states", [2, 3, 7])
def test_a_bound_that_leaves_one_row(n_states):
    rng, row = np.random.default_rng(0), np.full(n_states, 1 / n_states)
    for place in range(n_states):
        alphas = rng.uniform(0.1, 50.0, n_states)
        found = _bounds.update_bounded(row, alphas, 1 / n_states, place, 3.0, rng)
        assert_allclose(found, row)
        assert_allclose(_bounds.bounded_row(row, alphas, 1 / n_states, rng), row)
