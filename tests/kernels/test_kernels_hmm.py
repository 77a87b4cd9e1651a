"""NumPy twins of the kernels of hidden Markov models."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from twins import twin_of

from skpacbayes._kernels import hmm

N_STATES, N_ATOMS = 3, 4
both = pytest.mark.parametrize("full", [False, True])


def mixture(full, n_features, shared, rng):
    """Arguments that describe a mixture, and its log densities."""
    count = (1 if shared else N_STATES), N_ATOMS
    factors = np.tril(rng.normal(size=(*count, n_features, n_features)))
    diagonal = np.arange(n_features)
    factors[..., diagonal, diagonal] = rng.uniform(0.5, 2.0, (*count, n_features))
    if not full:
        factors *= np.eye(n_features)
    means = rng.normal(size=(*count, n_features))
    locations = rng.normal(size=(N_STATES, n_features))
    log_weights = np.log(rng.dirichlet(np.ones(N_ATOMS), count[0]))
    rounding = rng.uniform(0.0, 0.1, n_features)

    def log_density(X):
        found = np.empty((N_STATES, N_ATOMS, len(X)))
        for j, a in np.ndindex(N_STATES, N_ATOMS):
            g = 0 if shared else j
            precision = factors[g, a].T @ factors[g, a]
            center, covariance = means[g, a] + locations[j], np.linalg.inv(precision)
            found[j, a] = multivariate_normal(center, covariance).logpdf(X)
            found[j, a] += log_weights[g, a]
            found[j, a] -= 0.5 * np.diag(precision) @ rounding
        return found

    return (factors, means, locations, log_weights, rounding, full), log_density


@both
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("n_features", [1, 3, 4])
@twin_of(hmm.emission_densities)
def test_emission_densities(kernel, n_features, shared, full):
    """In blocks of 4 rows, the last of which is short."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(11, n_features))
    parameters, log_density = mixture(full, n_features, shared, rng)
    expected = log_density(X)
    highest, densities = np.empty(11), np.empty((N_STATES, 11))
    atoms = np.empty((N_STATES, 11), dtype=np.int64)
    uniforms, work = rng.random(11), np.empty((N_STATES * N_ATOMS + 2, 4))
    columns = np.ascontiguousarray(X.T)
    found = highest, densities, atoms
    every = np.arange(N_ATOMS)
    kernel(columns, *parameters, every, uniforms, *found, work)
    assert_allclose(highest, expected.max(axis=(0, 1)), rtol=1e-12)
    actual = np.log(densities) + highest
    assert_allclose(actual, logsumexp(expected, axis=1), rtol=1e-12)
    shares = np.exp(expected - logsumexp(expected, axis=1, keepdims=True))
    drawn = (shares.cumsum(axis=1)[:, :-1] <= uniforms).sum(axis=1)
    assert_array_equal(atoms, drawn)
    assert len(np.unique(atoms)) > 1
    again = np.empty((N_STATES, 11))
    nothing = np.empty((N_STATES, 0), dtype=np.int64)
    kernel(columns, *parameters, every, highest, highest.copy(), again, nothing, work)
    assert_array_equal(again, densities)


@both
@twin_of(hmm.emission_densities)
def test_emission_densities_of_chosen_atoms(kernel, full):
    """As those of mixtures of these atoms only; arrays of rows may be longer."""
    rng, chosen = np.random.default_rng(3), np.array([3, 1])
    parameters, log_density = mixture(full, 2, False, rng)
    X = rng.normal(size=(7, 2))
    expected = log_density(X)[:, chosen]
    highest, densities = np.empty(9), np.empty((N_STATES, 9))
    atoms = np.full((N_STATES, 9), -5)
    uniforms, work = rng.random(7), np.empty((N_STATES * 2 + 2, 4))
    columns = np.zeros((3, 9))
    columns[:2, :7] = X.T
    kernel(columns, *parameters, chosen, uniforms, highest, densities, atoms, work)
    actual = np.log(densities[:, :7]) + highest[:7]
    assert_allclose(actual, logsumexp(expected, axis=1), rtol=1e-12)
    shares = np.exp(expected - logsumexp(expected, axis=1, keepdims=True))
    assert_array_equal(atoms[:, :7], shares[:, 0] <= uniforms)
    assert_array_equal(atoms[:, 7:], -5)


