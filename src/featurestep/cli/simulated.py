"""Simulations and comparisons on the command line: tables, notes and strict JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from ..meeting.comparison import Z_LIMIT, Comparison, Row, points_of
from ..problem import Grid, Problem
from ..simulation import Simulation
from ..simulation.network.result import QUANTITIES
from .output import cell, fixed_fields, show_notes, show_table, shown_problem
from .run import Run

_MOST_NAMED = 3  # rows that a failed check spells out
Record = dict[str, Any]


def show_simulations(run: Run, found: Sequence[Simulation]) -> None:
    """One row for each point and variant, mean ± standard error; then what it took."""
    rows = [row for each in found for row in simulated_points(each)]
    _describe(run)
    several = len(found[0].variants) > 1
    keys = [*run.request.axes, *(["variant"] if several or not run.request.over else [])]
    cells = [
        [*(cell(row[key]) for key in keys), *(_spread(row[name]) for name in QUANTITIES)]
        for row in rows
    ]
    show_table([*keys, *QUANTITIES], cells)
    if not run.request.over:
        _show_alignment(rows)
    show_notes(found[0].departures)
    click.echo(_summary(found))


def _show_alignment(rows: Sequence[Mapping[str, Any]]) -> None:
    """How far the trained weights lean towards the target, after each step."""
    steps = [step for row in rows for step in row.get("alignment", ())]
    if steps:
        table = [(str(s["step"]), _spread(s["cosine"]), _spread(s["energy"])) for s in steps]
        show_table(("after_step", "cosine with the target", "share of ‖W‖² along it"), table)


def simulations_json(run: Run, found: Sequence[Simulation]) -> Record:
    """Every number of every seed, with the record of the run."""
    rows = [row for each in found for row in simulated_points(each)]
    return {**_asked(run), **_record(found), "points": rows}


def simulated_points(simulation: Simulation) -> Iterator[Record]:
    """The points of a simulation by variant: coordinates, then each quantity's statistics."""
    points = list(points_of(simulation.problem))
    seeds = len(simulation.seeds)
    for i, point in enumerate(points):
        for v, variant in enumerate(simulation.variants):
            row: Record = {**point, "variant": variant}
            for name in QUANTITIES:
                values = simulation.values[name].reshape(-1, len(points), seeds)[v, i]
                row[name] = _statistics(values.tolist())
            if variant == "trained":
                row["alignment"] = _alignment(simulation, len(points), i)
            yield row


def _alignment(simulation: Simulation, count: int, i: int) -> list[Record]:
    steps = len(simulation.setting.multiples)
    arrays = {
        name: simulation.values[name].reshape(count, -1, steps)[i] for name in ("cosine", "energy")
    }
    return [
        {"step": k + 1, **{name: _statistics(a[:, k].tolist()) for name, a in arrays.items()}}
        for k in range(steps)
    ]


def _statistics(values: Sequence[float]) -> Record:
    mean = math.fsum(values) / len(values)
    error = None
    if len(values) > 1:
        square = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
        error = math.sqrt(square / len(values))
    return {"mean": mean, "standard_error": error, "by_seed": list(values)}


def _spread(statistics: Mapping[str, Any]) -> str:
    return plus_minus(statistics["mean"], statistics["standard_error"])


def plus_minus(mean: float, error: float | None) -> str:
    """A mean with its standard error, both to the error's second digit."""
    if not error:
        return cell(mean)
    decimals = 1 - math.floor(math.log10(error))
    if not 0 <= decimals <= 7:
        return f"{mean:.5g} ± {error:.2g}"
    return f"{mean:.{decimals}f} ± {error:.{decimals}f}"


def show_comparisons(run: Run, found: Sequence[Comparison]) -> None:
    """One row for each point and quantity; then the notes, the worst row and what it took."""
    _describe(run)
    fields = list(run.request.axes)
    rows = [row for each in found for row in each.rows]
    table = [[*(cell(row.point[name]) for name in fields), *_compared(row)] for row in rows]
    header = ("quantity", "predicted", "simulated", "z", "gap", "verdict")
    show_table([*fields, *header], table)
    show_notes(_notes(rows))
    worst = max((each.worst for each in found), key=_distance)
    click.echo(f"Worst: {where(worst)}.")
    click.echo(_summary([each.simulation for each in found]))


