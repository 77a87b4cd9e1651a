"""Groups with heavy tails, for each of which normal components find several."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skpacbayes.mixture import TemperedVBGaussianMixture, TemperedVBMixture

OPTIONS = {"max_components": 8, "n_init": 1, "random_state": 0}
KINDS = {
    kind: TemperedVBGaussianMixture("auto", covariance_type=kind, **OPTIONS)
    for kind in ("full", "diag", "spherical", "auto")
}
KINDS["normal"] = TemperedVBMixture("normal", "auto", **OPTIONS)
TIED = TemperedVBGaussianMixture("auto", covariance_type="tied", **OPTIONS)
TAILS = "Groups seem to have heavy tails: "
OUTLIERS = "seems to be outliers"


def said_of(mixture, X, learn="fit"):
    """Return the warnings of heavy tails or outliers, and the fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = getattr(clone(mixture), learn)(X)
    texts = [str(each.message) for each in caught]
    return [text for text in texts if TAILS in text or OUTLIERS in text], fitted


def heavy(seed, n_groups, tail=3.0, n_rows=400):
    """Rows of groups with Student distributions, about other places."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    X /= np.sqrt(rng.chisquare(tail, size=(n_rows, 1)) / tail)
    return X + 12.0 * (np.arange(n_rows) % n_groups)[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_more_components_than_heavy_groups_are_in_doubt(kind, n_groups):
    """A component of far rows counts as outliers; the warning names the family too.

    Spherical components have few parameters, and Student ones full scale matrices.
    """
    silent, numbers = 0, []
    for seed in range(5):
        said, fitted = said_of(KINDS[kind], heavy(seed, n_groups))
        silent += not said and fitted.n_components_ > n_groups
        told = [text for text in said if TAILS in text]
        numbers += [int(text.removeprefix(TAILS).split()[0]) for text in told]
        assert all("'student'" in text for text in said)
    assert silent <= (2 if kind in ("spherical", "auto") else 0)
    assert set(numbers) <= {n_groups}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_family_that_the_warning_names_finds_the_groups(kind):
    for seed in range(3):
        for n_groups in (1, 2):
            X = heavy(seed, n_groups)
            said, _ = said_of(TemperedVBMixture("student", "auto", **OPTIONS), X)
            assert not said
    X = heavy(3, 1)
    said, _ = said_of(KINDS[kind], X)
    for unit, origin in ((1e-6, 0.0), (1e6, 1e8)):
        again, _ = said_of(KINDS[kind], origin + unit * X)
        assert len(again) == len(said)
        assert [TAILS in text for text in again] == [TAILS in text for text in said]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "tied"])
def test_normal_groups_are_not_called_heavy(kind):
    """Also where they overlap and have unequal widths, or one covariance for all."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        group = rng.integers(3, size=400)
        X = rng.normal(0, 4, size=(3, 3))[group]
        X += np.exp(rng.normal(0, 0.5, size=3))[group, None] * rng.normal(size=(400, 3))
        said, _ = said_of(KINDS.get(kind, TIED), X)
        assert not any(TAILS in text for text in said)


def test_a_stream_says_that_rows_are_the_first_and_a_given_number_is_kept():
    X = heavy(0, 1, n_rows=600)
    said, _ = said_of(KINDS["normal"].set_params(block_size=500), X, "partial_fit")
    assert any("first rows of the stream" in text for text in said)
    said, _ = said_of(clone(KINDS["normal"]).set_params(n_components=3), X)
    assert not any(TAILS in text for text in said)
