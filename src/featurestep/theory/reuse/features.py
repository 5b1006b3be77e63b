"""Features of the readout's rows: of rows that the step has seen, and of others.

The pre-activation of a neuron on a row that the step has seen contains the row itself: it is
u_gκ + ω + e_gφ0 r σ′(z), with z the one before the step and ω = c_gz + ς_gζ (54). The feature is
averaged over z here, over ζ by the activation's own averages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import NotConverged
from ...core.types import FloatArray
from ...functions.activations import PiecewiseLinear, piecewise_linear
from ...functions.nonlinearity import Nonlinearity, Rescaled
from ...functions.quadrature import normal_density, panels, trapezoid_normal
from ..exact.columns import anisotropy
from ..exact.step import SlopeMoments, Step, slope_moments
from .piecewise import BulkArgument, piece_averages
from .rows import ONE, RowClass
from .smoothing import SmoothedActivation

_SMALLEST_SPREAD = 1e-4  # of ζ: a smaller one is not told from it to 1e-8
_END, _PANELS_END = 7.6, 8.0  # of z, for activations without and with kinks
_STEEP = 6.0  # e φ0 r from which on nodes of z are closer, over ς where it is above 1
_NEGLIGIBLE = 1e-9  # probability of a node of r
_NO_WEIGHT = 1e-14  # of a node, where features are left 0
_PANEL_ORDER = 8
_AT_ONCE = 160  # nodes whose values stay in cache
_MOST_VALUES = 2e8  # of features, about a minute
_AROUND = np.array([-5.0, -1.7, 0.0, 1.7, 5.0])  # edges around a kink, in units of its width


@dataclass(frozen=True)
class RowFeatures:
    """Averages on the nodes of a class of rows, of K groups."""

    mean: FloatArray  # (M, Q, K) m_g
    slopes: FloatArray  # (M, Q, 3K) a1, a2 and φ0 e r o: ℓ of (57) over √D
    spread: FloatArray  # (M, Q, K) ν_g²
    norms: FloatArray  # (2, M, Q, K) n¹ and n² of (63)
    noise: FloatArray  # (2, M, Q, K) X^a of (65)
    on_weights: FloatArray  # (2, M, K) Z^a
    on_noise: FloatArray  # (2, M, K) Y^a
    pair: FloatArray  # (M, Q, K) φ0 e r υ of (66b)
    sample_norms: FloatArray  # (3, M, Q, K) n⁰, n², n¹ of (67)
    squares: FloatArray  # (3, M, Q, K) column of A along t² − 1, ts̃ and s̃² − 1, of (37)


@dataclass(frozen=True)
class StepNumbers:
    """Constants of the step of one problem, (K,) where they depend on the group.

    A group whose initial rows have norm a is one of unit rows with the activation σ(az) and weights
    w′/a, so that e is e_g/a², k is k_g/a, and so on.
    """

    n_step: float
    phi: float  # φ0
    d: float
    e: FloatArray
    k: FloatArray
    delta: FloatArray
    drift: FloatArray  # c_g = 1 + k_g m_1
    spread: FloatArray  # ς_g
    norm: FloatArray  # ρ_g
    shift: FloatArray  # u_g
    neurons: FloatArray
    r_moments: FloatArray  # (7,)
    norm_variance: FloatArray  # C¹¹
    sample_norm: FloatArray  # (K, K) s_gh
    anisotropy: FloatArray  # (3, 3, K) of ‖x‖², xᵀ(I + kS)x and xᵀKx along t² − 1, ts̃, s̃² − 1
    row_norm: FloatArray  # a
    sigmas: tuple[Nonlinearity, ...]  # σ(az)
    slopes: SlopeMoments  # of σ(az), (K,) each

    @classmethod
    def of(cls, step: Step, sigma: Nonlinearity) -> StepNumbers:
        """Those of the first row of a step."""
        moments = step.r_moments[0]
        phi = float(step.phi[0])
        a = step.initial_factor[0]
        rescaled = {x: sigma if x == 1.0 else Rescaled(sigma.name, sigma, x) for x in set(a)}
        sigmas = tuple(rescaled[x] for x in a)
        slopes = _slopes(sigmas)
        e, k = step.e[0] / a**2, step.k[0] / a
        return cls(
            n_step=float(step.d[0] / phi),
            phi=phi,
            d=float(step.d[0]),
            e=e,
            k=k,
            delta=step.delta[0] / a**2,
            drift=1.0 + k * moments[1],
            spread=np.abs(e) * np.sqrt(phi * moments[2] * slopes.slope_variance),
            norm=step.norm[0] / a,
            shift=step.shift[0] / a,
            neurons=step.neurons[0],
            r_moments=moments,
            norm_variance=step.norm_variance[0] / a**4,
            sample_norm=step.sample_norm[0] / np.multiply.outer(a**2, a**2),
            anisotropy=_anisotropy(step),
            row_norm=a,
            sigmas=sigmas,
            slopes=slopes,
        )


def _slopes(sigmas: tuple[Nonlinearity, ...]) -> SlopeMoments:
    """The moments of all groups, (K,) each."""
    each = [slope_moments(sigma) for sigma in sigmas]
    values: list[Any] = [
        np.array([getattr(s, name) for s in each]).T for name in SlopeMoments._fields
    ]
    return SlopeMoments(*values)


def _anisotropy(step: Step) -> FloatArray:
    """How ‖x‖², xᵀ(I + kS)x and xᵀK_gx depend on t and s̃, as (37): (3, 3, K).

    Along β⋆ and b̂, the rest of β: β⋆·x_i = t_i and b̂·x_i = s̃_i + r_i√(φ0/b_2) in S, of (61).
    """
    a = step.initial_factor[0]
    gamma, q, k = step.alignment[0], step.across[0], step.k[0] / a
    b, phi = step.r_moments[0], step.phi[0]
    seen = anisotropy(step)
    along, mixed, across = seen.along[0], seen.mixed[0, 0], seen.across[0, 0, 0]
    whole = np.array(
        [
            gamma**2 * along + 2.0 * gamma * q * mixed + q**2 * across,
            2.0 * (gamma * q * (along - across) + (q**2 - gamma**2) * mixed),
            q**2 * along - 2.0 * gamma * q * mixed + gamma**2 * across,
        ]
    )
    parts = [
        step.r_second[0, 0, 0] @ step.r[0],
        2.0 * np.sqrt(phi / b[2]) * step.r_overlaps[0, 0, 2],
        b[1] + phi * b[3] / b[2],
    ]
    own = np.array([1.0, 0.0, 1.0])[:, None] * np.ones_like(k)
    return np.stack([own, own + k * np.array(parts)[:, None], whole / a**2])


def step_features(step: StepNumbers, rows: RowClass, spacing: float) -> RowFeatures:
    """Features on rows that the step has seen (eqs. 54–56, 63, 65, 66b).

    `spacing` is that of the nodes of z.
    """
    s = step.slopes
    levels = [_levels(step, rows, g) for g in range(step.e.size)]
    _refuse_many(levels, rows, spacing)
    found = [_of_group(step, rows, g, level, spacing) for g, level in enumerate(levels)]
    table = _Averages(*np.stack(found, axis=-1))
    e, c, phi = step.e, step.drift, step.phi
    r = rows.r[:, None, None]  # (M, 1, 1)
    own = e * phi * r
    mean, slope = table.mean, table.slope
    noise_slope = own * slope  # e φ0 r a2
    old = table.with_z - c * slope - 2.0 * s.c2 * noise_slope
    spread = table.square - mean**2 - table.with_z**2 - (step.spread * slope) ** 2
    spread += -2.0 * noise_slope * table.with_h + noise_slope**2 * s.noise_variance
    correlation = table.with_h - noise_slope * s.noise_variance  # o
    first = 0.5 * table.curvature
    second = table.slope_with_z - 2.0 * c * first
    radius = 0.5 * table.with_h2 - c * second - c**2 * first
    radius += own * (table.slope_with_psi + s.c1 * slope)
    on_weights, on_noise, products = _increments(s, step, rows.r)
    linear, quadratic = 2.0 * e * c * r, e**2 * phi * r**2
    own_norm = linear * table.with_z_psi + quadratic * table.with_psi2
    own_norm += 2.0 * e * r * step.spread**2 * table.slope_with_psi
    noise = np.stack([own_norm, e * r * table.with_z_psi])
    noise -= noise_slope * products[:, :, None, :]
    norms = np.stack([radius, second, first])
    return RowFeatures(
        mean=mean,
        slopes=np.concatenate([old, slope, own * correlation], axis=-1),
        spread=np.maximum(spread, 0.0),
        norms=np.stack([first, second]),
        noise=phi * noise,
        on_weights=on_weights,
        on_noise=on_noise,
        pair=own * table.slope_with_psi,
        sample_norms=norms,
        squares=np.einsum("amqg,ajg->jmqg", norms, step.anisotropy) / step.d,
    )


def _increments(
    s: SlopeMoments, step: StepNumbers, r: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Z^a, Y^a and E[hf^a], (2, M, K): what one row adds to a neuron's norms (eq. 64)."""
    e, phi, at = step.e, step.phi, r[:, None]
    linear, quadratic = 2.0 * e * step.drift * at, e**2 * phi * at**2
    on_weights = np.stack([linear * s.z2_psi + quadratic * s.z_psi2, e * at * s.z2_psi])
    products = np.stack([linear * s.z_psi_h + quadratic * s.psi2_h, e * at * s.z_psi_h])
    return on_weights, phi * e * at * products, products


