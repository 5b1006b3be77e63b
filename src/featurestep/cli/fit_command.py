"""`featurestep fit`: one step and other models on a file of one's own."""

from __future__ import annotations

import io
from pathlib import Path

import click

from ..core.axes import read_number
from ..core.checks import check_file, one_of, whole_number, write_whole
from ..core.display import Table, plus_minus
from ..core.errors import InvalidProblem
from .options import file_names, offering
from .output import (
    check_path,
    mention,
    require_extra,
    save,
    show_json,
    show_notes,
    show_table,
    watched_share,
)

TASKS = ("auto", "regression", "classification")
SEED = "seed of the folds and of the network's draws"


@click.command()
@click.argument("file", shell_complete=file_names)
@click.option("--target", metavar="COLUMN", required=True, help="column to predict")
@click.option("--width", metavar="N", default="1000", show_default=True, help="neurons")
@click.option(
    "--task",
    metavar="KIND",
    default="auto",
    show_default=True,
    help="regression, classification, or auto: words and whole numbers of few values are classes",
    shell_complete=offering(TASKS),
)
@click.option("--seed", metavar="K", default="0", show_default=True, help=SEED)
@click.option(
    "--save",
    "saved",
    metavar="FILE",
    help="write the pipeline of one step, .joblib",
    shell_complete=file_names,
)
@click.option(
    "--plot",
    metavar="FILE",
    help="draw what the step learned, .png, .pdf or .svg",
    shell_complete=file_names,
)
@click.option("--json", "as_json", is_flag=True, help="print JSON instead of a table")
def fit(
    file: str,
    target: str,
    width: str,
    task: str,
    seed: str,
    saved: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """One step and three other models on a CSV or Parquet file.

    Missing numbers are replaced by the column's median, with an indicator column; categories
    become columns of 0 and 1. One step, random features (the same network without a step), ridge
    regression and boosted trees are compared by five-fold cross-validation. The error is the
    unexplained share of the target's variance (1 − R²), or the share of wrong classes; the seconds
    are those of one fit.

    \b
    Examples
      featurestep fit houses.csv --target price
      featurestep fit houses.csv --target price --save model.joblib --plot learned.png
    """
    require_extra("fit", "sklearn", "sklearn", "pandas")
    from ..estimators import tables

    one_of("--task", task, TASKS)
    neurons = whole_number("--width", read_number(width))
    drawn = read_number(seed)
    if not isinstance(drawn, int) or not 0 <= drawn < 2**32:
        raise InvalidProblem("--seed", "must be a whole number from 0 to 2³² − 1", seed)
    check_path(plot)
    if saved is not None:
        check_file("--save", saved, (".joblib", ".pkl"))
    data = tables.prepared(tables.read_table(file), target, task)
    models = tables.models(data, neurons, drawn)
    with watched_share("fitting") as told:
        scores = tables.cross_validate(data, models, drawn, told)
    verdict = tables.verdict(scores, tables.error_of_a_constant(data))
    chosen = models[tables.ONE_STEP]
    if saved or plot:
        chosen.fit(data.X, data.y)
    if saved:
        write_whole("--save", Path(saved), _pickled(chosen))
    if plot:
        save(plot, chosen[-1].plot()[0])
    if as_json:
        show_json(
            {
                "target": target,
                "task": "classification" if data.classes else "regression",
                "rows": len(data.y),
                "columns": list(data.X.columns),
                "models": {
                    name: {"error": s.error, "standard_error": s.spread, "seconds": s.seconds}
                    for name, s in scores.items()
                },
                "verdict": verdict,
                "notes": list(data.notes),
            }
        )
        return
    kinds = f"{len(data.numbers)} columns of numbers, {len(data.categories)} of categories"
    what = f"{len(set(data.y))} classes" if data.classes else "a number"
    click.echo(f"{file}: {len(data.y)} rows, {kinds}; {target} is {what}")
    error = "share wrong" if data.classes else "error / variance"
    rows = [(name, plus_minus(s.error, s.spread), f"{s.seconds:.2g}") for name, s in scores.items()]
    show_table(Table.of(("", error, "seconds"), rows))
    click.echo(verdict)
    show_notes(data.notes)
    mention(plot)
    if saved:
        click.echo(f"Pipeline: {saved} (joblib.load reads it; load only files that you trust)")


def _pickled(pipeline: object) -> bytes:
    import joblib

    buffer = io.BytesIO()
    joblib.dump(pipeline, buffer)
    return buffer.getvalue()
