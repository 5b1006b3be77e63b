"""Fixtures of the simulation's tests."""

from importlib import import_module

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture
def one_blas_thread():
    """For many small products: on a busy machine threads would wait for each other."""
    import_module("scipy.linalg")  # only libraries that are loaded can be limited
    with threadpool_limits(1):
        yield
