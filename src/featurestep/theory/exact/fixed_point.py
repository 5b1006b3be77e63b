"""The fixed point of the resolvent: (7), (8), (22) and (23), one evaluation for every solver.

The state of a problem is V2 (traces of the resolvent over the groups of neurons), χ (a sample's
own influence, at nodes of κ) and Ξ (self-energy of the weights' bulk). `evaluate` gives everything
that the equations say at a state, for real λ and for complex λ = −z. At real λ > 0 the state is
found by Anderson's acceleration (`solve`), for any number of groups; next to a known solution by
Newton's method with the dense matrix of `respond`, which also goes through the edges of a spectrum.

In place of (23) for ζ stands D_gζ_g = [ṼG_φφ]_gg, which follows from it: D enters the bulk's free
energy through Ṽ alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.types import FloatArray, IntArray
from .anderson import robust_fixed_point
from .columns import Columns
from .dyson import (
    Blocks,
    averaged,
    diagonals,
    matmul,
    p_hat_index,
    solve_blocks,
    solved,
    symmetric,
    t_matrix,
    t_matrix_without_readout,
    transposed,
)
from .step import Step

ACCEPTED = 1e-10  # residual of a solution
TOLERANCE = 1e-12
LARGEST_MOVE = 2.0  # of log V2, log(1 + χ) and Ξ in one step of Anderson's acceleration


@dataclass(frozen=True)
class Samples:
    """What the readout's samples show of every group of neurons, at Q nodes of κ."""

    step: Step
    columns: Columns
    kappa: FloatArray  # (Q,)
    weight: FloatArray  # (Q,) probabilities

    def take(self, rows: IntArray) -> Samples:
        """The same for some of the rows."""
        return Samples(self.step.take(rows), self.columns.take(rows), self.kappa, self.weight)


@dataclass(frozen=True)
class State:
    """The unknowns of the fixed point, for B rows or places z."""

    v2: FloatArray  # (B, K) V2_g = tr over group g of (FᵀF + λn)⁻¹
    chi: FloatArray  # (B, Q) χ(κ)
    xi: FloatArray  # (B, 2K, 2K) Ξ on (p, φ̂), symmetric

    def take(self, rows: Any) -> State:
        """The same for some of the rows."""
        return State(self.v2[rows], self.chi[rows], self.xi[rows])


@dataclass(frozen=True)
class Evaluation:
    """Equations (7), (8), (22) and (23) at one state."""

    samples: Samples
    ridge: FloatArray  # (B,) λ; −z for a spectrum
    state: State
    shrink: FloatArray  # (B, Q) 1/(1 + χ)
    mass: FloatArray  # (B, Q) n w/(1 + χ)
    direction: FloatArray  # (B, Q, K) μ√V2
    information: FloatArray  # (B, K, K) Ṽ = √D V̂1 √D
    blocks: Blocks

    @cached_property
    def t_matrices(self) -> FloatArray:
        """T(r) of (22), (B, M, 2K, 2K)."""
        return t_matrix(self.samples.step, self.blocks.coupled)

    @cached_property
    def degrees(self) -> FloatArray:
        """V2_gζ_g = d[ṼG_φφ]_gg, (B, K), ζ of (23)."""
        trace = np.einsum("bgh,bhg->bg", self.information, self.blocks.phi_phi)
        return np.asarray(self.samples.step.d[:, None] * trace)

    @cached_property
    def demand(self) -> FloatArray:
        """V2_g(t_g + ζ_g), N_g at the solution of (23), (B, K)."""
        columns, step = self.samples.columns, self.samples.step
        noise = matmul(self.mass[:, None, :], columns.spread_in_v2)[:, 0]  # V̂2 of (8)
        free_part = (step.n * self.ridge)[:, None]
        return np.asarray(self.state.v2 * (free_part + noise) + self.degrees)

    @cached_property
    def mapped_v2(self) -> FloatArray:
        """V2_g = N_g/(t_g + ζ_g), (B, K) (eqs. 10, 23)."""
        return np.asarray(self.state.v2 * (self.samples.step.neurons / self.demand))

    @cached_property
    def mapped_chi(self) -> FloatArray:
        """χ(κ) = Σ μ_gμ_h V1_gh + Σ ν_g² V2_g, (B, Q) (eq. 7)."""
        response = matmul(self.direction, self.blocks.phi_phi)
        linear = (response * self.direction).sum(axis=2)
        if not np.iscomplexobj(linear):
            linear = np.maximum(linear, 0.0)
        noise = matmul(self.samples.columns.spread, self.state.v2[:, :, None])[:, :, 0]
        return np.asarray(linear + noise)

    @cached_property
    def mapped_xi(self) -> FloatArray:
        """Ξ = E_r T(r), (B, 2K, 2K) (eq. 22)."""
        return averaged(self.samples.step.r_weight, self.t_matrices)

    @cached_property
    def residual(self) -> FloatArray:
        """Largest relative change of any unknown under the undamped map, (B,)."""
        groups = np.abs(self.samples.step.neurons / self.demand - 1.0).max(axis=1)
        nodes = np.abs((self.mapped_chi - self.state.chi) * self.shrink).max(axis=1)
        bulk = np.abs(self.mapped_xi - self.state.xi).max(axis=(1, 2))
        return np.asarray(np.maximum(np.maximum(groups, nodes), bulk))


