"""Functions known by their values: named analytic ones, and whatever callable a user brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..errors import InaccurateQuadrature
from ..quadrature import FloatArray, Rule, trapezoid_normal
from .base import Function, Moments, Nonlinearity, gaussian_panels, normalised_hermite
from .panels import PiecewisePanels, call_safely

_CHUNK = 1 << 16  # elements of one (points × nodes) block, small enough to stay in cache
_TAIL = 16.0  # normalised Hermite polynomials of degree ≤ 60 times φ have decayed there


@dataclass(frozen=True, eq=False, repr=False)
class Analytic(Nonlinearity):
    """A named function analytic in a strip |Im s| ≥ π/2: the equispaced rule converges fast."""

    function: Function
    slope_function: Function
    is_ramp: bool = False  # f(s) = s + f(−s): evaluated where it decays, so nothing cancels

    def __call__(self, s: FloatArray) -> FloatArray:
        return self.function(s)

    def derivative(self, s: FloatArray) -> FloatArray:
        return self.slope_function(s)

    @cached_property
    def _panels(self) -> PiecewisePanels:
        return PiecewisePanels(self.function, self.name, ())

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        if self.is_ramp:
            mean, slope, spread = self._moments(rho, -np.abs(t))
            return Moments(mean + np.maximum(t, 0.0), np.where(t > 0, 1.0 - slope, slope), spread)
        return self._moments(rho, t)

    def _moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        rho, t = np.broadcast_arrays(rho, t)
        flat_rho, flat_t = rho.ravel(), t.ravel()
        out = np.empty((3, t.size))
        octave = np.ceil(6 * np.log2(np.maximum(flat_rho, 0.5)) - 1e-9).astype(int)
        for level in np.unique(octave):
            pick = np.flatnonzero(octave == level)
            bound = 2.0 ** (level / 6)
            if bound <= 6.0:
                rule = trapezoid_normal(8.5, 0.29 / bound)
                out[:, pick] = _moments_by_rule(self.function, flat_rho[pick], flat_t[pick], rule)
            else:
                out[:, pick] = self._panels.moments(flat_rho[pick], flat_t[pick])
        return Moments(*(row.reshape(t.shape) for row in out))

    def breaks(self, reach: float) -> FloatArray:
        return self._panels.breaks(reach)

    def normalised_coefficients(self, order: int) -> FloatArray:
        z, w = trapezoid_normal(_TAIL, 0.1)
        return normalised_hermite(order, z) @ (w * self.function(z))


def _moments_by_rule(f: Function, rho: FloatArray, t: FloatArray, rule: Rule) -> FloatArray:
    """The three moments for flat ρ, t with one set of nodes in z, block by block.

    The plain second moment is enough: f is of order 1 wherever this is called.
    """
    z, w = rule
    out = np.empty((3, t.size))
    projections = np.stack([w, w * z], axis=1)
    rows = max(1, _CHUNK // z.size)
    for start in range(0, t.size, rows):
        block = slice(start, start + rows)
        points = np.multiply.outer(rho[block], z)  # (rows, nodes)
        points += t[block, None]
        values = f(points)
        mean, along = (values @ projections).T
        out[0, block] = mean
        out[1, block] = along / rho[block]
        second = np.square(values, out=values) @ w
        out[2, block] = np.maximum(second - mean**2 - along**2, 0.0)
    return out


@dataclass(frozen=True, eq=False, repr=False)
class UserFunction(Nonlinearity):
    """A user's vectorised callable: adaptive panels, with undeclared kinks refused."""

    function: Function
    slope_function: Function | None = None
    declared_kinks: tuple[float, ...] = ()
    parameter: str = "activation"
    _panels: PiecewisePanels = field(init=False)

    def __post_init__(self) -> None:
        panels = PiecewisePanels(self.function, self.parameter, self.declared_kinks)
        object.__setattr__(self, "_panels", panels)
        panels.refuse_divergent()

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.declared_kinks

    def breaks(self, reach: float) -> FloatArray:
        return self._panels.breaks(reach)

    @property
    def oscillates(self) -> bool:
        """Judged by how many panels the range 16 … 64 needs beyond a few."""
        return self._panels.breaks(64.0).size > self._panels.breaks(16.0).size + 40

    def __call__(self, s: FloatArray) -> FloatArray:
        return self._panels.evaluate(s)

    def derivative(self, s: FloatArray) -> FloatArray:
        """The declared derivative, or a fourth-order difference that stays on s's side of kinks."""
        if self.slope_function is not None:
            slopes = call_safely(self.slope_function, np.asarray(s), "derivative")
            if slopes.shape != np.shape(s) or not np.issubdtype(slopes.dtype, np.number):
                raise InaccurateQuadrature(
                    "derivative", "must return one number for each input", slopes.shape
                )
            return slopes.astype(np.float64)
        return one_sided_difference(self._panels.evaluate, np.asarray(s), self.declared_kinks)

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        rho, t = np.broadcast_arrays(rho, t)
        out = self._panels.moments(rho.ravel(), t.ravel())
        return Moments(*(row.reshape(t.shape) for row in out))

    def normalised_coefficients(self, order: int) -> FloatArray:
        z, w = gaussian_panels(self)
        return normalised_hermite(order, z) @ (w * self._panels.evaluate(z))


def one_sided_difference(f: Function, s: FloatArray, kinks: Sequence[float]) -> FloatArray:
    """f′(s) from five points, shifted so that none lies beyond a kink."""
    step = 1e-3
    near = [np.any(np.abs(s - kink) < 2 * step) for kink in kinks]
    if not any(near):
        inner, outer = f(s + step) - f(s - step), f(s + 2 * step) - f(s - 2 * step)
        return np.asarray((8 * inner - outer) / (12 * step))
    shift = np.zeros(np.shape(s))  # in steps, of the stencil's centre
    for kink in kinks:
        gap = (s - kink) / step
        shift = np.where((gap >= 0) & (gap < 2), 2 - gap, shift)
        shift = np.where((gap < 0) & (gap > -2), -2 - gap, shift)
    # Derivative at offset −shift of the quartic through the five values.
    offsets = np.arange(-2.0, 3.0)
    centre = s + shift * step
    at = -shift
    total = np.zeros(np.shape(s))
    for i, a in enumerate(offsets):
        others = np.delete(offsets, i)
        scale = np.prod(a - others)
        slope = np.zeros(np.shape(s))
        for j in range(4):
            slope = slope + np.prod([at - others[m] for m in range(4) if m != j], axis=0)
        total = total + f(centre + a * step) * slope / scale
    return np.asarray(total / step)
