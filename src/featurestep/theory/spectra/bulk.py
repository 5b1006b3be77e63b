"""The bulk's density (16): on Chebyshev nodes of every interval that carries it, or smoothed.

Between two edges of the singular values s the solution is V2 = A + iB·sin θ with A and B analytic,
cos θ running over the interval: few nodes are enough, and integrals converge as fast. Where the
bulk begins at 0, s·V2 takes the place of V2 and the interval is mirrored at 0.

Above the real axis edges and gaps are no obstacle. With m of (16), f(w) = 2w·m(w²)/π is analytic
for Im w > 0, and Im f is the density of singular values where w becomes real. A smoothed bulk is
continued from s + iδ down to s by a Taylor polynomial, which smooths edges over about δ.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...core.errors import NotConverged
from ...core.types import FloatArray
from ..exact.fixed_point import State
from .edges import Edge, gap_edge, is_filled, left_edge
from .equations import Branch, ComplexArray, Equations, joined

_COMPLETE = 1e-7  # mass that may be missing without a search for it
_SCAN = 48
_NEXT = 1e-5  # relative distance from an edge of places next to it
_STEPS_TO_DOUBLE = 3  # of Newton's method, from interpolated solutions
_MOST_PARTS = 4  # bulks of a few groups of neurons; more are smoothed
_MIN_EIGENVALUES = 1.0  # eigenvalues of an interval too small to be resolved further
_CORE_NODES, _CORE_ERROR = 64, 1e-3  # from which on a density that is steep next to 0 is stretched
SMOOTHING = 0.004  # δ of a smoothed bulk, over its width
_FIRST_SMOOTHING = 0.01  # where its lower end is looked for
_FIRST_NODES, _SMOOTHED_NODES = 48, 128
_MAX_SLOPE = 0.15  # δ over s at most
_MOST_DESCENDED = 12  # places that are solved from high above, to begin with
_NEGLIGIBLE_DENSITY = 0.02  # of the largest
_TOUCHING_DENSITY = 0.2  # of the largest, next to 0
Scale = Literal["linear", "log", "mirrored"]


@dataclass(frozen=True)
class Span:
    """Singular values between two edges, and the scale of the variable t with Chebyshev nodes."""

    low: float
    high: float
    scale: Scale
    core: float  # s from which on the t of a mirrored interval grows like log s, or inf

    @property
    def ends(self) -> tuple[float, float]:
        """The interval in the variable t."""
        if self.scale == "log":
            return float(np.log(self.low)), float(np.log(self.high))
        if np.isfinite(self.core):
            end = float(np.arcsinh(self.high / self.core))
            return -end, end
        return (-self.high if self.scale == "mirrored" else self.low), self.high

    @property
    def images(self) -> int:
        """How many nodes one solution stands for: a mirrored interval's lower half is an image."""
        return 2 if self.scale == "mirrored" else 1

    def angles(self, count: int) -> FloatArray:
        """The highest Chebyshev nodes: those at which to solve, where the others are images."""
        return angles(self.images * count)[:count]

    def whole(self, values: FloatArray, image: float = 1.0) -> FloatArray:
        """Values at all nodes from those at the highest; an image has them times a sign."""
        return values if self.images == 1 else np.concatenate([values, image * values[::-1]])

    def places(self, theta: FloatArray) -> FloatArray:
        """Singular values at nodes, with a sign in the lower half of a mirrored interval."""
        a, b = self.ends
        t = 0.5 * (a + b) + 0.5 * (b - a) * np.cos(theta)
        if np.isfinite(self.core):
            return np.asarray(self.core * np.sinh(t))
        return np.asarray(np.exp(t) if self.scale == "log" else t)

    def slope(self, s: FloatArray) -> FloatArray:
        """ds/dt at singular values."""
        if np.isfinite(self.core):
            return np.hypot(s, self.core)
        return s if self.scale == "log" else np.ones_like(s)