@twin_of(hmm.emission_densities)
def test_emission_densities_of_rows_far_away(kernel):
    """The ratio of densities is exp(-600) at least, and 1 for the nearest state."""
    factors, means = np.ones((2, 1, 1, 1)), np.array([[[0.0]], [[1.0]]])
    columns = np.array([[1e3, -1e3, 1e100]])
    highest, densities = np.empty(3), np.empty((2, 3))
    nothing = np.empty((2, 0), dtype=np.int64)
    law = factors, means, np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(1), False
    work = np.empty((4, 8))
    one = np.zeros(1, dtype=np.int64)
    kernel(columns, *law, one, highest, highest, densities, nothing, work)
    squares = np.array([999.0**2, 1e6]) + math.log(2 * math.pi)
    assert_allclose(highest[:2], -0.5 * squares)
    smallest = math.exp(-600)
    assert_allclose(densities[:, :2], [[smallest, 1], [1, smallest]], rtol=1e-12)
    assert np.isfinite(densities).all()


@pytest.mark.parametrize("argument", [-700.0, -690.3, -1e-300, 0.0])
def test_exponential_at_the_ends(argument):
    for form in (hmm._exp, getattr(hmm._exp, "py_func", hmm._exp)):
        assert_allclose(form(argument), math.exp(argument), rtol=4e-16)


def test_exponential():
    arguments = np.linspace(-700, 0, 2001)
    exponentials = [hmm._exp(argument) for argument in arguments]
    assert_allclose(exponentials, np.exp(arguments), rtol=5e-16)


def law_of(n_rows, rng):
    transitions = rng.dirichlet(np.ones(N_STATES), N_STATES)
    transitions[0, 2] = 0.0  # which is left out of the ways
    transitions[0] /= transitions[0].sum()
    start = rng.dirichlet(np.ones(N_STATES))
    return transitions, start, rng.uniform(0.1, 1.0, (N_STATES, n_rows))


def ways(matrix):
    """Ways into each state, and last into the end of a sequence: see the kernels."""
    columns = [*matrix.T, np.ones(len(matrix))]
    sources = [np.flatnonzero(column) for column in columns]
    ends = np.cumsum([0, *map(len, sources)]).astype(np.uintp)
    chances = [column[i] for column, i in zip(columns, sources, strict=True)]
    return ends, np.concatenate(sources).astype(np.uintp), np.concatenate(chances)


def paths(densities, transitions, start):
    """All paths of one sequence, and the probability of each with the rows."""
    n_rows = densities.shape[1]
    found = list(itertools.product(range(N_STATES), repeat=n_rows))
    weights = [
        start[path[0]]
        * math.prod(transitions[i, j] for i, j in itertools.pairwise(path))
        * math.prod(densities[state, t] for t, state in enumerate(path))
        for path in found
    ]
    return np.array(found), np.array(weights)


BOUNDS = np.array([0, 4, 5, 7])


def sequences():
    return [slice(a, b) for a, b in itertools.pairwise(BOUNDS)]


@twin_of(hmm.forward_filter)
def test_forward_filter(kernel):
    transitions, start, densities = law_of(7, np.random.default_rng(0))
    laws, evidence = densities.copy(), np.empty(7)
    kernel(laws, *ways(transitions), start, BOUNDS, evidence)
    for rows in sequences():
        part = densities[:, rows]
        known = 1.0
        for t in range(part.shape[1]):
            found, weights = paths(part[:, : t + 1], transitions, start)
            total = weights.sum()
            assert_allclose(evidence[rows][t], total / known, rtol=1e-12)
            known = total
            expected = np.bincount(found[:, t], weights, N_STATES) / total
            assert_allclose(laws[:, rows][:, t], expected, rtol=1e-12)


