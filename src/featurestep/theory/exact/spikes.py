"""The regression (29) above the bulk, where C is negative: its matrix vanishes at a spike (36)."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ...types import FloatArray
from .covariance import covariance
from .dyson import Blocks, averaged, matmul, transposed
from .regression import field_covariance, gram
from .resolvent import Readout
from .weights import ExactSide, ExactWeights
from .wider import Seen, in_bulk


@dataclass(frozen=True)
class SpikeSystem:
    """P − I with P = Lᵀ𝒢L and C = −LLᵀ, and the columns BL along κ, at B places."""

    matrix: FloatArray  # (B, F, F)
    columns: FloatArray  # (B, Q, F)


def spike_system(
    weights: ExactWeights, side: ExactSide, v2: FloatArray, mass: FloatArray
) -> SpikeSystem:
    """At real places above the bulk, with the weights n w/(1+χ) of every node in `mass`."""
    batch = weights.batch
    nodes = batch.readout_nodes
    found = groups_seen(weights, side, v2, mass)
    readout = Readout(found.step, found.columns, batch.kappa[:nodes], batch.weight[:nodes])
    c = field_covariance(readout, np.abs(found.v2), found.covariance)
    root = _root(c)
    matrix = matmul(transposed(root), gram(readout, mass), root)
    matrix = 0.5 * (matrix + transposed(matrix)) - np.eye(c.shape[-1])
    return SpikeSystem(matrix, matmul(readout.columns.plain, root))


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


def _root(c: FloatArray) -> FloatArray:
    """L with LLᵀ = C; C may be singular, and its fields differ in size."""
    size = np.sqrt(np.maximum(np.abs(np.einsum("bff->bf", c)), 1e-300))
    values, vectors = np.linalg.eigh(c / (size[:, :, None] * size[:, None, :]))
    return np.asarray(size[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])
