"""Drafts of the spectrum, which follow a moving slider: little work, and a limit to it.

A draft begins where that of a similar problem has ended. A bulk of one interval is solved on its
nodes as in full, only more coarsely; one with gaps is seen from above the axis (`above`). Its
weights are those of the full spectrum. Only for a continuous readout law do exact ones take longer
than a hand moves: a `light` draft has isotropic ones, and leads to them where nothing else does.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

import numpy as np

from ...core.errors import NotConverged
from ...core.problem import Problem
from ...core.threads import one_thread
from ...core.types import FloatArray
from .above import carried, density_below, lower_end, places, seen
from .branch import Trail
from .bulk import bulk
from .continued import Equations
from .fineness import DRAFT, Budget, Rung
from .interval import Interval, curve
from .law import Spike
from .model import FINEST, Model, model_of
from .outlook import Outlook, outlook
from .typical import spectral_method

CLOSE, LIGHT = Rung(rough=True), Rung(light=True)
_NEAR_WORK, _FAR_WORK = 4e8, 1.2e9  # with exact weights, from a similar problem or from afar
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
    light: bool = False  # whether its weights are isotropic where those in full are exact

    @property
    def edges(self) -> tuple[tuple[float, float], ...]:
        """The ends of the bulk, gaps in it left out."""
        return ((float(self.s[0]) ** 2, self.edge),)


def draft_spectrum(
    problem: Problem, near: Trail | None = None, *, light: bool = False
) -> tuple[Draft, Trail]:
    """A draft, and the trail for the next one; raises `NotConverged` beyond its work."""
    with one_thread(), np.errstate(all="ignore"):
        if problem.law.is_finite or spectral_method(problem) != "exact":
            return _drafted(_model(problem, CLOSE), near)
        if light:
            return _drafted(_model(problem, LIGHT), near)
        close = _model(problem, CLOSE)
        if near is not None:
            with contextlib.suppress(NotConverged):
                return _drafted(close, near, _NEAR_WORK)
        first = _drafted(_model(problem, LIGHT), near)
        with contextlib.suppress(NotConverged):
            return _drafted(close, first[1], _FAR_WORK)
        return first


def _model(problem: Problem, rung: Rung) -> Model:
    finest = FINEST if problem.law.is_finite and len(problem.law.values) <= _FEW else 1.0
    return model_of(problem, rung, least=DRAFT.rules, most=finest)


def _drafted(model: Model, near: Trail | None, work: float = DRAFT.work) -> tuple[Draft, Trail]:
    view = outlook(model, fineness=DRAFT, near=near, budget=Budget(work))
    equations, atom = view.equations, model.atom
    blurred = equations.near.blurred
    part = None if blurred else _on_the_axis(view, atom)
    if part is None:
        equations.trail.blurred = blurred - 1 if blurred else _PATIENCE
        view = replace(view, blurred=True)
        equations.budget = Budget(max(work, _NEAR_WORK) if model.is_exact else work)
        s, density = _from_above(equations, view.edge, atom)
    else:
        s, density = curve((part,), _POINTS)
    found = Draft(
        problem=model.problem,
        s=s,
        density=density,
        edge=view.edge,
        atom=atom,
        spikes=view.spikes,
        notes=view.notes,
        blurred=view.blurred,
        light=model.rung.light,
    )
    return found, equations.trail


def _on_the_axis(view: Outlook, atom: float) -> Interval | None:
    """The bulk as one interval; None if that is not what it is."""
    try:
        (part,) = bulk(view.equations, atom, view.end, depth=0)
    except NotConverged:
        return None
    _, mean_square = view.model.moments()
    gap = abs(part.integral(part.nodes**4) / mean_square - 1.0)
    whole = abs(atom + part.mass - 1.0) < DRAFT.density and gap < DRAFT.moment
    return part if whole else None


def _from_above(equations: Equations, edge: float, atom: float) -> tuple[FloatArray, FloatArray]:
    """Singular values from the lower end to the upper one, and the density there."""
    top = float(np.sqrt(edge))
    known = equations.near.views
    s, w = places(0.0 if known is None else known[0] * top, top, _VIEWS, _BLUR)
    start = None if known is None else carried(known[2], known[1], s / top, w)
    branch = seen(equations, w, start)
    density = density_below(equations, branch, w, atom)
    equations.trail.views = lower_end(s, density, top) / top, s / top, branch
    return np.append(s, top), np.append(density, 0.0)
