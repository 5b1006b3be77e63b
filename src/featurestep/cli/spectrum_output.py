"""Spectra, critical steps and phase diagrams on the command line: tables and records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..borders import Border
from ..meeting.phase import PhasePoint
from ..problem import Grid
from ..simulation import SimulatedSpectrum
from ..theory import CriticalSteps, Spectrum, Spike
from ..theory.spectra.notes import spectrum_notes
from .output import cell, describe, show_notes, show_table
from .simulated import plus_minus

if TYPE_CHECKING:
    import xarray

HERMITE = tuple(f"H{k}" for k in range(7))
_MOST = 6  # values of a list that a table spells out
Record = dict[str, Any]


def table_of(grid: Grid, rows: Sequence[Mapping[str, Any]]) -> xarray.Dataset:
    """Rows of plain values, one for each point of a grid, as columns over its fields."""
    import xarray

    columns: Record = {}
    for name in rows[0]:
        column = np.empty(len(rows), dtype=object)
        column[:] = [row[name] for row in rows]
        columns[name] = (grid.dims, column.reshape(grid.shape))
    return xarray.Dataset(columns, coords=grid.coordinates())


def followed_rows(
    grid: Grid, results: xarray.Dataset, found: Sequence[SimulatedSpectrum | str] | None
) -> list[Record]:
    """Each point of a grid as a row: edge, spikes, and what was simulated or why not."""
    rows = []
    for i, (index, problem) in enumerate(zip(np.ndindex(*grid.shape), grid, strict=True)):
        place = results.isel(dict(zip(grid.dims, index, strict=True)))
        row = _followed_row({str(name): array.values for name, array in place.items()})
        notes = spectrum_notes(problem) if row["status"] == "ok" else ()
        row["validity"] = "\n".join(notes)
        if found is not None:
            row.update(_simulated_row(found[i], row))
        rows.append(row)
    return rows


def _followed_row(point: Mapping[str, np.ndarray[Any, Any]]) -> Record:
    """Eigenvalues of FᵀF/n as `edge`, `margin`, `locations`; their roots as `singular_…`."""
    known = point["degree"] >= 0
    located, is_ok = point["location"][known], point["status"].item() == "ok"
    return {
        "edge": point["edge"].item(),
        "margin": point["margin"].item(),
        "singular_edge": float(np.sqrt(point["edge"])),
        "count": int(point["count"]) if is_ok else None,
        "degrees": point["degree"][known].tolist(),
        "resolved": point["resolved"][known].tolist(),
        "locations": located.tolist(),
        "singular_values": np.sqrt(located).tolist(),
        "constant_overlaps": point["constant_overlap"][known].tolist(),
        "overlaps": point["overlap"][known].tolist(),
        "status": point["status"].item(),
    }


def _counts(found: SimulatedSpectrum, border: Border) -> list[int]:
    """Simulated spikes of the trained features, seed by seed."""
    return [spikes.count for spikes in found.spikes("trained", border)]


def _simulated_row(found: SimulatedSpectrum | str, row: Record) -> Record:
    """Mean count beyond edge and margin, and the mean singular values of as many or more."""
    if isinstance(found, str):
        status = found if row["status"] == "ok" else row["status"]
        return {"simulated_count": None, "simulated_values": [], "status": status}
    if row["count"] is None:
        return {"simulated_count": None, "simulated_values": []}
    counts = _counts(found, Border(row["edge"], row["margin"]))
    count = sum(counts) / len(counts)
    values = found.singular_values("trained").mean(axis=0)
    shown = max(len(row["locations"]), round(count))
    return {"simulated_count": count, "simulated_values": values[:shown].tolist()}


def in_short(table: xarray.Dataset) -> xarray.Dataset:
    """The same for a table: lists with few digits, and cut where they are long."""
    short = table.copy()
    for name, array in table.items():
        if any(isinstance(value, list) for value in array.values.flat):
            texts = [_in_short(value) for value in array.values.flat]
            short[name] = (array.dims, np.array(texts, dtype=object).reshape(array.shape))
    return short


def _in_short(values: Sequence[Any] | None) -> str:
    if values is None:
        return "–"
    shown = ", ".join(map(cell, values[:_MOST]))
    return (shown + (", …" if len(values) > _MOST else "")) or "–"


def spectrum_record(found: Spectrum, simulated: SimulatedSpectrum | None) -> Record:
    """All numbers of one spectrum, ready for JSON."""
    law = found.weights
    record: Record = {
        "problem": dict(found.problem.given),
        "status": "ok",
        "edges": [list(pair) for pair in found.edges],
        "edge": found.edge,
        "margin": found.margin,
        "atom": found.atom,
        "count": found.count,
        "degrees": list(found.degrees),
        "spikes": [_spike_record(spike) for spike in found.spikes],
        "weights": {
            "singular_value_edges": list(law.edges),
            "spike": None if law.spike is None else dict(vars(law.spike)),
        },
        "validity": list(found.validity),
    }
    if simulated is not None:
        record["simulated"] = _simulated_record(found, simulated)
    return record


def _spike_record(spike: Spike) -> Record:
    names = ("location", "singular_value", "degree", "constant_overlap", "overlaps")
    rest = ("power_overlaps", "distance", "resolved")
    return {name: getattr(spike, name) for name in (*names, *rest)}


def _simulated_record(found: Spectrum, simulated: SimulatedSpectrum) -> Record:
    return {
        "seeds": list(simulated.seeds),
        "counts": _counts(simulated, found.border),
        "singular_values": simulated.singular_values("trained").tolist(),
        "hermite_overlaps": simulated.hermite_overlaps("trained").tolist(),
        "weights": {
            "singular_values": simulated.singular_values("weights").tolist(),
            "overlaps": {
                name: values.tolist() for name, values in simulated.direction_overlaps().items()
            },
        },
        "flops": simulated.flops,
        "wall_time": simulated.wall_time,
        "record": dict(simulated.record),
    }


def show_spectrum(found: Spectrum, simulated: SimulatedSpectrum | None) -> None:
    """Bulks, then the spikes of the features, then that of the weights; last the notes."""
    click.echo("\n".join(describe(found.problem)))
    _show_bulks(found)
    if found.spikes:
        _show_spikes(found, simulated)
    _show_weights(found, simulated)
    show_notes(found.validity)
    if simulated is not None:
        counts = _counts(simulated, found.border)
        listed = ", ".join(map(str, counts))
        click.echo(f"Simulated spikes, seed by seed: {listed} (predicted: {found.count}).")
        rate = simulated.flops / simulated.wall_time / 1e9
        took = f"{simulated.flops:.3g} flops in {simulated.wall_time:.3g} s ({rate:.3g} Gflop/s)"
        click.echo(f"{len(counts)} seeds: {took}")


def _show_bulks(found: Spectrum) -> None:
    low, high = found.weights.edges
    zero = max(0.0, 1.0 - found.problem.width / found.problem.d)
    rows = [
        ("F/√n", cell(part.low), cell(part.high), cell(found.atom), str(found.count))
        for part in found.intervals
    ]
    spike = int(found.weights.spike is not None)
    rows.append(("W", cell(low), cell(high), cell(zero), str(spike)))
    show_table(("", "bulk from", "to", "share at 0", "spikes"), rows)


def _show_spikes(found: Spectrum, simulated: SimulatedSpectrum | None) -> None:
    """Singular values of F/√n and squared overlaps with H_k(κ), simulated below predicted."""
    header = ("spike", "", "singular_value", "eigenvalue", "degree", *HERMITE, "status")
    rows = []
    for rank, spike in enumerate(found.spikes):
        numbers = [cell(spike.singular_value), cell(spike.location), str(spike.degree)]
        shares = _shares((spike.constant_overlap, *spike.overlaps))
        status = "ok" if spike.resolved else "not resolved from the edge"
        rows.append((str(rank + 1), "predicted", *numbers, *shares, status))
        if simulated is not None and rank < simulated.top:
            values = simulated.singular_values("trained")[:, rank]
            overlaps = simulated.hermite_overlaps("trained")[:, rank].mean(axis=0)
            numbers = [_spread(values), _spread(values**2), ""]
            rows.append(("", "simulated", *numbers, *_shares(overlaps), ""))
    show_table(header, rows)


def _show_weights(found: Spectrum, simulated: SimulatedSpectrum | None) -> None:
    """The weights' spike: its singular value, and squared overlaps of its vectors."""
    spike = found.weights.spike
    if spike is None:
        return
    numbers = (spike.alignment, spike.target_alignment, spike.readout_alignment)
    rows = [("W predicted", cell(spike.singular_value), *_shares(numbers))]
    if simulated is not None:
        overlaps = simulated.direction_overlaps()
        shares = [overlaps[name][:, 0].mean() for name in ("beta", "target", "readout")]
        rows.append(
            ("W simulated", _spread(simulated.singular_values("weights")[:, 0]), *_shares(shares))
        )
    show_table(("", "singular_value", "along β", "along β⋆", "along a"), rows)


def _shares(values: Iterable[float]) -> list[str]:
    return [f"{value:.3f}" for value in values]


def _spread(values: np.ndarray[Any, Any]) -> str:
    count = len(values)
    error = float(values.std(ddof=1) / count**0.5) if count > 1 else None
    return plus_minus(float(values.mean()), error)


def show_critical(found: CriticalSteps) -> None:
    """A row for each degree, then the notes."""
    header = ("degree", "spike leaves at η", "α", "half learned at η", "α", "published α")
    rows = [
        (
            str(step.degree),
            cell(step.spike_step),
            cell(step.spike_exponent),
            cell(step.half_step),
            cell(step.half_exponent),
            cell(step.published_exponent),
        )
        for step in found
    ]
    show_table(header, rows)
    for step in found:
        show_notes(f"degree {step.degree}: {note}" for note in step.notes)


def phase_row(point: PhasePoint) -> Record:
    """A point of a phase diagram."""
    return {**point.as_dict(), "validity": "\n".join(point.validity)}
