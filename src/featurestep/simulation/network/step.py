"""The gradient step, exact (theory, section 1: no rank-one shortcut), and the features after it.

Variants of the features share a draw: `trained`, `initial`, and those that replace a part of it.

G is linear in the residual, so labels of several noise levels need two gradients (of the signal
and of the unit noise) however many the levels are.

`NetworkOnRows` takes the step on given rows and labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.errors import InvalidProblem, NonFiniteFeatures
from ...core.problem import Problem
from ...core.spiked import spiked_weights
from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity, coefficients
from ..backend import Array, Backend, parallel_safe
from ..draw import Block, Draw
from ..setting import Setting
from ..streams import Source, Streams


@dataclass(frozen=True)
class StepGradient:
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
) -> StepGradient:
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
    return StepGradient(G, beta)


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


BLOCK_ROWS = 1024  # of a sample in memory at a time


@dataclass(frozen=True)
class GradientStep:
    """The sum of the outputs' gradients, and β of each."""

    G: Array  # (N, d)
    beta: FloatArray  # (outputs, d)


class NetworkOnRows:
    """f(x) = Aσ(Wx), A of shape (outputs, N): one initial readout for each output."""

    def __init__(self, problem: Problem, backend: Backend, *, seed: int, outputs: int) -> None:
        self.problem = problem
        self.backend = backend
        self.outputs = outputs
        self._draw = Draw(problem, Setting(), Source([Streams(seed)], backend), 1)
        self._maps = FeatureMaps(problem, self._draw.readout, backend)

    @cached_property
    def W0(self) -> Array:  # noqa: N802
        """The first layer at the start, that of `simulate` for the same seed."""
        return self._draw.initial_weights()

    @cached_property
    def initial_readouts(self) -> FloatArray:
        """(outputs, N): the first is that of `simulate`, the others are drawn like it."""
        N, streams = self.problem.width, self._draw.streams
        draws = (
            self.problem.law.sample(streams.generator("readout", k), N) / N**0.5
            for k in range(1, self.outputs)
        )
        return np.stack([self._draw.readout, *draws])

    def step(self, W: Array, X: Any, R: FloatArray) -> GradientStep:
        """Σ_k (1/n0)[(a_k r_kᵀ) ∘ σ′(WXᵀ)]X over the outputs k (theory, section 1).

        The sum over k is taken inside, [(ARᵀ) ∘ σ′(WXᵀ)]X with A (N, outputs), so that outputs cost
        one product together. The labels R (rows, outputs) are the residual.
        """
        backend, n0 = self.backend, len(X)
        A = backend.put(self.initial_readouts.T / n0)  # (N, outputs)
        G, beta = backend.zeros(*W.shape), backend.zeros(A.shape[1], W.shape[1])
        for start in range(0, n0, BLOCK_ROWS):
            x, r = (backend.put(array[start : start + BLOCK_ROWS]) for array in (X, R))
            P = backend.product(x, W)
            slopes(backend, self.problem, P)
            backend.each(scale, [P, backend.product(r, A)], True)
            backend.add_product(G, P, x)
            backend.add_product(beta, r, x)
        refuse_infinite(G)
        return GradientStep(G, backend.get(beta) / n0)

    def stepped(self, first: GradientStep, X: Any, R: FloatArray, eta: float, steps: int) -> Array:
        """W after so many steps of size η on the same rows, the first of which is known."""
        W = combine(
            self.backend, [(self.W0, 1.0), (first.G, eta)], self.backend.empty(*self.W0.shape)
        )
        for _ in range(steps - 1):
            G = self.step(W, X, R).G
            combine(self.backend, [(W, 1.0), (G, eta)], W)
        return W

    def project(self, X: Any, W: Array) -> Array:
        """XWᵀ, (n, N)."""
        return self.backend.product(self.backend.put(X), W)

    def features(self, terms: Terms, out: Array) -> Array:
        """σ(Σ weight · projection), into out."""
        return self._maps.trained(terms, out)

    def features_of(self, X: Any, W: Array) -> Array:
        """σ(XWᵀ)."""
        P = self.project(X, W)
        return self.features(((P, 1.0),), P)


def sum_of_squares(values: Array) -> float:
    """Of all entries, in pieces so that no second copy is made."""
    pieces = (values[i : i + BLOCK_ROWS] for i in range(0, len(values), BLOCK_ROWS))
    return sum(float((piece * piece).sum()) for piece in pieces)
