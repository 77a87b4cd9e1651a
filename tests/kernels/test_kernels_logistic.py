"""The kernel of the logistic likelihood against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_expit
from twins import twin_of

from skpacbayes._kernels import logistic as kernels


@twin_of(kernels.log_likelihood)
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_log_likelihood(kernel, scale):
    """Also of more rows of one weight than one product has room for."""
    rng = np.random.default_rng(0)
    start, direction = scale * rng.normal(size=(2, 2500))
    signs = np.where(rng.random(2500) < 0.5, 1.0, -1.0)
    for weights in (np.ones(2500), rng.integers(0, 3, size=2500) + 0.0):
        expected = weights @ log_expit(signs * (start + 0.3 * direction))
        found = kernel(start, direction, 0.3, signs, weights)
        assert_allclose(found, expected, rtol=1e-12)
    assert kernel(*np.zeros((2, 2000)), 0.0, signs, np.ones(2000)) == pytest.approx(
        -2000 * np.log(2)
    )
