"""Who computes: worker processes with a deadline, and a memory of what they answered.

Work happens there so that a deadline is real: the process is killed.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..core.errors import FeaturestepError, InvalidProblem
from ..processes import Call, CannotStart, Wanted, Worker, WorkerPool, always
from .state import PageState

MAX_ANSWERS = 512  # answers
_WARMING_SECONDS = 60.0  # seconds
_POLL_SECONDS = 0.05  # between checks whether an answer is still wanted
LOG = logging.getLogger(__name__)


class Refused(FeaturestepError):
    """The engine refused what was asked; the message is its one line."""


class Failed(FeaturestepError):
    """Something went wrong that nobody has foreseen."""

    def __str__(self) -> str:
        return f"internal error: {super().__str__()}"


class TooSlow(FeaturestepError):
    """The deadline passed, and the worker was stopped."""


class Overtaken(FeaturestepError):
    """The page has asked something newer; nobody waits for this answer."""


class PageTask(NamedTuple):
    """One part of one state, and how exactly; equal tasks have equal answers."""

    part: str
    query: str
    how: str = "full"


class Memory:
    """The latest answers."""

    def __init__(self, size: int = MAX_ANSWERS) -> None:
        self._size = size
        self._answers: OrderedDict[PageTask, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, task: PageTask) -> Any:
        """The answer, None if it is not known any more."""
        with self._lock:
            if task in self._answers:
                self._answers.move_to_end(task)
            return self._answers.get(task)

    def put(self, task: PageTask, answer: Any) -> None:
        """Keep an answer, and forget the oldest when there are too many."""
        with self._lock:
            self._answers[task] = answer
            while len(self._answers) > self._size:
                self._answers.popitem(last=False)


class Pool(WorkerPool):
    """Workers that answer tasks; a request takes more than one only when they are free.

    From `grow` on all of them serve, and before the first only: a cold one has to import the
    engine. Long requests come one after the other, so that they never have all workers.
    """

    def __init__(self, size: int, memory: Memory) -> None:
        super().__init__(answer, size)
        self.memory = memory
        self.serving = 1
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._idle.put(self.workers[0])
        self._long = threading.Lock()

    def ask(
        self,
        tasks: Sequence[PageTask],
        wanted: Wanted = always,
        *,
        deadline: float,
        is_long: bool = False,
    ) -> list[Any]:
        """The tasks' answers in order: data, or the error that stands in its place.

        Raises `Overtaken` as soon as they are not wanted any more. The deadline is in seconds, with
        the wait for a worker.
        """
        found = self._remembered(tasks)
        if found.keys() != set(tasks):
            until = time.monotonic() + deadline
            late = TooSlow(f"stopped after {deadline:g} s: this takes too long for a live page")
            with self._turn(until, wanted) if is_long else contextlib.nullcontext():
                group = self._take(len(set(tasks)) - len(found), until, wanted)
                try:
                    found = self._remembered(tasks)  # others may have asked for it meanwhile
                    missing = [task for task in dict.fromkeys(tasks) if task not in found]
                    found |= self._answered(missing, group, until, late, wanted)
                finally:
                    for worker in reversed(group):
                        self._idle.put(worker)
        return [found[task] for task in tasks]

    @contextlib.contextmanager
    def _turn(self, until: float, wanted: Wanted) -> Iterator[None]:
        """Wait for the long request before this one, or for the deadline."""
        mine = False
        while not mine and time.monotonic() < until:
            _check(wanted)
            mine = self._long.acquire(timeout=_POLL_SECONDS)
        try:
            yield
        finally:
            if mine:
                self._long.release()

    def grow(self, tasks: Sequence[PageTask]) -> None:
        """Bring the other workers into service, each warmed up by some tasks."""
        for worker in self.workers[self.serving :]:
            until = time.monotonic() + _WARMING_SECONDS
            self._answered(list(tasks), [worker], until, TooSlow("not warm in time"), always)
            self._idle.put(worker)
            self.serving += 1

    def _remembered(self, tasks: Sequence[PageTask]) -> dict[PageTask, Any]:
        return {task: answer for task in tasks if (answer := self.memory.get(task)) is not None}

    def _take(self, most: int, until: float, wanted: Wanted) -> list[Worker]:
        """One worker, and more of them if they are free; one is left to other requests."""
        group: list[Worker] = []
        while not group and (left := until - time.monotonic()) > 0.0:
            _check(wanted)
            with contextlib.suppress(queue.Empty):
                group.append(self._idle.get(timeout=min(_POLL_SECONDS, left)))
        with contextlib.suppress(queue.Empty):
            while group and len(group) < min(most, len(self.workers) - 1):
                group.append(self._idle.get_nowait())
        return group

    def _answered(
        self,
        tasks: list[PageTask],
        group: list[Worker],
        until: float,
        late: TooSlow,
        wanted: Wanted,
    ) -> dict[PageTask, Any]:
        """Spread tasks over workers until the deadline; those that are late are stopped."""
        waiting = [Call(task, task) for task in reversed(tasks)]
        found: dict[PageTask, Any] = dict.fromkeys(tasks, late)
        try:
            for each in self.work(
                lambda: waiting.pop() if waiting else None,
                workers=group,
                until=until,
                wanted=wanted,
            ):
                if each.kind == "done":
                    found[each.call.name] = each.value
                elif each.kind == "died":
                    found[each.call.name] = Failed("the worker ended")
        except CannotStart as error:
            found |= dict.fromkeys((t for t in tasks if found[t] is late), Failed(str(error)))
        for task, each in found.items():
            if not isinstance(each, (Failed, TooSlow)):
                self.memory.put(task, each)
            elif each is not late and not self._ended.is_set():
                LOG.error("a part failed: %s", each)
        _check(wanted)
        return found


def _check(wanted: Wanted) -> None:
    if not wanted():
        raise Overtaken("replaced by a newer request")


def answer(part: str, query: str, how: str) -> Any:
    """A part by its name, or the error in its place; who asks here imports the engine, no other.

    A state that has no prediction is refused as a whole: the error of its point, and of its
    spectrum, names the field.
    """
    from . import panels

    try:
        state = PageState.from_query(query)
        return getattr(panels, part)(state, draft=how != "full")
    except InvalidProblem as error:
        return error if part in ("point", "spectrum") else Refused(str(error))
    except FeaturestepError as error:
        return Refused(str(error))
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}")
