"""Worker processes with a deadline, and a memory of what they answered."""

from __future__ import annotations

import logging
import multiprocessing
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ..errors import FeaturestepError
from .worker import serve

DEADLINE = 8.0  # seconds for everything one request asks for, waiting for a worker included
REMEMBERED = 512  # answers
_WARMING = 60.0  # seconds
Answer = tuple[str, Any]  # ("done", data), or ("refused" | "failed" | "late", reason)
LOG = logging.getLogger(__name__)


class Refused(FeaturestepError):
    """The engine refused what was asked; the message is its one line."""


class TooSlow(FeaturestepError):
    """The deadline passed, and the worker was stopped."""


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

    def start(self) -> Connection:
        """The pipe to a process that lives."""
        if self.pipe is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            arguments = (theirs, self.yielding)
            self.process = context.Process(target=serve, args=arguments, daemon=True)
            self.process.start()
            theirs.close()
        return self.pipe

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


class Pool:
    """Workers that answer tasks; a request takes a second one only when it is free.

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

    def ask(self, tasks: Sequence[Task]) -> list[Any]:
        """The tasks' answers in order: data, or the error that stands in its place."""
        found = self._remembered(tasks)
        missing = [task for task in dict.fromkeys(tasks) if task not in found]
        if missing:
            found |= self._compute(missing)
        return [_value(*found[task]) for task in tasks]

    def grow(self, tasks: Sequence[Task]) -> None:
        """Bring the workers beyond the first into service, each warmed up by some tasks."""
        for worker in self.workers[1:]:
            self._work(list(tasks), [worker], time.monotonic() + _WARMING)
            self._idle.put(worker)

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

    def _compute(self, tasks: list[Task]) -> dict[Task, Answer]:
        until = time.monotonic() + self.deadline
        crew = self._take(len(tasks), until)
        try:
            found = self._remembered(tasks)  # others may have asked the same while we waited
            return found | self._work([t for t in tasks if t not in found], crew, until)
        finally:
            for worker in reversed(crew):
                self._idle.put(worker)

    def _take(self, most: int, until: float) -> list[Worker]:
        """One worker, and more of them if they are free."""
        crew: list[Worker] = []
        try:
            crew.append(self._idle.get(timeout=max(0.0, until - time.monotonic())))
            while len(crew) < most:
                crew.append(self._idle.get_nowait())
        except queue.Empty:
            pass
        return crew

    def _work(self, tasks: list[Task], crew: list[Worker], until: float) -> dict[Task, Answer]:
        """Spread tasks over workers until the deadline; those that are late are stopped."""
        found: dict[Task, Answer] = {}
        waiting, busy = list(reversed(tasks)), dict[Any, tuple[Worker, Task]]()
        try:
            for worker in crew:
                self._give(worker, waiting, busy)
            while busy:
                ready = wait(list(busy), timeout=max(0.0, until - time.monotonic()))
                if not ready:
                    break
                for pipe in ready:
                    worker, task = busy.pop(pipe)
                    found[task] = answer = self._receive(worker)
                    if answer[0] != "failed":
                        self.memory.put(task, answer)
                    self._give(worker, waiting, busy)
        finally:
            for worker, _ in busy.values():
                worker.stop()
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


def _value(kind: str, answer: Any) -> Any:
    if kind == "done":
        return answer
    if kind == "refused":
        return Refused(answer)
    return TooSlow(answer) if kind == "late" else FeaturestepError(f"internal error: {answer}")
