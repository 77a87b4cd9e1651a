"""Streams that drift: rates of forgetting, and clusters that die."""

import warnings

import numpy as np
import pytest
from designs import every_two

from skpacbayes import PACOClusterer
from skpacbayes.cluster._paco_forgetting import RATES

PLACES = 12.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])


def paco(**parameters):
    return PACOClusterer(**{"random_state": 0, "n_iter": 20} | parameters)


def rows(n, seed=0, groups=(0, 1, 2, 3), shift=(0.0, 0.0)):
    rng = np.random.default_rng(seed)
    return PLACES[rng.choice(groups, size=n)] + shift + rng.normal(size=(n, 2))


@pytest.mark.parametrize("rate", [0.05, 0.9])
@pytest.mark.parametrize("refresh", [7, 10_000])
def test_earlier_rows_weigh_less_by_the_rate(rate, refresh):
    """Row i weighs (1 - rate)^(rows after it); less than a hundredth is dropped."""
    X = rows(130)
    summary = paco(forgetting=rate, refresh=refresh).partial_fit(X)._stream.summary
    found = dict(zip(map(tuple, summary.rows().points * 2.0**summary.exponent),
                     summary.rows().weights, strict=True))  # fmt: skip
    for i, row in enumerate(X):
        weight = (1 - rate) ** (len(X) - 1 - i)
        if tuple(row) in found:
            assert found[tuple(row)] == pytest.approx(weight)
        else:
            assert weight < 0.01
    assert summary.n_rows == 130
    assert summary.weight == pytest.approx(1 / rate, rel=0.02)


def test_what_was_merged_is_forgotten_too():
    """All moments of a bounded summary are those of the weighted rows."""
    X, rate = rows(600), 0.002
    model = paco(forgetting=rate, refresh=50, summary_size=40).partial_fit(X)
    held = model._stream.summary.rows()
    unit = 2.0**model._stream.summary.exponent
    weights = (1 - rate) ** np.arange(600)[::-1]
    assert held.weights.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(unit * held.mean, weights @ X / weights.sum())
    between = (held.points * held.weights[:, None]).T @ held.points
    squares = (X * weights[:, None]).T @ X
    np.testing.assert_allclose(unit**2 * (between + held.scatter), squares)
    inside = held.weights @ held.spreads
    assert np.trace(held.scatter) == pytest.approx(inside)


@pytest.mark.slow
@pytest.mark.parametrize("forgetting", [0.05, "auto"])
def test_a_cluster_without_rows_dies_and_gives_its_label_back(forgetting):
    model = paco(forgetting=forgetting, refresh=10).partial_fit(rows(250))
    assert model.n_clusters_ == 4
    (gone,) = model.predict(PLACES[:1])
    others = model.predict(PLACES[1:])
    model.partial_fit(rows(150, 1, groups=(1, 2, 3)))
    assert model.n_clusters_ == 3
    assert gone not in model.cluster_labels_
    np.testing.assert_array_equal(model.predict(PLACES[1:]), others)
    model.partial_fit(rows(20, 2, groups=(0,), shift=(-30.0, 40.0)))
    assert gone in model.cluster_labels_


@pytest.mark.parametrize(
    ("loss", "forgetting", "deviation"),
    every_two(
        ["squared_euclidean", "manhattan"], [0.01, 0.003, "auto"], [0.5, 1.0, 1.5, 2.0]
    ),
)
def test_unequal_weights_are_no_clusters_where_rows_are_forgotten(
    loss, forgetting, deviation
):
    """Another number of clusters only if few rows count, which a check names."""
    rng = np.random.default_rng([0, int(2 * deviation)])
    X, weights = rows(300, groups=(0, 1, 2)), rng.lognormal(0, deviation, 300)
    model = paco(forgetting=forgetting, refresh=50, loss=loss)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.partial_fit(X, sample_weight=weights)
    held = model._stream.summary.rows()
    few = held.weights.sum() ** 2 / held.run_squares < 15
    assert model.n_clusters_ == 3 or few
    if model.n_clusters_ == 1:
        assert any("count as only" in str(warning.message) for warning in caught)
    if forgetting == "auto" and deviation <= 1:
        assert model.forgetting_rate_ == 0  # copies are not forecast by a short memory


