"""What pytest needs to know of this directory."""

import pytest

pytest.register_assert_rewrite("states", "streaming_laws", "twins")
