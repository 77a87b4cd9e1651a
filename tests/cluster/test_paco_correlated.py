"""Streams whose rows are correlated within clusters: "auto" does not forget for it."""

import warnings

import numpy as np
import pytest

from skpacbayes import PACOClusterer

PLACES = 9.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])


def correlated(correlation, length, n_rows, seed, unit=1.0):
    """Four groups of unit variance, each an autoregression, in runs of `length` rows.

    `length=0`: in random order.
    """
    rng = np.random.default_rng([seed, length, int(100 * correlation)])
    y = rng.integers(4, size=n_rows)
    if length:
        turns = rng.permuted(np.tile(np.arange(4), (n_rows, 1)), axis=1).ravel()
        y = np.repeat(turns, length)[:n_rows]
    noise, rows = rng.normal(size=(4, 2)), np.empty((n_rows, 2))
    for i, j in enumerate(y):
        new = np.sqrt(1 - correlation**2) * rng.normal(size=2)
        noise[j] = correlation * noise[j] + new
        rows[i] = PLACES[j] + noise[j]
    return unit * rows, y


def follow(X, **parameters):
    """Return the model, its numbers of clusters after 50 rows each, and messages."""
    model = PACOClusterer(
        **{"forgetting": "auto", "random_state": 0, "n_iter": 20} | parameters
    )
    numbers, messages = [], []
    for i in range(0, len(X), 50):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            numbers.append(model.partial_fit(X[i : i + 50]).n_clusters_)
        messages += [str(warning.message) for warning in caught]
    named = [each for each in messages if "rows of a cluster have a cor" in each]
    return model, np.array(numbers), named


@pytest.mark.slow
@pytest.mark.parametrize(
    ("length", "unit", "loss"),
    [
        (0, 1.0, "squared_euclidean"),
        (20, 1e-150, "squared_euclidean"),
        (100, 1.0, "squared_euclidean"),
        (20, 1.0, "manhattan"),
    ],
)
def test_all_groups_are_kept(length, unit, loss):
    """Of two streams, from 500 rows on, at most one call in five has another number."""
    wrong = []
    for seed in range(2):
        X, _ = correlated(0.5, length, 800, seed, unit)
        model, numbers, _ = follow(X, loss=loss)
        wrong.append(numbers[10:] != 4)
        assert model.forgetting_rate_ == 0
        assert model._stream.summary.watch.correlation > 0
    assert np.mean(wrong) <= 0.2


@pytest.mark.slow
def test_strong_correlation_is_named():
    for length in (0, 100):
        _, _, named = follow(correlated(0.9, length, 500, 0)[0], refresh=25)
        assert named


@pytest.mark.slow
def test_random_order_is_not_correlated():
    """Nor the rows of groups that move by half a deviation every 100 rows."""
    for seed in range(4):
        X, _ = correlated(0.0, 20 * (seed % 2), 400, seed)
        for rows in (X, X + 0.5 * (np.arange(400)[:, None] // 100)):
            model, _, named = follow(rows, refresh=25)
            assert not named
            assert model._stream.summary.watch.correlation == 0


@pytest.mark.slow
def test_correlation_of_steps():
    """The estimate is that of an autoregression, also where its centre moves slowly."""
    for correlation in (0.5, 0.8):
        X, _ = correlated(correlation, 5000, 600, 3)
        moved = X + np.linspace(0, 1, 600)[:, None]
        for rows in (X, moved):
            twice = np.vstack([rows, rows])
            model, _, _ = follow(twice, refresh=600, max_clusters=1)
            found = model._stream.summary.watch.correlation
            assert found == pytest.approx(correlation, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("n_terms", [2, 5])
def test_correlation_of_a_moving_average(n_terms):
    """Means of consecutive numbers: .5 and .8; by the products alone .99 and .95."""
    steps = np.random.default_rng(n_terms).normal(size=(2, 1200 + n_terms - 1))
    rows = np.stack([np.convolve(one, np.ones(n_terms), "valid") for one in steps], 1)
    model, _, named = follow(rows, refresh=200, max_clusters=1)
    found = model._stream.summary.watch.correlation
    assert found == pytest.approx(1 - 1 / n_terms, abs=0.15)
    assert bool(named) == (n_terms == 5)


@pytest.mark.slow
def test_correlated_features_are_no_correlated_rows():
    """Ten copies of a feature in random order tell no more of the order than one."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        groups = 40 * rng.normal(size=(3, 10))[rng.integers(3, size=600)]
        X = groups + np.repeat(rng.normal(size=(600, 1)), 10, axis=1)
        for n_rows in (300, 600):
            model, _, named = follow(X[:n_rows], refresh=25)
            assert not named
            assert model._stream.summary.watch.correlation == 0


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1.0, 2.0**300])
def test_the_correlation_does_not_depend_on_the_cut_and_the_unit(unit):
    X, _ = correlated(0.8, 0, 300, 1)
    models = [
        PACOClusterer(forgetting="auto", refresh=50, n_iter=5, random_state=0)
        for _ in range(2)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models[0].partial_fit(unit * X)
        for i in range(0, 300, 7):
            models[1].partial_fit(X[i : i + 7])
    orders = [model._stream.summary.watch.order for model in models]
    np.testing.assert_array_equal(*orders)
    assert orders[0].any()
