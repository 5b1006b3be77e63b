"""Shared settings: reproducible Hypothesis runs without deadlines (timing decides no test)."""

import sys

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "featurestep",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("featurestep")


@pytest.fixture(autouse=True)
def no_scheduler_left_behind():
    """Closed clients of Dask, one inside the other, leave their scheduler in its settings."""
    if "distributed" in sys.modules:
        import dask
        from distributed.client import _get_global_client

        if _get_global_client() is None:
            dask.config.config.pop("scheduler", None)
