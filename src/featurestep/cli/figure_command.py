"""`figure`: the papers' figures, each with its data and with what it claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ..errors import InvalidProblem
from .complete import figure_names
from .files import check_folder, write_in
from .progress import watched_share

if TYPE_CHECKING:
    from ..figures import Claim, FigureClaimFailed, PaperFigure

QUICK = "small sizes, half a minute a figure, or larger ones and more seeds  [default: quick]"


@click.command()
@click.argument("name", required=False, shell_complete=figure_names)
@click.option("--list", "listed", is_flag=True, help="list the figures and stop")
@click.option("--quick/--full", default=True, help=QUICK)
@click.option("--output", metavar="DIR", default="figures", show_default=True, help="for the files")
def figure(name: str | None, listed: bool, quick: bool, output: str) -> None:
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

    if listed:
        show_list({one.name: one.title for one in FIGURES.values()})
        return
    make_all(name, tuple(FIGURES), find, quick, output)


def show_list(titles: Mapping[str, str]) -> None:
    """Names with what is behind them."""
    width = max(map(len, titles))
    for name, title in titles.items():
        click.echo(f"{name:<{width}}  {title}")


def make_all(
    name: str | None,
    known: Sequence[str],
    find: Callable[[str], Sequence[PaperFigure]],
    quick: bool,
    output: str,
) -> None:
    """Make what a name stands for, all of it before a failure is told."""
    if name is None:
        raise InvalidProblem("NAME", f"must be all or one of {', '.join(known)}", None)
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
