"""A uniform distribution for outliers: exactness, what it finds, what it refuses."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma
from sklearn.metrics import adjusted_rand_score

from skpacbayes.mixture import (
    Normal,
    Student,
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
    check_family,
)
from skpacbayes.mixture._outliers import SHARE_PRIOR, OutlierFamily

CENTERS = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])


def rows_with_outliers(seed, n_samples=400, share=0.1, degrees=3):
    """Rows of three groups, and outliers first."""
    rng = np.random.default_rng(seed)
    X = CENTERS[rng.integers(0, 3, n_samples)]
    X = X + rng.standard_t(degrees, (n_samples, 2))
    n_outliers = int(share * n_samples)
    X[:n_outliers] = rng.uniform(-20, 30, (n_outliers, 2))
    return X, np.arange(n_samples) < n_outliers


MIXTURES = {
    "full": lambda **own: TemperedVBGaussianMixture(3, outliers=True, **own),
    "diag": lambda **own: TemperedVBGaussianMixture(
        3, covariance_type="diag", outliers=True, **own
    ),
    "student": lambda **own: TemperedVBMixture("student", 3, outliers=True, **own),
    "normal": lambda **own: TemperedVBMixture("normal", 3, outliers=True, **own),
}


POSITIVE = {  # families of positive numbers, and which columns are counts
    "counts": ("poisson", [True, True]),
    "one of counts": (["normal", "poisson"], [False, True]),
    "lognormal": ("lognormal", [False, False]),
    "gamma": ("gamma", [False, False]),
}


@pytest.mark.parametrize("name", [*MIXTURES, *POSITIVE])
@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_the_bound_against_its_definition(name, alpha):
    X, _ = rows_with_outliers(0)
    make, counted = MIXTURES.get(name), np.array([False, False])
    if name in POSITIVE:
        family, counted = POSITIVE[name]
        make = partial(TemperedVBMixture, family, 3, outliers=True)
        X = np.where(counted, np.floor(np.abs(X)), np.abs(X) + 0.1)
    mixture = make(inverse_temperature=alpha, random_state=0, tol=1e-9).fit(X)
    history = mixture.elbo_history_
    assert (np.diff(history) >= -1e-9 * np.abs(history).max()).all()
    answer = mixture._answer()
    state, family = answer.state, answer.mixture.family
    components, chances = state.components
    usual = np.empty((len(X), 3))
    zeros = np.zeros(3)
    family.inner.density(components, zeros).log_joint(X, usual)
    log_chances = (digamma(chances) - digamma(chances.sum()))[0]
    area = np.prod(X.max(axis=0) - X.min(axis=0) + counted)
    terms = np.logaddexp(usual + log_chances[1], log_chances[0] - np.log(area))
    log_rows = np.logaddexp.reduce(terms + state.log_weights, axis=1)
    expected = alpha * log_rows.sum() - answer.mixture.divergence(state)
    assert_allclose(mixture.elbo_, expected, rtol=1e-10)
    again = answer.mixture.bound(state, 0.0, mixture.statistics_)
    assert_allclose(again, mixture.elbo_, rtol=1e-10)
    posterior = np.array(SHARE_PRIOR) + alpha * np.array(
        [len(X) - mixture.statistics_[:, 1].sum(), mixture.statistics_[:, 1].sum()]
    )
    assert_allclose(chances[0], posterior, rtol=1e-3)
    probabilities = 1 - np.exp(
        np.logaddexp.reduce(usual + log_chances[1] + state.log_weights, axis=1)
        - log_rows
    )
    assert_allclose(mixture.outlier_proba(X), probabilities, atol=1e-9)
    labels = mixture.predict(X)
    assert_array_equal(labels == -1, mixture.outlier_proba(X) > 0.5)
    assert_allclose(mixture.predict_proba(X).sum(axis=1), 1)


def test_methods_of_the_family_agree():
    """Draws follow the predictive density, and the update maximises the bound."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[0] = 8.0
    inner = Normal().begin(X)
    family = OutlierFamily(inner, X.min(axis=0), X.max(axis=0))
    check_family(family, X, conjugate=False)


def test_predictive_density_is_a_density():
    X, _ = rows_with_outliers(1)
    X = X[:, :1]
    mixture = TemperedVBGaussianMixture(2, outliers=True, random_state=0).fit(X)
    grid = np.linspace(-3000, 3000, 600_001)
    mass = np.trapezoid(np.exp(mixture.score_samples(grid[:, None])), grid)
    assert_allclose(mass, 1, atol=2e-3)
    rows, _ = mixture.sample(20_000)
    share = mixture.parameters_["outlier_share"]
    inside = (np.abs(grid) < 3).nonzero()[0]
    near = np.trapezoid(np.exp(mixture.score_samples(grid[inside, None])), grid[inside])
    assert abs((np.abs(rows) < 3).mean() - near) < 5 * np.sqrt(0.25 / len(rows))
    assert 0 < share < 0.3


@pytest.mark.slow
def test_groups_are_counted_beside_outliers():
    """Five draws; `bench_mixture_families.py` has fifty."""
    found = []
    for seed in range(1000, 1005):
        X, outlying = rows_with_outliers(seed)
        mixture = TemperedVBMixture(
            Student(3.0),
            "auto",
            max_components=5,
            outliers=True,
            n_init=1,
            random_state=0,
        ).fit(X)
        found.append(mixture.n_components_)
        labels = mixture.predict(X)
        assert (labels[outlying] == -1).mean() > 0.6
        assert (labels[~outlying] == -1).mean() < 0.05
        assert 0.04 < mixture.parameters_["outlier_share"] < 0.16
    assert found.count(3) >= 4


