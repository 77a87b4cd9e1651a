"""Moves of rows between atoms, against NumPy."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import betaln, gammaln, multigammaln
from scipy.stats import gamma, kstest
from twins import twin_of

from skpacbayes._kernels import hmm_atoms
from skpacbayes.hmm import _dirichlet_process_atoms as _atoms
from skpacbayes.hmm import _dirichlet_process_conditionals as _conditionals

CONCENTRATION, MEAN_COUNT, SHAPE = 1.3, 0.3, 2.5
both = pytest.mark.parametrize("full", [False, True])


def log_sticks(sizes):
    """Log probability of labels under the prior of a truncated stick."""
    after = sizes[::-1].cumsum()[::-1][1:]
    pieces = betaln(1 + sizes[:-1], CONCENTRATION + after) - betaln(1, CONCENTRATION)
    return pieces.sum()


def log_marginal(rows, origin, scale, rounding, full, last=True):
    """Log density of the rows of one atom, its mean and covariance integrated out.

    Unless `last` the last row was not rounded.
    """
    n, d = rows.shape
    if full:
        degrees = 2 * SHAPE + d - 1
        gaps = rows.mean(axis=0) - origin
        scatter = np.cov(rows.T, bias=True).reshape(d, d) * n
        after = 2 * np.diag(scale) + scatter + (n - (not last)) * np.diag(rounding)
        after += MEAN_COUNT * n / (MEAN_COUNT + n) * np.outer(gaps, gaps)
        log_dets = [np.linalg.slogdet(m)[1] for m in (2 * np.diag(scale), after)]
        return (
            multigammaln((degrees + n) / 2, d)
            - multigammaln(degrees / 2, d)
            + 0.5 * degrees * log_dets[0]
            - 0.5 * (degrees + n) * log_dets[1]
            + 0.5 * d * np.log(MEAN_COUNT / (MEAN_COUNT + n))
        )
    total = 0.0
    for column, mean, b, hidden in zip(rows.T, origin, scale, rounding, strict=True):
        seen = column[~np.isnan(column)]
        n = len(seen)
        if not n:
            continue
        rounded = n - (not last and not np.isnan(column[-1]))
        squares = ((seen - seen.mean()) ** 2).sum() + rounded * hidden
        squares += MEAN_COUNT * n / (MEAN_COUNT + n) * (seen.mean() - mean) ** 2
        total += gammaln(SHAPE + n / 2) - gammaln(SHAPE) + SHAPE * np.log(b)
        total -= (SHAPE + n / 2) * np.log(b + 0.5 * squares)
        total += 0.5 * np.log(MEAN_COUNT / (MEAN_COUNT + n))
    return total


def proposed(rows, shapes, atoms, sizes, marginal_of, order, uniforms):
    """Labels that the step proposes, and the log of its ratio; None for no proposal."""
    present = [t for t in order if atoms[t] >= 0]
    first = present[0]
    own = [t for t in present if shapes[t] == shapes[first]]
    if len(own) < 2:
        return None
    g, second = shapes[first], own[1]
    here, there = atoms[first], atoms[second]
    split = here == there
    empty = np.flatnonzero(sizes[g] == 0)
    if split and not len(empty):
        return None
    if split:
        here = empty[int(uniforms[-2] * len(empty))]
    parts, log_choice = ([first], [second]), 0.0
    for t in own[2:]:
        if atoms[t] not in (there, atoms[first]):
            continue
        logs = [
            np.log(len(part)) + marginal_of([*part, t], False) - marginal_of(part)
            for part in parts
        ]
        chance = 1 / (1 + np.exp(logs[1] - logs[0]))
        first_part = uniforms[t] < chance if split else atoms[t] == here
        log_choice += np.log(chance if first_part else 1 - chance)
        parts[0 if first_part else 1].append(t)
    together = [*parts[0], *parts[1]]
    gain = marginal_of(parts[0]) + marginal_of(parts[1]) - marginal_of(together)
    n_empty = len(empty) + (not split)
    new = atoms.copy()
    new[parts[0]] = here if split else there
    counts = [
        np.bincount(labels[(shapes == g) & (labels >= 0)], minlength=len(sizes[g]))
        for labels in (new, atoms)
    ]
    log_ratio = (gain - log_choice + np.log(n_empty)) * (1 if split else -1)
    return new, log_ratio + log_sticks(counts[0]) - log_sticks(counts[1])


@both
@twin_of(hmm_atoms.share_out)
def test_split_or_merge(kernel, full, monkeypatch):
    """Of two shapes, with rows to leave out and, if diagonal, missing values."""
    monkeypatch.setattr(_atoms, "share_out", kernel)
    model = SimpleNamespace(
        mean_count=MEAN_COUNT, shape=SHAPE, concentration=CONCENTRATION, full=full
    )
    rng, d, n, done = np.random.default_rng(0), 2, 14, []
    for number in range(150):
        rows = rng.normal(size=(n, d)) + 3 * rng.integers(2, size=(n, 1))
        if not full:
            rows[rng.random((n, d)) < 0.1] = np.nan
        shapes, atoms = rng.integers(2, size=n), rng.integers(3, size=n)
        atoms[rng.random(n) < 0.1] = -1
        index = (4 * shapes + atoms)[atoms >= 0]
        sizes = np.bincount(index, minlength=8).reshape(2, 4) * 1.0
        base = rng.normal(size=(2, d)), rng.uniform(0.2, 1.0, (2, d))
        rounding = np.array([0.01, 0.04 if number % 2 else 0.0])
        order, uniforms = rng.permutation(n), rng.random(n + 2)
        g = shapes[next(t for t in order if atoms[t] >= 0)]

        law = base[0][g], base[1][g], rounding, full

        def marginal_of(members, last=True, rows=rows, law=law):
            return log_marginal(rows[members], *law, last)

        expected = proposed(rows, shapes, atoms, sizes, marginal_of, order, uniforms)
        halves = SHAPE + 0.5 * np.arange(n + 1)
        table = gammaln(halves + 0.5 * (d if full else 1)) - gammaln(halves)
        found, found_sizes = atoms.copy(), sizes.copy()
        accepted = _atoms.split_or_merge(
            *(rows, shapes, found, found_sizes, base, model, rounding),
            *(table, order, uniforms),
        )
        if expected is None:
            assert not accepted
            continue
        assert accepted == (np.log(uniforms[-1]) < expected[1])
        assert_array_equal(found, expected[0] if accepted else atoms)
        index = (4 * shapes + found)[found >= 0]
        assert_array_equal(found_sizes.ravel(), np.bincount(index, minlength=8))
        done.append(accepted)
    assert 10 < sum(done) < len(done) - 10


class Given:
    """A generator that draws what it was given."""

    def __init__(self, drawn):
        self.standard_exponential = lambda shape: drawn.reshape(shape)


@twin_of(hmm_atoms.exchange_neighbors)
def test_swap_neighbors(kernel, monkeypatch):
    monkeypatch.setattr(_atoms, "exchange_neighbors", kernel)
    rng = np.random.default_rng(1)
    for _ in range(50):
        shapes, atoms = rng.integers(2, size=30), rng.integers(-1, 4, size=30)
        index = (4 * shapes + atoms)[atoms >= 0]
        sizes = np.bincount(index, minlength=8).reshape(2, 4) * 1.0
        thresholds = -rng.standard_exponential((2, 3))
        expected = atoms.copy()
        for g, a in itertools.product(range(2), range(3)):
            own = shapes == g
            counts = np.bincount(expected[own & (expected >= 0)], minlength=4)
            swapped = counts.copy()
            swapped[[a, a + 1]] = counts[[a + 1, a]]
            if thresholds[g, a] < log_sticks(swapped) - log_sticks(counts):
                before = expected.copy()
                expected[own & (before == a)] = a + 1
                expected[own & (before == a + 1)] = a
        given = Given(-thresholds)
        _atoms.swap_neighbors(shapes, atoms, sizes, CONCENTRATION, given)
        assert_array_equal(atoms, expected)
        index = (4 * shapes + atoms)[atoms >= 0]
        assert_allclose(sizes.ravel(), np.bincount(index, minlength=8))


@twin_of(hmm_atoms.stick_log_weights)
def test_stick_log_weights(kernel):
    rng = np.random.default_rng(2)
    taken, left = rng.gamma(1.0, size=(2, 3, 4))
    taken[0, 2] = left[1, 1] = 0.0
    shares = taken / (taken + left)
    remains = np.cumprod(1 - shares, axis=1)
    before = np.hstack([np.ones((3, 1)), remains])
    expected = before * np.hstack([shares, np.ones((3, 1))])
    found = np.empty((3, 5))
    with np.errstate(divide="ignore"):
        kernel(taken, left, found)
    assert_allclose(np.exp(found), expected)


@both
@twin_of(hmm_atoms.draw_gaussians)
def test_draw_atoms(kernel, full, monkeypatch):
    """Against the conjugate posterior of the rows themselves."""
    monkeypatch.setattr(_conditionals, "draw_gaussians", kernel)
    rng, d = np.random.default_rng(3), 3
    rows = rng.normal(size=(6, d)) + 1.0
    center, origin, scale = rng.normal(size=(3, d)) ** 2
    gaps = rows - center
    counts, sums = np.full((1, 1, d), 6.0), gaps.sum(axis=0).reshape(1, 1, d)
    moments = counts[..., 0], counts, sums, np.tril(gaps.T @ gaps)[None, None]
    model = SimpleNamespace(mean_count=MEAN_COUNT, shape=SHAPE, full=full)
    given = moments, center.reshape(1, 1, d), origin[None], scale[None], model
    means, factors = _conditionals.draw_atoms(*given, np.random.default_rng(5))
    total = MEAN_COUNT + 6
    best = (MEAN_COUNT * origin + rows.sum(axis=0)) / total
    scatter = 2 * np.diag(scale) + (rows - best).T @ (rows - best)
    scatter += MEAN_COUNT * np.outer(origin - best, origin - best)
    draws = np.random.default_rng(5)
    noise, root = draws.standard_normal(d), np.zeros((d, d))
    if full:
        root = np.tril(draws.standard_normal((d, d)), -1)
    else:
        scatter = np.diag(np.diag(scatter))
    shapes = SHAPE + 3.0 + 0.5 * full * np.arange(d)
    root += np.diag(np.sqrt(2.0 * draws.standard_gamma(shapes)))
    expected = root @ np.linalg.inv(np.linalg.cholesky(scatter))
    assert_allclose(factors[0, 0], expected, rtol=1e-8, atol=1e-9)
    moved = np.linalg.solve(expected, noise) / np.sqrt(total)
    assert_allclose(means[0, 0], best + moved, rtol=1e-8)


def test_draw_base():
    """Against the normal equations of the atoms that have rows."""
    rng, d, n_shapes = np.random.default_rng(4), 3, 2
    means, occupied = rng.normal(size=(2, 4, d)), rng.random((2, 4)) < 0.7
    roots = np.tril(rng.normal(size=(2, 4, d, d))) + 2 * np.eye(d)
    for full, shared in itertools.product([False, True], repeat=2):
        factors = roots if full else roots * np.eye(d)
        parameters = SimpleNamespace(factors=factors, means=means, origins=None)
        prior = {"location_variance": 10.0, "scale_shape": 0.5, "scale_rate": 2.0}
        own = {"mean_count": MEAN_COUNT, "shape": SHAPE, "n_features": d}
        model = SimpleNamespace(full=full, shared=shared, **prior, **own)
        given = occupied, parameters, model
        origins, scales = _conditionals.draw_base(*given, np.random.default_rng(6))
        draws, shape = np.random.default_rng(6), SHAPE + full * 0.5 * (d - 1)
        of_shapes = 0.5 + shape * occupied.sum(axis=1, keepdims=True)
        gammas = draws.standard_gamma(of_shapes, (n_shapes, d))
        noise = draws.standard_normal((n_shapes, d))
        assert not shared or origins is None
        for g in range(n_shapes):
            precisions = [f.T @ f for f in factors[g][occupied[g]]]
            assert_allclose(scales[g], gammas[g] / (2.0 + np.diag(sum(precisions))))
            if shared:
                continue
            precision = np.eye(d) / 10.0 + MEAN_COUNT * sum(precisions)
            pairs = zip(precisions, means[g][occupied[g]], strict=True)
            pull = MEAN_COUNT * sum(p @ mean for p, mean in pairs)
            upper = np.linalg.cholesky(precision).T
            best = np.linalg.solve(precision, pull) + np.linalg.solve(upper, noise[g])
            assert_allclose(origins[g], best)


@pytest.mark.parametrize("shape", [0.5, 1.0, 7.5])
def test_gamma_variables(shape):
    """With probability 1e-4 a right sampler fails, were the seed new."""
    rng = np.random.default_rng(7)
    drawn = [hmm_atoms._gamma(shape, rng) for _ in range(4000)]
    assert kstest(drawn, gamma(shape).cdf).pvalue > 1e-4


@twin_of(hmm_atoms.count_rows)
def test_count_rows(kernel):
    """Per state, or for all states; rows with a negative atom are left out."""
    rng = np.random.default_rng(9)
    states, atoms = rng.integers(3, size=50), rng.integers(-1, 4, size=50)
    sizes, total = np.zeros((3, 4)), np.zeros((1, 4))
    kernel(states, atoms, sizes)
    kernel(states, atoms, total)
    known = atoms >= 0
    expected = np.zeros((3, 4))
    np.add.at(expected, (states[known], atoms[known]), 1.0)
    assert_array_equal(sizes, expected)
    assert_array_equal(total[0], expected.sum(axis=0))


@both
@twin_of(hmm_atoms.update_mixtures)
def test_update_mixtures(kernel, full):
    """Many rows determine the mixtures: means, covariances, weights and labels.

    Two mixtures of two atoms, the second of which begins with its labels exchanged.
    """
    rng, d, n = np.random.default_rng(8), 2, 300
    centers = np.array([[[-4.0, 0.0], [4.0, 0.0]], [[0.0, -5.0], [0.0, 5.0]]])
    labels = (rng.random((2, n)) < 0.3).astype(int)
    noise = rng.normal(size=(2, n, d))
    noise[..., 1] += 0.8 * full * noise[..., 0]
    rows = centers[np.arange(2)[:, None], labels] + noise
    atoms = np.array([labels[0], 1 - labels[1]]).ravel()
    factors = np.broadcast_to(np.eye(d), (2, 2, d, d)).copy()
    log_weights, means = np.full((2, 2), np.log(0.5)), np.zeros((2, 2, d))
    base, sizes = (np.zeros((2, d)), np.full((2, d), 0.5)), np.zeros((2, 2))
    kernel(
        rows.reshape(-1, d),
        np.repeat([0, 1], n),
        atoms,
        np.zeros(d),
        (0.05, 2.0, 0.5, 2.0, 1.0, 0.0 if full else 0.1),
        full,
        rng.random((4, 2 * n)),
        rng.normal(size=(2, 3, 1, 3, d)),
        rng.normal(size=(2, 3, 1, 2, d, d)),
        np.zeros((2, d)),
        *(sizes, log_weights, factors, means, *base),
        rng,
    )
    assert_array_equal(sizes, [np.bincount(own) for own in atoms.reshape(2, n)])
    found = np.array([labels[0], 1 - labels[1]])
    assert (atoms.reshape(2, n) == found).mean() > 0.99
    covariance = np.array([[1.0, 0.8 * full], [0.8 * full, 1 + 0.64 * full]])
    assert_allclose(means[0], centers[0], atol=0.6)
    assert_allclose(means[1, ::-1], centers[1], atol=0.6)
    precisions = factors.swapaxes(-1, -2) @ factors
    assert_allclose(np.linalg.inv(precisions) - covariance, 0.0, atol=0.9)
    assert_allclose(np.exp(log_weights).sum(axis=1), 1.0)
    assert_allclose(np.exp(log_weights[:, 0]), [0.7, 0.3], atol=0.15)
    assert (base[0] != 0).all() == (not full)
