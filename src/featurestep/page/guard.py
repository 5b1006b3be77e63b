"""Who may ask: this machine, from the server's own page. What the browser may load: ours."""

from __future__ import annotations

from flask import Flask, Response, request

MAX_BODY = 16 * 1024  # bytes; the page's own questions are about 1 KiB
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)  # Plotly writes its styles into the document
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
        return response
