"""The fixed point (58)–(60) of one pencil that contains every row once, and its adjoint.

The state is V2 (K) and Ξ (3K, 3K) on the fields (p, φ, φ̂). Rows come in classes: a row of the step
carries N(r), a row of the readout ℓ, a row of both carries both (57). Everything is in units of
n_step rows: ℓ̂ = √n_step ℓ, and a class enters with its rows over n_step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...core.types import FloatArray, IntArray
from ..exact.dyson import p_hat_index, symmetric
from ..exact.fixed_point import (
    ACCEPTED,
    LARGEST_MOVE,
    TOLERANCE,
    noise_only,
    robust_fixed_point,
)
from .features import RowFeatures, StepNumbers
from .rows import ONE, RowClass

_DAMPED_STEPS, _DAMPING = 4, 0.5  # before the acceleration, and more while changes are large
_SMALL_CHANGE, _MOST_DAMPED_STEPS = 1.0, 60


@dataclass(frozen=True)
class Pencil:
    """A problem in terms of its rows: N, ℓ and ν² of every class, and the ridge."""

    step: StepNumbers
    ridge: float  # nλ
    classes: Sequence[tuple[RowClass, RowFeatures]]
    intercept: bool = False  # whether the readout has one

    @property
    def groups(self) -> int:
        """K."""
        return int(self.step.e.size)

    @cached_property
    def base(self) -> FloatArray:
        """B_0 of (57), (3K, 3K)."""
        return np.kron(_BASE, np.eye(self.groups))


_BASE = np.array([[1.0, 0.0, -1.0], [0.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])


@dataclass(frozen=True)
class PencilState:
    """The unknowns of the fixed point, or their adjoints."""

    log_v2: FloatArray  # (K,)
    xi: FloatArray  # (3K, 3K) symmetric

    def vector(self) -> FloatArray:
        """log V2 and the upper triangle of Ξ."""
        return np.concatenate([self.log_v2, symmetric(len(self.xi)).upper(self.xi)])

    @classmethod
    def of(cls, vector: FloatArray, groups: int) -> PencilState:
        """The state of a vector."""
        return cls(vector[:groups], symmetric(3 * groups).whole(vector[groups:]))


@dataclass(frozen=True)
class ClassValues:
    """What (58) gives on the nodes of one class."""

    t_matrices: FloatArray  # (M, 2K, 2K) T_N on (p, φ̂)
    column: FloatArray  # (M, Q, 3K) ℓ̂
    reached: FloatArray  # (M, Q, 3K) Γℓ̂
    effective: FloatArray  # (M, Q, 3K) ℓ̂_e
    response: FloatArray  # (M, Q, 3K) Γ_Nℓ̂
    shrink: FloatArray  # (M, Q) w = 1/(1 + χ)
    weight: FloatArray  # (M, Q) rows of the readout over n_step


@dataclass(frozen=True)
class PencilEvaluation:
    """Equations (58)–(60) at one state."""

    pencil: Pencil
    state: PencilState
    v2: FloatArray  # (K,)
    root: FloatArray  # (K,) √(V2/φ0): √n_step √D
    g: FloatArray  # (3K, 3K) G
    gamma: FloatArray  # (3K, 3K) Γ = φ0G
    classes: Sequence[ClassValues]

    @property
    def inverse(self) -> FloatArray:
        """G⁻¹ = B_0 − Ξ."""
        return self.pencil.base - self.state.xi

    @cached_property
    def demand(self) -> FloatArray:
        """V2_g times the denominator of (60), N_g at the solution, (K,)."""
        total = self.v2 * self.pencil.ridge
        for (_, features), at in zip(self.pencil.classes, self.classes, strict=True):
            total = total + self.pencil.step.n_step * _used(self, features, at)
        return np.asarray(total)

    @cached_property
    def mapped(self) -> PencilState:
        """Ξ and V2 that the rows give back (eqs. 59, 60)."""
        size = len(self.g)
        xi = np.zeros_like(self.g)
        inside = p_hat_index(self.pencil.groups)
        for (rows, _), at in zip(self.pencil.classes, self.classes, strict=True):
            share = rows.step_share * rows.by_residual[:, ONE, ONE]
            xi[inside[:, None], inside] += np.tensordot(share, at.t_matrices, 1)
            flat = at.effective.reshape(-1, size)
            xi -= flat.T @ (flat * (at.weight * at.shrink).reshape(-1, 1))
        demand = self.demand
        if not np.iscomplexobj(demand):  # a state without solution is left by a large step
            demand = np.maximum(demand, 1e-300)
        return PencilState(self.state.log_v2 + np.log(self.pencil.step.neurons / demand), xi)


def _used(at: PencilEvaluation, features: RowFeatures, own: ClassValues) -> FloatArray:
    """E[w(V2_gν_g² + Σ_a ℓ̂_ga(Γ_Nℓ̂)_ga)] of one class, (K,)."""
    weight = own.weight * own.shrink
    linear = np.tensordot(weight, own.column * own.response, 2)
    noise = np.tensordot(weight, features.spread, 2)
    return np.asarray(at.v2 * noise + linear.reshape(3, -1).sum(axis=0))


def evaluate(pencil: Pencil, state: PencilState) -> PencilEvaluation:
    """Γ, and T_N, ℓ̂_e, Γ_Nℓ̂ and w on every node (eq. 58)."""
    step = pencil.step
    v2 = np.exp(state.log_v2)
    root = np.sqrt(v2 / step.phi)
    g = np.asarray(np.linalg.inv(pencil.base - state.xi), dtype=state.xi.dtype)
    gamma = step.phi * g
    classes = [_evaluate_class(pencil, rows, f, v2, root, gamma) for rows, f in pencil.classes]
    return PencilEvaluation(pencil, state, v2, root, g, gamma, classes)


def _evaluate_class(
    pencil: Pencil,
    rows: RowClass,
    features: RowFeatures,
    v2: FloatArray,
    root: FloatArray,
    gamma: FloatArray,
) -> ClassValues:
    inside = p_hat_index(pencil.groups)
    t_matrices = _t_matrices(pencil.step, rows.r, gamma[inside[:, None], inside])
    column = features.slopes * np.tile(root, 3)
    reached = column @ gamma
    effective = column.astype(reached.dtype)
    effective[..., inside] += np.matmul(reached[..., inside], t_matrices)
    response = effective @ gamma
    chi = features.spread @ v2 + (column * response).sum(axis=-1)
    weight = rows.readout_share * rows.moments[:, :, ONE, ONE]
    return ClassValues(t_matrices, column, reached, effective, response, 1.0 / (1.0 + chi), weight)


def _t_matrices(step: StepNumbers, r: FloatArray, gamma: FloatArray) -> FloatArray:
    """T_N(r) = (I − NΓ)⁻¹N on (p, φ̂), (M, 2K, 2K)."""
    size = step.e.size
    n = np.zeros((r.size, 2 * size, 2 * size))
    g = np.arange(size)
    n[:, g, size + g] = n[:, size + g, g] = r[:, None] * step.k
    n[:, size + g, size + g] = r[:, None] ** 2 * step.delta
    found = np.linalg.solve(np.eye(2 * size) - n @ gamma, n.astype(gamma.dtype))
    return np.asarray(found)


@dataclass
class Gradients:
    """Derivatives of a scalar by the parts of an evaluation, to be carried back to its state."""

    log_v2: FloatArray  # (K,)
    xi: FloatArray  # (3K, 3K)
    gamma: FloatArray  # (3K, 3K)
    classes: list[ClassGradients] = field(default_factory=list)

    @classmethod
    def zero(cls, at: PencilEvaluation) -> Gradients:
        """No derivative by anything."""
        parts = [
            ClassGradients(
                np.zeros_like(c.t_matrices),
                np.zeros_like(c.effective),
                np.zeros_like(c.response),
                np.zeros_like(c.column),
                np.zeros_like(c.shrink),
            )
            for c in at.classes
        ]
        return cls(np.zeros_like(at.v2), np.zeros_like(at.g), np.zeros_like(at.g), parts)


@dataclass
class ClassGradients:
    """Derivatives by the values of one class."""

    t_matrices: FloatArray
    effective: FloatArray
    response: FloatArray
    column: FloatArray
    shrink: FloatArray


def add_gradients_of_map(at: PencilEvaluation, adjoint: PencilState, total: Gradients) -> None:
    """Add the derivatives of adjoint·(mapped state) by the parts of an evaluation, in place."""
    pencil = at.pencil
    n_step, size = pencil.step.n_step, pencil.groups
    inside = p_hat_index(size)
    pull = -adjoint.log_v2 / at.demand  # by V2_g times the denominator
    total.log_v2 += adjoint.log_v2 + pull * at.v2 * pencil.ridge
    wide = np.tile(n_step * pull, 3)
    for (rows, features), own, out in zip(pencil.classes, at.classes, total.classes, strict=True):
        share = rows.step_share * rows.by_residual[:, ONE, ONE]
        out.t_matrices += share[:, None, None] * adjoint.xi[inside[:, None], inside]
        weight = own.weight * own.shrink
        total.log_v2 += n_step * pull * at.v2 * np.tensordot(weight, features.spread, 2)
        pushed = own.effective @ adjoint.xi
        product = own.column * own.response
        out.shrink += own.weight * (
            features.spread @ (n_step * pull * at.v2)
            + product @ wide
            - (pushed * own.effective).sum(axis=-1)
        )
        out.effective -= 2.0 * weight[..., None] * pushed
        out.column += weight[..., None] * wide * own.response
        out.response += weight[..., None] * wide * own.column


def carried_back(at: PencilEvaluation, total: Gradients) -> PencilState:
    """Derivatives by log V2 and Ξ, from those by everything that (58) makes of them."""
    pencil = at.pencil
    step, size = pencil.step, pencil.groups
    inside = p_hat_index(size)
    log_v2, by_gamma = total.log_v2.copy(), total.gamma.copy()
    for (_, features), own, out in zip(pencil.classes, at.classes, total.classes, strict=True):
        chi = -(own.shrink**2) * out.shrink
        log_v2 += at.v2 * np.tensordot(chi, features.spread, 2)
        column = out.column + chi[..., None] * own.response
        response = out.response + chi[..., None] * own.column
        effective = out.effective + response @ at.gamma
        by_gamma += _outer(own.effective, response)
        column += effective
        t_matrices = out.t_matrices + np.matmul(
            np.swapaxes(own.reached[..., inside], -1, -2), effective[..., inside]
        )
        back = np.zeros_like(column)
        back[..., inside] = np.matmul(effective[..., inside], own.t_matrices)
        column += back @ at.gamma
        by_gamma += _outer(own.column, back)
        turned = np.matmul(np.matmul(own.t_matrices, t_matrices), own.t_matrices).sum(axis=0)
        by_gamma[inside[:, None], inside] += turned
        log_v2 += 0.5 * np.tensordot(np.ones(chi.shape), column * own.column, 2).reshape(
            3, size
        ).sum(axis=0)
    by_gamma = 0.5 * (by_gamma + by_gamma.T)
    xi = total.xi + step.phi * at.g @ by_gamma @ at.g
    return PencilState(log_v2, 0.5 * (xi + xi.T))


def _outer(left: FloatArray, right: FloatArray) -> FloatArray:
    """Σ over nodes of left ⊗ right, (3K, 3K)."""
    size = left.shape[-1]
    return np.asarray(left.reshape(-1, size).T @ right.reshape(-1, size))


@dataclass(frozen=True)
class PencilSolution:
    """The evaluation at the fixed point, with the residual of the undamped map."""

    at: PencilEvaluation
    residual: float
    iterations: int


def solve(pencil: Pencil) -> PencilSolution:
    """Solve (58)–(60) by Anderson's acceleration in log V2 and Ξ."""
    size = pencil.groups

    def image(states: FloatArray, rows: IntArray) -> FloatArray:
        found = [
            evaluate(pencil, PencilState.of(vector, size)).mapped.vector() for vector in states
        ]
        return np.stack(found)[: rows.size]

    start = PencilState(_first_log_v2(pencil), np.zeros((3 * size, 3 * size))).vector()[None]
    one, damped = np.arange(1), 0
    while damped < _MOST_DAMPED_STEPS:
        change = image(start, one) - start
        start, damped = start + _DAMPING * change, damped + 1
        if damped >= _DAMPED_STEPS and np.abs(change).max() < _SMALL_CHANGE:
            break
    found = robust_fixed_point(
        image,
        start,
        scale=_scale(PencilState.of(start[0], size))[None],
        tolerance=TOLERANCE,
        accepted=ACCEPTED,
        reach=LARGEST_MOVE,
    )
    at = evaluate(pencil, PencilState.of(found.state[0], size))
    return PencilSolution(at, float(found.residual[0]), damped + int(found.iterations[0]))


