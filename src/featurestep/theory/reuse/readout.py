"""The readout's fit on rows of all classes: (62), (66), (66b) and (67).

Fields are A (means), v_⋆, v_b and ϑ (3K each: the bulk along β⋆, along the rest of β, and the shift
that β = Xᵀr/n makes), Δ¹, Δ², Δ̂¹, Δ̂² (norms of neurons and their conjugates) and Υ (pairs of rows).
All but A are in scaled units. An intercept is one more, with the column 1 and no penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.types import FloatArray
from ..exact.dyson import p_hat_index
from .features import RowFeatures, StepNumbers, norm_noise
from .fixed_point import ClassGradients, ClassValues, Gradients, Pencil, PencilEvaluation
from .rows import ONE, RowClass, S, T, Y

OneClass = tuple[RowClass, RowFeatures, ClassValues]


class Fields:
    """Places of the fields in the vector of unknowns, 15K of them and an intercept, if any."""

    def __init__(self, pencil: Pencil) -> None:
        sizes = [pencil.groups * count for count in (1, 3, 3, 3, 1, 1, 1, 1, 1)]
        ends = np.cumsum([0, *sizes, int(pencil.intercept)])
        parts = [slice(a, b) for a, b in pairwise(ends)]
        self.means, self.star, self.beside, self.constraint = parts[:4]
        self.norms, self.conjugates = parts[4:6], parts[6:8]
        self.pair, self.intercept = parts[8:]
        self.count = int(ends[-1])


@dataclass(frozen=True)
class PencilReadout:
    """The stationary point of (62), and the training loss."""

    fields: Fields
    coefficients: FloatArray  # (15K,) or (15K + 1,)
    objective: float  # n L_tr/n_step


def class_columns(
    at: PencilEvaluation, rows: RowClass, features: RowFeatures, own: ClassValues
) -> tuple[FloatArray, FloatArray]:
    """Columns that do not depend on t and s̃, (M, Q, 15K), and that of v_⋆ and v_b, (M, Q, 3K)."""
    size = at.pencil.groups
    places = Fields(at.pencil)
    unit = 1.0 / np.sqrt(at.pencil.step.n_step)
    scaled = unit * at.root
    plain = np.zeros((*own.shrink.shape, places.count), dtype=own.response.dtype)
    plain[..., places.means] = features.mean
    plain[..., places.intercept] = 1.0
    plain[..., places.constraint] = unit * rows.r[:, None, None] * own.effective
    for a in (0, 1):
        plain[..., places.norms[a]] = scaled * features.norms[a]
        plain[..., places.conjugates[a]] = scaled * features.noise[a]
        plain[..., places.conjugates[a]] += unit * (
            own.response[..., :size] * features.on_weights[a][:, None]
            + own.response[..., 2 * size :] * features.on_noise[a][:, None]
        )
    plain[..., places.pair] = scaled * features.pair
    return plain, unit * own.effective


def sample_norm_products(step: StepNumbers) -> FloatArray:
    """(2/d)Σ^{ab}_gh, (3, 3, K, K), covariances of a row's norms over rows (eq. 67)."""
    b, phi, d = step.r_moments, step.phi, step.d
    k, delta = step.k, step.delta
    m = b[1]
    second = phi * b[2] + m**2
    third = phi**2 * b[3] + 3.0 * phi * b[2] * m + m**3
    mixed = phi * b[3] + m * b[2]
    kg, kh = k[:, None], k[None, :]
    one = np.ones((k.size, k.size))
    found = np.empty((3, 3, k.size, k.size))
    found[0, 0] = one
    found[0, 1] = one * step.drift
    found[0, 2] = one * step.norm**2
    found[1, 1] = 1.0 + (kg + kh) * m + kg * kh * second
    found[1, 2] = 1.0 + (kg + 2.0 * kh) * m + (2.0 * kg * kh + kh**2) * second
    found[1, 2] += kg * kh**2 * third + delta * b[2] + kg * delta * mixed
    for a in range(3):
        for c in range(a):
            found[a, c] = found[c, a].T
    found *= 2.0 / d
    found[2, 2] = step.sample_norm
    return found


@dataclass(frozen=True)
class FitSystem:
    """(62) as a quadratic form: constant − 2 right·x + x·matrix x, over n_step."""

    matrix: FloatArray
    right: FloatArray
    constant: float


