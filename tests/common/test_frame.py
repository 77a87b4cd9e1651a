"""The frame holds for a newcomer's estimator, written as `CONTRIBUTING.md` says."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
import running_gaussian
from running_gaussian import RunningGaussian
from sklearn.utils.estimator_checks import parametrize_with_checks
from streaming_laws import LAWS, LAWS_OF_PLACE, PLACES, Stream, rounded

import skpacbayes


def rows(n, seed):
    return (rounded(np.random.default_rng(seed).normal(size=(n, 3))),)


# A row of weight two is not, to the last digit, two rows.
STREAM = Stream(
    RunningGaussian,
    rows,
    length=60,
    inexact={"integer_weights": {"_moments": None, "mean_": 1e-12, "variance_": 1e-9}},
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(law):
    law(STREAM)


@pytest.mark.parametrize("law", LAWS_OF_PLACE, ids=lambda law: law.__name__)
@pytest.mark.parametrize("place", [place for place in PLACES if place])
def test_law_elsewhere(law, place):
    law(STREAM.placed(place))


@parametrize_with_checks([RunningGaussian()])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_it_is_short():
    assert len(inspect.getsource(running_gaussian).splitlines()) < 100


def test_a_pickle_of_another_version_warns(monkeypatch):
    saved = pickle.dumps(RunningGaussian().fit(*rows(9, 0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(saved)
    monkeypatch.setattr("skpacbayes._base.__version__", "99.0")
    message = f"RunningGaussian was saved by skpacbayes {skpacbayes.__version__} and"
    with pytest.warns(skpacbayes._base.VersionWarning, match=message):
        pickle.loads(saved)


def test_fit_keeps_what_is_the_users_and_forgets_the_rest():
    estimator = RunningGaussian().fit(*rows(9, 0))
    estimator.note, estimator.stale_ = "mine", 1
    estimator.fit(*rows(9, 1))
    assert estimator.note == "mine"
    assert not hasattr(estimator, "stale_")
