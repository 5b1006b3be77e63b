"""From a state to everything the page shows of it."""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from ..processes import Wanted, always
from . import figures, reproduce, spectrum_panel, words
from .pool import Memory, Pool, Task
from .state import State
from .worker import DRAFT

_PLAIN = State()
SLOW_DEADLINE = 20.0  # seconds
DRAFTED = ("curve", "stairs", "spectrum")  # parts that have a draft
_KEPT = 64  # simulations
_PATIENCE = 3.0  # seconds for a page to open before the processes it does not need yet start


class Views:
    """Asks the engine: what follows a slider, as a draft where that is quicker, and in full."""

    def __init__(self) -> None:
        memory = Memory()
        self.fast = Pool(max(3, min(4, os.cpu_count() or 1)), memory)
        self.drafts = Pool(2, memory)  # of the spectrum: each begins where the last has ended
        self.slow = Pool(1, memory, deadline=SLOW_DEADLINE, yielding=True)
        self._pools = (self.fast, self.drafts, self.slow)
        self._simulated: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._starter = threading.Thread(target=self._start, daemon=True)

    def start(self, *, inherited: Sequence[Any] = ()) -> Views:
        """Start the workers, which do not keep `inherited` open; before any thread is started."""
        if sys.platform == "linux":
            _ = _PLAIN.problem  # imports what all of them need
            pipes = list(inherited)
            for pool in self._pools:
                pipes += pool.fork(pipes)
        return self

    def begin(self) -> None:
        """Begin with the first picture, while the server starts and a browser loads."""
        self._starter.start()

    def _start(self) -> None:
        tasks = tasks_of(_PLAIN)
        spectrum = tasks_of(_PLAIN, draft=True)["spectrum"]  # in full when the page rests
        del tasks["spectrum"]
        first = list(tasks.values())
        self.fast.ask(first)
        self.drafts.ask([spectrum])
        if not self._ended.wait(_PATIENCE):  # until a page is open the processor has enough to do
            self.fast.grow(first)
            self.drafts.grow([spectrum])

    def close(self) -> None:
        """End every worker."""
        self._ended.set()
        while self._starter.is_alive():  # it may be about to start a worker
            for pool in self._pools:
                pool.end()
            self._starter.join(0.05)
        for pool in self._pools:
            pool.close()

    def answers(
        self, state: State, *, draft: bool = False, wanted: Wanted = always
    ) -> dict[str, Any]:
        """The engine's answers by part, without the spectrum: data, or the error in its place."""
        _ = state.problem  # refuses in one line before any work is begun
        tasks = tasks_of(state, draft=draft)
        del tasks["spectrum"]
        found = dict(zip(tasks, self.fast.ask(list(tasks.values()), wanted), strict=True))
        with self._lock:
            found["simulated"] = self._simulated.get(curve_key(state))
        return found

    def spectrum_answers(
        self, state: State, *, draft: bool = False, wanted: Wanted = always
    ) -> dict[str, Any]:
        """The spectrum, and the point that its panels need too.

        Where the full spectrum is refused or too slow a draft stays, and says so.
        """
        _ = state.problem
        rough, fine = (tasks_of(state, draft=d)["spectrum"] for d in (True, False))
        (spectrum,) = self.drafts.ask([rough], wanted) if draft else self.slow.ask([fine], wanted)
        if isinstance(spectrum, Exception) and not draft:
            (seen,) = self.drafts.ask([rough], wanted)
            if isinstance(seen, Mapping):
                notes = [*seen["validity"], f"the spectrum is drawn as a draft ({spectrum})"]
                spectrum = {**seen, "validity": notes}
        (point,) = self.fast.ask([tasks_of(state)["point"]], wanted)
        return {"point": point, "spectrum": spectrum}

    def knows(self, state: State, part: str) -> bool:
        """Whether a part needs no more work to be shown in full."""
        return self.fast.memory.get(tasks_of(state)[part]) is not None

    def keep(self, asked: State, ran: State, data: dict[str, Any]) -> None:
        """Remember a simulation, with the theory at its own size when that is another."""
        if ran.n != asked.n:
            (theory,) = self.fast.ask([tasks_of(ran)["curve"]])
            if isinstance(theory, Mapping):
                data = {**data, "theory": dict(theory)}
        with self._lock:
            self._simulated[curve_key(asked)] = data
            while len(self._simulated) > _KEPT:
                self._simulated.popitem(last=False)


def tasks_of(state: State, *, draft: bool = False) -> dict[str, Task]:
    """What to compute. Fields that a part does not depend on are set back, so that it is reused."""
    point = state.replace(theme=_PLAIN.theme, over=_PLAIN.over).to_query()
    tasks = {"curve": Task("curve", curve_key(state)), "point": Task("point", point)}
    if state.over == "exponent":
        tasks["stairs"] = Task("stairs", curve_key(state))
    still = state.replace(theme=_PLAIN.theme, over=_PLAIN.over, ridge=_PLAIN.ridge)
    tasks["spectrum"] = Task("spectrum", still.to_query())
    for part in (part for part in DRAFTED if draft and part in tasks):
        tasks[part] = Task(f"{part}{DRAFT}", tasks[part].query)
    return tasks


def curve_key(state: State) -> str:
    """The state as far as the errors' curve depends on it."""
    plain = state.replace(theme=_PLAIN.theme)
    if state.over == "exponent":
        scale = state.step_scale if state.step == "exponent" else _PLAIN.step_scale
        step = {"step": _PLAIN.step, "step_exponent": _PLAIN.step_exponent, "step_scale": scale}
        plain = plain.replace(**step, step_size=_PLAIN.step_size)
    return plain.to_query()


def main_view(state: State, answers: Mapping[str, Any]) -> dict[str, Any]:
    """What the first lane's elements show, by id; a part that failed leaves the others alone."""
    point, curve, stairs = (answers.get(name) for name in ("point", "curve", "stairs"))
    wrong = [str(answer) for answer in answers.values() if isinstance(answer, Exception)]
    if isinstance(curve, Mapping) and curve["refused"]:
        wrong.append(f"some points of the curve have no number ({curve['refused']})")
    shown: dict[str, Any] = {
        "graph-errors": figures.errors(state, point, curve, stairs, answers.get("simulated")),
        "graph-learned": figures.learned(state, point),
        "message": " · ".join(dict.fromkeys(wrong)),
        "python": reproduce.python_lines(state),
        "shell": reproduce.shell_lines(state),
    }
    if isinstance(point, Mapping):
        notes = [f"{note}." for note in point["notes"]]
        shown |= {"sentence": words.sentence(point), "notes": notes, **words.values(point)}
    else:
        shown |= {"sentence": "", "notes": [], **{f"value-{name}": "–" for name, *_ in words.TILES}}
    return shown


def spectrum_view(state: State, answers: Mapping[str, Any]) -> dict[str, Any]:
    """What the second lane's elements show: spectrum, learned degrees, words on spikes."""
    point, found = answers["point"], answers["spectrum"]
    rows = words.shares(point["degrees"]) if isinstance(point, Mapping) else []
    if not isinstance(found, Mapping):
        return {
            "graph-spectrum": figures.message(state, str(found)),
            "graph-degrees": figures.degrees(state, rows),
            "spikes": "",
            "notes-spectrum": [],
        }
    for row in rows:
        row["carried"] = spectrum_panel.carried(found, row["degree"])
    return {
        "graph-spectrum": spectrum_panel.figure(state, found),
        "graph-degrees": figures.degrees(state, rows),
        "spikes": words.spikes(found["spikes"]),
        "notes-spectrum": [f"{note}." for note in found["validity"]],
    }
