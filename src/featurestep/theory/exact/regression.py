"""The regression of the labels on the fields' columns (29), without inverting C.

At finite d fields of degree 2 and 3 join it; those of degree 2 lie in the block of that degree, as
τ and ψ lie in the linear one (148), and the norms of neurons share one coordinate with it (149).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.types import FloatArray
from ..labels import Labels, LabelsAcross, pairs
from .columns import Columns
from .degrees import HigherFields, NormsInBlock
from .dyson import Covariance, matmul, solved, transposed
from .fixed_point import Evaluation, Samples
from .products import ClassBlock, ClassProducts
from .step import Step

LARGEST_ACROSS = 0.125  # rms of χ_s/(1 + χ): what cubic functions leave, h_4, keeps a weight > 0
# ⟨h_b|s² − 1|h_c⟩ for b, c = 0 … 3
_BETWEEN = np.diag([0.0, 2.0, 4.0, 6.0])
_BETWEEN[0, 2] = _BETWEEN[2, 0] = math.sqrt(2.0)
_BETWEEN[1, 3] = _BETWEEN[3, 1] = math.sqrt(6.0)


class InfluenceAcross:
    """χ_s at a solution, and what it adds to the regression (eq. 152).

    Samples with a large s have a larger norm and influence: to first order in 1/d it is
    χ + (s² − 1)χ_s, so that the regression weights labels far out in s less. It matters where these
    are the ones that are not fitted: for targets of degree 3 and more. At d of about ten
    χ_s/(1 + χ) can be ¼, where 1 − (s² − 1)χ_s/(1 + χ) is no weight of samples: it is bounded.
    """

    def __init__(
        self,
        labels: LabelsAcross,
        slope: FloatArray,
        mass: FloatArray,
        shrink: FloatArray,
        probability: FloatArray,
    ) -> None:
        """For χ_s, n w/(1 + χ) and 1/(1 + χ), (B, Q), and probabilities w of the nodes, (Q,)."""
        self.labels, self.slope, self.mass = labels, slope, mass
        self.ratio = shrink * slope  # χ_s/(1 + χ)
        square = (probability * (self.ratio / LARGEST_ACROSS) ** 2).sum(axis=1, keepdims=True)
        bend = 1.0 + square**2
        self.factor = bend**-0.25  # keeps the root mean square of `limited` below its bound
        self.limited = self.factor * self.ratio
        slope_of_factor = -0.5 * square * bend**-1.25 / LARGEST_ACROSS**2
        self._with_factor = 2.0 * slope_of_factor * probability * self.ratio
        self.weight = -mass * self.limited  # of s² − 1 in n w/(1 + χ)

    @classmethod
    def of(cls, at: Evaluation, labels: LabelsAcross) -> InfluenceAcross:
        """At a solution of the fixed point."""
        columns = at.samples.columns
        assert columns.across is not None
        tables, forms = columns.across, at.between_roots(at.responses)
        noise = matmul(tables.spread, at.state.v2[:, :, None])[:, :, 0]
        slope = columns.contracted(forms, tables.products) + noise
        return cls(labels, slope, at.mass, at.shrink, at.samples.weight)

    def force(self, misfit_across: FloatArray) -> FloatArray:
        """Minus the gradient of the loss by χ_s/(1 + χ), (B, Q)."""
        own = self.mass * misfit_across
        total = (own * self.ratio).sum(axis=1, keepdims=True)
        return np.asarray(self.factor * own + total * self._with_factor)

    def on_training(self, misfit_across: FloatArray) -> FloatArray:
        """What E[(y − f)²|κ]/(1 + χ(s))² of training samples lacks, times (1 + χ)², (B, Q)."""
        both = self.limited * misfit_across + self.ratio * self.force(misfit_across) / self.mass
        return np.asarray(both)

    def gram(self, parts: FloatArray) -> FloatArray:
        """E of n/(1 + χ(s)) times products of two fields, (B, F, F), by parts (B, 4, Q, F)."""
        mass, weight = self.mass[:, None, :, None], self.weight[:, None, :, None]
        own, between = (_BETWEEN.diagonal(i)[:, None, None] for i in (0, 2))
        cross = _summed(parts[:, :2], between * weight * parts[:, 2:])
        return _summed(parts, (mass + own * weight) * parts) + cross + transposed(cross)

    def misfit(self, shown: FloatArray) -> FloatArray:
        """E[(s² − 1)(y − B·X)²|κ], (B, Q), for B·X along h_b(s), (B, 4, Q)."""
        own = np.tensordot(shown, _BETWEEN, (1, 0)).transpose(0, 2, 1) - 2.0 * self.labels.parts
        return np.asarray(self.labels.square + (shown * own).sum(axis=1))


@dataclass(frozen=True)
class RegressionFit:
    """The solution of (29): fields in the order A, τ, ψ_1 … ψ_r, Δ (, Ω), K of each."""

    dual: FloatArray  # (B, F) x̂
    coefficients: FloatArray  # (B, F) X = Cx̂
    misfit: FloatArray  # (B, Q) E[(y − B·X)²|κ], with the sample-norm term
    train_loss: FloatArray  # (B,) L_tr
    block: QuadraticBlock | ClassBlock | None = None  # of degree 2
    across: InfluenceAcross | None = None  # of samples with large s
    misfit_across: FloatArray | None = None  # (B, Q) E[(s² − 1)(y − B·X)²|κ]


def field_covariance(
    step: Step,
    count: int,
    v2: FloatArray,
    found: Covariance,
    block: QuadraticBlock | ClassBlock | None = None,
) -> FloatArray:
    """C of all fields A, τ, ψ_i, Δ (, Ω, or those of higher degrees), (B, F, F) (eqs. 40, 105).

    `count` is F.
    """
    size = step.k.shape[1]
    scaled = np.zeros((len(step), count, count), dtype=found.matrix.dtype)
    g = np.arange(size)
    scaled[:, g, g] = step.d[:, None]
    norms = (2 + step.directions) * size  # where Δ begins
    special = slice(size, norms + size)
    scaled[:, special, special] = found.total
    cross = np.sqrt(step.d)[:, None, None] * found.with_means
    scaled[:, :size, special] = cross
    scaled[:, special, :size] = transposed(cross)
    scaled[:, norms + g, norms + g] += step.norm_variance
    if step.classes is not None and block is None:
        norm = step.classes.norms
        omega = norms + size + g
        scaled[:, norms + g, norms + g] += 2.0 * norm.own
        scaled[:, omega, omega] = 2.0 * norm.plain[:, None]
        scaled[:, norms + g, omega] = scaled[:, omega, norms + g] = 2.0 * norm.shared
    elif step.is_gaussian:
        scaled[:, norms + size + g, norms + size + g] = 2.0
    if block is not None:
        inside = slice(norms, norms + block.fields * size)
        scaled[:, inside, inside] += block.covariance
    if isinstance(block, QuadraticBlock):
        cube = block.higher.cube
        every = norms + 4 * size + size * np.arange(4)
        for i, row in enumerate(every):
            for j, column in enumerate(every):
                scaled[:, row + g, column + g] = cube[:, :, i, j]
    root = np.tile(np.sqrt(v2 / step.d[:, None]), count // size)
    return np.asarray(root[:, :, None] * scaled * root[:, None, :])


class QuadraticBlock:
    """The fields Δ, (κκ), (κs), (ss) in the block of degree 2, at Ṽ_q = √D V̂_q √D.

    information: (B, K, K), V̂_q = nE[s_2s_2ᵀ/(1+χ)].
    """

    fields = 4  # from Δ on, the last three of degree 2

    def __init__(self, higher: HigherFields, d: FloatArray, information: FloatArray) -> None:
        self.higher, self.information, self.d = higher, information, d
        rows, size, count, _ = higher.square.shape
        g, i = np.arange(size), np.arange(count)
        square = np.moveaxis(higher.square, 1, -1)  # (B, c, c, K)
        matrix = square[:, :, :, :, None] * information[:, None, None]  # (B, c, c, K, K)
        matrix = matrix.transpose(0, 1, 3, 2, 4)  # (B, c, K, c, K)
        matrix[:, i[:, None], g, i[:, None], g] += 1.0
        matrix = matrix.reshape(rows, count * size, count * size)
        of_fields = np.zeros((rows, count, size, 3, size))
        of_fields[:, :, g, :, g] = square[:, :, :3].transpose(3, 0, 1, 2)
        found: Any = np.linalg.solve(matrix, of_fields.reshape(rows, count * size, 3 * size))
        self._mixed: FloatArray = found  # (I + CṼ)⁻¹C from the three fields to all, (B, cK, 3K)
        self.size, self.count = size, count

    @property
    def square(self) -> FloatArray:
        """C of (κκ), (κs), (ss) in units of D, (B, 3K, 3K) (eq. 148)."""
        return self._mixed[:, : 3 * self.size]

    @property
    def covariance(self) -> FloatArray:
        """Both, (B, 4K, 4K)."""
        whole = np.zeros((len(self.d), 4 * self.size, 4 * self.size))
        whole[:, : self.size, : self.size] = self.norms
        whole[:, self.size :, self.size :] = self.square
        return whole

    @cached_property
    def _norms(self) -> NormsInBlock:
        """What the norms of neurons share with the block."""
        higher = self.higher
        return NormsInBlock(higher.share, higher.bulk, higher.norm_share, self.d, self.information)

    @property
    def norms(self) -> FloatArray:
        """What the block takes of the norms of neurons, (B, K, K)."""
        return self._norms.covariance

    def force(self, dual: FloatArray) -> FloatArray:
        """Minus the gradient of x̃ᵀCx̃ by Ṽ_q, (B, K, K), for x̃ of the four fields (B, 4, K)."""
        rows, norms = len(dual), dual[:, 0]
        fields = dual[:, 1:].reshape(rows, -1, 1)
        answer = matmul(self._mixed, fields).reshape(rows, self.count, self.size)
        found = matmul(transposed(answer), answer)
        return found + self._norms.force(norms)


def _product(left: FloatArray, right: FloatArray, weight: FloatArray) -> FloatArray:
    """Σ over nodes of left ⊗ right."""
    return matmul(transposed(left), right * weight[:, :, None])


def _summed(left: FloatArray, right: FloatArray) -> FloatArray:
    """Σ over degrees and nodes of left ⊗ right, (B, F, F), for both (B, j, Q, F)."""
    rows, degrees, nodes, count = left.shape
    flat = (rows, degrees * nodes, count)
    return matmul(transposed(left.reshape(flat)), right.reshape(flat))


def quadratic_block(at: Evaluation) -> QuadraticBlock | ClassBlock | None:
    """The fields' share of the block of degree 2 at a solution of the fixed point."""
    columns, step = at.samples.columns, at.samples.step
    if columns.higher is None:
        return None
    second = 2.0 * columns.curvature * np.sqrt(at.state.v2 / step.d[:, None])[:, None, :]
    information = _product(second, second, at.mass)
    if isinstance(columns.higher, ClassProducts):
        return ClassBlock(columns.higher, information)
    return QuadraticBlock(columns.higher, step.d, information)


