"""Threads: a pool of our own, how many threads BLAS uses, and the memory of freed arrays."""

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

import numpy as np

_KEPT_MEMORY = 31 << 20  # bytes; glibc's limit is at most 32 MiB

Item = TypeVar("Item")
Value = TypeVar("Value")


class DaemonPool:
    """A pool of daemon threads, which never keep a program from ending.

    `concurrent.futures` forgets a thread whose start is interrupted (Ctrl-C), yet joins it at exit:
    the program then hangs. Daemon threads are not joined.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._missing = size

    def map(self, function: Callable[[Item], Value], items: Iterable[Item]) -> list[Value]:
        """function(item) of every item, in order; the first error is raised."""
        work = [(Future[Value](), item) for item in items]

        def task(future: Future[Value], item: Item) -> None:
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
            for future, _ in work:  # an interrupted or failed call starts no further task
                future.cancel()

    def _serve(self) -> None:
        while True:
            self._tasks.get()()


def daemon_pool(size: int) -> DaemonPool:
    """The pool of this size in this process (a parent's threads do not survive a fork)."""
    return _pool_of_process(size, os.getpid())


@cache
def _pool_of_process(size: int, process: int) -> DaemonPool:
    return DaemonPool(size)


_workers = min(8, os.cpu_count() or 1)


def workers() -> DaemonPool:
    """The pool for random draws and elementwise work, during which NumPy releases the lock."""
    return daemon_pool(_workers)


def set_workers(count: int) -> None:
    """Set the number of threads of `workers` in this process."""
    global _workers
    _workers = count


def let_idle_threads_sleep() -> None:
    """Let idle threads of SciPy's OpenBLAS sleep early; call it before SciPy is loaded.

    By default they spin for tens of milliseconds after each product, on the cores that elementwise
    work and factorisations need next. A user's own setting is kept.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "14")


def cores() -> int:
    """Number of cores that this process may use (of the machine, where the system cannot tell)."""
    affinity: Any = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def blas_libraries() -> str:
    """Names of the loaded BLAS libraries, SciPy's included, with their numbers of threads."""
    from threadpoolctl import threadpool_info

    let_idle_threads_sleep()
    import_module("scipy.linalg")  # brings its own library
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
    keep_freed_memory()
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def keep_freed_memory() -> None:
    """Let glibc keep the memory of freed arrays of up to 32 MiB for the next ones.

    It gives what is larger than 128 KiB back to the system, and the next array of that size costs
    a page fault for every 4 KiB, often more time than what is computed in it. The limit rises to
    the size of the largest array that was freed. Other C libraries do not notice.
    """
    np.empty(_KEPT_MEMORY, dtype=np.uint8)
