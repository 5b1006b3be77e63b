"""From a state to everything the page shows of it."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from . import figures, reproduce, spectrum_panel, words
from .pool import Memory, Pool, Task
from .presets import PRESETS
from .state import State

_PLAIN = State()
SLOW_DEADLINE = 20.0  # seconds
_KEPT = 64  # simulations
_PATIENCE = 3.0  # seconds for a page to open before the processes it does not need yet start


class Views:
    """Asks the engine, in two lanes: what follows a slider at once, and the spectrum behind it."""

    def __init__(self) -> None:
        memory = Memory()
        self.fast = Pool(max(2, min(4, os.cpu_count() or 1)), memory)
        self.slow = Pool(1, memory, deadline=SLOW_DEADLINE, yielding=True)
        self._simulated: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._first_is_drawn = threading.Event()
        self._first_is_drawn.set()
        self._starter = threading.Thread(target=self._start, daemon=True)

    def start(self) -> Views:
        """Begin with the first picture, while the server starts and a browser loads."""
        self._first_is_drawn.clear()
        self._starter.start()
        return self

    def _start(self) -> None:
        *first, spectrum = tasks_of(_PLAIN).values()
        self.fast.ask(first)
        self.fast.ask([spectrum])
        self._first_is_drawn.set()
        if self._ended.wait(_PATIENCE):  # until a page is open the processor has enough to do
            return
        self.fast.grow(first)
        for preset in PRESETS.values():
            self.slow.ask([tasks_of(preset.state)["spectrum"]])

    def close(self) -> None:
        """End every worker."""
        self._ended.set()
        while self._starter.is_alive():  # it may be about to start a worker
            self.fast.end()
            self.slow.end()
            self._starter.join(0.05)
        self.fast.close()
        self.slow.close()

    def answers(self, state: State) -> dict[str, Any]:
        """The engine's answers by part, without the spectrum: data, or the error in its place."""
        _ = state.problem  # refuses in one line before any work is begun
        tasks = tasks_of(state)
        del tasks["spectrum"]
        found = dict(zip(tasks, self.fast.ask(list(tasks.values())), strict=True))
        with self._lock:
            found["simulated"] = self._simulated.get(curve_key(state))
        return found

    def spectrum_answers(self, state: State) -> dict[str, Any]:
        """The spectrum, and the point that its panels need too."""
        _ = state.problem
        tasks = tasks_of(state)
        (point,) = self.fast.ask([tasks["point"]])
        if tasks == tasks_of(_PLAIN):
            self._first_is_drawn.wait(self.slow.deadline)
        (spectrum,) = self.slow.ask([tasks["spectrum"]])
        return {"point": point, "spectrum": spectrum}

    def has_spectrum(self, state: State) -> bool:
        """Whether the spectrum needs no more work."""
        return self.slow.memory.get(tasks_of(state)["spectrum"]) is not None

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


def tasks_of(state: State) -> dict[str, Task]:
    """What to compute. Fields that a part does not depend on are set back, so that it is reused."""
    point = state.replace(theme=_PLAIN.theme, over=_PLAIN.over).to_query()
    tasks = {"curve": Task("curve", curve_key(state)), "point": Task("point", point)}
    if state.over == "exponent":
        tasks["stairs"] = Task("stairs", curve_key(state))
    tasks["spectrum"] = Task("spectrum", point)
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
        notes = [f"{note}." for note in point["validity"]]
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
