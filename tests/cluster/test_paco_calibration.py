"""The automatic inverse temperature of PACO: far rows, and groups of most rows."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import RandomState
from numpy.testing import assert_allclose

from skpacbayes.cluster import PACOClusterer, _paco_mixture
from skpacbayes.cluster._paco_calibration import Splitting, calibrate_stream
from skpacbayes.cluster._paco_cells import CellTracker, cell_noise
from skpacbayes.cluster._paco_rows import Rows
from skpacbayes.datasets import make_paco_model


@pytest.mark.parametrize("draw", [3, 21, 78])
def test_far_rows_are_not_worth_a_centre_each(draw):
    """Three lognormal groups on which half a log of n a parameter found 8 to 14."""
    X, _ = make_paco_model(5, 200, RandomState([5, 200, draw]))
    model = PACOClusterer(loss="manhattan", random_state=draw)
    assert model.fit(X).n_clusters_ == 3


def test_what_a_centre_costs_does_not_depend_on_the_unit():
    """The ball of the prior and the noise scale are in the same unit."""
    for manhattan in (False, True):
        costs = [
            Splitting(3, unit * 20.0, manhattan).evidence_cost(4, 200.0, unit * 0.5)
            for unit in (1.0, 1e-3, 1e3)
        ]
        assert_allclose(costs, costs[0])


@pytest.mark.parametrize("loss", ["squared_euclidean", "manhattan"])
@pytest.mark.parametrize(
    ("sizes", "spreads"),
    [((300, 100, 30), (1, 1, 1)), ((100, 100, 100), (1, 3, 5)), ((300, 60), (4, 1))],
)
def test_groups_of_unequal_sizes_and_spreads_are_found(loss, sizes, spreads):
    """Far groups, which one weight and one noise scale for all rows cut in pieces."""
    rng = np.random.default_rng(0)
    places = 25 * np.eye(3)
    group = np.repeat(np.arange(len(sizes)), sizes)
    noise = rng.laplace if loss == "manhattan" else rng.normal
    X = places[group] + np.take(spreads, group)[:, None] * noise(size=(len(group), 3))
    X = X[rng.permutation(len(X))]
    for seed, rows in enumerate((X, 1e-4 * X[::-1])):
        model = PACOClusterer(loss=loss, random_state=seed, n_iter=20)
        assert model.fit(rows).n_clusters_ == len(sizes)
    stream = PACOClusterer(loss=loss, random_state=0, n_iter=20, refresh=60)
    assert stream.partial_fit(X).n_clusters_ == len(sizes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_small_groups_beside_large_ones_are_found_beyond_doubt(seed):
    """Five groups of 15 wide rows each, beside three of 300, at 9 of their spreads.

    Charged for the number of all rows, one of them gained too little to be certain.
    """
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi / 5 * np.arange(5)
    small = [60, 0] + 20 * np.column_stack([np.cos(angles), np.sin(angles)])
    group = np.repeat(np.arange(8), [300] * 3 + [15] * 5)
    spreads = np.repeat([1.0, 2.5], [900, 75])[:, None]
    X = np.vstack([[[0, 0], [9, 0], [4, 9]], small])[group]
    X = X + spreads * rng.normal(size=X.shape)
    for rows in (X, X @ [[1.0, 3.0], [0.0, 0.2]]):
        model = PACOClusterer(random_state=0, n_iter=20).fit(rows)  # no warning
        assert list(model.n_clusters_candidates_) == [8]


@pytest.mark.slow
def test_small_clusters_are_not_made_of_tails(monkeypatch):
    """One centre, a tenth of the rows four times as wide, in 16 draws.

    The reduced penalty of small clusters adds no false clusters. Where tails had it
    too, false clusters were found in 9 of 40 other draws more than without it: none in
    16 draws would have a probability of 2 %.
    """
    draws = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        wide = rng.random((300, 1)) < 0.1
        draws.append(rng.normal(size=(300, 3)) * np.where(wide, 4.0, 1.0))
    numbers = [n_found(X) for X in draws]
    monkeypatch.setattr(_paco_mixture, "rebate_of_small", lambda *_: 0.0)
    without = [n_found(X) for X in draws]
    assert sum(k > 1 for k in numbers) <= sum(k > 1 for k in without)


def n_found(X):
    """Number of clusters that a short fit finds, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PACOClusterer(random_state=0, n_iter=1).fit(X).n_clusters_


