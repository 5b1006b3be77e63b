"""The map of (V2, χ) into itself and its linear response: one matrix, used twice.

Write (7)–(10) as a map of the pair (V2, χ) into itself. Its linearisation at a point, in relative
changes p_g = δV2_g/V2_g and changes x_q = δχ(κ_q), is

    x_q − Σ_p K_qp n w_p h_p² x_p − Σ_g R_qg p_g = r_q
    a_g p_g − Σ_h C_gh p_h − n Σ_q w_q h_q² R_qg x_q = s_g

with h = 1/(1+χ), R = ν²V2 + reach, and the weight side's kernel K, reach and coupling C (for
isotropic weights G²/d, U² and d(SY)², U = bY, G = bYbᵀ). In the first line ν² is the one that
enters χ, in the second the one that enters V̂2. At the solution a_g = N_g and the same equations
with (r, s) = (E0, source) give the error E0 + v and P (eqs. 13–15): Newton's matrix and the
errors' are one. Where the weights have few unknowns of their own (`Links`), x is written in these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.types import FloatArray
from .exact.dyson import matmul, solved, transposed
from .exact.weights import ExactWeights, Links, exact_weights
from .moments import Batch
from .weight_side import IsotropicWeights, weight_side


@dataclass(frozen=True)
class Point:
    """A point (V2, χ) with everything the map and its response need there."""

    batch: Batch
    v2: FloatArray  # (B, K) V2_g = tr over group g of (FᵀF + λn)⁻¹
    chi: FloatArray  # (B, Q)
    shrink: FloatArray  # (B, Q) h = 1/(1 + χ)
    noise: FloatArray  # (B, Q, K) ν²V2, as it enters χ
    felt: FloatArray  # (B, Q, K) ν²V2, as it enters V2V̂2
    weights: IsotropicWeights | ExactWeights
    demand: FloatArray  # (B, K) V2_g·(t_g + ρ_g²Λ_gg), N_g at the solution
    mapped_chi: FloatArray  # (B, Q) χ of eq. (7) for this V2 and h

    @property
    def isotropic(self) -> IsotropicWeights:
        """The weights of a batch without exact ones."""
        assert isinstance(self.weights, IsotropicWeights)
        return self.weights

    @property
    def residual(self) -> FloatArray:
        """Largest relative change of any unknown under the undamped map, (B,)."""
        weights = np.abs(self.batch.neurons / self.demand - 1.0).max(axis=1)
        nodes = np.abs((self.mapped_chi - self.chi) * self.shrink).max(axis=1)
        return np.asarray(np.maximum(weights, nodes))


def evaluate(batch: Batch, v2: FloatArray, chi: FloatArray, *, careful: bool = False) -> Point:
    """Equations (7)–(10) at one point; `careful` pays for more accurate weights."""
    shrink = 1.0 / (1.0 + chi)
    mass = batch.n[:, None] * batch.weight * shrink  # (B, Q)
    noise = batch.spread * v2[:, None, :]
    felt = noise if batch.felt is None else batch.felt * v2[:, None, :]
    weights: IsotropicWeights | ExactWeights
    if batch.exact is None:
        weights = weight_side(batch, v2, mass, careful=careful)
    else:
        own = chi[:, batch.readout_nodes :]
        weights = exact_weights(batch, batch.exact.step, v2, mass, own)
    return Point(
        batch=batch,
        v2=v2,
        chi=chi,
        shrink=shrink,
        noise=noise,
        felt=felt,
        weights=weights,
        demand=demand(batch, v2, noise_information(felt, mass), weights),
        mapped_chi=fluctuation(weights, noise),
    )


def fluctuation(weights: IsotropicWeights | ExactWeights, noise: FloatArray) -> FloatArray:
    """χ(κ) = Σ μ_gμ_h V1_gh + Σ ν_g² V2_g of (7)."""
    return np.asarray(weights.fluctuation() + noise.sum(axis=2))


def noise_information(noise: FloatArray, mass: FloatArray) -> FloatArray:
    """V2_g V̂2_g, V̂2_g = n E[ν_g²/(1+χ)] of (8)."""
    return np.asarray(np.matmul(mass[:, None, :], noise)[:, 0, :])


def demand(
    batch: Batch,
    v2: FloatArray,
    noise_part: FloatArray,
    weights: IsotropicWeights | ExactWeights,
) -> FloatArray:
    """V2_g times the denominator of (10): N_g at the solution."""
    ridge_part = (batch.n * batch.ridge)[:, None] * v2
    return np.asarray(ridge_part + noise_part + weights.degrees())


def respond(
    point: Point, r: FloatArray, s: FloatArray, *, newton: bool
) -> tuple[FloatArray, FloatArray]:
    """Solve the response equations for x (B, Q) and p (B, K).

    `newton` keeps the diagonal of the map's own linearisation, (demand)²/N; without it the
    diagonal is N, as at the solution.
    """
    neurons = point.batch.neurons
    diagonal = point.demand**2 / neurons if newton else neurons
    weights = point.weights
    if isinstance(weights, IsotropicWeights) and not weights.has_few_pairs:
        return _respond_by_nodes(point, r, s, diagonal)
    return _respond_by_links(point, weights.links(), r, s, diagonal)


def _respond_by_nodes(
    point: Point, r: FloatArray, s: FloatArray, diagonal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Dense solve in (x, p); with mirrored groups, in their parts even under (g, κ) → −(g, κ).

    Everything the solution is used for is even: χ and V2 are, and errors are averages over κ.
    """
    batch = point.batch
    q, k = batch.kappa.size, batch.g.size
    first_q, first_k = (q // 2, k // 2) if batch.mirrored else (0, 0)
    mass = batch.n[:, None] * batch.weight * point.shrink**2  # (B, Q)
    linear = point.isotropic.reach()
    reach = point.noise + linear  # R, (B, Q, K)
    kernel = point.isotropic.kernel(first_q)
    kernel *= mass[:, None, :]
    felt = ((point.felt + linear) * mass[:, :, None])[:, :, first_k:].transpose(0, 2, 1)
    felt = felt / batch.neurons[:, first_k:, None]
    coupling = point.isotropic.coupling()[:, first_k:] / batch.neurons[:, first_k:, None]
    fold = _fold if batch.mirrored else _unfolded
    top = np.concatenate([fold(kernel), fold(reach[:, first_q:])], axis=2)
    bottom = np.concatenate([fold(felt), fold(coupling)], axis=2)
    matrix = np.concatenate([top, bottom], axis=1)
    np.negative(matrix, out=matrix)
    half_q, half_k = q - first_q, k - first_k
    index = np.arange(half_q)
    matrix[:, index, index] += 1.0
    index = np.arange(half_q, half_q + half_k)
    matrix[:, index, index] += (diagonal / batch.neurons)[:, first_k:]
    if batch.mirrored:
        r, s = 0.5 * (r + r[:, ::-1]), 0.5 * (s + s[:, ::-1])
    right = np.concatenate([r, s / batch.neurons], axis=1)
    right = np.concatenate([right[:, first_q:q], right[:, q + first_k :]], axis=1)
    solution = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
    x, p = solution[:, :half_q], solution[:, half_q:]
    if batch.mirrored:
        x = np.concatenate([x[:, ::-1][:, :first_q], x], axis=1)
        p = np.concatenate([p[:, ::-1][:, :first_k], p], axis=1)
    return x, p


def _unfolded(columns: FloatArray) -> FloatArray:
    return columns


def _fold(columns: FloatArray) -> FloatArray:
    """Add to each column of the upper half its mirror image; a middle column is its own."""
    size = columns.shape[2]
    half = size // 2
    folded = columns[:, :, half:].copy()
    folded[:, :, size - 2 * half :] += columns[:, :, half - 1 :: -1] if half else 0.0
    return folded


def _respond_by_links(
    point: Point, links: Links, r: FloatArray, s: FloatArray, diagonal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same equations in the weights' own unknowns y and in p: x = r + seen·y + ν²V2 p."""
    batch = point.batch
    nodes, own, shown = batch.readout_nodes, links.felt.shape[2], links.seen.shape[2]
    further = own - (r.shape[1] - nodes)  # where those y begin that χ has nodes for
    mass = (batch.n[:, None] * batch.weight * point.shrink**2)[:, :nodes, None]
    noise, reach = point.noise[:, :nodes], point.felt[:, :nodes] + links.reach
    felt = np.concatenate([links.felt, reach / batch.neurons[:, None, :]], axis=2)
    felt = transposed(felt * mass)  # x in the equations of y and p
    matrix = -links.direct
    matrix[:, own:] /= batch.neurons[:, :, None]
    matrix[:, :, :shown] -= matmul(felt, links.seen)
    matrix[:, :, own:] -= matmul(felt, noise)
    index = np.arange(matrix.shape[2])
    matrix[:, index[:own], index[:own]] += 1.0
    matrix[:, index[own:], index[own:]] += diagonal / batch.neurons
    right = matmul(felt, r[:, :nodes, None])[:, :, 0]
    right[:, further:own] += r[:, nodes:]
    right[:, own:] += s / batch.neurons
    y, p = np.split(solved(matrix, right), [own], axis=1)
    x = matmul(links.seen, y[:, :shown, None]) + matmul(noise, p[:, :, None])
    return np.concatenate([r[:, :nodes] + x[:, :, 0], y[:, further:]], axis=1), p
