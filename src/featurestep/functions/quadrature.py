"""Quadrature rules, as nodes and weights: for the normal law, readout laws and given measures.

Nodes of a *stretched* rule are dense near given centres: they are those of a standard rule in
x(κ) = κ/widest + Σ asinh((κ − centre)/scale), a smooth map, so that the rule keeps its accuracy
for functions that vary at `scale` near the centres and slowly elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..core.types import FloatArray, special
from .roots import find_root

Rule = tuple[FloatArray, FloatArray]  # nodes and weights
Centres = tuple[tuple[float, float], ...]  # (centre, scale) of a stretched rule
# (centre, width, height) of a crowd of nodes: near the centre, a node's number in the rule, they
# are 1 + height/(1 + (distance/width)²) times as dense.
Crowds = tuple[tuple[float, float, float], ...]
GAUSS_HERMITE_MAX = 200  # nodes; NumPy's weights overflow not far beyond
_FINE_COUNT = 120  # Gauss nodes that stand for a continuous law as a discrete measure
_FINE_COUNT_LIMIT = 0.5  # largest `rate` that they resolve

# Of the truncated normal law.
_EXPECTED_BEYOND = 0.5  # expected number of samples beyond the end of the rule
_EXTRA_NODES = 11
_HIGHEST_MATCHED = 3  # moments up to z⁶ are those of the full law where positive weights allow it
_LOWEST_ADDED = 5  # lowest power of z² that is added to the density, in steps of 2


def normal_density(x: FloatArray) -> FloatArray:
    """φ(x), the standard normal density."""
    return np.asarray(np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi))


_CELLS_PER_UNIT = 256  # of the table of Φ
LARGEST_NORMAL = 9  # beyond, Φ is 0 or 1 to 1e-18


@lru_cache(maxsize=1)
def _normal_table() -> FloatArray:
    """Φ between ±`LARGEST_NORMAL`."""
    last = LARGEST_NORMAL * _CELLS_PER_UNIT
    return np.asarray(special.ndtr(np.arange(-last, last + 1) / _CELLS_PER_UNIT))


def normal_law(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Φ(x) and φ(x), to 1e-15: for many x in half the time of SciPy's function.

    Taylor's series to the next x of a table, in place.
    """
    density = np.clip(x, -LARGEST_NORMAL, LARGEST_NORMAL)
    step = density * _CELLS_PER_UNIT
    nearest = np.rint(step)
    step -= nearest
    step /= _CELLS_PER_UNIT
    index = nearest.astype(np.intp)
    index += LARGEST_NORMAL * _CELLS_PER_UNIT
    found = _normal_table().take(index, mode="clip")  # also where x is not a number
    # Φ(x) − Φ(x − h) = φh(1 + w/2 + (w² − h²)/6 + (w³ − 3wh²)/24), w = xh
    w = np.multiply(density, step)
    square = np.multiply(step, step, out=nearest)
    square *= w / 8.0 + 1.0 / 6.0
    series = w / 24.0
    series += 1.0 / 6.0
    series *= w
    series += 0.5
    series *= w
    series += 1.0
    series -= square
    series *= step
    density *= density
    density *= -0.5
    np.exp(density, out=density)
    density *= 1.0 / np.sqrt(2.0 * np.pi)
    series *= density
    found += series
    return found, density


def normal_quantile(probability: float) -> float:
    """The x with Φ(x) = probability, Φ the standard normal distribution function."""
    return float(special.ndtri(probability))


@lru_cache(maxsize=64)
def gauss_hermite(count: int) -> Rule:
    """Gauss rule for E f(z), z ~ N(0,1), exact for polynomials of degree 2·count − 1."""
    if not 1 <= count <= GAUSS_HERMITE_MAX:
        raise ValueError(f"count must be in 1..{GAUSS_HERMITE_MAX}; got {count}")
    x, w = np.polynomial.hermite_e.hermegauss(count)
    return _frozen(x, w / w.sum())


@lru_cache(maxsize=64)
def gauss_legendre(count: int) -> Rule:
    """Gauss rule for the integral over [−1, 1]."""
    return _frozen(*np.polynomial.legendre.leggauss(count))


