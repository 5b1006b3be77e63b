"""The resolvent fixed point (7)–(10), for many problems at once, by Newton's method.

The map (V2, χ) ↦ (V2, χ) is increasing and concave, so Newton's method from any point above the
solution decreases to it, and from any other point lands above it in one step as long as the
response matrix keeps a non-negative inverse. That is the safeguard: a step that leaves the
positive cone restarts its problem from the upper bound V2 = N/(λn).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..quadrature import FloatArray
from .batch import Batch
from .response import Point, evaluate, respond

TOLERANCE = 1e-11
ACCEPTED = 1e-10
MAX_ITERATIONS = 80


@dataclass(frozen=True)
class Resolvent:
    """The solution, with the residual of the undamped map for each problem."""

    point: Point
    residual: FloatArray  # (B,)
    iterations: np.ndarray  # (B,)

    @property
    def converged(self) -> np.ndarray:
        """Which problems reached the accepted residual."""
        return np.asarray(self.residual <= ACCEPTED)


def solve_resolvent(batch: Batch, start: FloatArray | None = None) -> Resolvent:
    """Solve (7)–(10); `start` optionally gives V2 per neuron as a multiple of its default."""
    v2 = _noise_only(batch)
    if start is not None:
        v2 = v2 * start
    chi = _upper_chi(batch, v2)
    residual = np.full(len(batch), np.inf)
    iterations = np.zeros(len(batch), dtype=int)
    best_v2, best_chi = v2.copy(), chi.copy()
    active = np.arange(len(batch))
    for step in range(MAX_ITERATIONS):
        part = batch if active.size == len(batch) else batch.take(active)
        point = evaluate(part, v2[active], chi[active])
        current = point.residual
        better = current < residual[active]
        improved = active[better]
        residual[improved] = current[better]
        best_v2[improved], best_chi[improved] = v2[improved], chi[improved]
        iterations[active] = step
        going = current > TOLERANCE
        going &= ~((current <= ACCEPTED) & ~better)  # at rounding level
        if not np.any(going):
            break
        v2[active], chi[active] = _newton_step(point, going)
        active = active[going]
    return Resolvent(evaluate(batch, best_v2, best_chi), residual, iterations)


def _newton_step(point: Point, going: np.ndarray) -> tuple[FloatArray, FloatArray]:
    batch = point.batch
    r = point.mapped_chi - point.chi
    s = point.demand * (1.0 - point.demand / batch.neurons)
    with np.errstate(all="ignore"):
        x, p = respond(point, r, s, newton=True)
    v2, chi = point.v2 * (1.0 + p), point.chi + x
    lost = ~(np.all(np.isfinite(p), axis=1) & np.all(np.isfinite(x), axis=1))
    lost |= np.any(v2 <= 0, axis=1) | np.any(chi < 0, axis=1)
    lost &= going
    if np.any(lost):
        top = batch.neurons / (batch.n * batch.ridge)[:, None]
        v2 = np.where(lost[:, None], top, v2)
        chi = np.where(lost[:, None], _upper_chi(batch, top), chi)
    return v2, chi


def _upper_chi(batch: Batch, v2: FloatArray) -> FloatArray:
    """χ with Y = I, its largest value for a given V2."""
    return np.matmul(batch.linear**2 + batch.spread, v2[:, :, None])[:, :, 0]


def _noise_only(batch: Batch) -> FloatArray:
    """V2 if the features were pure noise of the same size: a quadratic equation."""
    size = np.einsum("q,bqk,bk->b", batch.weight, batch.linear**2 + batch.spread, batch.neurons)
    total = batch.neurons.sum(axis=1)
    power = size / total  # mean square of a centred feature
    a = batch.ridge * batch.n * power
    b = batch.ridge * batch.n + (batch.n - total) * power
    root = np.sqrt(b * b + 4.0 * a * total)
    v = np.where(b > 0, 2.0 * total / (b + root), (root - b) / (2.0 * np.maximum(a, 1e-300)))
    return batch.neurons * (v / total)[:, None]
