"""The numbers of clusters that the rows do not exclude, and one cluster or several."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import invwishart, ortho_group
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from skpacbayes import PACOClusterer, make_paco_model
from skpacbayes.cluster._paco_mixture import inverse_wishart_evidence
from skpacbayes.cluster._paco_rivals import standard_errors_behind, undecided


def fitted(X, **parameters):
    """The estimator, and whether it warned."""
    model = PACOClusterer(random_state=0, n_iter=20, **parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    said = [str(one.message) for one in caught if "n_clusters_=" in str(one.message)]
    return model, said


def skewed(n_rows, seed):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(n_rows, 3))


def one_student(dof, n_features, n_rows, seed):
    """One elliptical cluster with heavy tails."""
    rng = np.random.default_rng(seed)
    axes = ortho_group.rvs(n_features, random_state=seed)
    tails = np.sqrt(dof / rng.chisquare(dof, (n_rows, 1)))
    widths = np.geomspace(1, 3, n_features)
    return rng.normal(size=(n_rows, n_features)) * tails * widths @ axes


def two_covariances(n_features, n_rows, seed):
    """Two groups that overlap, each with long axes of its own, and heavy tails."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n_rows)
    axes = ortho_group.rvs(n_features, size=2, random_state=seed)
    axes *= np.sqrt(np.geomspace(1 / 3, 3, n_features))[:, None]
    rows = np.einsum("if,ifg->ig", rng.normal(size=(n_rows, n_features)), axes[y])
    rows *= np.sqrt(5 / rng.chisquare(5, (n_rows, 1)))
    rows[:, 0] += 4 * y
    return rows, y


TABLES = {
    "iris": load_iris().data,
    "iris, standardised": StandardScaler().fit_transform(load_iris().data),
    "wine": load_wine().data,
    "wine, standardised": StandardScaler().fit_transform(load_wine().data),
    "moons": make_moons(200, noise=0.05, random_state=0)[0],
    "skewed": skewed(200, 0),
    "heavy tails": one_student(3, 5, 200, 0),
    "one normal cluster": np.random.default_rng(0).normal(size=(200, 4)),
    **{
        f"Model {model}, {n_rows} rows": make_paco_model(model, n_rows, random_state=0)[
            0
        ]
        for model, n_rows in ((1, 40), (2, 100), (3, 40), (4, 100))
    },
}


@pytest.mark.parametrize("table", TABLES)
def test_nine_tenths_of_the_rows_have_a_number_that_was_named(table):
    """A silent answer is that of any nine tenths of the rows; else it names theirs.

    Of 3 parts one may have another number than those: two standard errors are no bound.
    """
    X = TABLES[table]
    model, said = fitted(X)
    named = model.n_clusters_candidates_
    assert named[0] == model.n_clusters_
    assert bool(said) == (len(named) > 1)
    assert all(str(k) in said[0] for k in named[:5] if said)
    others = 0
    for seed in range(3):
        part = np.random.default_rng(seed).permutation(len(X))[: len(X) * 9 // 10]
        others += fitted(X[part])[0].n_clusters_ not in named
    assert others <= (1 if said else 0)


@pytest.mark.parametrize(("n_features", "seed"), [(5, 0), (10, 1), (30, 2)])
def test_one_heavy_tailed_cluster_is_not_cut(n_features, seed):
    assert fitted(one_student(3, n_features, 400, seed))[0].n_clusters_ == 1


@pytest.mark.parametrize("seed", range(2))
def test_clusters_with_covariances_of_their_own_are_not_one_heavy_tail(seed):
    """The covariances tell what the tails do not; one cluster stays named."""
    X, y = two_covariances(20, 600, seed)
    model, said = fitted(X)
    assert model.n_clusters_ == 2
    assert said
    assert 1 in model.n_clusters_candidates_
    assert adjusted_rand_score(y, model.labels_) > 0.65


@pytest.mark.slow
@pytest.mark.parametrize("standardised", [False, True])
def test_breast_cancer_has_two_clusters(standardised):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X) if standardised else X
    model, _ = fitted(X)
    assert model.n_clusters_candidates_[0] == 2
    assert 1 in model.n_clusters_candidates_
    assert adjusted_rand_score(y, model.labels_) >= 0.78


def test_the_user_decides():
    """A penalty, or a largest number, decides: nothing is left to say."""
    X = TABLES["iris"]
    model, said = fitted(X)
    assert set(model.n_clusters_candidates_) >= {3, 4}
    model, said = fitted(X, cluster_penalty=3.0)
    assert not said
    assert list(model.n_clusters_candidates_) == [model.n_clusters_]
    model, _ = fitted(X, max_clusters=3)
    assert model.n_clusters_candidates_.max() <= 3


