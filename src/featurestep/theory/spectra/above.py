"""The bulk seen from above the real axis, where edges and gaps are no obstacle.

With m of (16), f(w) = 2w·m(w²)/π is analytic for Im w > 0, and Im f is the density of singular
values where w becomes real. From s + iδ it is continued down to s by its Taylor polynomial, which
blurs edges over about δ.
"""

from __future__ import annotations

import numpy as np

from ...core.errors import NotConverged
from ...core.types import FloatArray
from .branch import Branch, ComplexArray, between
from .continued import Equations
from .interval import Interval, Scale, Span, angles

BLUR = 0.004  # δ of `blurred_interval`, over the width of the bulk
_STEEPEST = 0.15  # δ over s at most
_STEPS = (6, 16)  # down from high above
_NOTHING = 0.02  # of the largest density
_FIRST, _NODES = 48, 128
_TOUCHING = 0.2  # of the largest density, next to 0
_FIRST_BLUR = 0.01


def places(low: float, top: float, count: int, blur: float) -> tuple[FloatArray, ComplexArray]:
    """Singular values s on Chebyshev nodes, increasing, and w = s + iδ above them."""
    s = low + 0.5 * (top - low) * (1.0 - np.cos(angles(count)))
    return s, raised(s, blur * (top - low))


def raised(s: FloatArray, height: float) -> ComplexArray:
    """w = s + iδ, with less of δ next to 0."""
    return np.asarray(s + 1j * np.minimum(height, _STEEPEST * s))


def seen(equations: Equations, w: ComplexArray, start: Branch | None = None) -> Branch:
    """The physical solution at z = w², from nearby or else down from far above."""
    z, tolerance = w**2, equations.fineness.accepted
    if start is not None:
        found = equations.at(z, start, tolerance)
        if np.all(_is_physical(equations, found)):
            return found
    for steps in _STEPS:
        found = equations.descended(z, steps, tolerance)
        if np.all(_is_physical(equations, found)):
            return found
    raise NotConverged("the bulk was not resolved", residual=float(found.residual.max()))


def carried(branch: Branch, old: FloatArray, new: FloatArray, w: ComplexArray) -> Branch:
    """Solutions seen above the places `old`, interpolated to w above the places `new`."""
    z = w**2
    v2, chi = (
        between(old, values.T, new).T for values in (branch.v2 * branch.z[:, None], branch.chi)
    )
    return Branch(z, v2 / z[:, None], chi, z.real)


def density_below(equations: Equations, branch: Branch, w: ComplexArray, atom: float) -> FloatArray:
    """The density on the axis below w, the eigenvalues at 0 left out: to second order in δ."""
    m, slope = equations.trace(branch), equations.trace_slope(branch)
    value = w * m + atom / w
    first = m + 2.0 * branch.z * slope - atom / branch.z
    second = np.gradient(first) / np.gradient(w)
    delta = w.imag
    continued = value - 1j * delta * first - 0.5 * delta**2 * second
    return np.asarray(np.maximum(2.0 / np.pi * continued.imag, 0.0))


def lower_end(s: FloatArray, density: FloatArray, top: float) -> float:
    """A place below the bulk's lower end; 0 if the bulk may have left the view."""
    filled = np.flatnonzero(density > _NOTHING * density.max())
    begin = float(s[filled[0]])
    return max(0.0, begin - 0.05 * (top - begin)) if filled[0] > 0 else 0.0


def blurred_interval(equations: Equations, edge: float, atom: float) -> Interval:
    """The whole bulk as one interval, its gaps and edges blurred."""
    top = float(np.sqrt(edge))
    s, w = places(0.0, top, _FIRST, _FIRST_BLUR)
    first = seen(equations, w)
    rough = density_below(equations, first, w, atom)
    low = lower_end(s, rough, top)
    scale: Scale = "mirrored" if rough[0] > _TOUCHING * rough.max() else "linear"  # it reaches 0
    span = Span(low, top, scale)
    theta = span.angles(_NODES // span.images)
    finer = span.places(theta)[::-1]
    w = raised(finer, BLUR * (top - low))
    branch = seen(equations, w, carried(first, s, finer, w))
    density = density_below(equations, branch, w, atom)[::-1]
    return Interval(low, top, scale, span.whole(density / np.sin(theta)), BLUR)


def _is_physical(equations: Equations, branch: Branch) -> np.ndarray:
    """Whether V2, zV2 and −1/(z(1+χ)) are such as resolvents have above the axis, (B,)."""
    z, least = branch.z[:, None], -10.0 * branch.accepted  # of the size, to its accuracy

    def is_above(values: ComplexArray) -> np.ndarray:
        return np.asarray(np.all(values.imag > least * np.abs(values), axis=1))

    samples = is_above(z * (1.0 + equations.readout_chi(branch)))
    whole = is_above(branch.v2) & is_above(z * branch.v2) & samples
    return np.asarray(branch.converged & whole)