def evaluate(samples: Samples, state: State, ridge: FloatArray | None = None) -> Evaluation:
    """V̂1 and everything that follows from it at a state (eq. 8).

    λ is that of the problems, or the given one (B,).

    A step of one row serves states of any number of rows.
    """
    step, columns = samples.step, samples.columns
    shrink = 1.0 / (1.0 + state.chi)
    mass = step.n[:, None] * samples.weight * shrink
    direction = columns.slope * np.sqrt(state.v2)[:, None, :]
    scaled = direction * (mass / step.d[:, None])[:, :, None]
    information = matmul(transposed(direction), scaled)
    return Evaluation(
        samples=samples,
        ridge=step.ridge if ridge is None else ridge,
        state=state,
        shrink=shrink,
        mass=mass,
        direction=direction,
        information=information,
        blocks=solve_blocks(step.initial_factor, state.xi, information),
    )


@dataclass(frozen=True)
class Solution:
    """The evaluation at the fixed point, with the residual of the undamped map for each row."""

    at: Evaluation
    residual: FloatArray  # (B,)
    iterations: IntArray  # (B,)


def solve(samples: Samples, slack: float = 1.0) -> Solution:
    """Solve for all rows at their λ > 0; `slack` multiplies the tolerance.

    Anderson's acceleration in log V2, log(1 + χ) and Ξ. Ξ costs most: V2 and χ are updated a few
    times for each update of Ξ.
    """
    step = samples.step
    pack = Packing(step.k.shape[1], samples.kappa.size)

    def image(sweeps: int, states: FloatArray, rows: IntArray) -> FloatArray:
        part = samples if rows.size == len(step) else samples.take(rows)
        state = pack.state(states)
        for _ in range(sweeps):
            found = evaluate(part, state)
            state = State(np.maximum(found.mapped_v2, 1e-300), found.mapped_chi, state.xi)
        return pack.vector(State(state.v2, state.chi, found.mapped_xi))

    guess = _guess(samples)
    found = robust_fixed_point(
        image,
        pack.vector(guess),
        scale=pack.scale(guess),
        tolerance=slack * TOLERANCE,
        accepted=slack * ACCEPTED,
        reach=LARGEST_MOVE,
    )
    return Solution(evaluate(samples, pack.state(found.state)), found.residual, found.iterations)


@dataclass(frozen=True)
class Packing:
    """States as vectors (B, K + Q + K(2K+1)): log V2, log(1 + χ) and the upper triangle of Ξ."""

    groups: int
    nodes: int

    def vector(self, state: State) -> FloatArray:
        """The vectors of states."""
        xi = symmetric(2 * self.groups).upper(state.xi)
        return np.concatenate([np.log(state.v2), np.log1p(state.chi), xi], axis=1)

    def state(self, vector: FloatArray) -> State:
        """The states of vectors."""
        log_v2, log_chi, xi = np.split(vector, [self.groups, self.groups + self.nodes], axis=1)
        return State(np.exp(log_v2), np.expm1(log_chi), symmetric(2 * self.groups).whole(xi))

    def scale(self, state: State) -> FloatArray:
        """Sizes of the components: 1, or more where the weights grew far beyond it."""
        each = np.maximum(np.abs(np.einsum("bii->bi", state.xi)), 1.0) ** 0.5
        xi = symmetric(2 * self.groups).upper(each[:, :, None] * each[:, None, :])
        return np.concatenate([np.ones((len(xi), self.groups + self.nodes)), xi], axis=1)