@pytest.mark.parametrize("first", 10.0 ** -np.arange(0, 261, 20))
@twin_of(hmm.forward_filter)
def test_forward_filter_where_likely_states_cannot_be_reached(kernel, first):
    """After a row of any density, one of the least density is filtered."""
    transitions = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    least, evidence = math.exp(hmm.LOWEST), np.empty(3)
    laws = np.array([[1.0, first, least], [1.0, first, least], [1.0, 1.0, least]])
    bounds, start = np.array([0, 3]), np.array([1.0, 0.0, 0.0])
    kernel(laws, *ways(transitions), start, bounds, evidence)
    assert_allclose(evidence, [1.0, first, least], rtol=1e-9)
    expected = np.transpose([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    assert_allclose(laws, expected, rtol=1e-9)


@twin_of(hmm.forward_filter)
def test_forward_filter_of_rows_that_no_possible_state_explains(kernel):
    """A ring of states, of which the likeliest cannot be reached; at any length."""
    n, smallest = 40, math.exp(hmm.LOWEST)
    transitions = 0.9 * np.eye(n) + 0.1 * np.roll(np.eye(n), 1, axis=1)
    for factor in [1e-30, 1e-7, 0.1, smallest]:
        densities = np.full((n, n - 1), factor)
        densities[-1], densities[:-1, -1] = 1.0, smallest
        start, evidence = np.eye(n)[0], np.empty(n - 1)
        laws = densities.copy()
        kernel(laws, *ways(transitions), start, np.array([0, n - 1]), evidence)
        assert_allclose(evidence[:-1], factor, rtol=1e-12)
        assert_allclose(evidence[-1], smallest, rtol=1e-10)
        powers = np.linalg.matrix_power(transitions, n - 2)[0]
        assert_allclose(laws[:, -1], powers, rtol=1e-8, atol=1e-15)


@twin_of(hmm.smooth)
def test_smooth(kernel):
    transitions, start, densities = law_of(7, np.random.default_rng(1))
    laws = densities.copy()
    hmm.forward_filter(laws, *ways(transitions), start, BOUNDS, np.empty(7))
    kernel(laws, *ways(transitions), *ways(transitions.T), BOUNDS)
    for rows in sequences():
        found, weights = paths(densities[:, rows], transitions, start)
        for t, path in enumerate(found.T):
            expected = np.bincount(path, weights, N_STATES) / weights.sum()
            assert_allclose(laws[:, rows][:, t], expected, rtol=1e-12)


@twin_of(hmm.draw_states)
def test_draw_states(kernel):
    """By inversion, from the last row of each sequence to its first."""
    rng = np.random.default_rng(2)
    transitions, start, laws = law_of(7, rng)
    hmm.forward_filter(laws, *ways(transitions), start, BOUNDS, np.empty(7))
    uniforms, states = rng.random(7), np.empty(7, dtype=np.int64)
    moves, firsts = np.full((N_STATES, N_STATES), 9.0), np.full(N_STATES, 9.0)
    kernel(laws, *ways(transitions), BOUNDS, uniforms, states, moves, firsts)
    expected = np.empty(7, dtype=np.int64)
    wanted_moves, wanted_firsts = np.zeros((N_STATES, N_STATES)), np.zeros(N_STATES)
    for rows in sequences():
        ahead = np.ones(N_STATES)
        for t in reversed(range(rows.start, rows.stop)):
            law = (laws[:, t] * ahead).cumsum()
            expected[t] = np.searchsorted(law, uniforms[t] * law[-1], side="right")
            ahead = transitions[:, expected[t]]
        for i, j in itertools.pairwise(expected[rows]):
            wanted_moves[i, j] += 1
        wanted_firsts[expected[rows.start]] += 1
    assert_array_equal(states, expected)
    assert_array_equal(moves, wanted_moves)
    assert_array_equal(firsts, wanted_firsts)


@pytest.mark.parametrize("shared", [False, True])
@both
@twin_of(hmm.add_moments)
def test_add_moments(kernel, full, shared):
    rng = np.random.default_rng(3)
    rows, d = rng.normal(size=(40, 2)), 2
    atoms = rng.integers(N_ATOMS, size=40)
    atoms[7] = -1
    rows[7] = np.nan
    if not full:
        rows[::5, 1] = np.nan
    states = rng.integers(N_STATES, size=40)
    count = N_STATES * N_ATOMS
    locations = rng.normal(size=(N_STATES, d))
    near = np.zeros((1 if shared else N_STATES, N_ATOMS, d))
    found = [np.zeros((N_STATES, N_ATOMS)), *np.zeros((2, N_STATES, N_ATOMS, d))]
    products = np.zeros((N_STATES, N_ATOMS, d, d))
    kernel(rows, states, atoms, locations, near, full, *found, products)
    residuals = rows - locations[states]
    for shape, a in np.ndindex(near.shape[:2]):
        own = residuals[(atoms == a) & (shared | (states == shape))]
        n = np.maximum((~np.isnan(own)).sum(axis=0), 1)
        assert_allclose(near[shape, a], np.nansum(own, axis=0) / n, atol=1e-12)
    centers = locations[:, None] + near
    labels = states * N_ATOMS + atoms
    labels[7] = -1
    found = [part.reshape(count, *part.shape[2:]) for part in found]
    centers, products = centers.reshape(count, d), products.reshape(count, d, d)
    for c in range(count):
        own = rows[labels == c] - centers[c]
        seen = ~np.isnan(own)
        gaps = np.where(seen, own, 0.0)
        assert found[0][c] == len(own)
        assert_array_equal(found[1][c], seen.sum(axis=0))
        assert_allclose(found[2][c], gaps.sum(axis=0), atol=1e-12)
        square = np.tril(gaps.T @ gaps) if full else np.diag((gaps**2).sum(axis=0))
        assert_allclose(products[c], square, atol=1e-12)


@pytest.mark.parametrize("n_states", [1, 2, 5])
@twin_of(hmm.stationary_distribution)
def test_invariant_law(kernel, n_states):
    transitions = np.random.default_rng(4).dirichlet(np.ones(n_states), n_states)
    law = np.empty(n_states)
    kernel(transitions.copy(), law)
    values, vectors = np.linalg.eig(transitions.T)
    expected = np.real(vectors[:, np.argmax(np.real(values))])
    assert_allclose(law, expected / expected.sum(), rtol=1e-9)


@twin_of(hmm.stationary_distribution)
def test_invariant_law_of_states_that_hardly_communicate(kernel):
    """That of two states is in the ratio of the ways in."""
    law = np.empty(2)
    kernel(np.array([[1.0, 3e-40], [1e-40, 1.0]]), law)
    assert_allclose(law, [0.25, 0.75], rtol=1e-12)


@twin_of(hmm.viterbi)
def test_viterbi(kernel):
    transitions, start, densities = law_of(7, np.random.default_rng(7))
    previous = np.empty((N_STATES, 7), dtype=np.int64)
    states = np.empty(7, dtype=np.int64)
    ends, sources, chances = ways(transitions)
    chain = ends, sources, np.log(chances), np.log(start)
    total = kernel(np.log(densities), *chain, BOUNDS, previous, states)
    expected = 0.0
    for rows in sequences():
        found, weights = paths(densities[:, rows], transitions, start)
        assert_array_equal(states[rows], found[weights.argmax()])
        expected += np.log(weights.max())
    assert_allclose(total, expected, rtol=1e-12)


@pytest.mark.parametrize("staged", [False, True])
@twin_of(hmm.accept_transitions)
def test_accept_transitions(kernel, staged):
    """A row is accepted with the ratio of the stationary probabilities."""
    rng, k, done = np.random.default_rng(5), 3, []

    def stationary(matrix):
        means = matrix / (stages[:, None] if staged else 1)
        np.fill_diagonal(means, 0.0)
        means += np.diag(1 - means.sum(axis=1))
        return np.linalg.solve(
            np.vstack([(means.T - np.eye(k))[:-1], np.ones(k)]), last
        )

    last = np.array([0.0, 0.0, 1.0])
    for _ in range(30):
        stages = rng.integers(1, 4, size=k)
        transitions, proposed = rng.dirichlet(np.ones(k), size=(2, k))
        firsts, thresholds = np.array([2.0, 0.0, 1.0]), -rng.exponential(size=k)
        start = stationary(transitions)
        expected, wanted = transitions.copy(), start.copy()
        for i in range(k):
            candidate = expected.copy()
            candidate[i] = proposed[i]
            other = stationary(candidate)
            done.append(firsts @ np.log(other / wanted) > thresholds[i])
            if done[-1]:
                expected, wanted = candidate, other
        work = np.empty((k, k)), np.empty(k)
        kernel(proposed, staged, stages, firsts, thresholds, transitions, start, *work)
        assert_array_equal(transitions, expected)
        assert_allclose(start, wanted)
    assert 0 < sum(done) < len(done)
