"""What the page's worker processes do: compute one part of a state.

Work happens there so that a deadline is real: the process is killed.
"""

from __future__ import annotations

from typing import Any

from ..core.errors import FeaturestepError, InvalidProblem
from .state import State


class Refused(FeaturestepError):
    """The engine refused what was asked; the message is its one line."""


class Failed(FeaturestepError):
    """Something went wrong that nobody has foreseen."""

    def __str__(self) -> str:
        return f"internal error: {super().__str__()}"


def answer(part: str, query: str, how: str) -> Any:
    """A part by its name, or the error in its place; who asks here imports the engine, no other.

    A state that has no prediction is refused as a whole: the error of its point names the field.
    """
    from . import parts, spectrum_panel

    try:
        state = State.from_query(query)
        if part == "spectrum":
            return spectrum_panel.spectrum(state, how)
        return getattr(parts, part)(state, draft=how != "full")
    except InvalidProblem as error:
        return error if part == "point" else Refused(str(error))
    except FeaturestepError as error:
        return Refused(str(error))
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}")
