"""Draws of the parameters of atoms, and of the atoms of rows, against NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import gamma, kstest, multivariate_normal
from twins import twin_of

from skpacbayes._kernels import hmm_atoms, random
from skpacbayes.hmm import _dirichlet_process_atoms as _atoms

MEAN_COUNT, SHAPE = 0.3, 2.5
both = pytest.mark.parametrize("full", [False, True])


@pytest.mark.parametrize("concentration", [0.5, 1e-5])
@twin_of(hmm_atoms.draw_sticks)
def test_draw_log_weights(kernel, concentration, monkeypatch):
    """Against products of shares of gamma variables; also of some that underflow."""
    monkeypatch.setattr(_atoms, "draw_sticks", kernel)
    sizes = np.random.default_rng(2).integers(9, size=(3, 5)).astype(float)
    sizes[1, 2:] = 0.0
    state = _atoms.state_of(np.random.default_rng(6))
    log_weights = _atoms.draw_log_weights(
        sizes, concentration, np.random.default_rng(6)
    )
    for own, found in zip(sizes, np.exp(log_weights), strict=True):
        rest = 1.0
        for a in range(4):
            taken = random.gamma(1.0 + own[a], state)
            left = random.gamma(concentration + own[a + 1 :].sum(), state)
            assert_allclose(
                found[a], rest * taken / (taken + left), rtol=1e-12, atol=1e-250
            )
            rest *= left / (taken + left)
        assert_allclose(found[4], rest, rtol=1e-12, atol=1e-250)


@both
@twin_of(hmm_atoms.draw_gaussians)
def test_draw_atoms(kernel, full, monkeypatch):
    """Against the conjugate posterior of the rows themselves."""
    monkeypatch.setattr(_atoms, "draw_gaussians", kernel)
    rng, d = np.random.default_rng(3), 3
    rows = rng.normal(size=(6, d)) + 1.0
    center, origin, scale = rng.normal(size=(3, d)) ** 2
    gaps = rows - center
    counts, sums = np.full((1, 1, d), 6.0), gaps.sum(axis=0).reshape(1, 1, d)
    moments = counts[..., 0], counts, sums, np.tril(gaps.T @ gaps)[None, None]
    model = SimpleNamespace(mean_count=MEAN_COUNT, shape=SHAPE, full=full)
    given = moments, center.reshape(1, 1, d), origin[None], scale[None], model
    means, factors = _atoms.draw_atoms(*given, np.random.default_rng(5))
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


@twin_of(hmm_atoms.draw_gaussians)
def test_draw_atoms_of_rows_with_missing_values(kernel, monkeypatch):
    """With variances, a feature is drawn given its own values: as if it were alone."""
    monkeypatch.setattr(_atoms, "draw_gaussians", kernel)
    rng, d = np.random.default_rng(4), 3
    rows = rng.normal(size=(9, d)) + 1.0
    rows[:8, 0] = rows[:4, 1] = np.nan
    center, origin, scale = rng.normal(size=(3, d)) ** 2
    gaps = rows - center
    counts, sums = (~np.isnan(gaps)).sum(axis=0) * 1.0, np.nansum(gaps, axis=0)
    squares = np.diag(np.nansum(gaps**2, axis=0))
    moments = np.full((1, 1), 9.0), counts[None, None], sums[None, None]
    model = SimpleNamespace(mean_count=MEAN_COUNT, shape=SHAPE, full=False)
    given = (*moments, squares[None, None]), center[None, None], origin[None]
    draws = np.random.default_rng(5)
    means, factors = _atoms.draw_atoms(*given, scale[None], model, draws)
    draws = np.random.default_rng(5)
    noise = draws.standard_normal(d)
    total = MEAN_COUNT + counts
    best = (MEAN_COUNT * origin + np.nansum(rows, axis=0)) / total
    rate = scale + 0.5 * np.nansum((rows - best) ** 2, axis=0)
    rate += 0.5 * MEAN_COUNT * (origin - best) ** 2
    roots = np.sqrt(draws.standard_gamma(SHAPE + 0.5 * counts) / rate)
    assert_allclose(factors[0, 0], np.diag(roots), rtol=1e-8)
    assert_allclose(means[0, 0], best + noise / roots / np.sqrt(total), rtol=1e-8)


def of_base(precisions, means, noise, prior_precision):
    """Return the origin by normal equations of atoms, and a draw's own noise."""
    d = len(noise)
    precision = prior_precision * np.eye(d) + MEAN_COUNT * sum(precisions)
    pairs = zip(precisions, means, strict=True)
    pull = MEAN_COUNT * sum(p @ mean for p, mean in pairs)
    upper = np.linalg.cholesky(precision).T
    return np.linalg.solve(precision, pull) + np.linalg.solve(upper, noise)


