"""Threads: our own, which end with the program, and how BLAS uses its."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import cache, partial
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Crew:
    """Threads that wait for work and never keep a program from ending.

    A thread of `concurrent.futures` whose start is interrupted (Ctrl-C) is forgotten by its pool,
    yet awaited at exit: the program then hangs. These threads are daemons, awaited by nobody.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._missing = size

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """function(item) of every item, in order; the first of their errors is raised."""
        work = [(Future[Result](), item) for item in items]

        def task(future: Future[Result], item: Item) -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function(item))
            except BaseException as error:
                future.set_exception(error)

        while self._missing > 0:
            self._missing -= 1
            Thread(target=self._serve, name="featurestep", daemon=True).start()
        try:
            for future, item in work:
                self._tasks.put(partial(task, future, item))
            return [future.result() for future, _ in work]
        finally:
            for future, _ in work:  # of an interrupted or failed call, nothing more is begun
                future.cancel()

    def _serve(self) -> None:
        while True:
            self._tasks.get()()


def crew(size: int) -> Crew:
    """So many threads of this process (those of a parent do not survive a fork)."""
    return _crew(size, os.getpid())


@cache
def _crew(size: int, process: int) -> Crew:
    return Crew(size)


_workers = min(8, os.cpu_count() or 1)


def workers() -> Crew:
    """The threads for drawing and for elementwise work (NumPy releases the lock there)."""
    return crew(_workers)


def set_workers(count: int) -> None:
    """From now on `workers` are so many in this process."""
    global _workers
    _workers = count


def let_idle_threads_sleep() -> None:
    """Before SciPy's BLAS is loaded: its idle threads are to go to sleep early.

    By default they go on spinning for tens of milliseconds after each product, on the cores that
    elementwise work and factorisations need next. A user's own setting is kept.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "14")


def cores() -> int:
    """Those that this process may use, where the system tells."""
    mine: Any = getattr(os, "sched_getaffinity", None)
    return len(mine(0)) if mine is not None else os.cpu_count() or 1


def blas_libraries() -> str:
    """The BLAS libraries here, SciPy's own among them, each with its threads."""
    from threadpoolctl import threadpool_info

    let_idle_threads_sleep()
    import_module("scipy.linalg")  # which brings one of its own
    found = {
        f"{info['internal_api']} {info['version']} ({info.get('architecture', '?')}, "
        f"{info['num_threads']} threads)"
        for info in threadpool_info()
        if info["user_api"] == "blas"
    }
    return ", ".join(sorted(found)) or "unknown"


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which the BLAS libraries loaded so far use one thread."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
