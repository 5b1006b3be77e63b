"""`figure` and `study`: the papers' figures and open questions, with their data and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .complete import figure_names
from .options import Command
from .output import check_folder, write_in
from .progress import watched_share

if TYPE_CHECKING:
    from ..figures import Claim, FigureClaimFailed, PaperFigure

QUICK = "small sizes, half a minute a figure, or larger ones and more seeds  [default: quick]"


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
    """Compute, draw and check a figure of the papers, or `all` of them.

    Writes NAME.png, NAME.svg and the data behind them, NAME.nc, to DIR. Then prints one line for
    each claim with the numbers that support it. Where the data contradict a claim, the files are
    kept and the exit code is 1.

    \b
    Examples
      featurestep figure --list
      featurestep figure double-descent
      featurestep figure all --full --output paper
    """
    from ..figures import FIGURES, find

    _list_or_make({one.name: one.title for one in FIGURES.values()}, find, name, **asked)


@click.command()
@click.argument("name", required=False)
@partial(_options, kind="studies")
def study(name: str | None, **asked: Any) -> None:
    """Compute, draw and answer a question, or `all` of them.

    Writes NAME.png, NAME.svg and the data behind them, NAME.nc, to DIR. Then prints one line for
    each claim of the answer, with the numbers that support it. Where the data contradict a claim,
    the files are kept and the exit code is 1. The answers in words are in docs/studies.md.

    \b
    Examples
      featurestep study --list
      featurestep study staircase
      featurestep study all --full --output answers
    """
    from ..studies import STUDIES, find

    _list_or_make({one.name: one.question for one in STUDIES.values()}, find, name, **asked)


def _list_or_make(
    titles: Mapping[str, str],
    find: Callable[[str | None], Sequence[PaperFigure]],
    name: str | None,
    *,
    listed: bool,
    quick: bool,
    output: str,
) -> None:
    """Tell the names with their titles, or make what one stands for, before a failure is told."""
    if listed:
        width = max(map(len, titles))
        for each, title in titles.items():
            click.echo(f"{each:<{width}}  {title}")
        return
    chosen = find(name)
    check_folder(output)
    failures = [failure for one in chosen if (failure := _make(one, quick, output)) is not None]
    if failures:
        raise failures[0]


def _make(one: PaperFigure, quick: bool, output: str) -> FigureClaimFailed | None:
    """One figure: its files, then its claims; the failure if one does not hold."""
    from ..figures import FigureClaimFailed, encoded
    from ..plots.style import render

    with watched_share(one.name) as told:
        data = one.compute(quick, told)
    drawn = one.draw(data)
    contents = {"nc": encoded(data), "svg": render(drawn, "svg"), "png": render(drawn, "png")}
    for kind, content in contents.items():
        write_in(output, f"{one.name}.{kind}", content)
    click.echo(f"{one.name}: {one.title}")
    failure = None
    try:
        claims = one.check(data)
    except FigureClaimFailed as error:
        claims, failure = error.claims, error
    for claim in claims:
        click.echo(_line(claim))
    click.echo(f"Figure: {output}/{one.name}.png (and .svg, .nc)")
    return failure


def _line(claim: Claim) -> str:
    return f"  {'holds' if claim.holds else 'FAILS'}: {claim.text}"
