"""The model of a spectrum after several steps, on laws cut off where finite samples end.

As `model` for one step: coordinates ξ end at the largest expected among n samples, labels
at a size that a few samples of a batch exceed. A continuous readout law has few groups, for bulk
and spikes alike. Rows and columns of F are taken to vary with ξ and g only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...core.errors import InvalidProblem
from ...core.problem import Problem
from ...core.spiked import spiked_weights
from ...core.types import FloatArray
from ...functions.nonlinearity import normalised_hermite
from ...functions.quadrature import (
    Rule,
    gauss_hermite,
    largest_expected,
    saturating_gauss_law,
    truncated_normal,
)
from ..exact.dyson import matmul
from ..labels import Noise, residual_law, typical_law
from ..several_steps.batches import Batch, Frame, trace_products, with_labels_cut_off
from ..several_steps.chain import DenseResponses, solve_chain
from ..several_steps.directions import Bulk, Change, covariance
from ..several_steps.laws import product_rule, unshifted
from ..several_steps.prediction import reach, training_of
from ..several_steps.readout import Readout, field_covariance, gram
from ..several_steps.rules import Fineness, gauss_count, gauss_errors
from ..several_steps.solve import Training, build_readout, make_batches, without_readout
from ..validity import spectrum_notes
from .chain_equations import ChainEquations, ChainEvaluation
from .equations import Accuracy
from .model import HIGHEST, SAMPLES_BEYOND, Coordinates, bulk_moments, share_of_zeros
from .spike_system import beyond_one, square_root
from .weights import WeightSpectrum, weights_after_steps

MAX_GROUPS = 4  # of a continuous law: Newton's matrix has K + K(K + 1)/2 + TK(2K + 1) rows
_LEAST_WEIGHT = 1e-6  # of products of rules, relative to the largest
_TOLERANCE = 1e-5  # of rules for slow functions of ξ_i
_SPACING = 0.5  # of the nodes of ξ in their stretched variables
_LABELS = (14, 8)  # nodes of y at every ξ, for one axis and for several
_KAPPA = 3.5  # up to which spikes' functions are given
_POWERS = np.arange(1, HIGHEST + 1)


@dataclass(frozen=True)
class FieldsInBulk:
    """The fields (A, τ, ψ, Δ) at B real places above the bulk."""

    readout: Readout
    v2: FloatArray  # (B, K) < 0
    special: FloatArray  # (B, f, f) Ĉ of (τ, ψ, Δ)
    mass: FloatArray  # (B, X) n w/(1+χ)

    @cached_property
    def _root(self) -> FloatArray:
        """L with LLᵀ = −C."""
        pairs = zip(np.abs(self.v2), self.special, strict=True)
        return square_root(np.stack([field_covariance(self.readout, *pair) for pair in pairs]))

    @cached_property
    def matrix(self) -> FloatArray:
        """P − I with P = Lᵀ𝒢L, (B, F, F), which is singular at a spike."""
        return beyond_one(self._root, np.stack([gram(self.readout, mass) for mass in self.mass]))

    @property
    def columns(self) -> tuple[FloatArray, FloatArray]:
        """The columns BL, (B, X, F), and their parts along s, (B, r, X, F)."""
        columns = self.readout.columns
        return matmul(columns.plain, self._root), matmul(columns.linear, self._root[:, None])


@dataclass(frozen=True)
class ChainModel:
    """One problem's equations after several steps."""

    problem: Problem
    batches: Sequence[Batch]
    changes: Sequence[Change]
    readout: Readout
    atom: float  # share of eigenvalues that are 0
    notes: tuple[str, ...]
    varies: bool = False  # rows and columns do not vary by chance here

    @property
    def frame(self) -> Frame:
        """Shifts and bulk of the weights after the last step."""
        return self.batches[-1].after

    def equations(self, accuracy: Accuracy) -> ChainEquations:
        """Its fixed point as a function of z."""
        return ChainEquations(self.batches, self.readout, accuracy)

    def groups_at(self, found: ChainEvaluation) -> FieldsInBulk:
        """The fields that may make spikes, at real places above the bulk."""
        special = []
        for place in range(found.ridge.size):
            _, *xi = found.equations.split(found.state.xi[place].real)
            information = found.information[place].real
            responses = [DenseResponses(t[place].real) for t in found.t_matrices]
            bulk = Bulk(solve_chain(xi, information), responses, xi, information)
            special.append(covariance(self.changes, bulk)[0])
        return FieldsInBulk(self.readout, found.state.v2.real, np.stack(special), found.mass.real)

    @cached_property
    def coordinates(self) -> Coordinates:
        """κ, along β of the first batch, and the target's coordinates at the nodes ξ.

        κ = c·ξ and what is independent of ξ: E[H_k(κ)|ξ] = |c|^k H_k(c·ξ/|c|).
        """
        frame, xi = self.frame, self.readout.xi
        along = frame.beta[: frame.axes]
        length = float(np.linalg.norm(along))
        unit = xi @ along / max(length, 1e-300)
        means = length ** np.arange(HIGHEST + 1) * normalised_hermite(HIGHEST, unit).T
        # κ^k in normalised Hermite polynomials.
        size = np.sqrt([math.factorial(k) for k in range(HIGHEST + 1)])
        to_hermite = np.zeros((HIGHEST, HIGHEST + 1))
        for k in _POWERS:
            series = np.polynomial.hermite_e.poly2herme(np.eye(HIGHEST + 1)[k])
            to_hermite[k - 1, : series.size] = series * size[: series.size]
        return Coordinates(
            kappa=np.linspace(-_KAPPA, _KAPPA, 71),
            hermite=means,
            powers=means @ to_hermite.T,
            power_squares=np.array([math.prod(range(2 * k - 1, 0, -2)) for k in _POWERS], float),
            target=frame.gamma @ xi.T,
            across=frame.across,
            are_kappa=False,
        )

    @property
    def weights(self) -> WeightSpectrum:
        """The spectrum of the weights."""
        return weights_after_steps(self.problem)

    def moments(self) -> tuple[float, float]:
        """First two moments of the bulk, as for one step: for the labels that T sees."""
        readout, products = self.readout, self.batches[0].before.products
        for batch in self.batches:
            before, seen = replace(batch.before, products=products), batch.shown
            products = trace_products(before, seen.law, seen.ratio, seen.cross, seen.own)
        return bulk_moments(
            readout.columns, readout.weight, self.frame.norm2, readout.neurons, products,
            (readout.n, readout.d),
        )  # fmt: skip


