"""What the page's worker processes do: compute one part of a state.

Work happens there so that a deadline is real: the process is killed.
"""

from __future__ import annotations

from typing import Any

from ..errors import FeaturestepError
from .state import State

DRAFT, CLOSE = "-draft", "-close"  # end the names of parts that are computed coarsely


def compute(part: str, state: State) -> Any:
    """A part by its name; who has one computed imports the engine, and nobody else."""
    from . import parts, spectrum_panel

    name, _, how = part.partition("-")
    if name == "spectrum" and how:
        return spectrum_panel.draft(state, light=how == "draft")
    if name == "spectrum":
        return spectrum_panel.spectrum(state)
    return getattr(parts, name)(state, draft=bool(how))


def answer(part: str, query: str) -> tuple[str, Any]:
    """The kind of answer, and the data or the reason."""
    try:
        return "done", compute(part, State.from_query(query))
    except FeaturestepError as error:
        return "refused", str(error)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
