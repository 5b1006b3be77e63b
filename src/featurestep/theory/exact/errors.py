"""Errors and ‖â‖² by one adjoint pass: P and Q of (13)–(15), hence every error measure of (30).

The training loss is a function of the weight 1/(1+χ) of every sample, and its derivative by that
weight is the sample's error: E[(y − f)²|κ] serves test error, training error and any other measure
of κ at once. Through the fixed point it is the solution of the adjoint of the linearised equations
(7), (8), (22), (23), (131)–(133). They derive from a free energy, so that their adjoint is their
tangent: the change of (V2, V1) when the readout's loss is added to the free energy. dV2 gives
P_g = Σ_{j∈g} â_j² and dV1 gives Q; dχ is what fluctuations add to the misfit, v of (13). Blocks of
higher degrees add to dχ as the linear one does, each with a matrix for its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.types import FloatArray, IntArray
from .classes import ClassCovariance, class_change, class_forces
from .columns import Columns
from .dyson import Covariance, forces, matmul, p_hat_index, symmetric, t_matrix_change, transposed
from .fixed_point import Evaluation, SectorAt, outer_root, robust_fixed_point
from .regression import RegressionFit, quadratic_block
from .step import Step

TOLERANCE = 1e-12
ACCEPTED = 1e-11


@dataclass(frozen=True)
class Errors:
    """What a fitted readout costs, by κ and by group."""

    by_kappa: FloatArray  # (B, Q) E[(y − f)²|κ]
    readout_squares: FloatArray  # (B, K) P_g = Σ_{j∈g} â_j²
    bulk_gram: FloatArray  # (B, K, K) Q_gh of (13)
    higher_grams: tuple[FloatArray, ...] = ()  # the same for tables of sectors, and for s_2


def solve_errors(
    at: Evaluation, found: Covariance, fitted: RegressionFit, slack: float = 1.0
) -> Errors:
    """Error by κ, P_g and Q of a fitted readout (eqs. 15, 30, 32).

    `slack` multiplies the tolerance of the adjoint equations.
    """
    return _SquareLoss(at, found, fitted).solve(slack)


class Adjoint:
    """The linearised (7), (8), (22), (23), with gradients of the readout's loss as source."""

    def __init__(
        self, at: Evaluation, found: Covariance, dual: FloatArray, coefficients: FloatArray
    ) -> None:
        step = at.samples.step
        size = step.k.shape[1]
        self.at = at
        self.step, self.size = step, size
        fields = coefficients.shape[1] // size
        root = np.sqrt(at.state.v2 / step.d[:, None])
        scaled = dual * np.tile(root, fields)  # x̃
        special = scaled[:, size : (3 + step.directions) * size]
        if isinstance(found, ClassCovariance):
            self.forces = class_forces(step, found, at.t_matrices, special)
        else:
            self.forces = forces(step, found, at.t_matrices, special, scaled[:, :size])
        answer = self.forces.response
        self.bulk_force = root[:, :, None] * answer * root[:, None, :]
        self.bulk_force -= fitted_bulk_gram(step, coefficients)
        work = (dual * coefficients).reshape(len(step), fields, size).sum(axis=1)
        self.group_force = np.einsum("bgh,bhg->bg", at.information, answer) - work
        self.square_force: FloatArray | None = None  # on nE[s_2s_2ᵀ/(1 + χ)]
        block = quadratic_block(at)
        if block is not None:
            each = scaled.reshape(len(step), fields, size)
            answer = block.force(each[:, 3], scaled[:, 4 * size : 7 * size])
            self.group_force += np.einsum("bgh,bhg->bg", block.information, answer)
            own = coefficients.reshape(len(step), fields, size)[:, 4:7]
            self.square_force = root[:, :, None] * answer * root[:, None, :]
            self.square_force -= matmul(transposed(own), own)
        self.whole = at.blocks.whole if step.classes is None else at.class_whole
        self.bare = at.samples.columns.bare()

    def reply(
        self,
        step: Step,
        rows: IntArray,
        relative: FloatArray,
        change: FloatArray,
        squares: FloatArray,
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """d log V2, dG and the sectors' changes of response.

        For dΞ, `change`, and the weights n w⟨g²⟩ of samples, `squares`.
        """
        at, size, columns = self.at, self.size, self.bare
        columns = columns if rows.size == len(self.step) else columns.take(rows)
        v2 = at.state.v2[rows]
        demand = -matmul(squares[:, None, :], columns.spread)
        asked = -columns.summed(squares) * outer_root(v2)
        information, whole = at.information[rows], self.whole[rows]
        mean = 0.5 * (relative[:, :, None] + relative[:, None, :])
        changed = asked[:, 0] / step.d[:, None, None] + mean * information
        pushed = change.copy()
        pushed[:, size : 2 * size, size : 2 * size] -= changed
        if self.forces.shift is None:
            moved = matmul(whole, pushed, whole)
        else:
            moved = class_change(step, whole, pushed) + self.forces.shift[rows]
        answer = moved[:, size : 2 * size, size : 2 * size]
        degrees = np.einsum("bgh,bhg->bg", changed, at.blocks.phi_phi[rows])
        degrees += np.einsum("bgh,bhg->bg", information, answer)
        higher = [
            _sector_reply(
                each, rows, relative, asked[:, i] / each.sector.dimension[rows, None, None]
            )
            for i, each in enumerate(at.sectors, 1)
        ]
        total = (
            v2 * demand[:, 0]
            + step.d[:, None] * degrees
            - relative * at.degrees[rows]
            + self.group_force[rows]
        )
        for (_, freedom), each in zip(higher, at.sectors, strict=True):
            total += freedom - relative * each.degrees[rows]
        return -total / step.neurons, moved, [change for change, _ in higher]


def _sector_reply(
    at: SectorAt, rows: IntArray, relative: FloatArray, asked: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Change of a sector's response and of its degrees of freedom, (B, K, K) and (B, K).

    asked: the change of its information at fixed V2, (B, K, K).
    """
    every = rows.size == len(at.information)
    sector = at.sector
    products, weight = (x if every else x[rows] for x in (sector.products, sector.weight))
    information, inverse = at.information[rows], at.inverse[rows]
    mean = 0.5 * (relative[:, :, None] + relative[:, None, :])
    changed = asked + mean * information
    moved = (-weight * matmul(inverse, products * changed[:, None], inverse)).sum(axis=1)
    own = (changed * at.response[rows] + information * moved).sum(axis=2)
    return moved, sector.dimension[rows, None] * own


def fitted_bulk_gram(step: Step, coefficients: FloatArray) -> FloatArray:
    """ττᵀ + Σψ_iψ_iᵀ, (B, K, K)."""
    size = step.k.shape[1]
    bulk = coefficients[:, size : (2 + step.directions) * size]
    bulk = bulk.reshape(len(step), 1 + step.directions, size)  # τ, ψ_1 … ψ_r
    return matmul(transposed(bulk), bulk)


def fluctuations(
    columns: Columns,
    bulk_gram: FloatArray,
    squares: FloatArray,
    higher_grams: Sequence[FloatArray] = (),
) -> FloatArray:
    """v of (13) at every node: Σ μ_gμ_h Q_gh + Σ ν_g² P_g, (B, Q).

    `higher_grams` are the same for the tables of the sectors and, last, for s_2.
    """
    total = matmul(columns.spread, squares[:, :, None])[:, :, 0]
    count = len(columns.sectors)
    total = total + columns.contracted(np.stack([bulk_gram, *higher_grams[:count]], axis=1))
    for form in higher_grams[count:]:
        total = total + 4.0 * (matmul(columns.curvature, form) * columns.curvature).sum(axis=2)
    return np.asarray(total)


class _SquareLoss(Adjoint):
    """The adjoint equations of the square loss, which are linear."""

    def __init__(self, at: Evaluation, found: Covariance, fitted: RegressionFit) -> None:
        super().__init__(at, found, fitted.dual, fitted.coefficients)
        self.misfit = fitted.misfit
        if self.square_force is not None:
            bent = 2.0 * at.samples.columns.curvature
            self.misfit = self.misfit + (matmul(bent, self.square_force) * bent).sum(axis=2)

    def solve(self, slack: float) -> Errors:
        """The solution of the adjoint equations, and the errors that follow from it."""
        step, size = self.step, self.size
        every = np.arange(len(step))
        none = np.zeros((len(step), size, size))
        nothing = _packed(
            np.zeros((len(step), size)),
            [none] * (1 + len(self.at.sectors)),
            np.zeros((len(step), 2 * size, 2 * size)),
        )
        first = self.image(1, nothing, every)
        scale = np.maximum(np.abs(first).max(axis=1, keepdims=True), 1e-300)
        found = robust_fixed_point(
            self.image,
            first,
            scale=np.broadcast_to(scale, first.shape),
            tolerance=slack * TOLERANCE,
            accepted=slack * ACCEPTED,
        )
        relative, responses, _ = _unpacked(found.state, size)
        bulk, *higher = self._grams(relative, responses, every)
        change = self._chi(relative, [bulk, *higher], every)
        squares = self.at.state.v2 * relative
        last = () if self.square_force is None else (self.square_force,)
        return Errors(self.misfit + change, squares, bulk, (*higher, *last))

    def _grams(
        self, relative: FloatArray, responses: list[FloatArray], rows: IntArray
    ) -> list[FloatArray]:
        """dV1 and the same for the tables of the sectors, (B, K, K) each."""
        root = np.sqrt(self.at.state.v2[rows])
        mean = 0.5 * (relative[:, :, None] + relative[:, None, :])
        at_rest = [self.at.blocks.phi_phi, *(each.response for each in self.at.sectors)]
        found = [
            root[:, :, None] * (response + mean * own[rows]) * root[:, None, :]
            for response, own in zip(responses, at_rest, strict=True)
        ]
        found[0] = found[0] + self.bulk_force[rows]
        return found

    def _chi(self, relative: FloatArray, grams: list[FloatArray], rows: IntArray) -> FloatArray:
        """dχ at every node, (B, Q)."""
        part = self.bare if rows.size == len(self.step) else self.bare.take(rows)
        return fluctuations(part, grams[0], self.at.state.v2[rows] * relative, grams[1:])

    def image(self, sweeps: int, state: FloatArray, rows: IntArray) -> FloatArray:
        """The linearised map with the gradients of the readout's loss as source."""
        step = self.step if rows.size == len(self.step) else self.step.take(rows)
        relative, responses, xi = _unpacked(state, self.size)
        change = self.forces.self_energy[rows] + padded(xi, self.size)
        for _ in range(sweeps):
            squares = self._squares(rows, relative, responses)
            relative, moved, higher = self.reply(step, rows, relative, change, squares)
            own = moved[:, self.size : 2 * self.size, self.size : 2 * self.size]
            responses = [own, *higher]
        inside = p_hat_index(self.size)
        coupled = moved[:, inside[:, None], inside]
        t_matrices = self.at.t_matrices
        if rows.size < len(self.step):
            t_matrices = t_matrices[rows]
        again = t_matrix_change(step, t_matrices, coupled)
        return _packed(relative, responses, again)

    def _squares(
        self, rows: IntArray, relative: FloatArray, responses: list[FloatArray]
    ) -> FloatArray:
        """n w (E0 + v)/(1 + χ)² of every node."""
        at = self.at
        grams = self._grams(relative, responses, rows)
        error = self.misfit[rows] + self._chi(relative, grams, rows)
        return np.asarray(at.mass[rows] * at.shrink[rows] * error)


def _packed(groups: FloatArray, responses: list[FloatArray], xi: FloatArray) -> FloatArray:
    """d log V2, dG_φφ, the sectors' and dΞ as one vector a row: upper triangles of matrices."""
    upper = [symmetric(matrix.shape[-1]).upper(matrix) for matrix in (*responses, xi)]
    return np.concatenate([groups, *upper], axis=1)


def _unpacked(state: FloatArray, size: int) -> tuple[FloatArray, list[FloatArray], FloatArray]:
    """d log V2 (B, K), dG_φφ and those of sectors (B, K, K), and dΞ (B, 2K, 2K) of vectors."""
    few, many = symmetric(size), symmetric(2 * size)
    groups, middle, xi = np.split(state, [size, state.shape[1] - many.count], axis=1)
    responses = np.split(middle, middle.shape[1] // few.count, axis=1)
    return groups, [few.whole(response) for response in responses], many.whole(xi)


def padded(xi: FloatArray, size: int) -> FloatArray:
    """Matrices on (p, φ̂) with zeros in rows and columns φ."""
    whole = np.zeros((xi.shape[0], 3 * size, 3 * size))
    inside = p_hat_index(size)
    whole[:, inside[:, None], inside] = xi
    return whole