def gram(samples: Samples, mass: FloatArray) -> FloatArray:
    """𝒢, with the weights n w/(1+χ) of every node in `mass` (eq. 49).

    For norms of samples that are no variable; else see `radial_gram`.
    """
    step, columns, kappa = samples.step, samples.columns, samples.kappa
    size = step.k.shape[1]
    means, along = slice(0, size), slice(size, 2 * size)
    total = _product(columns.plain, columns.plain, mass)
    if step.is_full or columns.higher is not None:
        for part, norm in zip(
            _parts(columns.square), _pair_variances(step.directions), strict=True
        ):
            total = total + _product(part, part, norm * mass)
    for part in _parts(columns.linear):
        total = total + _product(part, part, mass)
    if columns.cubic is not None:
        psi = slice(2 * size, 3 * size)
        total[:, psi, psi] += _product(columns.cubic, columns.cubic, mass)
    bent = _product(columns.curvature, columns.curvature, mass)
    # Blocks in which parts cancel, or belong to the sample norms, are written by themselves.
    own = columns.plain[:, :, means]
    total[:, means, means] = _product(own, own, mass) + step.sample_norm * bent
    if columns.aside is not None:
        linear = columns.linear[:, 0, :, means]
        noise = linear - columns.aside
        total[:, means, means] += _product(linear, linear, mass) - _product(noise, noise, mass)
    if step.has_products:  # columns of fields differ from those that the blocks have seen
        seen = _product(columns.slope, columns.slope, mass)  # V̂1
        first_square = 2 + step.directions + 2
        blocks = [(field, seen) for field in range(1, 2 + step.directions)]
        blocks += [(field, 4.0 * bent) for field in range(first_square, first_square + 3)]
        for field, taken in blocks:
            place = slice(field * size, (field + 1) * size)
            total[:, place, place] -= taken
        return total
    total[:, along, along] = _product(columns.slope, columns.slope, mass * (kappa**2 - 1.0))
    tilted = np.zeros_like(bent)
    if step.is_full:
        tilt = columns.plain[:, :, 2 * size : 3 * size]
        total[:, along, along] += _product(tilt, tilt, mass * kappa**2)
        tilted = _product(tilt, tilt, mass)
    for i in range(step.directions):
        across = slice((2 + i) * size, (3 + i) * size)
        total[:, across, across] = (3.0 if i == 0 else 1.0) * tilted
    return total


