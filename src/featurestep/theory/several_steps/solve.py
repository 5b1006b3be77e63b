"""Sections 60–66 for one problem: the way from the batches to the errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ...functions.quadrature import Rule
from ..resolution import FEWEST_INPUTS
from .batches import Batch, Frame, initial_frame, make_step
from .chain import FreeResponses
from .degrees import Axis, OwnMotion, own_motion, radial_columns
from .directions import Bulk, Change, covariance
from .fixed_point import (
    StepsAdjoint,
    StepsEquations,
    StepsErrors,
    StepsFixedPoint,
    bulk_without_readout,
)
from .laws import Target, first_law, joint_law
from .readout import Fit, Readout, build_columns, build_labels, by_group, fit, radial_labels
from .rules import Fineness, frame_rule
from .weight_nodes import WeightNodes, weight_nodes

ROW_NORM_VARIANCE = 2.0  # d·Var‖w‖² of rows drawn from N(0, I/d)


@dataclass(frozen=True)
class Training:
    """What is trained: a network, its steps and its readout."""

    sigma: Nonlinearity
    star: Target
    noise_std: float
    n: float
    d: float
    width: float
    ridge: float
    step_sizes: tuple[float, ...]  # η_τ
    batch_sizes: tuple[float, ...]  # samples of each step
    is_gaussian: bool = False  # rows of W0 drawn from N(0, I/d)
    higher: bool = False  # with terms of degree 2 and 3 at finite d, for one direction

    @property
    def splits_norms(self) -> bool:
        """True if groups are cut in two by the norms of their initial rows, as in (143)."""
        return self.is_gaussian and self.higher


class OwnWeights(NamedTuple):
    """What terms of finite d need of the weights beside their covariances."""

    motion: OwnMotion
    nodes: WeightNodes


@dataclass(frozen=True)
class StepsSolution:
    """A trained network: its weights, its readout and what it costs."""

    training: Training
    given: Rule  # the law's groups
    groups: Rule  # and those with the norms of initial rows
    batches: Sequence[Batch]
    free: FloatArray  # Ĉ of (τ, ψ, Δ) without readout
    initial: FloatArray | None  # what initial norms add to it
    own: OwnWeights | None  # with `higher`
    readout: Readout
    at: StepsFixedPoint
    special: FloatArray  # Ĉ of (τ, ψ, Δ)
    fitted: Fit
    errors: StepsErrors

    @property
    def test_error(self) -> float:
        """E(y − f)² on fresh samples."""
        return float(self.readout.weight @ self.errors.by_place)

    @property
    def train_mse(self) -> float:
        """(1/n)‖y − Fâ‖²."""
        return float(self.readout.weight @ self.errors.train_by_place)

    @property
    def readout_square(self) -> float:
        """‖â‖²."""
        return float(self.errors.readout_squares.sum())


def make_batches(training: Training, groups: Rule, fineness: Fineness) -> list[Batch]:
    """The steps one after the other."""
    g, share = groups
    star = training.star
    norm2 = np.ones(g.size)
    if training.splits_norms:
        deviation = np.repeat([1.0, -1.0], g.size // 2)
        norm2 = 1.0 + deviation * np.sqrt(ROW_NORM_VARIANCE / max(training.d, FEWEST_INPUTS))
    frame = initial_frame(norm2, 1 if isinstance(star, Nonlinearity) else star.directions)
    batches: list[Batch] = []
    for eta, rows in zip(training.step_sizes, training.batch_sizes, strict=True):
        if frame.axes:
            rule = frame_rule(frame, share, fineness.batch, fineness.tolerance)
            count = fineness.labels if frame.axes == 1 else fineness.labels_of_many
            directions = frame.gamma, frame.across
            law = joint_law(star, training.noise_std, *directions, rule, count, fineness.least)
        else:
            law = first_law(star, training.noise_std, fineness.first)
        e = eta * g / np.sqrt(training.width)
        batches.append(make_step(training.sigma, frame, law, e, training.d / rows, share))
        frame = batches[-1].after
    return batches


def build_readout(
    training: Training,
    groups: Rule,
    frame: Frame,
    rule: Rule,
    norms: tuple[FloatArray, FloatArray | None],
    own: OwnWeights | None = None,
) -> Readout:
    """Columns and labels at nodes of ξ; the last arguments are those of `StepsSolution`."""
    xi, weight = rule
    traces, higher, across = frame.products, None, None
    if own is not None and isinstance(training.star, Nonlinearity):
        covariances = by_group(norms[0], frame.norm2.size)
        columns, higher = radial_columns(training.sigma, frame, training.d, covariances, xi, *own)
        labels, across = radial_labels(training.star, frame, training.noise_std, xi)
        xi, weight = np.tile(xi, (2, 1)), np.tile(0.5 * weight, 2)
        traces = traces - np.outer(frame.norm2, frame.norm2)
    else:
        labels = build_labels(training.star, frame, training.noise_std, xi)
        columns = build_columns(training.sigma, frame, training.d, norms[0], xi, norms[1])
    return Readout(
        n=training.n,
        d=training.d,
        ridge=training.ridge,
        neurons=training.width * groups[1],
        xi=xi,
        weight=weight,
        columns=columns,
        labels=labels,
        sample_norm=traces * (2.0 / training.d),
        higher=higher,
        across=across,
    )


class WithoutReadout(NamedTuple):
    """The weights at V = 0."""

    bulk: Bulk[FreeResponses]
    norms: FloatArray  # Ĉ of (τ, ψ, Δ)
    initial: FloatArray | None  # what initial norms add to it, for (180)


def without_readout(
    training: Training, batches: list[Batch], changes: list[Change]
) -> WithoutReadout:
    """The weights at V = 0.

    With initial norms the first of `changes` is replaced by one that has them.
    """
    bulk = bulk_without_readout(batches)
    norms = covariance(changes, bulk)[0]
    if not training.is_gaussian or training.splits_norms:
        return WithoutReadout(bulk, norms, None)
    changes[0] = Change(batches, 1, norm_variance=ROW_NORM_VARIANCE)
    return WithoutReadout(bulk, norms, covariance(changes, bulk)[0] - norms)


def own_weights(
    training: Training, groups: Rule, batches: list[Batch], without: WithoutReadout
) -> OwnWeights | None:
    """What terms of finite d need of the weights, for a target of one direction."""
    frame, star = batches[-1].after, training.star
    if not training.higher or not isinstance(star, Nonlinearity) or not frame.axes:
        return None
    pair = Axis.of(frame, by_group(without.norms, frame.norm2.size)).pair
    return OwnWeights(own_motion(star, batches), weight_nodes(batches, groups[1], pair))


def solve_steps(training: Training, groups: Rule, fineness: Fineness) -> StepsSolution:
    """Solve one problem of several steps: the way from (160) to (181)."""
    given = groups
    if training.splits_norms:
        groups = np.tile(groups[0], 2), np.tile(0.5 * groups[1], 2)
    batches = make_batches(training, groups, fineness)
    changes = [Change(batches, step) for step in range(1, len(batches) + 1)]
    without = without_readout(training, batches, changes)
    frame = batches[-1].after
    rule = frame_rule(frame, groups[1], fineness.readout, fineness.tolerance)
    own = own_weights(training, groups, batches, without)
    norms = without.norms, without.initial
    readout = build_readout(training, groups, frame, rule, norms, own)
    equations = StepsEquations(batches, readout, without.bulk)
    at = equations.solve()
    special, stages = covariance(changes, at.bulk)
    across = equations.across(at)
    fitted = fit(readout, at.state.v2, at.mass, at.bulk.information, special, across)
    errors = StepsAdjoint(equations, at, stages, fitted).solve()
    return StepsSolution(
        training,
        given,
        groups,
        batches,
        *norms,
        own,
        readout,
        at,
        special,
        fitted,
        errors,
    )
