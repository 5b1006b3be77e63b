"""Functions known by their values: named analytic ones, and whatever callable a user brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.errors import InaccurateQuadrature
from ...core.types import FloatArray
from ..quadrature import Rule, trapezoid_normal
from .base import Function, hermite
from .panels import Sampled, call_safely

_CHUNK = 1 << 16  # elements of one (points × nodes) block, small enough to stay in cache
_WIDEST = 6.0  # ρ up to which the equispaced rule serves, panels beyond
_NARROWEST = 1.0  # ρ from which it is as fine as needed: the density grows off the real line too


@dataclass(frozen=True, eq=False, repr=False)
class Analytic(Sampled):
    """A named function analytic in a strip |Im s| ≥ π/2: the equispaced rule converges fast."""

    slope_function: Function
    is_ramp: bool = False  # f(s) = s + f(−s): evaluated where it decays, so nothing cancels

    def __call__(self, s: FloatArray) -> FloatArray:
        return self.function(s)

    def derivative(self, s: FloatArray) -> FloatArray:
        return self.slope_function(s)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        if not self.is_ramp:
            return super()._averages(rho, t, order)
        out = super()._averages(rho, -np.abs(t), order)
        out[0] += np.maximum(t, 0.0)
        out[1:-1:2] *= np.where(t > 0, -1.0, 1.0)  # f^{(k)}(s) = (−1)^k f^{(k)}(−s) for k ≥ 2
        out[1] += t > 0
        return out

    def _by_nodes(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """On equispaced nodes, where they serve."""
        out = np.empty((order + 2, t.size))
        for pick, bound in _octaves(rho):
            at = rho[pick], t[pick]
            if bound <= _WIDEST:
                # Wider and finer where H_k grows, off the real line too.
                reach, spacing = (8.5, 0.29) if order == 1 else (10.0, 0.25)
                rule = trapezoid_normal(reach, spacing / bound)
                out[:, pick] = _averages_by_rule(self.function, *at, order, rule)
            else:
                out[:, pick] = super()._by_nodes(*at, order)
        return out


def _octaves(rho: FloatArray) -> Iterator[tuple[npt.NDArray[np.intp], float]]:
    """The places of ρ in each sixth of an octave, and the upper end of it."""
    octave = np.ceil(6 * np.log2(np.maximum(rho, _NARROWEST)) - 1e-9).astype(int)
    for level in np.unique(octave):
        yield np.flatnonzero(octave == level), 2.0 ** (level / 6)


def _averages_by_rule(
    f: Function, rho: FloatArray, t: FloatArray, order: int, rule: Rule
) -> FloatArray:
    """E[f(ρz + t)H_k(z)], k = 0 … order, and the spread, for flat ρ, t with one set of nodes."""
    z, w = rule
    out = np.empty((order + 2, t.size))
    projections = (w * hermite(order, z)[1:]).T
    rows = max(1, _CHUNK // z.size)
    for start in range(0, t.size, rows):
        block = slice(start, start + rows)
        points = np.multiply.outer(rho[block], z)  # (rows, nodes)
        points += t[block, None]
        values = f(points)
        out[0, block] = mean = values @ w
        values -= mean[:, None]  # E H_k = 0: less is lost to rounding when ρ is small
        out[1:-1, block] = (values @ projections).T
        out[-1, block] = np.square(values, out=values) @ w
    out[-1] = np.maximum(out[-1] - out[1] ** 2, 0.0)
    return out


@dataclass(frozen=True, eq=False, repr=False)
class UserFunction(Sampled):
    """A user's vectorised callable: adaptive panels, with undeclared kinks refused."""

    def __post_init__(self) -> None:
        self.refuse_divergent()

    @property
    def oscillates(self) -> bool:
        """Judged by how many panels the range 16 … 64 needs beyond a few."""
        return self.breaks(64.0).size > self.breaks(16.0).size + 40

    def derivative(self, s: FloatArray) -> FloatArray:
        """The declared derivative, or a fourth-order difference that stays on s's side of kinks."""
        if self.slope_function is not None:
            slopes = call_safely(self.slope_function, np.asarray(s), "derivative")
            if slopes.shape != np.shape(s) or not np.issubdtype(slopes.dtype, np.number):
                raise InaccurateQuadrature(
                    "derivative", "must return one number for each input", slopes.shape
                )
            return slopes.astype(np.float64)
        return one_sided_difference(self, np.asarray(s), self.kinks)


def one_sided_difference(f: Function, s: FloatArray, kinks: Sequence[float]) -> FloatArray:
    """f′(s) from five points, shifted so that none lies beyond a kink."""
    step, stencil = 1e-3, np.arange(-2.0, 3.0)
    shift = np.zeros(np.shape(s))  # in steps, of the stencil's centre
    for kink in kinks:
        gap = (s - kink) / step
        shift = np.where((gap >= 0) & (gap < 2), 2 - gap, shift)
        shift = np.where((gap < 0) & (gap > -2), -2 - gap, shift)
    values = np.stack([f(s + (shift + at) * step) for at in stencil])
    # Derivative at offset −shift of the quartic through the five values.
    quartic = np.tensordot(np.linalg.inv(np.vander(stencil, increasing=True)), values, 1)
    slopes = np.arange(1.0, 5.0).reshape(-1, *[1] * shift.ndim) * quartic[1:]
    return np.asarray(np.polynomial.polynomial.polyval(-shift, slopes, tensor=False) / step)
