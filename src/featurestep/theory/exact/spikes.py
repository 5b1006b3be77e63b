"""The regression (29) above the bulk, where C is negative: its matrix vanishes at a spike (36).

A continuous readout law needs few groups for the bulk, whose integrals over g are smooth, and many
for the spikes, whose columns are not. A group of no weight changes nothing for the others and sees
them through (22)–(24); two of them see each other through the bulk alone. In scaled units its
fields have covariances of order 1 with themselves, and of order √D_g√D_h with each other: they are
found by giving all such groups the same small D, and scaled to the D_g of their own V2_g (23).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.problem import Problem
from ...core.types import FloatArray, IntArray
from ...functions.quadrature import Rule
from .columns import Columns, build_columns
from .covariance import Covariance, alone, covariance
from .dyson import Blocks, averaged, free, matmul, scattering, solve_blocks, symmetric, transposed
from .fixed_point import Samples
from .regression import field_covariance, gram
from .step import Row, Step, build_step
from .weights import ExactWeights

MOST_GROUPS = 7
R_NODES = 40  # of a typical sample's law of r: its tail shows in the spectrum
FEW_R_NODES = 14  # where 1e-4 of edges and spikes is not seen
_SMALL = 1e-5  # √|D| of groups without weight: effects of the order of its square are left out
_MOST = 6.0  # of |V2|/N, in units of what it is far away: beyond, neurons are no test of the bulk
_PASSES = 3  # through (22): what groups without weight add to Ξ is explicit, order by order
_GROUPWISE = (
    "neurons", "a", "e", "k", "delta", "kept", "norm", "shift", "along_weights", "along_noise",
    "norm_variance", "longer", "further",
)  # fmt: skip


@dataclass(frozen=True)
class Many:
    """Many groups: the step's constants, columns, and covariances where groups see no other."""

    step: Step
    columns: Columns
    alone: Covariance

    @staticmethod
    def of(step: Step, columns: Columns) -> Many:
        """With the explicit solution of (22) at Ṽ = 0."""
        return Many(step, columns, alone(step))


class ExactSide(NamedTuple):
    """What a batch needs for exact weights: the step, and the columns at the batch's nodes."""

    step: Step
    columns: Columns
    many: Many | None = None  # groups for the spikes, where the bulk needs fewer

    @property
    def unknowns(self) -> int:
        """Elements of Ξ."""
        size = int(self.step.k.shape[1])
        return size * (2 * size + 1)

    def free(self) -> FloatArray:
        """Ξ at Ṽ = 0, where T = N + NΓN is explicit, (1, K(2K+1))."""
        xi = averaged(self.step.r_weight, free(self.step))
        return symmetric(xi.shape[-1]).upper(xi)


def exact_side(
    problem: Problem,
    groups: Rule,
    kappa: FloatArray,
    samples: float,
    many: Rule | None = None,
    *,
    nodes: int = R_NODES,
) -> ExactSide:
    """For one problem, with a step on so many samples, at an initial output of mean 0."""

    def side(rule: Rule) -> tuple[Step, Columns]:
        step = build_step([Row(problem)], rule, nodes, samples=samples)
        return step, build_columns(problem.sigma, step, kappa)

    return ExactSide(*side(groups), None if many is None else Many.of(*side(many)))


@dataclass(frozen=True)
class Seen:
    """Many groups in the bulk of few, at B places above it."""

    step: Step
    columns: Columns
    v2: FloatArray  # (B, K) bounded, also for groups whose own eigenvalues lie further out
    covariance: Covariance
    outside: npt.NDArray[np.bool_]  # (B, K) which these are


