"""Full and tied covariances of many columns, with fewer rows than columns."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes

from skpacbayes.mixture import TemperedVBGaussianMixture, _dual, _matrix_f
from skpacbayes.mixture._default_priors import BLUR
from skpacbayes.mixture._matrix_f import NormalMatrixF
from skpacbayes.mixture._search import hard_statistics


def groups(n_samples, n_features, n_groups, factors=0, seed=0):
    """Groups far apart; with `factors`, their columns are correlated."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    if factors:
        X += rng.normal(size=(n_samples, factors)) @ rng.normal(
            size=(factors, n_features)
        )
    centers = rng.normal(size=(n_groups, n_features))
    X += 5 * centers[np.arange(n_samples) % n_groups]
    return X * 10.0 ** rng.integers(-3, 4, n_features)


def fit(X, n_components, kind, **parameters):
    mixture = TemperedVBGaussianMixture(
        n_components, covariance_type=kind, random_state=0, **parameters
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mixture.fit(X)


@pytest.mark.parametrize(
    ("kind", "n_samples", "n_features", "n_components", "factors"),
    [
        ("full", 60, 40, 3, 0),
        ("full", 60, 40, 3, 3),
        ("full", 90, 80, 3, 3),
        ("tied", 40, 80, 2, 0),
        ("tied", 40, 80, 2, 3),
    ],
)
def test_updates_of_low_rank_are_the_same(
    kind, n_samples, n_features, n_components, factors, monkeypatch
):
    """As those by all eigenvectors, up to rounding; the bound never decreases."""
    X = groups(n_samples, n_features, n_components, factors)
    sizes, eigh = [], np.linalg.eigh

    def counted(matrix):
        sizes.append(matrix.shape[-1])
        return eigh(matrix)

    monkeypatch.setattr(_dual, "NARROW", np.inf)
    monkeypatch.setattr(np.linalg, "eigh", counted)
    found = fit(X, n_components, kind, n_init=1)
    assert np.median(sizes) < _matrix_f.LOW_RANK * n_features
    assert np.diff(found.elbo_history_).min() > -1e-9 * abs(found.elbo_)
    monkeypatch.setattr(_matrix_f, "MANY_COLUMNS", np.inf)
    whole = fit(X, n_components, kind, n_init=1)
    assert_allclose(found.elbo_, whole.elbo_, rtol=1e-10)
    assert_allclose(found.score_samples(X), whole.score_samples(X), rtol=1e-8)
    spread = X.std(axis=0)
    orders = [np.argsort(each.means_[:, 0]) for each in (found, whole)]
    for name, unit in (("covariances_", spread), ("precisions_", 1 / spread)):
        unit = np.outer(unit, unit)
        ours, theirs = (getattr(each, name) / unit for each in (found, whole))
        if kind == "full":
            ours, theirs = ours[orders[0]], theirs[orders[1]]
        assert_allclose(ours, theirs, atol=1e-8 * np.abs(theirs).max())


@pytest.mark.parametrize("n_groups", [1, 2])
def test_auto_searches_few_components_of_many_columns(n_groups):
    """The type with the fewest parameters limits the number of the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 40)) + 3.0 * (np.arange(90) % n_groups)[:, None]
    found = fit(X, "auto", "auto", n_init=1)
    assert (found.n_components_, found.covariance_type_) == (n_groups, "spherical")
    assert np.isfinite(found.score_samples(X)).all()


@pytest.mark.parametrize("seed", range(10))
def test_a_direction_without_width_has_the_width_of_the_blur(seed):
    """Also where the prior scale is so steep that rounding hides the blur.

    In units of the blur, N rows without width have a precision near (nu + N) / N.
    """
    rng, d, n_rows = np.random.default_rng(seed), 4, 50
    spread = np.exp(2 * rng.normal(size=d))
    scale = np.sqrt(np.outer(spread, spread)) * np.corrcoef(rng.normal(size=(d, 9)))
    blur = BLUR * spread
    family = NormalMatrixF(np.zeros(d), 0.05, d + 2, scale, blur, tied=False)
    steep = np.tril(rng.normal(size=(d, d)), -1)
    steep += np.diag(10.0 ** rng.uniform(-5, 0, d))
    family._set_shape(steep * np.sqrt(d / (steep**2).sum()))
    X = rng.normal(size=(n_rows, d)) * np.sqrt(spread)
    X[:, 0] = 0.0
    blank = family.blank(1, np.zeros(d))
    density, labels = family.density(blank, np.zeros(1)), np.zeros(n_rows, dtype=int)
    statistics = hard_statistics(density, X, np.ones(n_rows), labels)
    precision = family.update(statistics, blank).precisions[0]
    most = np.linalg.eigvalsh(precision * np.sqrt(np.outer(blur, blur)))[-1]
    assert 0.5 < most * n_rows / (family.degrees + n_rows) < d


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_columns_without_width_in_rows_drawn_again():
    """The search of this table has met such a direction, and did not end."""
    X = load_diabetes().data
    rows = np.random.default_rng(5).integers(0, len(X), len(X))
    mixture = TemperedVBGaussianMixture("auto", random_state=0)
    warnings.filterwarnings("error", category=RuntimeWarning)
    mixture.fit(X[rows])
    assert np.isfinite(mixture.elbo_)
