"""Estimators of series warn of frames whose rows are not in the order of time."""

import warnings

import numpy as np
import pandas as pd
import pytest
from cases import ESTIMATORS, cheap

from skpacbayes._series import SeriesEstimator

N_ROWS = 16
SERIES = [
    name for name, public in ESTIMATORS.items() if issubclass(public, SeriesEstimator)
]
DAYS = pd.date_range("2024-01-01", periods=N_ROWS)
INDEXES = {
    "days": DAYS,
    "days of a zone": DAYS.tz_localize("Europe/Paris"),
    "months": pd.period_range("2020-01", periods=N_ROWS, freq="M"),
    "spans": DAYS - DAYS[0],
    "numbers": pd.RangeIndex(N_ROWS),
    "seconds": pd.Index(np.linspace(0.0, 1.0, N_ROWS)),
}
SHUFFLED = np.random.default_rng(0).permutation(N_ROWS)
MESSAGE = "steps of the index of X go back"


def frame(index):
    """A table of one column, in the order of its index."""
    values = np.random.default_rng(1).normal(size=(len(index), 1))
    return pd.DataFrame(values, index=index, columns=["level"])


def n_warnings(call, *args, **arguments):
    """Return how many warnings of the index a call gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args, **arguments)
    return sum(MESSAGE in str(warning.message) for warning in caught)


def told(name, X):
    """Return how many warnings of the index a first fit gives."""
    return n_warnings(cheap(name).fit, X)


@pytest.mark.parametrize("name", SERIES)
def test_rows_out_of_order_are_told(name):
    X = frame(DAYS)
    assert told(name, X) == 0
    assert told(name, X.iloc[::-1]) == 1
    assert told(name, X.iloc[SHUFFLED]) == 1


@pytest.mark.parametrize("kind", INDEXES)
def test_any_index_of_times_or_numbers_is_read(kind):
    X = frame(INDEXES[kind])
    assert told("ClusteredParticleFilter", X) == 0
    assert told("ClusteredParticleFilter", X.iloc[::-1]) == 1
    assert told("ClusteredParticleFilter", X.iloc[SHUFFLED]) == 1


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_later_rows_out_of_order_are_told(name):
    X = frame(DAYS)
    fitted = cheap(name).fit(X)
    for method in ("filter", "predict", "score_samples", "score", "partial_fit"):
        if hasattr(fitted, method):
            assert n_warnings(getattr(fitted, method), X) == 0
            assert n_warnings(getattr(fitted, method), X.iloc[::-1]) == 1


def test_other_rows_are_not_told():
    names = pd.Index([*"qwertyuiopasdfgh"])
    starts_anew = DAYS[:8].append(DAYS[:8])
    levels = pd.MultiIndex.from_arrays([[*range(16)][::-1], DAYS])
    missing = DAYS.where(np.arange(N_ROWS) != 3)
    for index in (names, starts_anew, levels, missing):
        assert told("ClusteredParticleFilter", frame(index)) == 0
    backwards = frame(DAYS).iloc[::-1].to_numpy()
    assert told("ClusteredParticleFilter", backwards) == 0
    assert told("ClusteredParticleFilter", backwards.tolist()) == 0
