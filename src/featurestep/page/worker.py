"""What the page's worker processes do: compute one part of a state.

Work happens there so that a deadline is real: the process is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..errors import FeaturestepError
from .parts import curve, point, stairs
from .spectrum_panel import draft, spectrum
from .state import State

DRAFT, CLOSE = "-draft", "-close"  # end the names of parts that are computed coarsely
PARTS: Mapping[str, Callable[[State], Any]] = {
    "point": point,
    f"point{DRAFT}": partial(point, draft=True),
    "curve": curve,
    f"curve{DRAFT}": partial(curve, draft=True),
    "stairs": stairs,
    f"stairs{DRAFT}": partial(stairs, draft=True),
    "spectrum": spectrum,
    f"spectrum{DRAFT}": partial(draft, light=True),
    f"spectrum{CLOSE}": draft,
}


def answer(part: str, query: str) -> tuple[str, Any]:
    """The kind of answer, and the data or the reason."""
    try:
        return "done", PARTS[part](State.from_query(query))
    except FeaturestepError as error:
        return "refused", str(error)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
