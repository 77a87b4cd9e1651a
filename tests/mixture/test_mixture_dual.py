"""The dual form of full and tied families: weights of rows instead of scatter matrices.

The dual form is the same model, so that its bound is that of the primal form for any
responsibilities, and a fit in the dual form ends at a maximum of the primal bound.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpacbayes.mixture import TemperedVBGaussianMixture, _dual
from skpacbayes.mixture._ascent import TemperedMixture
from skpacbayes.mixture._held_out import TEMPERATURES
from skpacbayes.mixture._matrix_f import NormalMatrixF
from skpacbayes.mixture._search import statistics_of

SHAPES = [(9, 14), (16, 12), (30, 12)]  # rows and columns


def groups(n_samples, n_features, seed=0):
    """Two groups of correlated columns, in different units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    X = X @ (np.eye(n_features) + 0.3 * rng.normal(size=(n_features, n_features)))
    X += np.outer(np.arange(n_samples) % 2, rng.normal(size=n_features) * 2)
    return X * 10.0 ** rng.integers(-3, 4, n_features)


def estimator(kind, n_components=2, **parameters):
    return TemperedVBGaussianMixture(
        n_components, covariance_type=kind, random_state=0, **parameters
    )


def quietly_fitted(mixture, X, **weight):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mixture.fit(X, **weight)


def both_forms(kind, X):
    """Return the primal and the dual mixture."""
    family = estimator(kind)._begin_family(kind, X, None)
    primal = TemperedMixture(family, 0.9, 1.0)
    return primal, primal.with_family(_dual.DualMatrixF(family, X))


def statistics(mixture, X, shares):
    """Return the rows as the mixture takes them, and statistics, without entropies."""
    rows = mixture.family.encoded(X)
    blank = mixture.blank(shares.shape[1], mixture.family.origin(X))
    tiles = [(slice(0, len(X)), rows, shares)]
    return rows, statistics_of(mixture.density(blank), tiles), blank


@pytest.mark.parametrize("kind", ["full", "tied"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("likeness", [1.0, 4.0])
def test_the_bound_is_that_of_the_primal_form(kind, shape, likeness):
    """For any weights of the rows: densities, divergences, and the next weights."""
    X = groups(*shape)
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([0.5, 0.5, 0.5], size=len(X)) * rng.uniform(size=(len(X), 1))
    shares[:2] = 0.0
    found = []
    for mixture in both_forms(kind, X):
        mixture.family.likeness = likeness
        mixture = mixture.with_family(mixture.family.rescaled(0.2))
        rows, sums, state = statistics(mixture, X, shares)
        for _ in range(3):
            state = mixture.m_step(sums, state)
        expected, log_normalizer = mixture.e_step(state, rows)
        found.append([log_normalizer, mixture.divergence(state)])
        found[-1] += [*expected[:, 0], *expected[:, -1]]
        found[-1].append(mixture.criterion_of(state, sums))
    assert_allclose(*found, rtol=1e-8, atol=1e-6)


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_the_scale_is_optimal_together_with_the_precisions(kind):
    """No other scale has a larger bound after an update under it."""
    X = groups(9, 14)
    _, best = both_forms(kind, X)
    shares = np.eye(2)[np.arange(len(X)) % 2]
    _, sums, state = statistics(best, X, shares)
    for _ in range(30):  # the prior precisions of the means converge too
        best, state = best.m_step_of_all(sums, state)
    bound = best.bound(state, 0.0, sums)
    for factor in (0.5, 0.99, 1.01, 2.0):
        family = best.family.rescaled(factor * best.family.scale_factor)
        other = best.with_family(family)
        assert other.bound(other.m_step(sums, state), 0.0, sums) < bound


@pytest.mark.parametrize("kind", ["full", "tied", "auto"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_fit_is_at_a_maximum_of_the_primal_bound(kind, shape, monkeypatch):
    """The primal form, which alternates, does not rise above it notably."""
    X = groups(*shape)
    weight = np.r_[np.ones(len(X) - 1), 0.0]
    fits = []
    for narrow in (0, np.inf):
        monkeypatch.setattr(_dual, "NARROW", narrow)
        mixture = estimator(kind, max_iter=2000, tol=1e-7)
        fits.append(quietly_fitted(mixture, X, sample_weight=weight))
    dual, primal = fits
    assert dual.covariance_type_ == primal.covariance_type_
    assert dual.elbo_ > primal.elbo_ - 1e-3
    assert np.diff(dual.elbo_history_).min() > -1e-9 * abs(dual.elbo_)
    assert_allclose(dual.score_samples(X), primal.score_samples(X), atol=0.05)


@pytest.mark.parametrize("alpha", [0.9, "auto"])
def test_wide_tables_need_few_scatter_matrices(alpha, monkeypatch):
    """Some for the result, each fold and temperature, whatever the search takes."""
    X, updates = groups(12, 80), []
    update = NormalMatrixF.update

    def counted(family, sums, previous):
        updates.append(len(sums) * sums.any())
        return update(family, sums, previous)

    monkeypatch.setattr(NormalMatrixF, "update", counted)
    options = {"max_components": 3, "n_init": 1, "inverse_temperature": alpha}
    mixture = estimator("tied", "auto", **options)
    quietly_fitted(mixture, X)
    folds = 5 * len(TEMPERATURES) if alpha == "auto" else 0
    assert np.count_nonzero(updates) <= 2 + folds
    assert mixture.means_.shape == (mixture.n_components_, 80)
