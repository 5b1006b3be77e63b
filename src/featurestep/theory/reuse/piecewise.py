"""Averages over z and ζ in closed form, for activations that are linear between kinks.

Between two kinks of σ the slope σ′(z) is one number, so that the argument of the feature (54) is
place + own·slope + ω with ω = cz + ςζ there. Everything follows from averages over a half-plane of
z times powers of what the argument is above a kink.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray, special
from ...functions.activations import PiecewiseLinear
from ...functions.quadrature import normal_density

_TINY = 1e-300


class BulkArgument(NamedTuple):
    """ω = cz + ςζ, the bulk's part of a pre-activation."""

    c: float
    width: float  # ς > 0

    @property
    def size(self) -> float:
        """Standard deviation of ω."""
        return float(np.hypot(self.c, self.width))


class PieceAverages(NamedTuple):
    """Averages over one piece of z, arrays that broadcast to (M, Q)."""

    slope: float  # σ′(z) there
    value: tuple[FloatArray, FloatArray, FloatArray]  # E[z^p σ(·)], p = 0, 1, 2
    tilt: tuple[FloatArray, FloatArray]  # E[z^p σ′(·)], p = 0, 1
    bend: FloatArray  # E σ″(·)
    square: FloatArray  # E σ(·)²


def piece_averages(
    sigma: PiecewiseLinear, place: FloatArray, own: FloatArray, bulk: BulkArgument
) -> list[PieceAverages]:
    """Averages of σ(place + own·σ′(z) + cz + ςζ) over every piece of z between kinks.

    place: (Q,); own: (M,).
    """
    kinks = np.array(sigma.kinks)
    slopes = sigma.slope + np.cumsum([0.0, *(weight for _, weight in sigma.corners)])
    edges = np.concatenate([[-np.inf], kinks, [np.inf]])
    found = []
    for slope, low, high in zip(slopes, edges[:-1], edges[1:], strict=True):
        shift = own[:, None] * slope if slope else np.zeros((1, 1))  # one row if all are alike
        below, above = (_below(sigma, place + shift, bulk, edge) for edge in (low, high))
        a, b, c, d, e, bend, square = (to - of for to, of in zip(above, below, strict=True))
        found.append(PieceAverages(slope, (a, b, c), (d, e), bend, square))
    return found


def _below(
    sigma: PiecewiseLinear, x: FloatArray, bulk: BulkArgument, edge: float
) -> list[FloatArray]:
    """The averages of `PieceAverages` over z < edge, at the argument x + ω."""
    if edge == -np.inf:
        return [np.zeros((1, 1))] * 7
    c, v = bulk.c, bulk.width**2
    moments = _normal_moments(edge)
    start, slope = sigma.intercept + sigma.slope * x, sigma.slope
    value: list[FloatArray] = [start * moments[p] + slope * c * moments[p + 1] for p in range(3)]
    tilt = [slope * moments[p] + 0.0 * x for p in range(2)]
    bend = 0.0 * x
    square = start * (start * moments[0] + 2.0 * slope * c * moments[1])
    square = square + slope**2 * (c**2 * moments[2] + v * moments[0])
    for kink, weight in sigma.corners:
        ramp = _ramp_below(x - kink, bulk, edge)
        for p in range(3):
            value[p] = value[p] + weight * ramp.linear[p]
        for p in range(2):
            tilt[p] = tilt[p] + weight * ramp.step[p]
        bend = bend + weight * ramp.density
        at_kink = float(sigma(np.array(kink)))
        square = square + 2.0 * at_kink * weight * ramp.linear[0]
        square = square + weight * (2.0 * slope + weight) * ramp.square
        slope += weight
    return [*value, *tilt, bend, square]


class _RampBelow(NamedTuple):
    """Averages over z < edge, with u = t + cz + ςζ."""

    step: tuple[FloatArray, FloatArray]  # E[z^p 1{u > 0}], p = 0, 1
    linear: tuple[FloatArray, FloatArray, FloatArray]  # E[z^p relu(u)], p = 0, 1, 2
    square: FloatArray  # E relu(u)²
    density: FloatArray  # E δ(u)


def _ramp_below(t: FloatArray, bulk: BulkArgument, edge: float) -> _RampBelow:
    """By parts: E[z g(z, u)] = E[∂g/∂z] + cE[∂g/∂u], and ςE[ζg] = ς²E[∂g/∂u]."""
    (c, width), size = bulk, bulk.size
    tau, r, beside = t / size, c / size, width / size
    density = normal_density(tau) / size
    if edge == np.inf:
        both, at_edge, ramp_at_edge = special.ndtr(tau), np.zeros(()), np.zeros(())
    else:
        both = _both_below(edge, tau, r, beside)
        v = (t + c * edge) / width
        cdf, height = special.ndtr(v), normal_density(np.array(edge))
        at_edge = height * cdf
        ramp_at_edge = height * width * (normal_density(v) + v * cdf)
        density = density * special.ndtr((edge + r * tau) / beside)
    first = c * density - at_edge
    ramp = t * both + c * first + width**2 * density
    ramp_z = c * both - ramp_at_edge
    last = edge if np.isfinite(edge) else 0.0
    ramp_z2 = ramp + c * first - last * ramp_at_edge
    square = c * ramp_z + t * ramp + width**2 * both
    return _RampBelow((both, first), (ramp, ramp_z, ramp_z2), square, density)


def _both_below(edge: float, tau: FloatArray, r: float, beside: float) -> FloatArray:
    """P(z < edge, −ω < τ std ω), by Owen's function T; z and ω have the correlation r.

    `beside` is √(1 − r²).
    """
    a = edge if edge else _TINY
    tau = np.where(tau == 0.0, _TINY, tau)
    of_edge = special.owens_t(a, (tau + r * a) / (a * beside))
    of_tau = special.owens_t(tau, (a + r * tau) / (tau * beside))
    found = 0.5 * (special.ndtr(a) + special.ndtr(tau)) - of_edge - of_tau
    return np.asarray(found - 0.5 * ((tau < 0.0) != (a < 0.0)))


def _normal_moments(edge: float) -> list[float]:
    """E[z^p 1{z < edge}] for p = 0 … 3."""
    if edge == np.inf:
        return [1.0, 0.0, 1.0, 0.0]
    height, below = float(normal_density(np.array(edge))), float(special.ndtr(edge))
    return [below, -height, below - edge * height, -(edge**2 + 2.0) * height]