def _compared(row: Row) -> list[str]:
    simulated = plus_minus(row.simulated, row.standard_error)
    z = "–" if row.z is None else f"{row.z:+.2f}"
    gap = "–" if row.relative_gap is None else f"{100 * row.relative_gap:+.2f} %"
    name = row.quantity.replace("_", " ")
    return [name, cell(row.predicted), simulated, z, gap, _verdict(row)]


def _verdict(row: Row) -> str:
    if row.z is None:
        return "no prediction"
    if row.agrees():
        return "agrees"
    return "see note" if row.passes() else "disagrees"


def _distance(row: Row) -> float:
    return math.inf if row.z is None else abs(row.z)


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """Each kind of note once, with the points that have it: the last of them in its words."""
    said: dict[str, list[tuple[str, str]]] = {}
    for row in rows[:: len(QUANTITIES)]:
        for note in (*row.notes, *([row.status] if row.status != "ok" else [])):
            said.setdefault(note.split(":")[0], []).append((at(row), note))
    for places in said.values():
        place, note = places[-1]
        count = f"{len(places)} of {len(rows) // len(QUANTITIES)} points, the last {place}: "
        yield (count if place else "") + note


def at(row: Row) -> str:
    """Where a row is on its grid."""
    point = ", ".join(f"{name} = {cell(value)}" for name, value in row.point.items())
    return f"at {point}" if point else ""


def where(row: Row) -> str:
    """A row's quantity, place and distance in words."""
    z = row.status if row.z is None else f"z = {row.z:+.2f}"
    return f"{' '.join([row.quantity.replace('_', ' '), at(row)]).strip()}, {z}"


def comparisons_json(run: Run, found: Sequence[Comparison]) -> Record:
    """Every row, whether all agree, and the record of the run."""
    return {
        **_asked(run),
        **_record([each.simulation for each in found]),
        "limit": Z_LIMIT,
        "agrees": all(each.agrees() for each in found),
        "worst": max((each.worst for each in found), key=_distance).as_dict(),
        "rows": [row.as_dict() for each in found for row in each.rows],
    }


def failed_check(found: Sequence[Comparison]) -> str | None:
    """Which rows lie beyond the limit without a note, or None."""
    wrong = [row for each in found for row in each.disagreements()]
    if not wrong:
        return None
    wrong.sort(key=_distance, reverse=True)
    named = "; ".join(where(row) for row in wrong[:_MOST_NAMED])
    more = f"; and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
    return f"check failed, |z| > {Z_LIMIT:g}: {named}{more}"


def _base(run: Run) -> Problem:
    first = run.targets[0]
    return first.base if isinstance(first, Grid) else first


def _describe(run: Run) -> None:
    click.echo(shown_problem(_base(run), run.request))


def _asked(run: Run) -> Record:
    return {
        "problem": fixed_fields(_base(run), run.request),
        "over": dict(run.request.axes),
        "setting": dict(run.setting),
        "estimate": {"memory": run.estimate.memory, "flops": run.estimate.flops},
    }


def _record(found: Sequence[Simulation]) -> Record:
    flops, seconds = sum(each.flops for each in found), sum(each.wall_time for each in found)
    return {
        "seeds": list(found[0].seeds),
        "departures": list(found[0].departures),
        "flops": flops,
        "wall_time": seconds,
        "rate": flops / seconds,
        "record": dict(found[0].record),
    }


def _summary(found: Sequence[Simulation]) -> str:
    record = _record(found)
    return (
        f"{len(record['seeds'])} seeds: {record['flops']:.3g} flops in {record['wall_time']:.3g} s "
        f"({record['rate'] / 1e9:.3g} Gflop/s)"
    )