def _guess(samples: Samples) -> State:
    """Features taken as pure noise of their size, and the bulk without readout."""
    step, columns = samples.step, samples.columns
    power = columns.slope**2 * step.norm[:, None, :] ** 2 + columns.spread
    v2 = _noise_only(step, np.einsum("q,bqk->bk", samples.weight, power))
    xi = averaged(step.r_weight, t_matrix_without_readout(step))
    return State(v2, matmul(power, v2[:, :, None])[:, :, 0], xi)


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


def newton_step(found: Evaluation) -> State:
    """Newton's step for the fixed point at fixed λ: relative changes of V2, changes of χ and Ξ."""
    neurons = found.samples.step.neurons
    return respond(
        found,
        groups=found.demand * (1.0 - found.demand / neurons),
        nodes=found.mapped_chi - found.state.chi,
        bulk=found.mapped_xi - found.state.xi,
        diagonal=found.demand**2 / neurons,
    )


def ridge_response(found: Evaluation, *, at_solution: bool = True) -> State:
    """−d/d(λ) of the state: relative changes of V2, changes of χ and Ξ with z = −λ."""
    neurons = found.samples.step.neurons
    diagonal = np.broadcast_to(neurons, found.demand.shape)
    return respond(
        found,
        groups=found.samples.step.n[:, None] * found.state.v2,
        diagonal=diagonal if at_solution else found.demand**2 / neurons,
    )


def respond(
    found: Evaluation,
    *,
    groups: FloatArray,
    diagonal: FloatArray,
    nodes: FloatArray | None = None,
    bulk: FloatArray | None = None,
) -> State:
    """Solve the linearised fixed point for changes of V2 (relative), χ and Ξ.

    Sources (B, K), (B, Q), (B, 2K, 2K) stand on the right of the equations of V2, χ and Ξ;
    `diagonal` (B, K) multiplies the change of log V2. One dense system in the symmetric matrices
    dG_φφ and dΞ and in log V2: of size K(K+1)/2 + K(2K+1) + K, whatever the number of nodes.
    """
    step, columns, blocks = found.samples.step, found.samples.columns, found.blocks
    size = step.k.shape[1]
    few, many = symmetric(size), symmetric(2 * size)
    own = few.count + many.count
    first, second, third = slice(0, few.count), slice(few.count, own), slice(own, own + size)
    inside, outside = p_hat_index(size), np.arange(size, 2 * size)
    whole, b = blocks.whole, found.direction
    coupled, across = whole[:, inside[:, None], inside], whole[:, inside[:, None], outside]
    # Answers of dG_φφ and dΞ to −dṼ.
    kept = few.both(_kronecker(blocks.phi_phi, blocks.phi_phi), few)
    forth = many.both(_repeated(step, found.t_matrices, across), few)
    answers = np.concatenate([kept, forth], axis=1)
    plain = b[..., few.first] * b[..., few.second]
    in_chi = np.where(few.first == few.second, plain, 2.0 * plain)  # dχ/dG_φφ, (B, Q, ·)
    carried = -matmul(answers, few.rows(_half_sums(found.information)))
    carried[:, first] += few.rows(_half_sums(blocks.phi_phi))
    d, neurons = step.d[:, None, None], step.neurons[:, :, None]
    matrix = np.zeros((len(b), own + size, own + size), dtype=b.dtype)
    matrix[:, first, second] = -few.both(_kronecker(*[transposed(across)] * 2), many)
    matrix[:, second, second] = -many.both(_repeated(step, found.t_matrices, coupled), many)
    matrix[:, :own, third] = -carried
    matrix[:, third, second] = many.columns(_degrees_by_xi(found, across)) / neurons
    matrix[:, third, third] = -_coupling(found) / neurons
    # dχ = source + in_chi·dG + ν²V2 dlogV2 enters through n w/(1+χ)².
    noise = columns.spread * found.state.v2[:, None, :]
    in_v2 = columns.spread_in_v2 * found.state.v2[:, None, :] + matmul(in_chi, carried[:, first])
    rows = np.concatenate(
        [matmul(plain, transposed(answers)) / d, in_v2 / step.neurons[:, None]], 2
    )
    rows = transposed(rows * (found.mass * found.shrink)[:, :, None])
    matrix[:, :, first] -= matmul(rows, in_chi)
    matrix[:, :, third] -= matmul(rows, noise)
    index = np.arange(own + size)
    matrix[:, index[:own], index[:own]] += 1.0
    matrix[:, index[own:], index[own:]] += diagonal / step.neurons
    right = np.zeros((len(b), own + size), dtype=b.dtype)
    right[:, third] = groups / step.neurons
    if nodes is not None:
        right += matmul(rows, nodes[:, :, None])[:, :, 0]
    if bulk is not None:
        right[:, second] += many.upper(bulk)
    answer = solved(matrix, right)
    chi = matmul(in_chi, answer[:, first, None]) + matmul(noise, answer[:, third, None])
    chi = chi[:, :, 0] if nodes is None else chi[:, :, 0] + nodes
    return State(answer[:, third], chi, many.whole(answer[:, second]))


