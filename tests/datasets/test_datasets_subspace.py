"""`make_subspace_groups` draws from the law that it documents."""

import numpy as np
from scipy import stats

from skpacbayes.datasets import make_subspace_groups

LEAST_P = 1e-6


def test_groups():
    """Narrow in two features, about means within [0.2, 0.8]; uniform in the others."""
    X, y = make_subspace_groups(4, 3000, spread=0.05, random_state=0)
    assert X.shape == (9000, 4)
    assert np.array_equal(np.bincount(y), [3000] * 3)
    for j in range(3):
        for f in range(4):
            values = X[y == j, f]
            if f in (j, j + 1):
                assert 0.2 - 0.005 < values.mean() < 0.8 + 0.005
                standard = (values - values.mean()) / 0.05
                assert stats.kstest(standard, "norm").pvalue > LEAST_P
            else:
                assert stats.kstest(values, "uniform").pvalue > LEAST_P
    other, _ = make_subspace_groups(4, 3000, spread=0.05, random_state=1)
    assert np.abs(other[y == 0, 0].mean() - X[y == 0, 0].mean()) > 0.01