@lru_cache(maxsize=64)
def trapezoid_normal(half_width: float, spacing: float, shift: float = 0.0) -> Rule:
    """Equispaced rule for E f(z), z ~ N(0,1): converges fast for f analytic near the real line.

    The nodes cover [−half_width, half_width]; the middle one is at shift·spacing.
    """
    steps = int(np.ceil(half_width / spacing))
    z = spacing * (np.arange(-steps, steps + 1, dtype=np.float64) + shift)
    w = normal_density(z)
    return _frozen(z, w / w.sum())


def panels(breaks: FloatArray, order: int) -> Rule:
    """Gauss rules of `order` nodes on every interval between breaks (…, B): (…, (B − 1)·order)."""
    x, w = gauss_legendre(order)
    middle = 0.5 * (breaks[..., 1:] + breaks[..., :-1])[..., None]
    half = 0.5 * (breaks[..., 1:] - breaks[..., :-1])[..., None]
    shape = (*breaks.shape[:-1], -1)
    return (middle + half * x).reshape(shape), (half * w).reshape(shape)


@dataclass(frozen=True)
class GaussRule:
    """The Gauss rule with M nodes of a discrete measure on P points."""

    nodes: FloatArray  # (M,) ascending
    weights: FloatArray  # (M,)
    root: FloatArray  # (P,) √ of the measure's weights
    polynomials: FloatArray  # (M, P) √weight × polynomial orthonormal for the rule, at the points
    weighted: FloatArray  # (M, M) weight × polynomial, at the nodes

    def weights_for(self, measure: FloatArray) -> FloatArray:
        """Weights at the same nodes for a measure that has weight where this one has (P,).

        Exact for degree M − 1: f is replaced by the polynomial through its values at the nodes.
        """
        relative = np.divide(measure, self.root, out=np.zeros_like(measure), where=self.root > 0.0)
        return np.asarray((self.polynomials @ relative) @ self.weighted)


def gauss_from_measure(
    x: FloatArray,
    w: FloatArray,
    count: int,
    *,
    ends: tuple[float, float] | None = None,
    breakdown: float = 1e-13,
) -> GaussRule:
    """Nodes and weights with Σ_m W_m f(X_m) = Σ_i w_i f(x_i) for f of degree 2·count − 1.

    x, w: points and weights ≥ 0, (P,). With two `ends` these are nodes (Lobatto), and the degree
    is less by two. A measure on fewer points than `count`, told by an off-diagonal element below
    `breakdown`·max|x|, gets as many nodes as it has points.
    Lanczos' method with each polynomial made orthogonal to all before it, twice: the recurrence
    alone loses orthogonality to rounding.
    """
    root, total = np.sqrt(w), w.sum()
    basis = np.empty((count, x.size))
    diagonal, beside = np.zeros(count), np.zeros(count)  # of the Jacobi matrix
    following = root / np.sqrt(total)
    for k in range(count):
        basis[k] = following
        following = x * basis[k]
        diagonal[k] = basis[k] @ following
        known = basis[: k + 1]
        for _ in range(2):
            following = following - (known @ following) @ known
        beside[k] = np.sqrt(following @ following)
        if beside[k] <= breakdown * np.abs(x).max():
            count = k + 1
            break
        following = following / beside[k]
    basis, diagonal, beside = basis[:count], diagonal[:count], beside[: count - 1]
    if ends is not None:
        basis[-1] *= beside[-1]
        diagonal[-1], beside[-1] = _lobatto(diagonal, beside, ends)
        basis[-1] /= beside[-1]
    upper = np.diag(beside, 1)
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + upper + upper.T)
    weights = total * vectors[0] ** 2
    return GaussRule(nodes, weights, root, basis, np.sqrt(total) * vectors * vectors[0])


def _lobatto(
    diagonal: FloatArray, beside: FloatArray, ends: tuple[float, float]
) -> tuple[float, float]:
    """The last elements α, β of a Jacobi matrix that has two given eigenvalues e.

    With p_{n−2} and q = β p_{n−1} at e: (e − α) q = β² p_{n−2}.
    """
    e = np.array(ends)
    before, here = np.zeros(2), np.ones(2)  # p_{k−1} and p_k
    for k in range(diagonal.size - 1):
        q = (e - diagonal[k]) * here - (beside[k - 1] * before if k else 0.0)
        if k < diagonal.size - 2:
            before, here = here, q / beside[k]
    alpha, square = np.linalg.solve(np.stack([q, here], axis=1), e * q)
    return float(alpha), float(np.sqrt(square))


