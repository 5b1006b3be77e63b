"""Newton's step for the fixed point, at real and complex λ: one dense matrix for many places.

For few groups of neurons, next to a known solution. It goes smoothly through the edges of a
spectrum, because Ξ is among the unknowns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray, IntArray
from ..exact.dyson import (
    Symmetric,
    diagonals,
    matmul,
    p_hat_index,
    real_product,
    symmetric,
    transposed,
)
from ..exact.fixed_point import Evaluation, State
from ..exact.sectors import SectorAt
from ..exact.step import Step


class Sources(NamedTuple):
    """What stands on the right of the linearised equations of V2, χ and Ξ."""

    groups: FloatArray  # (B, K)
    nodes: FloatArray | None = None  # (B, Q)
    bulk: FloatArray | None = None  # (B, 2K, 2K)


def newton_step(found: Evaluation) -> State:
    """Newton's step for the fixed point at fixed λ: relative changes of V2, changes of χ and Ξ."""
    return respond(found, _gap(found), diagonal=found.demand**2 / found.samples.step.neurons)[0]


def ridge_response(found: Evaluation) -> State:
    """−d/d(λ) of the state: relative changes of V2, changes of χ and Ξ with z = −λ."""
    diagonal = np.broadcast_to(found.samples.step.neurons, found.demand.shape)
    return respond(found, _by_ridge(found), diagonal=diagonal)[0]


def newton_and_ridge(found: Evaluation) -> tuple[State, State]:
    """Both, with the matrix of Newton's method also where the equations are not solved yet."""
    diagonal = found.demand**2 / found.samples.step.neurons
    step, response = respond(found, _gap(found), _by_ridge(found), diagonal=diagonal)
    return step, response


def _gap(found: Evaluation) -> Sources:
    """By how much the equations are not solved."""
    return Sources(
        groups=found.demand * (1.0 - found.demand / found.samples.step.neurons),
        nodes=found.mapped_chi - found.state.chi,
        bulk=found.mapped_xi - found.state.xi,
    )


def _by_ridge(found: Evaluation) -> Sources:
    return Sources(groups=found.samples.step.n[:, None] * found.state.v2)


class _Layout(NamedTuple):
    """Where unknowns stand: elements of dG_φφ, of the sectors' responses, of dΞ, then log V2."""

    fields: IntArray  # of (p, φ̂) that Ξ lives on
    few: Symmetric  # matrices on the groups
    many: Symmetric  # matrices on the fields
    on_groups: int  # how many are elements on the groups, those of G_φφ first

    @classmethod
    def of(cls, found: Evaluation) -> _Layout:
        """The layout for an evaluation."""
        k = found.samples.step.k
        size = k.shape[1]
        fields = np.arange(0 if np.any(k) else size, 2 * size)
        few = symmetric(size)
        return cls(fields, few, symmetric(fields.size), (1 + len(found.sectors)) * few.count)

    @property
    def parts(self) -> tuple[slice, slice, slice]:
        """Those of dG_φφ, of dΞ and of log V2."""
        own = self.on_groups + self.many.count
        return slice(0, self.few.count), slice(self.on_groups, own), slice(own, own + self.few.size)


