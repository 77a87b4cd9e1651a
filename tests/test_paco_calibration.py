"""The automatic inverse temperature of PACO: far rows, and groups of most rows."""

import numpy as np
import pytest
from numpy.random import RandomState
from numpy.testing import assert_allclose

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._calibration import Splitting, calibrate_stream
from skpacbayes.cluster._local_scales import CellTracker, row_scales
from skpacbayes.cluster._summary import Rows
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


def test_a_cell_of_most_rows_weighs_at_most_its_full_share():
    """Five cells, one of them of 300 of 360 rows: two and a half times the mean."""
    rng = np.random.default_rng(0)
    places = np.array([[0.0, 0], [12, 0], [0, 12], [-12, 0], [0, -12]])
    group = np.repeat(np.arange(5), [300, 15, 15, 15, 15])
    rows = Rows.single(places[group] + rng.normal(size=(360, 2)), np.ones(360))
    tracker = CellTracker(False)
    tracker.set_frame(np.zeros(2), 0)
    splitting = Splitting(2, 45.0, False)
    in_order = False  # as chance would not have it
    past = (rows.points[-1], in_order)
    calibration = calibrate_stream(rows, past, tracker, 20, splitting, rng)
    assert tracker.n_cells == 5
    labels, scales, common = row_scales(rows, tracker.known[5], False)
    noise = calibration.row_weights * scales[labels] / common
    sizes = np.bincount(labels)
    weights = np.bincount(labels, noise)
    heaviest = sizes.argmax()
    assert_allclose(weights[heaviest], 2.5 * 360 / 5)
    assert_allclose(np.delete(weights, heaviest), np.delete(sizes, heaviest))
