"""The server: Dash behind waitress, on this machine only."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dash import Dash, html
from flask import has_request_context, request
from waitress.server import create_server

from .callbacks import first_page, register
from .guard import MAX_BODY, Guard
from .jobs import Jobs
from .plotly_script import serve_plotly
from .views import Views

THREADS = 40  # most of them wait for a worker: ten pages with a spectrum each leave room
_TITLE = "featurestep"


class Server:
    """A page that is served by `run` until `close`."""

    def __init__(self, opened: socket.socket, views: Views) -> None:
        self.jobs = Jobs()
        self.views = views
        self.app = make_app()
        self.app.layout = self._layout
        serve_plotly(self.app.server)
        register(self.app, self.views, self.jobs)
        Guard(self.app, opened.getsockname()[1]).protect(self.app.server)
        self._server = create_server(
            self.app.server,
            sockets=[opened],
            threads=THREADS,
            max_request_body_size=MAX_BODY,
            max_request_header_size=16 * 1024,
            connection_limit=200,
            channel_timeout=60,
            ident=None,
        )

    def _layout(self) -> Any:
        """The page as its address asks for it, which the request for the layout refers to.

        Dash asks for one when it is set up, too: that one nobody sees, and nothing waits for it.
        """
        if not has_request_context() or request.path != "/_dash-layout":
            return html.Div()
        return first_page(self.views, urlsplit(request.referrer or "").query)

    def run(self) -> None:
        """Serve until interrupted or closed."""
        self._server.run()

    def close(self) -> None:
        """Stop serving and end the simulations; the workers are their owner's."""
        self._server.close()
        self.jobs.close()


def make_app() -> Dash:
    """The Dash application: everything from this machine, nothing for developers."""
    return Dash(
        __name__,
        title=_TITLE,
        update_title="",
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
        add_log_handler=False,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
    )


def serve(opened: socket.socket, views: Views) -> None:
    """Serve the page until Ctrl-C."""
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    views.begin()
    server = Server(opened, views)
    try:
        server.run()
    finally:
        server.close()
