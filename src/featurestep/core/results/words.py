"""In words: notes on validity, the status of a grid's points, problems; each in one form."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import FeaturestepError, InconsistentSolution, NotConverged
from ..grid import Grid, as_grid
from ..problem import Problem
from .tables import cell

OK = "ok"


class Note(str):
    """A note on validity, in words: which approximation it is about, and what it may cost.

    `size` is the relative error that it admits; infinite where nothing is claimed.
    """

    kind: str
    size: float

    def __new__(cls, text: str, kind: str = "", size: float = math.inf) -> Note:
        note = super().__new__(cls, text)
        note.kind, note.size = kind or text.split(":")[0], size
        return note


def allowance(notes: Iterable[str]) -> float:
    """The relative error that some notes admit together: the one excuse for a disagreement."""
    return sum((getattr(note, "size", math.inf) for note in notes), 0.0)


def status_of(error: FeaturestepError) -> str:
    """The status of a grid point that has no number: the kind of refusal and its reason."""
    kind = "refused"
    if isinstance(error, NotConverged):
        kind = "inconsistent" if isinstance(error, InconsistentSolution) else "not converged"
    return f"{kind}: {' '.join(str(error).split())}"


def grouped(noted: Iterable[tuple[Mapping[str, Any], Iterable[str]]]) -> list[str]:
    """Each kind of note once, with how many points have it: the last of them in its words."""
    said: dict[str, dict[str, str]] = {}
    count = 0
    for point, notes in noted:
        count += 1
        for note in notes:
            said.setdefault(_kind(note), {})[where(point)] = note
    told = []
    for places in said.values():
        place, note = list(places.items())[-1]
        head = f"{len(places)} of {count} points, the last at {place}: " if place else ""
        told.append(head + note)
    return told


def _kind(note: str) -> str:
    """What tells a note from others: its own word, or its text up to the first number."""
    return getattr(note, "kind", None) or re.split(r"[0-9]", note, maxsplit=1)[0]


def where(point: Mapping[str, Any]) -> str:
    """A grid point in words."""
    return ", ".join(f"{name} = {cell(value)}" for name, value in point.items())


def describe(problem: Problem | Grid, without: Sequence[str] = ()) -> list[str]:
    """A problem, or what a grid's points share, in a few lines of words and symbols."""
    grid = as_grid(problem)
    varied, base = {*without, *grid.varied}, grid.base
    given = {name: value for name, value in base.given.items() if name not in varied}
    told = ("activation", "target", "readout", "residual")
    words = [f"{name} {given[name]}" for name in told if name in given]
    initial = given.get("initial", "sphere")
    words += [f"initial weights {initial}"] if initial != "sphere" else []
    words += ["centred"] if given.get("centre") else []
    sizes = [
        f"{name} = {cell(getattr(base, name))}"
        for name in ("n", "d", "width", "n_step", "ridge", "noise_std")
        if name in given and not (name == "n_step" and "n" in varied)
    ]
    lines = [", ".join(words), ", ".join(sizes)]
    if not {"n", "d", "width"} & varied:
        lines[1] += f" (φ = {base.phi:.4g}, ψ = {base.psi:.4g})"
    if not {"n", "step_size", "step_exponent", "step_scale"} & varied:
        lines.append(f"step size η = {base.step_size:.5g}; {base.regime}")
    if grid.fixed:
        lines.append(f"{where(grid.fixed)} at every point")
    return [line for line in lines if line]


def shared_fields(problem: Problem | Grid) -> dict[str, Any]:
    """The same as values: a problem's fields, or those that a grid's points share."""
    grid = as_grid(problem)
    given = {n: v for n, v in grid.base.given.items() if n not in grid.varied}
    return {**given, **grid.fixed}
