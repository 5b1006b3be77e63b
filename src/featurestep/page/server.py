"""The server: Flask behind waitress, on this machine only."""

from __future__ import annotations

import logging
import socket

from waitress.server import create_server

from .guard import MAX_BODY, protect
from .jobs import Jobs
from .routes import make_app
from .views import Views

THREADS = 40  # most of them wait for a worker: ten pages with a spectrum each leave room


class Server:
    """A page that is served by `run` until `close`."""

    def __init__(self, opened: socket.socket, views: Views) -> None:
        self.jobs = Jobs()
        self.app = make_app(views, self.jobs)
        protect(self.app, opened.getsockname()[1])
        self._server = create_server(
            self.app,
            sockets=[opened],
            threads=THREADS,
            max_request_body_size=MAX_BODY,
            max_request_header_size=16 * 1024,
            connection_limit=200,
            channel_timeout=60,
            ident=None,
        )

    def run(self) -> None:
        """Serve until interrupted or closed."""
        self._server.run()

    def close(self) -> None:
        """Stop serving and end the simulations; the workers are their owner's."""
        self._server.close()
        self.jobs.close()


def serve(opened: socket.socket, views: Views) -> None:
    """Serve the page until Ctrl-C."""
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    views.begin()
    server = Server(opened, views)
    try:
        server.run()
    finally:
        server.close()
