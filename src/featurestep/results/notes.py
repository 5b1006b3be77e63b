"""Notes on validity, and the status of a grid's points: each has one form everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import FeaturestepError, InconsistentSolution, NotConverged
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


def status_of(error: FeaturestepError | None) -> str:
    """A grid point's status: `ok`, or the kind of refusal and its reason."""
    if error is None:
        return OK
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
