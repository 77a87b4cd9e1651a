"""The covariance type, where the bound does not decide: by held-out rows."""

import warnings

import numpy as np
import pytest

from skpacbayes.mixture import TemperedVBGaussianMixture, _held_out, _learner
from skpacbayes.mixture._held_out import prior_size, undecided
from skpacbayes.mixture._selection import Choice


class Candidate:
    """A mixture, of which only the family is asked."""

    def __init__(self, covariance_type):
        self.family = type("Family", (), {"covariance_type": covariance_type})()


def fit(X, **parameters):
    mixture = TemperedVBGaussianMixture(
        "auto", covariance_type="auto", random_state=0, **parameters
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mixture.fit(X)


def two_groups(n_samples, n_features, seed):
    """Independent columns, in each of which the groups are one deviation apart."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n_samples, n_features)) + (np.arange(n_samples) % 2)[:, None]
    )


def factors(n_samples, n_features, seed):
    """One group, of columns that depend on three factors."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(3, n_features))
    noise = 0.5 * rng.normal(size=(n_samples, n_features))
    return rng.normal(size=(n_samples, 3)) @ loadings + noise


def test_sizes_of_priors():
    sizes = [prior_size(Candidate(kind).family, 4) for kind in ("full", "tied")]
    assert sizes == [10, 10]  # of a symmetric matrix
    assert [prior_size(Candidate(k).family, 4) for k in ("diag", "spherical")] == [4, 1]


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ([0.0, -10.0, -90.0, -90.0], [0, 2, 3]),  # 45 and 54 numbers: 104 and 124 nats
        ([0.0, -10.0, -130.0, -110.0], [0, 3]),
        ([0.0, 10.0, -90.0, -200.0], [1, 2]),
        ([-900.0, -900.0, 0.0, -19.0], [2, 3]),  # 9 numbers: 20.7 nats
        ([-1.0, -1.0, -1.0, 0.0], [3]),  # there is none with fewer
    ],
)
def test_types_with_fewer_numbers_may_be_the_best(criteria, expected):
    """Of 10 features and 10 rows: 2.30 nats for each number of the prior."""
    kinds = ["full", "tied", "diag", "spherical"]
    X = np.zeros((10, 10))
    found = undecided([Candidate(kind) for kind in kinds], criteria, X, None)
    assert found == expected


@pytest.mark.parametrize(
    ("n_samples", "place"), [(21, 0.0), (21, 1e3), (45, 1e3), (90, 0.0)]
)
def test_few_rows_of_independent_columns(n_samples, place):
    """The bound of "full" is the largest, up to 30 rows, by what its prior has seen.

    Of eight draws, six of 21 rows have two components, and all of 45 and 90 rows. Here
    is one.
    """
    X = place + two_groups(n_samples, 30, seed=1) * (1 + place)
    found = fit(X)
    assert found.n_components_ == 2
    assert found.covariance_type_ in ("diag", "spherical")
    # The groups are 30 ** 0.5 deviations apart along the line through their means.
    labels = found.predict(X)
    wrong = np.mean(labels != np.arange(n_samples) % 2)
    assert min(wrong, 1 - wrong) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [21, 90])
def test_few_rows_of_correlated_columns(n_samples):
    """Independent columns would cost 10 nats a row."""
    assert fit(factors(n_samples, 30, seed=1)).covariance_type_ in ("full", "tied")


@pytest.mark.slow
def test_two_folds_are_enough_where_they_leave_no_doubt(monkeypatch):
    """All five folds choose the same type."""
    X, calls, scores_of = factors(90, 30, seed=1), [], _held_out.scores_of

    def recorded(*arguments):
        calls.append(arguments)
        return scores_of(*arguments)

    monkeypatch.setattr(_held_out, "scores_of", recorded)
    found = fit(X)
    assert len(calls) == 2
    monkeypatch.setattr(_held_out, "DECIDED", np.inf)
    other = fit(X)
    assert len(calls) == 2 + 5
    assert found.covariance_type_ == other.covariance_type_
    assert found.elbo_ == other.elbo_


def test_many_rows_need_no_folds(monkeypatch):
    """With 3,000 rows of five correlated columns the bound decides."""
    monkeypatch.setattr(_learner, "best_on_held_out_rows", None)
    assert fit(factors(3000, 5, seed=0), max_components=3).covariance_type_ == "full"


@pytest.mark.parametrize("shape", [(60, 4), (200, 8), (100, 2)])
def test_types_without_hope_are_left_early(shape, monkeypatch):
    """Nothing else changes, and the path of the type that is chosen is complete."""
    X = factors(*shape, seed=2)
    X[::3] += 4 * X.std(axis=0)
    found, ends = fit(X, max_components=6), []

    def recorded(self, fit):
        ends.append(fit)
        return np.inf

    monkeypatch.setattr(Choice, "most_by_mergers", recorded)
    whole = fit(X, max_components=6)
    assert ends
    assert found.covariance_type_ == whole.covariance_type_
    assert found.elbo_path_ == whole.elbo_path_
    assert set(found.elbo_path_) == set(range(1, 1 + max(found.elbo_path_)))


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_numbers_of_rows(weighted):
    """Rows without weight, even absurd ones, do not take part in the choice."""
    X = two_groups(60, 20, seed=2)
    if not weighted:
        assert fit(X).covariance_type_ == "spherical"
        return
    far = np.vstack([X, 1e6 * np.ones((20, 20))])
    mixture = TemperedVBGaussianMixture("auto", covariance_type="auto", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture.fit(far, sample_weight=np.repeat([1.0, 0.0], [60, 20]))
    assert (mixture.covariance_type_, mixture.n_components_) == ("spherical", 2)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_choose_the_same(n_jobs):
    X = two_groups(45, 20, seed=3)
    found, one = fit(X, n_jobs=n_jobs), fit(X)
    assert found.covariance_type_ == one.covariance_type_
    assert found.elbo_ == one.elbo_
