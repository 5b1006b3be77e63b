"""The fixed point (58)–(60), for readouts on rows of the step, at complex λ = −z.

`Equations` has all that a spectrum needs of it; here are the evaluation of `theory.reuse` at many
places, and its Newton step. The state is V2 and Ξ on the fields (p, φ, φ̂); χ is that of all rows of
the readout, at the nodes of their types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...core.types import FloatArray
from ..exact.dyson import p_hat_index, sample_denominator, symmetric
from ..exact.fixed_point import State, root_above
from ..reuse.fixed_point import ClassValues, Pencil, PencilEvaluation, PencilState, evaluate, solve
from ..reuse.rows import ONE
from .equations import FULL, Accuracy, Branch, ComplexArray, Equations
from .newton import congruence, solutions

_FREE_V2 = 1e-12  # of N_g/n, where the readout is none
_FREE_PASSES = 300
_CALL_COST, _PLACE_COST = 200.0, 700.0  # of one evaluation with Newton's step, in µs
_NODE_COST = 0.012  # times nodes and the number of unknowns


@dataclass(frozen=True)
class PencilPlaces:
    """The equations at B places, for one problem."""

    equations: PencilEquations
    each: Sequence[PencilEvaluation]  # one for each place
    state: State  # with χ by (58)
    chi_gap: ComplexArray  # (B, X) what χ lacked before

    @cached_property
    def shrink(self) -> ComplexArray:
        """1/(1 + χ), (B, X)."""
        return np.asarray(1.0 / (1.0 + self.state.chi))

    @property
    def mass(self) -> ComplexArray:
        """n w/(1 + χ), (B, X)."""
        return self.equations.n * self.equations.weight * self.shrink

    @cached_property
    def residual(self) -> FloatArray:
        """Largest relative change of any unknown under the undamped map, (B,)."""
        neurons, scale = self.equations.pencil.step.neurons, self.equations.scale
        return np.array(
            [
                max(
                    np.abs(neurons / at.demand - 1.0).max(),
                    np.abs((at.mapped.xi - at.state.xi) / scale).max(),
                )
                for at in self.each
            ]
        )


class PencilEquations(Equations):
    """The fixed point of one problem with rows of the step in its readout, as a function of z."""

    def __init__(self, pencil: Pencil, accuracy: Accuracy = FULL):
        self.pencil, self.accuracy, self.varies = pencil, accuracy, False
        step, size = pencil.step, pencil.groups
        self.groups, self.pairs = size, symmetric(3 * size)
        share = sum(rows.readout_share for rows, _ in pencil.classes)
        self.n, self.d = share * step.n_step, step.d
        self.width = float(step.neurons.sum())
        self.weight = np.concatenate(
            [
                (rows.readout_share / share * rows.moments[:, :, ONE, ONE]).ravel()
                for rows, _ in pencil.classes
                if rows.readout_share
            ]
        )
        self.work_left = accuracy.work
        unknowns = size + self.pairs.count
        self._place_cost = _PLACE_COST + _NODE_COST * self.weight.size * unknowns
        little = np.log(_FREE_V2 * step.neurons / self.n)
        xi = np.zeros((3 * size, 3 * size))
        for _ in range(_FREE_PASSES):
            free = evaluate(pencil, PencilState(little, xi))
            xi = 0.5 * (xi + free.mapped.xi)
        self._free = free
        root = np.sqrt(np.maximum(np.abs(np.diagonal(xi)), 1.0))
        self.scale = np.outer(root, root)
        power = _chi_of(free) / _FREE_V2 * self.n / self.width  # mean square of a row's features
        self.size = float(self.weight @ power)
        likely = self.weight > 1e-9
        self.largest_row = float(power[likely].max())

    @property
    def stretch(self) -> float:
        """How far the largest residual may stretch a weight, squared."""
        step = self.pencil.step
        r = max(float(np.abs(rows.r).max()) for rows, _ in self.pencil.classes)
        largest = r * (1.0 + np.sqrt(step.phi)) ** 2
        longest = (1.0 + np.abs(step.k) * largest) ** 2 + step.delta * largest**2
        return float((longest / step.norm**2).max())

    def cost(self, places: int) -> float:
        """Work of one step of Newton's method at some places, in µs."""
        return float(_CALL_COST + places * self._place_cost)

    def far(self, z: ComplexArray) -> Branch:
        """The solution for |z| beyond the spectrum, to leading order; for λ > 0 the solution."""
        z = np.atleast_1d(np.asarray(z, dtype=np.complex128))
        v2 = -self.pencil.step.neurons / (self.n * z[:, None])
        xi: ComplexArray = np.repeat(self._free.state.xi[None] + 0j, z.size, axis=0)
        chi: ComplexArray = np.zeros((z.size, self.weight.size), dtype=np.complex128)
        for i in np.flatnonzero((z.imag == 0.0) & (z.real < 0.0)):
            at = solve(replace(self.pencil, ridge=-self.n * float(z[i].real))).at
            v2[i], chi[i], xi[i] = at.v2, _chi_of(at), at.state.xi
        return Branch(z, State(v2, chi, xi), np.full(z.size, np.inf), self.accuracy.accepted)

    def evaluated(self, branch: Branch) -> PencilPlaces:
        """The equations at these places, solved or not."""
        each = []
        for z, v2, xi in zip(branch.z, branch.v2, branch.state.xi, strict=True):
            pencil = replace(self.pencil, ridge=-self.n * z)
            state = PencilState(
                2.0 * np.log(root_above(v2.astype(np.complex128))), xi.astype(np.complex128)
            )
            each.append(evaluate(pencil, state))
        chi = np.stack([_chi_of(at) for at in each])
        return PencilPlaces(self, each, replace(branch.state, chi=chi), chi - branch.chi)

    def taken(self, found: PencilPlaces, rows: Any) -> PencilPlaces:
        """The evaluation at some of its places."""
        index = np.arange(len(found.each))[rows]
        each = [found.each[i] for i in index]
        return PencilPlaces(self, each, found.state.take(rows), found.chi_gap[rows])

    def own_determinants(self, found: PencilPlaces) -> FloatArray:
        """det(I − N(r)Γ) of (58) at the nodes of r, at the first place."""
        r = np.concatenate([rows.r for rows, _ in self.pencil.classes if rows.step_share])
        return self.sample_determinants(found, r).ravel()

    def sample_determinants(self, found: PencilPlaces, r: FloatArray) -> FloatArray:
        """det(I − N(r)Γ) of (58) for rows of the step with residuals r, at the first place."""
        step, inside = self.pencil.step, p_hat_index(self.groups)
        gamma = found.each[0].gamma.real[np.ix_(inside, inside)]
        at = r[None, :, None]
        matrices = sample_denominator(gamma[None], at * step.k, at**2 * step.delta)
        return np.asarray(np.linalg.det(matrices))

    def newton_step(self, found: PencilPlaces) -> State:
        """Newton's step at fixed z: relative changes of V2, changes of χ and of Ξ."""
        step = self._respond(found, self._gap(found))[0]
        return replace(step, chi=step.chi + found.chi_gap)

    def ridge_response(self, found: PencilPlaces) -> State:
        """d/dz of log V2, χ and Ξ."""
        return self._respond(found, self._by_z(found))[0]

    def newton_and_ridge(self, found: PencilPlaces) -> tuple[State, State]:
        """Both, by one matrix."""
        step, response = self._respond(found, self._gap(found), self._by_z(found))
        return replace(step, chi=step.chi + found.chi_gap), response

    def _gap(self, found: PencilPlaces) -> ComplexArray:
        groups = np.stack([1.0 - at.demand / self.pencil.step.neurons for at in found.each])
        change = np.stack([at.mapped.xi - at.state.xi for at in found.each])
        return np.concatenate([groups, self.pairs.upper(change)], axis=1)

    def _by_z(self, found: PencilPlaces) -> ComplexArray:
        groups = found.state.v2 * self.n / self.pencil.step.neurons
        nothing = np.zeros((len(groups), self.pairs.count))
        return np.concatenate([groups, nothing], axis=1)

    def _respond(self, found: PencilPlaces, *sources: ComplexArray) -> list[State]:
        """Solve the linearised equations with sources for V2 and the elements of Ξ."""
        size = self.groups
        linear = [_LinearPencil(at) for at in found.each]
        matrix: ComplexArray = np.stack([each.matrix for each in linear])
        answers = solutions(matrix, np.stack(sources, axis=2))
        states = []
        for answer in np.moveaxis(answers, 2, 0):
            chi = np.stack([each.chi_change(a) for each, a in zip(linear, answer, strict=True)])
            states.append(State(answer[:, :size], chi, self.pairs.whole(answer[:, size:])))
        return states