def fit_system(at: PencilEvaluation) -> FitSystem:
    """All fields' quadratic form, misfit and penalties (eqs. 57, 62)."""
    places = Fields(at.pencil)
    matrix = quadratic_terms(at) / at.pencil.step.n_step
    right = np.zeros(places.count, dtype=matrix.dtype)
    constant = 0.0
    for (rows, features), own in zip(at.pencil.classes, at.classes, strict=True):
        if rows.readout_share:
            constant = constant + _add_readout_rows(matrix, right, at, (rows, features, own))
    return FitSystem(matrix, right, constant)


def fit(at: PencilEvaluation) -> PencilReadout:
    """Fit the readout: the stationary point of all fields at once."""
    places, system = Fields(at.pencil), fit_system(at)
    scale = np.ones(places.count, dtype=system.matrix.dtype)
    scale[places.means] = np.sqrt(at.v2)
    matrix, right = system.matrix, system.right
    solution = scale * np.linalg.solve(scale[:, None] * matrix * scale, scale * right)
    # At the stationary point, to second order in the rounding of the solution.
    objective = system.constant - 2.0 * right @ solution + solution @ matrix @ solution
    return PencilReadout(places, solution, float(objective))


def _add_readout_rows(
    matrix: FloatArray, right: FloatArray, at: PencilEvaluation, one: OneClass
) -> Any:
    """Add the misfit on one class of the readout's rows, in place; return E[wy²] on them."""
    rows, features, own = one
    size = at.pencil.groups
    places = Fields(at.pencil)
    plain, bulk = class_columns(at, rows, features, own)
    flat, tilted = plain.reshape(-1, places.count), bulk.reshape(-1, 3 * size)
    w = (rows.readout_share * own.shrink[..., None, None] * rows.moments).reshape(-1, 4, 4)
    matrix += flat.T @ (flat * w[:, ONE, ONE, None])
    right += flat.T @ w[:, ONE, Y]
    wheres = ((places.star, T), (places.beside, S))
    for where, i in wheres:
        cross = flat.T @ (tilted * w[:, ONE, i, None])
        matrix[:, where] += cross
        matrix[where, :] += cross.T
        right[where] += tilted.T @ w[:, i, Y]
        for other, j in wheres:
            matrix[where, other] += tilted.T @ (tilted * w[:, i, j, None])
    _add_squares(matrix, right, places, one, (flat, tilted))
    norms = features.sample_norms.reshape(3, -1, size)
    weighted = norms * w[:, ONE, ONE, None]
    gram = np.einsum("ajg,bjh->abgh", weighted, norms, optimize=True)
    products = sample_norm_products(at.pencil.step)
    matrix[places.means, places.means] += (products * gram).sum(axis=(0, 1))
    return w[:, Y, Y].sum()


def _add_squares(
    matrix: FloatArray,
    right: FloatArray,
    places: Fields,
    one: OneClass,
    columns: tuple[FloatArray, FloatArray],
) -> None:
    """Add what (37) adds to the column of A, in place."""
    rows, features, own = one
    flat, tilted = columns
    size = features.mean.shape[-1]
    weight = rows.readout_share * own.shrink[..., None, None] * rows.squares
    bent = np.einsum("jmqg,mqji->mqig", features.squares, weight).reshape(-1, 7, size)
    right[places.means] += bent[:, Y].sum(axis=0)
    cross = bent[:, ONE].T @ flat
    for where, i in ((places.star, T), (places.beside, S)):
        cross[:, where] += bent[:, i].T @ tilted
    matrix[places.means] += cross
    matrix[:, places.means] += cross.T
    own_part = features.squares.reshape(3, -1, size).transpose(1, 0, 2)
    matrix[places.means, places.means] += np.einsum("jig,jih->gh", bent[:, 4:], own_part)


