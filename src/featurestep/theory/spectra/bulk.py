"""The bulk's density (16): solved on Chebyshev nodes of every interval that carries it.

Between two edges of the singular values s the solution is V2 = A + iB·sin θ with A and B analytic,
cos θ running over the interval: few nodes are enough, and integrals converge as fast. Where the
bulk begins at 0, s·V2 takes the place of V2 and the interval is mirrored at 0.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...core.errors import NotConverged
from ...core.types import FloatArray
from .branch import Branch, ComplexArray, joined
from .continued import Equations
from .edges import Edge, gap_edge, is_filled, left_edge
from .interval import Interval, Span, interpolated

_COMPLETE = 1e-7  # mass that may be missing without a search for it
_SCAN = 48
_NEXT = 1e-5  # relative distance from an edge of places next to it
_ISLAND = 1.0  # eigenvalues of an interval too small to be resolved further


def bulk(equations: Equations, atom: float, top: Edge, depth: int = 8) -> tuple[Interval, ...]:
    """All intervals of the bulk, lowest first, divided so often.

    With depth 0 it is taken for one interval; the mass tells whether it is.
    """
    low = float(np.sqrt(left_edge(equations, atom, top.location)))
    parts = list(_intervals(equations, low, float(np.sqrt(top.location)), depth))
    complete = 1.0 - max(_COMPLETE, equations.fineness.density)
    if atom + sum(part.mass for part in parts) < complete:
        gaps = [(below.high, above.low) for below, above in pairwise(parts)]
        for gap in gaps:
            parts.extend(_islands(equations, *gap))
    return tuple(sorted(parts, key=lambda part: part.low))


def _intervals(equations: Equations, low: float, high: float, depth: int) -> tuple[Interval, ...]:
    """The interval itself, or the parts into which gaps divide it."""
    span = Span(low, high, "mirrored" if low == 0.0 else "log" if high > 6.0 * low else "linear")
    known, error = _begun(equations, span)
    enough = known  # nodes that were fine: twice as many have shown it
    while np.all(is_filled(equations, known)):
        part = _interval(equations, known, span, error)
        most = part.profile.size >= equations.fineness.most
        fine = error < equations.fineness.density
        if fine or most or part.mass * equations.width < _ISLAND:
            equations.trail.nodes = enough
            return (part,)
        enough = known
        known, error = _doubled(equations, known, span)
    if depth == 0:  # a gap too narrow to be resolved; the mass tells whether that matters
        return (_interval(equations, known, span, error),)
    parts: list[Interval] = []
    for start, end in _split(equations, known, low, high):
        parts.extend(_intervals(equations, start, end, depth - 1))
    return tuple(parts)


def _begun(equations: Equations, span: Span) -> tuple[Branch, float]:
    """The solution at a few nodes: from that of a similar problem, which had enough of them."""
    near = equations.near.nodes
    if near is not None:
        z = (span.places(span.angles(near.z.size)) ** 2).astype(np.complex128)
        found = equations.at(z, near.scaled_to(z))
        if np.all(found.converged & is_filled(equations, found)):
            return found, 0.0
    theta = span.angles(equations.fineness.first // span.images)
    return _physical(equations, span.places(theta)), np.inf


def _physical(equations: Equations, places: FloatArray) -> Branch:
    found = equations.lowered(places**2)
    return found.resolved("the density of the bulk was not resolved")


def _split(
    equations: Equations, coarse: Branch, low: float, high: float
) -> list[tuple[float, float]]:
    """Intervals between low and high that the gaps leave; nodes run from high to low."""
    inner = np.array([high * (1.0 - _NEXT), max(low * (1.0 + _NEXT), _NEXT * high)])
    ends_of = _physical(equations, inner)  # parts smaller than the nodes' spacing lie there
    coarse = joined([ends_of.take([1]), coarse, ends_of.take([0])])
    return _pairs([high, *_changes(equations, coarse), low])


def _changes(equations: Equations, branch: Branch) -> list[float]:
    """Edges between neighbouring places of which one lies in the bulk and one does not."""
    filled = is_filled(equations, branch)
    found = []
    for j in np.flatnonzero(filled[1:] != filled[:-1]):
        inside, outside = (j, j + 1) if filled[j] else (j + 1, j)
        edge = gap_edge(equations, branch.take([inside]), branch.take([outside]))
        found.append(float(np.sqrt(edge)))
    return found


def _pairs(ends: list[float]) -> list[tuple[float, float]]:
    if len(ends) % 2:
        raise NotConverged("an edge of the bulk was not resolved")
    return sorted((ends[k + 1], ends[k]) for k in range(0, len(ends), 2))


def _islands(equations: Equations, low: float, high: float) -> list[Interval]:
    """Parts of the bulk inside a gap, which the nodes around it have missed."""
    places = np.geomspace(high, low, _SCAN + 2)[1:-1]
    found: list[Interval] = []
    for start, end in _pairs(_changes(equations, _physical(equations, places))):
        found.extend(_intervals(equations, start, end, depth=4))
    return found


def _doubled(equations: Equations, known: Branch, span: Span) -> tuple[Branch, float]:
    """Twice the nodes, and how far the old ones were from predicting the density on them."""
    guess = _predicted(known, span)
    found = equations.at(guess.z, guess)
    lost = ~found.converged | (found.v2.imag.sum(axis=1) < 0.0)
    lost |= ~is_filled(equations, found)  # a gap, or a real solution met by accident
    if np.any(lost):
        found = found.replaced(lost, _physical(equations, np.sqrt(found.z[lost].real)))
    m, expected = equations.trace(found), equations.trace(guess)
    error = float(np.abs(m.imag - expected.imag).max() / np.abs(m.imag).max())
    return found, error


def _interval(equations: Equations, known: Branch, span: Span, error: float) -> Interval:
    theta = span.angles(known.z.size)
    s = span.places(theta)
    per_s = 2.0 * s * equations.trace(known).imag / np.pi  # density of singular values
    profile = (per_s * s if span.scale == "log" else per_s) / np.sin(theta)
    return Interval(span.low, span.high, span.scale, span.whole(profile), error)


def _predicted(known: Branch, span: Span) -> Branch:
    """Both parts of s times the solution, interpolated to twice the nodes."""
    theta, finer = (span.angles(count * known.z.size) for count in (1, 2))
    places = span.places(finer)

    def moved(values: ComplexArray) -> ComplexArray:
        scaled = span.places(theta)[:, None] * values
        real = interpolated(span.whole(scaled.real, -1.0), finer)
        imaginary = interpolated(span.whole(scaled.imag / np.sin(theta)[:, None]), finer)
        return np.asarray((real + 1j * np.sin(finer)[:, None] * imaginary) / places[:, None])

    z = (places**2).astype(np.complex128)
    return Branch(z, moved(known.v2), moved(known.chi), np.full(z.size, np.inf))
