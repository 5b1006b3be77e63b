"""A draft of the spectrum, which follows a moving slider: little work, and a limit to it.

It begins where the draft of a similar problem has ended. A bulk of one interval is solved on its
nodes as in full, only more coarsely. One with gaps is looked at from above the axis: with m of
(16), f(w) = 2w·m(w²)/π is analytic for Im w > 0, and Im f is the density of singular values where
w becomes real. From s + iδ it is continued down to s by its Taylor polynomial, which blurs edges
over about δ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import NotConverged
from ...problem import Problem
from ...quadrature import FloatArray
from ...spiked import spiked_weights, validity
from ...threads import one_thread
from .branch import Branch, Trail
from .bulk import single_interval
from .continued import Equations
from .fineness import DRAFT
from .interval import Interval, curve
from .law import Spike
from .solve import FINEST, Outlook, atom_of, exact_moments, fineness_of_rules, notes_of, outlook
from .typical import smooth_batch

_FEW = 4  # groups of neurons: more nodes are then no burden
_POINTS = 100  # of a curve on the nodes of one interval
_VIEWS = 40  # places above the axis
_HEIGHT, _SLOPE = 0.01, 0.15  # δ over the width of the bulk, and at most over s
_NOTHING = 0.02  # of the largest density
_STEPS = (6, 16)  # down to the first views
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
    validity: tuple[str, ...]
    blurred: bool  # whether seen from above the axis

    @property
    def edges(self) -> tuple[tuple[float, float], ...]:
        """The ends of the bulk, gaps in it left out."""
        return ((float(self.s[0]) ** 2, self.edge),)


def draft_spectrum(problem: Problem, near: Trail | None = None) -> tuple[Draft, Trail]:
    """A draft, and the trail for the next one; raises `NotConverged` beyond its work."""
    with one_thread(), np.errstate(all="ignore"):
        batch = smooth_batch(problem)
        finest = FINEST if batch.g.size <= _FEW else 1.0
        refine = min(finest, fineness_of_rules(batch, DRAFT.rules))
        view = outlook(problem, refine=refine, fineness=DRAFT, near=near)
        equations, atom = view.equations, atom_of(problem)
        blurred = equations.near.blurred
        part = None if blurred else _on_the_axis(view, atom)
        if part is None:
            equations.trail.blurred = blurred - 1 if blurred else _PATIENCE
            s, density = _from_above(equations, view.edge.location, atom)
        else:
            s, density = curve((part,), _POINTS)
        found = Draft(
            problem=problem,
            s=s,
            density=density,
            edge=view.edge.location,
            atom=atom,
            spikes=view.spikes,
            validity=(*validity(problem, spiked_weights(problem)), *notes_of(view)),
            blurred=part is None,
        )
        return found, equations.trail


def _on_the_axis(view: Outlook, atom: float) -> Interval | None:
    """The bulk as one interval; None if that is not what it is."""
    equations = view.equations
    try:
        part = single_interval(equations, atom, view.edge)
    except NotConverged:
        return None
    _, mean_square = exact_moments(equations.batch)
    gap = abs(part.integral(part.nodes**4) / mean_square - 1.0)
    whole = abs(atom + part.mass - 1.0) < DRAFT.density and gap < DRAFT.moment
    return part if whole else None


def _from_above(equations: Equations, edge: float, atom: float) -> tuple[FloatArray, FloatArray]:
    """Singular values from the lower end to the upper one, and the density there."""
    equations.work = 0.0
    top = float(np.sqrt(edge))
    known = equations.near.views
    low = 0.0 if known is None else known[0] * top
    s = low + 0.5 * (top - low) * (1.0 - np.cos((np.arange(_VIEWS) + 0.5) * np.pi / _VIEWS))
    w = s + 1j * np.minimum(_HEIGHT * (top - low), _SLOPE * s)
    branch = _views(equations, w, None if known is None else _moved(known, s / top, w))
    density = np.maximum(_continued(equations, branch, w, atom), 0.0)
    filled = np.flatnonzero(density > _NOTHING * density.max())
    begin = float(s[filled[0]])
    seen = filled[0] > 0  # or the bulk may have left the view
    low = max(0.0, begin - 0.05 * (top - begin)) if seen else 0.0
    equations.trail.views = low / top, s / top, branch
    return np.append(s, top), np.append(density, 0.0)


def _views(equations: Equations, w: np.ndarray, start: Branch | None) -> Branch:
    """The physical solution at z = w², from nearby or else down from far above."""
    z = w**2
    if start is not None:
        found = equations.at(z, start, DRAFT.accepted)
        if np.all(_is_physical(found)):
            return found
    for steps in _STEPS:
        found = equations.descended(z, steps, DRAFT.accepted)
        if np.all(_is_physical(found)):
            return found
    raise NotConverged("the bulk was not resolved", residual=float(found.residual.max()))


def _is_physical(branch: Branch) -> np.ndarray:
    """Whether V2, zV2 and −1/(z(1+χ)) are such as resolvents have above the axis, (B,)."""
    z = branch.z[:, None]
    groups = (branch.v2.imag > 0.0) & ((z * branch.v2).imag > 0.0)
    nodes = (z * (1.0 + branch.chi)).imag > 0.0
    return np.asarray(branch.converged & groups.all(axis=1) & nodes.all(axis=1))


def _moved(known: tuple[float, FloatArray, Branch], places: FloatArray, w: np.ndarray) -> Branch:
    """The solutions of the last draft at other places, all relative to the upper end."""
    _, old, branch = known
    z = w**2

    def along(values: np.ndarray) -> np.ndarray:
        index = np.clip(np.searchsorted(old, places), 1, old.size - 1)
        share = ((places - old[index - 1]) / (old[index] - old[index - 1]))[:, None]
        return np.asarray((1.0 - share) * values[index - 1] + share * values[index])

    return Branch(z, along(branch.v2 * branch.z[:, None]) / z[:, None], along(branch.chi), z.real)


def _continued(equations: Equations, branch: Branch, w: np.ndarray, atom: float) -> FloatArray:
    """The density on the axis below w, the eigenvalues at 0 left out: to second order in δ."""
    m, slope = equations.trace(branch), equations.trace_slope(branch)
    value = w * m + atom / w
    first = m + 2.0 * branch.z * slope - atom / branch.z
    second = np.gradient(first) / np.gradient(w)
    delta = w.imag
    continued = value - 1j * delta * first - 0.5 * delta**2 * second
    return np.asarray(2.0 / np.pi * continued.imag)
