"""Adaptive panels for functions about which nothing is known but their values.

The real line is cut where the function has a declared kink and wherever a polynomial of
moderate degree does not resolve it. A cut that would have to go on for ever is an undeclared
kink or jump, and is refused with its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...core.errors import InaccurateQuadrature
from ...core.types import FloatArray
from ..quadrature import Rule, gauss_legendre, normal_density
from ..quadrature import panels as panel_rule
from .base import Function, Nonlinearity, over_powers

_ORDER = 14  # nodes of a panel when integrating
_PROBE = 20  # nodes of a panel when testing whether it is resolved
_RESOLVED = 1e-10  # size of the unresolved Legendre tail, relative to the panel's values
_NEGLIGIBLE = 1e-14  # the same, relative to the function's values near 0
_NARROWEST = 1e-6
_NEAR_ENDS = np.concatenate(
    [1.0 - np.array([1e-9, 3e-4, 2e-3]), np.array([1e-9, 3e-4, 2e-3]) - 1.0]
)
_MOST_PANELS = 4000
# First cuts, at no round number. A kink exactly on a cut looks smooth from both sides, so that
# functions are looked over with a second set too.
_CUTS = (1.0359, 0.0271)
_OTHER_CUTS = (0.8767, -0.0413)
_LARGEST = 1e9
_REACH = 12.0  # standard deviations
_CHUNK = 1 << 17


def call_safely(function: Function, s: FloatArray, parameter: str) -> np.ndarray:
    """What a user's function makes of a copy of s, its own errors turned into ours."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(function(np.array(s)))
    except Exception as error:
        raise InaccurateQuadrature(
            parameter, "must accept an array of numbers", f"{type(error).__name__}: {error}"
        ) from error


