"""Solving for the readout with any convex loss: the map of `convex`, iterated (section 35)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray, IntArray
from .convex import Fitting, Mapped, Unknowns, mapped, sides
from .dyson import averaged, diagonals, symmetric, t_matrix_without_readout
from .fixed_point import Fixed, Samples, fixed_point
from .step import Step

TOLERANCE = 1e-11
ACCEPTED = 1e-10
ROUGH = 1e-4  # where the solution on coarse rules ends
ROUGH_ACCEPTED = 1e-3
LARGEST_MOVE = 2.0  # of any component in one step
FAR = 0.25  # relative change above which steps are damped
MOST_STEPS = 150
LEVELLED = 3.0  # distances, in units of the output's spread, that change a loss
NODE_ERROR = 1e-9  # of averages over κ
MEMORIES = (12, 5, 2)  # of Anderson's acceleration, one after the other where it fails


@dataclass(frozen=True)
class Packing:
    """Unknowns as vectors, in units in which they are of order 1."""

    groups: int
    fields: int

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Of the blocks of a vector."""
        few, many = symmetric(self.groups).count, symmetric(2 * self.groups).count
        return self.groups, few, many, self.fields, 1, self.groups, few, many

    def _unit(self, step: Step, v2: FloatArray) -> FloatArray:
        """√(D n) of every field, and √(D n d) of A, (B, F)."""
        root = np.sqrt(v2 / step.d[:, None] * step.n[:, None])
        unit = np.tile(root, self.fields // self.groups)
        unit[:, : self.groups] *= np.sqrt(step.d)[:, None]
        return unit

    def vector(self, step: Step, of: Unknowns) -> FloatArray:
        """(B, n) of unknowns."""
        few, many = symmetric(self.groups), symmetric(2 * self.groups)
        return np.concatenate(
            [
                np.log(of.v2),
                few.upper(of.phi_phi),
                many.upper(of.xi),
                of.coefficients / self._unit(step, of.v2),
                of.intercept[:, None],
                of.relative,
                few.upper(of.bulk),
                many.upper(of.xi_change),
            ],
            axis=1,
        )

    def unknowns(self, step: Step, vector: FloatArray) -> Unknowns:
        """The unknowns of vectors."""
        few, many = symmetric(self.groups), symmetric(2 * self.groups)
        parts = np.split(vector, np.cumsum(self.lengths)[:-1], axis=1)
        v2 = np.exp(parts[0])
        return Unknowns(
            v2=v2,
            phi_phi=few.whole(parts[1]),
            xi=many.whole(parts[2]),
            coefficients=parts[3] * self._unit(step, v2),
            intercept=parts[4][:, 0],
            relative=parts[5],
            bulk=few.whole(parts[6]),
            xi_change=many.whole(parts[7]),
        )

    def scale(self, vector: FloatArray) -> FloatArray:
        """The root mean square of the block that a component belongs to, at least 1e-3."""
        parts = np.split(vector, np.cumsum(self.lengths)[:-1], axis=1)
        sizes = [np.sqrt((part**2).mean(axis=1, keepdims=True)) for part in parts]
        return np.asarray(
            np.maximum(np.repeat(np.concatenate(sizes, axis=1), self.lengths, axis=1), 1e-3)
        )


class ConvexSolution(NamedTuple):
    """The fixed point of every row."""

    at: Mapped
    residual: FloatArray  # (B,)
    iterations: IntArray  # (B,)


def solve_coarse(fitting: Fitting) -> Fixed:
    """A first solution for all rows on coarse rules.

    Rows that fail are solved with a shorter memory, then along a path of λ.
    """
    pack = packing(fitting)
    start = pack.vector(fitting.samples.step, _start(fitting.samples))
    found = _attempts(fitting, pack, start, ROUGH, ROUGH_ACCEPTED)
    lost = np.flatnonzero(~(found.residual <= ROUGH_ACCEPTED))
    if lost.size:
        _keep_better(found, lost, _along_ridges(fitting.take(lost), pack, start[lost]))
    return found


def output_changes(fitting: Fitting, found: Fixed) -> FloatArray:
    """By how much the nodes of κ are too far apart for the solution on them, (B,): 1 if they do.

    Losses and errors are smooth functions of the output's distance from places where a loss or its
    proximal map bends, over its spread: the trapezoidal rule needs steps of that distance of order
    1, longer ones where κ is improbable.
    """
    at = sides(fitting, packing(fitting).unknowns(fitting.samples.step, found.state))
    square = at.output.variance[..., 0] + at.parts[:, 1] ** 2 + 2.0 * at.parts[:, 2] ** 2
    spread = np.sqrt(np.maximum(square + at.output.noise[..., 0], 1e-300))
    mean, chi = at.parts[:, 0], at.output.influence[..., 0]
    bends = (mean, mean - 1.0, mean + 1.0, mean - 1.0 - chi, mean + 1.0 + chi)
    distance = np.concatenate([np.stack(bends) / spread, fitting.labels.changes])  # (·, B, Q)
    near = np.minimum(np.abs(distance[..., 1:]), np.abs(distance[..., :-1])) < LEVELLED
    kappa = np.minimum(np.abs(fitting.samples.kappa[1:]), np.abs(fitting.samples.kappa[:-1]))
    digits = np.maximum(-np.log(NODE_ERROR) - 0.5 * kappa**2, 1e-3)
    change = np.abs(np.diff(distance, axis=2)) * near * np.sqrt(digits / (2.0 * np.pi**2))
    return np.asarray(change.max(axis=(0, 2)))


def solve_fine(fitting: Fitting, rough: Fixed) -> ConvexSolution:
    """The solution for all rows, from a first one on coarser rules."""
    pack, step = packing(fitting), fitting.samples.step
    found = _attempts(fitting, pack, rough.state, TOLERANCE, ACCEPTED)
    at = mapped(fitting, pack.unknowns(step, found.state))
    return ConvexSolution(at, found.residual, rough.iterations + found.iterations)


def packing(fitting: Fitting) -> Packing:
    """How the unknowns of a fit are written as vectors."""
    return Packing(fitting.samples.step.k.shape[1], fitting.samples.columns.plain.shape[2])


def _attempts(
    fitting: Fitting, pack: Packing, start: FloatArray, tolerance: float, accepted: float
) -> Fixed:
    """The fixed point from a start, with less and less memory where it is not found."""
    found = _accelerated(fitting, pack, start, tolerance, MEMORIES[0])
    for depth in MEMORIES[1:]:
        lost = np.flatnonzero(~(found.residual <= accepted))
        if lost.size:
            again = _accelerated(fitting.take(lost), pack, start[lost], tolerance, depth)
            _keep_better(found, lost, again)
    return found


def _keep_better(found: Fixed, lost: IntArray, again: Fixed) -> None:
    """Put second solutions of some rows in the place of the first where they are better."""
    better = again.residual < found.residual[lost]
    found.iterations[lost] += again.iterations
    found.state[lost[better]] = again.state[better]
    found.residual[lost[better]] = again.residual[better]


def _along_ridges(fitting: Fitting, pack: Packing, start: FloatArray) -> Fixed:
    """From a larger λ, at which the fixed point is easy, down to the problem's own."""
    samples = fitting.samples
    ridge = samples.step.ridge
    factor = np.where(ridge < 0.5, 0.5 / ridge, 30.0)
    found = Fixed(start, np.full(len(start), np.inf), np.zeros(len(start), dtype=np.intp))
    while True:
        easier = replace(samples, step=replace(samples.step, ridge=ridge * factor))
        now = _accelerated(replace(fitting, samples=easier), pack, found.state, ROUGH, MEMORIES[0])
        good = now.residual <= ROUGH_ACCEPTED
        state = np.where(good[:, None], now.state, found.state)
        found = Fixed(state, now.residual, found.iterations + now.iterations)
        if np.all(factor == 1.0):
            return found
        factor = np.maximum(factor / 3.0, 1.0)


def _accelerated(
    fitting: Fitting, pack: Packing, start: FloatArray, tolerance: float, depth: int
) -> Fixed:
    """Anderson's acceleration of the joint map."""

    def image(states: FloatArray, rows: IntArray) -> FloatArray:
        part = fitting.take(rows)
        step = part.samples.step
        return pack.vector(step, mapped(part, pack.unknowns(step, states)).unknowns)

    return fixed_point(
        image,
        start,
        scale=pack.scale,
        tolerance=tolerance,
        reach=LARGEST_MOVE,
        most=MOST_STEPS,
        depth=depth,
        far=FAR,
    )


def _start(samples: Samples) -> Unknowns:
    """Features taken as noise, a readout of size one spread over all neurons."""
    step = samples.step
    rows, size = step.k.shape
    v2 = step.neurons / (step.n * (0.1 + step.ridge))[:, None]
    relative = 0.3 * step.neurons / step.neurons.sum(axis=1, keepdims=True) / v2
    return Unknowns(
        v2=v2,
        phi_phi=np.broadcast_to(np.eye(size), (rows, size, size)).copy(),
        xi=averaged(step.r_weight, t_matrix_without_readout(step)),
        coefficients=np.zeros((rows, samples.columns.plain.shape[2])),
        intercept=np.zeros(rows),
        relative=relative,
        bulk=diagonals(relative),
        xi_change=np.zeros((rows, 2 * size, 2 * size)),
    )
