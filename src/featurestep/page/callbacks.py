"""What the page asks of the server: panels, simulations and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, no_update

from ..errors import FeaturestepError
from ..processes import always
from . import reproduce
from .controls import control_ids
from .jobs import Jobs
from .latest import Latest
from .layout import page
from .presets import PRESETS
from .state import State as View
from .views import Views, main_view, spectrum_view

_BUTTONS = ("save-svg", "save-png", "copy-link", "copy-python", "copy-shell")


def register(app: Dash, views: Views, jobs: Jobs) -> None:
    """Connect the controls, in the browser and to the server."""
    _register_client(app)

    latest = Latest()
    for lane in LANES:
        app.callback(
            Output(f"{lane.name}-answer", "data"),
            Input(f"{lane.name}-ask", "data"),
            prevent_initial_call=True,
        )(partial(panels, lane, views, latest))

    @app.callback(
        Output("job", "data"),
        Output("progress", "value"),
        Output("simulation", "children"),
        Output("tick", "disabled"),
        Output("finished", "data"),
        Input("simulate", "n_clicks"),
        Input("cancel", "n_clicks"),
        Input("tick", "n_intervals"),
        State("job", "data"),
        State("shown-ask", "data"),
        prevent_initial_call=True,
    )
    def simulate(_s: Any, _c: Any, _t: Any, job: Any, ask: Any) -> tuple[Any, ...]:
        try:
            return simulation(views, jobs, str(ctx.triggered_id), job, ask)
        except FeaturestepError as error:
            return None, "0", str(error), True, no_update

    @app.callback(
        Output("download", "data"),
        Input("save-csv", "n_clicks"),
        Input("save-json", "n_clicks"),
        State("shown-ask", "data"),
        prevent_initial_call=True,
    )
    def save(_csv: Any, _json: Any, ask: Any) -> Any:
        try:
            state = View.from_query(ask["q"])
            answers = views.answers(state)
            if ctx.triggered_id == "save-csv":
                return _file("featurestep.csv", reproduce.csv_text(state, answers))
            answers |= views.spectrum_answers(state)
            return _file("featurestep.json", reproduce.json_text(state, answers))
        except FeaturestepError:
            return no_update  # the page says already what is wrong


def _register_client(app: Dash) -> None:
    """What the browser does by itself, in `assets/explore.js`.

    Several callbacks and not one: Dash keeps a callback waiting while any of its inputs is being
    computed, and one lane must not wait for the other.
    """

    browser: Any = app  # the method is untyped

    def connect(function: str, output: str, *inputs: Any, initial: bool = False) -> None:
        browser.clientside_callback(
            ClientsideFunction("explore", function),
            Output(output, "data"),
            *inputs,
            prevent_initial_call=not initial,
        )

    presets = [Input(f"preset-{name}", "n_clicks") for name in PRESETS]
    controls = [Input(*control) for control in control_ids()]
    theme = Input("toggle-theme", "n_clicks")
    told = [State(name, "data") for name in ("known", "first")]
    connect("collect", "collected", *controls, *presets, theme, *told, initial=True)
    connect("overlay", "overlaid", Input("finished", "data"))
    connect("watch", "watched", Input("job", "data"))
    connect("press", "pressed", *(Input(name, "n_clicks") for name in _BUTTONS))


def _file(name: str, text: str) -> dict[str, Any]:
    return {"filename": name, "content": text, "base64": False, "type": None}


@dataclass(frozen=True)
class Lane:
    """Panels that are asked for together: those that wait for one part, which may be a draft."""

    name: str
    part: str
    graphs: tuple[str, ...]
    answers: Callable[..., dict[str, Any]]
    view: Callable[[View, Mapping[str, Any]], dict[str, Any]]

    def elements(self, views: Views, query: str, **how: Any) -> dict[str, Any]:
        """What each element shows, by its id; raises when the query is refused."""
        state = View.from_query(query)
        return self.view(state, self.answers(views, state, **how))


def panels(lane: Lane, views: Views, latest: Latest, ask: Any) -> dict[str, Any]:
    """A lane's figures and texts by id, with the question's number sent back.

    `fine` tells whether a full answer is still to be asked for, once the controls rest.
    """
    answer = {"seq": ask["seq"], "refused": False, "fine": True}
    wanted = latest.note(ask.get("page", ""), lane.name, ask["seq"]) if "page" in ask else always
    try:
        draft = bool(ask.get("draft")) and not views.knows(View.from_query(ask["q"]), lane.part)
        shown = lane.elements(views, ask["q"], draft=draft, wanted=wanted)
    except FeaturestepError as error:
        return {**answer, "refused": True, "figures": {}, "texts": {"message": str(error)}}
    figures = {name: shown.pop(name) for name in lane.graphs}
    return {**answer, "fine": not draft, "figures": figures, "texts": shown}


def first_page(views: Views, link: str) -> Any:
    """The layout as a link asks for it, drawn already; a bad link is told, and not followed."""
    try:
        state, wrong = View.from_query(link), {}
        _ = state.problem
    except FeaturestepError as error:
        state, wrong = View(), {"message": f"{error} (this is the default view)"}
    shown: dict[str, Any] = {}
    for lane in LANES:
        if lane.name == "main" or views.knows(state, lane.part):
            shown |= lane.elements(views, state.to_query())
    return page(state, {**shown, **wrong})


def simulation(
    views: Views, jobs: Jobs, trigger: str, name: str | None, ask: dict[str, Any]
) -> tuple[Any, ...]:
    """Start, watch or cancel: job, progress, text, whether to stop asking, what has finished."""
    if trigger == "simulate":
        if name is not None:
            jobs.cancel(name)
        name = jobs.start(View.from_query(ask["q"]))
        return name, "0", "training …", False, no_update
    if name is None:
        return None, "0", no_update, True, no_update
    # One callback for three triggers: the browser drops an answer that a newer question has
    # overtaken, so that whoever asks again is told the end again.
    known = jobs.ended(name)
    if known is not None:
        return known
    if trigger == "cancel":
        return jobs.end(name, (None, "0", "cancelled", True, no_update))
    job = jobs.look(name)
    if job is None:
        return None, "0", no_update, True, no_update
    if job.running:  # the progress and nothing else
        return no_update, f"{job.share:.3f}", no_update, no_update, no_update
    if job.data is None:
        return jobs.end(name, (None, "0", job.error, True, no_update))
    views.keep(job.asked, job.state, job.data)
    size = f", n = {job.state.n:,}" if job.state.n != job.asked.n else ""
    return jobs.end(name, (None, "1", f"{job.data['seeds']} draws{size}", True, name))


LANES = (
    Lane("main", "curve", ("graph-errors", "graph-learned"), Views.answers, main_view),
    Lane(
        "spectrum",
        "spectrum",
        ("graph-spectrum", "graph-degrees"),
        Views.spectrum_answers,
        spectrum_view,
    ),
)
