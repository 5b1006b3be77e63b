"""The model of a spectrum on rows of the step, on laws cut off where finite samples end.

As `model` for fresh rows: κ ends at the largest expected among n rows, target and noise at
sizes that a few rows exceed. A continuous readout law has few groups, for bulk and spikes alike.
Overlaps are with functions of κ as rows have it, x·β/‖β‖ with their own share φ0 r/‖β‖ in β.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...core.problem import Problem
from ...core.spiked import spiked_weights
from ...core.types import FloatArray
from ...functions.nonlinearity import normalised_hermite
from ...functions.quadrature import largest_expected
from ..exact.solve import step_of
from ..exact.step import ProblemRow, Step
from ..resolution import Mirrored, finite_groups
from ..reuse.fixed_point import Pencil, PencilEvaluation
from ..reuse.readout import Fields, class_columns, fit_system
from ..reuse.rows import ONE, RowClass, S, T
from ..reuse.rules import choose_rules
from ..reuse.solve import Shares, build_pencil, require_known_rows
from ..validity import spectrum_notes
from .equations import Accuracy
from .model import HIGHEST, SAMPLES_BEYOND, Coordinates, few_groups, share_of_zeros
from .pencil_equations import PencilEquations, PencilPlaces
from .weights import WeightSpectrum, weight_spectrum

MAX_GROUPS = 4  # of a continuous law: Newton's matrix has K + 3K(3K + 1)/2 rows
_R_NODES = 24
_KAPPA = 3.5  # up to which spikes' functions are given
_BEYOND_ALL = 1e8  # z over the mean square of a row, where there are no spikes
_FAR = 1.0 / np.array([120.0, 160.0, 220.0, 330.0, 500.0, 900.0])  # of 1/λ, for moments


@dataclass(frozen=True)
class RowFields:
    """The fields of (62) at B real places above the bulk."""

    v2: FloatArray  # (B, K) < 0
    mass: FloatArray  # (B, X) n w/(1+χ)
    matrix: FloatArray  # (B, F, F): as many positive eigenvalues as spikes above
    columns: tuple[FloatArray, FloatArray]  # (B, X, F) means given a node, (B, 1, X, F) along t


@dataclass(frozen=True)
class RowsModel:
    """One problem's equations on rows of its step."""

    problem: Problem
    step: Step
    pencil: Pencil
    atom: float  # share of eigenvalues that are 0
    notes: tuple[str, ...]
    varies: bool = False  # rows and columns do not vary by chance here

    def equations(self, accuracy: Accuracy) -> PencilEquations:
        """Its fixed point as a function of z."""
        return PencilEquations(self.pencil, accuracy)

    def groups_at(self, found: PencilPlaces) -> RowFields:
        """The fields that may make spikes, at real places above the bulk."""
        matrices, plain, linear = zip(*(_at_place(at) for at in found.each), strict=True)
        beyond = self._without_spikes
        return RowFields(
            v2=found.state.v2.real,
            mass=found.mass.real,
            matrix=np.stack([_lowered(matrix, beyond) for matrix in matrices]),
            columns=(np.stack(plain), np.stack(linear)[:, None]),
        )

    @cached_property
    def _without_spikes(self) -> int:
        """Positive eigenvalues of (62) far above all spikes."""
        equations = self.equations(Accuracy(residual=1e-9))
        z = np.array([_BEYOND_ALL * equations.size + 0j])
        found = equations.evaluated(equations.at(z, equations.far(z)))
        return int(np.count_nonzero(np.linalg.eigvalsh(_at_place(found.each[0])[0]) > 0.0))

    @cached_property
    def coordinates(self) -> Coordinates:
        """κ as rows have it, and the target's coordinate, at the nodes."""
        length = spiked_weights(self.problem).beta_norm
        kappa, along, weight = [], [], []
        for rows in _readout_classes(self.pencil):
            own = self.pencil.step.phi / length * rows.r if rows.step_share else 0.0 * rows.r
            kappa.append((rows.kappa + own[:, None]).ravel())
            along.append(_given_node(rows, T).ravel())
            weight.append(rows.readout_share * rows.moments[:, :, ONE, ONE].ravel())
        at, share = np.concatenate(kappa), np.concatenate(weight)
        share = share / share.sum()
        powers = at[:, None] ** np.arange(1, HIGHEST + 1)
        hermite = normalised_hermite(HIGHEST, at).T
        return Coordinates(
            kappa=np.linspace(-_KAPPA, _KAPPA, 71),
            hermite=hermite / np.sqrt(share @ hermite**2),  # κ has another law than N(0,1)
            powers=powers,
            power_squares=share @ powers**2,
            target=np.concatenate(along)[None],
            across=np.eye(1),
            are_kappa=False,
        )

    @property
    def weights(self) -> WeightSpectrum:
        """The spectrum of the weights."""
        return weight_spectrum(self.step)

    def moments(self) -> tuple[float, float]:
        """First two moments of the bulk, from λm(−λ) = 1 − M_1/λ + M_2/λ² − … far below it."""
        equations = self.equations(Accuracy())
        z = -equations.size / _FAR + 0j
        branch = equations.at(z, equations.far(z)).require_converged("the moments were not found")
        values = (-z * equations.trace(branch)).real
        x = -1.0 / z.real
        powers = x[:, None] ** np.arange(1, x.size + 1)
        series = np.linalg.solve(powers, values - 1.0)
        return -float(series[0]), float(series[1])