def quadratic_terms(at: PencilEvaluation) -> FloatArray:
    """Half the Hessian of all terms beside the misfit on the readout's rows (eq. 66)."""
    pencil = at.pencil
    step, places = pencil.step, Fields(pencil)
    matrix = np.zeros((places.count, places.count), dtype=at.g.dtype)
    index = np.arange(places.count)
    inverse = at.inverse
    ratio = step.r_moments[2] / step.phi
    matrix[index[places.means], index[places.means]] = 1.0 / at.v2
    matrix[places.star, places.star] = pencil.base
    matrix[places.beside, places.beside] = at.state.xi
    matrix[places.constraint, places.beside] = np.sqrt(ratio) * inverse
    matrix[places.beside, places.constraint] = np.sqrt(ratio) * inverse
    matrix[places.constraint, places.constraint] = -ratio * inverse
    matrix[index[places.pair], index[places.pair]] = 1.0
    noise = norm_noise(step)
    for a in (0, 1):
        hat = index[places.conjugates[a]]
        norm = index[places.norms[a]]
        matrix[norm, hat] = matrix[hat, norm] = 1.0
        for b in (0, 1):
            matrix[hat, index[places.conjugates[b]]] -= noise[a, b]
    for (rows, features), own in zip(pencil.classes, at.classes, strict=True):
        if rows.step_share:
            _add_step_rows(matrix, at, places, rows, features, own)
    return matrix


def _add_step_rows(
    matrix: FloatArray,
    at: PencilEvaluation,
    places: Fields,
    rows: RowClass,
    features: RowFeatures,
    own: ClassValues,
) -> None:
    """The terms −E[cᵀT_Nc], −2E[gᵀ(I + ΓT_N)(tv_⋆ + rϑ)] and −E[gᵀΓ_Ng] of the step's rows."""
    size = at.pencil.groups
    inside = p_hat_index(size)
    moments = rows.step_share * rows.by_residual
    wheres = {T: places.star, S: places.beside, Y: places.constraint}
    index = np.arange(places.count)
    for i, left in wheres.items():
        for j, right in wheres.items():
            place = np.ix_(index[left][inside], index[right][inside])
            matrix[place] -= np.tensordot(moments[:, i, j], own.t_matrices, 1)
    forward = np.broadcast_to(np.eye(3 * size), (rows.r.size, 3 * size, 3 * size)).copy()
    forward = forward.astype(at.g.dtype)
    forward[..., inside] += np.matmul(at.gamma[:, inside], own.t_matrices)  # I + ΓT_N
    whole = np.matmul(forward, at.gamma)  # Γ_N
    p, hat = slice(0, size), slice(2 * size, 3 * size)
    for a in (0, 1):
        z, y = features.on_weights[a], features.on_noise[a]  # (M, K)
        for i, where in ((T, places.star), (Y, places.constraint)):
            weight = moments[:, ONE, i]
            block = np.einsum("m,mg,mgf->gf", weight, z, forward[:, p])
            block += np.einsum("m,mg,mgf->gf", weight, y, forward[:, hat])
            matrix[places.conjugates[a], where] -= block
            matrix[where, places.conjugates[a]] -= block.T
        for b in (0, 1):
            z_b, y_b = features.on_weights[b], features.on_noise[b]
            block = np.zeros((size, size), dtype=at.g.dtype)
            for left, one in ((p, z), (hat, y)):
                for right, other in ((p, z_b), (hat, y_b)):
                    block += np.einsum(
                        "m,mg,mgh,mh->gh", moments[:, ONE, ONE], one, whole[:, left, right], other
                    )
            matrix[places.conjugates[a], places.conjugates[b]] -= block


def add_gradients_of_objective(
    at: PencilEvaluation, fitted: PencilReadout, total: Gradients
) -> None:
    """Add the derivatives of n L_tr/n_step at the fitted fields by the parts of an evaluation."""
    step, places, x = at.pencil.step, fitted.fields, fitted.coefficients
    beside, constraint = x[places.beside], x[places.constraint]
    total.log_v2 -= x[places.means] ** 2 / at.v2 / step.n_step
    ratio = step.r_moments[2] / step.phi
    both = np.outer(constraint, beside)
    total.xi += np.outer(beside, beside) / step.n_step
    total.xi -= np.sqrt(ratio) * (both + both.T) / step.n_step
    total.xi += ratio * np.outer(constraint, constraint) / step.n_step
    for (rows, features), own, out in zip(
        at.pencil.classes, at.classes, total.classes, strict=True
    ):
        if rows.readout_share:
            _add_readout_gradients(at, fitted, (rows, features, own), total, out)
        if rows.step_share:
            _add_step_gradients(at, fitted, (rows, features, own), total, out)


