"""The server: Flask behind waitress, for this machine and its own page only.

JSON in and out. A question of the wrong shape is a 400; a state that is refused is an answer, with
the one line that says why and the field to mark.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, metadata, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flask import Flask, Response, render_template, request, send_file, send_from_directory
from waitress.server import create_server

from ..core.errors import FeaturestepError, InvalidProblem, install_command
from .figures import THEMES
from .pool import Jobs
from .state import MAX_QUERY, PLAIN, Choice, Limits, Number, PageState, Text
from .views import LANES, VIEWS, Views, csv_text, json_text
from .words import context

HOW = ("draft", "full")  # how exactly: what follows a slider, and what is shown at rest
_MAX_LANES = 1024  # lanes of open pages that are told apart
_QUERY = Text(MAX_QUERY)
_NAME = Text(24, "[A-Za-z0-9_-]+")
# What one lane's panels show of a state; who is overtaken by the same page is dropped.
QUESTION: dict[str, Limits] = {
    "lane": Choice(LANES),
    "q": _QUERY,
    "seq": Number(0, 10**9, whole=True),
    "how": Choice(HOW),
    "page": _NAME,
}
# Start a simulation of a state, look at one, or cancel it.
START: dict[str, Limits] = {"action": Choice(("start",)), "q": _QUERY}
WATCH: dict[str, Limits] = {"action": Choice(("look", "cancel")), "job": _NAME}


def checked(body: Any, limits: dict[str, Limits]) -> dict[str, Any]:
    """A request's JSON with exactly these members, each within its limits, or InvalidProblem."""
    if not isinstance(body, dict) or set(body) != set(limits):
        raise InvalidProblem("body", f"must be JSON of {', '.join(limits)}", type(body).__name__)
    return {name: each.check(name, body[name]) for name, each in limits.items()}


class Latest:
    """The newest question of each lane of each page: who asks anew no longer waits for the old."""

    def __init__(self) -> None:
        self._numbers: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, page: str, lane: str, number: int) -> Callable[[], bool]:
        """Take in a question; the function returned tells whether it is still the newest."""
        key = (page, lane)
        with self._lock:
            self._numbers[key] = max(number, self._numbers.pop(key, 0))
            while len(self._numbers) > _MAX_LANES:
                self._numbers.popitem(last=False)

        def wanted() -> bool:
            return self._numbers.get(key, number) <= number

        return wanted


_DOCUMENTS = ("theory", "explore", "spectrum", "sweep")
SITE = Path(__file__).parents[3] / "build" / "docs"  # of a checkout, by `make docs`
_YEAR = 365 * 24 * 3600
Answer = dict[str, Any]
_IDLE: Answer = {"job": None, "share": 0.0, "text": "", "done": False}  # of simulations


def make_app(views: Views, jobs: Jobs) -> Flask:
    """Everything the server answers to."""
    app = Flask(__name__, static_folder="assets", static_url_path="/assets")
    app.json.sort_keys = False  # type: ignore[attr-defined]
    latest, script = Latest(), _plotly()
    pages: dict[str, Callable[..., Any]] = {
        "/": front,
        "/plotly.min.js": lambda: send_file(script, "text/javascript", max_age=_YEAR),
        "/featurestep.csv": lambda: _data(views, "text/csv", csv_text),
        "/featurestep.json": lambda: _data(views, "application/json", json_text),
        "/docs/<path:name>": document,
    }
    posts: dict[str, Callable[[], Answer]] = {
        "/answers": lambda: panels(views, latest, **checked(_body(), QUESTION)),
        "/simulation": lambda: simulation(views, jobs, _body()),
    }
    for path, page in pages.items():
        app.add_url_rule(path, path, page)
    for path, answer in posts.items():
        app.add_url_rule(path, path, answer, methods=["POST"])
    app.register_error_handler(InvalidProblem, lambda error: (f"{error}\n", 400))
    return app


def _body() -> Any:
    """A request's JSON; what cannot be parsed, nested too deep included, is None."""
    with contextlib.suppress(RecursionError):
        return request.get_json(silent=True)


def front() -> str:
    """The page, its controls set as the address asks; a bad link is told, and not followed."""
    try:
        state, wrong = PageState.from_query(request.query_string.decode("ascii", "replace")), ""
        _ = state == PLAIN or state.problem  # that of a plain address is known to be one
    except FeaturestepError as error:
        theme = request.args.get("theme")
        state = PageState(theme=theme) if theme in THEMES else PLAIN
        wrong = f"{error} (this is the default view)"
    known = context(state, told=bool(wrong))
    return render_template(
        "page.html", plotly=version("plotly"), docs=documents(), message=wrong, **known
    )


def panels(
    views: Views, latest: Latest, *, lane: str, q: str, seq: int, how: str, page: str
) -> Answer:
    """A lane's figures and texts by id, with the question's number sent back.

    `next` tells how it is still to be asked for, once the controls rest; nothing if all is there.
    """
    wanted = latest.note(page, lane, seq)
    answer: Answer = {"seq": seq, "refused": False, "next": "", "field": ""}
    try:
        state = PageState.from_query(q)
        answers, further = views.answers(state, lane, how, wanted=wanted)
        figures, texts = VIEWS[lane](state, answers)
    except FeaturestepError as error:
        field = error.parameter if isinstance(error, InvalidProblem) else ""
        told = {"field": field, "figures": {}, "texts": {"message": str(error)}}
        return {**answer, "refused": True, **told}
    return {**answer, "next": further, "figures": figures, "texts": texts}


