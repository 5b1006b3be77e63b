"""The controls as the template draws them: words, symbols, and where every slider stands."""

from __future__ import annotations

import math
import re
from typing import Any

from markupsafe import Markup

from .presets import PRESETS
from .state import COEFFICIENTS, LABELS, LIMITS, NUMBERS, Choice, Number, State, as_text
from .words import TILES

GROUPS = (
    ("Gradient step", "", ("step", "step_exponent", "step_scale", "step_size", "steps")),
    ("Sizes", "", ("n", "phi", "psi", "step_ratio")),
    ("Readout fit", "", ("rows", "ridge", "loss", "intercept")),
    ("Data", "", ("noise_std", "covariance")),
    ("Network", "", ("activation", "centre", "readout", "residual", "initial")),
    ("Target", "σ_⋆", ("target", *COEFFICIENTS, "formula")),
    ("Compare with", "", ("isotropic",)),
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
    "fresh": "fresh",
    "same": "the step's",
    "square_signs": "square, labels ±1",
    "logistic": "logistic, labels ±1",
    "squared_hinge": "squared hinge, labels ±1",
    "hinge": "hinge, labels ±1",
    "huber": "Huber",
    "identity": "identity",
    "power_half": "eigenvalue i ∝ 1/√i",
    "power_one": "eigenvalue i ∝ 1/i",
    "two_levels": "10 % eleven times larger",
}
OVER = {"exponent": "α", "samples": "n/d", "width": "N/n", "ridge": "λ"}
_LISTS = ("activation", "readout", "over", "loss", "covariance")  # choices of many words
_PLAIN = str.maketrans("", "", "_^")
_TAGS = {"": "i", "_": "sub", "^": "sup"}


def symbol(text: str) -> Markup:
    """A paper's symbol: n_0 has a subscript, n^α a superscript."""
    parts = re.findall(r"([_^]?)([^_^/]+|/)", text)
    return Markup("").join(
        Markup("<{0}>{1}</{0}>").format(_TAGS[mark], part) for mark, part in parts
    )


def context(state: State, *, told: bool) -> dict[str, Any]:
    """What the template needs to draw the page for a state; `told`: its link was refused."""
    return {
        "state": state,
        "groups": [(title, symbol(sign), fields) for title, sign, fields in GROUPS],
        "controls": {name: _control(name, getattr(state, name)) for name in LIMITS},
        "panels": PANELS,
        "presets": PRESETS,
        "tiles": [(name, word, symbol(sign)) for name, (word, sign, _) in TILES.items()],
        "known": {
            "fields": list(LIMITS),
            "numbers": {
                n: {"low": x.low, "high": x.high, "log": x.log} for n, x in NUMBERS.items()
            },
            "switches": [n for n, x in LIMITS.items() if isinstance(x, Choice) and x.is_switch],
            "presets": {name: preset.state.to_query() for name, preset in PRESETS.items()},
            "start": state.to_query(),
            "told": told,
        },
    }


def _control(name: str, value: Any) -> dict[str, Any]:
    """One field: its kind, its words, and what it is set to; the script puts sliders in place."""
    limits = LIMITS[name]
    word, sign = LABELS[name]
    made: dict[str, Any] = {"word": word, "symbol": symbol(sign), "value": value}
    if isinstance(limits, Number):
        ends = (math.log10(limits.low), math.log10(limits.high)) if limits.log else ()
        low, high = ends or (limits.low, limits.high)
        label = f"{word} {sign}".translate(_PLAIN)
        made |= {"kind": "number", "text": as_text(value), "label": label, "step": limits.step}
        return {**made, "low": low - limits.zero * limits.step, "high": high}
    if isinstance(limits, Choice) and limits.is_switch:
        return {**made, "kind": "switch"}
    if isinstance(limits, Choice):
        words = OVER if name == "over" else WORDS
        options = [(each, words.get(each, each.replace("_", " "))) for each in limits.options]
        return {**made, "kind": "list" if name in _LISTS else "choice", "options": options}
    return {**made, "kind": "text"}
