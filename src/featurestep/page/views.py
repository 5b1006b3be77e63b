"""From a state to everything the page shows of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..core.errors import InvalidProblem
from ..core.extensions import departing
from ..processes import Wanted, always
from . import figures, reproduce, spectrum_figure, words
from .axes import exponents
from .figures import THEMES
from .pool import Memory, Pool, Task, TooSlow
from .state import NUMBERS, PLAIN, State

View = tuple[dict[str, Any], dict[str, Any]]  # figures and texts, by their elements' ids
LANES = ("main", "spectrum")  # what a page asks for on its own: the errors, and the spectrum
DEADLINE = 8.0  # seconds for everything one request asks for, waiting for a worker included
SLOW_DEADLINE = 20.0
_KEPT = 128  # simulations, of errors and of spectra
_PATIENCE = 3.0  # seconds for a page to open before the processes it does not need yet start
_FIRST = 5.0  # seconds that a page waits for what was begun before it came


class Views:
    """Asks the engine: what follows a slider, as a draft where that is quicker, and in full."""

    def __init__(self) -> None:
        memory = Memory()
        self.fast = Pool(max(3, min(4, os.cpu_count() or 1)), memory, deadline=DEADLINE)
        # Drafts of the spectrum: each begins where the last has ended.
        self.drafts = Pool(2, memory, deadline=DEADLINE, first=0)
        self.slow = Pool(1, memory, deadline=SLOW_DEADLINE, low_priority=True)
        self._pools = (self.fast, self.drafts, self.slow)
        self._simulated = Memory(_KEPT)
        self._ended = threading.Event()
        self._begun = {lane: threading.Event() for lane in LANES}
        self._starter = threading.Thread(target=self._start, daemon=True)

    def begin(self) -> None:
        """Begin with the first picture, while Flask is imported and a browser loads."""
        self._starter.start()

    def _start(self) -> None:
        tasks = tasks_of(PLAIN, "draft")
        spectrum = [tasks.pop("spectrum")]
        for lane, asked in (("main", list(tasks.values())), ("spectrum", spectrum)):
            self.fast.ask(asked)  # in turn: meanwhile the browser has a core to itself
            self._begun[lane].set()
        if not self._ended.wait(_PATIENCE):  # until a page is open the processor has enough to do
            self.drafts.grow(spectrum)
            self.fast.grow(list(tasks.values()))

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
        self, state: State, lane: str, how: str = "full", *, wanted: Wanted = always
    ) -> tuple[dict[str, Any], str]:
        """A lane's answers by part, data or the error in its place, and how to ask for it next.

        Where the full spectrum is refused or too slow a draft stays, and says so.
        """
        _ = state.problem  # refuses in one line before any work is begun
        if self._starter.is_alive():  # what `begin` asks for would only be asked again
            self._begun[lane].wait(_FIRST)
        tasks = self.tasks(state, how)
        task = tasks.pop("spectrum")
        if lane == "main":
            found = dict(zip(tasks, self.fast.ask(list(tasks.values()), wanted), strict=True))
            if isinstance(found["point"], InvalidProblem):
                raise found["point"]
            if isinstance(found["curve"], TooSlow):
                found["curve"] = self._drafted(tasks["curve"], found["curve"], wanted)
            kept = self._simulated.get(Task("errors", curve_key(state)))
            rough = any(each.how != "full" for each in tasks.values())
            return {**found, "simulated": kept}, "full" * rough
        drafts = self.drafts if self.drafts.serving else self.fast
        (spectrum,) = (self.slow if task.how == "full" else drafts).ask([task], wanted)
        if isinstance(spectrum, Exception) and task.how == "full":
            (draft,) = drafts.ask([task._replace(how="draft")], wanted)
            if isinstance(draft, Mapping):
                notes = [
                    *draft["notes"],
                    f"expect a less accurate spectrum: the full one was not computed ({spectrum})",
                ]
                spectrum = {**draft, "notes": notes}
        kept = self._simulated.get(Task("spectrum", task.query))
        found = {"spectrum": spectrum, "simulated_spectrum": kept}
        return found, "full" * (task.how != "full")

    def _drafted(self, task: Task, late: TooSlow, wanted: Wanted) -> Any:
        """The draft of a curve whose full one takes too long, or what was found in its place."""
        if task.how != "full":
            return late
        (draft,) = self.fast.ask([task._replace(how="draft")], wanted)
        return draft if isinstance(draft, Mapping) else late

    def tasks(self, state: State, how: str) -> dict[str, Task]:
        """What to compute: each part as asked, or in full where that is remembered."""
        full = tasks_of(state).items()
        known = {part: task for part, task in full if self.fast.memory.get(task)}
        return tasks_of(state, how) | known

    def keep(self, asked: State, ran: State, data: dict[str, Any]) -> None:
        """Remember a simulation, with the theory at its own size when that is another."""
        if ran.n != asked.n:
            (theory,) = self.fast.ask([tasks_of(ran)["curve"]])
            if isinstance(theory, Mapping):
                data = {**data, "theory": dict(theory)}
        self._simulated.put(Task("errors", curve_key(asked)), data)
        query = tasks_of(asked)["spectrum"].query
        self._simulated.put(Task("spectrum", query), data.get("spectrum"))


def tasks_of(state: State, how: str = "full") -> dict[str, Task]:
    """What to compute. Fields that a part does not depend on are set back, so that it is reused."""
    return {part: Task(part, query, how) for part, query in _queries(state).items()}


@lru_cache(maxsize=64)
def _queries(state: State) -> dict[str, str]:
    point = state.replace(theme=PLAIN.theme, over=PLAIN.over, isotropic=PLAIN.isotropic)
    queries = {"curve": curve_key(state), "point": point.to_query()}
    if state.over == "exponent" and not departing(state.problem):
        queries["stairs"] = queries["curve"]
    return {**queries, "spectrum": point.features.replace(ridge=PLAIN.ridge).to_query()}


def curve_key(state: State) -> str:
    """The state as far as the errors' curve depends on it."""
    plain = state.replace(theme=PLAIN.theme)
    if state.over != "exponent":
        return plain.to_query()
    scale = state.step_scale if state.step == "exponent" else PLAIN.step_scale
    low, high = exponents(state)
    step: dict[str, Any] = {"step": PLAIN.step, "step_size": PLAIN.step_size}
    if (low, high) != (0.0, 0.5):  # a step whose exponent lies outside: its axis goes on to there
        limits = NUMBERS["step_size"]
        end = state.n ** (high if high > 0.5 else low)
        step = {"step": "size", "step_size": min(limits.high, max(limits.low, end))}
    return plain.replace(step_exponent=PLAIN.step_exponent, step_scale=scale, **step).to_query()


