"""The readout: ridge regression from a Gram matrix on the smaller side (theory, section 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.errors import NonFiniteFeatures
from ...core.types import FloatArray
from ..backend import Array, Backend
from .plan import ReadoutFit


@dataclass
class FittedReadout:
    """One fitted readout; its numbers are arrays where there are several draws."""

    fit: ReadoutFit
    a_hat: Array  # (N,)


@dataclass
class RidgeSolution(FittedReadout):
    """Of ridge regression."""

    train_loss: FloatArray
    train_mse: FloatArray
    readout_norm: FloatArray
    test_error: FloatArray | None = None  # measured later


class NormalEquations:
    """FᵀF, Fᵀ(clean, noise) and the labels' own squares, accumulated over rows."""

    def __init__(self, backend: Backend, N: int, lead: tuple[int, ...] = ()) -> None:
        self.backend = backend.solver
        self.gram = self.backend.zeros(*lead, N, N)
        self.moments = self.backend.zeros(*lead, N, 2)
        self.squares: Array = 0.0  # (2, 2): of (clean, noise), in float64

    def add(self, F: Array, clean: Array, noise: Array) -> None:
        """The features and labels of some rows."""
        F = self.backend.cast(F)
        self.backend.add_gram(self.gram, F)
        y = self.backend.stack([clean, noise])  # (rows, 2)
        self.backend.add_product(self.moments, F, self.backend.cast(y))
        self.squares = self.squares + (y[..., :, None] * y[..., None, :]).sum(-3)

    def parts(self) -> list[FloatArray]:
        """Its sums on the host, to be added to those of other rows."""
        return [self.backend.get(part) for part in (self.gram, self.moments, self.squares)]

    def take(self, parts: list[FloatArray]) -> None:
        """The sums of all rows."""
        self.gram, self.moments = (self.backend.put(part) for part in parts[:2])
        self.squares = self.backend.wide(parts[2])

    def square(self, noise: float) -> Array:
        """yᵀy at a noise level."""
        S = self.squares
        return S[..., 0, 0] + 2.0 * noise * S[..., 0, 1] + noise**2 * S[..., 1, 1]


def solve_primal(
    sums: NormalEquations, fits: Sequence[ReadoutFit], *, last: bool
) -> list[RidgeSolution]:
    """â = (FᵀF + λnI)⁻¹Fᵀy for fits of one n; the last fits may use up the Gram matrix.

    The loss is (yᵀy − yᵀFâ)/n: no second pass over the features is needed. It loses as many
    digits as the loss is smaller than yᵀy/n.
    """
    backend, n = sums.backend, fits[0].n
    refuse_non_finite(backend, sums.gram)
    moments = backend.wide(sums.moments)  # (N, 2)

    def side(fit: ReadoutFit) -> Array:
        return moments[..., 0] + fit.noise * moments[..., 1]

    out = []
    for same, b, solved in _by_ridge(backend, sums.gram, fits, side, last):
        a_hat = backend.wide(solved)  # (N, fits)
        squares = (a_hat * a_hat).sum(-2)
        labelled = backend.stack([sums.square(fit.noise) for fit in same])
        losses = (labelled - (b * a_hat).sum(-2)) / n
        found = backend.get(backend.stack([losses, squares]))  # (fits, 2)
        for index, fit in enumerate(same):
            loss, square = found[..., index, 0], found[..., index, 1]
            mse = np.maximum(loss - fit.ridge * square, 0.0)
            out.append(_solution(fit, solved[..., index], loss, mse, square))
    return out


def solve_dual(
    backend: Backend,
    gram: Array,
    F: Array,
    labels: Callable[[ReadoutFit], Array],
    fits: Sequence[ReadoutFit],
) -> list[RidgeSolution]:
    """â = Fᵀα with α = (FFᵀ + λnI)⁻¹y, for fits of one n ≤ N; the residual y − Fâ is λnα.

    `backend` is the solver's, and gram is its own; F may be of another precision.
    """
    n = fits[0].n
    refuse_non_finite(backend, gram)
    systems = _by_ridge(backend, gram[..., :n, :n], fits, labels, False)
    F = backend.cast(F[..., :n, :])
    out = []
    for same, y, solved in systems:
        a_hat = backend.product_across(solved, F)
        alpha, wide = backend.wide(solved), backend.wide(a_hat)  # (n, fits), (fits, N)
        sums = [(y * alpha).sum(-2), (alpha * alpha).sum(-2), (wide * wide).sum(-1)]
        found = backend.get(backend.stack(sums))  # (fits, 3)
        for index, fit in enumerate(same):
            loss, mse = fit.ridge * found[..., index, 0], n * fit.ridge**2 * found[..., index, 1]
            out.append(_solution(fit, a_hat[..., index, :], loss, mse, found[..., index, 2]))
    return out


def smaller_gram(backend: Backend, F: Array) -> Array:
    """FFᵀ when there are no more samples than features, else FᵀF (lower triangle)."""
    n, N = F.shape
    if n <= N:
        gram = backend.outer_gram(F)
    else:
        gram = backend.zeros(N, N)
        backend.add_gram(gram, F)
    refuse_non_finite(backend, gram)
    return gram


def ridge_readouts(backend: Backend, F: Array, Y: Array, ridges: Sequence[float]) -> list[Array]:
    """â (N, outputs) of every ridge for features that are held whole, and labels of any number."""
    n, N = F.shape
    shifts = [ridge * n for ridge in ridges]
    rhs = backend.product_across(F, Y) if n > N else Y
    solved = backend.solve(smaller_gram(backend, F), shifts, [rhs] * len(shifts), False)
    if n > N:
        return solved
    together = backend.product_across(F, backend.join(solved, 1))  # (N, ridges · outputs)
    outputs = Y.shape[1]
    return [together[:, k : k + outputs] for k in range(0, together.shape[1], outputs)]


def _solution(
    fit: ReadoutFit, a_hat: Array, loss: FloatArray, mse: FloatArray, square: FloatArray
) -> RidgeSolution:
    if not (np.isfinite(loss) & np.isfinite(mse) & np.isfinite(square)).all():
        raise NonFiniteFeatures(f"the readout at ridge {fit.ridge:.3g} is not finite")
    return RidgeSolution(fit, a_hat, loss, mse, np.sqrt(square))


def _by_ridge(
    backend: Backend,
    gram: Array,
    fits: Sequence[ReadoutFit],
    side: Callable[[ReadoutFit], Array],
    last: bool,
) -> Iterable[tuple[list[ReadoutFit], Array, Array]]:
    """For each ridge its fits, their right sides as columns b, and (gram + λnI)⁻¹b."""
    ridges = sorted({fit.ridge for fit in fits})
    by_ridge = [[fit for fit in fits if fit.ridge == ridge] for ridge in ridges]
    rhs = [backend.stack([side(fit) for fit in same]) for same in by_ridge]
    shifts = [ridge * fits[0].n for ridge in ridges]
    columns = backend.solve(gram, shifts, [backend.cast(b) for b in rhs], last)
    return zip(by_ridge, rhs, columns, strict=True)


def refuse_non_finite(backend: Backend, gram: Array) -> None:
    """NonFiniteFeatures when a Gram matrix has a diagonal that is not finite."""
    squares = backend.get(gram.diagonal(0, -2, -1))
    if not np.isfinite(squares.sum()):
        bad = int(np.count_nonzero(~np.isfinite(squares)))
        raise NonFiniteFeatures(
            f"{bad} of {squares.size} features or samples are not finite: "
            "the activation overflows on these inputs"
        )
