"""The server: Flask behind waitress, for this machine and its own page only."""

from __future__ import annotations

import logging
import socket

from flask import Flask, Response, request
from waitress.server import create_server

from .jobs import Jobs
from .routes import make_app
from .views import Views

THREADS = 40  # most of them wait for a worker: ten pages with a spectrum each leave room
MAX_BODY = 16 * 1024  # bytes, of headers too; the page's own questions are about 1 KiB
_LIMITS = {
    **{"threads": THREADS, "connection_limit": 200, "channel_timeout": 60, "ident": None},
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
    logging.getLogger("waitress").setLevel(logging.ERROR)  # nothing of it helps a user
    server = Server(opened, views)
    try:
        server.run()
    finally:
        server.close()