def test_outliers_among_counts_are_counts():
    """The predictive probabilities sum to one, and draws follow them."""
    rng = np.random.default_rng(0)
    X = rng.poisson(3.0, (200, 1)).astype(float)
    X[:20, 0] = rng.integers(0, 400, 20)
    mixture = TemperedVBMixture("poisson", 1, outliers=True, random_state=0).fit(X)
    numbers = np.arange(500.0)
    chances = np.exp(mixture.score_samples(numbers[:, None]))
    assert_allclose(chances.sum(), 1, atol=1e-6)
    rows, _ = mixture.sample(20_000)
    assert_array_equal(rows, np.floor(rows))
    far = chances[numbers > 20].sum()
    assert abs((rows > 20).mean() - far) < 5 * np.sqrt(far / len(rows))


FAR_ROWS = [(3, 1e3), (30, 5e1), (30, 1e3)]  # their number, and their distance


@pytest.mark.parametrize(
    ("name", "n_far", "reach"),
    [(name, *far) for name in MIXTURES for far in FAR_ROWS] + [("tails only", 3, 1e3)],
)
def test_far_rows_take_no_component_of_a_given_number(name, n_far, reach):
    """The bound is at least that of a start at the groups: far rows attract k-means."""
    make = MIXTURES.get(name, lambda **own: TemperedVBMixture("student", 3, **own))
    options = {"random_state": 0, "n_init": 1}
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, 150)
    X = CENTERS[groups] + rng.normal(size=(150, 2))
    X = np.vstack([X, rng.uniform(-reach, reach, (n_far, 2))])
    X = X * [1e3, 1e-3] + 10.0
    mixture = make(**options).fit(X)
    begun = make(warm_start=True, **options).fit(X[:150])
    assert mixture.elbo_ > begun.fit(X).elbo_ - 1.0
    assert adjusted_rand_score(groups, mixture.predict(X[:150])) > 0.98


@pytest.mark.parametrize("name", ["full", "normal"])
def test_a_tenth_of_very_far_rows_hides_no_group(name):
    """Begun with ten components, k-means gives all but one of them to far rows."""
    rng = np.random.default_rng(0)
    X = CENTERS[rng.integers(0, 3, 300)] + rng.normal(size=(300, 2))
    X = np.vstack([X, rng.uniform(-1e3, 1e3, (30, 2))])
    mixture = MIXTURES[name](random_state=0).set_params(n_components="auto").fit(X)
    assert mixture.n_components_ == 3
    outliers = mixture.outlier_proba(X) > 0.5
    assert_array_equal(outliers, np.arange(330) >= 300)


def test_without_outliers_their_share_is_small():
    X, _ = rows_with_outliers(0, share=0.0, degrees=100)
    mixture = TemperedVBGaussianMixture(3, outliers=True, random_state=0).fit(X)
    plain = TemperedVBGaussianMixture(3, random_state=0).fit(X)
    assert mixture.parameters_["outlier_share"] < 0.01
    assert_allclose(mixture.score(X), plain.score(X), atol=0.02)


def test_a_stream_is_cut_anywhere_and_its_bound_is_one():
    X, _ = rows_with_outliers(2)
    X = np.random.default_rng(0).permutation(X)
    options = {"block_size": 100, "window": 100, "random_state": 0, "n_init": 1}
    whole, parts = MIXTURES["full"](**options), MIXTURES["full"](**options)
    whole.partial_fit(X)
    for start in range(0, len(X), 33):
        parts.partial_fit(X[start : start + 33])
    assert parts.elbo_ == whole.elbo_
    answer = whole._answer()
    best = answer.mixture.bound(answer.state, answer.mixture.e_step(answer.state, X)[1])
    assert whole.elbo_ <= best + 1e-9 * abs(best)
    whole.absorb(whole.sufficient_statistics(X), memory=0)
    assert_allclose(whole.statistics_[:, 0].sum(), len(X))
    wrong = whole.statistics_.copy()
    wrong[:, 1] = 2 * wrong[:, 0]
    with pytest.raises(ValueError, match="no outliers must be between"):
        whole.absorb(wrong)


def test_what_is_refused():
    X, _ = rows_with_outliers(0)
    with pytest.raises(ValueError, match="real numbers or counts, but the family"):
        TemperedVBMixture("categorical", outliers=True).fit(np.floor(np.abs(X)))
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        TemperedVBGaussianMixture(outliers=True).fit(X)
    plain = TemperedVBGaussianMixture()
    assert not hasattr(plain, "outlier_proba")
    assert not hasattr(TemperedVBGaussianMixture(outliers=True), "conditional")
    assert not hasattr(TemperedVBMultinomialMixture(), "outlier_proba")


@pytest.mark.parametrize("family", ["poisson", ["normal", "poisson"]])
def test_a_far_row_of_counts_is_an_outlier_or_is_named(family):
    rng = np.random.default_rng(0)
    groups = rng.integers(3, size=200)
    X = rng.poisson(np.array([[2, 20], [15, 3], [40, 40]])[groups]).astype(float)
    X = np.vstack([X, [3000, 3000]])
    with pytest.warns(UserWarning, match="seems to be outliers"):
        TemperedVBMixture(family, 3, n_init=1, random_state=0).fit(X)
    mixture = TemperedVBMixture(family, 3, n_init=1, outliers=True, random_state=0)
    labels = mixture.fit(X).predict(X)
    assert adjusted_rand_score(groups, labels[:-1]) > 0.98
    assert labels[-1] == -1
