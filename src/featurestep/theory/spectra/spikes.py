"""What lies beyond the bulk: its spikes (36), what they carry (18), and what single samples reach.

Above the bulk V2 < 0, and I + 𝒢C of (36) is I − P with P ≥ 0 decreasing in z: as many eigenvalues
lie above z as P has eigenvalues above 1.

Single large entries of F push eigenvalues out of the bulk too. An entry f of row i and column j
makes one where 1 + f² h_i g_j = 0, with h = 1/(1+χ) of the row and g = V2/N of the column. Its
vectors sit on that row and that column: it carries no function of κ and is no spike. Activations
with heavy tails have some up to very large n. In the same way a sample of the step with a large
residual stretches the weights along itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from ...core.display import json_value
from ...core.errors import NotConverged
from ...core.problem import Problem
from ...core.spiked import Border, border_of
from ...core.threads import one_thread
from ...core.types import FloatArray
from ...functions.nonlinearity import coefficients
from ...functions.quadrature import normal_density
from ...functions.roots import find_root
from ..exact.step import ProblemRow, residual_noise
from ..labels import residual_law
from ..validity import close_spikes_notes, edge_notes, reach_notes
from .edges import Edge, edge_scale, right_edge
from .equations import FULL, Accuracy, Branch, Equations, joined
from .model import HIGHEST, Model
from .rows_model import RowFields, RowsModel
from .spike_system import GroupsInBulk
from .steps_model import ChainModel, FieldsInBulk

AnyModel = Model | ChainModel | RowsModel
_REACH = 1e-4  # relative error of Y where single samples end
_FACTOR = 4.0  # of z, from place to place beyond the way to the edge
_MAX_EXPECTED = 0.05  # eigenvalues of single entries or samples in a draw beyond the reach
_MAX_ENTRY, _ENTRY_POINTS = 8.5, 341  # values of z for single entries, of r for single samples
_NOT_RESOLVED = "a spike was not resolved from the bulk"


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


@dataclass(frozen=True)
class Outlier:
    """One eigenvalue of FᵀF/n outside the bulk."""

    location: float
    hermite: FloatArray  # (HIGHEST + 1,) squared overlaps with H_0(κ), H_1(κ), …
    powers: FloatArray  # (HIGHEST,) with κ, κ², …
    target: float  # with the target's coordinates, summed over its directions
    kappa: FloatArray  # (Q,)
    function: FloatArray  # (Q,) mean of √n × the left singular vector given κ


@dataclass(frozen=True)
class EdgeAndSpikes:
    """The upper end of the bulk and what lies beyond it, without the bulk's density."""

    model: AnyModel
    equations: Equations
    end: Edge  # where the solution turns
    outliers: tuple[Outlier, ...]
    scale: float  # Tracy–Widom scale of the edge
    reach: float  # how far single samples or entries push eigenvalues, at least the edge

    @property
    def edge(self) -> float:
        """Where the bulk ends."""
        return self.end.location

    @property
    def border(self) -> Border:
        """Where spikes begin."""
        return border_of(self.edge, self.scale, self.reach)

    @cached_property
    def spikes(self) -> tuple[Spike, ...]:
        """The outliers with their degrees, largest first."""
        border = self.border
        c_0 = float(coefficients(self.model.problem.sigma, 0)[0])
        beyond = [each for each in self.outliers if each.location > border.edge]
        degrees = carried_degrees([o.hermite for o in beyond], centred=abs(c_0) < 1e-9)
        return tuple(
            Spike(
                location=o.location,
                degree=degree,
                overlaps=tuple(map(float, o.hermite[1:])),
                constant_overlap=float(o.hermite[0]),
                power_overlaps=tuple(map(float, o.powers)),
                target_overlap=o.target,
                distance=o.location / border.edge - 1.0,
                resolved=o.location > border.place,
                kappa=o.kappa,
                function=o.function,
            )
            for o, degree in zip(beyond, degrees, strict=True)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say of the model, of the edge and of the spikes."""
        heavy_row = self.equations.largest_row / self.equations.size
        unresolved = sum(not spike.resolved for spike in self.spikes)
        model, end = self.model, self.end.location
        places = [spike.location for spike in self.spikes if spike.resolved]
        return (
            *model.notes,
            *close_spikes_notes(model.problem, places),
            *edge_notes(unresolved=unresolved, heavy_row=heavy_row),
            *reach_notes(edge=end, reach=self.reach, heavy=model.varies),
        )


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


def edge_and_spikes(model: AnyModel, accuracy: Accuracy = FULL) -> EdgeAndSpikes:
    """Edge and spikes of one model."""
    with one_thread(), np.errstate(all="ignore"):  # what does not converge is refused
        equations = model.equations(accuracy)
        end = right_edge(equations)
        reach = _reach(model, equations, end)
        outliers = tuple(_outliers(model, equations, end))
        scale = edge_scale(equations, end)
        return EdgeAndSpikes(model, equations, end, outliers, scale, reach)


def strengths(model: Model, count: int) -> FloatArray:
    """Largest eigenvalues of P where the bulk ends: those above 1 belong to spikes."""
    with one_thread(), np.errstate(all="ignore"):
        equations = Equations(model.samples, varies=model.varies)
        values = strengths_at(model, equations, right_edge(equations).at)[:count]
    return np.pad(values, (0, count - values.size))


def strengths_at(model: Model, equations: Equations, place: Branch) -> FloatArray:
    """Eigenvalues of P, largest first: as many eigenvalues lie above the place as exceed 1."""
    return np.asarray(_eigenvalues(model, equations, place)[0, ::-1] + 1.0)


def _groups(
    model: AnyModel, equations: Equations, branch: Branch
) -> GroupsInBulk | FieldsInBulk | RowFields:
    return model.groups_at(equations.evaluate(branch))


def _eigenvalues(model: AnyModel, equations: Equations, branch: Branch) -> FloatArray:
    """Of P − I, ascending, (B, size)."""
    return np.asarray(np.linalg.eigvalsh(_groups(model, equations, branch).matrix))


def _outliers(model: AnyModel, equations: Equations, edge: Edge) -> list[Outlier]:
    """Eigenvalues above the bulk, largest first."""
    count = int(np.count_nonzero(_eigenvalues(model, equations, edge.at) > 0.0))
    if count == 0:
        return []
    places = _places(model, equations, edge, count)
    slopes = _slopes(model, equations, places, edge)
    groups = _groups(model, equations, places)
    plain, linear = groups.columns
    vectors = np.linalg.eigh(groups.matrix)[1]
    found = []
    for i, z in enumerate(map(float, places.z.real)):
        own = vectors[i, :, -1 - i]
        carried = plain[i] @ own, linear[i] @ own  # BLv at every node
        found.append(_outlier(model, equations, z, float(slopes[i]), groups.mass[i], carried))
    return found


def _places(model: AnyModel, equations: Equations, edge: Edge, count: int) -> Branch:
    """Places of the spikes, all at once.

    Roots in t = √(z/E − 1), in which an eigenvalue of P is smooth down to the edge E.
    """
    known = _brackets(model, equations, edge)

    @cache
    def largest(row: int) -> FloatArray:
        return _eigenvalues(model, equations, known[row])[0, ::-1][:count]

    rows: list[int] = []  # of the highest place below each spike
    for rank in range(count):
        above, row = rows[-1] - 1 if rows else 0, len(known) - 1
        while row - above > 1:
            middle = (above + row) // 2
            above, row = (above, middle) if largest(middle)[rank] > 0.0 else (middle, row)
        rows.append(row)
    pairs = [(row, row - 1) for row in rows]
    places = np.array([[known[row].z[0].real for row in pair] for pair in pairs])
    ends = np.sqrt(places / edge.location - 1.0)
    values = np.array([[largest(row)[rank] for row in pair] for rank, pair in enumerate(pairs)])
    near = joined([known[row - 1] for row in rows])

    def solved_at(t: FloatArray) -> Branch:
        z = edge.location * (1.0 + t**2) + 0j
        return equations.at(z, near.scaled_to(z)).require_converged(_NOT_RESOLVED)

    def own_eigenvalues(t: FloatArray) -> FloatArray:
        nonlocal near
        near = solved_at(t)
        return _own_eigenvalues(model, equations, near)

    low, high = ends.T
    return solved_at(
        find_root(
            own_eigenvalues,
            low,
            high,
            values=(values[:, 0], values[:, 1]),
            relative=equations.accuracy.spike,
        )
    )


def _own_eigenvalues(model: AnyModel, equations: Equations, places: Branch) -> FloatArray:
    """At the place of each spike, the eigenvalue that vanishes there."""
    rows = np.arange(places.z.size)
    return np.asarray(_eigenvalues(model, equations, places)[rows, -1 - rows])


def _slopes(model: AnyModel, equations: Equations, places: Branch, edge: Edge) -> FloatArray:
    """How fast each spike's eigenvalue falls with z: at the edge itself without bound."""
    t = np.sqrt(places.z.real / edge.location - 1.0)
    step = 3.0 * equations.accuracy.difference * t
    ends = []
    for sign in (-1.0, 1.0):
        near = equations.at(edge.location * (1.0 + (t + sign * step) ** 2) + 0j, places)
        ends.append(_own_eigenvalues(model, equations, near.require_converged(_NOT_RESOLVED)))
    slope = (ends[1] - ends[0]) / (4.0 * t * step * edge.location)
    return np.where(slope < 0.0, slope, -np.inf)


def _brackets(model: AnyModel, equations: Equations, edge: Edge) -> list[Branch]:
    """Real solutions from beyond every spike down to the edge."""
    places = list(edge.path)
    while np.any(_eigenvalues(model, equations, places[0]) > 0.0):
        z = _FACTOR * places[0].z
        if z[0].real > 1e15 * edge.location:
            raise NotConverged("a spike was not bracketed")
        places.insert(0, equations.at(z, places[0].scaled_to(z)).require_converged(_NOT_RESOLVED))
    return [*places, edge.at]


def _outlier(
    model: AnyModel,
    equations: Equations,
    z: float,
    slope: float,
    mass: FloatArray,
    carried: tuple[FloatArray, FloatArray],
) -> Outlier:
    """Location and squared overlaps −Res T_ff/E f² (eq. 18) of a spike.

    `slope` is that of its eigenvalue with z, and `carried` the vector at every node, (Q,), and
    along s, (r, Q), of either sign: its function is the one that goes along with the Hermite
    polynomial it has most of.
    """
    scale = -equations.n / (z * slope)
    at = model.coordinates
    plain, linear = (mass / equations.n * part for part in carried)
    hermite, powers = plain @ at.hermite, plain @ at.powers
    target = at.target @ plain + at.across @ linear.sum(axis=1)
    function = at.function(mass / (equations.n * equations.weight) * carried[0], hermite)
    sign = np.copysign(np.sqrt(max(scale, 0.0)), max(hermite, key=abs))
    return Outlier(
        location=z,
        hermite=scale * hermite**2,
        powers=scale * powers**2 / at.power_squares,
        target=float(scale * (target**2).sum()),
        kappa=at.kappa,
        function=sign * function,
    )


def _reach(model: AnyModel, equations: Equations, edge: Edge) -> float:
    """Beyond it hardly a draw has an eigenvalue that is no spike; at least the edge."""
    tests = [_clear_of_samples(model, equations)]
    if isinstance(model, Model) and model.varies:
        tests.append(_clear_of_entries(model.problem, equations))
    return max(_highest_reached(equations, edge, test) for test in tests)


def _clear_of_samples(model: AnyModel, equations: Equations) -> Callable[[Branch], float]:
    """Negative where single samples of the step, with a large residual r, push eigenvalues beyond.

    Such a sample makes one where I − N(r)Γ is singular (eq. 22). Where r is unbounded, the bulk has
    no sharp end: it is given for a law of r that a few samples exceed, and the reach for a law that
    hardly a draw exceeds. In the same way single neurons with a large |g| reach beyond a bulk that
    was solved with few groups.
    """
    problem = model.problem
    law = residual_law(
        problem.star,
        residual_noise(ProblemRow(problem)),
        FULL.r_nodes,
        problem.n_step / _MAX_EXPECTED,
    )
    r = np.linspace(law.nodes.min(), law.nodes.max(), _ENTRY_POINTS)

    def clearance(branch: Branch) -> float:
        found = equations.evaluate(branch)
        clear = float(equations.sample_determinants(found, r).min())
        if isinstance(model, Model) and model.spike_groups is not None:
            clear = min(clear, float(model.groups_at(found).clearance.min()))
        return clear

    return clearance


def _clear_of_entries(problem: Problem, equations: Equations) -> Callable[[Branch], float]:
    """Negative where some entry is expected to make an eigenvalue beyond a place."""
    samples, step = equations.samples, equations.samples.step
    z = np.linspace(-_MAX_ENTRY, _MAX_ENTRY, _ENTRY_POINTS)
    weight = normal_density(z) / normal_density(z).sum()
    place = step.shift[0] * samples.kappa[:, None]
    values = problem.sigma(place[:, :, None] + step.norm[0][:, None] * z)
    mean = samples.columns.plain[0, :, : step.k.shape[1]]
    squares = (values - mean[:, :, None]) ** 2  # (Q, K, points)

    def clearance(branch: Branch) -> float:
        shrink = 1.0 / (1.0 + branch.chi[0].real)
        needed = -1.0 / (shrink[:, None] * branch.v2[0].real / step.neurons[0])  # (Q, K)
        chance = (squares > needed[:, :, None]) @ weight
        return _MAX_EXPECTED - float(equations.n * samples.weight @ chance @ step.neurons[0])

    return clearance


def _highest_reached(
    equations: Equations, edge: Edge, clearance: Callable[[Branch], float]
) -> float:
    """The highest place where a clearance is not positive, or the edge: on the way down to it."""
    value = clearance(edge.at)
    if value >= 0.0:
        return edge.location
    reached = edge.turn
    for clear in reversed(edge.points):
        above = clearance(clear.branch)
        if above >= 0.0:
            break
        reached, value = clear, above
    else:
        return edge.points[0].z
    known = {point.level: point for point in (reached, clear)}

    def at_level(level: float) -> float:
        known[level] = equations.at_ratio(level, *known.values())
        return clearance(known[level].branch)

    ends = (reached.level, clear.level)
    return known[find_root(at_level, *ends, values=(value, above), relative=_REACH)].z
