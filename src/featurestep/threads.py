"""How BLAS uses its threads: one for many small matrices, and no spinning between large ones."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def let_idle_threads_sleep() -> None:
    """Before SciPy's BLAS is loaded: its idle threads are to go to sleep early.

    By default they go on spinning for tens of milliseconds after each product, on the cores that
    elementwise work and factorisations need next. A user's own setting is kept.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "14")


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which the BLAS libraries loaded so far use one thread."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