@pytest.mark.parametrize("forgetting", [0.05, "auto"])
@pytest.mark.parametrize(
    ("n", "weight", "last", "refresh"), [(400, 0.005, 0.005, 1), (200, 1, 500, 20)]
)
def test_a_row_always_remains(forgetting, n, weight, last, refresh):
    """Also where all rows weigh little, or the last is heavy and far from its group."""
    X, weights = rows(n, groups=(0,) * 15 + (1,)), np.full(n, float(weight))
    X[-1], weights[-1] = [-5.0, 0.0], last
    model = paco(forgetting=forgetting, refresh=refresh)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows count
        model.partial_fit(X, sample_weight=weights)
    assert model._stream.summary.n_points > 0
    assert model.n_clusters_ <= 2


def test_copies_are_forgotten_like_one_row():
    """Weights count as the mean of the squared weights over that of the weights."""
    rng = np.random.default_rng(0)
    X, copies, rate = rng.normal(size=(300, 2)), rng.integers(1, 5, size=300), 0.02
    model = paco(forgetting=rate, refresh=10_000)
    model.partial_fit(X, sample_weight=copies)
    held, ages = model._stream.summary.rows(), copies[::-1].cumsum()[::-1] - copies
    expected = (1 - rate) ** ages * copies
    found = held.run_squares / held.weights.sum()
    assert found == pytest.approx(expected @ copies / expected.sum(), rel=0.05)


def test_without_forgetting_no_cluster_dies():
    model = paco(refresh=50).partial_fit(rows(250))
    model.partial_fit(rows(150, 1, groups=(1, 2, 3)))
    gone, *others = model.predict(PLACES)
    assert gone not in others
    assert model.forgetting_rate_ == 0


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_all_groups_at_other_places_at_once(unit):
    """100 rows later only the new groups are known."""
    new = rows(100, 1, groups=(0, 1, 2), shift=(25.0, -31.0))
    model = paco(forgetting="auto", refresh=20).partial_fit(unit * rows(300))
    model.partial_fit(unit * new)
    assert model.n_clusters_ == 3
    places = PLACES[:3] + np.array([25.0, -31.0])
    gaps = np.linalg.norm(model.cluster_centers_ / unit - places[:, None], axis=2)
    assert gaps.min(axis=1).max() < 1.0  # 33 rows a group: a standard error of .25


def test_without_forgetting_groups_at_other_places_are_more_groups():
    new = rows(100, 1, groups=(0, 1, 2), shift=(25.0, -31.0))
    model = paco(refresh=100).partial_fit(np.vstack([rows(500), new]))
    assert model.n_clusters_ == 7


@pytest.mark.slow
def test_groups_that_move_are_followed():
    """A walk of one spread each 100 rows smears the groups unless it is forgotten."""
    steps = [rows(100, seed, shift=(seed, 0.5 * seed)) for seed in range(12)]
    model, plain = paco(forgetting="auto", refresh=25), paco(refresh=100)
    for step in steps:
        model.partial_fit(step)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that clusters move
            plain.partial_fit(step)
    assert model.forgetting_rate_ > 0
    assert model.n_clusters_ == 4
    places = PLACES + np.array([11.0, 5.5])

    def gap(model):
        gaps = np.linalg.norm(model.cluster_centers_ - places[:, None], axis=2)
        return gaps.min(axis=1).max()

    assert gap(model) < 0.6 * gap(plain)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_stream_that_does_not_change_is_not_forgotten(seed):
    model = paco(forgetting="auto", refresh=50).partial_fit(rows(1000, seed))
    assert model.forgetting_rate_ == RATES[0] == 0
    assert model._stream.summary.weight > 800
    assert model.n_clusters_ == 4


@pytest.mark.parametrize("forgetting", [0.05, "auto"])
def test_fit_forgets_nothing_and_a_stream_after_it_does(forgetting):
    X = rows(200)
    model = paco(forgetting=forgetting, refresh=25).fit(X)
    np.testing.assert_array_equal(model.labels_, paco().fit(X).labels_)
    model.partial_fit(rows(150, 1, groups=(1, 2, 3)))
    assert model.n_clusters_ == 3


def test_a_number_given_as_refresh_is_kept():
    """Rows far from all clusters bring the chain forward only if refresh is "auto"."""
    for refresh, found in ((110, 4), ("auto", 5)):
        model = paco(forgetting="auto", refresh=refresh).fit(rows(220))
        model.partial_fit(rows(30, 1, groups=(0,), shift=(40.0, 40.0)))
        assert model.n_clusters_ == found


def test_forgetting_needs_an_order_and_no_regret():
    with pytest.raises(ValueError, match=r"forgetting=0\.1 needs calibration='c"):
        paco(forgetting=0.1, calibration="regret").partial_fit(rows(20))
    statistics = paco().sufficient_statistics(rows(20))
    with pytest.raises(ValueError, match=r"absorb needs forgetting=0\.0"):
        paco(forgetting="auto").absorb(statistics)
