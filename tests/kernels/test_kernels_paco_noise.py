"""Answers about rows of PACO: the kernels against SciPy, a row against a block."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal, multivariate_t
from twins import twin_of

from skpacbayes._kernels import paco_noise
from skpacbayes.cluster._paco_outcome import ClusterNoise


@twin_of(paco_noise.center_distances)
@pytest.mark.parametrize("manhattan", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_center_distances(kernel, manhattan, turned):
    rng = np.random.default_rng(0)
    X, centers, origin = rng.normal(size=(9, 3)), rng.normal(size=(4, 3)), np.ones(3)
    coordinates = rng.normal(size=(3, 3)) if turned else None
    found = np.empty((9, 4))
    X[2] *= 1e200
    size = np.abs(centers).max()
    args = centers.T.copy(), size, manhattan, np.empty(3), found
    assert kernel(X, origin, coordinates, *args) == 1
    assert found[2, 0] == -1
    placed = (X - origin) @ coordinates if turned else X - origin
    expected = cdist(placed, centers, "cityblock" if manhattan else "euclidean")
    assert_allclose(np.delete(found, 2, 0), np.delete(expected, 2, 0), rtol=1e-12)


@twin_of(paco_noise.log_densities)
@pytest.mark.parametrize("dof", [np.inf, 5.0])
def test_log_densities(kernel, dof):
    rng = np.random.default_rng(0)
    X, scales, d = rng.normal(size=(6, 3)), np.array([0.5, 2.0]), 3
    law = multivariate_normal if np.isinf(dof) else multivariate_t
    more = {} if np.isinf(dof) else {"df": dof}
    laws = [law(np.zeros(d), s**2 * np.eye(d), **more) for s in scales]
    heights = np.array([one.logpdf(np.zeros(d)) for one in laws])
    found = np.repeat(np.linalg.norm(X, axis=1)[:, None], 2, axis=1)
    kernel(found, heights, scales, d, dof, False)
    assert_allclose(found, np.transpose([one.logpdf(X) for one in laws]), rtol=1e-12)


@twin_of(paco_noise.log_densities)
def test_log_densities_of_the_manhattan_loss(kernel):
    found = np.array([[1.0, 3.0]])
    kernel(found, np.array([0.5, 0.0]), np.array([2.0, 1.0]), 3, np.inf, True)
    assert_allclose(found, [[0.0, -3.0]])


@twin_of(paco_noise.add_up)
def test_add_up(kernel):
    heights = 100 * np.random.default_rng(0).normal(size=(7, 3))
    shares, totals = heights.copy(), np.empty(7)
    kernel(shares, totals)
    assert_allclose(shares, softmax(heights, axis=1), atol=1e-15)
    assert_allclose(totals, logsumexp(heights, axis=1), rtol=1e-12)
    nowhere = np.full((1, 2), -np.inf)
    kernel(nowhere, totals)
    assert_array_equal(nowhere, [[0.5, 0.5]])
    assert totals[0] == -np.inf


ANSWERS = ("likeliest", "log_joint", "probabilities", "log_density", "tails")


@pytest.mark.parametrize("manhattan", [False, True])
@pytest.mark.parametrize(
    ("turned", "dof"), [(False, np.inf), (True, np.inf), (True, 5.0)]
)
@pytest.mark.parametrize("own", [False, True])
def test_a_row_has_the_answer_that_it_has_in_a_block(manhattan, turned, dof, own):
    """Bit for bit; also rows whose squares are no numbers, and rows at a centre."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(5, 7))
    scales = rng.uniform(1, 2, 5) if own else np.full(5, 1.5)
    coordinates = rng.normal(size=(7, 7)) if turned else None
    shares = np.full(5, 0.2)
    noise = ClusterNoise(centers, scales, shares, 1.5, coordinates, dof, manhattan)
    X = np.vstack([3 * rng.normal(size=(40, 7)), centers, 1e160 * centers])
    for name in ("distances", *ANSWERS):
        block = getattr(noise, name)(X)
        assert not np.isnan(block).any()
        rows = [getattr(noise, name)(X[i : i + 1])[0] for i in range(len(X))]
        assert_array_equal(block, rows)


@pytest.mark.parametrize("unit", [1e-200, 1e-150, 1.0, 1e150])
def test_distances_in_any_unit(unit):
    """One cluster too, whose centres give no unit."""
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    for some in (centers, centers[:1]):
        k = len(some)
        noise = ClusterNoise(
            unit * some, np.ones(k), np.full(k, 1 / k), 1.0, None, np.inf, False
        )
        assert_allclose(noise.distances(unit * X), unit * cdist(X, some), rtol=1e-12)
