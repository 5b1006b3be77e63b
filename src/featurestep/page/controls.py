"""The controls as the template draws them: words, symbols, and where every slider stands."""

from __future__ import annotations

import math
import re
from typing import Any

from markupsafe import Markup, escape

from .presets import PRESETS
from .state import COEFFICIENTS, LIMITS, Choice, Number, State, Switch, as_text
from .words import TILES

LABELS = {
    "step_exponent": ("exponent", "α"),
    "step_scale": ("scale", "η/n^α"),
    "step_size": ("step size", "η"),
    "n": ("samples", "n"),
    "phi": ("d/n", "φ"),
    "psi": ("d/N", "ψ"),
    "step_ratio": ("step", "n_0/n"),
    "ridge": ("ridge", "λ"),
    "noise_std": ("noise", "σ_ε"),
    "activation": ("activation", "σ"),
    "centre": ("centred", "E σ = 0"),
    "readout": ("readout law", ""),
    "residual": ("residual", ""),
    "initial": ("first layer", ""),
    "formula": ("target", "σ_⋆"),
    **{name: (f"degree {name[1]}", f"c^⋆_{name[1]}") for name in COEFFICIENTS},
}
GROUPS = (
    ("Gradient step", ("step", "step_exponent", "step_scale", "step_size")),
    ("Sizes", ("n", "phi", "psi", "step_ratio")),
    ("Readout fit", ("ridge", "noise_std")),
    ("Network", ("activation", "centre", "readout", "residual", "initial")),
    ("Target σ_⋆", ("target", *COEFFICIENTS, "formula")),
)
PANELS = {
    "spectrum": ("Spectrum", "singular values of the features"),
    "errors": ("Errors", ""),
    "learned": ("Learned function", "along the learned direction"),
    "degrees": ("Learned degrees", "overlaps with Hermite polynomials"),
}
WORDS = {
    "exponent": "exponent α",
    "size": "size η",
    "labels": "labels, y",
    "full": "full, y − f",
    "sphere": "unit sphere",
    "sliders": "Hermite sum",
}
OVER = {"exponent": "α", "samples": "n/d", "width": "N/n", "ridge": "λ"}
_LISTS = ("activation", "readout", "over")  # choices of many words
_PLAIN = str.maketrans("", "", "_^")
_TAGS = {"": "i", "_": "sub", "^": "sup"}


def symbol(text: str) -> Markup:
    """A paper's symbol: n_0 has a subscript, n^α a superscript."""
    parts = re.findall(r"([_^]?)([^_^/]+|/)", text)
    return Markup("").join(
        Markup("<{0}>{1}</{0}>").format(_TAGS[mark], part) for mark, part in parts
    )


def label_text(name: str) -> str:
    """A field's name and symbol as plain text."""
    return " ".join(LABELS[name]).translate(_PLAIN).strip()


def context(state: State, *, told: bool) -> dict[str, Any]:
    """What the template needs to draw the page for a state; `told`: its link was refused."""
    controls = {name: _control(name, getattr(state, name)) for name in LIMITS}
    title, symbol_of_target = GROUPS[-1][0].split()
    return {
        "state": state,
        "groups": [
            *((escape(name), fields) for name, fields in GROUPS[:-1]),
            (escape(title) + " " + symbol(symbol_of_target), GROUPS[-1][1]),
        ],
        "controls": controls,
        "panels": PANELS,
        "presets": PRESETS,
        "tiles": [(name, word, symbol(sign)) for name, word, sign in TILES],
        "known": {
            "fields": list(LIMITS),
            "numbers": {
                name: {"low": limits.low, "high": limits.high, "log": limits.log}
                for name, limits in LIMITS.items()
                if isinstance(limits, Number)
            },
            "switches": [name for name, limits in LIMITS.items() if isinstance(limits, Switch)],
            "presets": {name: preset.state.to_query() for name, preset in PRESETS.items()},
            "start": state.to_query(),
            "told": told,
        },
    }


def _control(name: str, value: Any) -> dict[str, Any]:
    """One field: its kind, its words, and where it stands."""
    limits = LIMITS[name]
    word, sign = LABELS.get(name, ("", ""))
    made: dict[str, Any] = {"word": word, "symbol": symbol(sign), "value": value}
    if isinstance(limits, Number):
        low, high = limits.low, limits.high
        if limits.log:
            low, high = math.log10(low), math.log10(high)
        left = low - (limits.step if limits.zero else 0.0)
        at = value
        if limits.log:
            at = math.log10(value) if value > 0 else left
        text = {"text": as_text(value), "label": label_text(name)}
        return {**made, **text, "kind": "number", "step": limits.step, "at": at, "low": left,
                "high": high}  # fmt: skip
    if isinstance(limits, Choice):
        words = OVER if name == "over" else WORDS
        options = [
            (option, words.get(option, option.replace("_", " "))) for option in limits.options
        ]
        return {**made, "kind": "list" if name in _LISTS else "choice", "options": options}
    return {**made, "kind": "switch" if isinstance(limits, Switch) else "text"}