def main_view(state: State, answers: Mapping[str, Any]) -> View:
    """Errors, learned function, numbers; a part that failed leaves the others alone."""
    point, curve, stairs = (answers.get(name) for name in ("point", "curve", "stairs"))
    wrong = [str(answer) for answer in answers.values() if isinstance(answer, Exception)]
    if isinstance(curve, Mapping) and curve["refused"]:
        wrong.append(f"some points of the curve have no number ({curve['refused']})")
    texts: dict[str, Any] = {
        "message": " · ".join(dict.fromkeys(wrong)),
        "python": reproduce.python_lines(state),
        "shell": reproduce.shell_lines(state),
        "sentence": "",
        "notes": [],
        "hint-errors": words.missing(state, departing(state.problem)),
        **{f"value-{name}": "–" for name in words.TILES},
    }
    shares: list[float | None] = []
    undrawn = ""
    if isinstance(point, Mapping):
        shares = words.shares(point["degrees"])
        undrawn = point["undrawn"].get("degrees", "")
        notes = words.gravest_first(point["notes"])
        texts |= {"sentence": words.sentence(point), "notes": notes, **words.values(point)}
    colour = THEMES[state.theme].test
    drawn = {
        "graph-errors": figures.errors_figure(
            state, point, curve, stairs, answers.get("simulated")
        ),
        "graph-learned": figures.learned(state, point),
        "graph-degrees": figures.degrees(state, "of the target, learned", shares, colour),
    }
    if undrawn:
        drawn["graph-degrees"] = figures.message(state, undrawn)
    return drawn, texts


def spectrum_view(state: State, answers: Mapping[str, Any]) -> View:
    """Spectrum, what its spikes carry, words on them."""
    found, carried = answers["spectrum"], []
    if isinstance(found, Mapping):
        carried = [
            sum(spike["overlaps"][k] for spike in found["spikes"]) for k in range(words.DEGREES)
        ]
        drawn = spectrum_figure.figure(state, found, answers.get("simulated_spectrum"))
        notes = words.gravest_first(found["notes"])
        texts = {"spikes": words.spikes(found["spikes"]), "notes-spectrum": notes}
    else:
        why = words.no_spectrum(departing(state.features.problem)) or str(found)
        drawn, texts = figures.message(state, why), {"spikes": "", "notes-spectrum": []}
    colour = THEMES[state.theme].train
    bars = figures.degrees(state, "carried by the spikes", carried, colour)
    return {"graph-spectrum": drawn, "graph-degrees": bars}, texts


VIEWS = {"main": main_view, "spectrum": spectrum_view}
