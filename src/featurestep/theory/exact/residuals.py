"""The law of the residual r that the step sees, jointly with the special directions (section 19).

Everything the weights' bulk needs is an average E[f(t) r^j T(r)] with f among 1, t, t² (and the
same for the direction of the initial readout, under the `full` residual). Gauss nodes of the law of
r, by Lanczos' method on a fine grid, serve them all: weights for other f are interpolatory. Lanczos
runs in asinh(2r/rms r), in which heavy tails do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ...functions.nonlinearity import Nonlinearity, gaussian_panels
from ...functions.quadrature import Rule, gauss_hermite, trapezoid_normal
from ...types import FloatArray
from ..typical_laws import extreme, typical_normal

MOST_MOMENT = 6
_NOISE_NODES = 15
_SPACING = 0.2
_BREAKDOWN = 1e-13


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
    """What is added to the target: variance, mean, and how much of it is along the readout's start.

    For `labels` the label noise alone. For `full` the initial output too, −c_1κ_a − ζ, whose part
    along w_a makes that direction special.
    """

    variance: float
    mean: float = 0.0
    leaning: float | None = None  # c_1 for the full residual

    @property
    def directions(self) -> int:
        """Number of special directions beside the bulk."""
        return 1 if self.leaning is None else 2


@lru_cache(maxsize=512)
def residual_law(
    star: Nonlinearity, noise: Noise, count: int, samples: float | None = None
) -> ResidualLaw:
    """The law of r = σ⋆(t) + noise with `count` nodes, or as so many samples show it."""
    t, r, w, added = _grid(star, noise, samples)
    functions = _directions(t, added, noise)  # (S, points)
    products = _products(t, added, noise)  # (S, S, points)
    nodes, basis, at_nodes = _lanczos(r, w, count)

    def interpolated(f: FloatArray) -> FloatArray:
        return np.asarray(((w * f) @ basis) @ at_nodes)

    powers = r ** np.arange(MOST_MOMENT + 1)[:, None]
    return ResidualLaw(
        nodes=nodes,
        weight=at_nodes[0],
        first=np.stack([interpolated(f) for f in functions]),
        second=np.stack([[interpolated(f) for f in row] for row in products]),
        moments=powers @ w,
        overlaps=(functions * w) @ powers[:4].T,
    )


def typical_law(cut: ResidualLaw, full: ResidualLaw) -> ResidualLaw:
    """A law that was cut off, its nodes moved such that mean and mean square are the full law's."""
    mean, square = (float(cut.weight @ cut.nodes**j) for j in (1, 2))
    spread = np.sqrt((full.moments[2] - full.moments[1] ** 2) / max(square - mean**2, 1e-300))
    return replace(cut, nodes=full.moments[1] + spread * (cut.nodes - mean))


def _grid(
    star: Nonlinearity, noise: Noise, samples: float | None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Points (t, r), their probabilities and the noise in r."""
    if samples is None:
        t, w_t = _target_rule(star)
        x, w_x = gauss_hermite(_NOISE_NODES)
    else:
        t, w_t = x, w_x = typical_normal(extreme(samples), 1.0, 1.0, _SPACING)
    if noise.variance == 0.0:
        x, w_x = np.zeros(1), np.ones(1)
    added = np.sqrt(noise.variance) * np.tile(x, t.size)
    t_all = np.repeat(t, x.size)
    r = np.repeat(star(t), x.size) + added + noise.mean
    w = np.multiply.outer(w_t, w_x).ravel()
    return t_all, r, w / w.sum(), added


def _target_rule(star: Nonlinearity) -> Rule:
    if not star.kinks and not star.breaks(10.0).size:
        return trapezoid_normal(10.0, 0.2)
    z, w = gaussian_panels(star)
    keep = np.abs(z) < 10.0
    return z[keep], w[keep] / w[keep].sum()


def _directions(t: FloatArray, added: FloatArray, noise: Noise) -> FloatArray:
    """E[θ_s·x | point]: t, and for `full` κ_a given its noise (section 17)."""
    if noise.leaning is None:
        return t[None]
    return np.stack([t, -noise.leaning * added / noise.variance])


def _products(t: FloatArray, added: FloatArray, noise: Noise) -> FloatArray:
    if noise.leaning is None:
        return (t * t)[None, None]
    share = noise.leaning / noise.variance
    along = -share * added
    own = along**2 + 1.0 - noise.leaning * share
    return np.stack([np.stack([t * t, t * along]), np.stack([t * along, own])])


def _lanczos(r: FloatArray, w: FloatArray, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gauss nodes of the law of r, orthonormal polynomials π_k on the grid and weight·π_k at nodes.

    Polynomials are in x = asinh(2r/rms r).
    """
    scale = 0.5 * np.sqrt(w @ r**2)
    x = np.arcsinh(r / scale)
    basis = np.empty((r.size, count))
    diagonal, beside = np.zeros(count), np.zeros(count)
    column = np.ones(r.size)
    size = count
    for k in range(count):
        basis[:, k] = column
        column = x * basis[:, k]
        diagonal[k] = (w * basis[:, k]) @ column
        known = basis[:, : k + 1]
        for _ in range(2):  # twice is enough
            column = column - known @ (known.T @ (w * column))
        beside[k] = np.sqrt(w @ column**2)
        if beside[k] < _BREAKDOWN * (1.0 + abs(diagonal[k])):
            size = k + 1
            break
        column = column / beside[k]
    upper = np.diag(beside[: size - 1], 1)
    nodes, vectors = np.linalg.eigh(np.diag(diagonal[:size]) + upper + upper.T)
    at_nodes = np.zeros((size, count))  # nodes that the law does not have get no weight
    at_nodes[:, :size] = vectors * vectors[0]
    return np.append(scale * np.sinh(nodes), np.zeros(count - size)), basis[:, :size], at_nodes
