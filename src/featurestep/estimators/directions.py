"""What a step has found: directions and their stability, the function along them, spikes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.spiked import Border, border_of
from ..core.types import FloatArray
from ..simulation import (
    Array,
    MatrixSpectrum,
    NetworkOnRows,
    RowBlock,
    RowMatrix,
    dense_spectrum,
    find_spikes,
    slopes,
)
from .readouts import outputs

STABILITY_SPLITS = 20
MAX_CURVE_DEGREE = 4  # highest polynomial degree that is told from the rest
CURVE_POINTS = 101  # of a curve, at equal steps of probability
CURVE_ROWS = 200  # over which a curve is averaged
GRADIENT_ROWS = 500


@dataclass(frozen=True)
class Stability:
    """Cosines of the directions that two halves of the step's rows give, for each output."""

    mean: FloatArray  # (outputs,), over the splits
    spread: FloatArray  # (outputs,): standard deviation over the splits

    @property
    def cosine(self) -> FloatArray:
        """Estimated cosine γ of β with the direction that endless rows would give.

        β is a signal plus noise of size ∝ 1/n0 (eq. 1), so two halves agree by ρ = γ² of a half,
        and the whole has γ² = 2ρ/(1 + ρ).
        """
        rho = np.clip(self.mean, 0.0, 1.0)
        return np.asarray(np.sqrt(2.0 * rho / (1.0 + rho)))


def stability(X: Any, R: FloatArray, seed: int) -> Stability:
    """From β = Xᵀr/n0 of random halves of the step's rows."""
    rng = np.random.default_rng(seed)
    X, cosines = np.asarray(X, dtype=np.float64), []
    for _ in range(STABILITY_SPLITS):
        order = rng.permutation(len(X))
        first, second = (R[half].T @ X[half] for half in np.array_split(order, 2))
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        inner = np.sum(first * second, axis=1)
        cosines.append(np.divide(inner, lengths, out=np.zeros_like(inner), where=lengths > 0))
    return Stability(np.mean(cosines, axis=0), np.std(cosines, axis=0, ddof=1))


@dataclass(frozen=True)
class Along:
    """Rows along one direction: κ with mean 0 and variance 1 over them."""

    beta: FloatArray  # (d,)
    mean: float
    spread: float

    def __call__(self, X: Any) -> FloatArray:
        """κ of some rows."""
        return np.asarray((X @ self.beta.astype(X.dtype) - self.mean) / self.spread, dtype=float)


def along(beta: FloatArray, X: Any) -> Along:
    """κ = x·β, standardised over these rows."""
    values = np.asarray(X @ beta.astype(X.dtype), dtype=np.float64)
    return Along(beta, float(values.mean()), float(values.std()) or 1.0)


def orthonormal_polynomials(kappa: FloatArray) -> FloatArray:
    """Columns of degree 0, 1, …, orthonormal over these rows: H_k/√(n·k!) for Gaussian κ."""
    powers = np.polynomial.hermite_e.hermevander(kappa, MAX_CURVE_DEGREE)
    basis, R = np.linalg.qr(powers)
    return np.asarray(basis * np.sign(np.where(np.diagonal(R) == 0, 1.0, np.diagonal(R))))


@dataclass(frozen=True)
class LearnedCurve:
    """The mean output at a given κ, the other directions being as they come."""

    kappa: FloatArray  # (points,): quantiles of κ over the rows
    values: FloatArray  # (points,), in the labels' units
    shares: dict[int | str, float]  # of the curve's variance, by polynomial degree

    @property
    def degrees(self) -> tuple[int, ...]:
        """Degrees with at least one hundredth of the variance."""
        return tuple(k for k, share in self.shares.items() if isinstance(k, int) and share >= 0.01)


def learned_curve(
    network: NetworkOnRows, W: Array, readout: tuple[FloatArray, float], place: Along, X: Any
) -> LearnedCurve:
    """Rows are moved along the regression of x on κ to each κ, and the outputs averaged.

    For Gaussian inputs this is E[f|κ], M(κ) of eq. 12. Moved rows are new ones: what the readout
    has memorised of theirs does not count.
    """
    backend = network.backend
    a_hat, offset = readout
    X = np.asarray(X, dtype=backend.dtype)
    every = place(X)
    kappa = np.quantile(every, (np.arange(CURVE_POINTS) + 0.5) / CURVE_POINTS)
    centre = every - every.mean()
    move = np.asarray(X, dtype=np.float64).T @ centre / np.sum(centre**2)  # (d,)
    rows = np.linspace(0, len(X) - 1, min(CURVE_ROWS, len(X))).astype(int)
    P = network.project(X[rows], W)  # (rows, N)
    shift = network.project(move[None, :], W)  # (1, N)
    out = backend.empty(*P.shape)
    values = np.empty(CURVE_POINTS)
    for index, at in enumerate(kappa):
        moved = backend.put((at - every[rows])[:, None]) * shift
        F = network.features(((P, 1.0), (moved, 1.0)), out)
        values[index] = float(outputs(backend, F, a_hat[:, None]).mean()) + offset
    return LearnedCurve(kappa, values, degree_shares(kappa, values))


