"""A pool of workers: calls are answered, dropped, stopped when late, and workers are replaced."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from ..core.errors import CannotStart
from .process import Event, Events, Exit, Process
from .program import DROPPED, PROGRESS, READY

MAX_FAILED_STARTS = 3
POLL_SECONDS = 0.05  # between checks whether an answer is still wanted

Kind = Literal["done", "dropped", "late", "died"]


class Call(NamedTuple):
    """Arguments of the function, and a name by which the caller knows the answer."""

    arguments: tuple[Any, ...]
    name: Any = None


Supply = Callable[[], Call | None]  # the next call; None if there is none just now
Wanted = Callable[[], bool]


class Answer(NamedTuple):
    """The outcome of a call: what it returned, or the `Exit` of its worker's process."""

    call: Call
    kind: Kind
    value: Any = None


def always() -> bool:
    """True: for calls that nobody withdraws."""
    return True


class Worker:
    """One worker of a pool; its process starts with a call, and again after it has ended."""

    def __init__(self, function: Callable[..., Any], *, low_priority: bool) -> None:
        self._function = function
        self._yielding = low_priority
        self._lock = threading.Lock()
        self.process: Process | None = None

    def start(self, events: Events) -> Process:
        """A running process, whose messages go to these events."""
        with self._lock:
            if self.process is not None and not self.process.lives:
                self.process.end()
                self.process = None
            if self.process is None:
                self.process = Process(self._function, events, low_priority=self._yielding)
            self.process.events = events
            return self.process

    def kill(self) -> None:
        """End the process now; an event says so."""
        with self._lock:
            if self.process is not None:
                self.process.kill()

    def stop(self) -> Exit | None:
        """End the process, wait for it, and forget it."""
        with self._lock:
            found = self.process.end() if self.process is not None else None
            self.process = None
            return found


class WorkerPool:
    """Workers for calls of one function."""

    def __init__(
        self, function: Callable[..., Any], size: int, *, low_priority: bool = False
    ) -> None:
        self.workers = [Worker(function, low_priority=low_priority) for _ in range(size)]
        self._ended = threading.Event()

    def work(
        self,
        supply: Supply,
        *,
        workers: Sequence[Worker] | None = None,
        until: float = math.inf,
        wanted: Wanted = always,
    ) -> Generator[Answer, None, None]:
        """Answers as they come, until `supply` has no call and no worker is busy.

        Busy workers are killed at the time `until` (of `time.monotonic`) and when the generator is
        closed; once `wanted` returns False, they drop their calls.
        """
        group = _WorkerGroup(
            list(self.workers if workers is None else workers), supply, self._ended
        )
        try:
            yield from group.answers(until, wanted)
        finally:
            group.end()

    def end(self) -> None:
        """Kill every process and start none again; whoever waits for an answer learns it."""
        self._ended.set()
        for worker in self.workers:
            worker.kill()

    def close(self) -> None:
        """End every process and wait for that; for when nobody waits for an answer any more."""
        self.end()
        for worker in self.workers:
            worker.stop()


class _WorkerGroup:
    """Some workers and the calls that they hold, during one `WorkerPool.work`."""

    def __init__(self, workers: list[Worker], supply: Supply, ended: threading.Event) -> None:
        self._workers = workers
        self._supply = supply
        self._ended = ended
        self._events: Events = queue.SimpleQueue()
        self._held: dict[Worker, Call] = {}
        self._returned: deque[Call] = deque()  # from processes that ended before they were ready
        self._failed_starts = 0

    def answers(self, until: float, wanted: Wanted) -> Iterator[Answer]:
        withdrawn = False
        while True:
            withdrawn = withdrawn or not wanted()
            if withdrawn:
                self._drop()
            else:
                self._hand_out()
            if not self._held:
                return
            left = until - time.monotonic()
            if left <= 0:
                yield from [Answer(call, "late") for call in self._held.values()]
                return
            try:
                event = self._events.get(timeout=min(POLL_SECONDS, left))
            except queue.Empty:
                continue
            answer = self._handle(event)
            if not withdrawn:
                self._hand_out()  # first, so that no worker waits while the answer is dealt with
            if answer is not None:
                yield answer

    def _hand_out(self) -> None:
        """Give every free worker a call; a worker that has none starts its process for it."""
        for worker in list(self._workers):
            if worker in self._held or self._ended.is_set():
                continue
            call = self._returned.popleft() if self._returned else self._supply()
            if call is None:
                return
            try:
                worker.start(self._events).give(*call.arguments)
            except CannotStart:
                if not any(other.process is not None for other in self._workers):
                    raise
                self._workers.remove(worker)  # go on with those that run
                self._returned.appendleft(call)
                continue
            self._held[worker] = call

    def _handle(self, event: Event) -> Answer | None:
        worker = next((w for w in self._workers if w.process is event.process), None)
        if worker is None or event.kind == PROGRESS:
            return None
        if event.kind == READY:
            self._failed_starts = 0
            return None
        if event.kind is None:
            return self._terminated(worker, was_ready=event.process.ready)
        kind: Kind = "dropped" if event.kind == DROPPED else "done"
        return Answer(self._held.pop(worker), kind, event.what)

    def _terminated(self, worker: Worker, *, was_ready: bool) -> Answer | None:
        """The answer of a call whose process has ended, if it had one.

        A call is tried again if its process ended before it was ready; several such ends in a row
        mean that no process can be started.
        """
        found, call = worker.stop(), self._held.pop(worker, None)
        assert found is not None
        if was_ready or self._ended.is_set():
            return None if call is None else Answer(call, "died", found)
        if call is not None:
            self._returned.append(call)
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS:
            if not any(w.process is not None and w.process.ready for w in self._workers):
                raise CannotStart(f"worker processes do not start: {found.reason}")
            self._workers.remove(worker)
        return None

    def _drop(self) -> None:
        for worker in self._held:
            if worker.process is not None:
                worker.process.drop()

    def end(self) -> None:
        for worker in self._held:
            worker.stop()
