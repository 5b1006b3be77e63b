"""`figure`, `study` and `explore`: published figures, open questions, and the live page."""

from __future__ import annotations

import signal
import socket
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..core.axes import read_number
from .options import Command, figure_names, study_names
from .output import check_folder, require_extra, watched_share, write_in

if TYPE_CHECKING:
    from ..figures import FigureClaimFailed, PaperFigure

QUICK = "small sizes, up to two minutes a figure, or larger ones and more seeds  [default: quick]"


def _options(command: Command, *, kind: str) -> Command:
    listed = click.option("--list", "listed", is_flag=True, help=f"list the {kind} and stop")
    quick = click.option("--quick/--full", default=True, help=QUICK)
    output = click.option(
        "--output", metavar="DIR", default=kind, show_default=True, help="for the files"
    )
    return listed(quick(output(command)))


@click.command()
@click.argument("name", required=False, shell_complete=figure_names)
@partial(_options, kind="figures")
def figure(name: str | None, **asked: Any) -> None:
    """Draw and check a figure of the papers, or `all` of them.

    Writes NAME.png, NAME.svg and the data behind them, NAME.nc, to DIR. Then prints one line for
    each claim with the numbers that support it. Where the data contradict a claim, the files are
    kept and the exit code is 1.

    \b
    Examples
      featurestep figure --list
      featurestep figure double-descent
      featurestep figure all --full --output paper
    """
    from ..figures import FIGURES

    _list_or_make(FIGURES, name, **asked)


@click.command()
@click.argument("name", required=False, shell_complete=study_names)
@partial(_options, kind="studies")
def study(name: str | None, **asked: Any) -> None:
    """Answer an open question by an experiment, or `all` of them.

    Writes NAME.png, NAME.svg and the data behind them, NAME.nc, to DIR. Then prints one line for
    each claim of the answer, with the numbers that support it. Where the data contradict a claim,
    the files are kept and the exit code is 1. The answers in words are in docs/studies.md.

    \b
    Examples
      featurestep study --list
      featurestep study staircase
      featurestep study all --full --output answers
    """
    from ..studies import STUDIES

    _list_or_make(STUDIES, name, **asked)


def _list_or_make(
    known: Mapping[str, PaperFigure], name: str | None, *, listed: bool, quick: bool, output: str
) -> None:
    """Tell the names with their titles, or make what one stands for, before a failure is told."""
    from ..figures import chosen

    if listed:
        width = max(map(len, known))
        for each, one in known.items():
            click.echo(f"{each:<{width}}  {getattr(one, 'question', one.title)}")
        return
    figures = chosen(known, name)
    check_folder(output)
    failures = [failure for one in figures if (failure := _make(one, quick, output)) is not None]
    if failures:
        raise failures[0]


def _make(one: PaperFigure, quick: bool, output: str) -> FigureClaimFailed | None:
    """One figure: its files, then its claims; the failure if one does not hold."""
    from ..figures import encoded
    from ..plots.style import render

    with watched_share(one.name) as told:
        data = one.compute(quick, told)
    drawn = one.draw(data)
    contents = {"nc": encoded(data), "svg": render(drawn, "svg"), "png": render(drawn, "png")}
    for kind, content in contents.items():
        write_in(output, f"{one.name}.{kind}", content)
    click.echo(f"{one.name}: {one.title}")
    if "setting" in data.attrs:
        click.echo(f"  setting: {data.attrs['setting']}")
    claims = tuple(one.claims(data))
    for claim in claims:
        click.echo(f"  {'holds' if claim.holds else 'FAILS'}: {claim.text}")
    click.echo(f"Figure: {output}/{one.name}.png (and .svg, .nc)")
    return None if all(claim.holds for claim in claims) else one.failure(one.name, claims)


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
    require_extra("the page", "page", "flask", "plotly", "waitress")
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