def _chi_of(at: PencilEvaluation) -> ComplexArray:
    """χ of the readout's rows, (X,)."""
    parts = zip(at.pencil.classes, at.classes, strict=True)
    return np.concatenate(
        [(1.0 / o.shrink - 1.0).ravel() for (r, _), o in parts if r.readout_share]
    )


class _LinearPencil:
    """The linearised equations at one place: I minus the derivative of the map.

    Unknowns are log V2 and the elements i ≤ j of Ξ. With dΓ = φ0 G dΞ G

        dT_N = T_N dΓ T_N,   dℓ̂_e = T_N dΓ ℓ̂_e,   dχ = ℓ̂_eᵀ dΓ ℓ̂_e,

    and with the part ℓ̂_h of ℓ̂ on the fields of group h, d/dlog V2_h takes ℓ̂ to ½ℓ̂_h.
    """

    def __init__(self, at: PencilEvaluation) -> None:
        self.at = at
        size, step = at.pencil.groups, at.pencil.step
        pairs = symmetric(3 * size)
        self.gamma_by_xi = step.phi * congruence(at.g[None, None])[0]
        count = size + pairs.count
        by_gamma = np.zeros((count, pairs.count), dtype=np.complex128)
        by_v2 = np.zeros((count, size), dtype=np.complex128)
        by_v2[:size] = np.diag(at.v2 * at.pencil.ridge)
        self._chi: list[tuple[ComplexArray, ComplexArray]] = []
        for (rows, features), own in zip(at.pencil.classes, at.classes, strict=True):
            t_matrices = _padded(own.t_matrices, size)
            share = rows.step_share * rows.by_residual[:, ONE, ONE]
            by_readout = np.zeros_like(t_matrices)
            if rows.readout_share:
                one = _ReadoutRows(at, features.spread, own)
                by_readout = one.by_readout
                by_gamma += one.by_gamma
                by_v2 += one.by_v2
                self._chi.append((one.chi_by_v2, one.chi_by_gamma))
            # T X T and −(T X S + S X T), as squares of T, S and T − S.
            matrices = np.concatenate([t_matrices, t_matrices - by_readout, by_readout])
            ones = np.ones_like(share)
            weights = np.concatenate([share - ones, ones, -ones])
            by_gamma[size:] += congruence(matrices[None], weights[None])[0]
        by_xi = by_gamma @ self.gamma_by_xi
        scale = 1.0 / step.neurons[:, None]
        self.matrix = np.empty((count, count), dtype=np.complex128)
        self.matrix[:size, :size] = scale * by_v2[:size]
        self.matrix[:size, size:] = scale * by_xi[:size]
        self.matrix[size:, :size] = -by_v2[size:]
        self.matrix[size:, size:] = np.eye(pairs.count) - by_xi[size:]

    def chi_change(self, answer: ComplexArray) -> ComplexArray:
        """The change of χ, (X,), with a change of log V2 and Ξ."""
        size = self.at.pencil.groups
        v2, gamma = answer[:size], self.gamma_by_xi @ answer[size:]
        return np.concatenate([by_v2 @ v2 + by_gamma @ gamma for by_v2, by_gamma in self._chi])