@both
@twin_of(hmm_atoms._draw_scales)
def test_draw_scales(kernel, full):
    """Features of the origin given the others; a scale divides a gamma variable.

    With probability 1e-4 a right kernel fails, were the seed new.
    """
    rng, d, n_atoms = np.random.default_rng(4), 3, 4
    means, sizes = rng.normal(size=(1, n_atoms, d)), np.array([[2.0, 0.0, 0.0, 1.0]])
    factors = np.tril(rng.normal(size=(1, n_atoms, d, d))) + 2 * np.eye(d)
    factors = factors if full else factors * np.eye(d)
    precisions = [factors[0, a].T @ factors[0, a] for a in (0, 3)]
    total = np.diag(sum(precisions))
    precision = 0.1 * np.eye(d) + MEAN_COUNT * sum(precisions)
    pull = MEAN_COUNT * sum(precisions[i] @ means[0, a] for i, a in enumerate((0, 3)))
    prior, drawn = (MEAN_COUNT, SHAPE, 0.5, 2.0, 1.0, 0.1), []
    state = np.array([8], dtype=np.uint64)
    for _ in range(300):
        noise, origin, scale = rng.normal(size=d), rng.normal(size=d), np.empty(d)
        expected = origin.copy()
        base = origin[None], scale[None]
        kernel(sizes, full, prior, noise, factors, means, *base, state)
        for f in range(d):
            gap = pull[f] - precision[f] @ expected
            expected[f] += gap / precision[f, f] + noise[f] / np.sqrt(precision[f, f])
        assert_allclose(origin, expected)
        drawn.extend(scale * (2.0 + total))
    shape = 0.5 + 2 * (SHAPE + full * 0.5 * (d - 1))
    assert kstest(drawn, gamma(shape).cdf).pvalue > 1e-4
    origin = np.full(d, 7.0)
    base = origin[None], scale[None]
    kernel(sizes, full, (*prior[:5], 0.0), noise, factors, means, *base, state)
    assert_array_equal(origin, 7.0)


def test_draw_base():
    """Against the normal equations of the atoms that have rows."""
    rng, d, n_shapes = np.random.default_rng(4), 3, 2
    means, occupied = rng.normal(size=(2, 4, d)), rng.random((2, 4)) < 0.7
    factors = rng.uniform(1.0, 3.0, size=(2, 4, d, 1)) * np.eye(d)
    parameters = SimpleNamespace(factors=factors, means=means, origins=None)
    prior = {"location_variance": 10.0, "scale_shape": 0.5, "scale_rate": 2.0}
    for shared in False, True:
        own = {"mean_count": MEAN_COUNT, "shape": SHAPE, "shared": shared}
        given = occupied, parameters, SimpleNamespace(**prior, **own)
        origins, scales = _atoms.draw_base(*given, np.random.default_rng(6))
        draws = np.random.default_rng(6)
        of_shapes = 0.5 + SHAPE * occupied.sum(axis=1, keepdims=True)
        gammas = draws.standard_gamma(of_shapes, (n_shapes, d))
        noise = draws.standard_normal((n_shapes, d))
        assert not shared or origins is None
        for g in range(n_shapes):
            precisions = [f.T @ f for f in factors[g][occupied[g]]]
            assert_allclose(scales[g], gammas[g] / (2.0 + np.diag(sum(precisions))))
            if not shared:
                expected = of_base(precisions, means[g][occupied[g]], noise[g], 0.1)
                assert_allclose(origins[g], expected)


@pytest.mark.parametrize("shared", [False, True])
def test_sizes_of(shared):
    """Per state, or for all states; rows with a negative atom are left out."""
    rng = np.random.default_rng(9)
    states, atoms = rng.integers(3, size=50), rng.integers(-1, 4, size=50)
    model = SimpleNamespace(n_shapes=1 if shared else 3, n_atoms=4, shared=shared)
    known, expected = atoms >= 0, np.zeros((3, 4))
    np.add.at(expected, (states[known], atoms[known]), 1.0)
    if shared:
        expected = expected.sum(axis=0, keepdims=True)
    assert_array_equal(_atoms.sizes_of(states, atoms, model), expected)