@dataclass(frozen=True)
class Interval(Span):
    """One interval of the bulk, in singular values, with its density on Chebyshev nodes."""

    profile: FloatArray  # (M,) density of t over sin θ at the nodes: an analytic function of t
    error: float  # of the density, estimated from its last changes, relative to the largest value

    @property
    def theta(self) -> FloatArray:
        """Nodes in (0, π), of t from high to low."""
        return angles(self.profile.size)

    def _angle(self, s: FloatArray) -> FloatArray:
        """θ of singular values; those beyond an end are taken for the end."""
        a, b = self.ends
        t = np.log(np.maximum(s, self.low)) if self.scale == "log" else s
        if np.isfinite(self.core):
            t = np.arcsinh(s / self.core)
        return np.arccos(np.clip((2.0 * t - a - b) / (b - a), -1.0, 1.0))

    def density(self, s: FloatArray) -> FloatArray:
        """Density of singular values at s inside the interval."""
        angle = self._angle(s)
        value = interpolated(self.profile, angle) * np.sin(angle)
        return np.asarray(value / self.slope(s))

    def integral(self, weight: FloatArray) -> float:
        """∫ weight × density, weight given on the nodes."""
        return float(self._powers() @ weight * np.pi / (self.images * weight.size))

    @property
    def nodes(self) -> FloatArray:
        """Singular values at the nodes."""
        return np.abs(self.places(self.theta))

    def _powers(self) -> FloatArray:
        """Density of θ at the nodes."""
        a, b = self.ends
        return np.asarray(0.5 * (b - a) * self.profile * np.sin(self.theta) ** 2)

    @property
    def mass(self) -> float:
        """Share of all eigenvalues."""
        return self.integral(np.ones(self.profile.size))

    def below(self, s: FloatArray) -> FloatArray:
        """Mass of the interval below s."""
        angle, (mean, *rest) = self._angle(s), cosines(self._powers())
        k = np.arange(1, len(rest) + 1)
        above = mean * angle + np.sin(np.multiply.outer(angle, k)) @ (rest / k)
        return np.asarray(np.pi * mean / self.images - above)


def angles(count: int) -> FloatArray:
    """Chebyshev nodes in (0, π)."""
    return np.asarray((np.arange(count) + 0.5) * np.pi / count)


