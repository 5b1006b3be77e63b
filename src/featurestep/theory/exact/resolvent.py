"""The resolvent fixed point with exact weights: (7), (8), (22), (23), by Anderson's acceleration.

In place of (23) for ζ stands D_gζ_g = [ṼG_φφ]_gg, which follows from it: D enters the bulk's free
energy through Ṽ alone. The state of a row is log V2, G_φφ and Ξ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...core.types import FloatArray, IntArray
from ..prediction import ACCEPTED
from .anderson import patient_fixed_point
from .columns import Columns
from .dyson import Blocks, averaged, free, matmul, scattering, solve_blocks, symmetric
from .step import Step

TOLERANCE = 1e-13
REACH = 2.0  # of log V2, G_φφ and Ξ in one step


@dataclass(frozen=True)
class Readout:
    """What the resolvent sees of a batch: moments at nodes of κ, and the step's constants."""

    step: Step
    columns: Columns
    kappa: FloatArray  # (Q,)
    weight: FloatArray  # (Q,)

    def take(self, rows: IntArray) -> Readout:
        """The same for some of the rows."""
        return Readout(self.step.take(rows), self.columns.take(rows), self.kappa, self.weight)


@dataclass(frozen=True)
class Point:
    """Everything that (7), (8) and (22) give for one state."""

    readout: Readout
    v2: FloatArray  # (B, K)
    chi: FloatArray  # (B, Q)
    shrink: FloatArray  # (B, Q) 1/(1 + χ)
    demand: FloatArray  # (B, K) t_g
    information: FloatArray  # (B, K, K) Ṽ
    blocks: Blocks

    @cached_property
    def scattered(self) -> FloatArray:
        """T(r), (B, M, 2K, 2K)."""
        return scattering(self.readout.step, self.blocks.coupled)

    @cached_property
    def degrees(self) -> FloatArray:
        """d[ṼG_φφ]_gg, V2_gζ_g of (23)."""
        trace = np.einsum("bgh,bhg->bg", self.information, self.blocks.phi_phi)
        return np.asarray(self.readout.step.d[:, None] * trace)

    @property
    def found(self) -> FloatArray:
        """V2 of (23)."""
        return np.asarray(self.readout.step.neurons / (self.demand + self.degrees / self.v2))


@dataclass(frozen=True)
class Resolvent:
    """The solution, with the residual of the undamped map for each row."""

    point: Point
    residual: FloatArray  # (B,)
    iterations: IntArray  # (B,)


def unpacked(state: FloatArray, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log V2 (B, K), G_φφ (B, K, K) and Ξ (B, 2K, 2K) of states (B, …)."""
    few, many = symmetric(size), symmetric(2 * size)
    groups, response, xi = np.split(state, [size, size + few.count], axis=1)
    return groups, few.whole(response), many.whole(xi)


def packed(groups: FloatArray, response: FloatArray, xi: FloatArray) -> FloatArray:
    """One vector a row: symmetric matrices by their upper triangles."""
    upper = [symmetric(matrix.shape[-1]).upper(matrix) for matrix in (response, xi)]
    return np.concatenate([groups, *upper], axis=1)


def evaluate(readout: Readout, v2: FloatArray, response: FloatArray, xi: FloatArray) -> Point:
    """Equations (7), (8) and G of (22) at V2, G_φφ (`response`) and Ξ."""
    step, columns = readout.step, readout.columns
    direction = columns.slope * np.sqrt(v2)[:, None, :]  # b = μ√V2, (B, Q, K)
    chi = np.einsum("bqg,bqg->bq", matmul(direction, response), direction)
    chi = np.maximum(chi, 0.0) + matmul(columns.spread, v2[:, :, None])[:, :, 0]
    shrink = 1.0 / (1.0 + chi)
    mass = step.n[:, None] * readout.weight * shrink
    demand = (step.n * step.ridge)[:, None] + matmul(mass[:, None, :], columns.spread)[:, 0]
    scaled = direction * mass[:, :, None]
    information = matmul(np.swapaxes(direction, 1, 2), scaled) / step.d[:, None, None]
    blocks = solve_blocks(step.kept, xi, information)
    return Point(readout, v2, chi, shrink, demand, information, blocks)


def solve_resolvent(readout: Readout, slack: float = 1.0) -> Resolvent:
    """Solve for all rows; `slack` multiplies the tolerance."""
    step = readout.step
    size = step.k.shape[1]

    def image(sweeps: int, states: FloatArray, rows: IntArray) -> FloatArray:
        part = readout if rows.size == len(step) else readout.take(rows)
        log_v2, response, xi = unpacked(states, size)
        v2 = np.exp(log_v2)
        for _ in range(sweeps):
            point = evaluate(part, v2, response, xi)
            v2, response = point.found, point.blocks.phi_phi
        again = averaged(part.step.r_weight, point.scattered)
        return packed(np.log(np.maximum(v2, 1e-300)), response, again)

    guess = _guess(readout)
    found = patient_fixed_point(
        image,
        guess,
        scale=_scale(guess, size),
        tolerance=slack * TOLERANCE,
        accepted=slack * ACCEPTED,
        reach=REACH,
    )
    log_v2, response, xi = unpacked(found.state, size)
    return Resolvent(
        evaluate(readout, np.exp(log_v2), response, xi), found.residual, found.iterations
    )


def _scale(guess: FloatArray, size: int) -> FloatArray:
    """Sizes of a state's components: 1, or more where the weights grew far beyond it."""
    log_v2, *matrices = unpacked(guess, size)

    def sizes(matrix: FloatArray) -> FloatArray:
        each = np.maximum(np.abs(np.einsum("bii->bi", matrix)), 1.0) ** 0.5
        return np.asarray(each[:, :, None] * each[:, None, :])

    return packed(np.ones_like(log_v2), *map(sizes, matrices))


def _guess(readout: Readout) -> FloatArray:
    """Features as pure noise of their size, and weights that answer without readout."""
    step, columns = readout.step, readout.columns
    size = step.k.shape[1]
    power = columns.slope**2 * step.norm[:, None, :] ** 2 + columns.spread
    v2 = _noise_only(step, np.einsum("q,bqk->bk", readout.weight, power))
    xi = averaged(step.r_weight, free(step))
    response = solve_blocks(step.kept, xi, np.zeros((len(step), size, size))).phi_phi
    return packed(np.log(v2), response, xi)


def _noise_only(step: Step, power: FloatArray) -> FloatArray:
    """V2_g = N_g/(λn + nP_g/(1+χ)) with χ = ΣP_gV2_g, by bisection in log χ."""
    ridge = (step.n * step.ridge)[:, None]

    def v2(chi: FloatArray) -> FloatArray:
        return np.asarray(step.neurons / (ridge + step.n[:, None] * power / (1.0 + chi)))

    high = np.log((power * step.neurons / ridge).sum(axis=1, keepdims=True) + 1e-300)
    low = np.minimum(high, 0.0) - 30.0
    for _ in range(25):
        middle = 0.5 * (low + high)
        below = (power * v2(np.exp(middle))).sum(axis=1, keepdims=True) > np.exp(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return v2(np.exp(0.5 * (low + high)))
