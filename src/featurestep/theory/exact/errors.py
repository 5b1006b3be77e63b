"""Errors and ‖â‖² by one adjoint pass: P and Q of (13)–(15), hence every error measure of (30).

The training loss is a function of the weight 1/(1+χ) of every sample, and its derivative by that
weight is the sample's error: E[(y − f)²|κ] serves test error, training error and any other measure
of κ at once. Through the fixed point it is the solution of the adjoint of the linearised equations
(7), (8), (22), (23). They derive from a free energy, so that their adjoint is their tangent: the
change of (V2, V1) when the readout's loss is added to the free energy. dV2 gives P_g = Σ_{j∈g} â_j²
and dV1 gives Q; dχ is what fluctuations add to the misfit, v of (13).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.types import FloatArray, IntArray
from .classes import ClassCovariance, class_change, class_forces
from .columns import Columns
from .dyson import Covariance, forces, matmul, p_hat_index, symmetric, t_matrix_change, transposed
from .fixed_point import Evaluation, robust_fixed_point
from .regression import RegressionFit
from .step import Step

TOLERANCE = 1e-12
ACCEPTED = 1e-11


@dataclass(frozen=True)
class Errors:
    """What a fitted readout costs, by κ and by group."""

    by_kappa: FloatArray  # (B, Q) E[(y − f)²|κ]
    readout_squares: FloatArray  # (B, K) P_g = Σ_{j∈g} â_j²
    bulk_gram: FloatArray  # (B, K, K) Q_gh of (13)


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
        self.whole = at.blocks.whole if step.classes is None else at.class_whole

    def reply(
        self,
        step: Step,
        rows: IntArray,
        relative: FloatArray,
        change: FloatArray,
        squares: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """d log V2 and dG for dΞ, `change`, and the weights n w⟨g²⟩ of samples, `squares`."""
        at, size, columns = self.at, self.size, self.at.samples.columns
        v2, slope = at.state.v2[rows], columns.slope[rows]
        demand = -matmul(squares[:, None, :], columns.spread[rows])[:, 0]
        asked = -matmul(transposed(slope), slope * squares[:, :, None])
        root = np.sqrt(v2 / step.d[:, None])
        information, whole = at.information[rows], self.whole[rows]
        mean = 0.5 * (relative[:, :, None] + relative[:, None, :])
        changed = root[:, :, None] * asked * root[:, None, :] + mean * information
        pushed = change.copy()
        pushed[:, size : 2 * size, size : 2 * size] -= changed
        if self.forces.shift is None:
            moved = matmul(whole, pushed, whole)
        else:
            moved = class_change(step, whole, pushed) + self.forces.shift[rows]
        answer = moved[:, size : 2 * size, size : 2 * size]
        degrees = np.einsum("bgh,bhg->bg", changed, at.blocks.phi_phi[rows])
        degrees += np.einsum("bgh,bhg->bg", information, answer)
        total = (
            v2 * demand
            + step.d[:, None] * degrees
            - relative * at.degrees[rows]
            + self.group_force[rows]
        )
        return -total / step.neurons, moved


def fitted_bulk_gram(step: Step, coefficients: FloatArray) -> FloatArray:
    """ττᵀ + Σψ_iψ_iᵀ, (B, K, K)."""
    size = step.k.shape[1]
    bulk = coefficients[:, size : (2 + step.directions) * size]
    bulk = bulk.reshape(len(step), 1 + step.directions, size)  # τ, ψ_1 … ψ_r
    return matmul(transposed(bulk), bulk)


def fluctuations(columns: Columns, bulk_gram: FloatArray, squares: FloatArray) -> FloatArray:
    """v of (13) at every node: Σ μ_gμ_h Q_gh + Σ ν_g² P_g, (B, Q)."""
    linear = np.einsum("bqg,bqg->bq", matmul(columns.slope, bulk_gram), columns.slope)
    return np.asarray(linear + matmul(columns.spread, squares[:, :, None])[:, :, 0])


class _SquareLoss(Adjoint):
    """The adjoint equations of the square loss, which are linear."""

    def __init__(self, at: Evaluation, found: Covariance, fitted: RegressionFit) -> None:
        super().__init__(at, found, fitted.dual, fitted.coefficients)
        self.fitted = fitted

    def solve(self, slack: float) -> Errors:
        """The solution of the adjoint equations, and the errors that follow from it."""
        step, size = self.step, self.size
        every = np.arange(len(step))
        nothing = _packed(
            np.zeros((len(step), size)),
            np.zeros((len(step), size, size)),
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
        relative, response, _ = _unpacked(found.state, size)
        bulk = self._bulk(relative, response, every)
        change = self._chi(relative, bulk, every)
        return Errors(self.fitted.misfit + change, self.at.state.v2 * relative, bulk)

    def _bulk(self, relative: FloatArray, response: FloatArray, rows: IntArray) -> FloatArray:
        """dV1, (B, K, K)."""
        root = np.sqrt(self.at.state.v2[rows])
        own = self.at.blocks.phi_phi[rows]
        mean = 0.5 * (relative[:, :, None] + relative[:, None, :])
        changed = response + mean * own
        return np.asarray(root[:, :, None] * changed * root[:, None, :] + self.bulk_force[rows])

    def _chi(self, relative: FloatArray, bulk: FloatArray, rows: IntArray) -> FloatArray:
        """dχ at every node, (B, Q)."""
        columns = self.at.samples.columns
        part = columns if rows.size == len(self.step) else columns.take(rows)
        return fluctuations(part, bulk, self.at.state.v2[rows] * relative)

    def image(self, sweeps: int, state: FloatArray, rows: IntArray) -> FloatArray:
        """The linearised map with the gradients of the readout's loss as source."""
        step = self.step if rows.size == len(self.step) else self.step.take(rows)
        relative, response, xi = _unpacked(state, self.size)
        change = self.forces.self_energy[rows] + padded(xi, self.size)
        for _ in range(sweeps):
            squares = self._squares(rows, relative, response)
            relative, moved = self.reply(step, rows, relative, change, squares)
            response = moved[:, self.size : 2 * self.size, self.size : 2 * self.size]
        inside = p_hat_index(self.size)
        coupled = moved[:, inside[:, None], inside]
        t_matrices = self.at.t_matrices
        if rows.size < len(self.step):
            t_matrices = t_matrices[rows]
        again = t_matrix_change(step, t_matrices, coupled)
        return _packed(relative, response, again)

    def _squares(self, rows: IntArray, relative: FloatArray, response: FloatArray) -> FloatArray:
        """n w (E0 + v)/(1 + χ)² of every node."""
        at = self.at
        bulk = self._bulk(relative, response, rows)
        error = self.fitted.misfit[rows] + self._chi(relative, bulk, rows)
        return np.asarray(at.mass[rows] * at.shrink[rows] * error)


def _packed(groups: FloatArray, response: FloatArray, xi: FloatArray) -> FloatArray:
    """d log V2, dG_φφ and dΞ as one vector a row: symmetric matrices by their upper triangles."""
    upper = [symmetric(matrix.shape[-1]).upper(matrix) for matrix in (response, xi)]
    return np.concatenate([groups, *upper], axis=1)


def _unpacked(state: FloatArray, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """d log V2 (B, K), dG_φφ (B, K, K) and dΞ (B, 2K, 2K) of vectors."""
    few, many = symmetric(size), symmetric(2 * size)
    groups, response, xi = np.split(state, [size, size + few.count], axis=1)
    return groups, few.whole(response), many.whole(xi)


def padded(xi: FloatArray, size: int) -> FloatArray:
    """Matrices on (p, φ̂) with zeros in rows and columns φ."""
    whole = np.zeros((xi.shape[0], 3 * size, 3 * size))
    inside = p_hat_index(size)
    whole[:, inside[:, None], inside] = xi
    return whole