def respond(found: Evaluation, *sources: Sources, diagonal: FloatArray) -> list[State]:
    """Solve the linearised fixed point for changes of V2 (relative), χ and Ξ with some sources.

    `diagonal` (B, K) multiplies the change of log V2. One dense system in the symmetric matrices
    dG_φφ, those of the S sectors of higher degrees (131) and dΞ, and in log V2: of size
    (1 + S)K(K+1)/2 + K(2K+1) + K, whatever the number of nodes, or K² less where c_2 = 0 and Ξ
    lives on φ̂ alone.
    """
    step, columns, blocks = found.samples.step, found.samples.columns, found.blocks
    layout, size = _Layout.of(found), step.k.shape[1]
    few, many, on_groups = layout.few, layout.many, layout.on_groups
    (first, second, third), own = layout.parts, on_groups + many.count
    plain = found.roots[:, : few.count]  # √V2_g√V2_h
    across = blocks.whole[:, p_hat_index(size)[layout.fields], size : 2 * size]
    moved = between(across, many, few)  # X ↦ AXAᵀ and back, but for the diagonal elements
    repeated, replies = _bulk_replies(found, layout, moved)
    answers = np.zeros((len(plain), own, few.count), dtype=plain.dtype)
    answers[:, first], answers[:, second] = replies
    carried = -matmul(answers, few.rows(_half_sums(found.information)))
    carried[:, first] += few.rows(_half_sums(blocks.phi_phi))
    coupling = _coupling(found)
    d, neurons = step.d[:, None, None], step.neurons[:, :, None]
    neurons_across = step.neurons[:, None]
    matrix = np.zeros((len(plain), own + size, own + size), dtype=plain.dtype)
    matrix[:, first, second] = -many.halved(transposed(moved))
    matrix[:, second, second] = -repeated
    matrix[:, :own, third] = -carried
    matrix[:, third, second] = many.columns(_degrees_by_xi(found, across)) / neurons
    # dχ = source + Σ (dχ/dG)dG + ν²V2 dlogV2 enters through n w/(1+χ)². At a node both are products
    # of what the node shows (a real table) and of factors that all nodes share.
    twice = np.where(few.first == few.second, plain, 2.0 * plain)
    in_chi = np.concatenate([*[twice] * (1 + len(found.sectors)), found.state.v2], axis=1)
    factors = np.zeros((len(plain), on_groups + size, own + size), dtype=plain.dtype)
    factors[:, first, :own] = plain[:, :, None] * transposed(answers) / d
    factors[:, first, third] = twice[:, :, None] * carried[:, first] / neurons_across
    for i, sector in enumerate(found.sectors, 1):
        part = slice(i * few.count, (i + 1) * few.count)
        answer, change, change_of_degrees = _sector_replies(sector, few)
        matrix[:, part, third] = -change
        dimension = sector.sector.dimension[:, None, None]
        factors[:, part, part] = plain[:, :, None] * transposed(answer) / dimension
        factors[:, part, third] = twice[:, :, None] * change / neurons_across
        coupling = coupling + change_of_degrees
    matrix[:, third, third] = -coupling / neurons
    index = np.arange(size)
    factors[:, on_groups + index, own + index] = found.state.v2 / step.neurons
    tables, factors = columns.node_tables, transposed(factors)
    weight = found.mass * found.shrink
    entering = matmul(factors, tables.second_moments(weight) * in_chi[:, None, :])
    matrix[:, :, :on_groups] -= entering[:, :, :on_groups]
    matrix[:, :, third] -= entering[:, :, on_groups:]
    index = np.arange(own + size)
    matrix[:, index[:own], index[:own]] += 1.0
    matrix[:, index[own:], index[own:]] += diagonal / step.neurons
    right = np.zeros((len(plain), own + size, len(sources)), dtype=plain.dtype)
    for column, (groups, nodes, bulk) in enumerate(sources):
        right[:, third, column] = groups / step.neurons
        if nodes is not None:
            in_nodes = real_product(weight * nodes, tables.in_v2)
            right[:, :, column] += matmul(factors, in_nodes[:, :, None])[:, :, 0]
        if bulk is not None:
            right[:, second, column] += many.upper(bulk[:, layout.fields[:, None], layout.fields])
    answers = solutions(matrix, right)
    return [
        _state_of(answers[:, :, column], found, layout, in_chi, source.nodes)
        for column, source in enumerate(sources)
    ]


