"""The feature maps that the papers compare, all evaluated on the same draw (theory, section 6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.errors import InvalidProblem
from ...core.problem import Problem
from ...core.spiked import spiked_weights
from ...core.types import FloatArray
from ...functions.nonlinearity import coefficients
from ..arrays.backend import Array, Backend, parallel_safe
from .step import evaluate

VARIANTS = ("trained", "initial", "spiked:ℓ", "gaussian", "gaussian+spiked:ℓ", "srf")
MAX_DEGREE = 20
Move = tuple[tuple[float, ...], float]  # sizes of the steps, noise level of their labels
Terms = Sequence[tuple[Array, float]]  # Σ weight · array, which is never formed
_SPIKED = re.compile(r"(gaussian\+)?spiked:(\d+)")


@dataclass(frozen=True)
class Variant:
    """A feature map: its base (`trained`, `initial`, `gaussian` or `srf`) and spikes on top."""

    name: str
    base: str
    degree: int = 0


@dataclass(frozen=True)
class FeatureKey:
    """What makes features differ within a group: map, step sizes and noise in the steps' labels."""

    base: str
    degree: int
    sizes: tuple[float, ...]  # of all steps; none without a step
    noise: float

    @property
    def move(self) -> Move:
        """The steps of trained features."""
        return self.sizes, self.noise


def parse_variants(names: object, others: tuple[str, ...] = ()) -> tuple[Variant, ...]:
    """The variants behind their names (`others` stand for themselves), or InvalidProblem."""
    rule = f"must be some of {', '.join((*VARIANTS, *others))}"
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidProblem("variants", f"{rule}, as a list", names)
    parsed = tuple(Variant(name, name) if name in others else _parse(name, rule) for name in names)
    if not parsed or len({v.name for v in parsed}) < len(parsed):
        raise InvalidProblem("variants", f"{rule}, each once", names)
    return parsed


def _parse(name: object, rule: str) -> Variant:
    if isinstance(name, str):
        if name in ("trained", "initial", "gaussian", "srf"):
            return Variant(name, name)
        match = _SPIKED.fullmatch(name)
        if match and 1 <= int(match.group(2)) <= MAX_DEGREE:
            return Variant(name, "gaussian" if match.group(1) else "initial", int(match.group(2)))
    raise InvalidProblem("variants", f"{rule} with ℓ from 1 to {MAX_DEGREE}", name)


def feature_key(variant: Variant, problem: Problem) -> FeatureKey:
    """The key of a variant's features; steps of size 0 leave F0 in all of them."""
    if not any(problem.step_sizes) or (
        variant.degree == 0 and variant.base in ("initial", "gaussian")
    ):
        base = "gaussian" if variant.base == "gaussian" else "initial"
        return FeatureKey(base, 0, (), 0.0)
    return FeatureKey(variant.base, variant.degree, problem.step_sizes, problem.noise_std)


class FeatureMaps:
    """Evaluates every variant's features for one draw of the readout."""

    def __init__(self, problem: Problem, readout: FloatArray, backend: Backend) -> None:
        self.problem = problem
        self.backend = backend
        self.sigma = backend.value(problem.sigma)
        self.parallel = parallel_safe(problem.sigma)
        self.c = coefficients(problem.sigma, MAX_DEGREE)
        self.g = readout[..., None, :] * problem.width**0.5
        self.a = backend.put(readout[..., None, :])  # (1, N)
        rest = problem.sigma.second_moment - self.c[0] ** 2 - self.c[1] ** 2
        self.c_rest = float(np.sqrt(max(rest, 0.0)))  # c_{>1}

    def untrained(
        self, key: FeatureKey, P0: Array, kappa: Array | None, Z: Array | None, out: Array
    ) -> Array:
        """The features of a key but `trained`, from XW0ᵀ, Xβ and normals, into out (rows, N)."""
        if key.base == "gaussian":
            self.backend.each(self._gaussian, [P0, out, Z], self.parallel)
        elif key.base == "initial":
            evaluate(self.backend, self.problem.sigma, P0, out)  # F0 = σ(XW0ᵀ)
        else:
            self.backend.each(self._srf(key), [P0, out, kappa], self.parallel)
        if key.degree:
            self.backend.each(self._spikes(key), [out, kappa], self.parallel)
        return out

    def trained(self, terms: Terms, out: Array) -> Array:
        """F = σ(Σ weight · projection), into out."""
        weights = [weight for _, weight in terms]

        def piece(target: Array, *projections: Array) -> None:
            target[:] = projections[-1]
            target *= weights[-1]
            for weight, projection in zip(weights[:-1], projections[:-1], strict=True):
                target += projection if weight == 1.0 else weight * projection
            target[:] = self.sigma(target)

        self.backend.each(piece, [out, *(array for array, _ in terms)], self.parallel)
        return out

    def _gaussian(self, P0: Array, out: Array, Z: Array) -> None:
        """c_0 + c_1 XW0ᵀ + c_{>1} Z (theory, section 6)."""
        out[:] = float(self.c[0]) + float(self.c[1]) * P0 + self.c_rest * Z

    def _srf(self, key: FeatureKey) -> Callable[..., None]:
        """σ(ρ_j w_j·x + u_j κ), with β of the draw and ρ_j of eq. 4."""
        at_step = self.problem.replace(step_sizes=key.sizes, noise_std=key.noise)
        rho = self.backend.put(spiked_weights(at_step).norm(self.g))
        shift = float(self.c[1]) * key.sizes[0] * self.a

        def piece(P0: Array, out: Array, kappa: Array) -> None:
            out[:] = self.sigma(rho * P0 + kappa * shift)

        return piece

    def _spikes(self, key: FeatureKey) -> Callable[..., None]:
        """Σ_{k≤ℓ} c_1^k c_k η^k (Xβ)^{∘k}(a^{∘k})ᵀ (theory, section 2), by Horner's rule."""
        shift = float(self.c[1]) * key.sizes[0] * self.a
        c = [float(value) for value in self.c[: key.degree + 1]]

        def piece(out: Array, kappa: Array) -> None:
            s = kappa * shift
            total = c[-1] * s
            for value in c[-2:0:-1]:
                total = (total + value) * s
            out += total

        return piece