class _ReadoutRows:
    """Derivatives of one class of the readout's rows: of V2's denominators and of Ξ."""

    def __init__(self, at: PencilEvaluation, spread: FloatArray, own: ClassValues) -> None:
        size, n_step = at.pencil.groups, at.pencil.step.n_step
        pairs = symmetric(3 * size)
        weight = (own.weight * own.shrink).reshape(-1, 1)
        square = (own.weight * own.shrink**2).reshape(-1, 1)
        effective = own.effective.reshape(-1, 3 * size)
        plain = effective[:, pairs.first] * effective[:, pairs.second]
        self.chi_by_gamma = np.where(pairs.first == pairs.second, plain, 2.0 * plain)
        linear = (own.column * own.response).reshape(*own.shrink.shape, 3, size).sum(axis=2)
        self.chi_by_v2 = (linear + at.v2 * spread).reshape(-1, size)
        flat = linear.reshape(-1, size)
        of_groups, mutual = _by_groups(at, own)  # ℓ̂_e of ℓ̂_g, (X, K, 3K); ℓ̂_gᵀΓ_Nℓ̂_h, (X, K, K)
        self.by_readout = np.einsum(
            "mqi,mqj->mij", own.effective * (own.weight * own.shrink)[..., None], own.effective
        )
        used = -n_step * (self.chi_by_v2 * square).T  # of V2's denominators, by χ
        wide = weight[:, :, None] * of_groups
        crossed = np.einsum("xgi,xj->gij", wide, effective)
        crossed = crossed + np.swapaxes(crossed, 1, 2)  # ℓ̂_gℓ̂_eᵀ + ℓ̂_eℓ̂_gᵀ
        halved = np.where(pairs.first == pairs.second, 0.5, 1.0)
        groups_by_gamma = used @ self.chi_by_gamma + n_step * halved * pairs.upper(crossed)
        direct = n_step * (
            np.diag((weight * (self.chi_by_v2 - 0.5 * flat)).sum(axis=0))
            + 0.5 * np.einsum("x,xgh->gh", weight[:, 0], mutual)
        )
        bulk = (square * plain).T
        self.by_gamma = np.concatenate([groups_by_gamma, bulk @ self.chi_by_gamma])
        self.by_v2 = np.concatenate(
            [
                direct + used @ self.chi_by_v2,
                bulk @ self.chi_by_v2 - 0.5 * pairs.upper(crossed).T,
            ]
        )


def _by_groups(at: PencilEvaluation, own: ClassValues) -> tuple[ComplexArray, ComplexArray]:
    """(I + T_NΓ)ℓ̂_g and ℓ̂_gᵀΓ_Nℓ̂_h for the part ℓ̂_g of ℓ̂ on the fields of each group."""
    size = at.pencil.groups
    inside = p_hat_index(size)
    mask = np.tile(np.eye(size), 3)  # (K, 3K)
    parts = own.column[..., None, :] * mask  # (M, Q, K, 3K)
    effective = parts.astype(np.complex128)
    reached = parts @ at.gamma
    effective[..., inside] += np.matmul(reached[..., inside], own.t_matrices[:, None])
    mutual = np.matmul(effective @ at.gamma, np.swapaxes(parts, -1, -2))  # (M, Q, K, K)
    return effective.reshape(-1, size, 3 * size), mutual.reshape(-1, size, size)


def _padded(t_matrices: ComplexArray, size: int) -> ComplexArray:
    """T_N on (p, φ, φ̂), (M, 3K, 3K)."""
    inside = p_hat_index(size)
    found = np.zeros((len(t_matrices), 3 * size, 3 * size), dtype=np.complex128)
    found[:, inside[:, None], inside] = t_matrices
    return found