def radial_gram(
    samples: Samples, mass: FloatArray, information: FloatArray, across: InfluenceAcross | None
) -> FloatArray:
    """𝒢 with the norms of samples as a variable: −V̂1 on τ and ψ, −V̂_q on fields of degree 2.

    information: V̂1, (B, K, K), without what coordinates κx_i share with it (138). With `across`
    samples have the influence χ + (s² − 1)χ_s of (152).
    """
    step, columns = samples.step, samples.columns
    parts = columns.by_degree
    assert parts is not None
    if across is None:
        total = _summed(parts, mass[:, None, :, None] * parts)
    else:
        total = across.gram(parts)
    size = step.k.shape[1]
    bent = _product(columns.curvature, columns.curvature, mass)
    total[:, :size, :size] += step.sample_norm * bent
    for field, seen in ((1, information), (2, information), *((i, 4.0 * bent) for i in (4, 5, 6))):
        own = slice(field * size, (field + 1) * size)
        total[:, own, own] -= seen
    return total


def _parts(columns: FloatArray) -> FloatArray:
    """Columns (B, j, Q, F) one j at a time."""
    return np.moveaxis(columns, 1, 0)


def _pair_variances(count: int) -> FloatArray:
    """E of the squares of s_is_k − δ_ik."""
    return np.array([2.0 if i == k else 1.0 for i, k in pairs(count)])


