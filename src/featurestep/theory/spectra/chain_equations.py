"""The fixed point after several steps, (7), (8) and (167)–(169), at complex λ = −z.

`Equations` has all that a spectrum needs of it; here are one evaluation and its Newton step. The
state is V2, and one matrix with the blocks G_φφ, Ξ_1, …, Ξ_T on its diagonal: of the size of G.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.types import FloatArray, IntArray
from ..exact.dyson import sample_denominator, symmetric, transposed
from ..exact.fixed_point import State, root_above
from ..several_steps.batches import Batch
from ..several_steps.chain import (
    averaged,
    block,
    coupled,
    field,
    solve_chain,
    t_matrix,
    whole_chain,
)
from ..several_steps.fixed_point import bulk_without_readout
from ..several_steps.readout import Readout
from .equations import FULL, Accuracy, Branch, ComplexArray, Equations
from .newton import between, congruence, solutions

_CALL_COST, _PLACE_COST = 1500.0, 100.0  # of one evaluation with Newton's step, in µs
_ELEMENT_COST = 2e-3  # times places, nodes and (2K)³


@dataclass(frozen=True)
class ChainEvaluation:
    """The equations at B places, for one problem."""

    equations: ChainEquations
    state: State
    ridge: ComplexArray  # (B,) λ = −z
    direction: ComplexArray  # (B, X, K) μ√V2
    chi: ComplexArray  # (B, X) by (7) with the state's G_φφ
    chi_gap: ComplexArray  # (B, X) what χ lacked before
    shrink: ComplexArray  # (B, X) 1/(1 + χ)
    mass: ComplexArray  # (B, X) n w/(1 + χ)
    information: ComplexArray  # (B, K, K) V
    whole: ComplexArray  # (B, F, F) G
    t_matrices: list[ComplexArray]  # (B, M, 2K, 2K) of every batch

    @cached_property
    def mapped(self) -> ComplexArray:
        """G_φφ and Ξ_τ by (167) and (168), as blocks of one matrix (B, F, F)."""
        parts = [
            averaged(batch.shown.law.weight, np.moveaxis(t, 1, 0))
            for batch, t in zip(self.equations.batches, self.t_matrices, strict=True)
        ]
        return self.equations.joined([self.response, *parts])

    @property
    def response(self) -> ComplexArray:
        """G_φφ of the last step, (B, K, K)."""
        last = self.equations.last
        return block(self.whole, last, last)

    @cached_property
    def demand(self) -> ComplexArray:
        """V2_g(t_g + ζ_g) over N_g, 1 at the solution of (169), (B, K)."""
        readout = self.equations.readout
        free = self.ridge[:, None] * readout.n + self.mass @ readout.columns.spread_in_v2[0]
        degrees = readout.d * (self.information * self.response).sum(axis=2)
        return np.asarray((self.state.v2 * free + degrees) / readout.neurons)

    @cached_property
    def residual(self) -> FloatArray:
        """Largest relative change of any unknown under the undamped map, (B,)."""
        groups = np.abs(1.0 / self.demand - 1.0).max(axis=1)
        change = np.abs((self.mapped - self.state.xi) / self.equations.scale)
        return np.asarray(np.maximum(groups, change.max(axis=(1, 2))))


class ChainEquations(Equations):
    """The fixed point of one problem of several steps as a function of z."""

    def __init__(self, batches: Sequence[Batch], readout: Readout, accuracy: Accuracy = FULL):
        self.batches, self.readout, self.accuracy = batches, readout, accuracy
        self.varies, self.weight = False, readout.weight
        self.n, self.d = readout.n, readout.d
        self.width = float(readout.neurons.sum())
        norm2, columns = batches[-1].after.norm2, readout.columns
        size, steps = norm2.size, len(batches)
        self._power = norm2 * columns.slope[0] ** 2 + columns.spread[0]  # (X, K)
        rows = self._power @ readout.neurons / self.width
        self.size, self.largest_row = float(self.weight @ rows), float(rows.max())
        self.groups, self.steps = size, steps
        self.last = field(steps, size)
        self.inside = [coupled(step, steps, size) for step in range(1, steps + 1)]
        self.pairs = [symmetric(size), *[symmetric(2 * size)] * steps]
        free = bulk_without_readout(batches).xi
        self._free = self.joined([np.diag(norm2), *free])
        root = np.sqrt(np.maximum(np.abs(np.diag(self._free)), 1.0))
        self.scale = np.outer(root, root)
        self.work_left = accuracy.work
        nodes = sum(batch.shown.law.y.size for batch in batches)
        self._place_cost = _PLACE_COST + _ELEMENT_COST * nodes * (2 * size) ** 3

    def joined(self, parts: Sequence[ComplexArray]) -> ComplexArray:
        """Blocks (…, K, K), (…, 2K, 2K), … on the diagonal of one matrix."""
        size = sum(part.shape[-1] for part in parts)
        found = np.zeros((*parts[0].shape[:-2], size, size), dtype=np.result_type(*parts))
        start = 0
        for part in parts:
            end = start + part.shape[-1]
            found[..., start:end, start:end] = part
            start = end
        return found

    def split(self, matrix: ComplexArray) -> list[ComplexArray]:
        """The blocks of `joined`."""
        ends = np.cumsum([0, *(pairs.size for pairs in self.pairs)])
        return [matrix[..., a:b, a:b] for a, b in pairwise(ends)]

    def cost(self, places: int) -> float:
        """Work of one step of Newton's method at some places, in µs."""
        return float(_CALL_COST + places * self._place_cost)

    @property
    def stretch(self) -> float:
        """How far the largest labels of the batches may stretch a weight, squared."""
        found = 1.0
        for batch in self.batches:
            wide = (1.0 + np.sqrt(batch.ratio)) ** 2
            longest = (1.0 + np.abs(batch.shown.cross) * wide) ** 2 + batch.shown.own * wide**2
            usual = batch.after.norm2 / batch.before.norm2
            found *= float(np.maximum(longest / usual, 1.0).max())
        return found

    def far(self, z: ComplexArray) -> Branch:
        """The solution for |z| beyond the spectrum, to leading order."""
        z = np.atleast_1d(np.asarray(z, dtype=np.complex128))
        v2 = -self.readout.neurons / (self.n * z[:, None])
        xi: ComplexArray = np.repeat(self._free[None].astype(np.complex128), z.size, axis=0)
        return Branch(
            z, State(v2, v2 @ self._power.T, xi), np.full(z.size, np.inf), self.accuracy.accepted
        )

    def evaluated(self, branch: Branch) -> ChainEvaluation:
        """The equations at these places, solved or not."""
        readout, v2 = self.readout, branch.v2.astype(np.complex128)
        columns = readout.columns
        response, *xi = self.split(branch.state.xi)
        direction = columns.slope * root_above(v2)[:, None, :]
        chi = ((direction @ response) * direction).sum(axis=2) + v2 @ columns.spread[0].T
        shrink = 1.0 / (1.0 + chi)
        mass = self.n * readout.weight * shrink
        information = transposed(direction) @ (direction * (mass / readout.d)[:, :, None])
        chain = solve_chain(xi, information)
        t_matrices = [
            t_matrix(batch, inside)
            for batch, inside in zip(self.batches, chain.coupled(), strict=True)
        ]
        return ChainEvaluation(
            equations=self,
            state=replace(branch.state, chi=chi),
            ridge=-branch.z,
            direction=direction,
            chi=chi,
            chi_gap=chi - branch.chi,
            shrink=shrink,
            mass=mass,
            information=information,
            whole=whole_chain(chain),
            t_matrices=t_matrices,
        )

    def taken(self, found: ChainEvaluation, rows: Any) -> ChainEvaluation:
        """The evaluation at some of its places."""
        names = ("ridge", "direction", "chi", "chi_gap", "shrink", "mass", "information", "whole")
        parts = {name: getattr(found, name)[rows] for name in names}
        t_matrices = [t[rows] for t in found.t_matrices]
        return replace(found, state=found.state.take(rows), t_matrices=t_matrices, **parts)

    def own_determinants(self, found: ChainEvaluation) -> FloatArray:
        """det(I − NΓ) of (167) at the nodes of every batch, at a real place."""
        values = []
        for batch, inside in zip(self.batches, self.inside, strict=True):
            gamma = batch.ratio * block(found.whole, inside, inside).real
            matrices = sample_denominator(gamma, batch.shown.cross[None], batch.shown.own[None])
            values.append(np.linalg.det(matrices)[0])
        return np.concatenate(values)

    def sample_determinants(self, found: ChainEvaluation, r: FloatArray) -> FloatArray:
        """det(I − NΓ) of (167) for samples of every batch with labels r, at every ξ."""
        values = []
        for batch, inside in zip(self.batches, self.inside, strict=True):
            gamma = batch.ratio * block(found.whole, inside, inside).real
            first = np.unique(batch.law.place, return_index=True)[1]
            y = batch.law.y[first, None]
            y = np.where(np.abs(y) < 1e-9, np.nan, y)  # no label there
            cross, own = (batch.cross[first] / y)[None], (batch.own[first] / y**2)[None]
            for label in r[:: max(1, r.size // 40)]:
                matrix = sample_denominator(gamma, label * cross, label**2 * own)
                values.append(np.linalg.det(matrix).ravel())
        return np.concatenate(values)

    def newton_step(self, found: ChainEvaluation) -> State:
        """Newton's step at fixed z: relative changes of V2, changes of χ and of the matrices."""
        step = self._respond(found, self._gap(found))[0]
        return replace(step, chi=step.chi + found.chi_gap)

    def ridge_response(self, found: ChainEvaluation) -> State:
        """d/dz of log V2, χ and the matrices."""
        return self._respond(found, self._by_z(found))[0]

    def newton_and_ridge(self, found: ChainEvaluation) -> tuple[State, State]:
        """Both, by one matrix."""
        step, response = self._respond(found, self._gap(found), self._by_z(found))
        return replace(step, chi=step.chi + found.chi_gap), response

    def _gap(self, found: ChainEvaluation) -> list[ComplexArray]:
        return [1.0 - found.demand, *self.split(found.mapped - found.state.xi)]

    def _by_z(self, found: ChainEvaluation) -> list[ComplexArray]:
        nothing = [np.zeros_like(part) for part in self.split(found.state.xi)]
        return [found.state.v2 * self.n / self.readout.neurons, *nothing]

    def _respond(self, found: ChainEvaluation, *sources: list[ComplexArray]) -> list[State]:
        """Solve the linearised equations with sources (B, K) and blocks for V2 and the matrices."""
        linear = _Linear(found)
        right = [
            np.concatenate(
                [groups, *(p.upper(m) for p, m in zip(self.pairs, matrices, strict=True))], axis=1
            )
            for groups, *matrices in sources
        ]
        answers = solutions(linear.matrix, np.stack(right, axis=2))
        return [self._state(linear, answers[:, :, column]) for column in range(len(sources))]

    def _state(self, linear: _Linear, answer: ComplexArray) -> State:
        ends = np.cumsum([self.groups, *(pairs.count for pairs in self.pairs)])[:-1]
        relative, *parts = np.split(answer, ends, axis=1)
        whole = self.joined([p.whole(part) for p, part in zip(self.pairs, parts, strict=True)])
        chi = (linear.chi_by_v2 @ relative[:, :, None] + linear.chi_by_g @ parts[0][:, :, None])[
            :, :, 0
        ]
        return State(relative, chi, whole)


class _Linear:
    """The linearised equations: I minus the derivative of the map, at B places.

    Unknowns are log V2 and the elements i ≤ j of G_φφ, Ξ_1, …, Ξ_T. With dG = G(dΞ − dV)G the
    derivative is made of products of blocks of G and of φE[T dG T].
    """

    def __init__(self, found: ChainEvaluation) -> None:
        equations = found.equations
        self.found, self.equations = found, equations
        readout, few = equations.readout, equations.pairs[0]
        b, v2 = found.direction, found.state.v2
        response = equations.split(found.state.xi)[0]
        spread = readout.columns.spread[0]
        plain = b[..., few.first] * b[..., few.second]  # (B, X, ·)
        self.chi_by_g = np.where(few.first == few.second, plain, 2.0 * plain)
        self.chi_by_v2 = b * (b @ response) + spread * v2[:, None, :]
        weight = found.mass * found.shrink
        lost = transposed(plain * (weight / readout.d)[:, :, None])
        # dV in elements g ≤ h, by log V2 and by G_φφ.
        halves = 0.5 * (np.eye(equations.groups)[few.first] + np.eye(equations.groups)[few.second])
        own = few.upper(found.information)[:, :, None] * halves
        self.v_by_v2, self.v_by_g = own - lost @ self.chi_by_v2, -lost @ self.chi_by_g
        noise = transposed(spread * weight[:, :, None])  # (B, K, X)
        self.noise_by_v2, self.noise_by_g = -noise @ self.chi_by_v2, -noise @ self.chi_by_g
        self.matrix = self._matrix()

    def _by_sources(self, rows: IntArray, place: int) -> list[ComplexArray]:
        """dG on some rows, in elements, by dV and by dΞ of every batch."""
        equations, whole = self.equations, self.found.whole
        left = equations.pairs[place]
        sources = [equations.last, *equations.inside]
        found = []
        for right, columns in zip(equations.pairs, sources, strict=True):
            found.append(right.halved(between(block(whole, rows, columns), left, right)))
        found[0] = -found[0]
        return found

    def _matrix(self) -> ComplexArray:
        equations, found = self.equations, self.found
        size = equations.groups
        counts = [size, *(pairs.count for pairs in equations.pairs)]
        starts = np.cumsum([0, *counts])
        place = [slice(a, b) for a, b in pairwise(starts)]
        matrix = np.zeros((found.ridge.size, starts[-1], starts[-1]), dtype=np.complex128)
        outs = [equations.last, *equations.inside]
        by_sources = [self._by_sources(rows, i) for i, rows in enumerate(outs)]
        for i, batch in enumerate(equations.batches, 1):
            weight = batch.ratio * batch.shown.law.weight[None]
            repeated = congruence(found.t_matrices[i - 1], weight)
            by_sources[i] = [repeated @ part for part in by_sources[i]]
        for i, (by_v, *by_xi) in enumerate(by_sources, 1):
            matrix[:, place[i], place[0]] = -by_v @ self.v_by_v2
            matrix[:, place[i], place[1]] = -by_v @ self.v_by_g
            for k, part in enumerate(by_xi, 2):
                matrix[:, place[i], place[k]] = -part
        self._groups(matrix, place, by_sources[0])
        index = np.arange(size, starts[-1])
        matrix[:, index, index] += 1.0
        return matrix

    def _groups(
        self, matrix: ComplexArray, place: list[slice], response: list[ComplexArray]
    ) -> None:
        """Rows of (169): the change of V2_g(t_g + ζ_g)/N_g."""
        equations, found = self.equations, self.found
        readout, few, v2 = equations.readout, equations.pairs[0], found.state.v2
        # Σ_h of elements (g, h), each in both of its rows.
        both = np.eye(equations.groups)
        rows = both[:, few.first] + np.where(few.first == few.second, 0.0, both[:, few.second])
        by_v = readout.d * rows * few.upper(found.response)[:, None, :]
        by_g = readout.d * rows * few.upper(found.information)[:, None, :]
        by_v = by_v + by_g @ response[0]
        free = found.ridge[:, None] * readout.n + found.mass @ readout.columns.spread_in_v2[0]
        scale = 1.0 / readout.neurons[:, None]
        in_v2 = by_v @ self.v_by_v2 + v2[:, :, None] * self.noise_by_v2
        in_v2 = in_v2 + (v2 * free)[:, :, None] * np.eye(equations.groups)
        matrix[:, place[0], place[0]] = scale * in_v2
        matrix[:, place[0], place[1]] = scale * (
            by_v @ self.v_by_g + v2[:, :, None] * self.noise_by_g
        )
        for k, part in enumerate(response[1:], 2):
            matrix[:, place[0], place[k]] = scale * (by_g @ part)
