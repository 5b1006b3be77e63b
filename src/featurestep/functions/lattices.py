"""Gaussian averages of a sampled function at equispaced places: one evaluation serves many.

E f(ρz + t) and the means of derivatives at t = t_0 + jρ/8 are integrals over s = ρz + t of f with
weights that are the same for all lattices, in units of ρ. f is evaluated once on panels of width
`_WIDTH`·ρ. Where breaks of f lie within a panel, f is replaced there by its projection on
polynomials: against the smooth weights it has the same integrals.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ..core.types import FloatArray, IntArray
from .quadrature import gauss_legendre, normal_density, panels

IN_NORM = 8  # places of a lattice in the length ρ
_BLOCK = 12  # places that share their panels
_WIDTH = _BLOCK / IN_NORM  # of a panel, over ρ
_SIDE = 8  # panels on each side of a block: 12 standard deviations
_WINDOW = 2 * _SIDE + 1  # panels of a block
_ORDER = 14  # nodes of a panel
_MIDDLE = 6 / IN_NORM  # of a block's places
_CHUNK = 256  # blocks at a time, few enough for a cache

Function = Callable[[FloatArray], FloatArray]


def lattice_averages(
    f: Function,
    breaks: Callable[[float], FloatArray],
    rho: FloatArray,
    first: FloatArray,
    counts: IntArray,
    order: int,
) -> FloatArray:
    """E f^{(k)}(ρz + t), k = 0 … order, and the spread at t = first + jρ/8, j = 0 … count − 1.

    rho, first, counts: (C,); found: (order + 2, Σ counts), lattice after lattice. `breaks(reach)`
    are points of [−reach, reach] between which f is close to polynomials.
    """
    blocks = -(-counts // _BLOCK)
    size = blocks + 2 * _SIDE  # panels of each lattice
    width = _WIDTH * rho
    lattice = np.repeat(np.arange(rho.size), size)
    low = (first - _SIDE * width)[lattice] + ranges(size) * width[lattice]
    values, beyond = _panel_values(f, breaks, low, width[lattice])
    starts = np.repeat(np.cumsum(size) - size, blocks) + ranges(blocks)
    found = np.empty((order + 2, starts.size, _BLOCK))
    for begin in range(0, starts.size, _CHUNK):
        window = starts[begin : begin + _CHUNK, None] + np.arange(_WINDOW)
        rows = slice(begin, begin + len(window))
        found[:, rows] = _block_averages(values[window], beyond[window], order)
    place = _BLOCK * ranges(blocks)[:, None] + np.arange(_BLOCK)
    found = found[:, place < np.repeat(counts, blocks)[:, None]]
    for k in range(1, order + 1):
        found[k] /= np.repeat(rho, counts) ** k
    return found


def ranges(counts: IntArray) -> IntArray:
    """0 … count − 1 for each of the counts, in one row."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _panel_values(
    f: Function, breaks: Callable[[float], FloatArray], low: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """f at the nodes of panels (P,), and what f² has there beyond the square of that, (P, nodes).

    Where breaks lie within a panel f and f² are replaced by their projections on polynomials.
    """
    x, _ = gauss_legendre(_ORDER)
    values = f(low[:, None] + 0.5 * width[:, None] * (x + 1.0))
    beyond = np.zeros_like(values)
    inner = breaks(float(max(-low.min(), (low + width).max())))
    left, right = np.searchsorted(inner, low, "right"), np.searchsorted(inner, low + width, "left")
    broken = np.flatnonzero(right > left)
    if broken.size:
        count = int((right - left).max())
        at = np.minimum(left[broken, None] + np.arange(count), inner.size - 1)
        cuts = (inner[at] - low[broken, None]) / (0.5 * width[broken, None]) - 1.0
        ends = np.tile([-1.0, 1.0], (broken.size, 1))
        edges = np.concatenate([ends[:, :1], np.clip(cuts, -1.0, 1.0), ends[:, 1:]], axis=1)
        z, w = panels(edges, _ORDER)
        seen = f(low[broken, None] + 0.5 * width[broken, None] * (z + 1.0))
        centre = 0.5 * (w * seen).sum(axis=1, keepdims=True)
        seen = seen - centre
        legendre = np.polynomial.legendre.legvander(z, _ORDER - 1) * w[..., None]
        moments = np.einsum("apx,pxl->apl", np.stack([seen, seen**2]), legendre)
        back = np.polynomial.legendre.legvander(x, _ORDER - 1) * (np.arange(_ORDER) + 0.5)
        own, square = moments @ back.T
        values[broken], beyond[broken] = own + centre, square - own**2
    return values, beyond


@lru_cache(maxsize=8)
def _weights(order: int) -> tuple[FloatArray, FloatArray]:
    """Nodes z of a window, seen from its first place, and the weights of E[f H_k] at all places.

    (Z,) and (Z, (order + 1)·places), in the order of k.
    """
    x, w = gauss_legendre(_ORDER)
    z = (_WIDTH * (np.arange(-_SIDE, _SIDE + 1)[:, None] + 0.5 * (x + 1.0))).ravel()
    w = np.tile(0.5 * _WIDTH * w, _WINDOW)
    from_place = z[:, None] - np.arange(_BLOCK) / IN_NORM
    term, below = w[:, None] * normal_density(from_place), np.zeros(from_place.shape)
    found = []
    for k in range(order + 1):
        found.append(term)
        term, below = from_place * term - k * below, term
    return z, np.concatenate(found, axis=1)


def _block_averages(values: FloatArray, beyond: FloatArray, order: int) -> FloatArray:
    """E[f H_k], k = 0 … order, and the spread, (order + 2, B, places), of windows of panels."""
    z, weights = _weights(order)
    # Without the linear part at the middle less is lost to rounding.
    middle = int(_MIDDLE * IN_NORM)
    values = values.reshape(len(values), -1)
    mean = values @ weights[:, middle, None]
    centred = values - mean
    slope = centred @ weights[:, _BLOCK + middle, None]
    centred -= slope * (z - _MIDDLE)
    found = (centred @ weights).reshape(-1, order + 1, _BLOCK).transpose(1, 0, 2)
    np.square(centred, out=centred)
    centred += beyond.reshape(centred.shape)
    square = centred @ weights[:, :_BLOCK]
    spread = np.maximum(square - found[0] ** 2 - found[1] ** 2, 0.0)
    found = np.concatenate([found, spread[None]])
    found[0] += mean + slope * (np.arange(_BLOCK) / IN_NORM - _MIDDLE)
    found[1] += slope
    return found
