"""Newton's step for the fixed point, at real and complex λ: one dense matrix for many places.

For few groups of neurons, next to a known solution. It goes smoothly through the edges of a
spectrum, because Ξ is among the unknowns.
"""

from __future__ import annotations

import numpy as np

from ...core.types import FloatArray
from ..exact.dyson import diagonals, matmul, p_hat_index, solved, symmetric, transposed
from ..exact.fixed_point import Evaluation, State
from ..exact.step import Step


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
