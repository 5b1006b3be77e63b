"""The regression (29) above the bulk, where C is negative: its matrix vanishes at a spike (36)."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ...types import FloatArray
from .columns import Columns
from .covariance import covariance
from .dyson import Blocks, matmul, transposed
from .regression import field_covariance, gram
from .resolvent import Readout
from .weights import ExactWeights


@dataclass(frozen=True)
class SpikeSystem:
    """P − I with P = Lᵀ𝒢L and C = −LLᵀ, and the columns BL along κ, at B places."""

    matrix: FloatArray  # (B, F, F)
    columns: FloatArray  # (B, Q, F)


def spike_system(
    weights: ExactWeights, columns: Columns, v2: FloatArray, mass: FloatArray
) -> SpikeSystem:
    """At real places above the bulk, with the weights n w/(1+χ) of every node in `mass`."""
    batch = weights.batch
    rows = np.zeros(len(v2), dtype=np.intp)
    nodes = batch.readout_nodes
    rule = batch.kappa[:nodes], batch.weight[:nodes]
    readout = Readout(weights.step, columns.take(rows), *rule)
    blocks = Blocks(*(getattr(weights.blocks, f.name).real for f in fields(Blocks)))
    found = covariance(weights.step, weights.information.real, blocks, weights.scattered.real)
    c = field_covariance(readout, np.abs(v2), found)
    root = _root(c)
    matrix = matmul(transposed(root), gram(readout, mass), root)
    matrix = 0.5 * (matrix + transposed(matrix)) - np.eye(c.shape[-1])
    return SpikeSystem(matrix, matmul(readout.columns.plain, root))


def _root(c: FloatArray) -> FloatArray:
    """L with LLᵀ = C; C may be singular, and its fields differ in size."""
    size = np.sqrt(np.maximum(np.einsum("bff->bf", c), 1e-300))
    values, vectors = np.linalg.eigh(c / (size[:, :, None] * size[:, None, :]))
    return np.asarray(size[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])
