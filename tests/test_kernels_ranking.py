"""NumPy twins of the risks of scores that rank."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score
from twins import twin_of

from skpacbayes._kernels import ranking


def scorings(decimals, seed=0):
    """Scores of 23 positives and 17 negatives; rounded, they have ties."""
    rng = np.random.default_rng(seed)
    positive = rng.normal(0.5, size=(5, 23)).round(decimals)
    negative = rng.normal(size=(5, 17)).round(decimals)
    return positive, negative


@twin_of(ranking.misranked)
@pytest.mark.parametrize("decimals", [12, 1, 0])
def test_misranked(kernel, decimals):
    positive, negative = scorings(decimals)
    out = np.empty(5)
    kernel(np.sort(positive, axis=1), np.sort(negative, axis=1), out)
    below = positive[:, :, None] < negative[:, None, :]
    equal = positive[:, :, None] == negative[:, None, :]
    assert_allclose(out, (below + 0.5 * equal).mean(axis=(1, 2)), atol=1e-15)
    y = np.repeat([1, 0], [23, 17])
    for t in range(5):
        auc = roc_auc_score(y, np.append(positive[t], negative[t]))
        assert_allclose(1 - out[t], auc)


@pytest.mark.parametrize("constant", [0.0, -3.0])
def test_constant_scores_misrank_half(constant):
    out = np.empty(1)
    ranking.misranked(np.full((1, 4), constant), np.full((1, 3), constant), out)
    assert out == [0.5]


@twin_of(ranking.pairwise_logistic)
@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0])
def test_pairwise_logistic(kernel, scale):
    positive, negative = scorings(6)
    positive, negative = scale * positive, scale * negative
    out = np.empty(5)
    kernel(np.exp(-positive), np.exp(negative), out)
    differences = negative[:, None, :] - positive[:, :, None]
    assert_allclose(out, np.logaddexp(0, differences).mean(axis=(1, 2)), rtol=1e-12)