def _pulls(fitted: PencilReadout, features: RowFeatures) -> FloatArray:
    """g(r) of (66), (M, 3K)."""
    hats = np.stack([fitted.coefficients[where] for where in fitted.fields.conjugates])
    on_weights = np.einsum("ag,amg->mg", hats, features.on_weights)
    on_noise = np.einsum("ag,amg->mg", hats, features.on_noise)
    return np.concatenate([on_weights, np.zeros_like(on_weights), on_noise], axis=1)


def _add_readout_gradients(
    at: PencilEvaluation,
    fitted: PencilReadout,
    one: OneClass,
    total: Gradients,
    out: ClassGradients,
) -> None:
    """Derivatives of the misfit on one class of the readout's rows."""
    rows, features, own = one
    places, x = fitted.fields, fitted.coefficients
    missed, by_shown = _missed(at, fitted, rows, features, own)
    use = features.sample_norms * x[places.means]
    products = sample_norm_products(at.pencil.step)
    norms = np.einsum("abgh,amqg,bmqh->mq", products, use, use, optimize=True)
    out.shrink += rows.readout_share * (missed + norms * rows.moments[:, :, ONE, ONE])
    unit = 1.0 / np.sqrt(at.pencil.step.n_step)
    given = -2.0 * unit * rows.readout_share * own.shrink[..., None] * by_shown
    out.effective += given[..., 0, None] * rows.r[:, None, None] * x[places.constraint]
    out.effective += given[..., 1, None] * x[places.star] + given[..., 2, None] * x[places.beside]
    out.response += given[..., 0, None] * _pulls(fitted, features)[:, None]
    hats = np.stack([x[where] for where in places.conjugates])
    direct = np.stack([x[where] for where in places.norms])
    seen = np.einsum("ag,amqg->mqg", hats, features.noise) + features.pair * x[places.pair]
    seen += np.einsum("ag,amqg->mqg", direct, features.norms)
    total.log_v2 += 0.5 * at.root * np.tensordot(given[..., 0], seen, 2)


def _add_step_gradients(
    at: PencilEvaluation,
    fitted: PencilReadout,
    one: OneClass,
    total: Gradients,
    out: ClassGradients,
) -> None:
    """Derivatives of the terms that `_add_step_rows` adds."""
    rows, features, own = one
    places, x = fitted.fields, fitted.coefficients
    inside = p_hat_index(at.pencil.groups)
    pulls = _pulls(fitted, features)
    moments = rows.step_share * rows.by_residual / at.pencil.step.n_step
    plain = moments[:, ONE, ONE]
    c = np.stack([x[places.star], x[places.beside], x[places.constraint]])
    driven = moments[:, ONE, [T, Y]] @ c[[0, 2]]
    reach = pulls @ at.gamma  # Γg
    cross = reach[:, inside, None] * driven[:, None, inside]
    out.t_matrices -= np.einsum("mij,ip,jq->mpq", moments[:, T:, T:], c[:, inside], c[:, inside])
    out.t_matrices -= cross + np.swapaxes(cross, -1, -2)
    out.t_matrices -= plain[:, None, None] * (reach[:, inside, None] * reach[:, None, inside])
    turned = np.zeros_like(pulls)
    both = driven[:, inside, None] + (plain[:, None] * reach[:, inside])[..., None]
    turned[:, inside] = np.matmul(own.t_matrices, both)[..., 0]
    total.gamma -= 2.0 * pulls.T @ turned + (plain[:, None] * pulls).T @ pulls


def _missed(
    at: PencilEvaluation,
    fitted: PencilReadout,
    rows: RowClass,
    features: RowFeatures,
    own: ClassValues,
) -> tuple[FloatArray, FloatArray]:
    """E[(y − f)²; node], (M, Q), and E[(1, t, s̃)(y − f); node], (M, Q, 3), noise apart."""
    plain, bulk = class_columns(at, rows, features, own)
    x, places = fitted.coefficients, fitted.fields
    shown = np.stack(
        [plain @ x, bulk @ x[places.star], bulk @ x[places.beside], -np.ones(own.shrink.shape)], -1
    )
    left = -np.einsum("mqij,mqj->mqi", rows.moments, shown)
    bent = np.einsum("jmqg,g->mqj", features.squares, x[places.means])
    beside = np.einsum("mqj,mqji->mqi", bent, rows.squares)
    missed = ((2.0 * beside[..., :4] - left) * shown).sum(axis=-1)
    return missed + (beside[..., 4:] * bent).sum(axis=-1), left[..., :3] - beside[..., :3]
