"""Values that many rows share: their rows get components, whatever the seed."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpacbayes.mixture import TemperedVBGaussianMixture, TemperedVBMixture
from skpacbayes.mixture._family import Family
from skpacbayes.mixture._spikes import FEWEST, rows_at_spikes, spike_groups, spikes

COLUMNS = "normal", [0, 1, 2]
MIXED = [("a", *COLUMNS), ("b", "poisson", [3])]


class Numbers(Family):
    continuous = True


def censored(seed, n_rows=600, n_columns=4, shares=(0.15, 0.08)):
    """Return correlated rows, in two columns of which the least values are zero.

    Also returns the pattern of each row: the sum of 1 and 2 for a zero in the first and
    in the second column.
    """
    rng = np.random.default_rng(seed)
    turn = np.eye(n_columns) + 0.4 * rng.normal(size=(n_columns, n_columns))
    X = rng.normal(size=(n_rows, n_columns)) @ turn
    for j, share in enumerate(shares):
        X[:, j] = np.maximum(X[:, j] - np.quantile(X[:, j], share), 0.0)
    return X, (X[:, :2] == 0) @ np.array([1, 2])


def quietly(mixture, X, learn="fit"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(mixture, learn)(X)
        return mixture.predict(X)


def has_own_components(labels, pattern):
    """Return whether each pattern of zeros has a component of exactly its rows."""
    return all(
        (labels == np.bincount(labels[own]).argmax())[own].all()
        and set(pattern[labels == labels[own][0]]) == {pattern[own][0]}
        for own in (pattern == each for each in (1, 2, 3))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_seeds"),
    [("full", 3), ("diag", 3), ("auto", 1), ("student", 1), ("lognormal", 1)],
)
def test_each_pattern_of_zeros_has_a_component_for_every_seed(kind, n_seeds):
    X, pattern = censored(1)
    assert min(np.bincount(pattern)) > 2 * FEWEST
    bounds = []
    for seed in range(n_seeds):
        options = {"n_components": "auto", "random_state": seed}
        if kind in ("full", "diag", "auto"):
            mixture = TemperedVBGaussianMixture(covariance_type=kind, **options)
        else:
            mixture = TemperedVBMixture(kind, **options)
        labels = quietly(mixture, X + (kind == "lognormal") * np.array([1, 1, 9, 9]))
        assert has_own_components(labels, pattern)
        bounds.append(mixture.elbo_)
    assert np.ptp(bounds) < 3.0  # nats: not decisive


@pytest.mark.slow
def test_spikes_are_found_beside_counts_in_other_units_and_shifted():
    X, pattern = censored(1)
    X[:, 3] = np.random.default_rng(0).poisson(3.0, len(X))
    found = []
    for numbers in (X[:, :3], 1024 * X[:, :3] + 4096):
        rows = np.column_stack([numbers, X[:, 3]])
        mixture = TemperedVBMixture(MIXED, "auto", random_state=0)
        found.append(quietly(mixture, rows))
        assert has_own_components(found[-1], pattern)
    assert_array_equal(*found)


def test_a_given_number_of_components_finds_the_zeros_too():
    X, pattern = censored(2)
    for seed in range(3):
        mixture = TemperedVBGaussianMixture(4, random_state=seed)
        assert has_own_components(quietly(mixture, X), pattern)


@pytest.mark.slow
def test_zeros_that_come_late_in_a_stream_get_a_component():
    """Zeros of the second column; those of the first one are there from the start."""
    late, pattern = censored(1, n_rows=3000)
    early = late[pattern < 2][:1000]
    mixture = TemperedVBGaussianMixture("auto", random_state=0, block_size=500)
    for rows in np.split(np.concatenate([early, late]), 8):
        quietly(mixture, rows, "partial_fit")
    assert has_own_components(mixture.predict(late), pattern)


def test_rounded_values_counts_and_other_numbers_have_no_spikes():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.normal(size=1000),
            rng.normal(size=1000).round(1),
            rng.poisson(0.5, 1000),
            rng.poisson(30, 1000),
            rng.integers(2, size=1000),
            np.zeros(1000),
            np.where(rng.random(1000) < 0.3, np.nan, rng.normal(size=1000)),
        ]
    )
    ones = np.ones(len(X))
    assert rows_at_spikes(Numbers(), X, ones).shape == (1000, 0)
    X[:50, 0] = X[50:90, 0] = 2.5
    X[90:120, 0] = -1.0
    [(value, count), (second, _)] = spikes(X[:, 0], ones)
    assert (value, count, second) == (2.5, 90, -1.0)
    times = rng.integers(1, 4, size=1000)
    repeated = np.repeat(X[:, 0], times)
    assert spikes(X[:, 0], 1.0 * times) == spikes(repeated, np.ones(len(repeated)))


def test_groups_are_those_whose_rows_share_most_spikes():
    patterns = [[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
    sizes = [100, 40, 30, FEWEST - 1]
    at_spikes = np.repeat(np.array(patterns, dtype=bool), sizes, axis=0)
    weight = np.ones(len(at_spikes))
    assert_array_equal(np.bincount(spike_groups(at_spikes, weight, 2)), [130, 47])
    labels = spike_groups(at_spikes, weight, 9)
    assert_array_equal(np.bincount(labels), [100, 47, 30])  # too few rows at the end
    assert not spike_groups(at_spikes[:, :0], weight, 9).any()