@dataclass(frozen=True, eq=False, repr=False)
class Sampled(Nonlinearity):
    """A function known by its values, the breaks that resolve it, and averages between them."""

    function: Function
    slope_function: Function | None = None
    kinks: tuple[float, ...] = ()
    parameter: str = "activation"
    _breaks: dict[float, FloatArray] = field(default_factory=dict, init=False)

    def __call__(self, s: FloatArray) -> FloatArray:
        """f(s) as float64, refused unless it is elementwise and finite."""
        values = call_safely(self.function, s, self.parameter)
        if values.shape != np.shape(s):
            raise InaccurateQuadrature(
                self.parameter,
                f"must be a vectorised function, one value for each of {np.shape(s)}",
                values.shape,
            )
        if not np.issubdtype(values.dtype, np.number) or np.iscomplexobj(values):
            raise InaccurateQuadrature(self.parameter, "must return real numbers", values.dtype)
        values = values.astype(np.float64)
        if not np.all(np.isfinite(values)):
            where = np.ravel(s)[~np.isfinite(np.ravel(values))][0]
            raise InaccurateQuadrature(
                self.parameter, f"must be finite; at s = {where:.6g}", "a non-finite value"
            )
        return values

    def refuse_divergent(self) -> None:
        """Find undeclared kinks near 0, and growth that has no Gaussian second moment."""
        if not self._central_size <= _LARGEST:
            raise InaccurateQuadrature(
                self.parameter, f"must stay below {_LARGEST:.0e} near 0", self._central_size
            )
        self.breaks(16.0)
        self._resolve(16.0, *_OTHER_CUTS)
        mean, slope, spread = self.averages(np.ones(1), np.zeros(1), 1)[:, 0]
        ends = np.array([-_REACH, _REACH])
        beyond = float(np.max(self(ends) ** 2 * normal_density(ends)))
        if beyond > 1e-9 * (mean**2 + slope**2 + spread):
            raise InaccurateQuadrature(
                self.parameter, "must have a finite Gaussian second moment", "too fast a growth"
            )

    def breaks(self, reach: float) -> FloatArray:
        """Breaks that resolve f on [−S, S], S the power of two at or above `reach`."""
        top = max(4.0, 2.0 ** np.ceil(np.log2(reach)))
        if top not in self._breaks:
            self._breaks[top] = self._resolve(top, *_CUTS)
        return self._breaks[top]

    @cached_property
    def _central_size(self) -> float:
        return float(np.abs(self(np.linspace(-4.0, 4.0, 257))).max())

    def _resolve(self, top: float, first: float, centre: float) -> FloatArray:
        doubling = first * 2.0 ** np.arange(0, np.log2(top) + 1)
        edges = np.concatenate([-doubling[::-1], [centre], doubling])
        edges = np.unique(np.concatenate([edges, super().breaks(top)]))
        while True:
            unresolved = np.flatnonzero(~self._is_resolved(edges))
            if unresolved.size == 0:
                return edges
            middle = 0.5 * (edges[unresolved] + edges[unresolved + 1])
            width = edges[unresolved + 1] - edges[unresolved]
            stuck = width < _NARROWEST * (1.0 + np.abs(middle))
            if np.any(stuck):
                place = float(middle[stuck][0])
                raise InaccurateQuadrature(
                    self.parameter,
                    "must be smooth except at declared kinks",
                    f"a kink or jump near s = {place:.6g}",
                )
            if edges.size + unresolved.size > _MOST_PANELS:
                raise InaccurateQuadrature(
                    self.parameter,
                    f"must be resolved by {_MOST_PANELS} panels on [-{top:g}, {top:g}]",
                    "a function that varies faster",
                )
            edges = np.unique(np.concatenate([edges, middle]))

    def _is_resolved(self, edges: FloatArray) -> np.ndarray:
        """Whether a Legendre series resolves f on each panel, right up to the panel's ends."""
        x, w = gauss_legendre(_PROBE)
        half = 0.5 * np.diff(edges)[:, None]
        middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
        values = self(middle + half * x)
        legendre = np.polynomial.legendre.legvander(x, _PROBE - 1)
        coefficients = (values * w) @ legendre * (np.arange(_PROBE) + 0.5)
        tail = np.abs(coefficients[:, _ORDER - 2 :]).max(axis=1)
        # Gauss nodes stay clear of the ends: a kink between the last one and the end shows there.
        series = coefficients @ np.polynomial.legendre.legvander(_NEAR_ENDS, _PROBE - 1).T
        missed = np.abs(self(middle + half * _NEAR_ENDS) - series).max(axis=1)
        allowed = _RESOLVED * np.abs(values).max(axis=1) + _NEGLIGIBLE * self._central_size
        return np.asarray(np.maximum(tail, 0.01 * missed) <= allowed)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        out = self._by_nodes(rho.ravel(), t.ravel(), order)
        over_powers(out[:-1], rho.ravel())
        return out.reshape(order + 2, *t.shape)

    def _by_nodes(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """E[f(ρz + t)H_k(z)] for flat arrays and k = 0 … order, then the spread, a row each."""
        out = np.empty((order + 2, t.size))
        reach = np.abs(t) + _REACH * rho
        level = np.ceil(np.log2(np.maximum(reach, 4.0))).astype(int)
        for value in np.unique(level):
            pick = np.flatnonzero(level == value)
            breaks = self.breaks(2.0 ** int(value))
            rows = max(1, _CHUNK // (_ORDER * (breaks.size + 13)))
            for start in range(0, pick.size, rows):
                block = pick[start : start + rows]
                z, w = _split_rule(rho[block], t[block], breaks)
                values = self(rho[block, None] * z + t[block, None])
                out[:, block] = _averages(z, w, values, order)
        return out


def _split_rule(rho: FloatArray, t: FloatArray, breaks: FloatArray) -> Rule:
    """Nodes and weights of E over z ~ N(0,1), split where ρz + t meets a break; a row each."""
    cuts = np.clip((breaks - t[:, None]) / rho[:, None], -_REACH, _REACH)
    grid = np.broadcast_to(np.linspace(-_REACH, _REACH, 13), (t.size, 13))
    edges = np.sort(np.concatenate([cuts, grid], axis=1), axis=1)
    z, w = panel_rule(edges, _ORDER)
    return z, w * normal_density(z)


def _averages(z: FloatArray, w: FloatArray, values: FloatArray, order: int) -> FloatArray:
    """Averages over z of values at nodes, a row of them each."""
    mean = np.sum(w * values, axis=1)
    means = [mean]
    # E H_k = 0: without the mean, less is lost to rounding when ρ is small.
    values = values - mean[:, None]
    term, below = w * values, np.zeros(())
    for k in range(order):
        term, below = z * term - k * below, term
        means.append(np.sum(term, axis=1))
    rest = values - means[1][:, None] * z
    return np.stack([*means, np.sum(w * rest * rest, axis=1)])
