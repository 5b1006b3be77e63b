"""The page's elements: controls on the left, the sentence on top, four panels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import dcc, html

from .controls import controls, label_text, named, symbols
from .figures import message
from .plotly_script import plotly_address
from .presets import PRESETS
from .state import LIMITS, Number, State, Switch
from .words import TILES

PANELS = {
    "spectrum": ("Spectrum", "singular values of the features, F/√n"),
    "errors": ("Errors", "train and test"),
    "learned": ("Learned function", "along the learned direction"),
    "degrees": ("Learned degrees", "overlaps with Hermite polynomials"),
}
GRAPHS = tuple(f"graph-{name}" for name in PANELS)
LIVE: Any = {"aria-live": "polite"}
_OVER = {"exponent": "α", "samples": "n/d", "width": "N/n", "ridge": "λ"}


def page(state: State, shown: Mapping[str, Any]) -> html.Div:
    """The whole page: its controls set to a state, its panels and texts (by id) as shown first.

    Later texts are written by `assets/explore.js`, for React renders much to change a word.
    """
    return html.Div(
        [
            *_memory(state, shown),
            _header(),
            html.Div([controls(state), _content(state, shown)], className="columns"),
        ],
        id="page",
    )


def _memory(state: State, shown: Mapping[str, Any]) -> list[Any]:
    """Stores: what is asked, and what the script needs to know and to draw first."""
    numbers = {
        name: {"low": limits.low, "high": limits.high, "log": limits.log, "zero": limits.zero}
        for name, limits in LIMITS.items()
        if isinstance(limits, Number)
    }
    known = {
        "fields": list(LIMITS),
        "numbers": numbers,
        "labels": {name: label_text(name) for name in numbers},
        "switches": [name for name, limits in LIMITS.items() if isinstance(limits, Switch)],
        "presets": {name: preset.state.to_query() for name, preset in PRESETS.items()},
        "start": state.to_query(),
        "path": "/_dash-update-component",
        "plotly": plotly_address(),
        "drawn": "graph-spectrum" in shown,  # whether the spectrum came with the page
    }
    first = {name: shown.get(name) or message(state, "") for name in GRAPHS}
    ask = {"q": state.to_query(), "seq": 0}
    return [
        dcc.Store(id="known", data=known),
        dcc.Store(id="first", data=first),
        dcc.Store(id="theme", data=state.theme),
        *(dcc.Store(id=f"{name}-ask", data=ask) for name in ("shown", "main", "spectrum")),
        *(dcc.Store(id=name) for name in ("job", "finished")),
        # Outputs that callbacks must have; the browser's own never set them.
        *(dcc.Store(id=f"{name}-answer") for name in ("main", "spectrum")),
        *(dcc.Store(id=name) for name in ("collected", "overlaid", "watched", "pressed")),
        dcc.Download(id="download"),
        dcc.Interval(id="tick", interval=300, disabled=True),
    ]


def _header() -> html.Header:
    buttons = [
        html.Button(preset.title, id=f"preset-{name}", title=preset.text, className="preset")
        for name, preset in PRESETS.items()
    ]
    return html.Header(
        [
            html.H1("featurestep"),
            html.Nav(buttons, **named("Presets")),
            html.Button("Copy link", id="copy-link", title="A link that carries this whole view"),
            html.Button("Dark", id="toggle-theme", title="Light or dark"),
        ]
    )


def _content(state: State, shown: Mapping[str, Any]) -> html.Main:
    return html.Main(
        [
            html.Section(
                [
                    html.P(
                        [
                            html.Span(shown.get("spikes"), id="spikes"),
                            " ",
                            html.Span(shown.get("sentence"), id="sentence"),
                        ],
                        id="words",
                        **LIVE,
                    ),
                    html.Div([_tile(*tile, shown) for tile in TILES], id="numbers"),
                    html.P(shown.get("message"), id="message", role="alert"),
                ],
                className="summary",
            ),
            html.Div([_panel(name, state) for name in PANELS], className="panels"),
            html.Details(
                [
                    html.Summary("How far to trust this"),
                    *(
                        html.Ul([html.Li(note) for note in shown.get(name, ())], id=name)
                        for name in ("notes", "notes-spectrum")
                    ),
                ],
                id="validity",
            ),
            _export(shown),
        ]
    )


def _tile(name: str, word: str, symbol: str, shown: Mapping[str, Any]) -> html.Div:
    value = shown.get(f"value-{name}", "–")
    return html.Div([html.Span([f"{word} ", *symbols(symbol)]), html.B(value, id=f"value-{name}")])


def _panel(name: str, state: State) -> html.Section:
    title, text = PANELS[name]
    head: list[Any] = [html.H2(title, id=f"title-{name}"), html.Span(text, className="hint")]
    if name == "errors":
        head = [head[0], _over(state), *_simulation()]
    layers = [html.Div(className="plot"), html.Div(className="sketch")]
    graph = html.Div(layers, id=f"graph-{name}")
    labelled: Any = {"aria-labelledby": f"title-{name}"}
    return html.Section(
        [html.Div(head, className="head"), html.Div(graph, className="graph")],
        className="panel",
        id=f"panel-{name}",
        **labelled,
    )


def _over(state: State) -> html.Div:
    picker = dcc.Dropdown(
        options=[{"label": f"against {text}", "value": name} for name, text in _OVER.items()],
        value=state.over,
        id="pick-over",
        clearable=False,
        searchable=False,
        className="picker",
    )
    return html.Div(picker, className="over")


def _simulation() -> list[Any]:
    return [
        html.Div(
            [
                html.Progress(id="progress", value="0", max="1", **named("Simulation")),
                html.Span(id="simulation", **LIVE),
                html.Button("Cancel", id="cancel"),
                html.Button(
                    "Simulate",
                    id="simulate",
                    title="Train the real network at six points of the axis",
                ),
            ],
            className="simulation",
        )
    ]


def _export(shown: Mapping[str, Any]) -> html.Details:
    return html.Details(
        [
            html.Summary("Take it with you: figures, data, code"),
            html.Div(
                [
                    html.Button("Figures, SVG", id="save-svg"),
                    html.Button("Figures, PNG", id="save-png"),
                    html.Button("Data, CSV", id="save-csv"),
                    html.Button("Data, JSON", id="save-json"),
                ],
                className="buttons",
            ),
            html.H3("Python"),
            html.Div(
                [html.Pre(shown.get("python"), id="python"), html.Button("Copy", id="copy-python")],
                className="code",
            ),
            html.H3("Command line"),
            html.Div(
                [html.Pre(shown.get("shell"), id="shell"), html.Button("Copy", id="copy-shell")],
                className="code",
            ),
        ],
        id="export",
    )