def fit(
    at: Evaluation, labels: Labels, found: Covariance, beside: LabelsAcross | None = None
) -> RegressionFit:
    """Solve the regression at a solution of the fixed point (eqs. 11, 29).

    With `beside` samples have the influence χ + (s² − 1)χ_s of (152).
    """
    step, columns = at.samples.step, at.samples.columns
    mass = at.mass
    block = quadratic_block(at)
    c = field_covariance(step, columns.plain.shape[2], at.state.v2, found, block)
    size = step.k.shape[1]
    root = np.sqrt(step.d[:, None] / at.state.v2)
    across = None if beside is None else InfluenceAcross.of(at, beside)
    if isinstance(block, QuadraticBlock):
        information = root[:, :, None] * at.information * root[:, None, :]
        seen = radial_gram(at.samples, mass, information, across)
        right = _right_by_degree(columns, labels, mass, across)
    else:
        seen = gram(at.samples, mass)
        right = _moment(columns.plain, mass * labels.mean)
        for of, own in ((columns.linear, labels.linear), (columns.square, labels.square)):
            for i, part in enumerate(_parts(of)):
                right = right + _moment(part, mass * own[:, i])
        if columns.cubic is not None and labels.cubic is not None:
            right[:, 2 * size : 3 * size] += _moment(columns.cubic, mass * labels.cubic)
    if isinstance(block, ClassBlock):
        seen[:, :size, :size] += root[:, :, None] * block.means * root[:, None, :]
    dual, coefficients = solve_fields(c, seen, right)
    missed = misfit(columns, labels, step.sample_norm, coefficients)
    # The objective itself: to first order it does not feel the rounding of the solution.
    penalty = (dual * coefficients).sum(axis=1) - _bulk_information(at, block, coefficients)
    if isinstance(block, ClassBlock):
        use = root * coefficients[:, :size]
        penalty += (matmul(block.means, use[:, :, None])[..., 0] * use).sum(axis=1)
    total, missed_across = (mass * missed).sum(axis=1) + penalty, None
    if across is not None:
        missed_across = across.misfit(shown_by_degree(columns, coefficients))
        total = total + (across.weight * missed_across).sum(axis=1)
    return RegressionFit(dual, coefficients, missed, total / step.n, block, across, missed_across)


