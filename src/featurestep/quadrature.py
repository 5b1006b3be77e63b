"""Nodes and weights: for Gaussian averages, for kinked functions, and for readout laws."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Rule = tuple[FloatArray, FloatArray]

GAUSS_HERMITE_MAX = 200  # numpy's weights overflow not far beyond
TAIL = 13.0  # φ(13) · 13¹² is below 1e-23: polynomial growth does not reach past it


def normal_density(x: FloatArray) -> FloatArray:
    """φ(x), the standard normal density."""
    return np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)


@lru_cache(maxsize=64)
def gauss_hermite(count: int) -> Rule:
    """Nodes and weights of E f(z), z ~ N(0,1), exact for degree 2·count − 1."""
    if not 1 <= count <= GAUSS_HERMITE_MAX:
        raise ValueError(f"count must be in 1..{GAUSS_HERMITE_MAX}; got {count}")
    x, w = np.polynomial.hermite_e.hermegauss(count)
    return _frozen(x, w / w.sum())


@lru_cache(maxsize=64)
def gauss_legendre(count: int) -> Rule:
    """Nodes and weights of the integral over [−1, 1]."""
    return _frozen(*np.polynomial.legendre.leggauss(count))


@lru_cache(maxsize=64)
def trapezoid_normal(half_width: float, spacing: float) -> Rule:
    """Equispaced rule for E f(z): exponentially accurate for f analytic near the real line."""
    steps = int(np.ceil(half_width / spacing))
    z = spacing * np.arange(-steps, steps + 1)
    w = normal_density(z)
    return _frozen(z, w / w.sum())


def panels(breaks: FloatArray, order: int) -> Rule:
    """Gauss–Legendre nodes on each interval between consecutive breaks (last axis)."""
    x, w = gauss_legendre(order)
    middle = 0.5 * (breaks[..., 1:] + breaks[..., :-1])[..., None]
    half = 0.5 * (breaks[..., 1:] - breaks[..., :-1])[..., None]
    shape = (*breaks.shape[:-1], -1)
    return (middle + half * x).reshape(shape), (half * w).reshape(shape)


def graded_breaks(scale: float, half_width: float, widest: float) -> FloatArray:
    """Breaks over [−half_width, half_width] that double in width away from 0, from `scale` up."""
    edges = [0.0]
    width = min(scale, widest)
    while edges[-1] < half_width:
        edges.append(min(edges[-1] + width, half_width))
        width = min(edges[-1], widest)
    right = np.array(edges)
    return np.concatenate([-right[:0:-1], right])


@lru_cache(maxsize=256)
def graded_normal(scale: float, order: int = 12, widest: float = 1.5) -> Rule:
    """E f(κ), κ ~ N(0,1), for f that varies at the given scale near 0 and slowly elsewhere."""
    x, w = panels(graded_breaks(scale, TAIL, widest), order)
    w = w * normal_density(x)
    return _frozen(x, w / w.sum())


@lru_cache(maxsize=64)
def uniform_normal(spacing: float) -> Rule:
    """E f(κ) for f that oscillates everywhere: the equispaced rule out to the far tail."""
    return trapezoid_normal(TAIL, spacing)


@lru_cache(maxsize=256)
def graded_law(law: str, scale: float, order: int, widest: float) -> Rule:
    """Nodes of a continuous readout law, graded towards g = 0."""
    end = 9.0 if law == "gaussian" else float(np.sqrt(3.0))
    x, w = panels(graded_breaks(scale, end, widest), order)
    w = w * (normal_density(x) if law == "gaussian" else 1.0)
    return _frozen(x, w / w.sum())


@lru_cache(maxsize=64)
def gauss_law(law: str, count: int) -> Rule:
    """Gauss nodes of a continuous readout law with E g² = 1."""
    if law == "gaussian":
        return gauss_hermite(count)
    x, w = gauss_legendre(count)
    return _frozen(np.sqrt(3.0) * x, 0.5 * w)


def _frozen(x: FloatArray, w: FloatArray) -> Rule:
    x.setflags(write=False)
    w.setflags(write=False)
    return x, w
