"""`spectrum` (section 5): edge and spikes, then the bulk, part by part or else smoothed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...core.display import Table
from ...core.errors import InconsistentSolution, NotConverged
from ...core.problem import Grid, Problem
from ...core.results import GridResult, Progress, Result, over_grid, verb
from ...core.spiked import Border, border_of
from ...core.threads import one_thread
from ...core.types import FloatArray
from ..validity import Notes, bulk_notes, smoothing_notes
from .bulk import SMOOTHING, Interval, bulk, curve, density, smoothed_bulk
from .equations import FULL, Accuracy
from .model import HIGHEST, build_model
from .rows_model import build_rows_model
from .spikes import EdgeAndSpikes, Spike, edge_and_spikes
from .steps_model import build_chain_model
from .weights import WeightSpectrum

_ROWS_WORK = 8.0  # on the work that is allowed: nodes are a product grid
SMOOTHED_MASS_ERROR, SMOOTHED_MOMENT_ERROR = 1e-2, 2e-2


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


def shares(*values: float) -> list[str]:
    """Squared overlaps as a table shows them."""
    return [f"{value:.3f}" for value in values]


@verb({"steps"}, {"rows"})
def spectrum(problem: Problem | Grid, *, progress: Progress | None = None) -> Spectrum | GridResult:
    """Predict the spectrum of the trained features (theory, section 5).

    One problem gives a `Spectrum`: the bulk's density and edges, the atom at 0, the spikes with
    the polynomial that each carries, and the same for the weights. A grid gives edge and spikes
    over its fields, with a status and the notes of each point: the numbers are those of each
    problem by itself. After several steps κ is along β of the first batch. With rows of the step in
    the readout's sample features are those of that sample, and κ has a row's own share.

    >>> from featurestep import Problem, spectrum
    >>> p = Problem(activation="relu", centre=True, target="H1 + H2/sqrt(2)",
    ...             n=2000, d=1000, width=1500, step_exponent=0.38, ridge=0.1)
    >>> spectrum(p).degrees
    (1, 2)
    """
    if isinstance(problem, Grid):
        return over_grid(Spectrum, problem, spectrum, progress)
    return solve_spectrum(problem)[1]


def solve_spectrum(
    problem: Problem, accuracy: Accuracy = FULL, *, refinement: float = 1.0
) -> tuple[EdgeAndSpikes, Spectrum]:
    """The spectrum of one problem, with its equations; `refinement` multiplies their nodes.

    A bulk of too many parts, or with an edge that is lost, is given smoothed. NotConverged tells
    the first reason where even that fails.
    """
    problem = problem.without_zero_steps()
    with one_thread(), np.errstate(all="ignore"):
        make: Any = build_model if problem.steps == 1 else build_chain_model
        if problem.shared_rows and problem.step_size:
            make, accuracy = build_rows_model, replace(accuracy, work=_ROWS_WORK * accuracy.work)
        edge_spikes = edge_and_spikes(make(problem, accuracy, refinement=refinement), accuracy)
        try:
            return edge_spikes, _resolved(edge_spikes, accuracy)
        except NotConverged as error:
            edge_spikes.equations.work_left = accuracy.smoothing_work
            try:
                return edge_spikes, _smoothed(edge_spikes)
            except NotConverged:
                raise error from None


def _resolved(edge_spikes: EdgeAndSpikes, accuracy: Accuracy) -> Spectrum:
    """With the bulk in all its parts, if mass and second moment are what they must be."""
    atom = edge_spikes.model.atom
    parts = bulk(edge_spikes.equations, atom, edge_spikes.end)
    result = _result(edge_spikes, parts, _notes_on(atom, parts, accuracy.density))
    return _checked(result, accuracy.mass, accuracy.moment)


def _smoothed(edge_spikes: EdgeAndSpikes) -> Spectrum:
    """With the bulk as one smoothed interval."""
    part = smoothed_bulk(edge_spikes.equations, edge_spikes.edge, edge_spikes.model.atom)
    notes = smoothing_notes(edge_spikes.model.atom + part.mass, SMOOTHING)
    return _checked(
        _result(edge_spikes, (part,), notes), SMOOTHED_MASS_ERROR, SMOOTHED_MOMENT_ERROR
    )


def _result(
    edge_spikes: EdgeAndSpikes, parts: tuple[Interval, ...], notes: Sequence[str]
) -> Spectrum:
    model = edge_spikes.model
    mean, mean_square = model.moments()
    return Spectrum(
        problem=model.problem,
        intervals=parts,
        atom=model.atom,
        spikes=edge_spikes.spikes,
        edge_scale=edge_spikes.scale,
        entry_reach=edge_spikes.reach,
        weights=model.weights,
        notes=(*edge_spikes.notes, *notes),
        mean=mean,
        mean_square=mean_square,
    )


def _checked(result: Spectrum, mass_error: float, moment_error: float) -> Spectrum:
    gap = abs(result.moment(2) / result.mean_square - 1.0)
    if not (abs(result.mass - 1.0) <= mass_error and gap <= moment_error):
        raise InconsistentSolution(
            f"the bulk was not resolved: mass {result.mass:.8f} with its atom, second moment off "
            f"by {gap:.1g}",
            residual=max(abs(result.mass - 1.0), gap),
        )
    return result


def _notes_on(atom: float, parts: tuple[Interval, ...], tolerance: float) -> Notes:
    """What to say of a bulk that is not resolved to the tolerance."""
    missing = abs(atom + sum(part.mass for part in parts) - 1.0)
    worst = max((part.error for part in parts if np.isfinite(part.error)), default=0.0)
    missing, worst = (value if value > tolerance else 0.0 for value in (missing, worst))
    return bulk_notes(missing=missing, density_error=float(worst))
