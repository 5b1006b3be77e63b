"""The law of the step's residual r, jointly with the special directions (section 19).

Everything the weights' bulk needs is an average E[f(t) r^j T(r)] with f among 1, t, t² (and the
same for the direction of the initial readout, under the `full` residual). Gauss nodes of the law of
r, by Lanczos' method on a fine grid, serve them all: weights for other f are interpolatory. Lanczos
runs in asinh(2r/rms r), in which heavy tails do no harm.

Noise is added to the law of the target. One of several directions is first reduced to nodes, with
weights for its directions and their products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity, gaussian_panels
from ...functions.quadrature import (
    Rule,
    gauss_from_measure,
    gauss_hermite,
    largest_expected,
    trapezoid_normal,
    truncated_normal,
)
from ...functions.targets import AlignedTarget, MeanSign

MOST_MOMENT = 6
_NOISE_NODES = 15
_SPACING = 0.2
_TARGET_NODES = 54  # of the law of a target of several directions, before noise is added


@dataclass(frozen=True)
class ResidualLaw:
    """M nodes of r with weights for 1, for each special direction and for their products."""

    nodes: FloatArray  # (M,)
    weight: FloatArray  # (M,) of E f(r)
    first: FloatArray  # (S, M) of E[θ_s·x f(r)]
    second: FloatArray  # (S, S, M) of E[(θ_s·x)(θ_s′·x) f(r)]
    moments: FloatArray  # (7,) E r^j
    overlaps: FloatArray  # (S, 4) E[θ_s·x r^j]


@dataclass(frozen=True)
class Noise:
    """What is added to the target, a Gaussian variable.

    For `labels` the label noise alone. For `full` the initial output too, −c_1κ_a − ζ, whose part
    along w_a makes that direction special.
    """

    variance: float
    mean: float = 0.0
    leaning: float | None = None  # c_1 for the full residual

    def leaning_on(self, added: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[κ_a|noise] and E[κ_a²|noise], `full` only (section 17)."""
        assert self.leaning is not None
        share = self.leaning / self.variance
        along = -share * added
        return along, along**2 + 1.0 - self.leaning * share


@lru_cache(maxsize=512)
def residual_law(
    star: Nonlinearity | AlignedTarget, noise: Noise, count: int, samples: float | None = None
) -> ResidualLaw:
    """The law of r = target + `noise` on `count` nodes.

    With `samples`, target and noise are cut off at the largest value of so many draws. Of
    the special directions the target's come first, then that of the initial readout.
    """
    if isinstance(star, MeanSign) and noise.leaning is None:
        return _law_of_signs(star)
    target = _target_law(star, samples)
    added, w_x = noise_rule(noise, samples)

    def both(of_target: FloatArray, of_noise: FloatArray) -> FloatArray:
        return np.multiply.outer(of_target, of_noise).ravel()

    first = [both(f, w_x) for f in target.first]
    second = [[both(f, w_x) for f in row] for row in target.second]
    plain = _noise_powers(noise, w_x, added)
    overlaps = [_binomial(row, plain) for row in target.overlaps]
    if noise.leaning is not None:
        along, own = noise.leaning_on(added)
        mixed = [both(f, w_x * along) for f in target.first]
        second = [[*row, f] for row, f in zip(second, mixed, strict=True)]
        second.append([*mixed, both(target.weight, w_x * own)])
        first.append(both(target.weight, w_x * along))
        overlaps.append(_binomial(target.moments[:4], _noise_powers(noise, w_x * along, added)))
    return _on_nodes(
        np.add.outer(target.nodes, added + noise.mean).ravel(),
        both(target.weight, w_x),
        first,
        second,
        count,
        moments=_binomial(target.moments, plain),
        overlaps=np.stack(overlaps),
    )


def _law_of_signs(star: MeanSign) -> ResidualLaw:
    """The law of labels −1 and 1, which has two nodes."""
    plain, first, second = star.by_label
    mean, overlap = float(plain[1] - plain[0]), float(first[1] - first[0])
    return ResidualLaw(
        nodes=np.array([-1.0, 1.0]),
        weight=plain,
        first=first[None],
        second=second[None, None],
        moments=np.array([1.0, mean, 1.0, mean, 1.0, mean, 1.0]),
        overlaps=np.array([[0.0, overlap, 0.0, overlap]]),
    )


