"""Shared settings: reproducible Hypothesis runs without deadlines (timing decides no test)."""

import gc
import signal
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import pytest
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


def pytest_collection_finish() -> None:
    """What was imported stays: no search for garbage need look through it again."""
    gc.freeze()


@pytest.fixture(scope="session")
def _solved_once() -> Callable[..., Any]:
    return cache(import_module("featurestep.theory.spectra.solve").solve_spectrum)


@pytest.fixture(scope="module")
def solved_once(_solved_once: Callable[..., Any]) -> Iterator[None]:
    """Each problem's spectrum is solved once: for tests of who asks for it and what they tell."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("featurestep.theory.spectra.solve.solve_spectrum", _solved_once)
        yield
