"""The resolvent fixed point (7)–(10), for many problems at once, by Newton's method.

The map (V2, χ) ↦ (V2, χ) is increasing and concave, so Newton's method from any point above the
solution decreases to it, and from any other point lands above it in one step as long as the
response matrix keeps a non-negative inverse. That is the safeguard: a step that leaves the
positive cone restarts its problem from the upper bound V2 = N/(λn). Where rounding spoils a step
from above, the map itself takes its place: it decreases to the solution too, only more slowly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.types import FloatArray
from .moments import Batch
from .prediction import ACCEPTED
from .response import Point, evaluate, respond

TOLERANCE = 1e-13  # one step short of rounding would be seen where λ is small
MAX_ITERATIONS = 120
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Resolvent:
    """The solution, with the residual of the undamped map for each problem."""

    point: Point
    residual: FloatArray  # (B,)
    iterations: np.ndarray  # (B,)


def solve_resolvent(batch: Batch) -> Resolvent:
    """Solve (7)–(10)."""
    v2 = _noise_only(batch)
    chi = _upper_chi(batch, v2)
    state = _State(v2, chi, np.full(len(batch), np.inf), np.zeros(len(batch), dtype=int))
    _iterate(batch, state, np.arange(len(batch)), careful=False)
    stalled = np.flatnonzero(state.residual > ACCEPTED)
    if stalled.size:
        _iterate(batch, state, stalled, careful=True)
    careful = bool(stalled.size)
    return Resolvent(
        evaluate(batch, state.v2, state.chi, careful=careful), state.residual, state.iterations
    )


@dataclass
class _State:
    """The best point of each problem so far."""

    v2: FloatArray
    chi: FloatArray
    residual: FloatArray
    iterations: np.ndarray


def _iterate(batch: Batch, state: _State, active: np.ndarray, *, careful: bool) -> None:
    """Newton's method on the active problems until converged, stalled or out of steps."""
    v2, chi = state.v2.copy(), state.chi.copy()
    best = np.full(len(batch), np.inf)
    idle = np.zeros(len(batch), dtype=int)
    for _ in range(MAX_ITERATIONS):
        part = batch if active.size == len(batch) else batch.take(active)
        point = evaluate(part, v2[active], chi[active], careful=careful)
        current = point.residual
        better = current < best[active]
        improved = active[better]
        best[improved] = current[better]
        record = active[current < state.residual[active]]
        state.v2[record], state.chi[record] = v2[record], chi[record]
        state.residual[active] = np.minimum(state.residual[active], current)
        idle[active] = np.where(better, 0, idle[active] + 1)
        going = (current > TOLERANCE) & ~((current <= ACCEPTED) & ~better) & (idle[active] < 40)
        if not np.any(going):
            return
        state.iterations[active[going]] += 1
        v2[active], chi[active] = _newton_step(point, going)
        active = active[going]


def _newton_step(point: Point, going: np.ndarray) -> tuple[FloatArray, FloatArray]:
    batch = point.batch
    r = point.mapped_chi - point.chi
    s = point.demand * (1.0 - point.demand / batch.neurons)
    with np.errstate(all="ignore"):
        x, p = respond(point, r, s, newton=True)
    v2, chi = point.v2 * (1.0 + p), point.chi + x
    if batch.mirrored:  # the response has only the even part: keep rounding out of the odd one
        v2, chi = 0.5 * (v2 + v2[:, ::-1]), 0.5 * (chi + chi[:, ::-1])
    lost = ~(np.all(np.isfinite(p), axis=1) & np.all(np.isfinite(x), axis=1))
    lost |= np.any(v2 <= 0, axis=1) | np.any(chi < 0, axis=1)
    lost &= going
    if np.any(lost):
        top = batch.neurons / (batch.n * batch.ridge)[:, None]
        above = _is_above(point)[:, None]
        back = np.where(above, point.v2 * batch.neurons / point.demand, top)
        v2 = np.where(lost[:, None], back, v2)
        chi = np.where(
            lost[:, None], np.where(above, point.mapped_chi, _upper_chi(batch, top)), chi
        )
    return v2, chi


def _is_above(point: Point) -> np.ndarray:
    """Whether the map decreases every unknown, up to rounding, (B,)."""
    groups = np.all(point.demand >= (1.0 - _ROUNDING) * point.batch.neurons, axis=1)
    nodes = np.all(point.mapped_chi <= (1.0 + _ROUNDING) * point.chi, axis=1)
    return np.asarray(groups & nodes)


def _upper_chi(batch: Batch, v2: FloatArray) -> FloatArray:
    """χ with Y = I, its largest value for a given V2."""
    return np.asarray(np.matmul(batch.linear**2 + batch.spread, v2[:, :, None])[:, :, 0])


def _noise_only(batch: Batch) -> FloatArray:
    """V2 if the features were pure noise of the same size: a quadratic equation."""
    size = np.einsum("q,bqk,bk->b", batch.weight, batch.linear**2 + batch.spread, batch.neurons)
    total = batch.neurons.sum(axis=1)
    power = size / total  # mean square of a centred feature
    a = batch.ridge * batch.n * power
    b = batch.ridge * batch.n + (batch.n - total) * power
    root = np.sqrt(b * b + 4.0 * a * total)
    v = np.where(b > 0, 2.0 * total / (b + root), (root - b) / (2.0 * np.maximum(a, 1e-300)))
    return np.asarray(batch.neurons * (v / total)[:, None])
