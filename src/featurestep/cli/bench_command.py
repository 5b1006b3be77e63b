"""The command `bench`: how fast the simulation runs on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from ..bench import bench as run_bench
from ..files import check_file, write_whole


@click.command()
@click.option(
    "--device",
    metavar="NAME",
    default="cpu",
    show_default=True,
    help="cpu, cuda, or torch (on the CPU)",
)
@click.option("--out", metavar="FILE", help="also write the table to a file")
def bench(device: str, out: str | None) -> None:
    """How fast simulations run here, against the machine's own matrix products.

    Prints the machine, its rates, and one line for each case as it ends: seconds, seconds for one
    draw, counted flops a second, and their share of the product rate. About a minute.

    \b
    Examples
      featurestep bench
      featurestep bench --device cuda --out h200.txt
    """
    if out is not None:
        check_file("--out", out, (".txt",))
    lines: list[str] = []

    def show(line: str) -> None:
        click.echo(line)
        lines.append(line)

    run_bench(device, show=show)
    if out is not None:
        write_whole("--out", Path(out), ("\n".join(lines) + "\n").encode())