@pytest.mark.parametrize("dof", [math.inf, 5.0])
def test_clusters_are_apart_where_less_than_one_row_is_expected(dof):
    """In two dimensions the tails of normal and Student components are closed forms."""
    n_rows, scales = np.array([300.0, 30.0]), np.array([1.0, 4.0])
    squares = 2 * np.log(n_rows)
    if math.isfinite(dof):
        squares = dof * np.expm1(squares / dof)
    for order in ([0, 1], [1, 0]):  # the wide cluster is small, or large
        bound = math.sqrt((scales[order] * squares).max())
        for factor in (0.0, 1 - 1e-6, 1 + 1e-6):
            centers = np.array([[0.0, 0.0], [0.6, 0.8]]) * factor * bound
            mixture = _paco_mixture.Mixture(
                "round",
                True,
                dof,
                np.eye(2),
                centers,
                scales[order],
                n_rows / 330,
                n_rows,
            )
            assert list(mixture.apart) == [True, factor > 1]


def test_the_order_of_the_rows_does_not_change_a_fit():
    """Also where each cell has a noise scale of its own."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 2)), 12 + 4 * rng.normal(size=(80, 2))])
    order = rng.permutation(len(X))
    models = [PACOClusterer(random_state=0).fit(rows) for rows in (X, X[order])]
    assert models[0].n_clusters_ == 2
    assert_allclose(models[0].cluster_centers_, models[1].cluster_centers_)
    assert_allclose(models[0].inverse_temperature_, models[1].inverse_temperature_)


def cells_in_stream(rows):
    """Weights of the cells of a stream, in rows, beside how many rows they have."""
    tracker = CellTracker(False)
    tracker.set_frame(np.zeros(2), 0)
    splitting = Splitting(2, 45.0, False)
    in_order = False  # as chance would not have it
    past = (rows.points[-1], in_order)
    rng = np.random.default_rng(0)
    calibration = calibrate_stream(rows, past, tracker, 20, splitting, rng)
    noise = cell_noise(rows, tracker.known[tracker.n_cells], False)
    weights = calibration.row_weights * noise.scales[noise.labels] / noise.common
    return np.bincount(noise.labels, weights), noise


def test_a_cell_of_many_rows_weighs_at_most_its_full_share():
    """Five cells, one of them of 300 of 360 rows: one and a half times the mean."""
    rng = np.random.default_rng(0)
    places = np.array([[0.0, 0], [12, 0], [0, 12], [-12, 0], [0, -12]])
    group = np.repeat(np.arange(5), [300, 15, 15, 15, 15])
    rows = Rows.single(places[group] + rng.normal(size=(360, 2)), np.ones(360))
    weights, noise = cells_in_stream(rows)
    heaviest = noise.sizes.argmax()
    assert len(weights) == 5
    assert_allclose(weights[heaviest], 1.5 * 360 / 5)
    assert_allclose(np.delete(weights, heaviest), np.delete(noise.sizes, heaviest))


@pytest.mark.parametrize("in_turn", [True, False])
def test_a_cell_whose_rows_come_in_turn_counts_in_full(in_turn):
    """Two near groups in one cell, one after the other or mixed, and two far groups.

    Mixed, the ratio of the steps to the spread is one, with a standard deviation of
    0.05: two of them are passed by chance in 2 % of draws; the seed is fixed.
    """
    rng = np.random.default_rng(0)
    place = np.repeat([-1.0, 1.0], 100)
    near = np.column_stack([place, np.zeros(200)]) + rng.normal(size=(200, 2))
    if not in_turn:
        rng.shuffle(near)
    far = [rng.normal((0, y), 1.0, (20, 2)) for y in (-15, 15)]
    X = np.concatenate([near, *far])
    steps = np.zeros(len(X))
    steps[1:] = (np.diff(X, axis=0) ** 2).sum(axis=1)
    counted = np.ones(len(X))
    counted[[0, 200, 220]] = 0.0  # no row before these in their cell
    rows = replace(
        Rows.single(X, np.ones(len(X))), steps=steps * counted, step_weights=counted
    )
    weights, noise = cells_in_stream(rows)
    assert_allclose(np.sort(noise.sizes), [20, 20, 200])
    assert noise.in_turn[noise.sizes.argmax()] == in_turn
    assert_allclose(weights.max(), 200 if in_turn else 1.5 * 240 / 3)
