"""Skewed groups, which normal components cut in parts."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import lognorm

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import TemperedVBGaussianMixture, TemperedVBMixture
from skpacbayes.mixture._skewed_groups import SkewedGroups, unskewed

OPTIONS = {"max_components": 9, "n_init": 1, "random_state": 0}
PRODUCT = [("x", "normal", [0, 1]), ("n", "poisson", [2])]
KINDS = {
    "full": TemperedVBGaussianMixture("auto", **OPTIONS),
    "diag": TemperedVBGaussianMixture("auto", covariance_type="diag", **OPTIONS),
    "normal": TemperedVBMixture("normal", "auto", **OPTIONS),
    "product": TemperedVBMixture(PRODUCT, "auto", **OPTIONS),
}


def said_of(mixture, X):
    """Return the warnings of skewed groups."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture.fit(X)
    texts = [str(each.message) for each in caught]
    return [text for text in texts if "Groups seem skewed" in text]


def two_groups(rng, shape, kind):
    """Rows of two groups of lognormal or normal columns, with counts for a product."""
    group = np.arange(600) % 2
    noise = 0.7 * rng.normal(size=(600, 2))
    if shape == "normal":
        X = noise + 6 * group[:, None]
    else:
        X = np.exp(noise) + [0, 9] * group[:, None]
        X = -X if shape == "to the left" else X
    if kind == "product":
        return np.column_stack([X, rng.poisson(3 + 9 * group)])
    return X


@pytest.mark.parametrize("shape", ["to the right", "to the left", "normal"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_skewed_groups_is_told(kind, shape):
    """Of "full" components one more may be left, of those in a long tail."""
    X = two_groups(np.random.default_rng(1), shape, kind)
    said = said_of(KINDS[kind], X)
    if shape == "normal":
        assert not said
    else:
        most = 3 if kind == "full" else 2
        told = int(said[0].removeprefix("Groups seem skewed: ").split()[0])
        assert 2 <= told <= most < KINDS[kind].n_components_


@pytest.mark.parametrize("seed", range(4))
def test_overlapping_normal_groups_are_not_called_skewed(seed):
    """Where BIC would merge them: its penalty counts all rows for each group."""
    shape = {"n_samples": 400, "n_components": 4, "n_features": 2}
    X, _ = make_mixture(**shape, separation=3.0, random_state=seed)
    assert not said_of(KINDS["full"], X)


@pytest.mark.parametrize("shape", ["uniform", "circle", "tails"])
def test_other_shapes_are_not_called_skewed(shape):
    rng = np.random.default_rng(2)
    angles = rng.uniform(0, 2 * np.pi, 500)
    X = {
        "uniform": rng.random((500, 2)),
        "circle": np.column_stack([np.cos(angles), np.sin(angles)])
        + 0.05 * rng.normal(size=(500, 2)),
        "tails": rng.standard_t(3, (500, 2)),
    }[shape]
    assert not said_of(KINDS["full"], X)


@pytest.mark.slow
def test_units_do_not_matter():
    X = two_groups(np.random.default_rng(1), "to the right", "full")
    said = said_of(KINDS["full"], X)
    assert said
    for unit in (1e-6, 1e6):
        assert said_of(KINDS["full"], unit * X) == said


@pytest.mark.parametrize("sign", [1, -1])
def test_slopes_are_those_of_the_logarithms(sign):
    """The density of scores times the slope is the shifted lognormal density."""
    rng = np.random.default_rng(3)
    X = sign * np.exp(0.6 * rng.normal(size=(2000, 1)))
    zeros = np.array([0.0]) if sign > 0 else np.array([np.nan])
    scores, log_slopes, n_skewed = unskewed(X, np.ones(2000), zeros)
    assert n_skewed == 1
    score = np.sort(scores[:, 0])
    low, high = score[0] - 3 * score.std(), score[-1] + 3 * score.std()
    assert high - low < 20
    slopes = np.gradient(score, np.sort(X[:, 0] * sign))
    expected = np.exp(log_slopes[np.argsort(X[:, 0] * sign)])
    assert_allclose(slopes[50:-50], expected[50:-50], rtol=0.05)
    if sign > 0:
        width = scores.std()
        own = log_slopes - 0.5 * np.log(2 * np.pi) - np.log(width)
        own -= 0.5 * ((scores[:, 0] - scores.mean()) / width) ** 2
        assert own.mean() >= lognorm.logpdf(X, 0.6).mean() - 1e-3


def test_few_rows_are_not_compared():
    rng = np.random.default_rng(4)
    X = np.exp(rng.normal(size=(60, 5)))
    share = np.repeat([[1.0, 0.0], [0.0, 1.0]], 30, axis=0)
    groups = SkewedGroups(X, np.ones(60), [(None, list(range(5)))], share)
    groups.size = 20
    assert groups.best_merge() == (2, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [26, 35])
def test_thin_groups_with_oblique_axes_are_not_called_skewed(seed):
    """Normal groups, one of which is narrow in a direction that is no column."""
    rng = np.random.default_rng(seed)
    n_groups = 2 + seed % 3
    group, centers = rng.integers(n_groups, size=400), rng.normal(size=(n_groups, 3))
    axes = rng.normal(size=(n_groups, 3, 3))
    axes[0, :, 0] *= 10.0 ** -(seed % 4)
    X = 6 * centers[group]
    X += np.einsum("nij,nj->ni", axes[group], rng.normal(size=(400, 3)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture = TemperedVBGaussianMixture(
            "auto", max_components=8, n_init=1, random_state=0
        ).fit(X)
    assert mixture.n_components_ == n_groups
    assert "skewed" not in " ".join(str(each.message) for each in caught)
