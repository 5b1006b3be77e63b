"""What the shell may offer after an option or an argument: names that the package knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from ..core.problem import BATCHES, FIELDS, INITIALS, LOSSES, RESIDUALS, ROWS
from ..functions.activations import NAMED
from ..functions.readout import NAMES as LAWS

Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def offering(words: Iterable[str]) -> Completion:
    """Completes to any of the words that begin as what was typed does."""
    known = tuple(words)

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return complete


def figure_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The figures, and all of them."""
    from ..figures import FIGURES  # heavy, and only wanted here

    return offering(("all", *FIGURES))(ctx, param, incomplete)


def axis(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """`FIELD=`, and after the sign of equality the names that such a field may have."""
    name, equals, typed = incomplete.partition("=")
    if not equals:
        return [f"{field}=" for field in FIELDS if field.startswith(name)]
    done, comma, last = typed.rpartition(",")
    words = WORDS.get(name, ())
    return [f"{name}={done}{comma}{word}" for word in words if word.startswith(last)]


WORDS: dict[str, tuple[str, ...]] = {
    "activation": tuple(NAMED),
    "target": tuple(NAMED),
    "readout": tuple(LAWS),
    "residual": RESIDUALS,
    "initial": INITIALS,
    "centre": ("true", "false"),
    "loss": LOSSES,
    "intercept": ("true", "false"),
    "rows": ROWS,
    "batches": BATCHES,
}


def of_field(name: str) -> dict[str, Any]:
    """The keyword of an option for this field, where there are names to offer."""
    return {"shell_complete": offering(WORDS[name])} if name in WORDS else {}
