"""`study`: open questions, each with its data, its picture and the claims of its answer."""

from __future__ import annotations

import click

from .figure_command import QUICK, make_all, show_list


@click.command()
@click.argument("name", required=False)
@click.option("--list", "listed", is_flag=True, help="list the studies and stop")
@click.option("--quick/--full", default=True, help=QUICK)
@click.option("--output", metavar="DIR", default="studies", show_default=True, help="for the files")
def study(name: str | None, listed: bool, quick: bool, output: str) -> None:
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

    if listed:
        show_list({one.name: one.question for one in STUDIES.values()})
        return
    make_all(name, tuple(STUDIES), find, quick, output)