def norm_noise(step: StepNumbers) -> FloatArray:
    """C^{ab} of (65), (2, 2, K)."""
    one, mixed, _ = step.slopes.nonlinear_products
    b = step.r_moments
    e, phi = step.e, step.phi
    linear, quadratic = 2.0 * e * step.drift, e**2 * phi
    cross = phi * e * (linear * b[2] * one + quadratic * b[3] * mixed)
    return np.array([[step.norm_variance, cross], [cross, phi * e**2 * b[2] * one]])


def other_features(step: StepNumbers, kappa: FloatArray) -> RowFeatures:
    """Features on rows that the step has not seen, of (5), as a class with one node of r."""
    each = [
        sigma.averages(norm, shift * kappa, 2)
        for sigma, norm, shift in zip(step.sigmas, step.norm, step.shift, strict=True)
    ]
    mean, slope, second, spread = np.stack(each, axis=-1)[:, None]
    nothing = np.zeros_like(mean)
    both = np.stack([nothing, nothing])
    curvature = 0.5 * second
    return RowFeatures(
        mean=mean,
        slopes=np.concatenate([nothing, slope, nothing], axis=-1),
        spread=spread,
        norms=np.stack([curvature, nothing]),
        noise=both,
        on_weights=both[:, :, 0],
        on_noise=both[:, :, 0],
        pair=nothing,
        sample_norms=np.stack([nothing, nothing, curvature]),
        squares=curvature * step.anisotropy[2][:, None, None, :] / step.d,
    )


