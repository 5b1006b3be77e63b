"""The controls: a slider and a box for every number, lists and switches for the rest."""

from __future__ import annotations

import math
import re
from typing import Any

from dash import dcc, html

from .state import COEFFICIENTS, LIMITS, Choice, Number, State, Text, as_text

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
    "formula": ("target", "σ⋆"),
    **{name: (f"degree {name[1]}", f"c^⋆_{name[1]}") for name in COEFFICIENTS},
}
_PLAIN = str.maketrans("", "", "_^")
_NUMBERS = [name for name, limits in LIMITS.items() if isinstance(limits, Number)]
_WORDS = {
    "exponent": "exponent α",
    "size": "size η",
    "labels": "labels, y",
    "full": "full, y − f",
    "sphere": "unit sphere",
    "gaussian": "Gaussian",
    "sliders": "Hermite sum",
    "formula": "formula",
}


def control_ids() -> list[tuple[str, str]]:
    """(id, property) of everything that a person can set."""
    numbers = [(f"{kind}-{name}", "value") for name in _NUMBERS for kind in ("slide", "box")]
    rest = [
        ("theme" if name == "theme" else f"pick-{name}", "data" if name == "theme" else "value")
        for name in LIMITS
        if name not in _NUMBERS
    ]
    return numbers + rest


def label_text(name: str) -> str:
    """A field's name and symbol as plain text."""
    return " ".join(LABELS[name]).translate(_PLAIN)


def controls(state: State) -> html.Aside:
    """All controls, set to a state."""
    groups = [
        (
            "Gradient step",
            [_segments("step", state), *_rows(state, "step_exponent", "step_scale", "step_size")],
        ),
        ("Sizes", _rows(state, "n", "phi", "psi", "step_ratio")),
        ("Readout fit", _rows(state, "ridge", "noise_std")),
        (
            "Network",
            [
                _dropdown("activation", state),
                _switch("centre", state),
                _dropdown("readout", state),
                _segments("residual", state),
                _segments("initial", state),
            ],
        ),
        (
            "Target σ⋆",
            [_segments("target", state), *_rows(state, *COEFFICIENTS), _formula(state)],
        ),
    ]
    sets = [html.Fieldset([html.Legend(title), *rows], className="group") for title, rows in groups]
    return html.Aside(sets, id="controls", **named("Controls"))


def named(name: str) -> Any:
    """The name that a screen reader tells."""
    return {"aria-label": name}


def _rows(state: State, *names: str) -> list[html.Div]:
    return [_number(name, getattr(state, name)) for name in names]


def _number(name: str, value: float) -> html.Div:
    limits = LIMITS[name]
    assert isinstance(limits, Number)
    low, high = limits.low, limits.high
    if limits.log:
        low, high = math.log10(low), math.log10(high)
    word, symbol = LABELS[name]
    return html.Div(
        [
            html.Label([f"{word} ", *symbols(symbol)], htmlFor=f"box-{name}"),
            dcc.Input(
                id=f"slide-{name}",
                type="range",
                min=low - (limits.step if limits.zero else 0),
                max=high,
                step=limits.step,
                value=_position(name, value),
                className="slide",
            ),
            dcc.Input(
                id=f"box-{name}",
                type="text",
                value=as_text(value),
                debounce=True,
                maxLength=24,
                className="box",
            ),
        ],
        id=f"row-{name}",
        className="row number",
    )


def _position(name: str, value: float) -> float:
    """Where the slider stands for a value: at its logarithm, or left of all for 0."""
    limits = LIMITS[name]
    assert isinstance(limits, Number)
    if not limits.log:
        return value
    return math.log10(value) if value > 0 else math.log10(limits.low) - limits.step


def symbols(text: str) -> list[Any]:
    """A paper's symbol: n_0 has a subscript, n^α a superscript."""
    kinds = {"": html.I, "_": html.Sub, "^": html.Sup}
    parts = re.findall(r"([_^]?)([^_^/]+|/)", text)
    return [kinds[mark](part) for mark, part in parts]


def _label(name: str, target: str) -> html.Label:
    word, symbol = LABELS[name]
    return html.Label([f"{word} ", *symbols(symbol)], htmlFor=target)


def _dropdown(name: str, state: State) -> html.Div:
    limits = LIMITS[name]
    assert isinstance(limits, Choice)
    options = [{"label": option.replace("_", " "), "value": option} for option in limits.options]
    picker = dcc.Dropdown(
        options=options,
        value=getattr(state, name),
        id=f"pick-{name}",
        clearable=False,
        searchable=False,
        className="picker",
    )
    return html.Div([_label(name, f"pick-{name}"), picker], className="row wide")


def _segments(name: str, state: State) -> html.Div:
    limits = LIMITS[name]
    assert isinstance(limits, Choice)
    radio = dcc.RadioItems(
        options=[{"label": _WORDS[option], "value": option} for option in limits.options],
        value=getattr(state, name),
        id=f"pick-{name}",
        className="segments",
    )
    head = [html.Span(LABELS[name][0], className="label")] if name in LABELS else []
    return html.Div([*head, radio], className="row wide" if head else "row full")


def _switch(name: str, state: State) -> html.Div:
    word, symbol = LABELS[name]
    box = dcc.Checklist(
        options=[{"label": f"{word}, {symbol}", "value": "on"}],
        value=["on"] if getattr(state, name) else [],
        id=f"pick-{name}",
        className="switch",
    )
    return html.Div([html.Span(className="label"), box], className="row wide")


def _formula(state: State) -> html.Div:
    limits = LIMITS["formula"]
    assert isinstance(limits, Text)
    box = dcc.Input(
        id="pick-formula",
        type="text",
        value=state.formula,
        debounce=True,
        maxLength=limits.longest,
        spellCheck="false",
        className="box formula",
    )
    hint = html.Small("H1 + H2/sqrt(2), or a name such as tanh")
    return html.Div(
        [_label("formula", "pick-formula"), box, hint], id="row-formula", className="row"
    )
