"""What pytest needs to know of this directory."""

import gc
import random
import warnings

import numpy as np
import pytest

pytest.register_assert_rewrite("states", "streaming_laws", "twins")

gc.disable()  # while tests are collected: nothing of them is garbage


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give a process whole files, and all that run every estimator to one of them.

    They use every kernel: in two processes at once, each would be compiled twice.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # keep the order of the files, as below
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "every estimator" if file.startswith("tests/common/") else file

    return Scheduling(config, log)


def pytest_collection_modifyitems(items):
    """Begin with the longest part, which compiles all kernels; end with their tests.

    Meanwhile another process runs the tests of the mixtures, which have few kernels:
    else both would compile the same.
    """
    first, last = ("tests/common/", "tests/mixture/"), "tests/kernels/"

    def place(item):
        places = [item.nodeid.startswith(part) for part in first]
        if any(places):
            return places.index(True)
        return len(first) + item.nodeid.startswith(last)

    items.sort(key=place)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Seed the global generators: ``random_state=None`` draws from NumPy's."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (that generator is meant)


@pytest.fixture
def callbacks():
    """Return the module of callbacks, or skip the test where there is none."""
    reason = "scikit-learn has callbacks from 1.9 on"
    return pytest.importorskip("sklearn.callback", reason=reason)


def pytest_collection_finish(session):
    """Keep the collector from looking at thousands of tests again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module")
def dask_client():
    """Workers of Dask, which are threads of this process."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"processes": False, "dashboard_address": None}
        with (
            distributed.LocalCluster(2, threads_per_worker=1, **options) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
