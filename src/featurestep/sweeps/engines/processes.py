"""The default engine: worker processes of this machine, replaced when they die."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from ..failures import EngineError
from ..job import Job, Report
from .base import Attempt
from .worker import COMMAND, ONE_THREAD, READY

MOST_FALSE_STARTS = 3
_LAST_WORDS = 2000  # characters of a dead worker's stderr that are kept


class Event(NamedTuple):
    """Something that a worker said; None is its end."""

    worker: Worker
    message: Any


class Worker:
    """One process, what it is computing, and the thread that listens to it."""

    def __init__(self, events: SimpleQueue[Event]) -> None:
        self.attempt: Attempt | None = None
        self.ready = False
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 closed in `end`
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": _import_path()},
            )
        except OSError as error:
            self._words.close()
            reason = error.strerror or "no interpreter"
            raise EngineError(f"worker processes do not start: {reason}") from None
        self._thread = Thread(target=self._listen, args=(events,), daemon=True)
        self._thread.start()

    def _listen(self, events: SimpleQueue[Event]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            try:
                while True:
                    events.put(Event(self, pickle.load(answers)))
            except Exception:  # the pipe ended, perhaps in the middle of a report
                events.put(Event(self, None))

    def give(self, attempt: Attempt) -> None:
        """Hand it a job; if it has just died, its end is on the way to us."""
        assert self._process.stdin is not None
        self.attempt = attempt
        with suppress(OSError):
            pickle.dump(attempt.job, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()

    @property
    def is_free(self) -> bool:
        """Whether it waits for a job."""
        return self.ready and self.attempt is None

    def end(self) -> tuple[str, str]:
        """Make sure that it has ended: how, and the end of what it wrote to stderr.

        It holds nothing that is not in the store or about to be computed again.
        """
        self._process.kill()
        code = self._process.wait()
        self._thread.join()
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with self._words as words:
            words.seek(0)
            text = words.read().decode(errors="replace").strip()
        return _ending(code), text[-_LAST_WORDS:]


class Processes:
    """So many workers, by default one for each core."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or _cores()

    def run(self, jobs: Iterator[Job]) -> Generator[Report, None, None]:
        """Reports as they come; a job whose worker died is tried again, and its killer given up."""
        team = _Team(self.workers, jobs)
        try:
            yield from team.reports()
        finally:
            team.end()


class _Team:
    """The workers of one run and the jobs still to do."""

    def __init__(self, size: int, jobs: Iterator[Job]) -> None:
        self._size = size
        self._jobs = jobs
        self._waiting: deque[Attempt] = deque()
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._workers: list[Worker] = []
        self._false_starts = 0

    def reports(self) -> Iterator[Report]:
        self._supply()
        while any(not worker.is_free for worker in self._workers):
            worker, message = self._events.get()
            report = None
            if message is None:
                report = self._bury(worker)
            elif message == READY:
                worker.ready, self._false_starts = True, 0
            else:
                worker.attempt, report = None, message
            self._supply()  # before the report is stored, so that nobody waits for the disk
            if report is not None:
                yield report

    def _supply(self) -> None:
        """Give every free worker a job, and start workers while there are jobs for them."""
        for worker in self._workers:
            if worker.is_free and self._has_more(than=0):
                worker.give(self._waiting.popleft())
        starting = sum(not worker.ready for worker in self._workers)
        while len(self._workers) < self._size and self._has_more(than=starting):
            try:
                self._workers.append(Worker(self._events))
            except EngineError:
                if not self._workers:
                    raise
                self._size = len(self._workers)  # go on with those that run
            starting += 1

    def _has_more(self, than: int) -> bool:
        """Whether more than so many jobs wait."""
        while len(self._waiting) <= than:
            job = next(self._jobs, None)
            if job is None:
                return False
            self._waiting.append(Attempt(job))
        return True

    def _bury(self, worker: Worker) -> Report | None:
        """Take a dead worker out, and its job back."""
        self._workers.remove(worker)
        ending, words = worker.end()
        attempt = worker.attempt
        if not worker.ready:
            self._count_false_start(words.splitlines()[-1] if words else ending)
        if attempt is None:
            return None
        outcome = attempt.after_death(ending, words)
        if isinstance(outcome, Report):
            return outcome
        self._waiting.extend(outcome)
        return None

    def _count_false_start(self, why: str) -> None:
        """Several in a row mean that no more can be started; perhaps some already run."""
        self._false_starts += 1
        if self._false_starts >= MOST_FALSE_STARTS:
            if not any(worker.ready for worker in self._workers):
                raise EngineError(f"worker processes do not start: {why}")
            self._size = len(self._workers)

    def end(self) -> None:
        for worker in self._workers:
            worker.end()


def _ending(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _import_path() -> str:
    """Where this process finds modules: a worker must find the same ones."""
    return os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
