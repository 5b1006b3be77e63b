"""Spectra, critical steps and phase diagrams on the command line: tables and records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click
import numpy as np

from ..borders import Border
from ..meeting.phase import PhaseDiagram
from ..problem import Grid
from ..results import (
    GridResult,
    Point,
    Result,
    Table,
    cell,
    collected,
    describe,
    plus_minus,
)
from ..simulation import SimulatedSpectrum
from ..theory import CriticalSteps, Spectrum, Spike
from .output import show_notes, show_table

if TYPE_CHECKING:
    import xarray

HERMITE = tuple(f"H{k}" for k in range(7))
Record = dict[str, Any]


class Followed(Result):
    """Edge and spikes of a spectrum at one point of a grid."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "edge": "upper edge of the bulk, as an eigenvalue of FᵀF/n",
        "margin": "distance beyond the edge from which an eigenvalue counts as a spike",
        "singular_edge": "the edge as a singular value of F/√n",
        "count": "number of resolved spikes",
        "degrees": "degree of the polynomial of κ that each spike carries",
        "resolved": "whether it is further from the edge than the edge fluctuates",
        "locations": "the spikes' eigenvalues",
        "singular_values": "and their roots",
        "constant_overlaps": "squared overlaps of the left vectors with a constant",
        "overlaps": "and with H_1(κ), H_2(κ), …",
    }
    COLUMNS: ClassVar[tuple[str, ...]] = ("singular_edge", "count", "degrees", "singular_values")


class FollowedWithNetworks(Followed):
    """The same beside simulated networks."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        **Followed.MEANINGS,
        "simulated_count": "mean number of simulated spikes beyond the same place",
        "simulated_values": "mean singular values of as many or more",
    }
    COLUMNS: ClassVar[tuple[str, ...]] = (*Followed.COLUMNS, "simulated_count", "simulated_values")


class Phase(Result):
    """One point of a phase diagram."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("regime", "published_count", "predicted_count", "simulated_count"), ""),
        **dict.fromkeys(("published_degrees", "predicted_degrees", "simulated_degrees"), ""),
        **dict.fromkeys(("unresolved", "edge", "margin"), ""),
    }
    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("published_count", "predicted_count", "published_degrees", "predicted_degrees"),
    )


class PhaseWithNetworks(Phase):
    """The same beside simulated networks."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("published_count", "predicted_count", "simulated_count"),
        *("published_degrees", "predicted_degrees"),
    )


def followed_points(
    grid: Grid, results: xarray.Dataset, found: Sequence[SimulatedSpectrum | str] | None
) -> GridResult:
    """Each point of a grid: edge, spikes, and what was simulated or why not."""
    points = []
    for i, index in enumerate(np.ndindex(*grid.shape)):
        place = results.isel(dict(zip(grid.dims, index, strict=True)))
        row = _followed_row({str(name): array.values for name, array in place.items()})
        told = place["validity"].item()
        if found is not None:
            row.update(_simulated_row(found[i], row))
        points.append(Point(row, row["status"], tuple(told.split("\n")) if told else ()))
    return collected(Followed if found is None else FollowedWithNetworks, grid, points)


def phase_points(found: PhaseDiagram) -> GridResult:
    """The points of a phase diagram."""
    points = [Point(point.as_dict(), point.status, point.notes) for point in found.points]
    return collected(PhaseWithNetworks if found.seeds else Phase, found.grid, points)


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
    show_table(Table.of(("", "bulk from", "to", "share at 0", "spikes"), rows))


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
    show_table(Table.of(header, rows))


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
    show_table(Table.of(("", "singular_value", "along β", "along β⋆", "along a"), rows))


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
    show_table(Table.of(header, rows))
    for step in found:
        show_notes(f"degree {step.degree}: {note}" for note in step.notes)
