"""Streams whose groups come one after the other find what a batch of the rows finds."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from skpacbayes import make_paco_model
from skpacbayes.cluster import PACOClusterer


def streamed(X):
    """Read the rows in blocks of at most 100."""
    model = PACOClusterer(n_iter=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in np.array_split(X, len(X) // 100 + 1):
            model.partial_fit(block)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_last_of_many_new_groups_is_found_in_its_first_rows(seed):
    """Groups that were new before do not make rows far from all clusters expected.

    Without such rows, the next chain would run after another 44 rows.
    """
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(8), [60] * 7 + [12])
    X = 3.0 * rng.normal(size=(8, 20))[y] + rng.normal(size=(len(y), 20))
    model = streamed(X)
    assert model.n_clusters_ == 8
    assert (model.predict(X[-12:]) == model.predict(X[-1:])).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_spreads_of_first_groups_are_not_taken_for_those_of_later_ones(seed):
    """Groups five times as wide, while the stream grows by half."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(5), [210, 210, 70, 70, 70])
    centers = np.array([[0, 0], [8, 0], [40, 0], [40, 40], [0, 40]])
    spreads = np.where(y < 2, 1.0, 5.0)[:, None]
    model = streamed(centers[y] + spreads * rng.normal(size=(len(y), 2)))
    assert model.n_clusters_ == 5


@pytest.mark.slow
def test_a_stream_of_few_rows_in_many_columns_keeps_its_groups():
    """Their Student likelihood has no bound; it must not grow from search to search.

    The first rows of a group were taken for its centre, and all others for background.
    """
    X, _ = make_paco_model(4, 400, random_state=1)
    rng = np.random.default_rng(1)
    axes, _ = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))
    X = rng.permutation((X @ axes * np.geomspace(1, 10, X.shape[1]))[:120])
    assert streamed(X).n_clusters_ == 7


@pytest.mark.filterwarnings("ignore")
def test_heavy_tails_do_not_hide_the_first_rows_of_a_group():
    """Rows of a new group are far from clusters whose Student tails reach them."""
    rng = np.random.default_rng(0)
    y = np.repeat([[0, 1]], 400, axis=0).ravel()
    X = np.array([[0.0, 0.0], [30.0, 0.0]])[y] + rng.standard_t(5, (800, 2))
    model = streamed(X)
    before = model._stream.refreshed_at
    for row in np.array([0.0, 6.0]) + 0.5 * rng.normal(size=(15, 2)):
        model.partial_fit(row[None])
    assert model._stream.refreshed_at > max(before, 800)


def test_overlapping_groups_in_noise_are_found_one_after_the_other():
    """The first groups have another kind of noise than all groups together."""
    rng, centers = np.random.default_rng(2), []
    while len(centers) < 12:
        center = rng.uniform(0, 15, 2)
        if all(np.linalg.norm(center - other) > 3.0 for other in centers):
            centers.append(center)
    y = np.sort(rng.integers(12, size=720))
    X = np.array(centers)[y] + rng.normal(size=(720, 2))
    at = np.sort(rng.choice(720, 72))
    X = np.insert(X, at, rng.uniform(-3, 18, (72, 2)), axis=0)
    y = np.insert(y, at, -1)
    batch = PACOClusterer(n_iter=50, random_state=0).fit(X)
    found = [
        adjusted_rand_score(y[y >= 0], model.predict(X[y >= 0]))
        for model in (batch, streamed(X))
    ]
    assert found[1] > found[0] - 0.03


def test_three_rows_of_a_late_group_are_enough():
    """Far from all groups, where no row is expected, they make the chain run early."""
    rng = np.random.default_rng(1)
    centers = 9.0 * np.eye(4)
    X = centers[rng.integers(3, size=1000)] + rng.normal(size=(1000, 4))
    late = centers[3] + rng.normal(size=(5, 4))
    assert streamed(np.vstack([X, late])).n_clusters_ == 4
