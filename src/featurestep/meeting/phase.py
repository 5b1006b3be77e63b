"""How many spikes there are and which degrees are learned: published, predicted, simulated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..core.display import Table
from ..core.errors import FeaturestepError, InvalidProblem
from ..core.grid import Grid
from ..core.problem import Problem
from ..core.results import OK, Result, arrays_over, grouped_notes, require_known, status_of
from ..core.types import FloatArray, xarray
from ..functions.nonlinearity import coefficients
from ..simulation import Setting, checked_seeds
from ..theory import spectrum
from ..theory.limits import learned_powers
from ..theory.spectra import HIGHEST, carried_degrees
from .spectra import SpectrumBeside, beside

DEGREES = tuple(range(HIGHEST + 1))
EXPONENTS = tuple((1 + 4 * i) / 200 for i in range(25))  # none is an end of an interval
TOP_EIGENVALUES = 12  # largest simulated eigenvalues with overlaps
MIN_OVERLAP = 0.05  # squared overlap below which a simulated spike carries no function of κ
MEANINGS = {
    "published_count": "number of spikes as n → ∞; NaN where the regime has no degree",
    "predicted_count": "number of predicted spikes at this n, beyond the edge by the margin",
    "unresolved": "number of predicted spikes nearer to the edge than that",
    "simulated_count": "mean number of simulated spikes beyond the same place",
    "published_learned": "whether a spike carries the degree as n → ∞",
    "predicted_learned": "whether a predicted spike carries it at this n",
    "simulated_learned": "share of the seeds in which a simulated spike carries it",
    "edge": "predicted upper edge of the bulk, as an eigenvalue of FᵀF/n",
    "margin": "distance beyond the edge from which an eigenvalue counts as a spike",
}
Degrees = tuple[int | None, ...]


@dataclass(frozen=True)
class PhasePoint:
    """One problem of a phase diagram; None or () where `status` or `regime` says why."""

    problem: Problem
    regime: str  # in words
    published: tuple[int, ...] | None  # degrees of the spikes as n → ∞
    predicted: tuple[int, ...] | None = None  # degrees of resolved spikes, largest spike first
    unresolved: int = 0  # predicted spikes within the margin
    edge: float = math.nan  # NaN without a prediction
    margin: float = math.nan
    simulated: tuple[Degrees, ...] = ()  # by seed, as `predicted`; None for no function of κ
    status: str = OK
    notes: tuple[str, ...] = ()  # where the prediction leaves the range of an approximation

    def draws(self, kind: str) -> tuple[Degrees, ...]:
        """The degrees of `published`, `predicted` or each `simulated`; none where unknown."""
        if kind == "simulated":
            return self.simulated
        degrees = getattr(self, kind)
        return () if degrees is None else (degrees,)

    def count(self, kind: str) -> float:
        """The number of spikes, a mean over the seeds; NaN where unknown."""
        return _mean([len(degrees) for degrees in self.draws(kind)])

    def learned(self, kind: str, degree: int) -> float:
        """Whether some spike carries a degree, or in what share of the seeds."""
        return _mean([degree in degrees for degrees in self.draws(kind)])

    def as_dict(self) -> dict[str, Any]:
        """Its numbers, ready for JSON."""
        published, predicted = self.published, self.predicted
        known = predicted is not None
        return {
            "regime": self.regime,
            "published_count": None if published is None else len(published),
            "predicted_count": None if predicted is None else len(predicted),
            "simulated_count": self.count("simulated") if self.simulated else None,
            "published_degrees": None if published is None else list(published),
            "predicted_degrees": None if predicted is None else list(predicted),
            "simulated_degrees": [list(degrees) for degrees in self.simulated],
            "unresolved": self.unresolved if known else None,
            "edge": self.edge if known else None,
            "margin": self.margin if known else None,
            "status": self.status,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False, repr=False)
class PhaseDiagram(Result):
    """Spikes over the step exponent and, if asked, a second field; `points` has each whole."""

    MEANINGS: ClassVar[Mapping[str, str]] = MEANINGS
    DIMS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        name: ("degree",) for name in MEANINGS if name.endswith("learned")
    }

    problem: Grid
    points: tuple[PhasePoint, ...]  # in the order of the grid
    seeds: tuple[int, ...]  # of the simulations; () for none

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in MEANINGS:
            raise AttributeError(name)
        return self.dataset[name]

    @property
    def grid(self) -> Grid:
        """The problems that were asked about."""
        return self.problem

    @property
    def numbers(self) -> dict[str, Any]:
        """Counts and learned degrees by exponent and field."""
        return {name: self.dataset[name].values for name in MEANINGS if name in self.dataset}

    @property
    def notes(self) -> tuple[str, ...]:
        """Why points have no number, and each kind of note once."""
        told = [(*p.notes, *([p.status] if p.status != OK else [])) for p in self.points]
        return tuple(grouped_notes(zip(self.grid.points(), told, strict=True)))

    def tables(self) -> list[Table]:
        """A row for each point."""
        kinds = ("published", "predicted", *(("simulated",) if self.seeds else ()))
        names = [*(f"{kind}_count" for kind in kinds), "published_degrees", "predicted_degrees"]
        refused = any(point.status != OK for point in self.points)
        rows = []
        for place, point in zip(self.grid.points(), self.points, strict=True):
            shown = point.as_dict()
            status = [OK if point.status == OK else "see below"] if refused else []
            rows.append([*place.values(), *(shown[name] for name in names), *status])
        return [Table.of([*self.grid.dims, *names, *(["status"] if refused else [])], rows)]

    def __repr__(self) -> str:
        noted = sum(bool(point.notes) for point in self.points)
        return f"PhaseDiagram of {self.grid!r}\n    {len(self.points)} points, {noted} noted"

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """Counts and learned degrees by exponent and field, with a status for each point."""
        told = [name for name in MEANINGS if self.seeds or not name.startswith("simulated")]
        columns = {name: _column(name, self.points) for name in told}
        texts = {
            "regime": [point.regime for point in self.points],
            "status": [point.status for point in self.points],
            "notes": ["\n".join(point.notes) for point in self.points],
        }
        arrays = arrays_over(self.grid, type(self), columns, texts)
        return xarray.Dataset(arrays, {**self.grid.coordinates(), "degree": list(DEGREES)})

    def as_dict(self) -> dict[str, Any]:
        """Every point with its coordinates, ready for JSON."""
        places = self.grid.points()
        rows = [{**at, **p.as_dict()} for at, p in zip(places, self.points, strict=True)]
        return {"over": self.grid.coordinates(), "seeds": list(self.seeds), "points": rows}


def phase_diagram(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = 0,
    setting: Setting | None = None,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> PhaseDiagram:
    """Number of spikes and learned degrees over the step exponent and a second field.

    For every point: the limit n → ∞ from the published intervals, the prediction at this n
    (`spectrum`) and, with seeds, the real network, counted beyond the place where the prediction
    starts to count. What cannot be predicted or simulated says so in its `status`.

    problem
        A grid over the step exponent and at most one further field; around a problem, and in a
        grid without them, 25 exponents are equally spaced in (0, 1/2).
    seeds
        How many networks to simulate at each point, or their seeds; 0 for none.
    setting, device
        What and where to simulate, as for `simulated_spectrum`.
    progress
        Called with the points done and their number.
    """
    grid = _over_exponents(problem)
    require_known(grid, "phase_diagram")
    listed = () if _is_zero(seeds) else checked_seeds(seeds)
    run = {"setting": Setting() if setting is None else setting, "device": device}
    problems, points = list(grid), []
    for done, each in enumerate(problems, start=1):
        points.append(_point(each, listed, run))
        if progress is not None:
            progress(done, len(problems))
    return PhaseDiagram(grid, tuple(points), listed)


def _is_zero(seeds: object) -> bool:
    return isinstance(seeds, int) and not isinstance(seeds, bool) and seeds == 0


def _over_exponents(problem: Problem | Grid) -> Grid:
    """The grid itself, with the default exponents first if it has none."""
    if not isinstance(problem, (Problem, Grid)):
        raise InvalidProblem("problem", "must be a Problem or a Grid", problem)
    if isinstance(problem, Problem):
        return problem.vary(step_exponent=EXPONENTS)
    rule = "must vary step_exponent and at most one further field, not the step size"
    if "step_size" in problem.axes or len(set(problem.axes) | {"step_exponent"}) > 2:
        raise InvalidProblem("problem", rule, problem.dims)
    if "step_exponent" in problem.axes:
        return problem
    return problem.base.vary(step_exponent=EXPONENTS, **problem.axes, **problem.fixed)


def _point(problem: Problem, seeds: tuple[int, ...], run: Mapping[str, Any]) -> PhasePoint:
    degree = problem.regime.degree
    published = None if degree is None else learned_powers(problem, degree)
    point = PhasePoint(problem, str(problem.regime), published)
    try:
        law = spectrum(problem)
    except FeaturestepError as error:
        return replace(point, status=status_of(error))
    found = SpectrumBeside(problem, law, None)
    if seeds:
        top = min(TOP_EIGENVALUES, problem.n, problem.width)
        found = beside(law, kept=True, seeds=seeds, variants=("trained",), top=top, **run)
    return replace(
        point,
        predicted=law.degrees,
        unresolved=len(law.spikes) - law.count,
        edge=law.edge,
        margin=law.margin,
        simulated=_simulated(found),
        status=found.reason or OK,
        notes=(*law.notes, *(run["setting"].departures if seeds else ())),
    )


def _simulated(found: SpectrumBeside) -> tuple[Degrees, ...]:
    """The degrees of the simulated spikes, seed by seed, counted where the prediction counts."""
    if found.simulated is None:
        return ()
    centred = abs(float(coefficients(found.problem.sigma, 0)[0])) < 1e-9
    return tuple(
        _carried(list(overlaps[:count]), centred) + (None,) * (count - len(overlaps))
        for count, overlaps in zip(found.counts, found.simulated.hermite_overlaps(), strict=True)
    )


def _carried(overlaps: list[FloatArray], centred: bool) -> Degrees:
    """Degrees by `carried_degrees`, None for a spike that carries no function of κ."""
    degrees = zip(carried_degrees(overlaps, centred), overlaps, strict=True)
    return tuple(degree if row.max() >= MIN_OVERLAP else None for degree, row in degrees)


def _column(name: str, points: tuple[PhasePoint, ...]) -> np.ndarray[Any, Any]:
    """One variable of the dataset: (points,) or (points, degrees)."""
    kind, _, what = name.partition("_")
    if what == "count":
        return np.array([point.count(kind) for point in points])
    if what == "learned":
        return np.array([[point.learned(kind, k) for k in DEGREES] for point in points])
    return np.array([getattr(point, name) for point in points])


def _mean(values: list[int] | list[bool]) -> float:
    return sum(values) / len(values) if values else math.nan
