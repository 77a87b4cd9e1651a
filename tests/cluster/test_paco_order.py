"""Streams whose groups come one after the other find what a batch of the rows finds."""

import warnings

import numpy as np
import pytest

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


@pytest.mark.parametrize("seed", range(2))
def test_the_spreads_of_first_groups_are_not_taken_for_those_of_later_ones(seed):
    """Groups five times as wide, while the stream grows by half."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(5), [210, 210, 70, 70, 70])
    centers = np.array([[0, 0], [8, 0], [40, 0], [40, 40], [0, 40]])
    spreads = np.where(y < 2, 1.0, 5.0)[:, None]
    model = streamed(centers[y] + spreads * rng.normal(size=(len(y), 2)))
    assert model.n_clusters_ == 5


def test_a_stream_of_few_rows_in_many_columns_keeps_its_groups():
    """Their Student likelihood has no bound; it must not grow from search to search.

    The first rows of a group were taken for its centre, and all others for background.
    """
    X, _ = make_paco_model(4, 400, random_state=1)
    rng = np.random.default_rng(1)
    axes, _ = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))
    X = rng.permutation((X @ axes * np.geomspace(1, 10, X.shape[1]))[:120])
    assert streamed(X).n_clusters_ == 7
