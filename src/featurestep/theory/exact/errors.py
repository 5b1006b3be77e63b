"""Errors and ‖â‖² by one adjoint pass: P and Q of (13)–(15), hence every error measure of (30).

The training loss is a function of the weight 1/(1+χ) of every sample, and its derivative by that
weight is the sample's error: E[(y − f)²|κ] serves test error, training error and any other measure
of κ at once. Through the fixed point it is the solution of the adjoint of the linearised equations
(7), (8), (22), (23), (131)–(133). They derive from a free energy, up to one term of (138) that
`sectors.MixedAt` treats, so that their adjoint is their tangent: the change of (V2, V1) when the
readout's loss is added to the free energy. dV2 gives
P_g = Σ_{j∈g} â_j² and dV1 gives Q; dχ is what fluctuations add to the misfit, v of (13). Blocks of
higher degrees add to dχ as the linear one does, each with a matrix for its table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.types import FloatArray, IntArray
from .columns import Columns
from .dyson import (
    Covariance,
    forces,
    matmul,
    mean_change,
    p_hat_index,
    symmetric,
    t_matrix_change,
    transposed,
)
from .fixed_point import Evaluation, Samples, SampleSums, Subsets, robust_fixed_point
from .products import ClassBlock
from .regression import RegressionFit
from .sectors import Forms, half_sums
from .step import Step

TOLERANCE = 1e-12
ACCEPTED = 1e-11


@dataclass(frozen=True)
class Errors:
    """What a fitted readout costs, by κ and by group."""

    by_kappa: FloatArray  # (B, Q) E[(y − f)²|κ]
    train_by_kappa: FloatArray  # (B, Q) the same times 1/(1 + χ)², on training samples
    readout_squares: FloatArray  # (B, K) P_g = Σ_{j∈g} â_j²
    grams: Forms  # Q_gh of (13), and the same for the tables of blocks of higher degrees
    square_gram: FloatArray | None = None  # (B, K, K) the same for s_2


def solve_errors(
    at: Evaluation, found: Covariance, fitted: RegressionFit, slack: float = 1.0
) -> Errors:
    """Error by κ, P_g and Q of a fitted readout (eqs. 15, 30, 32).

    `slack` multiplies the tolerance of the adjoint equations.
    """
    return _SquareLoss(at, found, fitted).solve(slack)


class Adjoint:
    """The linearised (7), (8), (22), (23), with gradients of the readout's loss as source.

    `fitted` is a fit of the square loss, which may have terms of higher degrees.
    """

    def __init__(
        self,
        at: Evaluation,
        found: Covariance,
        dual: FloatArray,
        coefficients: FloatArray,
        fitted: RegressionFit | None = None,
    ) -> None:
        step = at.samples.step
        size = step.k.shape[1]
        self.at = at
        self.step, self.size = step, size
        fields = coefficients.shape[1] // size
        root = np.sqrt(at.state.v2 / step.d[:, None])
        scaled = dual * np.tile(root, fields)  # x̃
        special = scaled[:, size : (3 + step.directions) * size]
        self.shift = forces(step, found, at.t_matrices, special, scaled[:, :size])
        self.bulk_force = -fitted_bulk_gram(step, coefficients)
        work = (dual * coefficients).reshape(len(step), fields, size).sum(axis=1)
        self.group_force = -work
        self.mixed_force: tuple[FloatArray, FloatArray] | None = None  # on tables of (138)
        if at.along_kappa is not None:
            self.mixed_force = at.along_kappa.seen(np.sqrt(at.state.v2), self.bulk_force)
            own = np.einsum("bgg->bg", self.mixed_force[0]) / at.state.v2
            self.group_force -= at.along_kappa.coordinates.dimension[:, None] * own
        self.square_force: FloatArray | None = None  # on nE[s_2s_2ᵀ/(1 + χ)]
        block = None if fitted is None else fitted.block
        if block is not None:
            first, last = 3, 3 + block.fields
            each = scaled.reshape(len(step), fields, size)
            answer = block.force(each[:, first:last])
            if isinstance(block, ClassBlock):
                use = coefficients[:, :size] / root
                answer = answer + block.means_force(use)
                self.group_force -= use * matmul(block.means, use[:, :, None])[..., 0]
            self.group_force += np.einsum("bgh,bhg->bg", block.information, answer)
            own = coefficients.reshape(len(step), fields, size)[:, last - 3 : last]
            self.square_force = root[:, :, None] * answer * root[:, None, :]
            self.square_force -= matmul(transposed(own), own)
        self.across_forms: FloatArray | None = None  # (B, ·) added to Σ tables, and to V̂2
        if fitted is not None and fitted.across is not None and fitted.misfit_across is not None:
            squares = at.shrink * fitted.across.force(fitted.misfit_across)
            columns = at.samples.columns
            tables = columns.across
            assert tables is not None
            self.across_forms = columns.summed(squares, tables.products)
            self.across_demand = matmul(squares[:, None, :], tables.spread)
        self.whole = at.class_whole
        self.bare = replace(at.samples, columns=at.samples.columns.bare())
        self._subsets = Subsets(self.bare)

    def samples_of(self, rows: IntArray) -> Samples:
        """The samples of some problems, or of all, without fields."""
        return self._subsets.take(rows)

    def reply(
        self,
        samples: Samples,
        rows: Any,
        relative: FloatArray,
        change: FloatArray,
        squares: FloatArray,
    ) -> tuple[FloatArray, FloatArray, Forms]:
        """d log V2, dG and the changes of `Evaluation.responses`.

        For dΞ, `change`, and the weights n w⟨g²⟩ of the samples of some rows, `squares`.
        """
        columns = samples.columns
        noise = matmul(squares[:, None, :], columns.spread)[:, 0]
        sums = SampleSums(columns.summed(squares), noise)
        return self.reply_to_sums(samples, rows, relative, change, sums)

    def reply_to_sums(
        self,
        samples: Samples,
        rows: IntArray,
        relative: FloatArray,
        change: FloatArray,
        sums: SampleSums,
    ) -> tuple[FloatArray, FloatArray, Forms]:
        """The same for sums over samples with these weights, which may be over other nodes."""
        at, size, step, columns = self.at, self.size, samples.step, samples.columns
        summed, demand = sums
        if self.across_forms is not None:
            summed[:, : self.across_forms.shape[1]] += self.across_forms[rows]
            demand = demand + self.across_demand[rows, 0]
        asked = columns.layout.forms(-summed * at.roots[rows] / samples.dimensions)
        information, whole = at.information[rows], self.whole[rows]
        linear, mean = at.blocks.phi_phi[rows], half_sums(relative)
        changed, mixed = asked.own[:, 0] + mean * information, None
        degrees = self.group_force[rows] - relative * at.all_degrees[rows]
        changes: list[FloatArray] = []  # of the sectors' responses
        if at.every_sector is not None:
            own = asked.own[:, 1:] + mean[:, None] * at.every_sector.information[rows]
            replied, freedom = at.every_sector.reply(rows, own)
            degrees += freedom
            changes.append(replied)
            if at.along_kappa is not None and asked.mixed is not None:
                cross = asked.mixed + mean * at.along_kappa.cross[rows]
                mixed = at.along_kappa.reply(rows, own[:, -1], cross, relative)
                changed += mean * at.along_kappa.eliminated[rows] - mixed.eliminated
        pushed = change.copy()
        pushed[:, size : 2 * size, size : 2 * size] -= changed
        moved = mean_change(step, whole, pushed) + self.shift[rows]
        answer = moved[:, size : 2 * size, size : 2 * size]
        own = (changed * linear + information * answer).sum(axis=2)
        degrees += step.d[:, None] * own - at.state.v2[rows] * demand
        responses = np.concatenate([answer[:, None], *changes], axis=1)
        with_linear: FloatArray | None = None
        if mixed is not None:
            degrees -= mixed.taken(linear, answer)
            beside, with_linear = mixed.responses(linear, answer)
            responses[:, -1] += beside
        return -degrees / step.neurons, moved, Forms(responses, with_linear)


def fitted_bulk_gram(step: Step, coefficients: FloatArray) -> FloatArray:
    """ττᵀ + Σψ_iψ_iᵀ, (B, K, K)."""
    size = step.k.shape[1]
    bulk = coefficients[:, size : (2 + step.directions) * size]
    bulk = bulk.reshape(len(step), 1 + step.directions, size)  # τ, ψ_1 … ψ_r
    return matmul(transposed(bulk), bulk)


def fluctuations(
    columns: Columns, grams: Forms, squares: FloatArray, square_gram: FloatArray | None = None
) -> FloatArray:
    """v of (13) at every node: Σ μ_gμ_h Q_gh + Σ ν_g² P_g, (B, Q).

    `grams` has Q and the same for other tables, `square_gram` for s_2.
    """
    total = matmul(columns.spread, squares[:, :, None])[:, :, 0]
    total = total + columns.contracted(columns.layout.flat(grams))
    if square_gram is not None:
        bent = 2.0 * columns.curvature
        total = total + (matmul(bent, square_gram) * bent).sum(axis=2)
    return np.asarray(total)


class _SquareLoss(Adjoint):
    """The adjoint equations of the square loss, which are linear."""

    def __init__(self, at: Evaluation, found: Covariance, fitted: RegressionFit) -> None:
        super().__init__(at, found, fitted.dual, fitted.coefficients, fitted)
        self.misfit = fitted.misfit
        if self.square_force is not None:
            bent = 2.0 * at.samples.columns.curvature
            self.misfit = self.misfit + (matmul(bent, self.square_force) * bent).sum(axis=2)

        self.seen_misfit = self.misfit  # by the training samples
        if fitted.across is not None and fitted.misfit_across is not None:
            self.seen_misfit = self.misfit - fitted.across.on_training(fitted.misfit_across)

    def solve(self, slack: float) -> Errors:
        """The solution of the adjoint equations, and the errors that follow from it."""
        step, size = self.step, self.size
        unchanged = symmetric(2 * size).count + size + self.misfit.shape[1]
        first = self.image(np.zeros((len(step), unchanged)), np.arange(len(step)))
        scale = np.maximum(np.abs(first).max(axis=1, keepdims=True), 1e-300)
        found = robust_fixed_point(
            self.image,
            first,
            scale=np.broadcast_to(scale, first.shape),
            tolerance=slack * TOLERANCE,
            accepted=slack * ACCEPTED,
        )
        every = slice(None)
        relative, bent, change = self._changes(self.bare, found.state, every)
        grams = self._grams(relative, change[1], every)
        squares = self.at.state.v2 * relative
        seen = (self.seen_misfit + bent) * self.at.shrink**2
        return Errors(self.misfit + bent, seen, squares, grams, self.square_force)

    def _grams(self, relative: FloatArray, change: Forms, rows: Any) -> Forms:
        """dV1 and the same for the other tables."""
        at, layout = self.at, self.at.samples.columns.layout
        mean = 0.5 * (relative[:, layout.first] + relative[:, layout.second])
        flat = layout.flat(change) + mean * layout.flat(at.responses.take(rows))
        found = layout.forms(flat * at.roots[rows])
        found.own[:, 0] += self.bulk_force[rows]
        if found.mixed is None or self.mixed_force is None:
            return found
        found.own[:, -1] += self.mixed_force[0][rows]
        return found._replace(mixed=found.mixed + self.mixed_force[1][rows])

    def image(self, state: FloatArray, rows: IntArray) -> FloatArray:
        """The linearised map with the gradients of the readout's loss as source.

        A state is d log V2, d log(1 + χ) and the upper triangle of dΞ as one vector.
        """
        samples = self.samples_of(rows)
        part = slice(None) if samples is self.bare else rows  # all of them without a copy
        relative, bent, (moved, _) = self._changes(samples, state, part)
        inside = p_hat_index(self.size)
        coupled = moved[:, inside[:, None], inside]
        t_matrices = self.at.t_matrices[part]
        again = symmetric(2 * self.size).upper(t_matrix_change(samples.step, t_matrices, coupled))
        return np.concatenate([relative, bent * self.at.shrink[part], again], axis=1)

    def _changes(
        self, samples: Samples, state: FloatArray, rows: Any
    ) -> tuple[FloatArray, FloatArray, tuple[FloatArray, Forms]]:
        """d log V2, dχ and what `reply` says beside."""
        at, size = self.at, self.size
        last = size + self.misfit.shape[1]
        relative, bent = state[:, :size], state[:, size:last]
        xi = symmetric(2 * size).whole(state[:, last:])
        change = padded(xi, size)
        error = self.seen_misfit[rows] + bent / at.shrink[rows]
        squares = at.mass[rows] * at.shrink[rows] * error  # n w (E0 + v)/(1 + χ)²
        relative, moved, higher = self.reply(samples, rows, relative, change, squares)
        grams = self._grams(relative, higher, rows)
        bent = fluctuations(samples.columns, grams, at.state.v2[rows] * relative)
        return relative, bent, (moved, higher)


def padded(xi: FloatArray, size: int) -> FloatArray:
    """Matrices on (p, φ̂) with zeros in rows and columns φ."""
    whole = np.zeros((xi.shape[0], 3 * size, 3 * size))
    inside = p_hat_index(size)
    whole[:, inside[:, None], inside] = xi
    return whole