def solutions(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Those of linear systems (B, n, n) for columns (B, n, s); NaN for a singular matrix."""
    try:
        return np.asarray(np.linalg.solve(matrix, right))
    except np.linalg.LinAlgError:
        if len(matrix) == 1:
            return np.full_like(right, np.nan)
        each = [solutions(m[None], r[None]) for m, r in zip(matrix, right, strict=True)]
        return np.concatenate(each)


def _bulk_replies(
    found: Evaluation, layout: _Layout, moved: FloatArray
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """dΞ as a response to itself, and the answers of dG_φφ and of dΞ to −dṼ."""
    fields, blocks = layout.fields, found.blocks
    inside = p_hat_index(layout.few.size)[fields]
    weights = _r_weights(found.samples.step)
    repeated = congruence(found.t_matrices[..., fields[:, None], fields], weights)
    coupled = congruence(blocks.whole[:, None, inside[:, None], inside])
    answers = congruence(blocks.phi_phi[:, None]), matmul(repeated, layout.few.halved(moved))
    return matmul(repeated, coupled), answers


def _state_of(
    answer: FloatArray,
    found: Evaluation,
    layout: _Layout,
    in_chi: FloatArray,
    nodes: FloatArray | None,
) -> State:
    """Changes of V2 (relative), χ and Ξ from the unknowns; `nodes` is a source of χ."""
    _, second, third = layout.parts
    size, fields = layout.few.size, layout.fields
    changed = in_chi * np.concatenate([answer[:, : layout.on_groups], answer[:, third]], axis=1)
    chi = real_product(changed, found.samples.columns.node_tables.in_chi.T)
    chi = chi if nodes is None else chi + nodes
    xi = np.zeros((len(answer), 2 * size, 2 * size), dtype=answer.dtype)
    xi[:, fields[:, None], fields] = layout.many.whole(answer[:, second])
    return State(answer[:, third], chi, xi)


def _coupling(found: Evaluation) -> FloatArray:
    """Change of group g's degrees of freedom with log V2_h beyond scaling, (B, K, K)."""
    own, information = found.blocks.phi_phi[:, None], found.information[:, None]
    halves = _matrices(_half_sums(found.information), own.shape[-1])
    moved = -matmul(own, halves, own)  # dG_φφ
    change = np.einsum("bkgg->bgk", matmul(own, halves) + matmul(information, moved))
    degrees = np.einsum("bkgh,bkhg->bg", information, own)
    return np.asarray(found.samples.step.d[:, None, None] * (diagonals(degrees) - change))


def _sector_replies(at: SectorAt, pairs: Symmetric) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How a sector of (131) replies.

    Of its response to −dṼ, (B, P, P) for P = K(K+1)/2; of the response between √V2 to log V2,
    (B, P, K); and `_coupling` of its degrees of freedom (133), (B, K, K).
    """
    sector, size = at.sector, pairs.size
    answer: FloatArray = np.zeros(())
    for i in range(sector.share.shape[1]):
        weight, products = (pairs.upper(part[:, i]) for part in (sector.weight, sector.products))
        answer = (
            answer + weight[:, :, None] * congruence(at.inverse[:, i, None]) * products[:, None]
        )
    halves = _half_sums(at.information)
    moved = -matmul(answer, pairs.rows(halves))
    change = moved + pairs.rows(_half_sums(at.response))
    whole = np.moveaxis(pairs.whole(transposed(moved)), 1, -1)  # dR, (B, K, K, K)
    halves = halves.reshape(*at.information.shape, size)
    freed = np.einsum("bghk,bhg->bgk", halves, at.response)
    freed = freed + np.einsum("bgh,bhgk->bgk", at.information, whole)
    degrees = (at.information * at.response).sum(axis=2)
    return answer, change, sector.dimension[:, None, None] * (diagonals(degrees) - freed)


def _degrees_by_xi(found: Evaluation, across: FloatArray) -> FloatArray:
    """d∂[ṼG_φφ]_gg/∂Ξ, (B, K, F²) for Ξ on F fields."""
    left = matmul(found.information, transposed(across))  # (B, K, F)
    product = left[:, :, :, None] * transposed(across)[:, :, None, :]
    flat = product.reshape(*left.shape[:2], -1)
    return np.asarray(found.samples.step.d[:, None, None] * flat)


def _r_weights(step: Step) -> FloatArray:
    """φ0 times the weights of r, (B, M)."""
    return np.asarray(step.phi[:, None] * step.r_weight)


def congruence(matrices: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """X ↦ Σ_m w_m T_m X T_mᵀ on symmetric X, for symmetric T (B, M, F, F): (B, P, P).

    In elements i ≤ j of X, P of them: no array of F⁴ numbers is made.
    """
    pairs = symmetric(matrices.shape[-1])
    upper = pairs.upper(matrices)  # (B, M, P)
    weighted = upper if weight is None else upper * weight[:, :, None]
    product = matmul(transposed(weighted), upper).reshape(len(upper), -1)
    straight, crossed = _pairings(pairs.size)
    return pairs.halved(product.take(straight, axis=1) + product.take(crossed, axis=1))


@lru_cache(maxsize=64)
def _pairings(size: int) -> tuple[IntArray, IntArray]:
    """Where T_ia T_jb and T_ib T_ja stand among products of elements, for i ≤ j and a ≤ b."""
    pairs = symmetric(size)
    place = pairs.whole(np.arange(pairs.count, dtype=np.float64)).astype(np.intp)
    (i, a), (j, b) = (np.ix_(each, each) for each in (pairs.first, pairs.second))
    count = pairs.count
    return place[i, a] * count + place[j, b], place[i, b] * count + place[j, a]


def between(matrix: FloatArray, left: Symmetric, right: Symmetric) -> FloatArray:
    """A_ig A_jh + A_ih A_jg for pairs i ≤ j and g ≤ h, (B, ·, ·)."""
    i, j = matrix[:, left.first], matrix[:, left.second]
    g, h = right.first, right.second
    straight = i.take(g, axis=2) * j.take(h, axis=2)
    return np.asarray(straight + i.take(h, axis=2) * j.take(g, axis=2))


def _half_sums(matrix: FloatArray) -> FloatArray:
    """½(E_kA + AE_k) for every k, (B, K², K): the change of √D A √D with log D_k."""
    size = matrix.shape[1]
    unit = np.eye(size)
    change = 0.5 * (unit[:, None, :] + unit[None, :, :])  # (g, h, k)
    return np.asarray((matrix[..., None] * change).reshape(-1, size * size, size))


def _matrices(columns: FloatArray, size: int) -> FloatArray:
    """(B, K², K) as matrices (B, K, K, K), the last axis first."""
    return np.asarray(transposed(columns)).reshape(-1, size, size, size)
