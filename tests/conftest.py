"""Shared settings: reproducible Hypothesis runs without deadlines (timing decides no test)."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "featurestep",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("featurestep")