class _Averages(NamedTuple):
    """Averages of f = σ(·) of (54) over z and ζ, (M, Q) of one group or (M, Q, K) of all."""

    mean: FloatArray  # E f
    with_z: FloatArray  # E[zf]
    with_h: FloatArray  # E[hf]
    with_h2: FloatArray  # E[(z² − 1)f]
    with_z_psi: FloatArray  # E[f[zψ]_nl]
    with_psi2: FloatArray  # E[f[ψ²]_nl]
    slope: FloatArray  # E σ′(·)
    slope_with_z: FloatArray  # E[zσ′(·)]
    slope_with_psi: FloatArray  # E[ψ(z)σ′(·)]
    curvature: FloatArray  # E σ″(·)
    square: FloatArray  # E f²


def _levels(step: StepNumbers, rows: RowClass, g: int) -> FloatArray:
    """By how many factors √2 nodes of z are closer than usual at every node of r, (M,).

    Rows that hardly exist have as many as others.
    """
    own = np.abs(step.e[g] * step.phi * rows.r)
    if step.sigmas[g].kinks:
        return np.zeros_like(own)
    likely = np.abs(rows.by_residual[:, ONE, ONE]) > _NEGLIGIBLE
    steep = np.minimum(own, own[likely].max()) / (_STEEP * max(1.0, step.spread[g]))
    return np.asarray(np.ceil(2.0 * np.log2(np.maximum(steep, 1.0))))


