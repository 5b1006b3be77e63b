"""Shared settings: reproducible Hypothesis runs without deadlines (timing decides no test)."""

import signal

from hypothesis import HealthCheck, settings

# What a script starts in the background ignores Ctrl-C, and so would the commands under test.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "featurestep",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("featurestep")