def _coupling(found: Evaluation) -> FloatArray:
    """Change of group g's degrees of freedom with log V2_h beyond scaling, (B, K, K)."""
    own, asked = found.blocks.phi_phi, found.information
    size = own.shape[1]
    halves = _half_sums(asked)
    moved = -matmul(_kronecker(own, own), halves)  # dG_φφ
    by_asking = matmul(own[:, None], _matrices(halves, size))
    by_answer = matmul(asked[:, None], _matrices(moved, size))
    change = np.einsum("bkgg->bgk", by_asking + by_answer)
    degrees = np.einsum("bgh,bhg->bg", asked, own)
    return np.asarray(found.samples.step.d[:, None, None] * (diagonals(degrees) - change))


def _degrees_by_xi(found: Evaluation, across: FloatArray) -> FloatArray:
    """d∂[ṼG_φφ]_gg/∂Ξ, (B, K, 4K²)."""
    left = matmul(found.information, transposed(across))  # (B, K, 2K)
    product = left[:, :, :, None] * transposed(across)[:, :, None, :]
    rows, size = left.shape[:2]
    flat = product.reshape(rows, size, 4 * size * size)
    return np.asarray(found.samples.step.d[:, None, None] * flat)


def _repeated(step: Step, t_matrices: FloatArray, side: FloatArray) -> FloatArray:
    """φ0 E[(TG)⊗(TG)] for columns `side` of G, (B, 4K², c²)."""
    turned = matmul(t_matrices, side[:, None])  # (B, M, 2K, c)
    rows, count, height, width = turned.shape
    weighted = turned * (step.phi[:, None] * step.r_weight)[:, :, None, None]
    flat = (rows, count, height * width)
    product = matmul(transposed(weighted.reshape(flat)), turned.reshape(flat))
    product = product.reshape(rows, height, width, height, width)
    return np.asarray(product.transpose(0, 1, 3, 2, 4)).reshape(rows, height**2, width**2)


def _kronecker(a: FloatArray, b: FloatArray) -> FloatArray:
    """a ⊗ b on rows and columns of matrices laid out one after the other."""
    product = a[:, :, None, :, None] * b[:, None, :, None, :]
    rows, i, k, j, m = product.shape
    return np.asarray(product.reshape(rows, i * k, j * m))


def _half_sums(matrix: FloatArray) -> FloatArray:
    """½(E_kA + AE_k) for every k, (B, K², K): the change of √D A √D with log D_k."""
    size = matrix.shape[1]
    unit = np.eye(size)
    change = 0.5 * (unit[:, None, :] + unit[None, :, :])  # (g, h, k)
    return np.asarray((matrix[..., None] * change).reshape(-1, size * size, size))


def _matrices(columns: FloatArray, size: int) -> FloatArray:
    """(B, K², K) as matrices (B, K, K, K), the last axis first."""
    return np.asarray(transposed(columns)).reshape(-1, size, size, size)