def build_chain_model(problem: Problem, accuracy: Accuracy, refinement: float = 1.0) -> ChainModel:
    """The model of one problem; `refinement` multiplies the number of nodes."""
    if problem.residual != "labels":
        raise InvalidProblem(
            "residual", "must be labels for spectra after several steps", problem.residual
        )
    training = training_of(problem)
    groups = few_groups(problem)
    fineness = Fineness(
        first=accuracy.r_nodes,
        labels=_LABELS[0],
        labels_of_many=_LABELS[1],
        batch=0.8 / refinement,
        tolerance=1e-9,
    )
    batches = [
        _cut_off(training, each, accuracy.r_nodes)
        for each in make_batches(training, groups, fineness)
    ]
    changes = [Change(batches, step) for step in range(1, len(batches) + 1)]
    without = without_readout(training, batches, changes)
    rule = _node_rule(training, batches[-1].after, refinement)
    readout = build_readout(
        training, groups, batches[-1].after, rule, (without.norms, without.initial)
    )
    notes = spectrum_notes(problem, spiked_weights(problem))
    return ChainModel(problem, batches, changes, readout, share_of_zeros(problem), notes)


def _cut_off(training: Training, batch: Batch, count: int) -> Batch:
    """The batch with labels in T up to a size that a few of its samples exceed.

    The law of a batch that meets weights without shift is that of one step; else the labels' nodes
    move. Mean and mean square of the labels are kept.
    """
    noise, samples = Noise(training.noise_std**2), training.d / batch.ratio / (2.0 * SAMPLES_BEYOND)
    law, star = batch.law, training.star
    if not batch.before.axes:
        cut = typical_law(
            residual_law(star, noise, count, samples), residual_law(star, noise, count)
        )
        return with_labels_cut_off(training.sigma, batch, unshifted(cut))
    ends = residual_law(star, noise, 24, samples).nodes
    y = np.clip(law.y, ends.min(), ends.max())
    means = [float(law.weight @ each) for each in (law.y, y)]
    before, after = (
        float(law.weight @ (v - m) ** 2) for v, m in zip((law.y, y), means, strict=True)
    )
    y = means[0] + np.sqrt(before / max(after, 1e-300)) * (y - means[1])
    return with_labels_cut_off(training.sigma, batch, replace(law, y=y))


def few_groups(problem: Problem) -> Rule:
    """The values of a finite law, or a few Gauss nodes of a continuous one."""
    law = problem.law
    if law.is_finite:
        return np.array(law.values), np.array(law.probabilities)
    rate = 0.3 * reach(problem)
    return saturating_gauss_law(law.name, MAX_GROUPS, rate / (1.0 + 0.4 * rate))


def _node_rule(training: Training, frame: Frame, refinement: float) -> Rule:
    """Nodes of ξ, (X, Q), up to the largest that n samples show."""
    end, norm = largest_expected(training.n), np.sqrt(frame.norm2)
    rules = []
    for i in range(frame.axes):
        steepest = max(float((np.abs(frame.shift[:, i]) / norm).max()), 1e-3)
        errors = gauss_errors(np.array([steepest]), np.ones(1))
        count = gauss_count(errors, _TOLERANCE**refinement)
        slow = gauss_hermite(int(count)) if np.isfinite(count) else None
        if slow is not None and slow[0][-1] < end:  # everything varies slowly along the axis
            rules.append(slow)
            continue
        widest = 1.0 / steepest if training.sigma.oscillates else 1.0
        scale = min(0.5 / steepest, 1.0)
        rules.append(truncated_normal(end, scale, min(widest, 1.0), _SPACING / refinement))
    return product_rule(rules, _LEAST_WEIGHT)
