"""Workers that share work until it is done, late or not wanted; whoever dies is replaced."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from ..core.errors import CannotStart
from .process import Ending, Event, Events, Process
from .program import DROPPED, READY, TOLD

MOST_FALSE_STARTS = 3
_LOOK = 0.05  # seconds from look to look whether an answer is still wanted

Kind = Literal["done", "dropped", "late", "died"]


class Call(NamedTuple):
    """What to do: the function's arguments, and a name by which the asker knows the answer."""

    arguments: tuple[Any, ...]
    name: Any = None


Supply = Callable[[], Call | None]  # the next call; None if there is none just now
Wanted = Callable[[], bool]


class Answer(NamedTuple):
    """What became of a call: what it returned, or how its worker died."""

    call: Call
    kind: Kind
    value: Any = None


def always() -> bool:
    """For who waits until the end."""
    return True


class Seat:
    """A place in the pool: its process is started with its first use, and again after its end."""

    def __init__(self, function: Callable[..., Any], *, yielding: bool) -> None:
        self._function = function
        self._yielding = yielding
        self._lock = threading.Lock()
        self.process: Process | None = None

    def start(self, events: Events) -> Process:
        """A process that lives, whose words go to these events."""
        with self._lock:
            if self.process is not None and not self.process.lives:
                self.process.end()
                self.process = None
            if self.process is None:
                self.process = Process(self._function, events, yielding=self._yielding)
            self.process.events = events
            return self.process

    def kill(self) -> None:
        """End the process now; who waits for it is told."""
        with self._lock:
            if self.process is not None:
                self.process.kill()

    def stop(self) -> Ending | None:
        """End the process and forget it."""
        with self._lock:
            ending = self.process.end() if self.process is not None else None
            self.process = None
            return ending


class Pool:
    """Seats for calls of one function."""

    def __init__(self, function: Callable[..., Any], size: int, *, yielding: bool = False) -> None:
        self.seats = [Seat(function, yielding=yielding) for _ in range(size)]
        self._ended = threading.Event()

    def work(
        self,
        supply: Supply,
        *,
        seats: Sequence[Seat] | None = None,
        until: float = math.inf,
        wanted: Wanted = always,
    ) -> Generator[Answer, None, None]:
        """Answers as they come, until there is no more to do and nobody is at work.

        After `until` (of `time.monotonic`) whoever is still at work is killed; what is not wanted
        any more is dropped. Closing the generator kills whoever is at work.
        """
        shift = _Shift(list(self.seats if seats is None else seats), supply, self._ended)
        try:
            yield from shift.answers(until, wanted)
        finally:
            shift.end()

    def end(self) -> None:
        """Kill every process and start none again; who waits for one is told."""
        self._ended.set()
        for seat in self.seats:
            seat.kill()

    def close(self) -> None:
        """End every process, when nobody waits for one any more."""
        self.end()
        for seat in self.seats:
            seat.stop()


class _Shift:
    """Some seats and the calls in their hands, for one stretch of work."""

    def __init__(self, seats: list[Seat], supply: Supply, ended: threading.Event) -> None:
        self._seats = seats
        self._supply = supply
        self._ended = ended
        self._events: Events = queue.SimpleQueue()
        self._held: dict[Seat, Call] = {}
        self._returned: deque[Call] = deque()  # by processes that never were ready
        self._false_starts = 0

    def answers(self, until: float, wanted: Wanted) -> Iterator[Answer]:
        overtaken = False
        while True:
            overtaken = overtaken or not wanted()
            if overtaken:
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
                event = self._events.get(timeout=min(_LOOK, left))
            except queue.Empty:
                continue
            answer = self._heard(event)
            if not overtaken:
                self._hand_out()  # before the answer is dealt with, so that nobody waits for that
            if answer is not None:
                yield answer

    def _hand_out(self) -> None:
        """Give every free seat a call; a seat that has none starts its process for it."""
        for seat in list(self._seats):
            if seat in self._held or self._ended.is_set():
                continue
            call = self._returned.popleft() if self._returned else self._supply()
            if call is None:
                return
            try:
                seat.start(self._events).give(*call.arguments)
            except CannotStart:
                if not any(other.process is not None for other in self._seats):
                    raise
                self._seats.remove(seat)  # go on with those that run
                self._returned.appendleft(call)
                continue
            self._held[seat] = call

    def _heard(self, event: Event) -> Answer | None:
        seat = next((s for s in self._seats if s.process is event.process), None)
        if seat is None or event.kind == TOLD:
            return None
        if event.kind == READY:
            self._false_starts = 0
            return None
        if event.kind is None:
            return self._buried(seat, was_ready=event.process.ready)
        kind: Kind = "dropped" if event.kind == DROPPED else "done"
        return Answer(self._held.pop(seat), kind, event.what)

    def _buried(self, seat: Seat, *, was_ready: bool) -> Answer | None:
        """Several that end before they are ready mean that no more can be started."""
        ending, call = seat.stop(), self._held.pop(seat, None)
        assert ending is not None
        if was_ready or self._ended.is_set():
            return None if call is None else Answer(call, "died", ending)
        if call is not None:
            self._returned.append(call)
        self._false_starts += 1
        if self._false_starts >= MOST_FALSE_STARTS:
            if not any(s.process is not None and s.process.ready for s in self._seats):
                raise CannotStart(f"worker processes do not start: {ending.why}")
            self._seats.remove(seat)
        return None

    def _drop(self) -> None:
        for seat in self._held:
            if seat.process is not None:
                seat.process.drop()

    def end(self) -> None:
        for seat in self._held:
            seat.stop()