def spike_system(
    weights: ExactWeights, side: ExactSide, v2: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """P − I with P = Lᵀ𝒢L and C = −LLᵀ, (B, F, F), and the columns BL along κ, (B, Q, F).

    At B real places above the bulk, with the weights n w/(1+χ) of every node in `mass`.
    """
    batch = weights.batch
    nodes = batch.readout_nodes
    found = groups_seen(weights, side, v2, mass)
    samples = Samples(found.step, found.columns, batch.kappa[:nodes], batch.weight[:nodes])
    c = field_covariance(samples, np.abs(found.v2), found.covariance)
    root = _root(c)
    matrix = matmul(transposed(root), gram(samples, mass), root)
    matrix = 0.5 * (matrix + transposed(matrix)) - np.eye(c.shape[-1])
    return matrix, matmul(samples.columns.plain, root)


def groups_seen(weights: ExactWeights, side: ExactSide, v2: FloatArray, mass: FloatArray) -> Seen:
    """The groups of the bulk, or the many that stand for them where they have been given."""
    columns = side.columns.take(np.zeros(len(v2), dtype=np.intp))
    scattered = weights.scattered.real
    if side.many is None:
        blocks = Blocks(*(getattr(weights.blocks, f.name).real for f in fields(Blocks)))
        found = covariance(weights.step, weights.information.real, blocks, scattered)
        return Seen(weights.step, columns, v2, found, np.zeros(v2.shape, dtype=bool))
    xi = averaged(weights.step.r_weight, scattered)
    z = -weights.batch.ridge.real
    return in_bulk(side.many, weights.step, xi, columns.slope, v2, mass, z)


def in_bulk(
    many: Many,
    few: Step,
    xi: FloatArray,
    slope: FloatArray,
    v2: FloatArray,
    mass: FloatArray,
    z: FloatArray,
) -> Seen:
    """At places z where few groups with V2 < 0 and Ξ solve (22), (23); `mass` is n w/(1+χ)."""
    rows = np.zeros(len(z), dtype=np.intp)
    step, columns = many.step.take(rows), many.columns.take(rows)
    size, wide = few.k.shape[1], step.k.shape[1]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(few, name), getattr(step, name)], axis=1)
        for name in _GROUPWISE
    }
    both = replace(few, **joined)
    d = few.d[:, None]
    scaled = np.sqrt(-v2 / d)[:, None, :] * slope
    seen = np.concatenate([scaled, _SMALL * columns.slope], axis=2)
    information = -matmul(transposed(seen), seen * mass[:, :, None])
    total = _placed(xi, size, size + wide)
    inside = _index(np.arange(size), size + wide, 2)
    for _ in range(_PASSES):
        blocks = solve_blocks(both.kept, total, information)
        scattered = scattering(both, blocks.coupled)
        total = averaged(both.r_weight, scattered)
        total[:, inside[:, None], inside] = xi
    blocks = solve_blocks(both.kept, total, information)
    found = covariance(both, information, blocks, scattering(both, blocks.coupled))
    zeta = -np.einsum("bgh,bhg->bg", information, blocks.phi_phi)[:, size:] / _SMALL**2
    noise = matmul(mass[:, None, :], columns.spread)[:, 0]
    free = (few.n * z)[:, None]
    own = free / (zeta + noise - free)  # V2/N by (23), in units of what it is far away
    outside = own > 0.0
    own = -np.where(outside, _MOST, np.minimum(-own, _MOST)) * step.neurons / free
    picked = _index(size + np.arange(wide), size + wide, 2 + few.directions)
    root = np.sqrt(-own / d) / _SMALL
    across = np.tile(root, 2 + few.directions)
    alone = many.alone
    matrix = found.matrix[:, picked[:, None], picked] - alone.matrix
    lean = found.lean[:, size:][:, :, picked] - alone.lean
    matrix = alone.matrix + across[:, :, None] * matrix * across[:, None, :]
    lean = alone.lean + root[:, :, None] * lean * across[:, None, :]
    return Seen(step, columns, own, replace(found, matrix=matrix, lean=lean), outside)


def _index(groups: IntArray, count: int, fields: int) -> IntArray:
    """Places of some of the groups among fields of `count` groups each."""
    return np.asarray((count * np.arange(fields)[:, None] + groups).ravel())


def _placed(xi: FloatArray, size: int, count: int) -> FloatArray:
    """Ξ of the first groups among all."""
    total = np.zeros((len(xi), 2 * count, 2 * count))
    inside = _index(np.arange(size), count, 2)
    total[:, inside[:, None], inside] = xi
    return total


def _root(c: FloatArray) -> FloatArray:
    """L with LLᵀ = C; C may be singular, and its fields differ in size."""
    size = np.sqrt(np.maximum(np.abs(np.einsum("bff->bf", c)), 1e-300))
    values, vectors = np.linalg.eigh(c / (size[:, :, None] * size[:, None, :]))
    return np.asarray(size[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])
