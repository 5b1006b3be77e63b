"""The upper end of the bulk and what lies beyond it: which eigenvalues count as spikes.

Single large entries of F push eigenvalues out of the bulk too. An entry f of row i and column j
makes one where 1 + f² h_i g_j = 0, with h = 1/(1+χ) of the row and g = V2/N of the column. Its
vectors sit on that row and that column: it carries no function of κ and is no spike. Activations
with heavy tails have some up to very large n.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...core.borders import Border, border_of
from ...core.errors import NotConverged
from ...core.problem import Problem
from ...core.threads import one_thread
from ...core.types import FloatArray
from ...functions.nonlinearity import coefficients
from ...functions.quadrature import normal_density
from ..exact.dyson import bare_determinant
from ..exact.residuals import residual_law
from ..exact.spikes import R_NODES, groups_seen
from ..exact.step import Row, noise_of
from ..exact.weights import ExactWeights
from ..validity import edge_notes, mixing_notes, reach_notes
from .branch import Branch, Trail
from .continued import Equations
from .edges import Edge, right_edge
from .fineness import FULL, Budget, Fineness
from .gauge import at_share, share
from .law import Spike, carried_degrees
from .model import Model
from .outliers import Outlier, above, strengths_at

_EXPECTED = 0.05  # such eigenvalues in a draw that may lie beyond the reach
_END, _POINTS = 8.5, 341
_FURTHEST = 4.0  # in edges


@dataclass(frozen=True)
class Outlook:
    """The upper end of the bulk and what lies beyond it, without the bulk's density."""

    model: Model
    equations: Equations
    end: Edge  # where the solution turns
    outliers: tuple[Outlier, ...]
    scale: float  # Tracy–Widom scale of the edge
    reach: float  # how far single large entries of F push eigenvalues, at least the edge
    blurred: bool  # whether the bulk is seen from above the axis

    @property
    def edge(self) -> float:
        """Where the bulk ends.

        Single samples make the outermost parts of a bulk with exact weights: seen from above the
        axis they are all in sight.
        """
        return self.reach if self.blurred and self.model.is_exact else self.end.location

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
        heavy_row = float(self.equations.largest_row / self.equations.size)
        unresolved = sum(not spike.resolved for spike in self.spikes)
        model, end = self.model, self.end.location
        places = [spike.location for spike in self.spikes if spike.resolved]
        return (
            *model.notes,
            *mixing_notes(model.problem, places),
            *edge_notes(unresolved=unresolved, heavy_row=heavy_row),
            *reach_notes(edge=end, reach=self.reach, exact=model.is_exact, heavy=model.is_heavy),
        )


def outlook(
    model: Model,
    *,
    fineness: Fineness = FULL,
    near: Trail | None = None,
    budget: Budget | None = None,
) -> Outlook:
    """Edge and spikes of one model."""
    with one_thread(), np.errstate(all="ignore"):  # what does not converge is refused
        equations = Equations(model.batch, fineness, near, budget)
        end = right_edge(equations)
        reach, outliers = _reach(model, equations, end), tuple(above(equations, end))
        scale = edge_scale(equations, end)
        return Outlook(model, equations, end, outliers, scale, reach, model.rung.blurred)


def _reach(model: Model, equations: Equations, edge: Edge) -> float:
    """Beyond it hardly a draw has an eigenvalue that is no spike; at least the edge."""
    pushed = [_by_entries(model.problem, equations)] if model.is_heavy else []
    if model.is_exact:
        pushed.append(_by_samples(model.problem, equations))
    return max([edge.location, *(_last(equations, edge, reaches) for reaches in pushed)])