def typical_law(cut: ResidualLaw, full: ResidualLaw) -> ResidualLaw:
    """A law that was cut off, its nodes moved such that mean and mean square are the full law's."""
    mean, square = (float(cut.weight @ cut.nodes**j) for j in (1, 2))
    spread = np.sqrt((full.moments[2] - full.moments[1] ** 2) / max(square - mean**2, 1e-300))
    return replace(cut, nodes=full.moments[1] + spread * (cut.nodes - mean))


def typical_rule(samples: float) -> Rule:
    """A normal law that is cut off at the largest value of so many draws."""
    return truncated_normal(largest_expected(samples), 1.0, 1.0, _SPACING)


def target_rule(star: Nonlinearity, spacing: float = 0.1) -> Rule:
    """Values of t and their probabilities, fine enough for the target.

    `spacing` is that of the values where the target is smooth.
    """
    if not star.kinks and not star.breaks(10.0).size:
        return trapezoid_normal(10.0, spacing)
    z, w = gaussian_panels(star)
    keep = np.abs(z) < 10.0
    return z[keep], w[keep] / w[keep].sum()


def noise_rule(noise: Noise, samples: float | None, count: int = _NOISE_NODES) -> Rule:
    """Values of what is added to the target, its mean apart, and their probabilities."""
    if noise.variance == 0.0:
        return np.zeros(1), np.ones(1)
    x, w = gauss_hermite(count) if samples is None else typical_rule(samples)
    return np.sqrt(noise.variance) * x, w


@lru_cache(maxsize=128)
def _target_law(star: Nonlinearity | AlignedTarget, samples: float | None) -> ResidualLaw:
    """The law of the target by itself, with its directions: of one direction on a fine grid."""
    if isinstance(star, MeanSign):
        return _law_of_signs(star)
    if isinstance(star, Nonlinearity):
        t, w = target_rule(star) if samples is None else typical_rule(samples)
        y, along = star(t), (w * t)[None]
        powers = y ** np.arange(MOST_MOMENT + 1)[:, None]
        return ResidualLaw(y, w, along, (along * t)[None], powers @ w, along @ powers[:4].T)
    z, w = star.z, star.weight
    values = star.values
    if samples is not None:
        z, w = _typical_directions(star.directions, samples)
        values = star(z)
    first = [w * x for x in z.T]
    second = [[w * (x * y) for y in z.T] for x in z.T]
    moments = star.moments(MOST_MOMENT)
    return _on_nodes(
        values, w, first, second, _TARGET_NODES, moments=moments[0], overlaps=moments[1:, :4]
    )


def _typical_directions(count: int, samples: float) -> Rule:
    """Directions as so many samples show them: hardly one lies outside the ball."""
    end = largest_expected(samples)
    x, w = truncated_normal(end, 1.0, 1.0, _SPACING if count < 3 else 2.0 * _SPACING)
    z = np.stack(np.meshgrid(*[x] * count, indexing="ij"), axis=-1).reshape(-1, count)
    weight = np.ones(1)
    for _ in range(count):
        weight = np.multiply.outer(weight, w).ravel()
    kept = (z**2).sum(axis=1) <= end**2
    return z[kept], weight[kept] / weight[kept].sum()


def _noise_powers(noise: Noise, weight: FloatArray, added: FloatArray) -> FloatArray:
    """E[f (noise)^l] for l = 0 … 6."""
    return np.asarray((added + noise.mean) ** np.arange(MOST_MOMENT + 1)[:, None] @ weight)


def _binomial(target: FloatArray, noise: FloatArray) -> FloatArray:
    """Moments of a sum of independent parts from theirs."""
    return np.array(
        [
            sum(comb(j, k) * target[j - k] * noise[k] for k in range(j + 1))
            for j in range(target.size)
        ]
    )


def _on_nodes(
    r: FloatArray,
    w: FloatArray,
    first: list[FloatArray],
    second: list[list[FloatArray]],
    count: int,
    *,
    moments: FloatArray,
    overlaps: FloatArray,
) -> ResidualLaw:
    """A law of points r with weights for 1 and for the directions, on `count` nodes."""
    scale = 0.5 * np.sqrt(w @ r**2)
    rule = gauss_from_measure(np.arcsinh(r / scale), w, count)

    def padded(values: FloatArray) -> FloatArray:
        """Nodes that the law does not have get no weight."""
        return np.append(values, np.zeros(count - values.size))

    return ResidualLaw(
        nodes=padded(scale * np.sinh(rule.nodes)),
        weight=padded(rule.weights),
        first=np.stack([padded(rule.weights_for(f)) for f in first]),
        second=np.stack([[padded(rule.weights_for(f)) for f in row] for row in second]),
        moments=moments,
        overlaps=overlaps,
    )
