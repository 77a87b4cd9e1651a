"""`make_mixture` draws from the law that it documents.

Each comparison fails on correct code with probability below 1e-5, were the seeds new.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import pdist

from skpacbayes.datasets import make_mixture

SKEWNESS = {"gaussian": 0.0, "skewed": 1.0}


@pytest.mark.parametrize("shape", SKEWNESS)
def test_components(shape):
    """One feature: variance in [0.5, 1], the skewness that is documented."""
    for seed in range(3):
        X, y = make_mixture(
            shape, 40_000, n_components=2, n_features=1, random_state=seed
        )
        for k in range(2):
            rows = X[y == k, 0]
            assert 0.45 < rows.var() < 1.1
            found = abs(stats.skew(rows))
            assert found == pytest.approx(SKEWNESS[shape], abs=0.25)
            assert (stats.kstest(stats.zscore(rows), "norm").pvalue > 1e-5) == (
                shape == "gaussian"
            )


@pytest.mark.parametrize("separation", [3.0, 6.0])
def test_separation(separation):
    for seed in range(5):
        X, y = make_mixture(
            n_samples=20_000,
            n_components=4,
            n_features=3,
            separation=separation,
            random_state=seed,
        )
        centres = np.array([X[y == k].mean(axis=0) for k in range(4)])
        assert pdist(centres).min() > separation - 0.2  # of standard error 0.02


def test_outliers_and_tails():
    X, y = make_mixture("outliers", 20_000, random_state=0)
    assert (y < 0).mean() == pytest.approx(0.03, abs=0.006)
    inside, outside = X[y >= 0], X[y < 0]
    assert (outside >= inside.min(axis=0)).all()
    assert (outside <= inside.max(axis=0)).all()
    heavy, _ = make_mixture("heavy-tailed", 20_000, n_components=1, random_state=0)
    assert stats.kurtosis(heavy).min() > 3


@pytest.mark.parametrize("seed", range(3))
def test_scales_of_heavy_tails(seed):
    """Quartiles of a Student variable, times a scale whose square is in [0.5, 1]."""
    X, _ = make_mixture(
        "heavy-tailed", 40_000, n_components=1, n_features=1, random_state=seed
    )
    scale = np.subtract(*np.quantile(X, [0.75, 0.25])) / (2 * stats.t(3).ppf(0.75))
    assert 0.45 < scale**2 < 1.1


def test_the_seed_is_everything():
    for one, two in zip(
        make_mixture(random_state=3), make_mixture(random_state=3), strict=True
    ):
        assert np.array_equal(one, two)
    assert not np.array_equal(
        make_mixture(random_state=3)[0], make_mixture(random_state=4)[0]
    )
