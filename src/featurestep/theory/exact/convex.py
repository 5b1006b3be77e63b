"""The readout with any convex loss: one fixed point of weights, samples and readout (72)–(83).

The output's variance enters the averages over samples, so that nothing is triangular as it is for
the square loss: the resolvent, the fields that the readout uses and the adjoint pass for P and Q
are unknowns of one map, which `convex_solver` iterates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray, IntArray
from .dyson import (
    covariance,
    matmul,
    p_hat_index,
    solved,
    t_matrix_change,
    transposed,
)
from .errors import Adjoint, fitted_bulk_gram, fluctuations, padded
from .fixed_point import Evaluation, Samples, SampleSums, State, evaluate
from .label_rules import LabelRule
from .losses import Loss, Measured, Output, SampleAverages
from .regression import field_covariance
from .sectors import Forms, half_sums

_SMALLEST_VARIANCE = 1e-10  # of the largest at any κ
_LARGEST_INTERCEPT_MOVE = 3.0


@dataclass(frozen=True)
class Fitting:
    """Samples with their labels, and how the readout is fitted to them."""

    samples: Samples
    labels: LabelRule
    loss: Loss
    intercept: bool

    @cached_property
    def columns(self) -> FloatArray:
        """B_0, B_1 and B_2 of (72), (B, 3, Q, F).

        With an intercept the columns of A are centred: else the two are nearly collinear.
        """
        columns = self.samples.columns
        plain = columns.plain
        if self.intercept:
            plain = plain.copy()
            plain[:, :, : columns.slope.shape[2]] -= self.means[:, None, :]
        return np.stack([plain, columns.linear[:, 0], columns.square[:, 0]], axis=1)

    @cached_property
    def means(self) -> FloatArray:
        """E_κ B_0 of A, (B, K)."""
        columns = self.samples.columns
        size = columns.slope.shape[2]
        return np.asarray(np.einsum("q,bqk->bk", self.samples.weight, columns.plain[:, :, :size]))

    def take(self, rows: IntArray) -> Fitting:
        """The same for some of the problems, in the order of `rows`."""
        if np.array_equal(rows, np.arange(len(self.samples.step))):
            return self
        return Fitting(self.samples.take(rows), self.labels.take(rows), self.loss, self.intercept)


class Unknowns(NamedTuple):
    """Everything that the fixed point determines; none of it depends on the rules for κ and s."""

    v2: FloatArray  # (B, K) V2
    phi_phi: FloatArray  # (B, K, K) G_φφ
    xi: FloatArray  # (B, 2K, 2K) Ξ
    coefficients: FloatArray  # (B, F) X
    intercept: FloatArray  # (B,) b, for centred columns of A
    relative: FloatArray  # (B, K) P/V2
    bulk: FloatArray  # (B, K, K) (Q + ττᵀ + ψψᵀ)/√V2√V2
    xi_change: FloatArray  # (B, 2K, 2K) the adjoint of Ξ, over d

    def take(self, rows: IntArray) -> Unknowns:
        """Those of some rows."""
        return Unknowns(*(part[rows] for part in self))


@dataclass(frozen=True)
class Sides:
    """The sample side at some unknowns (72)–(75)."""

    fitting: Fitting
    unknowns: Unknowns
    output: Output
    parts: FloatArray  # (B, 3, Q) M_0, M_1, M_2 with the intercept
    bulk_gram: FloatArray  # (B, K, K) Q
    squares: FloatArray  # (B, K) P

    @cached_property
    def averages(self) -> SampleAverages:
        """⟨h⟩, ⟨g²⟩ and what the Newton step needs."""
        return self.fitting.loss.averages(self.fitting.labels, self.output)

    @cached_property
    def mass(self) -> FloatArray:
        """n w⟨h⟩, the weight of a sample in V̂1 and V̂2, (B, Q) (eq. 75)."""
        return np.asarray(self.samples_by_node * self.averages.h)

    @cached_property
    def g_squares(self) -> FloatArray:
        """n w⟨g²⟩ of (75), (B, Q)."""
        return np.asarray(self.samples_by_node * self.averages.g_square)

    @property
    def samples_by_node(self) -> FloatArray:
        """n w, (B, Q)."""
        samples = self.fitting.samples
        return np.asarray(samples.step.n[:, None] * samples.weight)

    @property
    def plain_intercept(self) -> FloatArray:
        """b of columns of A that are not centred, (B,)."""
        if not self.fitting.intercept:
            return self.unknowns.intercept
        size = self.squares.shape[1]
        own = self.unknowns.coefficients[:, :size] * self.fitting.means
        return np.asarray(self.unknowns.intercept - own.sum(axis=1))

    @property
    def measured(self) -> Measured:
        """Losses and errors, (B,) each (eqs. 84, 85)."""
        found = self.fitting.loss.measured(self.fitting.labels, self.output)
        return Measured(*self._means(found))

    @property
    def errors(self) -> tuple[FloatArray, ...]:
        """Test and training error, (B,) each."""
        return self._means(self.fitting.loss.errors(self.fitting.labels, self.output))

    def _means(self, given_kappa: Iterable[FloatArray]) -> tuple[FloatArray, ...]:
        weight = self.fitting.samples.weight
        return tuple(np.maximum(values @ weight, 0.0) for values in given_kappa)


def sides(fitting: Fitting, unknowns: Unknowns) -> Sides:
    """The law of the output given κ and s, M + √v ξ (eqs. 72, 73)."""
    samples, columns = fitting.samples, fitting.samples.columns
    step, (v2, x) = samples.step, (unknowns.v2, unknowns.coefficients)
    size = v2.shape[1]
    parts = matmul(fitting.columns, x[:, None, :, None])[..., 0]  # (B, 3, Q)
    own = matmul(fitting.columns[:, 1:, :, :size], x[:, None, :size, None])[..., 0]
    parts[:, 0] += unknowns.intercept[:, None]
    root = np.sqrt(v2)
    bulk_gram = root[:, :, None] * unknowns.bulk * root[:, None, :] - fitted_bulk_gram(step, x)
    squares = v2 * unknowns.relative
    bent = columns.curvature * x[:, None, :size]
    bulk = fluctuations(columns, Forms(bulk_gram[:, None]), squares)
    bulk = np.maximum(bulk, _SMALLEST_VARIANCE * bulk.max(axis=1, keepdims=True))
    norms = np.einsum("bqg,bqg->bq", matmul(bent, step.sample_norm), bent)
    variance = bulk + norms - own[:, 0] ** 2 - 2.0 * own[:, 1] ** 2
    largest = np.maximum(variance.max(axis=1, keepdims=True), 1e-300)
    variance = np.maximum(variance, _SMALLEST_VARIANCE * largest)
    direction = columns.slope * root[:, None, :]
    linear = np.maximum((matmul(direction, unknowns.phi_phi) * direction).sum(axis=2), 0.0)
    chi = linear + matmul(columns.spread, v2[:, :, None])[:, :, 0]
    chi = np.maximum(chi, 1e-14 * np.maximum(chi.max(axis=1, keepdims=True), 1e-200))
    mean = matmul(fitting.labels.basis, parts.transpose(0, 2, 1)[..., None])[..., 0]  # (B, Q, S)
    output = Output(
        label=fitting.labels.label,
        mean=mean,
        variance=variance[..., None],
        influence=chi[..., None],
        noise=step.noise[:, None, None] if fitting.labels.is_real else np.zeros((1, 1, 1)),
    )
    return Sides(fitting, unknowns, output, parts, bulk_gram, squares)


class NodeSums(NamedTuple):
    """Sums over nodes of κ and s: all that the map needs of samples and labels."""

    features: SampleSums  # with the weights n w⟨h⟩ of (75)
    squares: SampleSums  # with the weights n w⟨g²⟩
    gram: FloatArray  # (B, F, F) 𝒢 of (76) without −V̂1
    right: FloatArray  # (B, F) R = nE⟨B(g + hω̄)⟩
    border: FloatArray  # (B, F) u = nE⟨hB⟩
    corner: FloatArray  # (B, 2) nE⟨h⟩ of the intercept's row, and nE⟨g + hω̄⟩
    shifts: FloatArray  # (B,) nE⟨χg²⟩

    @classmethod
    def joined(cls, parts: Sequence[NodeSums], rows: Sequence[IntArray]) -> NodeSums:
        """Those of several sets of rows as one, in the order that `rows` tell."""
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate(rows))

        def whole(each: Sequence[FloatArray]) -> FloatArray:
            return np.asarray(np.concatenate(each)[order])

        features, squares, *others = zip(*parts, strict=True)
        first, second = (
            SampleSums(*map(whole, zip(*each, strict=True))) for each in (features, squares)
        )
        return cls(first, second, *map(whole, others))


def node_sums(at: Sides) -> NodeSums:
    """The sums of (75) and (76)."""
    samples, fields = at.fitting.samples, at.fitting.columns
    columns, nw = samples.columns, at.samples_by_node[:, :, None]
    rows, _, count, total = fields.shape
    flat = fields.reshape(rows, 3 * count, total)
    curvature = (at.averages.curvature * nw).reshape(rows, count, 3, 3)
    pull = at.averages.force * nw  # E⟨(g + hω̄)s_a⟩, ω̄ the same sum over s_b
    pull += matmul(curvature, at.parts.transpose(0, 2, 1)[..., None])[..., 0]
    bent = matmul(curvature, fields.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)  # (B, 3, Q, F)
    gram = matmul(transposed(flat), bent.reshape(rows, 3 * count, total))
    mass, squares = at.mass[:, :, None], at.g_squares[:, None, :]
    size = columns.slope.shape[2]
    linear, square = (part[:, 0, :, :size] for part in (columns.linear, columns.square))
    curved = columns.curvature
    own = samples.step.sample_norm * matmul(transposed(curved), curved * mass)  # by ∂v_s/∂X
    own -= matmul(transposed(linear), linear * mass)
    own -= 2.0 * matmul(transposed(square), square * mass)
    gram[:, :size, :size] += own
    noise = matmul(at.mass[:, None, :], columns.spread_in_v2)[:, 0]  # V̂2
    corner = np.stack([curvature[:, :, 0, 0].sum(axis=1), pull[:, :, 0].sum(axis=1)], axis=1)
    return NodeSums(
        features=SampleSums(columns.summed(at.mass), noise),
        squares=SampleSums(columns.summed(at.g_squares), matmul(squares, columns.spread)[:, 0]),
        gram=gram,
        right=matmul(pull.transpose(0, 2, 1).reshape(rows, 1, 3 * count), flat)[:, 0],
        border=bent[:, 0].sum(axis=1),
        corner=corner,
        shifts=(at.g_squares * at.output.influence[..., 0]).sum(axis=1),
    )


def sums_at(fitting: Fitting, unknowns: Unknowns) -> NodeSums:
    """The sums at some unknowns."""
    return node_sums(sides(fitting, unknowns))


class ConvexFit(NamedTuple):
    """What the readout uses of every field."""

    dual: FloatArray  # (B, F) x̂
    coefficients: FloatArray  # (B, F) X = Cx̂
    intercept: FloatArray  # (B,)


def newton_readout(
    sums: NodeSums, found: Evaluation, c: FloatArray, before: Unknowns, *, intercept: bool
) -> ConvexFit:
    """One Newton step for the fields and the intercept (eqs. 76, 77).

    It is exact for the square loss, where it is the regression (29). c: covariance of the fields,
    (B, F, F).
    """
    step, v2 = found.samples.step, found.state.v2
    (rows, fields), size = sums.right.shape, v2.shape[1]
    root = np.sqrt(step.d[:, None] / v2)
    v1_hat = root[:, :, None] * found.information * root[:, None, :]
    gram = sums.gram.copy()
    for first in (size, 2 * size):
        gram[:, first : first + size, first : first + size] -= v1_hat
    scale = np.sqrt(np.einsum("bff->bf", c))
    scale = np.where(scale > 0.0, scale, 1.0)
    shape = c / (scale[:, :, None] * scale[:, None, :])
    matrix = matmul(scale[:, :, None] * gram * scale[:, None, :], shape)
    matrix[:, np.arange(fields), np.arange(fields)] += 1.0
    right = scale * sums.right
    offset = np.zeros(rows)
    if intercept:
        border = scale * sums.border
        row = matmul(border[:, None, :], shape)
        matrix = np.concatenate(
            [
                np.concatenate([matrix, border[:, :, None]], axis=2),
                np.concatenate([row, sums.corner[:, :1, None]], axis=2),
            ],
            axis=1,
        )
        right = np.concatenate([right, sums.corner[:, 1:]], axis=1)
        answer = solved(matrix, right)
        answer, offset = answer[:, :-1], answer[:, -1]
    else:
        answer = solved(matrix, right)
    used = scale * matmul(shape, answer[:, :, None])[:, :, 0]
    after = ConvexFit(answer / scale, used, offset)
    return _shortened(after, before) if intercept else after


def _shortened(found: ConvexFit, before: Unknowns) -> ConvexFit:
    """The step, shortened as a whole where the intercept would move too far."""
    most = _LARGEST_INTERCEPT_MOVE * (1.0 + np.abs(before.intercept))
    moved = np.abs(found.intercept - before.intercept)
    share = np.minimum(1.0, most / np.maximum(moved, 1e-300))
    return ConvexFit(
        found.dual,
        before.coefficients + share[:, None] * (found.coefficients - before.coefficients),
        before.intercept + share * (found.intercept - before.intercept),
    )


class Mapped(NamedTuple):
    """One application of the map, and what it went through."""

    found: Evaluation
    readout: ConvexFit
    unknowns: Unknowns


def mapped(samples: Samples, unknowns: Unknowns, sums: NodeSums, *, intercept: bool) -> Mapped:
    """Apply (7), (22), (23), (72)–(77) and the adjoint pass once (eqs. 79–83).

    The sums are over the nodes of each row's own rules. Of the samples nothing is used that
    belongs to nodes.
    """
    step, size = samples.step, unknowns.v2.shape[1]
    state = State(unknowns.v2, np.zeros((len(step), samples.kappa.size)), unknowns.xi)
    found = evaluate(samples, state, sums=sums.features)
    fields = covariance(step, unknowns.xi, found.class_whole, found.average)
    c = field_covariance(step, sums.right.shape[1], unknowns.v2, fields)
    readout = newton_readout(sums, found, c, unknowns, intercept=intercept)
    adjoint = Adjoint(found, fields, readout.dual, readout.coefficients)
    change = padded(unknowns.xi_change, size)
    every = np.arange(len(step))
    relative, moved, _ = adjoint.reply_to_sums(
        samples, every, unknowns.relative, change, sums.squares
    )
    mean = half_sums(relative)
    own = moved[:, size : 2 * size, size : 2 * size]
    bulk = own + mean * found.blocks.phi_phi
    inside = p_hat_index(size)
    again = t_matrix_change(step, found.t_matrices, moved[:, inside[:, None], inside])
    return Mapped(
        found,
        readout,
        Unknowns(
            v2=np.maximum(found.mapped_v2, 1e-300),
            phi_phi=found.blocks.phi_phi,
            xi=found.mapped_xi,
            coefficients=readout.coefficients,
            intercept=readout.intercept,
            relative=relative,
            bulk=bulk,
            xi_change=again,
        ),
    )


def norm_by_scaling(unknowns: Unknowns, sums: NodeSums, at: Mapped) -> FloatArray:
    """λ‖â‖² by the sum over groups of the equation (82) of P_g, (B,).

    It holds at the fixed point only, and checks it; the adjoint pass is checked by (86).
    """
    step = at.found.samples.step
    bulk = step.d * np.einsum("bgh,bgh->b", at.found.information, unknowns.bulk)
    total = sums.shifts + (at.readout.dual * at.readout.coefficients).sum(axis=1)
    total -= (sums.features.noise * unknowns.v2 * unknowns.relative).sum(axis=1) + bulk
    return np.asarray(total / step.n)
