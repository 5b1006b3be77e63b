"""A draft of the spectrum, which follows a moving slider: little work, and a limit to it.

It begins where the draft of a similar problem has ended. A bulk of one interval is solved on its
nodes as in full, only more coarsely; one with gaps is seen from above the axis (`above`). A
continuous readout law has isotropic weights in it, and a note says what that leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import NotConverged
from ...problem import Problem
from ...threads import one_thread
from ...types import FloatArray
from .above import carried, density_below, lower_end, places, seen
from .branch import Trail
from .bulk import single_interval
from .continued import Equations
from .fineness import DRAFT, Budget
from .interval import Interval, curve
from .law import Spike
from .model import FINEST, Rung, model_of
from .outlook import Outlook, outlook

LIGHT = Rung(light=True)
_FEW = 4  # groups of neurons: more nodes are then no burden
_POINTS = 100  # of a curve on the nodes of one interval
_VIEWS = 40  # places above the axis
_BLUR = 0.01  # their height over the width of the bulk
_PATIENCE = 10  # drafts from above before the axis is tried again


@dataclass(frozen=True)
class Draft:
    """What a moving picture shows."""

    problem: Problem
    s: FloatArray  # singular values, increasing
    density: FloatArray
    edge: float  # the upper end of the bulk, as an eigenvalue
    atom: float
    spikes: tuple[Spike, ...]
    notes: tuple[str, ...]
    blurred: bool  # whether seen from above the axis

    @property
    def edges(self) -> tuple[tuple[float, float], ...]:
        """The ends of the bulk, gaps in it left out."""
        return ((float(self.s[0]) ** 2, self.edge),)


def draft_spectrum(problem: Problem, near: Trail | None = None) -> tuple[Draft, Trail]:
    """A draft, and the trail for the next one; raises `NotConverged` beyond its work."""
    with one_thread(), np.errstate(all="ignore"):
        finest = FINEST if problem.law.is_finite and len(problem.law.values) <= _FEW else 1.0
        view = outlook(
            model_of(problem, LIGHT, least=DRAFT.rules, most=finest), fineness=DRAFT, near=near
        )
        equations, atom = view.equations, view.model.atom
        blurred = equations.near.blurred
        part = None if blurred else _on_the_axis(view, atom)
        if part is None:
            equations.trail.blurred = blurred - 1 if blurred else _PATIENCE
            s, density = _from_above(equations, view.edge, atom)
        else:
            s, density = curve((part,), _POINTS)
        found = Draft(
            problem=problem,
            s=s,
            density=density,
            edge=view.edge,
            atom=atom,
            spikes=view.spikes,
            notes=view.notes,
            blurred=part is None,
        )
        return found, equations.trail


def _on_the_axis(view: Outlook, atom: float) -> Interval | None:
    """The bulk as one interval; None if that is not what it is."""
    equations = view.equations
    try:
        part = single_interval(equations, atom, view.end)
    except NotConverged:
        return None
    _, mean_square = view.model.moments()
    gap = abs(part.integral(part.nodes**4) / mean_square - 1.0)
    whole = abs(atom + part.mass - 1.0) < DRAFT.density and gap < DRAFT.moment
    return part if whole else None


def _from_above(equations: Equations, edge: float, atom: float) -> tuple[FloatArray, FloatArray]:
    """Singular values from the lower end to the upper one, and the density there."""
    equations.budget = Budget(DRAFT.work)
    top = float(np.sqrt(edge))
    known = equations.near.views
    s, w = places(0.0 if known is None else known[0] * top, top, _VIEWS, _BLUR)
    start = None if known is None else carried(known[2], known[1], s / top, w)
    branch = seen(equations, w, start)
    density = density_below(equations, branch, w, atom)
    equations.trail.views = lower_end(s, density, top) / top, s / top, branch
    return np.append(s, top), np.append(density, 0.0)