@pytest.mark.slow
def test_streams_have_candidates_too():
    X = np.random.default_rng(0).permutation(TABLES["iris, standardised"])
    model = PACOClusterer(random_state=0, n_iter=20, refresh=25).partial_fit(X[:1])
    assert list(model.n_clusters_candidates_) == [1]
    with pytest.warns(ConvergenceWarning, match=r"n_clusters_=\d+, but .* describe"):
        model.partial_fit(X[1:])
    assert model.n_clusters_candidates_[0] == model.n_clusters_
    assert len(model.n_clusters_candidates_) > 1


def test_the_warning_is_of_convergence():
    with pytest.warns(ConvergenceWarning, match=r"n_clusters_=\d+, but .* describe"):
        PACOClusterer(random_state=0).fit(TABLES["iris"])


def test_the_standard_error_is_that_of_resampled_rows():
    """The spread of the difference over bootstrap samples, to 10 % at 4,000 of them."""
    rng = np.random.default_rng(0)
    differences, weights = rng.exponential(size=50), rng.integers(1, 4, size=50)
    rows = np.repeat(differences, weights)
    sums = rng.choice(rows, (4000, len(rows))).sum(axis=1)
    behind = standard_errors_behind(1.0, differences, weights.astype(float))
    assert abs(1 / behind / sums.std() - 1) < 0.1


@pytest.mark.slow
def test_evidence_of_a_covariance_is_the_mean_over_its_prior():
    """Against draws from the inverse Wishart prior; error counted from the draws."""
    rng = np.random.default_rng(0)
    n_rows, covariance = 6, np.diag([1.7, 0.5])
    dof = 3 + np.geomspace(1e-1, 1e6, 80)
    chosen = 40
    draws = invwishart(dof[chosen], (dof[chosen] - 3) * np.eye(2)).rvs(200_000, rng)
    values = np.trace(np.linalg.solve(draws, covariance[None]), axis1=1, axis2=2)
    logs = -n_rows / 2 * (np.log(np.linalg.det(draws)) + values)
    logs += n_rows / 2 * np.trace(covariance)  # over that of the identity matrix
    mean = logsumexp(logs) - np.log(len(logs))
    error = np.exp(logs - mean).std() / np.sqrt(len(logs))
    exact = inverse_wishart_evidence(np.diag(covariance), 2, n_rows)[chosen]
    assert abs(np.exp(exact - mean) - 1) < 5 * error


@pytest.mark.slow
def test_groups_that_overlap_are_not_one_cluster_in_silence():
    """Two of four normal groups are 2.2 spreads apart: the density tells the number.

    Which row is whose it does not tell.
    """
    n_wrong = 0
    for seed in range(5):
        X, _ = make_paco_model(2, n_samples=2000, random_state=900 + seed)
        model, said = fitted(1e4 + 1e-3 * X)
        n_wrong += model.n_clusters_ != 4
        assert model.n_clusters_ == 4 or said
        overlapping = [one for one in said if "several groups that overlap" in one]
        assert not (overlapping and model.n_clusters_ == 4)
    assert n_wrong <= 1


@pytest.mark.parametrize("seed", range(3))
def test_groups_with_gaps_overlap_with_none(seed):
    rng = np.random.default_rng(seed)
    X = 7.0 * rng.integers(3, size=(900, 1)) + rng.normal(size=(900, 3))
    for rows in (X, X + rng.standard_t(5, size=X.shape), np.round(X)):
        model, said = fitted(rows)
        assert model.n_clusters_ == 3
        assert not any("groups that overlap" in one for one in said)


@pytest.mark.parametrize(("n_features", "unit"), [(2, 1e-3), (3, 1.0)])
def test_few_rows_of_clear_groups_bring_no_doubt(n_features, unit):
    """With the standard errors alone, 9 and 3 of 20 tables had another candidate."""
    corners = np.array([(0, 0), (0, 12), (12, 0), (12, 12)])
    corners = np.pad(corners, [(0, 0), (0, n_features - 2)]).repeat(30, axis=0)
    n_doubts = 0
    for seed in range(10):
        noise = np.random.default_rng(seed).normal(size=corners.shape)
        model, said = fitted((corners + noise) * unit)
        assert model.n_clusters_ == 4
        n_doubts += bool(said)
    assert n_doubts <= 1


def test_more_clusters_are_excluded_by_strong_evidence():
    assert undecided(gap=4.9, behind=1.9, n_more=1, n_features=2)
    assert not undecided(gap=5.1, behind=1.9, n_more=1, n_features=2)
    assert not undecided(gap=4.9, behind=2.1, n_more=1, n_features=2)
    assert undecided(gap=5.9, behind=1.9, n_more=1, n_features=4)
    assert undecided(gap=5.9, behind=1.9, n_more=2, n_features=2)
    assert undecided(gap=50, behind=1.9, n_more=-1, n_features=2)
    assert not undecided(gap=50, behind=1.9, n_more=-1, n_features=2, no_chance=True)
    assert undecided(gap=4.9, behind=1.9, n_more=-1, n_features=2, no_chance=True)
