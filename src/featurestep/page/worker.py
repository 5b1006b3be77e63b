"""The other end of a pipe: a process of its own that computes parts, or runs one simulation.

Work happens here so that a deadline or a cancel is real: the process is killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from threadpoolctl import threadpool_limits

from ..errors import FeaturestepError
from .parts import axis, curve, grid, point, stairs
from .spectrum_panel import spectrum
from .state import State

DRAFT = "-draft"  # ends the name of a part that is computed coarsely
PARTS: Mapping[str, Callable[[State], Any]] = {
    "point": point,
    "curve": curve,
    f"curve{DRAFT}": partial(curve, draft=True),
    "stairs": stairs,
    f"stairs{DRAFT}": partial(stairs, draft=True),
    "spectrum": spectrum,
    f"spectrum{DRAFT}": partial(spectrum, draft=True),
}
STOP = getattr(signal, "SIGUSR1", None)  # tells a worker to drop what it is doing

_TELL_EVERY = 0.1  # seconds
_YIELD = 10  # how far slow work stands back behind what follows a slider


class Dropped(BaseException):
    """Nobody waits for the answer any more."""


class Desk:
    """Where one task is worked on; a signal to stop means that task and never the next."""

    def __init__(self) -> None:
        self.working = False
        if STOP is not None:
            signal.signal(STOP, self.stop)

    def stop(self, _signal: int, _frame: object) -> None:
        """Drop the task, if there is one."""
        if self.working:
            self.working = False
            raise Dropped

    def answer(self, part: str, query: str) -> tuple[str, Any]:
        """The kind of answer, and the data or the reason."""
        try:
            self.working = True
            found = _answer(part, query)
            self.working = False
        except Dropped:
            return "dropped", "the controls have moved on"
        return found


def serve(pipe: Connection, yielding: bool, inherited: Sequence[Any] = ()) -> None:
    """Answer (part, query) with (kind, answer) until the other end is gone.

    A forked process closes what it has inherited and does not own: it would keep it open.
    """
    for each in inherited:
        each.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if yielding and hasattr(os, "nice"):
        os.nice(_YIELD)
    desk = Desk()
    with threadpool_limits(limits=1):
        while True:
            try:
                pipe.send(desk.answer(*pipe.recv()))
            except (EOFError, OSError):
                return


def _answer(part: str, query: str) -> tuple[str, Any]:
    try:
        return "done", PARTS[part](State.from_query(query))
    except FeaturestepError as error:
        return "refused", str(error)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"


def run_simulation(pipe: Connection, query: str, count: int, seeds: int) -> None:
    """Simulate along the axis, telling ("progress", share) and at the end ("done", data)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(_YIELD)
    try:
        pipe.send(_simulated(pipe, State.from_query(query), count, seeds))
    except FeaturestepError as error:
        pipe.send(("refused", str(error)))
    except BrokenPipeError:
        return  # nobody listens any more


def _simulated(pipe: Connection, state: State, count: int, seeds: int) -> tuple[str, Any]:
    from ..simulation import simulate

    told = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told > _TELL_EVERY:
            told = time.monotonic()
            pipe.send(("progress", done / total))

    problems = grid(state, count)
    found = simulate(problems, seeds=seeds, progress=tell)
    mean, error = found.mean.isel(variant=0), found.standard_error.isel(variant=0)
    data: dict[str, Any] = {
        "x": axis(state, problems).tolist(),
        "n": state.n,
        "seeds": seeds,
        "seconds": found.wall_time,
    }
    for name in ("test_error", "train_loss"):
        data[name] = mean[name].values.tolist()
        data[f"{name}_error"] = error[name].values.tolist()
    return "done", data
