"""From a state to everything the page shows of it, and to the same elsewhere.

That is: figures and texts; lines of Python and of the shell; its numbers as CSV or JSON.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Any

from ..core.errors import InvalidProblem
from ..core.problem import Problem
from ..core.results import departing
from ..processes import Wanted, always
from . import figures, words
from .figures import AXES, THEMES
from .pool import Memory, PageTask, Pool, TooSlow
from .state import FIELDS, NUMBERS, PLAIN, PageState, axis_text, base, errors, exponents, here

View = tuple[dict[str, Any], dict[str, Any]]  # figures and texts, by their elements' ids
LANES = ("main", "spectrum")  # what a page asks for on its own: the errors, and the spectrum
DEADLINE = 8.0  # seconds for everything one request asks for, waiting for a worker included
LONG_DEADLINE = 20.0  # of a full spectrum
_MAX_SIMULATIONS = 128  # simulations, of errors and of spectra
_SECONDS_BEFORE_GROWTH = 3.0  # for a page to open before processes that it does not need yet
_MAX_WAIT_FOR_FIRST = 5.0  # seconds that a page waits for what was begun before it came


class Views:
    """Asks the engine: what follows a slider, as a draft where that is quicker, and in full.

    Errors and spectrum are asked for in two lanes: a draft of the spectrum takes several times as
    long as one of the errors, which would have to wait for it in a single one.
    """

    def __init__(self) -> None:
        self.pool = Pool(max(4, min(6, os.cpu_count() or 1)), Memory())
        self._simulated = Memory(_MAX_SIMULATIONS)
        self._ended = threading.Event()
        self._begun = {lane: threading.Event() for lane in LANES}
        self._starter = threading.Thread(target=self._start, daemon=True)

    def begin(self) -> None:
        """Begin with the first picture, while Flask is imported and a browser loads."""
        self._starter.start()

    def _start(self) -> None:
        tasks = tasks_of(PLAIN, "draft")
        everything = list(tasks.values())
        spectrum = [tasks.pop("spectrum")]
        for lane, asked in (("main", list(tasks.values())), ("spectrum", spectrum)):
            # In turn: meanwhile the browser has a core to itself.
            self.pool.ask(asked, deadline=DEADLINE)
            self._begun[lane].set()
        if not self._ended.wait(
            _SECONDS_BEFORE_GROWTH
        ):  # until a page is open the processor has enough to do
            self.pool.grow(everything)

    def close(self) -> None:
        """End every worker."""
        self._ended.set()
        while self._starter.is_alive():  # it may be about to start a worker
            self.pool.end()
            self._starter.join(0.05)
        self.pool.close()

    def answers(
        self, state: PageState, lane: str, how: str = "full", *, wanted: Wanted = always
    ) -> tuple[dict[str, Any], str]:
        """A lane's answers by part, data or the error in its place, and how to ask for it next.

        Where the full spectrum is refused or too slow a draft stays, and says so.
        """
        _ = state.problem  # refuses in one line before any work is begun
        if self._starter.is_alive():  # what `begin` asks for would only be asked again
            self._begun[lane].wait(_MAX_WAIT_FOR_FIRST)
        tasks = self.tasks(state, how)
        task = tasks.pop("spectrum")
        if lane == "main":
            asked = self.pool.ask(list(tasks.values()), wanted, deadline=DEADLINE)
            found = dict(zip(tasks, asked, strict=True))
            if isinstance(found["point"], InvalidProblem):
                raise found["point"]
            if isinstance(found["curve"], TooSlow) and tasks["curve"].how == "full":
                draft = self._draft(tasks["curve"], wanted)
                found["curve"] = draft if isinstance(draft, Mapping) else found["curve"]
            kept = self._simulated.get(PageTask("errors", curve_key(state)))
            rough = any(each.how != "full" for each in tasks.values())
            return {**found, "simulated": kept}, "full" * rough
        is_long = task.how == "full"
        deadline = LONG_DEADLINE if is_long else DEADLINE
        (spectrum,) = self.pool.ask([task], wanted, deadline=deadline, is_long=is_long)
        if isinstance(spectrum, InvalidProblem):
            raise spectrum
        if isinstance(spectrum, Exception) and is_long:
            draft = self._draft(task, wanted)
            if isinstance(draft, Mapping):
                notes = [
                    *draft["notes"],
                    f"expect a less accurate spectrum: the full one was not computed ({spectrum})",
                ]
                spectrum = {**draft, "notes": notes}
        kept = self._simulated.get(PageTask("spectrum", task.query))
        found = {"spectrum": spectrum, "simulated_spectrum": kept}
        return found, "full" * (not is_long)

    def _draft(self, task: PageTask, wanted: Wanted) -> Any:
        """The draft of a task, or the error in its place."""
        (draft,) = self.pool.ask([task._replace(how="draft")], wanted, deadline=DEADLINE)
        return draft

    def tasks(self, state: PageState, how: str) -> dict[str, PageTask]:
        """What to compute: each part as asked, or in full where that is remembered."""
        full = tasks_of(state).items()
        known = {part: task for part, task in full if self.pool.memory.get(task)}
        return tasks_of(state, how) | known

    def keep(self, asked: PageState, ran: PageState, data: dict[str, Any]) -> None:
        """Remember a simulation, with the theory at its own size when that is another."""
        if ran.n != asked.n:
            (theory,) = self.pool.ask([tasks_of(ran)["curve"]], deadline=DEADLINE)
            if isinstance(theory, Mapping):
                data = {**data, "theory": dict(theory)}
        self._simulated.put(PageTask("errors", curve_key(asked)), data)
        query = tasks_of(asked)["spectrum"].query
        self._simulated.put(PageTask("spectrum", query), data.get("spectrum"))


def tasks_of(state: PageState, how: str = "full") -> dict[str, PageTask]:
    """What to compute. Fields that a part does not depend on are set back, so that it is reused."""
    return {part: PageTask(part, query, how) for part, query in _queries(state).items()}


@lru_cache(maxsize=64)
def _queries(state: PageState) -> dict[str, str]:
    point = state.replace(theme=PLAIN.theme, over=PLAIN.over, isotropic=PLAIN.isotropic)
    queries = {"curve": curve_key(state), "point": point.to_query()}
    if state.over == "exponent" and not departing(state.problem):
        queries["stairs"] = queries["curve"]
    return {**queries, "spectrum": point.features.replace(ridge=PLAIN.ridge).to_query()}


def curve_key(state: PageState) -> str:
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


def main_view(state: PageState, answers: Mapping[str, Any]) -> View:
    """Errors, learned function, numbers; a part that failed leaves the others alone."""
    point, curve, stairs = (answers.get(name) for name in ("point", "curve", "stairs"))
    wrong = [str(answer) for answer in answers.values() if isinstance(answer, Exception)]
    if isinstance(curve, Mapping) and curve["refused"]:
        wrong.append(f"some points of the curve have no number ({curve['refused']})")
    texts: dict[str, Any] = {
        "message": " · ".join(dict.fromkeys(wrong)),
        "python": python_lines(state),
        "shell": shell_lines(state),
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


def spectrum_view(state: PageState, answers: Mapping[str, Any]) -> View:
    """Spectrum, what its spikes carry, words on them."""
    found, carried = answers["spectrum"], []
    if isinstance(found, Mapping):
        carried = [
            sum(spike["overlaps"][k] for spike in found["spikes"]) for k in range(words.DEGREES)
        ]
        drawn = figures.spectrum_figure(state, found, answers.get("simulated_spectrum"))
        notes = words.gravest_first(found["notes"])
        texts = {"spikes": words.spikes(found["spikes"]), "notes-spectrum": notes}
    else:
        why = words.no_spectrum(departing(state.features.problem)) or str(found)
        drawn, texts = figures.message(state, why), {"spikes": "", "notes-spectrum": []}
    colour = THEMES[state.theme].train
    bars = figures.degrees(state, "carried by the spikes", carried, colour)
    return {"graph-spectrum": drawn, "graph-degrees": bars}, texts


VIEWS = {"main": main_view, "spectrum": spectrum_view}


def python_lines(state: PageState) -> str:
    """A script that prints the numbers of the current point and those along the axis."""
    name, _, spaced = axis_text(state).partition("=")
    curve_base = "problem"
    lines = ["import numpy as np", "from featurestep import Problem, limit, predict", ""]
    lines.append(f"problem = {_spelled(state.problem)}")
    ours, theirs = state.problem.given, base(state).given
    changes = {k: v for k, v in theirs.items() if v != ours[k] and k != name and v is not None}
    if changes:
        given = ", ".join(f"{key}={value!r}" for key, value in changes.items())
        lines.append(f"base = problem.replace({given})")
        curve_base = "base"
    lines += [
        "result = predict(problem)",
        "print(result.test_error, result.train_loss)",
        f"curve = predict({curve_base}.vary({name}={_values(spaced)}))",
        "print(curve.test_error.values)",
    ]
    if state.over == "exponent" and not departing(state.problem):
        steps = "limit(problem, degree, norm_growth=growth).test_error"
        lines.append("for growth in (False, True):")
        lines.append(f"    print([{steps} for degree in (1, 2, 3)])")
    return "\n".join(lines) + "\n"


def shell_lines(state: PageState) -> str:
    """Commands that print the same numbers as JSON."""
    point, curve = _command(state.problem), _command(base(state), without=FIELDS[state.over])
    lines = [f"{point} --json", f"{curve} --over {axis_text(state)} --json"]
    return "\n".join(lines) + "\n"


def _values(spaced: str) -> str:
    """The axis's values as Python has them."""
    if ":" not in spaced:
        return f"[{spaced.replace(',', ', ')}]"
    *kind, low, high, count = spaced.split(":")
    return f"np.{'geomspace' if kind else 'linspace'}({low}, {high}, {count})"


