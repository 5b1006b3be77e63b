"""The one address the page is served at: this machine's own."""

from __future__ import annotations

import socket
from typing import Any

from ..errors import InvalidProblem

HOST = "127.0.0.1"
_BACKLOG = 64


def listener(port: Any) -> socket.socket:
    """A socket that listens on this machine only; port 0 takes a free one.

    Who connects before the server runs is kept waiting, not turned away.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise InvalidProblem("port", "must be a whole number from 0 to 65535", port)
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((HOST, port))
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        reason = error.strerror or "it cannot be used"
        raise InvalidProblem("port", f"must be free ({reason.lower()})", port) from None
    return opened


def address(opened: socket.socket) -> str:
    """Where the page is."""
    return f"http://{HOST}:{opened.getsockname()[1]}/"
