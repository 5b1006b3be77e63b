"""`featurestep demo`: the main job in a minute."""

from __future__ import annotations

import click

from ..core.display import Table, describe
from ..meeting.comparison import enough_seeds
from .options import DEFAULTS, Request, asking
from .output import check_folder, show_notes, show_table, write_in
from .progress import watched_share
from .run import one_or_list

DEMO_OWN = {"activation": "relu", "centre": True, "d": 600, "width": 1000, "ridge": 0.1}
DEMO_FIXED = ("target", "noise_std", "step_exponent", "step_scale", "step_size")


@click.command()
@click.option("--output", metavar="DIR", default="demo", show_default=True, help="for demo.png")
@click.option("--seeds", metavar="K", default="8", show_default=True, help="networks to simulate")
@asking(without=DEMO_FIXED, defaults={**DEFAULTS, **DEMO_OWN}, curve=False)
def demo(request: Request, output: str, seeds: str) -> None:
    """Two published targets, learned degree by degree as the step grows.

    The settings of Moniri et al.: y = H₁ + ε with ε ~ N(0, 1), and y = H₁ + H₂/√2, the
    polynomials taken along β⋆. Draws train loss and test error against the step exponent, at
    finite n and in the limit n → ∞, with simulated networks as points, to DIR/demo.png.
    """
    from ..demo import EXPLANATION, SETTINGS, demo_notes, demo_rows, draw, run_demo
    from ..plots.style import figure_of, render

    base = request.problem
    check_folder(output)
    drawn = enough_seeds(one_or_list(seeds))
    with watched_share("simulating") as told:
        settings = run_demo(base, seeds=drawn, progress=told)
    rows = demo_rows(settings)
    path = write_in(output, "demo.png", render(figure_of(draw(base, settings)), "png"))
    click.echo("\n".join(describe(base, DEMO_FIXED)))
    header = ["step_exponent"]
    for which, (title, _) in enumerate(SETTINGS, 1):
        click.echo(title)
        header += [f"test error {which}", "simulated", "limit", "with norm growth"]
    show_table(Table.of(header, rows))
    click.echo(EXPLANATION)
    show_notes(demo_notes(settings))
    click.echo(f"Figure: {path}")
