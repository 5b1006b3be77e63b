"""One draw: take the step, and find the spectrum of every variant, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.types import FloatArray
from ..arrays.backend import Array
from ..network.run import TRAIN, GroupRun, uncounted
from ..network.variants import FeatureKey, Variant
from ..network.weights import Count, Weights
from .krylov import krylov_spectrum
from .plan import OF_WEIGHTS, WEIGHTS, SpectrumPlan
from .singular import MatrixSpectrum, RowBlock, RowMatrix, dense_spectrum

DEGREES = tuple(range(7))  # H_0(κ) … H_6(κ)
POWERS = tuple(range(1, 7))  # κ … κ⁶


class SpectrumRun(GroupRun):
    """Runs a plan on one of its seeds; `count` is told the flops as they are done."""

    def __init__(self, plan: SpectrumPlan, place: int, count: Count = uncounted) -> None:
        super().__init__(plan.cost, plan.draw(0, slice(place, place + 1)), count)
        self.plan = plan

    def spectra(self) -> dict[str, MatrixSpectrum]:
        """What is found for each variant."""
        weights = self.weights()
        return {v.name: self.find(v, weights) for v in self.plan.draws.variants}

    def _direction(self, weights: Weights) -> FloatArray:
        """β/‖β‖, with β = X0ᵀr/n0 of this draw (theory, section 2), also when η is 0."""
        noise = self.plan.problem.noise_std
        if noise not in weights.beta:
            step = self.gradient(weights.matrices[0], self.draw.step_sample(0), (noise,))
            weights.beta[noise] = step.beta[0]
        beta = self.backend.get(weights.beta[noise])[0]
        return np.asarray(beta / np.sqrt(beta @ beta))

    def find(self, variant: Variant, weights: Weights) -> MatrixSpectrum:
        """What is found for one variant, from weights that took their step here or elsewhere."""
        beta, route = self._direction(weights), self.plan.cost.routes[variant.name]
        if variant.name in OF_WEIGHTS:
            matrix = self._weight_matrix(variant, weights, beta)
        else:
            matrix = self.feature_matrix(self.plan.key(variant), weights)
        if route.method == "dense":
            found = dense_spectrum(self.backend, matrix, self.plan.top)
        else:
            streams = self.draw.streams
            found = krylov_spectrum(self.backend, matrix, self.plan.top, streams, keep=route.keep)
        self.count(found.flops)
        return found

    def _weight_matrix(self, variant: Variant, weights: Weights, beta: FloatArray) -> RowMatrix:
        """W (N × d): left vectors beside a, right vectors beside β and the target's directions."""
        W = self._weights(variant, weights)
        step = self.cost.rows
        a = self.draw.readout[:, None]

        def blocks() -> Iterator[RowBlock]:
            for start in range(0, len(W), step):
                yield RowBlock(start, W[start : start + step], a[start : start + step])

        directions = np.concatenate([beta[None, :], self.draw.unit_directions])
        return RowMatrix(len(W), W.shape[1], 1.0, 1, directions, blocks, whole=W)

    def _weights(self, variant: Variant, weights: Weights) -> Array:
        key = self.plan.key(variant)
        if variant.name == WEIGHTS and key.base == "trained":
            return _only(weights, key).matrices[0]
        if self.group.moves and not self.group.initial_needed:
            return self.draw.initial_weights()
        return weights.matrices[0]

    def feature_matrix(
        self, key: FeatureKey, weights: Weights, rows: tuple[int, int] | None = None
    ) -> RowMatrix:
        """F (n × N), or some of its rows: left vectors beside H_k(κ) and κ^k, κ = x·β/‖β‖."""
        problem = self.plan.problem
        alone = _only(weights, key)
        length = float(np.linalg.norm(self.backend.get(weights.beta[problem.noise_std])))

        def blocks() -> Iterator[RowBlock]:
            sample = self.draw.readout_sample(problem.n)
            if rows is not None:
                sample = sample.within(rows)
            for projected in self.blocks(alone, sample, TRAIN):
                F = self.features(key, projected)
                kappa = self.backend.get(projected.kappa[problem.noise_std])[:, 0] / length
                yield RowBlock(projected.start, F, functions_of(kappa))

        none = np.empty((0, problem.width))
        count = len(DEGREES) + len(POWERS)
        return RowMatrix(problem.n, problem.width, float(problem.n), count, none, blocks)


def functions_of(kappa: FloatArray) -> FloatArray:
    """Columns H_0(κ) … H_6(κ) (probabilists'), κ … κ⁶; none is centred."""
    hermite = np.polynomial.hermite_e.hermevander(kappa, DEGREES[-1])
    return np.concatenate([hermite, kappa[:, None] ** np.array(POWERS)], axis=1)


def _only(weights: Weights, key: FeatureKey) -> Weights:
    """What these features need of the weights: one matrix, W or W0, and β."""
    if key.base != "trained":
        return Weights([weights.matrices[0]], beta=weights.beta)
    ((index, _),) = weights.terms[key.move]  # one step size: W is a matrix of its own
    return Weights([weights.matrices[index]], {key.move: ((0, 1.0),)}, weights.beta)