def simulation(views: Views, jobs: Jobs, body: Any) -> Answer:
    """Where a simulation stands: its name while it runs, progress, a text, whether it is done."""
    if isinstance(body, dict) and body.get("action") == "start":
        try:
            name = jobs.start(PageState.from_query(checked(body, START)["q"]))
        except FeaturestepError as error:
            if isinstance(error, InvalidProblem) and error.parameter in START:
                raise
            return {**_IDLE, "text": str(error)}
        return {**_IDLE, "job": name, "text": "training …"}
    action, name = checked(body, WATCH).values()
    job = jobs.look(name)
    if job is None:
        return _IDLE
    if action == "cancel":
        jobs.cancel(name)
        return {**_IDLE, "text": "cancelled"}
    if job.running:
        return {"job": name, "share": job.share, "text": "training …", "done": False}
    jobs.cancel(name)
    if isinstance(job.found, Exception):
        return {**_IDLE, "text": str(job.found)}
    views.keep(job.asked, job.state, job.found)
    size = f", n = {job.state.n:,}" if job.state.n != job.asked.n else ""
    return {**_IDLE, "text": f"□ {job.found['seeds']} draws{size}", "done": True}


def _data(views: Views, kind: str, text: Callable[[PageState, Answer], str]) -> Response:
    """Every number of the page's state, as a file."""
    state = PageState.from_query(request.query_string.decode("ascii", "replace"))
    try:
        answers = views.answers(state, "main")[0] | views.answers(state, "spectrum")[0]
    except InvalidProblem:
        raise
    except FeaturestepError as error:
        return Response(f"{error}\n", 503, mimetype="text/plain")
    return Response(
        text(state, answers), mimetype=kind, headers={"Content-Disposition": "attachment"}
    )


def documents() -> dict[str, str]:
    """Addresses of the documentation's pages, by name: the built site's or the repository's."""
    if (SITE / "index.html").is_file():
        return {
            name: f"/docs/{name}.html" for name in _DOCUMENTS if (SITE / f"{name}.html").is_file()
        }
    with contextlib.suppress(PackageNotFoundError):
        urls = metadata("featurestep").get_all("Project-URL") or ()
        known = dict(url.split(", ", 1) for url in urls)
        if "Repository" in known:
            return {name: f"{known['Repository']}/blob/main/docs/{name}.md" for name in _DOCUMENTS}
    return {}


def document(name: str) -> Response:
    """A file of the built site."""
    return send_from_directory(SITE, name)


def _plotly() -> Path:
    """Plotly's script, from the installed package."""
    found = find_spec("plotly")
    for folder in (found.submodule_search_locations or ()) if found else ():
        script = Path(folder) / "package_data" / "plotly.min.js"
        if script.is_file():
            return script
    how = install_command("page")
    raise FeaturestepError(f"the installed plotly has no plotly.min.js; reinstall it: {how}")


MAX_THREADS = 40  # most of them wait for a worker: ten pages with a spectrum each leave room
MAX_BODY = 16 * 1024  # bytes, of headers too; the page's own questions are about 1 KiB
_LIMITS = {
    **{"threads": MAX_THREADS, "connection_limit": 200, "channel_timeout": 60, "ident": None},
    **{"max_request_body_size": MAX_BODY, "max_request_header_size": MAX_BODY},
}
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)  # Plotly writes its styles into the document
_INLINE = "script-src 'self' 'unsafe-inline'; font-src 'self' data:"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def protect(app: Flask, port: int) -> None:
    """Refuse other hosts, which stops DNS rebinding, and other pages; set all answers' headers."""
    hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
    if port == 80:
        hosts |= {"127.0.0.1", "localhost"}
    origins = {f"http://{host}" for host in hosts}
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY

    @app.before_request
    def check() -> tuple[str, int] | None:
        if request.host not in hosts:
            return "this server answers to 127.0.0.1 and localhost only\n", 403
        if request.headers.get("Origin") not in {None, *origins}:
            return "this server answers to its own page only\n", 403
        return None

    @app.after_request
    def dress(response: Response) -> Response:
        response.headers.update(_HEADERS)
        if request.path.startswith("/docs/"):  # Sphinx writes scripts into its pages
            response.headers["Content-Security-Policy"] = f"{_POLICY}; {_INLINE}"
        return response


class Server:
    """A page that is served by `run` until `close`."""

    def __init__(self, opened: socket.socket, views: Views) -> None:
        self.jobs = Jobs()
        self.app = make_app(views, self.jobs)
        protect(self.app, opened.getsockname()[1])
        self._server = create_server(self.app, sockets=[opened], **_LIMITS)

    def run(self) -> None:
        """Serve until interrupted or closed."""
        self._server.run()

    def close(self) -> None:
        """Stop serving and end the simulations; the workers are their owner's."""
        self._server.close()
        self.jobs.close()


def serve(opened: socket.socket, views: Views) -> None:
    """Serve the page until Ctrl-C."""
    log = logging.getLogger("waitress")
    log.setLevel(logging.ERROR)  # nothing of it helps a user
    server = Server(opened, views)
    try:
        server.run()
    finally:
        log.setLevel(logging.CRITICAL)  # answers under way fail now
        server.close()
