"""What pytest needs to know of the tests of kernels."""

import inspect

import pytest
from twins import in_python


@pytest.fixture(autouse=True)
def one_form(request):
    """Run a test of the Python form of a kernel without compiled kernels."""
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    if inspect.isfunction(parameters.get("kernel")):
        with in_python():
            yield
    else:
        yield
