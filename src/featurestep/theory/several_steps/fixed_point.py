"""Fixed point of the resolvent and errors after T steps: (7), (8) and (167)–(169) for one problem.

The state is V2, G_φφ of the last step and Ξ_τ of every batch. As for one step, ζ of (169) is
D_gζ_g = [VG_φφ]_gg: D enters the bulk's free energy through V alone. Errors come from the adjoint
of the linearised equations, which is their tangent (`exact.errors` says why).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.types import FloatArray, IntArray
from ..exact.dyson import symmetric
from ..exact.errors import fluctuations
from ..exact.fixed_point import LARGEST_MOVE, noise_only, robust_fixed_point
from ..exact.sectors import Forms
from .batches import Batch
from .chain import averaged, coupled, field, solve_chain, t_matrix, t_matrix_change
from .directions import Bulk, Stage, gradient
from .readout import Fit, Readout

TOLERANCE, ACCEPTED = 1e-12, 1e-10
ADJOINT_TOLERANCE, ADJOINT_ACCEPTED = 1e-12, 1e-11
SWEEPS = 3  # updates of V2 and G for each of Ξ, which costs more


@dataclass(frozen=True)
class State:
    """The unknowns."""

    v2: FloatArray  # (K,)
    response: FloatArray  # (K, K) G_φφ of the last step
    xi: list[FloatArray]  # (2K, 2K) each


@dataclass(frozen=True)
class Packing:
    """States as vectors: log V2, or changes of it, and the upper triangles of the matrices."""

    size: int
    steps: int

    def vector(
        self, groups: FloatArray, response: FloatArray, xi: Sequence[FloatArray]
    ) -> FloatArray:
        """The vector of a state."""
        few, many = symmetric(self.size), symmetric(2 * self.size)
        return np.concatenate([groups, few.upper(response), *(many.upper(x) for x in xi)])

    def parts(self, vector: FloatArray) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """The state of a vector."""
        few, many = symmetric(self.size), symmetric(2 * self.size)
        ends = np.cumsum([self.size, few.count, *[many.count] * (self.steps - 1)])
        groups, response, *xi = np.split(vector, ends)
        return groups, few.whole(response), [many.whole(x) for x in xi]


@dataclass(frozen=True)
class Solution:
    """The solution with everything that the equations say there."""

    state: State
    shrink: FloatArray  # (X,) 1/(1 + χ)
    mass: FloatArray  # (X,) n w/(1 + χ)
    bulk: Bulk
    residual: float
    iterations: int


class Equations:
    """The equations of one problem: its batches and its readout."""

    def __init__(self, batches: Sequence[Batch], readout: Readout) -> None:
        self.batches, self.readout = batches, readout
        self.size = readout.neurons.size
        self.steps = len(batches)
        self.pack = Packing(self.size, self.steps)
        self.inside = [coupled(t, self.steps, self.size) for t in range(1, self.steps + 1)]
        self.last = field(self.steps, self.size)

    def nodes(self, v2: FloatArray, response: FloatArray) -> tuple[FloatArray, ...]:
        """1/(1+χ), n w/(1+χ) and V at a state: (7), (8)."""
        readout = self.readout
        direction = readout.columns.slope[0] * np.sqrt(v2)
        chi = ((direction @ response) * direction).sum(axis=1)
        shrink = 1.0 / (1.0 + np.maximum(chi, 0.0) + readout.columns.spread[0] @ v2)
        mass = readout.n * readout.weight * shrink
        return shrink, mass, direction.T @ (direction * (mass / readout.d)[:, None])

    def t_matrices(self, whole: FloatArray) -> list[FloatArray]:
        """T at the nodes of every batch."""
        return [
            t_matrix(batch, whole[np.ix_(inside, inside)])
            for batch, inside in zip(self.batches, self.inside, strict=True)
        ]

    def image(self, states: FloatArray, rows: IntArray) -> FloatArray:
        """The map whose fixed point is the solution, with (7) and (8) (eq. 169)."""
        log_v2, response, xi = self.pack.parts(states[0])
        v2 = np.exp(log_v2)
        readout = self.readout
        for _ in range(SWEEPS):
            _, mass, information = self.nodes(v2, response)
            whole = solve_chain(xi, information)
            response = whole[np.ix_(self.last, self.last)]
            free = readout.n * readout.ridge + mass @ readout.columns.spread_in_v2[0]
            demand = v2 * free + readout.d * (information * response).sum(axis=1)
            v2 = np.maximum(v2 * readout.neurons / demand, 1e-300)
        mapped = [
            averaged(batch.shown.law.weight, t)
            for batch, t in zip(self.batches, self.t_matrices(whole), strict=True)
        ]
        return self.pack.vector(np.log(v2), response, mapped)[None]

    def guess(self) -> State:
        """Features taken as noise of their size, and the bulk without readout."""
        readout, frame = self.readout, self.batches[-1].after
        columns = readout.columns
        power = readout.weight @ (columns.slope[0] ** 2 * frame.norm2 + columns.spread[0])
        sizes = np.array([readout.n]), np.array([readout.ridge])
        v2 = noise_only(*sizes, readout.neurons[None], power[None])[0]
        return State(v2, np.diag(frame.norm2), [b.xi for b in without_readout(self.batches)])

    def solve(self) -> Solution:
        """The solution, by Anderson's acceleration."""
        guess = self.guess()
        start = self.pack.vector(np.log(guess.v2), guess.response, guess.xi)
        each = [np.maximum(np.abs(np.diag(x)), 1.0) ** 0.5 for x in (guess.response, *guess.xi)]
        outer = [np.outer(x, x) for x in each]
        scale = self.pack.vector(np.ones(self.size), outer[0], outer[1:])
        found = robust_fixed_point(
            self.image,
            start[None],
            scale=scale[None],
            tolerance=TOLERANCE,
            accepted=ACCEPTED,
            reach=LARGEST_MOVE,
        )
        log_v2, response, xi = self.pack.parts(found.state[0])
        v2 = np.exp(log_v2)
        shrink, mass, information = self.nodes(v2, response)
        whole = solve_chain(xi, information)
        bulk = Bulk(whole, self.t_matrices(whole), xi, information)
        state = State(v2, whole[np.ix_(self.last, self.last)], xi)
        return Solution(
            state, shrink, mass, bulk, float(found.residual[0]), int(found.iterations[0])
        )


