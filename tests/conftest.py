"""What pytest needs to know of this directory."""

import gc

import pytest

pytest.register_assert_rewrite("states", "streaming_laws", "twins")

gc.disable()  # while tests are collected: nothing of them is garbage


@pytest.fixture
def callbacks():
    """Return the module of callbacks, or skip the test where there is none."""
    reason = "scikit-learn has callbacks from 1.9 on"
    return pytest.importorskip("sklearn.callback", reason=reason)


def pytest_collection_finish(session):
    """Keep the collector from looking at thousands of tests again and again."""
    gc.freeze()
    gc.enable()