def _first_log_v2(pencil: Pencil) -> FloatArray:
    """log V2 where features are pure noise of the size that they have, (K,)."""
    step, n = pencil.step, 0.0
    power = np.zeros(pencil.groups)
    for rows, features in pencil.classes:
        weight = rows.readout_share * rows.moments[:, :, ONE, ONE] * step.n_step
        slope = features.slopes[..., pencil.groups : 2 * pencil.groups]
        n += float(weight.sum())
        power += np.tensordot(weight, features.spread + (step.norm * slope) ** 2, 2)
    given = np.array([n]), np.array([pencil.ridge / n])
    return np.asarray(np.log(noise_only(*given, step.neurons[None], power[None] / n)[0]))


def _scale(state: PencilState) -> FloatArray:
    """Sizes of the components of a state: 1, or more where Ξ is larger."""
    each = np.maximum(np.abs(np.diagonal(state.xi)), 1.0) ** 0.5
    return PencilState(np.ones_like(state.log_v2), np.outer(each, each)).vector()


def solve_adjoint(at: PencilEvaluation, source: PencilState) -> PencilState:
    """λ with λ = source + (∂map/∂state)ᵀλ."""
    size = at.pencil.groups

    def image(states: FloatArray, rows: IntArray) -> FloatArray:
        del rows
        found = []
        for vector in states:
            total = Gradients.zero(at)
            add_gradients_of_map(at, PencilState.of(vector, size), total)
            found.append(carried_back(at, total).vector() + first)
        return np.stack(found)

    first = source.vector()
    scale = np.full((1, first.size), max(float(np.abs(first).max()), 1e-300))
    found = robust_fixed_point(
        image, first[None], scale=scale, tolerance=TOLERANCE, accepted=10.0 * TOLERANCE
    )
    return PencilState.of(found.state[0], size)
