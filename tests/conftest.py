"""What pytest needs to know of this directory."""

import gc

import pytest

pytest.register_assert_rewrite("states", "streaming_laws", "twins")

gc.disable()  # while tests are collected: nothing of them is garbage


def pytest_collection_finish(session):
    """Keep the collector from looking at thousands of tests again and again."""
    gc.freeze()
    gc.enable()
