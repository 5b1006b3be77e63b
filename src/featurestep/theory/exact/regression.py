"""The regression of the labels on the fields' columns (29), without inverting C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.types import FloatArray
from ..labels import Labels, pairs
from .columns import Columns
from .dyson import Covariance, matmul, solved, transposed
from .fixed_point import Evaluation, Samples


@dataclass(frozen=True)
class RegressionFit:
    """The solution of (29): fields in the order A, τ, ψ_1 … ψ_r, Δ (, Ω), K of each."""

    dual: FloatArray  # (B, F) x̂
    coefficients: FloatArray  # (B, F) X = Cx̂
    misfit: FloatArray  # (B, Q) E[(y − B·X)²|κ], with the sample-norm term
    train_loss: FloatArray  # (B,) L_tr


def field_covariance(samples: Samples, v2: FloatArray, found: Covariance) -> FloatArray:
    """C of all fields A, τ, ψ_i, Δ (, Ω), (B, F, F) (eqs. 40, 105)."""
    step = samples.step
    size = step.k.shape[1]
    count = samples.columns.plain.shape[2]
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
    if step.classes is not None:
        norm = step.classes.norms
        omega = norms + size + g
        scaled[:, norms + g, norms + g] += 2.0 * norm.own
        scaled[:, omega, omega] = 2.0 * norm.plain[:, None]
        scaled[:, norms + g, omega] = scaled[:, omega, norms + g] = 2.0 * norm.shared
    elif step.is_gaussian:
        scaled[:, norms + size + g, norms + size + g] = 2.0
    root = np.tile(np.sqrt(v2 / step.d[:, None]), count // size)
    return np.asarray(root[:, :, None] * scaled * root[:, None, :])


def gram(samples: Samples, mass: FloatArray) -> FloatArray:
    """𝒢, with the weights n w/(1+χ) of every node in `mass` (eq. 49)."""
    step, columns, kappa = samples.step, samples.columns, samples.kappa
    size = step.k.shape[1]
    means, along = slice(0, size), slice(size, 2 * size)

    def product(left: FloatArray, right: FloatArray, weight: FloatArray) -> FloatArray:
        return matmul(transposed(left), right * weight[:, :, None])

    total = product(columns.plain, columns.plain, mass)
    if step.is_full:
        for part, norm in zip(
            _parts(columns.square), _pair_variances(step.directions), strict=True
        ):
            total = total + product(part, part, norm * mass)
    for part in _parts(columns.linear):
        total = total + product(part, part, mass)
    # Blocks in which parts cancel, or belong to the sample norms, are written by themselves.
    own = columns.plain[:, :, means]
    bent = product(columns.curvature, columns.curvature, mass)
    total[:, means, means] = product(own, own, mass) + step.sample_norm * bent
    total[:, along, along] = product(columns.slope, columns.slope, mass * (kappa**2 - 1.0))
    tilted = np.zeros_like(bent)
    if step.is_full:
        tilt = columns.plain[:, :, 2 * size : 3 * size]
        total[:, along, along] += product(tilt, tilt, mass * kappa**2)
        tilted = product(tilt, tilt, mass)
    for i in range(step.directions):
        across = slice((2 + i) * size, (3 + i) * size)
        total[:, across, across] = (3.0 if i == 0 else 1.0) * tilted
    return total


def _parts(columns: FloatArray) -> FloatArray:
    """Columns (B, j, Q, F) one j at a time."""
    return np.moveaxis(columns, 1, 0)


def _pair_variances(count: int) -> FloatArray:
    """E of the squares of s_is_k − δ_ik."""
    return np.array([2.0 if i == k else 1.0 for i, k in pairs(count)])


def fit(at: Evaluation, labels: Labels, found: Covariance) -> RegressionFit:
    """Solve the regression at a solution of the fixed point (eqs. 11, 29)."""
    step, columns = at.samples.step, at.samples.columns
    mass = at.mass
    c = field_covariance(at.samples, at.state.v2, found)
    right = _moment(columns.plain, mass * labels.mean)
    for of, seen in ((columns.linear, labels.linear), (columns.square, labels.square)):
        for i, part in enumerate(_parts(of)):
            right = right + _moment(part, mass * seen[:, i])
    dual, coefficients = solve_fields(c, gram(at.samples, mass), right)
    missed = misfit(columns, labels, step.sample_norm, coefficients)
    # The objective itself: to first order it does not feel the rounding of the solution.
    penalty = (dual * coefficients).sum(axis=1) - _bulk_information(at, coefficients)
    loss = ((mass * missed).sum(axis=1) + penalty) / step.n
    return RegressionFit(dual=dual, coefficients=coefficients, misfit=missed, train_loss=loss)


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


def _bulk_information(at: Evaluation, coefficients: FloatArray) -> FloatArray:
    """τᵀV̂1τ + Σψ_iᵀV̂1ψ_i, (B,)."""
    step = at.samples.step
    size, fields = step.k.shape[1], 1 + step.directions
    root = np.tile(np.sqrt(step.d[:, None] / at.state.v2), fields)
    scaled = (coefficients[:, size : (1 + fields) * size] * root).reshape(len(step), fields, size)
    return np.asarray((matmul(scaled, at.information) * scaled).sum(axis=(1, 2)))


def _moment(columns: FloatArray, values: FloatArray) -> FloatArray:
    return matmul(values[:, None, :], columns)[:, 0]


def misfit(
    columns: Columns, labels: Labels, sample_norm: FloatArray, coefficients: FloatArray
) -> FloatArray:
    """E[(y − B·X)²|κ] with the term of the sample norms, (B, Q) (eq. 12)."""
    size = columns.slope.shape[2]
    use = coefficients[:, :size]
    missed = labels.rest + (labels.mean - _shown(columns.plain, coefficients)) ** 2
    for i, part in enumerate(_parts(columns.linear)):
        own = _shown(part[:, :, :size], use)
        missed = missed + (labels.linear[:, i] - _shown(part, coefficients)) ** 2 - own**2
    norms = _pair_variances(columns.linear.shape[1])
    for i, (part, norm) in enumerate(zip(_parts(columns.square), norms, strict=True)):
        shown, own = _shown(part, coefficients), _shown(part[:, :, :size], use)
        missed = missed - 2.0 * labels.square[:, i] * shown + norm * (shown**2 - own**2)
    bent = columns.curvature * use[:, None, :]
    return np.asarray(missed + np.einsum("bqg,bqg->bq", matmul(bent, sample_norm), bent))


def _shown(columns: FloatArray, coefficients: FloatArray) -> FloatArray:
    """What fields show at every node, (B, Q)."""
    return matmul(columns, coefficients[:, :, None])[:, :, 0]