def _refuse_many(levels: Sequence[FloatArray], rows: RowClass, spacing: float) -> None:
    """Refuse tables that would take about a minute or more."""
    values = sum(float((2.0 ** (0.5 * level)).sum()) for level in levels)
    values *= rows.kappa.size * 2.0 * _END / spacing
    if values > _MOST_VALUES:
        raise NotConverged(
            f"features on the step's rows take {values:.1g} values of their own part of the step "
            f"(at most {_MOST_VALUES:.0g}): take more rows in the step, or a smaller step"
        )


def _of_group(
    step: StepNumbers, rows: RowClass, g: int, level: FloatArray, spacing: float
) -> FloatArray:
    """The averages of one group, (11, M, Q)."""
    sigma, width = step.sigmas[g], max(step.spread[g], _SMALLEST_SPREAD)
    linear = piecewise_linear(sigma)
    if linear is not None:
        return _of_pieces(step, rows, g, linear, width)
    own = step.e[g] * step.phi * rows.r
    slopes = sigma.derivative(np.linspace(-_END, _END, 400))
    end = np.abs(step.shift[g] * rows.kappa).max() + _END * abs(step.drift[g])
    end += 1.01 * np.abs(own).max() * np.abs(slopes).max() + 1.0
    smoothed = SmoothedActivation(sigma, width, -end, end)
    found = np.zeros((len(_Averages._fields), rows.r.size, rows.kappa.size))
    weighty = np.abs(rows.moments).max(axis=(2, 3)) > _NO_WEIGHT
    for each in np.unique(level):
        m, q = np.nonzero(weighty & (level == each)[:, None])
        nearest = spacing / 2.0 ** (0.5 * each)
        for start in range(0, m.size, _AT_ONCE):
            at = m[start : start + _AT_ONCE], q[start : start + _AT_ONCE]
            place = step.shift[g] * rows.kappa[at[1]]
            found[:, *at] = _of_nodes(step, g, smoothed, own[at[0]], place, nearest)
    return found


def _of_pieces(
    step: StepNumbers, rows: RowClass, g: int, sigma: PiecewiseLinear, width: float
) -> FloatArray:
    """The averages of one group whose activation is linear between kinks, (11, M, Q)."""
    s, place = slope_moments(step.sigmas[g]), step.shift[g] * rows.kappa
    own, bulk = step.e[g] * step.phi * rows.r, BulkArgument(step.drift[g], width)
    found = np.zeros((len(_Averages._fields), rows.r.size, rows.kappa.size))
    for piece in piece_averages(sigma, place, own, bulk):
        psi = piece.slope - s.c1
        mean, with_z, with_z2 = piece.value
        slope, slope_with_z = piece.tilt
        of_piece = _Averages(
            mean=mean,
            with_z=with_z,
            with_h=psi * mean - 2.0 * s.c2 * with_z,
            with_h2=with_z2 - mean,
            with_z_psi=(psi - s.z2_psi) * with_z - 2.0 * s.c2 * mean,
            with_psi2=(psi**2 - s.slope_variance) * mean - s.z_psi2 * with_z,
            slope=slope,
            slope_with_z=slope_with_z,
            slope_with_psi=psi * slope,
            curvature=piece.bend,
            square=piece.square,
        )
        for total, part in zip(found, of_piece, strict=True):
            total += part
    return found