def _readout_classes(pencil: Pencil) -> list[RowClass]:
    return [rows for rows, _ in pencil.classes if rows.readout_share]


def _given_node(rows: RowClass, place: int) -> FloatArray:
    """E[t|node] or E[s̃|node], (M, Q)."""
    one = rows.moments[:, :, ONE, ONE]
    return np.divide(rows.moments[:, :, ONE, place], one, out=np.zeros_like(one), where=one != 0.0)


def _at_place(at: PencilEvaluation) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The matrix of (62) where V2 < 0, (F, F), and its columns' means given a node and along t.

    All fields but A (and the intercept) have columns ∝ √V2: with them times −i everything is real.
    """
    places = Fields(at.pencil)
    factor = np.full(places.count, -1j)
    factor[places.means] = np.sqrt(np.abs(at.v2))
    matrix = fit_system(at).matrix * at.pencil.step.n_step
    matrix = (factor[:, None] * matrix * factor).real
    plain, linear = [], []
    for (rows, features), own in zip(at.pencil.classes, at.classes, strict=True):
        if not rows.readout_share:
            continue
        columns, bulk = class_columns(at, rows, features, own)
        t, s = (_given_node(rows, place)[..., None] for place in (T, S))
        one = rows.moments[:, :, ONE, ONE, None]
        both = rows.moments[:, :, T, [T, S]]
        tt, ts = (
            np.divide(each, one, out=np.zeros_like(one), where=one != 0.0)
            for each in (both[..., :1], both[..., 1:])
        )
        whole, along = columns.copy(), np.zeros_like(columns)
        whole[..., places.star] += t * bulk
        whole[..., places.beside] += s * bulk
        along[..., places.star] = (tt - t**2) * bulk
        along[..., places.beside] = (ts - t * s) * bulk
        plain.append((whole * factor).real.reshape(-1, places.count))
        linear.append((along * factor).real.reshape(-1, places.count))
    return 0.5 * (matrix + matrix.T), np.concatenate(plain), np.concatenate(linear)


def _lowered(matrix: FloatArray, count: int) -> FloatArray:
    """The matrix with its `count` largest eigenvalues, which are not of spikes, far below 0."""
    values, vectors = np.linalg.eigh(matrix)
    if count:
        values[-count:] = -np.abs(values).max() - 1.0
    return np.asarray((vectors * values) @ vectors.T)


def build_rows_model(problem: Problem, accuracy: Accuracy, refinement: float = 1.0) -> RowsModel:
    """The model of one problem; `refinement` multiplies the number of nodes."""
    del accuracy  # nodes are few already
    require_known_rows(problem)
    weights = spiked_weights(problem)
    rules = choose_rules(problem, refinement)
    rule = finite_groups(problem) or few_groups(problem, weights, MAX_GROUPS)
    groups = Mirrored.of(rule, problem.sigma)
    end = largest_expected(problem.n)
    kappa = rules.kappa[np.abs(rules.kappa) <= end]
    residuals = round(refinement * _R_NODES)
    step = step_of([ProblemRow(problem)], groups.rule, residuals, "exact", higher=False)
    pencil = build_pencil(
        problem,
        step,
        replace(rules, groups=groups, kappa=kappa, residuals=residuals),
        Shares.of(problem),
        samples=problem.n_step / (2.0 * SAMPLES_BEYOND),
    )
    notes = spectrum_notes(problem, weights)
    return RowsModel(problem, step, pencil, share_of_zeros(problem), notes)
