"""Who may ask, and what: the server's own machine, its own page, payloads of the known shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dash import Dash
from flask import Flask, Response, request

from .plotly_script import ROUTE
from .state import MAX_QUERY

MAX_BODY = 16 * 1024  # bytes; the page's own requests are about 3 KiB
_CALLBACK = "/_dash-update-component"
_PATHS = ("/", "/_dash-layout", "/_dash-dependencies", "/_favicon.ico", _CALLBACK, ROUTE)
_FOLDERS = ("/_dash-component-suites/", "/assets/")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,24}")
_MOST_CLICKS = 10**9
_ASKED = {"q", "seq", "draft", "page"}


class Guard:
    """Checks every request before Dash sees it, and sets the headers of every answer."""

    def __init__(self, app: Dash, port: int) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        if port == 80:
            self.hosts |= {"127.0.0.1", "localhost"}
        self._policy = ""

    def protect(self, server: Flask) -> None:
        """Put the checks in front of a server."""
        server.config["MAX_CONTENT_LENGTH"] = MAX_BODY
        server.before_request(self.check)
        server.after_request(self.dress)

    def check(self) -> tuple[str, int] | None:
        """A refusal with its reason, or None."""
        if request.host not in self.hosts:
            return "this server answers to 127.0.0.1 and localhost only\n", 403
        origin = request.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return "this server answers to its own page only\n", 403
        if request.path not in _PATHS and not request.path.startswith(_FOLDERS):
            return "not found\n", 404
        if request.path == _CALLBACK and request.method == "POST":
            reason = self._wrong_with(_body())
            return (f"{reason}\n", 400) if reason else None
        return None

    def dress(self, response: Response) -> Response:
        """Nothing from elsewhere, in no frame, of no guessed type."""
        if not self._policy:
            hashes = " ".join(self.app.csp_hashes())
            self._policy = (
                f"default-src 'self'; script-src 'self' {hashes}; "
                "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
                "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            )
        response.headers["Content-Security-Policy"] = self._policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        response.headers["Referrer-Policy"] = "same-origin"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return response

    def _wrong_with(self, body: Any) -> str:
        """Why a callback's payload is refused; empty when it is as the page sends it."""
        if not isinstance(body, dict):
            return "the body must be a JSON object"
        known = self.app.callback_map.get(body["output"]) if _is_text(body.get("output")) else None
        if known is None:
            return "output must name a callback"
        names = known["output"] if isinstance(known["output"], list) else [known["output"]]
        outputs = [{"id": o.component_id, "property": o.component_property} for o in names]
        sent = body.get("outputs")
        if (sent if isinstance(sent, list) else [sent]) != outputs:
            return "outputs must be those of the callback"
        for kind in ("inputs", "state"):
            sent, expected = body.get(kind, []), known[kind]
            if not isinstance(sent, list) or len(sent) != len(expected):
                return f"{kind} must be those of the callback"
            for given, wanted in zip(sent, expected, strict=True):
                if reason := _wrong_value(given, wanted):
                    return f"{kind}: {reason}"
        return self._wrong_trigger(body, known)

    @staticmethod
    def _wrong_trigger(body: Mapping[str, Any], known: Mapping[str, Any]) -> str:
        inputs = [f"{item['id']}.{item['property']}" for item in known["inputs"]]
        changed = body.get("changedPropIds", [])
        if not isinstance(changed, list) or not all(_is_text(c) and c in inputs for c in changed):
            return "changedPropIds must be inputs of the callback"
        extra = set(body) - {"output", "outputs", "inputs", "state", "changedPropIds"}
        if extra - {"parsedChangedPropsIds"}:
            return "the body has unknown members"
        parsed = body.get("parsedChangedPropsIds", [])
        if not isinstance(parsed, list) or len(parsed) > len(inputs):
            return "parsedChangedPropsIds must be a list"
        return "" if all(_is_text(p) for p in parsed) else "parsedChangedPropsIds must be texts"


def _body() -> Any:
    try:
        return request.get_json(silent=True)
    except RecursionError:  # nested deeper than any parser goes
        return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _wrong_value(given: Any, wanted: Mapping[str, str]) -> str:
    if not isinstance(given, dict) or not set(given) <= {"id", "property", "value"}:
        return "each must have an id, a property and a value"
    name = f"{wanted['id']}.{wanted['property']}"
    if (given.get("id"), given.get("property")) != (wanted["id"], wanted["property"]):
        return f"expected {name}"
    value = given.get("value")
    if name.endswith("-ask.data"):
        return "" if _is_ask(value) else f"{name} must be {{q, seq}}"
    if name == "job.data":
        fits = value is None or (_is_text(value) and _NAME.fullmatch(value))
        return "" if fits else "job.data must be a job's name"
    fits = value is None or _is_count(value)
    return "" if fits else f"{name} must be a count"


def _is_ask(value: Any) -> bool:
    if not isinstance(value, dict) or not {"q", "seq"} <= set(value) <= _ASKED:
        return False
    page = value.get("page", "-")
    if not isinstance(value.get("draft", False), bool) or not _is_text(page):
        return False
    if not _is_text(value["q"]) or len(value["q"]) > MAX_QUERY or not _is_count(value["seq"]):
        return False
    return _NAME.fullmatch(page) is not None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_CLICKS
