"""Plotly's script, from the installed package."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from flask import Flask, Response, send_file

from ..errors import FeaturestepError

ROUTE = "/plotly.min.js"
_YEAR = 365 * 24 * 3600


def plotly_address() -> str:
    """Where the page finds it; a browser may keep it until another version is installed."""
    return f"{ROUTE}?v={version('plotly')}"


def serve_plotly(server: Flask) -> None:
    """Add the script to what a server has."""
    script = _script()

    def answer() -> Response:
        return send_file(script, mimetype="text/javascript", max_age=_YEAR)

    server.add_url_rule(ROUTE, "plotly", answer)


def _script() -> Path:
    found = find_spec("plotly")
    for folder in (found.submodule_search_locations or ()) if found else ():
        script = Path(folder) / "package_data" / "plotly.min.js"
        if script.is_file():
            return script
    raise FeaturestepError("the installed plotly has no plotly.min.js; reinstall featurestep[page]")