def _by_samples(problem: Problem, equations: Equations) -> Callable[[Branch], bool]:
    """Whether single samples of the step, with a large residual r, push eigenvalues past a place.

    Such a sample makes one where I − N(r)Γ is singular (eq. 22). Where r is unbounded, the bulk has
    no sharp end: it is given for a law of r that a few samples exceed, and the reach for a law that
    hardly a draw exceeds. In the same way single neurons with a large |g| reach beyond a bulk that
    was solved with few groups.
    """
    law = residual_law(problem.star, noise_of(Row(problem)), R_NODES, problem.n_step / _EXPECTED)
    r = np.linspace(law.nodes.min(), law.nodes.max(), _POINTS)
    side = equations.batch.exact
    every = replace(side.step, r=r[None])

    def reaches(branch: Branch) -> bool:
        point = equations.point(branch)
        weights = point.weights
        assert isinstance(weights, ExactWeights)
        if np.any(bare_determinant(every, weights.blocks.coupled.real) < 0.0):
            return True
        seen = groups_seen(weights, side, point.v2.real, equations.mass(point))
        return bool(np.any(seen.outside))

    return reaches


def _last(equations: Equations, edge: Edge, reaches: Callable[[Branch], bool]) -> float:
    """The highest place that is reached, by halving."""
    if not reaches(edge.at):
        return edge.location
    low, high, near = edge.location, _FURTHEST * edge.location, edge.path[-1]
    while high > equations.fineness.reach * low:
        place = (low * high) ** 0.5
        found = equations.at(np.array([place + 0j]), near)
        near = found if found.converged[0] else near
        beyond = bool(found.converged[0]) and not reaches(found)
        low, high = (low, place) if beyond else (place, high)
    return high


def _by_entries(problem: Problem, equations: Equations) -> Callable[[Branch], bool]:
    """Whether some entry is expected to make an eigenvalue above a place above the bulk."""
    batch = equations.batch
    z = np.linspace(-_END, _END, _POINTS)
    weight = normal_density(z) / normal_density(z).sum()
    place = batch.shift[0] * batch.kappa[:, None]
    values = problem.sigma(place[:, :, None] + batch.norm[0][:, None] * z)
    squares = (values - batch.mean[0][:, :, None]) ** 2  # (Q, K, points)

    def reaches(branch: Branch) -> bool:
        shrink = 1.0 / (1.0 + branch.chi[0].real)
        needed = -1.0 / (shrink[:, None] * branch.v2[0].real / batch.neurons[0])  # (Q, K)
        chance = (squares > needed[:, :, None]) @ weight
        return bool(equations.n * batch.weight @ chance @ batch.neurons[0] > _EXPECTED)

    return reaches


def strengths(model: Model, count: int, *, near: Trail | None = None) -> tuple[FloatArray, Trail]:
    """Largest eigenvalues of P where the bulk ends: those above 1 belong to spikes."""
    with one_thread(), np.errstate(all="ignore"):
        equations = Equations(model.batch, near=near)
        end = right_edge(equations)
        place = end.at
        if model.rung.blurred and model.is_exact:  # the edge of its outlook
            z = np.array([_reach(model, equations, end) + 0j])
            place = equations.at(z, end.path[-1]).resolved("the end of the bulk was not resolved")
        values = strengths_at(equations, place)[:count]
    return np.pad(values, (0, count - values.size)), equations.trail


def edge_scale(equations: Equations, edge: Edge) -> float:
    """(C N)^(−2/3) for a density (C/π)√(E − x) below the edge E: the scale of Tracy and Widom.

    Near the edge z − E = ½ z″(Y)(Y − Y_E)² and m is linear in Y, which gives C.
    """
    level = share(equations, edge.at)
    sizes = (1e-3, 1e-2, 3e-2, 1e-4, 1e-5)
    steps = [size * level for size in sizes if size >= equations.fineness.seen]
    tries = itertools.product(steps, (edge.at, edge.path[-1]))
    for step, start in tries:
        ends = [at_share(equations, level + sign * step, start)[0] for sign in (-1.0, 1.0)]
        if not all(end.converged[0] for end in ends):
            continue
        bend = sum(float(end.z[0].real) - edge.location for end in ends) / step**2  # z″
        m = [float(equations.trace(end)[0].real) for end in ends]
        slope = (m[1] - m[0]) / (2.0 * step)
        root = abs(slope) * np.sqrt(2.0 / abs(bend))
        return float((root * equations.width) ** (-2.0 / 3.0))
    raise NotConverged("the density next to the edge of the bulk was not resolved")
