"""Refits that begin at the last solution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from states import state_of
from test_mixture_answers import CASES

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import (
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
)

GAUSSIAN = {
    "full": {},
    "missing": {},
    "diag": {"covariance_type": "diag"},
    "spherical": {"covariance_type": "spherical"},
    "types": {"covariance_type": "auto"},
    "factorized": {"covariance_type": "diag", "prior": "factorized"},
    "outliers": {"outliers": True},
    "temperature": {"inverse_temperature": "auto"},
}
NAMES = [*CASES, *GAUSSIAN, "multinomial", "sparse"]


def warm(name, n_components=2, **options):
    """Return a mixture that is not fitted, and overlapping rows for it."""
    options = {"warm_start": True, "random_state": 0, **options}
    generator = np.random.default_rng(1)
    if name in CASES:
        family, draw = CASES[name]
        return TemperedVBMixture(family, n_components, **options), draw(generator)
    if name in GAUSSIAN:
        X = generator.normal(size=(150, 2)) + 2.5 * generator.integers(0, 2, (150, 1))
        if name == "missing":
            X[::7, 1] = np.nan
        options |= GAUSSIAN[name]
        return TemperedVBGaussianMixture(n_components, **options), X
    X = CASES["poisson"][1](generator)
    X = sparse.csr_array(X) if name == "sparse" else X
    return TemperedVBMultinomialMixture(n_components, **options), X


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "n_components"),
    [(name, (2, "auto")[number % 2]) for number, name in enumerate(NAMES)],
)
def test_the_same_rows_give_the_same_optimum(name, n_components):
    """The bound is not lower, but for what `tol` leaves open, nor are there more steps.

    Priors are improved as long as that raises the bound by ten times `tol`. With
    "auto", `n_iter_` is of the last ascent only, and the criterion is not lower.
    """
    mixture, X = warm(name, n_components, max_components=4)
    mixture.fit(X)
    path, n_iter = mixture.elbo_path_, mixture.n_iter_
    labels, weights = mixture.predict(X), mixture.weights_
    again = mixture.fit(X).elbo_path_[mixture.n_components_]
    enough = 10 * mixture.tol * mixture.inverse_temperature_ * X.shape[0]
    assert again > max(path.values()) - 2 * enough
    if n_components == 2:
        assert mixture.n_iter_ <= n_iter
    if again < max(path.values()) + 2 * enough:  # it may also find a better one
        sure = np.abs(mixture.predict_proba(X) - 0.5).max(axis=1) > 0.01
        assert_array_equal(mixture.predict(X)[sure], labels[sure])
        assert_allclose(mixture.weights_, weights, atol=0.01)


def test_fewer_iterations_and_parts_of_one_ascent():
    """Refits of five iterations each come to where one long fit comes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) + 2.0 * rng.integers(0, 2, (400, 1))
    options = {"n_init": 1, "tol": 1e-7, "random_state": 0}
    cold = TemperedVBMixture("normal", 2, **options).fit(X)
    assert cold.n_iter_ > 12
    parts = TemperedVBMixture("normal", 2, warm_start=True, **options)
    parts.set_params(max_iter=5)
    with pytest.warns(ConvergenceWarning, match="still rising"):
        bounds = [parts.fit(X).elbo_ for _ in range(3)]
    assert (np.diff(bounds) > 0).all()
    parts.set_params(max_iter=300).fit(X)
    assert_allclose(parts.elbo_, cold.elbo_, atol=1e-3)
    assert parts.fit(X).n_iter_ < cold.n_iter_ / 3
    assert parts.set_params(warm_start=False).fit(X).elbo_ == cold.elbo_


def test_rows_that_moved_keep_their_labels():
    """Whatever fitted before: rows or a stream; the prior is that of the new rows."""
    X, _ = make_mixture(n_samples=600, n_components=3, random_state=0)
    mixture = TemperedVBGaussianMixture(3, warm_start=True, random_state=0)
    mixture.partial_fit(X[:300]).partial_fit(X[300:])
    found = mixture.predict(X)
    moved = mixture.fit(1.1 * X + 0.2).predict(1.1 * X + 0.2)
    assert np.mean(moved == found) > 0.99
    cold = TemperedVBGaussianMixture(3, random_state=0).fit(1.1 * X + 0.2)
    assert_allclose(mixture.elbo_, cold.elbo_, atol=600 * cold.tol)
    assert mixture.n_samples_seen_ == 600


@pytest.mark.parametrize("numbers", [(2, 4), (4, 2), ("auto", 4)])
def test_components_are_merged_or_cut(numbers):
    X, _ = make_mixture(n_samples=300, n_components=4, random_state=0)
    before, after = numbers
    mixture = TemperedVBGaussianMixture(before, warm_start=True, random_state=0)
    mixture.fit(X).set_params(n_components=after).fit(X)
    cold = TemperedVBGaussianMixture(after, random_state=0).fit(X)
    assert mixture.n_components_ == after
    assert mixture.elbo_ > cold.elbo_ - 0.01 * len(X)


def test_a_refused_refit_changes_nothing():
    """Other columns, categories that are not known, NaN, no rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 4 * rng.integers(0, 2, (60, 1))
    codes = rng.integers(0, 3, (60, 2)).astype(float)
    diag = {"covariance_type": "diag"}
    full = {"covariance_type": "full"}
    hole = np.where(np.arange(120).reshape(60, 2) == 7, np.nan, X)
    cases = [
        (TemperedVBGaussianMixture(2), {}, X, X[:, :1], "X has 1 features, but the la"),
        (TemperedVBMixture("categorical", 2), {}, codes, codes + 1, "the category 3"),
        (TemperedVBGaussianMixture(2, **diag), full, X, hole, "NaN"),
        (TemperedVBMixture("normal", 2), {}, X, X[:0], "0 sample"),
    ]
    for mixture, changes, rows, others, message in cases:
        mixture.set_params(warm_start=True, random_state=0).fit(rows)
        mixture.set_params(**changes)
        before = state_of(mixture)
        with pytest.raises(ValueError, match=message):
            mixture.fit(others)
        assert state_of(mixture) == before
        mixture.set_params(warm_start=False)
        if len(others):
            mixture.fit(others)


def test_names_of_columns_must_be_the_same():
    pd = pytest.importorskip("pandas")
    X, _ = make_mixture(n_samples=100, random_state=0)
    frame = pd.DataFrame(X, columns=["width", "height"])
    mixture = TemperedVBGaussianMixture(2, warm_start=True, random_state=0).fit(frame)
    with pytest.raises(ValueError, match=r"height, width, but .* width, heig"):
        mixture.fit(frame[["height", "width"]])
    assert mixture.fit(frame).n_components_ == 2