def degree_shares(kappa: FloatArray, values: FloatArray) -> dict[int | str, float]:
    """Shares of a curve's variance in the polynomials of each degree, and above."""
    centred = values - values.mean()
    total = float(centred @ centred)
    if total == 0.0:
        return {**dict.fromkeys(range(1, MAX_CURVE_DEGREE + 1), 0.0), "higher": 0.0}
    parts = (orthonormal_polynomials(kappa).T @ centred)[1:] ** 2 / total
    shares: dict[int | str, float] = {k: float(part) for k, part in enumerate(parts, start=1)}
    return {**shares, "higher": max(1.0 - float(parts.sum()), 0.0)}


def gradient_squares(network: NetworkOnRows, W: Array, a_hat: FloatArray, X: Any) -> FloatArray:
    """∂f/∂z of every output on some rows: (outputs, rows, d)."""
    backend = network.backend
    rows = np.linspace(0, len(X) - 1, min(GRADIENT_ROWS, len(X))).astype(int)
    P = network.project(X[rows], W)
    slopes(backend, network.problem, P)
    found = []
    for a in a_hat.T:
        weighted = backend.get(P * backend.put(a[None, :]))
        found.append(backend.get(backend.product_across(backend.put(weighted.T), W)))
    return np.stack(found)


MAX_VECTORS = 12  # at most so many vectors are looked at


@dataclass(frozen=True)
class FeatureSpikes:
    """Singular values of F/√n beyond the edge, on the readout's rows.

    The edge is the largest one that chance could explain: that of a network without common
    directions, on inputs whose columns were shuffled each on its own, plus the margin of
    `border_of`. Its neurons have random directions and the norms that the step left them
    beside β, ρ_j of eq. 4. Real inputs have spikes of their own, without any step: those of
    `untrained`. The overlaps tell the two kinds apart.
    """

    values: FloatArray  # (spikes,)
    untrained: FloatArray  # those of the untrained network
    edge: float
    overlaps: FloatArray  # (spikes, outputs, degrees 0 …): squared, of the left vector
    bulk: FloatArray  # all singular values, descending

    @property
    def count(self) -> int:
        """How many."""
        return len(self.values)


def feature_spikes(
    network: NetworkOnRows, W: Array, X: Any, places: list[Along], seed: int
) -> FeatureSpikes:
    """Of the trained and the untrained network on the same rows."""
    rng = np.random.default_rng(seed)
    X = np.asarray(X, dtype=network.backend.dtype)
    shuffled = np.ascontiguousarray(rng.permuted(X, axis=0))
    basis = np.concatenate([orthonormal_polynomials(place(X)) for place in places], axis=1)
    trained, before = (_spectrum(network, X, weights, basis) for weights in (W, network.W0))
    values = trained.distribution.atoms
    rho = network.backend.put(_norms_beside(network.backend.get(W), places)[:, None])
    borders = [_border(network, shuffled, weights) for weights in (rho * network.W0, network.W0)]
    spikes = find_spikes(values, borders[0])
    overlaps = np.full((spikes.count, len(places), basis.shape[1] // len(places)), np.nan)
    shown = min(spikes.count, len(trained.left))
    overlaps[:shown] = trained.left[:shown].reshape(shown, *overlaps.shape[1:])
    return FeatureSpikes(
        spikes.singular_values,
        find_spikes(before.distribution.atoms, borders[1]).singular_values,
        float(np.sqrt(borders[0].place)),
        overlaps,
        np.sqrt(values),
    )


def _norms_beside(W: FloatArray, places: list[Along]) -> FloatArray:
    """Norms of the neurons' weights without their part along the learned directions."""
    span = np.linalg.qr(np.stack([place.beta for place in places], axis=1))[0]  # (d, outputs)
    return np.asarray(np.linalg.norm(W - (W @ span) @ span.T, axis=1))


def _border(network: NetworkOnRows, shuffled: Any, W: Array) -> Border:
    """Of the bulk that these weights have on inputs without dependence."""
    edge = float(_spectrum(network, shuffled, W, np.ones((len(shuffled), 1))).top[0])
    scale = _scale(len(shuffled), network.problem.width)
    return border_of(max(edge, np.finfo(float).tiny), edge * scale)


def _scale(n: int, N: int) -> float:
    """Tracy–Widom scale of the largest eigenvalue over the edge, for independent entries."""
    return float((n**0.5 + N**0.5) ** (-2 / 3) * float(n * N) ** (-1 / 6))


def _spectrum(network: NetworkOnRows, X: Any, W: Array, functions: FloatArray) -> MatrixSpectrum:
    """Of FᵀF/n, and what the first left vectors have of functions (n, …) of the rows."""
    F = network.features_of(X, W)
    n, N = F.shape
    block = RowBlock(0, F, functions)
    none = np.empty((0, N))
    matrix = RowMatrix(n, N, float(n), functions.shape[1], none, lambda: iter([block]), whole=F)
    return dense_spectrum(network.backend, matrix, min(MAX_VECTORS, n, N))
