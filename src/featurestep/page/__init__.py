"""The live page behind `featurestep explore`: every control at hand, every panel computed.

One way through: `state` (what is asked, validated) → `panels` (the engine's answers as plain data,
computed by `pool` in worker processes under a deadline) → `views` (figures and texts of them, by
`figures` and `words`) → `server` (JSON). `assets` asks the server and draws with Plotly.
The server does not load the engine, the workers no Flask.
"""

from __future__ import annotations

import socket
from typing import Any

from ..core.errors import InvalidProblem

HOST = "127.0.0.1"


def listener(port: Any) -> socket.socket:
    """A socket that listens on this machine only; port 0 takes a free one.

    Who connects before the server runs is kept waiting, not turned away.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise InvalidProblem("port", "must be a whole number from 0 to 65535", port)
    try:
        return socket.create_server((HOST, port), backlog=64)
    except OSError as error:
        reason = (error.strerror or "it cannot be used").partition(" (while")[0]
        raise InvalidProblem("port", f"must be free ({reason.lower()})", port) from None


def address(opened: socket.socket) -> str:
    """Where the page is."""
    return f"http://{HOST}:{opened.getsockname()[1]}/"
