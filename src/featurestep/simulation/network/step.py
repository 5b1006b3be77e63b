"""The gradient step, exact (theory, section 1): no rank-one shortcut.

G is linear in the residual, so labels of several noise levels need two gradients (of the signal
and of the unit noise) however many the levels are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...core.errors import NonFiniteFeatures
from ...core.problem import Problem
from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ..arrays.backend import Array, Backend, parallel_safe
from ..draws.draw import Block


@dataclass(frozen=True)
class Gradient:
    """G and β for each residual of a basis."""

    G: tuple[Array, ...]  # each (N, d)
    beta: tuple[Array, ...]  # each (1, d): X0ᵀr/n0


def residual_basis(levels: tuple[float, ...]) -> int:
    """How many gradients the given noise levels need."""
    return 1 if len(levels) == 1 else 2


def weights_in_basis(noise: float, levels: tuple[float, ...]) -> tuple[float, ...]:
    """Coordinates of a noise level's gradient in the basis."""
    return (1.0,) if len(levels) == 1 else (1.0, noise)


def gradient(
    backend: Backend,
    problem: Problem,
    W: Array,
    readout: FloatArray,
    blocks: Iterable[Block],
    levels: tuple[float, ...],
    buffers: tuple[Array, Array],
) -> Gradient:
    """G = (1/n0)[(a rᵀ) ∘ σ′(WX0ᵀ)]X0 and β = X0ᵀr/n0, in row blocks.

    r = y0 for `labels`, y0 − f(X0) for `full`.
    """
    N, d, n0 = problem.width, problem.d, problem.n_step
    count = residual_basis(levels)
    lead = readout.shape[:-1]
    G = tuple(backend.zeros(*lead, N, d) for _ in range(count))
    beta = tuple(backend.zeros(*lead, 1, d) for _ in range(count))
    a_row = backend.put(readout[..., None, :])
    for block in blocks:
        P, T = (buffer[..., : block.rows, :] for buffer in buffers)  # (rows, N)
        backend.product(block.X, W, P)
        output = _output(backend, problem, P, T, a_row) if problem.residual == "full" else 0.0
        slopes(backend, problem, P)
        for index, r in enumerate(_residuals(block, levels, output)):
            column = backend.cast(r[..., None])
            backend.each(_scale_rows, [P, T, column], True)
            backend.add_product(G[index], T, block.X)
            backend.add_product(beta[index], column, block.X)
    factors = backend.put(readout[..., None] / n0)
    for index in range(count):
        backend.each(scale, [G[index], factors], True)
        beta[index][:] = beta[index] / n0
        refuse_infinite(G[index])
    return Gradient(G, beta)


def refuse_infinite(G: Array) -> None:
    """NonFiniteFeatures for a gradient that has overflowed."""
    if not np.isfinite(float(G.sum())):
        raise NonFiniteFeatures(
            "the gradient is not finite: σ′ or the residual overflows on these inputs"
        )


def slopes(backend: Backend, problem: Problem, P: Array) -> None:
    """P ← σ′(P)."""
    evaluate(backend, problem.sigma, P, P, slope=True)


def evaluate(
    backend: Backend, f: Nonlinearity, values: Array, out: Array, *, slope: bool = False
) -> None:
    """out = f(values), or f′(values); out may be the values themselves."""
    call = backend.value(f, slope=slope)

    def piece(value: Array, target: Array) -> None:
        target[:] = call(value)

    backend.each(piece, [values, out], parallel_safe(f))


def _output(backend: Backend, problem: Problem, P: Array, T: Array, a_row: Array) -> Array:
    """f(X0) = σ(X0W0ᵀ)a."""
    evaluate(backend, problem.sigma, P, T)
    return backend.wide(backend.product(T, a_row))[..., 0]


def _residuals(block: Block, levels: tuple[float, ...], output: Array | float) -> tuple[Array, ...]:
    signal = block.clean - output
    return (signal + levels[0] * block.noise,) if len(levels) == 1 else (signal, block.noise)


def scale(values: Array, factors: Array) -> None:
    """values ← values · factors."""
    values *= factors


def _scale_rows(slope: Array, out: Array, r: Array) -> None:
    out[:] = slope * r


def combine(backend: Backend, terms: Iterable[tuple[Array, float]], out: Array) -> Array:
    """out = Σ weight · matrix; out may be one of the matrices."""
    matrices, weights = zip(*terms, strict=True)

    def piece(target: Array, *pieces: Array) -> None:
        target[:] = sum(weight * term for weight, term in zip(weights, pieces, strict=True))

    backend.each(piece, [out, *matrices], True)
    return out