def stretch(kappa: FloatArray, centres: Centres, widest: float) -> tuple[FloatArray, FloatArray]:
    """x(κ) of a stretched rule, and dx/dκ."""
    x, slope = kappa / widest, np.full(np.shape(kappa), 1.0 / widest)
    for centre, scale in centres:
        x = x + np.arcsinh((kappa - centre) / scale)
        slope = slope + 1.0 / np.hypot(scale, kappa - centre)
    return x, slope


def _unstretch(x: FloatArray, centres: Centres, widest: float, bound: float) -> FloatArray:
    """κ(x), the inverse, between −2·bound and 2·bound."""
    end = np.copysign(2.0 * bound, x)  # so that nodes for ±x are ±κ to the last digit
    return find_root(lambda kappa: stretch(kappa, centres, widest)[0] - x, -end, end)


@lru_cache(maxsize=512)
def stretched_normal(
    centres: Centres, widest: float, spacing: float, half_width: float, crowds: Crowds = ()
) -> Rule:
    """Stretched equispaced rule for E f(κ), κ ~ N(0,1), over [−half_width, half_width].

    spacing: of the nodes, in x. With `crowds` nodes are closer near some of them.
    """

    def number(kappa: FloatArray) -> tuple[FloatArray, FloatArray]:
        x, slope = stretch(kappa, centres, widest)
        found = x / spacing
        for centre, width, height in crowds:
            found = found + height * width * np.arctan((x / spacing - centre) / width)
        return found, slope / spacing * crowding(x / spacing, crowds)

    ends = number(np.array([-half_width, half_width]))[0]
    numbers = np.arange(np.floor(ends[0]), np.ceil(ends[1]) + 1, dtype=np.float64)
    far = np.copysign(2.0 * (half_width + widest), numbers)  # so that ±κ agree to the last digit
    points = find_root(lambda kappa: number(kappa)[0] - numbers, -far, far)
    w = normal_density(points) / number(points)[1]
    return _frozen(points, w / w.sum())


def crowding(number: FloatArray, crowds: Crowds) -> FloatArray:
    """How many times denser nodes are near a node of such a number, by their crowds."""
    found = np.ones(np.shape(number))
    for centre, width, height in crowds:
        found = found + height / (1.0 + ((number - centre) / width) ** 2)
    return found


def stretched_interval(end: float, count: int, scale: float, widest: float) -> Rule:
    """Stretched Gauss rule for the integral over [−end, end], dense near 0."""
    centres = ((0.0, scale),)
    top = float(stretch(np.array(end), centres, widest)[0])
    x, w = gauss_legendre(count)
    points = _unstretch(top * x, centres, widest, end)
    return points, top * w / stretch(points, centres, widest)[1]


@lru_cache(maxsize=512)
def stretched_uniform(scale: float, widest: float, spacing: float, extra: int = 27) -> Rule:
    """Stretched Gauss rule of the uniform law on [−√3, √3], dense near 0.

    Nodes are about `spacing` apart in x, and `extra` more: Gauss nodes crowd at the ends.
    """
    end = float(np.sqrt(3.0))
    top = float(stretch(np.array(end), ((0.0, scale),), widest)[0])
    points, w = stretched_interval(end, 2 * int(np.ceil(top / spacing)) + extra, scale, widest)
    return _frozen(points, w / w.sum())


@lru_cache(maxsize=64)
def gauss_law(law: str, count: int) -> Rule:
    """Gauss rule of a continuous readout law, `gaussian` or `uniform`, with E g² = 1."""
    if law == "gaussian":
        return gauss_hermite(count)
    x, w = gauss_legendre(count)
    return _frozen(np.sqrt(3.0) * x, 0.5 * w)


def _fine_law(law: str, rate: float) -> Rule:
    """A continuous law as a discrete measure, for functions that saturate beyond |g| = 1/rate."""
    if rate < _FINE_COUNT_LIMIT:
        return gauss_law(law, _FINE_COUNT)
    if law == "uniform":
        return stretched_uniform(0.5 / rate, 1.0, 0.12)
    return stretched_normal(((0.0, 0.5 / rate),), 1.0, 0.12, 9.5)


