"""Spectra of the features as results (section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...core.borders import Border, border_of
from ...core.display import Table, json_value
from ...core.problem import Problem
from ...core.results import Result
from ...core.types import FloatArray
from .bulk import Interval, curve, density
from .coordinates import HIGHEST
from .weights import WeightSpectrum


@dataclass(frozen=True)
class Spike:
    """One eigenvalue of FᵀF/n outside the bulk, and the function of κ that it carries."""

    location: float  # eigenvalue of FᵀF/n
    degree: int  # degree of the polynomial of κ that it carries; 0 for a constant
    overlaps: tuple[float, ...]  # squared overlaps of its left vector with H_1(κ), …, H_6(κ)
    constant_overlap: float  # with the constant function
    power_overlaps: tuple[float, ...]  # with κ, κ², …, κ⁶
    target_overlap: float  # with the target's coordinate x·β⋆, summed over its directions
    distance: float  # (location − edge)/edge
    resolved: bool  # whether it is further from the edge than the edge itself fluctuates
    kappa: FloatArray = field(repr=False, compare=False)
    function: FloatArray = field(repr=False, compare=False)

    @property
    def singular_value(self) -> float:
        """The singular value of F/√n."""
        return float(np.sqrt(self.location))

    def as_dict(self) -> dict[str, Any]:
        """Its numbers, ready for JSON."""
        names = ("location", "singular_value", "degree", "constant_overlap", "overlaps")
        rest = ("power_overlaps", "target_overlap", "distance", "resolved")
        return {name: json_value(getattr(self, name)) for name in (*names, *rest)}

    @property
    def share(self) -> float:
        """Squared overlap with the power of κ that it carries: what a label of it says.

        κ² is not orthogonal to a constant: `overlaps` has the smaller share of H_2 in it.
        """
        return self.power_overlaps[self.degree - 1] if self.degree else self.constant_overlap


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(Result):
    """Eigenvalues of FᵀF/n (N of them) in high dimension: bulk, atom at 0 and spikes.

    `spikes` has each of them whole, `weights` the same of W; `density`, `cumulative` and `moment`
    are those of the bulk.
    """

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "edge": "upper edge of the bulk, as an eigenvalue of FᵀF/n",
        "margin": "distance beyond the edge from which an eigenvalue counts as a spike",
        "atom": "share of the eigenvalues at 0",
        "count": "number of resolved spikes",
        "degrees": "degrees that resolved spikes carry, largest spike first",
        "location": "eigenvalue of FᵀF/n at each spike",
        "degree": "degree of the polynomial of κ that the spike carries",
        "resolved": "whether the spike is further from the edge than the edge fluctuates",
        "constant_overlap": "squared overlap of the left singular vector with a constant",
        "overlap": "squared overlap of the left singular vector with H_k(κ)",
    }
    DIMS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **dict.fromkeys(("location", "degree", "resolved", "constant_overlap"), ("spike",)),
        "overlap": ("spike", "hermite_degree"),
    }
    COLUMNS: ClassVar[tuple[str, ...]] = ("edge", "margin", "count", "degrees")
    RAGGED: ClassVar[str | None] = "degree"

    problem: Problem
    intervals: tuple[Interval, ...] = field(repr=False)
    atom: float
    spikes: tuple[Spike, ...]
    edge_scale: float  # Tracy–Widom scale of the upper edge, as an eigenvalue
    entry_reach: float  # how far single large entries of F push eigenvalues, at least the edge
    weights: WeightSpectrum = field(repr=False)
    notes: tuple[str, ...]
    mean: float = field(repr=False)  # exact first moment of the bulk with its atom
    mean_square: float = field(repr=False)  # exact second moment

    @property
    def is_smoothed(self) -> bool:
        """Whether the density is smoothed: a bulk of too many intervals, as the notes say."""
        return any(getattr(note, "kind", "") == "smoothed bulk" for note in self.notes)

    @property
    def edges(self) -> tuple[tuple[float, float], ...]:
        """Eigenvalue intervals that carry the bulk, the atom at 0 aside."""
        return tuple((part.low**2, part.high**2) for part in self.intervals)

    @property
    def edge(self) -> float:
        """The upper end of the bulk."""
        return self.edges[-1][1]

    @property
    def location(self) -> FloatArray:
        """The spikes' eigenvalues, (spike,)."""
        return np.array([spike.location for spike in self.spikes])

    @property
    def degree(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The degrees that they carry, resolved or not, (spike,)."""
        return np.array([spike.degree for spike in self.spikes], dtype=np.int64)

    @property
    def resolved(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of them count, (spike,)."""
        return np.array([spike.resolved for spike in self.spikes], dtype=bool)

    @property
    def constant_overlap(self) -> FloatArray:
        """Squared overlaps with a constant, (spike,)."""
        return np.array([spike.constant_overlap for spike in self.spikes])

    @property
    def overlap(self) -> FloatArray:
        """Squared overlaps with H_1(κ), …, H_6(κ), (spike, hermite_degree)."""
        return np.array([s.overlaps for s in self.spikes]).reshape(-1, HIGHEST)

    @property
    def coordinates(self) -> dict[str, Any]:
        """Ranks of the spikes, and degrees."""
        ranks, degrees = range(1, len(self.spikes) + 1), range(1, HIGHEST + 1)
        return {"spike": list(ranks), "hermite_degree": list(degrees)}

    def as_dict(self) -> dict[str, Any]:
        """All numbers and notes, ready for JSON."""
        law = self.weights
        of_weights = [dict(vars(spike)) for spike in law.spikes]
        first = of_weights[0] if of_weights else None
        return {
            **{name: getattr(self, name) for name in ("edge", "margin", "atom", "count")},
            "edges": [list(pair) for pair in self.edges],
            "degrees": list(self.degrees),
            "spikes": [each.as_dict() for each in self.spikes],
            "weights": {
                "singular_value_edges": list(law.edges),
                "spike": first,
                "spikes": of_weights,
            },
            "notes": list(map(str, self.notes)),
        }

    def tables(self) -> list[Table]:
        """Bulks; the features' spikes with squared overlaps with H_k(κ); the weights' spikes."""
        problem, law = self.problem, self.weights
        bulks: list[tuple[Any, ...]] = [
            ("F/√n", part.low, part.high, self.atom, self.count) for part in self.intervals
        ]
        at_zero = max(0.0, 1.0 - problem.width / problem.d)
        bulks.append(("W", *law.edges, at_zero, len(law.spikes)))
        tables = [Table.of(("", "bulk from", "to", "share at 0", "spikes"), bulks)]
        if self.spikes:
            names = (f"H{k}" for k in range(HIGHEST + 1))
            header = ("spike", "singular_value", "eigenvalue", "degree", *names, "status")
            rows = [
                (rank, s.singular_value, s.location, s.degree,
                 *shares(s.constant_overlap, *s.overlaps),
                 "ok" if s.resolved else "not resolved from the edge")
                for rank, s in enumerate(self.spikes, start=1)
            ]  # fmt: skip
            tables.append(Table.of(header, rows))
        if law.spikes:
            header = ("", "singular_value", "along β", "along β⋆", "along a")
            rows = [
                ("W", spike.singular_value,
                 *shares(spike.alignment, spike.target_alignment, spike.readout_alignment))
                for spike in law.spikes
            ]  # fmt: skip
            tables.append(Table.of(header, rows))
        return tables

    @property
    def border(self) -> Border:
        """Where spikes begin, for simulated eigenvalues too."""
        return border_of(self.edge, self.edge_scale, self.entry_reach)

    @property
    def margin(self) -> float:
        """How far beyond the edge an eigenvalue must lie to count as a spike.

        Three Tracy–Widom scales or, for activations with heavy tails, the reach of single entries.
        """
        return self.border.margin

    @cached_property
    def mass(self) -> float:
        """Total mass of bulk and atom: 1 up to the error of the solution."""
        return self.atom + sum(part.mass for part in self.intervals)

    def singular_density(self, s: npt.ArrayLike) -> FloatArray:
        """Density of the singular values of F/√n at s > 0, the atom at 0 left out."""
        return density(self.intervals, np.asarray(s, dtype=np.float64))

    def density(self, x: npt.ArrayLike) -> FloatArray:
        """Density of the eigenvalues of FᵀF/n at x > 0, the atom at 0 left out."""
        place = np.asarray(x, dtype=np.float64)
        root = np.sqrt(np.maximum(place, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.singular_density(root) / (2.0 * root)
        return np.where(place > 0.0, found, 0.0)

    def cumulative(self, x: npt.ArrayLike) -> FloatArray:
        """Share of eigenvalues at or below x, bulk and atom (spikes have no share)."""
        place = np.asarray(x, dtype=np.float64)
        root = np.sqrt(np.maximum(place, 0.0))
        out = np.where(place >= 0.0, self.atom, 0.0)
        for part in self.intervals:
            flat = np.clip(root, part.low, part.high).ravel()
            out = out + part.below(flat).reshape(root.shape)
        return np.asarray(out)

    def moment(self, order: int) -> float:
        """∫ x^order over bulk and atom."""
        total = sum(part.integral(part.nodes ** (2 * order)) for part in self.intervals)
        return total + (self.atom if order == 0 else 0.0)

    def curve(self, points: int = 400) -> tuple[FloatArray, FloatArray]:
        """Singular values over all intervals and their density, for a plot."""
        return curve(self.intervals, points)

    @property
    def count(self) -> int:
        """Number of spikes that are resolved."""
        return sum(spike.resolved for spike in self.spikes)

    @property
    def degrees(self) -> tuple[int, ...]:
        """Degrees that resolved spikes carry, largest spike first."""
        return tuple(spike.degree for spike in self.spikes if spike.resolved)


def carried_degrees(hermite: list[FloatArray], centred: bool) -> list[int]:
    """The degree that each spike carries, from squared overlaps with H_0, H_1, ….

    Spikes choose in the order of their size, and no degree is taken twice. κ² + b is of degree 2,
    though its overlap with a constant may be the larger one: a constant by itself is carried only
    by an uncentred activation, and by one spike.
    """
    constant = -1
    if hermite and not centred:
        constant = int(np.argmax([row[0] for row in hermite]))
        if hermite[constant][0] < hermite[constant][1:].max():
            constant = -1
    degrees: list[int] = []
    for index, row in enumerate(hermite):
        if index == constant:
            degrees.append(0)
            continue
        free = [k for k in range(1, HIGHEST + 1) if k not in degrees] or list(range(1, HIGHEST + 1))
        degrees.append(max(free, key=lambda k: float(row[k])))
    return degrees


def shares(*values: float) -> list[str]:
    """Squared overlaps as a table shows them."""
    return [f"{value:.3f}" for value in values]
