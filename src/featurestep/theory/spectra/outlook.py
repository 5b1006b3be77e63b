"""The upper end of the bulk and what lies beyond it: which eigenvalues count as spikes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...borders import Border, border_of
from ...errors import NotConverged
from ...functions.hermite import coefficients
from ...threads import one_thread
from ...types import FloatArray
from ..validity import edge_notes, mixing_notes, reach_notes
from .branch import Branch, Trail
from .continued import Equations
from .edges import Edge, right_edge
from .entries import entry_reach, sample_reach
from .fineness import FULL, Budget, Fineness
from .gauge import at_share, share
from .law import Spike, carried_degrees
from .model import Model
from .outliers import Outlier, above, strengths_at


@dataclass(frozen=True)
class Outlook:
    """The upper end of the bulk and what lies beyond it, without the bulk's density."""

    model: Model
    equations: Equations
    end: Edge  # where the solution turns
    edge: float  # where the bulk ends, see `front`
    outliers: tuple[Outlier, ...]
    scale: float  # Tracy–Widom scale of the edge
    reach: float  # how far single large entries of F push eigenvalues, at least the edge

    @property
    def border(self) -> Border:
        """Where spikes begin."""
        return border_of(self.edge, self.scale, self.reach)

    @cached_property
    def spikes(self) -> tuple[Spike, ...]:
        """The outliers with their degrees, largest first."""
        border = self.border
        c_0 = float(coefficients(self.model.problem.sigma, 0)[0])
        degrees = carried_degrees([o.hermite for o in self.outliers], centred=abs(c_0) < 1e-9)
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
            for o, degree in zip(self.outliers, degrees, strict=True)
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
        edge, reach = float(front(model, equations, end).z[0].real), _reach(model, equations, end)
        outliers = tuple(each for each in above(equations, end) if each.location > edge)
        return Outlook(model, equations, end, edge, outliers, edge_scale(equations, end), reach)


def front(model: Model, equations: Equations, end: Edge) -> Branch:
    """The solution where the bulk ends.

    Single samples make the outermost parts of a bulk with exact weights: seen from above the axis
    they are all in sight.
    """
    if not (model.rung.blurred and model.is_exact):
        return end.at
    place = np.array([_reach(model, equations, end) + 0j])
    return equations.at(place, end.path[-1]).resolved("the end of the bulk was not resolved")


def to_the_last_sample(view: Outlook) -> Outlook:
    """The same for a bulk that is seen from above the axis after all: it ends as in `front`."""
    if not view.model.is_exact:
        return view
    beyond = tuple(each for each in view.outliers if each.location > view.reach)
    return replace(view, edge=view.reach, outliers=beyond)


def _reach(model: Model, equations: Equations, end: Edge) -> float:
    entries = entry_reach(model.problem, equations, end)
    if not model.is_exact:
        return entries
    return max(entries, sample_reach(model.problem, equations, end))


def strengths(
    model: Model, count: int, *, fineness: Fineness = FULL, near: Trail | None = None
) -> tuple[FloatArray, Trail]:
    """Largest eigenvalues of P where the bulk ends: those above 1 belong to spikes."""
    with one_thread(), np.errstate(all="ignore"):
        equations = Equations(model.batch, fineness, near)
        values = strengths_at(equations, front(model, equations, right_edge(equations)))[:count]
    return np.pad(values, (0, count - values.size)), equations.trail


def edge_scale(equations: Equations, edge: Edge) -> float:
    """(C N)^(−2/3) for a density (C/π)√(E − x) below the edge E: the scale of Tracy and Widom.

    Near the edge z − E = ½ z″(Y)(Y − Y_E)² and m is linear in Y, which gives C.
    """
    if edge.root is not None:
        return float((edge.root * equations.width) ** (-2.0 / 3.0))
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
