"""Saved estimators: pickles carry the version, and skops loads from a short list."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from cases import ESTIMATORS, METHODS, X, Y, cheap, fitted, learn
from states import changes, state_of
from twins import signatures

import skpacbayes

RANGE = {"model__transition_variance": (0.0, 4.0)}

pytestmark = pytest.mark.filterwarnings("ignore")  # chains of twenty sweeps


def check_skops(estimator):
    """An estimator is loaded from the public list as it was."""
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    saved = io.dumps(estimator)
    untrusted = set(io.get_untrusted_types(data=saved))
    assert untrusted <= set(skpacbayes.TRUSTED_TYPES)
    loaded = io.loads(saved, trusted=skpacbayes.TRUSTED_TYPES)
    assert not changes(state_of(estimator), state_of(loaded))


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_skops_loads_from_the_public_list(name, method):
    check_skops(fitted(name, method))


def test_skops_loads_regimes_with_inputs():
    check_skops(cheap("DirichletProcessHMM").fit(X, inputs=X[:, :1]))


def test_skops_loads_an_additive_stream_of_which_only_sums_are_kept():
    """It keeps up to a thousand rows."""
    rows = np.random.default_rng(0).uniform(-1, 1, size=(1100, 2))
    model = cheap("SparseAdditiveGibbsRegressor", max_order=2)
    check_skops(model.partial_fit(rows, rows[:, 0]))


def test_skops_loads_a_range_of_two_numbers():
    check_skops(cheap("ParticleMaximumLikelihood", parameters=RANGE).fit(X))


def test_the_list_is_short_and_names_types_of_the_package():
    assert len(skpacbayes.TRUSTED_TYPES) <= 115
    for name in skpacbayes.TRUSTED_TYPES:
        assert name.startswith(("skpacbayes.", "numpy.", "scipy."))


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_a_pickle_of_another_version_warns(name, method, monkeypatch):
    estimator = fitted(name, method)
    saved = pickle.dumps(estimator)
    assert not changes(state_of(estimator), state_of(pickle.loads(saved)))
    monkeypatch.setattr("skpacbayes._base.__version__", "99.0")
    # Estimators within it warn too, which pytest 8.0 cannot pass on.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pickle.loads(saved)
    assert {skpacbayes._base.VersionWarning} == {warning.category for warning in caught}
    assert any(name in str(warning.message) for warning in caught)


STREAMING = [name for name, method in METHODS if method == "partial_fit"]


@pytest.mark.parametrize("name", STREAMING)
def test_a_stream_goes_on_from_a_memory_map(name, tmp_path):
    """Whose arrays are read-only; it is not written to, and nothing is compiled."""
    stream = fitted(name, "partial_fit")
    joblib.dump(stream, tmp_path / "stream")
    before = (tmp_path / "stream").read_bytes()
    mapped = joblib.load(tmp_path / "stream", mmap_mode="r")
    compiled = []
    for one in (stream, mapped):
        one.partial_fit(X[:1], Y[:1])
        compiled.append(signatures())
    assert compiled[0] == compiled[1]
    for answer in ("predict", "score_samples", "transform"):
        if hasattr(stream, answer):
            expected = getattr(stream, answer)(X)
            np.testing.assert_array_equal(getattr(mapped, answer)(X), expected)
    assert (tmp_path / "stream").read_bytes() == before


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_dask_collections_are_refused_where_statistics_merge(method):
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    collection = array.from_array(X, chunks=(20, 2))
    refused = []
    for name, public in ESTIMATORS.items():
        if hasattr(public, "sufficient_statistics") and hasattr(public, method):
            with pytest.raises(TypeError, match="absorb") as raised:
                learn(cheap(name), method, collection, Y)
            assert f"{name}.{method} got a Dask collection" in str(raised.value)
            refused.append(name)
    assert refused


def test_what_the_refusal_says_works():
    """The lines in the message, on partitions, give what all rows give."""
    dask = pytest.importorskip("dask", reason="dask is not installed")
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    blocks = array.from_array(X, chunks=(20, 2))
    estimator = cheap("TemperedVBGaussianMixture", n_components=1).fit(X[:20])
    with pytest.raises(TypeError) as raised:
        estimator.fit(blocks)
    lines = [line.strip() for line in str(raised.value).splitlines()[1:]]
    exec("\n".join(lines), {"dask": dask, "X": blocks[20:], "estimator": estimator})
    np.testing.assert_allclose(estimator.n_samples_seen_, len(X))