def curve(parts: tuple[Interval, ...], points: int) -> tuple[FloatArray, FloatArray]:
    """Singular values over some intervals, increasing, and their density."""
    share = max(8, points // len(parts))
    theta = np.linspace(0.0, np.pi, share)
    s = [0.5 * (p.low + p.high) - 0.5 * (p.high - p.low) * np.cos(theta) for p in parts]
    return np.concatenate(s), density(parts, np.concatenate(s))


def density(parts: tuple[Interval, ...], s: FloatArray) -> FloatArray:
    """Density of singular values."""
    out = np.zeros(s.shape)
    for part in parts:
        inside = (s > part.low) & (s < part.high)
        if np.any(inside):
            out[inside] += part.density(s[inside])
    return out


def cosines(values: FloatArray) -> FloatArray:
    """a_k with values Σ a_k cos kθ at the Chebyshev nodes, (M, …)."""
    k = np.arange(len(values))
    found = 2.0 / k.size * np.tensordot(np.cos(np.outer(k, angles(k.size))), values, axes=1)
    found[0] *= 0.5
    return np.asarray(found)


def interpolated(values: FloatArray, angle: FloatArray) -> FloatArray:
    """The polynomial in cos θ through values at the Chebyshev nodes, at other angles."""
    return np.cos(np.multiply.outer(angle, np.arange(len(values)))) @ cosines(values)


def bulk(equations: Equations, atom: float, top: Edge) -> tuple[Interval, ...]:
    """All intervals of the bulk, lowest first.

    A draft takes it for one interval; the mass tells whether it is.
    """
    low = float(np.sqrt(left_edge(equations, atom, top.location)))
    parts = list(_intervals(equations, low, float(np.sqrt(top.location)), equations.accuracy.depth))
    _refuse_many(len(parts))
    complete = 1.0 - max(_COMPLETE, equations.accuracy.density)
    if atom + sum(part.mass for part in parts) < complete:
        gaps = [(below.high, above.low) for below, above in pairwise(parts)]
        for gap in gaps:
            parts.extend(_missed_intervals(equations, *gap))
            _refuse_many(len(parts))
    return tuple(sorted(parts, key=lambda part: part.low))


def _refuse_many(parts: int) -> None:
    """Refuse more parts than a bulk has: that many are those of single nodes of κ."""
    if parts > _MOST_PARTS:
        raise NotConverged(f"the bulk has more than {_MOST_PARTS} parts")


def _intervals(
    equations: Equations, low: float, high: float, depth: int, core: float = np.inf
) -> tuple[Interval, ...]:
    """The interval itself, or the parts into which gaps divide it."""
    scale: Scale = "mirrored" if low == 0.0 else "log" if high > 6.0 * low else "linear"
    span = Span(low, high, scale, core)
    theta = span.angles(equations.accuracy.first_nodes // span.images)
    known, change, error = _physical(equations, span.places(theta)), np.inf, np.inf
    while np.all(is_filled(equations, known)):
        part = _interval(equations, known, span, error)
        most = part.profile.size >= equations.accuracy.most_nodes
        fine = error < equations.accuracy.density
        if (
            fine
            or most
            or part.mass * equations.width < _MIN_EIGENVALUES
            or _is_too_costly(equations, known)
        ):
            return (part,)
        if low == 0.0 and np.isinf(core) and known.z.size >= _CORE_NODES and error > _CORE_ERROR:
            return _intervals(equations, low, high, depth, _core(equations, high))
        before = change
        known, change = _doubled(equations, known, span)
        error = change * min(1.0, change / before if np.isfinite(before) else 1.0)
    if depth == 0:  # a gap too narrow to be resolved; the mass tells whether that matters
        return (_interval(equations, known, span, error),)
    parts: list[Interval] = []
    for start, end in _split(equations, known, low, high):
        parts.extend(_intervals(equations, start, end, depth - 1))
        _refuse_many(len(parts))
    return tuple(parts)


def _is_too_costly(equations: Equations, known: Branch) -> bool:
    """True if twice the nodes would take more than half of the work that is left."""
    return _STEPS_TO_DOUBLE * equations.cost(2 * known.z.size) > 0.5 * equations.work_left


def _core(equations: Equations, high: float) -> float:
    """Where the density of singular values has fallen by a tenth from its value next to 0."""
    s = np.geomspace(_NEXT * high, high, _SCAN)[:-1]
    density = s * equations.trace(_physical(equations, s)).imag
    return float(s[np.argmax(density < 0.9 * density[0])])


def _physical(equations: Equations, places: FloatArray) -> Branch:
    found = equations.on_real_axis(places**2)
    return found.require_converged("the density of the bulk was not resolved")


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
    changes = np.flatnonzero(filled[1:] != filled[:-1])
    _refuse_many(changes.size // 2)
    found = []
    for j in changes:
        inside, outside = (j, j + 1) if filled[j] else (j + 1, j)
        edge = gap_edge(equations, branch.take([inside]), branch.take([outside]))
        found.append(float(np.sqrt(edge)))
    return found


def _pairs(ends: list[float]) -> list[tuple[float, float]]:
    if len(ends) % 2:
        raise NotConverged("an edge of the bulk was not resolved")
    return sorted((ends[k + 1], ends[k]) for k in range(0, len(ends), 2))


def _missed_intervals(equations: Equations, low: float, high: float) -> list[Interval]:
    """Parts of the bulk inside a gap, which the nodes around it have missed."""
    places = np.geomspace(high, low, _SCAN + 2)[1:-1]
    found: list[Interval] = []
    for start, end in _pairs(_changes(equations, _physical(equations, places))):
        found.extend(_intervals(equations, start, end, depth=4))
    return found


def _doubled(equations: Equations, known: Branch, span: Span) -> tuple[Branch, float]:
    """Twice the nodes, and how far the old ones were from predicting the density on them."""
    guess = _predicted(known, span)
    found = equations.at(guess.z, guess, equations.accuracy.accepted)
    failed = ~_is_physical(found) | ~is_filled(equations, found)  # a gap, or another solution
    if np.any(failed):
        found = found.replaced(failed, _physical(equations, np.sqrt(found.z[failed].real)))
    s = np.sqrt(found.z.real)
    density, expected = (
        s * span.slope(s) * equations.trace(b).imag for b in (found, guess)
    )  # of t
    return found, float(np.abs(density - expected).max() / density.max())


def _interval(equations: Equations, known: Branch, span: Span, error: float) -> Interval:
    theta = span.angles(known.z.size)
    s = span.places(theta)
    per_s = 2.0 * s * equations.trace(known).imag / np.pi  # density of singular values
    profile = per_s * span.slope(s) / np.sin(theta)
    return Interval(span.low, span.high, span.scale, span.core, span.whole(profile), error)


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
    size = known.state.xi.shape[1]
    xi = moved(known.state.xi.reshape(known.z.size, -1)).reshape(z.size, size, size)
    state = State(moved(known.v2), moved(known.chi), xi)
    return Branch(z, state, np.full(z.size, np.inf))


def smoothed_bulk(equations: Equations, edge: float, atom: float) -> Interval:
    """The whole bulk as one interval, its gaps and edges smoothed."""
    top = float(np.sqrt(edge))
    s = 0.5 * top * (1.0 - np.cos(angles(_FIRST_NODES)))
    w = _raised(s, _FIRST_SMOOTHING * top)
    first = _solved_above(equations, w)
    first_density = _density_below(equations, first, w, atom)
    low = _lower_end(s, first_density, top)
    reaches_zero = first_density[0] > _TOUCHING_DENSITY * first_density.max()
    span = Span(low, top, "mirrored" if reaches_zero else "linear", np.inf)
    theta = span.angles(_SMOOTHED_NODES // span.images)
    finer = span.places(theta)[::-1]
    w = _raised(finer, SMOOTHING * (top - low))
    branch = _solved_above(equations, w, _interpolated_branch(first, s, finer, w))
    density = _density_below(equations, branch, w, atom)[::-1]
    profile = span.whole(density / np.sin(theta))
    return Interval(low, top, span.scale, span.core, profile, SMOOTHING)


def _raised(s: FloatArray, height: float) -> ComplexArray:
    """w = s + iδ, with less of δ next to 0."""
    return np.asarray(s + 1j * np.minimum(height, _MAX_SLOPE * s))


def _solved_above(equations: Equations, w: ComplexArray, start: Branch | None = None) -> Branch:
    """The physical solution at z = w², from nearby or else down from far above."""
    z, tolerance = w**2, equations.accuracy.accepted
    if start is None and z.size > _MOST_DESCENDED:
        start = _interpolated_branch(_solved_above(equations, w[::2]), w.real[::2], w.real, w)
    found = equations.far(z) if start is None else equations.at(z, start, tolerance)
    failed = np.flatnonzero(~_is_physical(found))
    if failed.size:
        found = found.replaced(failed, equations.above_real_axis(z[failed], tolerance))
    if not np.all(_is_physical(found)):
        raise NotConverged("the bulk was not resolved", residual=float(found.residual.max()))
    return found


def _is_physical(branch: Branch) -> npt.NDArray[np.bool_]:
    """Whether V2, zV2 and −1/(z(1+χ)) are such as resolvents have above the axis, (B,)."""
    z, least = branch.z[:, None], -10.0 * branch.accepted  # of the size, to its accuracy

    def is_above(values: ComplexArray) -> npt.NDArray[np.bool_]:
        return np.asarray(np.all(values.imag > least * np.abs(values), axis=1))

    samples = is_above(z * (1.0 + branch.chi))
    whole = is_above(branch.v2) & is_above(z * branch.v2) & samples
    return np.asarray(branch.converged & whole)


def _interpolated_branch(
    branch: Branch, old: FloatArray, new: FloatArray, w: ComplexArray
) -> Branch:
    """Solutions above the places `old`, interpolated to w above the places `new`."""
    z, size = w**2, branch.state.xi.shape[1]
    v2 = _between(old, branch.v2 * branch.z[:, None], new) / z[:, None]
    xi = _between(old, branch.state.xi.reshape(old.size, -1), new).reshape(-1, size, size)
    return Branch(z, State(v2, _between(old, branch.chi, new), xi), z.real)


def _between(old: FloatArray, values: ComplexArray, new: FloatArray) -> ComplexArray:
    """Values (old, …) at new places, linearly, and constant beyond the ends."""
    index = np.clip(np.searchsorted(old, new), 1, old.size - 1)
    share = np.clip((new - old[index - 1]) / (old[index] - old[index - 1]), 0.0, 1.0)[:, None]
    return np.asarray((1.0 - share) * values[index - 1] + share * values[index])


def _density_below(
    equations: Equations, branch: Branch, w: ComplexArray, atom: float
) -> FloatArray:
    """The density on the axis below w, the eigenvalues at 0 left out: to second order in δ."""
    m, slope = equations.trace(branch), equations.trace_slope(branch)
    value = w * m + atom / w
    first = m + 2.0 * branch.z * slope - atom / branch.z
    second = np.gradient(first) / np.gradient(w)
    delta = w.imag
    continued = value - 1j * delta * first - 0.5 * delta**2 * second
    return np.asarray(np.maximum(2.0 / np.pi * continued.imag, 0.0))


def _lower_end(s: FloatArray, density: FloatArray, top: float) -> float:
    """A place below the bulk's lower end; 0 if the bulk may have left the view."""
    filled = np.flatnonzero(density > _NEGLIGIBLE_DENSITY * density.max())
    begin = float(s[filled[0]])
    return max(0.0, begin - 0.05 * (top - begin)) if filled[0] > 0 else 0.0