def solve_fields(
    c: FloatArray, gram: FloatArray, right: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x̂ with (I + 𝒢C)x̂ = R, and X = Cx̂, (B, F), for C and 𝒢 (B, F, F) and R (B, F).

    C may be singular. Rows and columns are scaled by √C_ff; a field with C_ff = 0 has the solution
    0.
    """
    scale = np.sqrt(np.einsum("bff->bf", c))
    scale = np.where(scale > 0.0, scale, 1.0)
    shape = c / (scale[:, :, None] * scale[:, None, :])
    matrix = matmul(scale[:, :, None] * gram * scale[:, None, :], shape)
    answer = solved(matrix + np.eye(c.shape[-1]), scale * right)
    return answer / scale, scale * matmul(shape, answer[:, :, None])[:, :, 0]


def _bulk_information(
    at: Evaluation, block: QuadraticBlock | ClassBlock | None, coefficients: FloatArray
) -> FloatArray:
    """τᵀV̂1τ + Σψ_iᵀV̂1ψ_i, and the same with V̂_q for fields of degree 2, (B,)."""
    step = at.samples.step
    size, fields = step.k.shape[1], 1 + step.directions
    root = np.sqrt(step.d[:, None] / at.state.v2)[:, None, :]
    every = coefficients.reshape(len(step), -1, size) * root
    scaled = every[:, 1 : 1 + fields]
    total = (matmul(scaled, at.information) * scaled).sum(axis=(1, 2))
    if block is not None:
        last = 1 + fields + block.fields
        scaled = every[:, last - 3 : last]
        total = total + (matmul(scaled, block.information) * scaled).sum(axis=(1, 2))
    return np.asarray(total)


def _moment(columns: FloatArray, values: FloatArray) -> FloatArray:
    return matmul(values[:, None, :], columns)[:, 0]


def _right_by_degree(
    columns: Columns, labels: Labels, mass: FloatArray, across: InfluenceAcross | None
) -> FloatArray:
    """The right-hand side, (B, F), where columns have four parts."""
    values = mass[:, None] * labels.by_degree
    if across is not None:
        values = values + across.weight[:, None] * across.labels.parts
    parts = columns.by_degree
    assert parts is not None
    return _moment(parts.reshape(len(parts), -1, parts.shape[3]), values.reshape(len(parts), -1))


def misfit(
    columns: Columns, labels: Labels, sample_norm: FloatArray, coefficients: FloatArray
) -> FloatArray:
    """E[(y − B·X)²|κ] with the term of the sample norms, (B, Q) (eq. 12)."""
    size = columns.slope.shape[2]
    use = coefficients[:, :size]
    bent = columns.curvature * use[:, None, :]
    missed = labels.rest + (matmul(bent, sample_norm) * bent).sum(axis=2)
    if columns.by_degree is not None:  # what A has along s is in the parts, not in the sample norms
        label, shown = labels.by_degree, shown_by_degree(columns, coefficients)
        missed = missed + ((label[:, :2] - shown[:, :2]) ** 2).sum(axis=1)
        return np.asarray(missed + (shown[:, 2:] * (shown[:, 2:] - 2.0 * label[:, 2:])).sum(axis=1))
    if columns.cubic is not None and labels.cubic is not None:
        shown = _shown(columns.cubic, coefficients[:, 2 * size : 3 * size])
        missed = missed + shown * (shown - 2.0 * labels.cubic)
    missed = missed + (labels.mean - _shown(columns.plain, coefficients)) ** 2
    for i, part in enumerate(_parts(columns.linear)):
        missed = missed + (labels.linear[:, i] - _shown(part, coefficients)) ** 2
        noise = part[:, :, :size]
        noise = noise if columns.aside is None else noise - columns.aside
        missed = missed - _shown(noise, use) ** 2
    norms = _pair_variances(columns.linear.shape[1])
    for i, (part, norm) in enumerate(zip(_parts(columns.square), norms, strict=True)):
        shown = _shown(part, coefficients)
        missed = missed - 2.0 * labels.square[:, i] * shown + norm * shown**2
        missed = missed - norm * _shown(part[:, :, :size], use) ** 2
    return np.asarray(missed)


def shown_by_degree(columns: Columns, coefficients: FloatArray) -> FloatArray:
    """B·X along h_b(s) at every node, (B, 4, Q)."""
    parts = columns.by_degree
    assert parts is not None
    flat = parts.reshape(len(parts), -1, parts.shape[3])
    return matmul(flat, coefficients[:, :, None]).reshape(parts.shape[:3])


def _shown(columns: FloatArray, coefficients: FloatArray) -> FloatArray:
    """What fields show at every node, (B, Q)."""
    return matmul(columns, coefficients[:, :, None])[:, :, 0]
