"""Moves of rows between atoms, against NumPy."""

import functools
import inspect
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import betaln, gammaln, multigammaln
from scipy.stats import chi2
from twins import twin_of

from skpacbayes._kernels import hmm_atom_moves
from skpacbayes.hmm import _dirichlet_process_atoms as _atoms

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


def proposed(rows, shapes, atoms, sizes, marginal_of, predictive_of, order, uniforms):
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
        logs = [np.log(len(part)) + predictive_of(part, t) for part in parts]
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
@twin_of(hmm_atom_moves.share_out)
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
        # Errors of rounding are left out where they would take long.
        ahead = *law[:2], 0 * rounding if full else rounding, full

        def marginal_of(members, rows=rows, law=law):
            return log_marginal(rows[members], *law)

        def predictive_of(part, t, rows=rows, law=ahead):
            after = log_marginal(rows[[*part, t]], *law, last=False)
            return after - log_marginal(rows[part], *law)

        expected = proposed(
            *(rows, shapes, atoms, sizes, marginal_of, predictive_of, order, uniforms)
        )
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


MISTAKES = {
    "none": ("", ""),
    "the new atom of a merger": ("len(empty) + (not split)", "max(len(empty), 1)"),
    "atoms together": ("of_labels -= log_sticks(joined, model.concentration)", "pass"),
    "atoms apart": ("of_labels += log_sticks(apart, model.concentration)", "pass"),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_split_or_merge_keeps_the_posterior(mistake):
    """Moves of exact draws of the labels of five rows change no mean of statistics.

    These are sizes, their squares, numbers of atoms, and pairs with one atom, of which
    19 are independent. Hotelling's statistic is above its bound with probability 1e-6
    on right moves, were the seed new. Each planted mistake adds about 175 or more to
    its mean of 19: it is missed with probability 1e-6.
    """
    rng, (n, n_atoms), n_copies = np.random.default_rng(4), (5, 4), 8000
    rows = np.array([0.0, 0.3, 0.5, 2.0, 2.4])[:, None]
    law = np.zeros(1), np.array([0.4]), np.zeros(1), False
    labels = np.array(list(itertools.product(range(n_atoms), repeat=n)))
    sizes = (labels[:, :, None] == np.arange(n_atoms)).sum(axis=1).astype(float)

    @functools.cache
    def marginal_of(*members):
        return log_marginal(rows[list(members)], *law) if any(members) else 0.0

    logs = [
        log_sticks(own) + sum(marginal_of(*(of_rows == g)) for g in range(n_atoms))
        for own, of_rows in zip(sizes, labels, strict=True)
    ]
    model = SimpleNamespace(
        mean_count=MEAN_COUNT, shape=SHAPE, concentration=CONCENTRATION, full=False
    )
    halves = SHAPE + 0.5 * np.arange(n + 1)
    table = gammaln(halves + 0.5) - gammaln(halves)
    base, shapes = (np.zeros((1, 1)), np.full((1, 1), 0.4)), np.zeros(n, dtype=int)
    text, wrong = MISTAKES[mistake]
    source = inspect.getsource(_atoms.split_or_merge)
    assert text in source
    scope = dict(vars(_atoms))
    exec(source.replace(text, wrong) if text else source, scope)
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    first = rng.choice(len(labels), n_copies, p=weights)
    last = labels[first]
    for atoms, of_atoms in zip(last, sizes[first], strict=True):
        for _ in range(3):
            scope["split_or_merge"](
                *(rows, shapes, atoms, of_atoms[None], base, model, law[2], table),
                *(rng.permutation(n), rng.random(n + 2)),
            )
    pairs = np.triu_indices(n, 1)
    together = labels[:, pairs[0]] == labels[:, pairs[1]]
    n_known = (sizes > 0).sum(axis=1)[:, None] == np.arange(1, n_atoms + 1)
    statistics = np.hstack([sizes, sizes**2, n_known, together])
    moved = last @ n_atoms ** np.arange(n)[::-1]
    changes = statistics[moved] - statistics[first]
    variances, axes = np.linalg.eigh(np.cov(changes.T) / n_copies)
    kept = variances > 1e-9 * variances.max()
    found = ((changes.mean(axis=0) @ axes)[kept] ** 2 / variances[kept]).sum()
    assert kept.sum() == 19
    assert (found < chi2(19).isf(1e-6)) == (mistake == "none")


class Given:
    """A generator that draws what it was given."""

    def __init__(self, drawn):
        self.standard_exponential = lambda shape: drawn.reshape(shape)


@twin_of(hmm_atom_moves.exchange_neighbors)
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