@both
@twin_of(hmm_atoms._draw_labels)
def test_draw_labels(kernel, full):
    """The probabilities of all atoms decide, also where few rows look at empty ones.

    Of five atoms two have no rows: one is far from all rows, or has nearly no weight.
    Their numbers of rows are those of the probabilities; each fails on a right kernel
    with probability 1e-5, were the seed new. `uniforms` chooses among the others.
    """
    rng, d, n = np.random.default_rng(10), 2, 1000
    looked_at, state = 0, np.array([10], dtype=np.uint64)
    for log_weight in (-1.0, -6.0, -40.0):
        rows = 3.0 * rng.normal(size=(n, d))
        means = 3.0 * rng.normal(size=(5, d))
        factors = np.tril(0.3 * rng.normal(size=(5, d, d)) * full, -1)
        factors += rng.uniform(0.5, 2.0, size=(5, d))[..., None] * np.eye(d)
        log_weights = np.log(rng.dirichlet(np.ones(5)))
        log_weights[[1, 4]] += log_weight
        sizes = np.array([[3.0, 0.0, 2.0, 1.0, 0.0]])
        rounding = np.array([0.0, 0.02])
        logs = np.empty((n, 5))
        for a in range(5):
            precision = factors[a].T @ factors[a]
            law = multivariate_normal(means[a], np.linalg.inv(precision))
            logs[:, a] = log_weights[a] + law.logpdf(rows)
            logs[:, a] -= 0.5 * np.diag(precision) @ rounding
        uniforms = rng.random(n)
        shares = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
        known, empty = np.array([0, 2, 3]), np.array([1, 4])
        passed = shares[:, known].cumsum(axis=1)
        places = (passed <= (uniforms * passed[:, -1])[:, None]).sum(axis=1)
        expected = known[np.minimum(places, 2)]
        atoms, base = np.zeros((1, n), dtype=np.int64), np.empty((2, 1, d))
        mixture = sizes, log_weights[None], factors[None], means[None], *base
        kernel(
            np.concatenate([rows.T, np.empty((4, n))]),
            rounding,
            full,
            uniforms,
            mixture,
            atoms,
            np.empty(n, dtype=np.int64),
            np.empty((1, n)),
            np.zeros((1, d)),
            np.empty((7, 256)),
            state,
        )
        without = np.isin(atoms[0], empty)
        assert_array_equal(atoms[0, ~without], expected[~without])
        for a in empty:
            error = np.sqrt((shares[:, a] * (1 - shares[:, a])).sum()) + 1e-9
            assert abs((atoms[0] == a).sum() - shares[:, a].sum()) < 4.5 * error + 0.1
        looked_at += without.sum()
    assert looked_at > 20


@both
@twin_of(hmm_atoms.update_mixture)
def test_update_mixture(kernel, full):
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
    uniforms, more_noise = rng.random((2, 2 * n)), rng.normal(size=(2, 3, 1, 3, d))
    triangles, state = rng.normal(size=(2, 3, 2, d, d)), np.array([8], dtype=np.uint64)
    drawn = sizes, log_weights, factors, means, *base
    for g in range(2):
        found = kernel(
            rows.reshape(-1, d),
            np.repeat([0, 1], n),
            g,
            atoms,
            np.zeros((2, d)),
            np.zeros(d),
            (0.05, 2.0, 0.5, 2.0, 1.0, 0.1),
            full,
            (uniforms, more_noise[g], triangles[g]),
            g * n,
            tuple(part[g : g + 1] for part in drawn),
            state,
            (
                np.empty((1, 2 * n), dtype=np.int64),
                np.empty((2, 2 * n), dtype=np.int64),
                np.empty((d + 4, 2 * n)),
                np.empty((1, 2 * n)),
                (*np.empty((2, 1, 2, d)), np.empty((1, 2, d, d))),
                np.empty((d + 3, d)),
                np.zeros((1, d)),
                np.empty((4, 256)),
            ),
        )
        assert found == n
    assert_array_equal(sizes, [np.bincount(own) for own in atoms.reshape(2, n)])
    # The atoms of a mixture may have been exchanged.
    found = atoms.reshape(2, n)
    order = np.array(
        [[0, 1] if np.mean(own) > 0.5 else [1, 0] for own in found == labels]
    )
    assert (np.take_along_axis(order, found, axis=1) == labels).mean() > 0.99
    covariance = np.array([[1.0, 0.8 * full], [0.8 * full, 1 + 0.64 * full]])
    means = np.take_along_axis(means, order[..., None], axis=1)
    assert_allclose(means, centers, atol=0.6)
    precisions = factors.swapaxes(-1, -2) @ factors
    assert_allclose(np.linalg.inv(precisions) - covariance, 0.0, atol=0.9)
    weights = np.take_along_axis(np.exp(log_weights), order, axis=1)
    assert_allclose(weights.sum(axis=1), 1.0)
    assert_allclose(weights[:, 0], 0.7, atol=0.15)
    assert (base[0] != 0).all()