@dataclass(frozen=True)
class _Free:
    xi: FloatArray
    t_matrix: FloatArray


def without_readout(batches: Sequence[Batch]) -> list[_Free]:
    """T and Ξ of every batch at V = 0, where they are explicit: G is diag(ρ², 0) there."""
    found = []
    for batch in batches:
        size = batch.before.norm2.size
        response = np.diag(np.append(batch.before.norm2, np.zeros(size)))
        t = t_matrix(batch, response)
        found.append(_Free(averaged(batch.shown.law.weight, t), t))
    return found


def bulk_without_readout(batches: Sequence[Batch]) -> Bulk:
    """The bulk at V = 0."""
    free = without_readout(batches)
    size = batches[0].before.norm2.size
    nothing = np.zeros((size, size))
    xi = [each.xi for each in free]
    return Bulk(solve_chain(xi, nothing), [each.t_matrix for each in free], xi, nothing)


@dataclass(frozen=True)
class Errors:
    """What the fitted readout costs, by ξ and by group."""

    by_place: FloatArray  # (X,) E[(y − f)²|ξ]
    readout_squares: FloatArray  # (K,) P_g = Σ_{j∈g} â_j²
    bulk_gram: FloatArray  # (K, K) Q_gh of (13)


class Adjoint:
    """The linearised equations with gradients of the readout's loss as source."""

    def __init__(
        self, equations: Equations, at: Solution, stages: Sequence[Stage], fitted: Fit
    ) -> None:
        self.equations, self.at, self.fitted = equations, at, fitted
        readout, size = equations.readout, equations.size
        self.root = np.sqrt(at.state.v2 / readout.d)
        count = fitted.dual.size // size
        scaled = (fitted.dual * np.tile(self.root, count))[size:]
        found = gradient(stages, at.bulk, scaled)
        self.self_energy = found.self_energy / readout.d
        response = -found.information
        bulk = fitted.coefficients[size:-size].reshape(-1, size)
        self.bulk_force = self.root[:, None] * response * self.root - bulk.T @ bulk
        work = (fitted.dual * fitted.coefficients).reshape(count, size).sum(axis=0)
        self.group_force = (at.bulk.information * response).sum(axis=1) - work
        information, own = at.bulk.information, at.state.response
        self.degrees = readout.d * (information * own).sum(axis=1)

    def solve(self) -> Errors:
        """Error by ξ, P_g and Q of the fitted readout."""
        pack = self.equations.pack
        nothing = np.zeros_like(pack.vector(self.root, self.bulk_force, self.at.state.xi))
        first = self.image(nothing[None], np.zeros(1, dtype=np.intp))
        scale = np.full_like(first, max(np.abs(first).max(), 1e-300))
        found = robust_fixed_point(
            self.image, first, scale=scale, tolerance=ADJOINT_TOLERANCE, accepted=ADJOINT_ACCEPTED
        )
        relative, response, _ = pack.parts(found.state[0])
        bulk = self._bulk(relative, response)
        squares = self.at.state.v2 * relative
        return Errors(self.fitted.misfit + self._chi(relative, bulk), squares, bulk)

    def _bulk(self, relative: FloatArray, response: FloatArray) -> FloatArray:
        """dV1."""
        root = np.sqrt(self.at.state.v2)
        mean = 0.5 * (relative[:, None] + relative)
        changed = response + mean * self.at.state.response
        return np.asarray(root[:, None] * changed * root + self.bulk_force)

    def _chi(self, relative: FloatArray, bulk: FloatArray) -> FloatArray:
        """dχ at every node."""
        columns = self.equations.readout.columns
        squares = (self.at.state.v2 * relative)[None]
        return np.asarray(fluctuations(columns, Forms(bulk[None, None]), squares)[0])

    def image(self, states: FloatArray, rows: IntArray) -> FloatArray:
        """The linearised map."""
        equations, at = self.equations, self.at
        relative, response, xi = equations.pack.parts(states[0])
        change = self.self_energy.copy()
        for inside, matrix in zip(equations.inside, xi, strict=True):
            change[np.ix_(inside, inside)] += matrix
        last = np.ix_(equations.last, equations.last)
        for _ in range(SWEEPS):
            relative, moved = self._reply(relative, response, change)
            response = moved[last]
        again = [
            t_matrix_change(batch, t, moved[np.ix_(inside, inside)])
            for batch, t, inside in zip(
                equations.batches, at.bulk.t_matrices, equations.inside, strict=True
            )
        ]
        return equations.pack.vector(relative, response, again)[None]

    def _reply(
        self, relative: FloatArray, response: FloatArray, change: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """d log V2 and dG for dΞ, `change`."""
        equations, at = self.equations, self.at
        readout, columns = equations.readout, equations.readout.columns
        error = self.fitted.misfit + self._chi(relative, self._bulk(relative, response))
        squares = at.mass * at.shrink * error
        slope = columns.slope[0]
        asked = -slope.T @ (slope * squares[:, None])
        information, whole = at.bulk.information, at.bulk.whole
        mean = 0.5 * (relative[:, None] + relative)
        changed = self.root[:, None] * asked * self.root + mean * information
        pushed = change.copy()
        last = np.ix_(equations.last, equations.last)
        pushed[last] -= changed
        moved = whole @ pushed @ whole
        degrees = (changed * at.state.response).sum(axis=1) + (information * moved[last]).sum(
            axis=1
        )
        total = (
            -at.state.v2 * (squares @ columns.spread[0])
            + readout.d * degrees
            - relative * self.degrees
            + self.group_force
        )
        return -total / readout.neurons, moved