@lru_cache(maxsize=64)
def saturating_gauss_law(law: str, count: int, rate: float, end: float | None = None) -> Rule:
    """Rule of a continuous readout law for functions of g that saturate beyond |g| = 1/rate.

    A Gauss rule in t = g/√(1 + (rate·g)²), in which such functions are close to polynomials. With
    an `end`, ±end are nodes (Lobatto).
    """
    g, w = _fine_law(law, rate)
    t = g / np.sqrt(1.0 + (rate * g) ** 2)
    last = None if end is None else end / np.sqrt(1.0 + (rate * end) ** 2)
    rule = gauss_from_measure(t, w, count, ends=None if last is None else (-last, last))
    nodes = 0.5 * (rule.nodes - rule.nodes[::-1])  # the law is even, so are they
    weights = 0.5 * (rule.weights + rule.weights[::-1])
    return _frozen(nodes / np.sqrt(1.0 - (rate * nodes) ** 2), weights)


@lru_cache(maxsize=64)
def split_law(law: str, count: int, bend: float) -> Rule:
    """The same for functions of g that are smooth on either side of 0 only, `count` nodes on each.

    Functions of |g| would slow the convergence of a rule for all g down to powers of its size.
    """
    end = float(np.sqrt(3.0)) if law == "uniform" else 9.6
    g, w = panels(np.linspace(0.0, end, 25), 16)
    w = w * normal_density(g) if law == "gaussian" else w
    rule = gauss_from_measure(g / np.sqrt(1.0 + (bend * g) ** 2), w / w.sum(), count)
    nodes = rule.nodes / np.sqrt(1.0 - (bend * rule.nodes) ** 2)
    return _frozen(
        np.concatenate([-nodes[::-1], nodes]),
        0.5 * np.concatenate([rule.weights[::-1], rule.weights]),
    )


def largest_expected(count: float) -> float:
    """The size that `_EXPECTED_BEYOND` of `count` normal variables are expected to exceed."""
    return -normal_quantile(0.5 * _EXPECTED_BEYOND / max(count, 2.0))


def truncated_normal_size(end: float, scale: float, widest: float, spacing: float) -> int:
    """The number of nodes of `truncated_normal`."""
    top = end / widest + math.asinh(end / scale)
    return 2 * math.ceil(0.5 * (top / spacing + _EXTRA_NODES))


@lru_cache(maxsize=256)
def truncated_normal(end: float, scale: float, widest: float, spacing: float) -> Rule:
    """Stretched Gauss rule of the normal law truncated to |z| ≤ end, dense near 0.

    The density is raised smoothly near the ends, so that the low moments are those of the full law.
    """
    count = truncated_normal_size(end, scale, widest, spacing)
    points, length = stretched_interval(end, count, scale, widest)
    w = length * _raised_density(points, end, _added_to_density(end))
    return _frozen(points, w / w.sum())


def _raised_density(z: FloatArray, end: float, added: FloatArray) -> FloatArray:
    """φ(z) + Σ_k added_k (z/end)^(2·powers_k)."""
    powers = _LOWEST_ADDED + 2 * np.arange(added.size)
    return np.asarray(normal_density(z) + ((z[:, None] / end) ** 2) ** powers @ added)


@lru_cache(maxsize=256)
def _added_to_density(end: float) -> FloatArray:
    """`added` of `_raised_density`: for as many moments as leave the density positive."""
    z, length = stretched_interval(end, 120, 1.0, 1.0)
    t = (z / end) ** 2
    normal = normal_density(z)
    for highest in range(_HIGHEST_MATCHED, -1, -1):
        powers = np.arange(highest + 1)
        target = np.cumprod(np.concatenate([[1.0], 2.0 * powers[1:] - 1.0])) / end ** (2 * powers)
        moments = length * t ** powers[:, None]
        shapes = t[:, None] ** (_LOWEST_ADDED + 2 * powers)
        added = np.linalg.solve(moments @ shapes, target - moments @ normal)
        if np.all(_raised_density(z, end, added) > 0.0):
            return np.asarray(added)
    return np.zeros(0)


def _frozen(x: FloatArray, w: FloatArray) -> Rule:
    x.setflags(write=False)
    w.setflags(write=False)
    return x, w
