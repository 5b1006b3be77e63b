"""`featurestep explore`: the live page, in a browser on this machine."""

from __future__ import annotations

import signal
import socket
from importlib.util import find_spec

import click

from ..core.axes import read_number
from ..core.errors import install_command


class MissingExtra(click.ClickException):
    """The page's packages are not installed: one line says how to install them."""

    exit_code = 2


@click.command()
@click.option(
    "--port", metavar="PORT", default="8050", show_default=True, help="port of the page; 0: any"
)
@click.option("--browser/--no-browser", default=True, help="open the page in a browser")
def explore(port: str, browser: bool) -> None:
    """Open an interactive page in the browser.

    There is a control for every field; the plots of the spectrum, the errors, the learned function
    and the learned degrees update as you move it. The button Simulate trains real networks and
    adds them to the plots. The page is served to this machine only and loads nothing from other
    hosts. Ctrl-C ends it.

    \b
    Examples
      featurestep explore
      featurestep explore --port 0 --no-browser
    """
    missing = [name for name in ("flask", "plotly", "waitress") if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"the page needs {' and '.join(missing)}: {install_command('page')}")
    from ..page import address, listener

    opened = listener(read_number(port))
    # Asked to end by a signal, leave as after Ctrl-C: with every process ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _announce(address(opened), browser)  # a browser starts while the rest is imported
        _serve(opened)
    except KeyboardInterrupt:
        click.echo("ended", err=True)
    finally:
        opened.close()


def _serve(opened: socket.socket) -> None:
    from ..page.views import Views

    views = Views()
    try:
        views.begin()
        from ..page.server import serve  # with Flask, while the first worker imports the engine

        serve(opened, views)
    finally:
        views.close()


def _announce(url: str, browser: bool) -> None:
    click.echo(f"featurestep is at {url} (Ctrl-C ends it)")
    if browser:
        import webbrowser

        webbrowser.open(url)
