"""Worker processes with a deadline, and a memory of what they answered."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ..errors import FeaturestepError
from .worker import STOP, serve

DEADLINE = 8.0  # seconds for everything one request asks for, waiting for a worker included
REMEMBERED = 512  # answers
_WARMING = 60.0  # seconds
_LOOK = 0.05  # seconds from look to look whether an answer is still wanted
Answer = tuple[str, Any]  # ("done", data), or ("refused" | "failed" | "late" | "dropped", reason)
Wanted = Callable[[], bool]
LOG = logging.getLogger(__name__)


class Refused(FeaturestepError):
    """The engine refused what was asked; the message is its one line."""


class TooSlow(FeaturestepError):
    """The deadline passed, and the worker was stopped."""


class Overtaken(FeaturestepError):
    """The page has asked something newer; nobody waits for this answer."""


@dataclass(frozen=True)
class Task:
    """One part of one state; equal tasks have equal answers."""

    part: str
    query: str


class Memory:
    """The latest answers."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._answers: OrderedDict[Task, Answer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, task: Task) -> Answer | None:
        """The answer, if it is still known."""
        with self._lock:
            if task in self._answers:
                self._answers.move_to_end(task)
            return self._answers.get(task)

    def put(self, task: Task, answer: Answer) -> None:
        """Keep an answer, and forget the oldest when there are too many."""
        with self._lock:
            self._answers[task] = answer
            while len(self._answers) > self._size:
                self._answers.popitem(last=False)