def _spelled(problem: Problem) -> str:
    """The constructor's call, one field a line; what has its default is left out."""
    defaults = {field.name: field.default for field in fields(Problem)}
    given = {key: value for key, value in problem.given.items() if value != defaults[key]}
    lines = "".join(f"    {key}={value!r},\n" for key, value in given.items())
    return f"Problem(\n{lines})"


def _command(problem: Problem, *, without: str = "") -> str:
    given = problem.given
    words = ["featurestep", "predict"]
    for name, value in given.items():
        unset = value is None or value == () or (name == "step_scale" and value == 1.0)
        if unset or name == without:
            continue
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            words += [f"--{name.replace('_', '-')}", _option_text(value)]
    return shlex.join(words)


def _option_text(value: Any) -> str:
    """A value as its option takes it: a list of (eigenvalue, share) as eigenvalue:share,…"""
    if isinstance(value, tuple):
        return ",".join(":".join(map(str, pair)) for pair in value)
    return str(value)


def csv_text(state: PageState, answers: Mapping[str, Any]) -> str:
    """Everything in the errors' panel, one row a point."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    x = AXES[state.over].split(",")[-1].strip()
    names = errors(state)
    writer.writerow(["series", x, *names, *(f"{name}_standard_error" for name in names)])
    point, curve = answers.get("point"), answers.get("curve")
    if isinstance(point, Mapping):
        writer.writerow(["here", here(state), *(point[name] for name in names), "", ""])
    if isinstance(curve, Mapping):
        for row in zip(curve["x"], *(curve[name] for name in names), strict=True):
            writer.writerow(["finite n", *row, "", ""])
    stairs = answers.get("stairs")
    for series, prefix in (("limit with norm growth", ""), ("published limit", "published_")):
        for step in stairs if isinstance(stairs, list) else ():
            for edge in (step["low"], step["high"]):
                values = (step[prefix + name] for name in names)
                writer.writerow([series, edge, *values, "", ""])
    simulated = answers.get("simulated")
    if isinstance(simulated, Mapping):
        columns: Sequence[str] = (*names, *(f"{name}_error" for name in names))
        series = f"simulated n={simulated['n']}"
        for row in zip(simulated["x"], *(simulated[name] for name in columns), strict=True):
            writer.writerow([series, *row])
    return out.getvalue()


def json_text(state: PageState, answers: Mapping[str, Any]) -> str:
    """Every number of the page, with the state and the problem behind it."""
    data = {
        name: {"error": str(answer)} if isinstance(answer, Exception) else answer
        for name, answer in answers.items()
    }
    record = {"state": asdict(state), "problem": dict(state.problem.given), **data}
    return json.dumps(record, allow_nan=False, indent=1, ensure_ascii=False)