def _of_nodes(
    step: StepNumbers,
    g: int,
    smoothed: SmoothedActivation,
    own: FloatArray,
    place: FloatArray,
    spacing: float,
) -> FloatArray:
    """The averages of one group at nodes with e φ0 r = `own` and uκ = `place`, (P,): (11, P)."""
    sigma, width, c = smoothed.sigma, smoothed.width, step.drift[g]
    s = slope_moments(sigma)
    own, place = own[:, None], place[:, None]
    if sigma.kinks:
        edges = np.linspace(-_PANELS_END, _PANELS_END, 1 + round(2.0 / spacing))
        z, w = _panels_around_kinks(sigma, edges, place, own, c, width)
    else:
        z, w = trapezoid_normal(_END, spacing)
    slope = sigma.derivative(z)
    psi = slope - s.c1
    h = psi - 2.0 * s.c2 * z
    first = z * psi - 2.0 * s.c2 - s.z2_psi * z
    second = psi**2 - s.slope_variance - s.z_psi2 * z
    basis = np.stack([np.ones_like(z), z, h, z**2 - 1.0, first, second], axis=-1) * w[..., None]
    tilted = np.stack([np.ones_like(z), z, psi], axis=-1) * w[..., None]
    x = place + c * z + own * slope
    value, tilt, bend, spread = smoothed(x, np.broadcast_to(w, x.shape))
    square = value**2 + (width * tilt) ** 2 + spread
    parts = [_product(value, basis), _product(tilt, tilted)]
    parts += [_product(bend, w[..., None]), _product(square, w[..., None])]
    return np.asarray(np.concatenate(parts, axis=-1).T)


def _product(values: FloatArray, functions: FloatArray) -> FloatArray:
    """Σ_z values (P, Z) × functions (Z, F) or (P, Z, F): (P, F)."""
    if functions.ndim == 2:
        return np.asarray(values @ functions)
    return np.asarray(np.matmul(values[..., None, :], functions)[..., 0, :])


def _panels_around_kinks(
    sigma: Nonlinearity,
    edges: FloatArray,
    place: FloatArray,
    own: FloatArray,
    c: float,
    width: float,
) -> tuple[FloatArray, FloatArray]:
    """Nodes of z and weights, (P, Z): cut at the kinks, dense where the feature has one.

    Between two kinks of σ the slope σ′(z) hardly varies: with it, place + cz + own·σ′(z) is at a
    kink at one z, and ζ smooths the feature there over width/c.
    """
    kinks = np.array(sigma.kinks)
    middles = np.concatenate([[kinks[0] - 1.0], 0.5 * (kinks[1:] + kinks[:-1]), [kinks[-1] + 1.0]])
    drift = np.copysign(max(abs(c), 1e-3), c)
    slopes = np.unique(sigma.derivative(middles))
    reached = place + own * slopes  # (P, slopes)
    at = ((kinks[:, None] - reached[:, None, :]) / drift).reshape(len(reached), -1)
    spread = min(width / abs(drift), 2.0)
    around = (at[..., None] + spread * _AROUND).reshape(len(reached), -1)
    fixed = np.unique(np.concatenate([edges, kinks]))
    fixed = np.broadcast_to(fixed, (len(reached), fixed.size))
    edges = np.concatenate([fixed, np.clip(around, edges[0], edges[-1])], axis=-1)
    z, w = panels(np.sort(edges, axis=-1), _PANEL_ORDER)
    return z, w * normal_density(z)