class Worker:
    """A process, started with its first use."""

    def __init__(self, *, yielding: bool) -> None:
        self.yielding = yielding
        self.process: Any = None
        self.pipe: Connection | None = None
        self._lock = threading.Lock()

    def start(self, *, method: str = "spawn", inherited: Sequence[Any] = ()) -> Connection:
        """The pipe to a process that lives; a forked one is told what not to keep open."""
        if self.pipe is None:
            context: Any = multiprocessing.get_context(method)
            self.pipe, theirs = context.Pipe()
            ours = [*inherited, self.pipe] if method == "fork" else []
            arguments = (theirs, self.yielding, ours)
            self.process = context.Process(target=serve, args=arguments, daemon=True)
            self.process.start()
            theirs.close()
        return self.pipe

    def drop(self) -> None:
        """Tell the process that its task is not wanted any more; it answers so, and stays warm."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self.process is not None and STOP is not None:
                os.kill(self.process.pid, STOP)

    def kill(self) -> None:
        """End the process now, whatever it is doing; who waits for it finds the pipe closed."""
        with self._lock:
            if self.process is not None:
                self.process.kill()

    def stop(self) -> None:
        """End the process and forget it, so that the next use starts another."""
        self.kill()
        with self._lock:
            if self.pipe is not None:
                self.pipe.close()
                self.process.join()
                self.process.close()
            self.process = self.pipe = None


def always() -> bool:
    """For who waits until the end."""
    return True


class Pool:
    """Workers that answer tasks; a request takes more than one only when they are free.

    The first worker serves at once, the others from `grow` on: a cold one would be in the way.
    """

    def __init__(
        self,
        size: int,
        memory: Memory,
        *,
        deadline: float = DEADLINE,
        yielding: bool = False,
    ) -> None:
        self.deadline = deadline
        self.memory = memory
        self.workers = [Worker(yielding=yielding) for _ in range(size)]
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._ended = threading.Event()
        self._idle.put(self.workers[0])

    def ask(self, tasks: Sequence[Task], wanted: Wanted = always) -> list[Any]:
        """The tasks' answers in order: data, or the error that stands in its place.

        Raises `Overtaken` as soon as they are not wanted any more.
        """
        found = self._remembered(tasks)
        missing = [task for task in dict.fromkeys(tasks) if task not in found]
        if missing:
            found |= self._compute(missing, wanted)
        return [_value(*found[task]) for task in tasks]

    def grow(self, tasks: Sequence[Task]) -> None:
        """Bring the workers beyond the first into service, each warmed up by some tasks."""
        for worker in self.workers[1:]:
            self._work(list(tasks), [worker], time.monotonic() + _WARMING, always)
            self._idle.put(worker)

    def fork(self, inherited: Sequence[Any]) -> list[Connection]:
        """Start every worker as a copy of this process, which has no other thread yet.

        That spares each of them the imports. `inherited` is what they must not keep open; their
        own pipes are returned, for those that are forked later.
        """
        pipes: list[Connection] = []
        for worker in self.workers:
            pipes.append(worker.start(method="fork", inherited=[*inherited, *pipes]))
        return pipes

    def end(self) -> None:
        """Kill every worker and start none again; who waits for one is let go."""
        self._ended.set()
        for worker in self.workers:
            worker.kill()

    def close(self) -> None:
        """End every worker, when nobody waits for one any more."""
        self.end()
        for worker in self.workers:
            worker.stop()

    def _remembered(self, tasks: Sequence[Task]) -> dict[Task, Answer]:
        return {task: answer for task in tasks if (answer := self.memory.get(task)) is not None}

    def _compute(self, tasks: list[Task], wanted: Wanted) -> dict[Task, Answer]:
        until = time.monotonic() + self.deadline
        crew = self._take(len(tasks), until, wanted)
        try:
            found = self._remembered(tasks)  # others may have asked the same while we waited
            missing = [task for task in tasks if task not in found]
            return found | self._work(missing, crew, until, wanted)
        finally:
            for worker in reversed(crew):
                self._idle.put(worker)

    def _take(self, most: int, until: float, wanted: Wanted) -> list[Worker]:
        """One worker, and more of them if they are free; one is left to other requests."""
        crew: list[Worker] = []
        while not crew and (left := until - time.monotonic()) > 0.0:
            _check(wanted)
            with contextlib.suppress(queue.Empty):
                crew.append(self._idle.get(timeout=min(_LOOK, left)))
        with contextlib.suppress(queue.Empty):
            while crew and len(crew) < min(most, len(self.workers) - 1):
                crew.append(self._idle.get_nowait())
        return crew

    def _work(
        self, tasks: list[Task], crew: list[Worker], until: float, wanted: Wanted
    ) -> dict[Task, Answer]:
        """Spread tasks over workers until the deadline; those that are late are stopped."""
        found: dict[Task, Answer] = {}
        waiting, busy = list(reversed(tasks)), dict[Any, tuple[Worker, Task]]()
        try:
            for worker in crew:
                self._give(worker, waiting, busy)
            while busy and (left := until - time.monotonic()) > 0.0:
                if not wanted():
                    waiting.clear()
                    for worker, _ in busy.values():
                        worker.drop()
                for pipe in wait(list(busy), timeout=min(_LOOK, left)):
                    worker, task = busy.pop(pipe)
                    found[task] = answer = self._receive(worker)
                    if answer[0] in ("done", "refused"):
                        self.memory.put(task, answer)
                    self._give(worker, waiting, busy)
        finally:
            for worker, _ in busy.values():
                worker.stop()
        _check(wanted)
        late = ("late", f"stopped after {self.deadline:g} s: this takes too long for a live page")
        return {task: found.get(task, late) for task in tasks}

    def _give(
        self, worker: Worker, waiting: list[Task], busy: dict[Any, tuple[Worker, Task]]
    ) -> None:
        """Hand a worker the next task; one whose process has ended gets a new process first."""
        while waiting and not self._ended.is_set():
            task = waiting[-1]
            pipe = worker.start()
            try:
                pipe.send((task.part, task.query))
            except OSError:
                LOG.warning("a worker had ended; a new one takes its place")
                worker.stop()
                continue
            busy[pipe] = (worker, waiting.pop())
            return

    def _receive(self, worker: Worker) -> Answer:
        pipe = worker.start()
        try:
            kind, answer = pipe.recv()
        except (EOFError, OSError):
            worker.stop()
            kind, answer = "failed", "the worker ended"
        if kind == "failed" and not self._ended.is_set():
            LOG.error("a part failed: %s", answer)
        return kind, answer


def _check(wanted: Wanted) -> None:
    if not wanted():
        raise Overtaken("the controls have moved on")


def _value(kind: str, answer: Any) -> Any:
    if kind == "done":
        return answer
    if kind == "refused":
        return Refused(answer)
    return TooSlow(answer) if kind == "late" else FeaturestepError(f"internal error: {answer}")
