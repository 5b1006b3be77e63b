"""The published limits (section 4): errors as n → ∞ in each regime ℓ of the step exponent.

The bulk is then that of the untrained network, whose traces m_1 and m_2 solve one scalar equation
(section 3). The functions of κ that the spikes carry enter the regression (11) without penalty:

- as published, the powers κ, …, κ^ℓ;
- with norm growth, what `predict` converges to. The step also changes the norm of what is left of
  a neuron, ρ² = 1 + 2Dg + Eg², with D and √E of the order of the shift u. The mean feature
  E σ(ρz + ugκ) = Σ_k c_k He_k(ugκ; 1 − ρ²) then has, at order g^p, a polynomial that is κ^p plus
  lower powers. The limit differs where those are not learned anyway (the constant, for a centred
  activation); E vanishes for n_step ≫ d, D when E r = 0 or c_2 = 0.

Gains over the untrained network come from that regression, for every ℓ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from ..core.errors import InvalidProblem
from ..core.problem import Grid, Problem
from ..core.results import GridResult, Note, Progress, Result, over_grid, verb
from ..core.spiked import spiked_weights
from ..core.types import FloatArray
from ..functions.nonlinearity import Nonlinearity, coefficients
from ..functions.quadrature import gauss_hermite, gauss_law
from ..functions.roots import bracket_root, find_root
from .labels import along_first, label_moments
from .predict import solve
from .prediction import answered
from .resolution import finite_groups, target_nodes

MAX_DEGREE = 30
_FAR = 10**13  # the largest size at which the maximal step's limit is evaluated
_ANGLES = 200  # nodes of the Marchenko–Pastur law
Spikes = dict[int, FloatArray]  # power of g → coefficients of 1, κ, κ², …
Degree = int | Literal["maximal"] | None


@dataclass(frozen=True, eq=False, repr=False)
class Limit(Result):
    """Errors as n → ∞ at fixed ratios, and the gains over the untrained network."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "degree": "ℓ, the regime of the step exponent",
        "powers": "powers κ^k that enter the fit (with norm growth: leading powers)",
        "test_error": "test error as n → ∞ at fixed φ and ψ, noise included",
        "train_loss": "ridge objective at its minimum, as n → ∞",
        "test_gain": "what the step takes off the untrained network's test error",
        "train_gain": "what the step takes off the untrained network's training loss",
        "m1": "m_1 = (N/n) tr R, R = (F0F0ᵀ + λn)⁻¹, of the untrained network",
        "m2": "m_2 = (N/n) tr(RXXᵀ)/d",
        "dm1": "∂m_1/∂λ",
        "dm2": "∂m_2/∂λ",
    }
    COLUMNS: ClassVar[tuple[str, ...]] = (
        *("degree", "powers", "test_error", "train_loss", "test_gain", "train_gain"),
    )

    problem: Problem
    degree: int | None  # None at the maximal step, where every degree is learned
    powers: tuple[int, ...]  # of the learned direction, that enter the fit (leading ones)
    test_error: float
    train_loss: float
    test_gain: float
    train_gain: float
    m1: float
    m2: float
    dm1: float
    dm2: float

    @property
    def notes(self) -> tuple[Note, ...]:
        """None: nothing is approximated as n → ∞, and `norm_growth` says which limit it is."""
        return ()


@verb()
def limit(
    problem: Problem | Grid,
    degree: Degree = None,
    *,
    norm_growth: bool = False,
    progress: Progress | None = None,
) -> Limit | GridResult:
    """Limiting train loss and test error of regime ℓ, or of the maximal step (exponent 1/2).

    For one problem or every point of a grid.

    Without `degree` the regime is that of the problem's own step exponent; at an end of an
    interval there is none, and the error says so. `norm_growth` adds what the published limit
    leaves out, the change of the neurons' remaining norms: `predict` converges to that limit.
    The two agree for n_step ≫ d when E r = 0 or c_2 = 0, and always in regime 1 when E r = 0.

    >>> p = Problem(n=2000, d=1000, width=1500, step_exponent=0.3, ridge=0.01, target="H1 + H2")
    >>> limit(p).degree
    2
    """
    asked = checked_degree(degree)
    if isinstance(problem, Grid):
        one = partial(limit, degree=degree, norm_growth=norm_growth)
        return over_grid(Limit, problem, one, progress)
    chosen = _own_degree(problem) if degree is None else asked
    seen = along_first(problem)
    base = _untrained_limit(seen)
    spikes: Spikes = {}
    if chosen is None:
        errors = _maximal_limit(problem)
    else:
        spikes = spike_functions(seen, chosen, norm_growth=norm_growth)
        errors = _spiked_limit(seen, spikes)
    return Limit(
        problem=problem,
        degree=chosen,
        powers=tuple(spikes),
        test_error=errors.test_error,
        train_loss=errors.train_loss,
        test_gain=base.test_error - errors.test_error,
        train_gain=base.train_loss - errors.train_loss,
        **vars(traces(problem)),
    )


def _own_degree(problem: Problem) -> int | None:
    """The degree of the problem's own regime; None at the maximal step."""
    regime = problem.regime
    if regime.degree is None and problem.step_exponent != 0.5:
        rule = f"must be given (a whole number or 'maximal'), because {regime.text}"
        raise InvalidProblem("degree", rule, None)
    return regime.degree


def checked_degree(degree: object) -> int | None:
    """A degree that was given; None for 'maximal' or none."""
    if degree is None or degree == "maximal":
        return None
    rule = f"must be a whole number from 0 to {MAX_DEGREE}, or 'maximal'"
    if isinstance(degree, bool) or not isinstance(degree, (int, np.integer)):
        raise InvalidProblem("degree", rule, degree)
    if not 0 <= degree <= MAX_DEGREE:
        raise InvalidProblem("degree", rule, degree)
    return int(degree)


class LimitErrors(NamedTuple):
    """Test error and training loss in the limit."""

    test_error: float
    train_loss: float


@lru_cache(maxsize=8)
def _untrained_limit(problem: Problem) -> LimitErrors:
    """The untrained network's errors; kept, because all regimes of a problem share them."""
    return _spiked_limit(problem, spike_functions(problem, 0))


def _spiked_limit(problem: Problem, spikes: Spikes) -> LimitErrors:
    """The untrained network with the spikes' functions of κ as regressors without penalty (11).

    Samples are exchangeable at step 0. What is left of the labels costs (n/N)λm_1 of its square in
    the training loss and −(N/n)m_1′/m_1² in the test error (the prime is ∂/∂λ), and its part along
    a direction of the input, which the features' linear parts fit too, m_2 in place of m_1. Rows of
    W0 with Gaussian norms fit a constant too, in the same way with m_3 (eq. 40 as u → 0).
    """
    weights = spiked_weights(problem)
    kappa, weight = target_nodes(problem, weights, degree=max(spikes, default=0))
    labels = label_moments(problem.star, np.array([weights.alignment]), kappa)
    m, slopes = _shrinkage(problem)
    # Functions of κ in units of √m_1 times the weight of their parts along 1, κ and all others.
    along = np.stack([np.ones_like(kappa), kappa])
    relative = np.sqrt(np.array([m[2], m[1]]) / m[0]) - 1.0

    def shrunk(values: FloatArray) -> FloatArray:
        parts = (along * weight) @ values  # (2, …)
        whole = values + along.T @ (relative[:, None] * parts)
        return np.asarray(np.sqrt(weight)[:, None] * whole)

    design = np.zeros((kappa.size, len(spikes)))
    for column, polynomial in zip(design.T, spikes.values(), strict=True):
        column[:] = np.polynomial.polynomial.polyval(kappa, polynomial)
        column /= np.sqrt(weight @ column**2)
    mean = labels.mean[0]
    fit = np.linalg.lstsq(shrunk(design), shrunk(mean[:, None])[:, 0], rcond=None)[0]
    left = mean - design @ fit
    constant, line = (along * weight) @ left
    beside = labels.linear[0, 0]
    across = float(weight @ beside)
    total = weight @ (left**2 + beside**2 + labels.rest[0]) + problem.noise_std**2
    linear = line**2 + across**2
    parts = np.array([total - linear - constant**2, linear, constant**2])
    ratio = problem.width / problem.n
    return LimitErrors(
        test_error=float(-ratio * (parts @ slopes) / m[0] ** 2),
        train_loss=float(problem.ridge / ratio * (parts @ m)),
    )


def _shrinkage(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """m_1, m_2, m_3 of the untrained network and their derivatives by λ.

    m_3 is that of a constant: m_1, or m_1/(1 + 2(c_2/c_1)²(m_1/m_2 − 1)) for Gaussian rows of W0.
    """
    found = traces(problem)
    m1, m2, dm1, dm2 = found.m1, found.m2, found.dm1, found.dm2
    c = coefficients(problem.sigma, 2)
    if problem.initial != "gaussian" or c[1] == 0.0:  # with c_1 = 0 norms of W0 are not seen
        return np.array([m1, m2, m1]), np.array([dm1, dm2, dm1])
    rho = 2.0 * (float(c[2]) / float(c[1])) ** 2
    top, below = m1 * m2, m2 + rho * (m1 - m2)
    change = (dm1 * m2 + m1 * dm2) - top / below * (dm2 + rho * (dm1 - dm2))
    return np.array([m1, m2, top / below]), np.array([dm1, dm2, change / below])


def _maximal_limit(problem: Problem) -> LimitErrors:
    """The limit at fixed η/√N: the engine at sizes where the penalty on A has vanished."""
    sizes = {name: getattr(problem, name) for name in ("n", "d", "width", "n_step")}
    factor = max(1, _FAR // max(sizes.values()))
    larger = {name: size * factor for name, size in sizes.items()}
    (outcome,) = solve([problem.replace(step_size=problem.step_size * factor**0.5, **larger)])
    found = answered(outcome)
    return LimitErrors(found.test_error, found.train_loss)


def learned_powers(problem: Problem, degree: int) -> tuple[int, ...]:
    """Powers κ^k that a spike carries in regime ℓ: c_k ≠ 0 and g^k new (section 4).

    k = 0 is among them for an uncentred activation: its mean is a spike from the start.
    """
    c = coefficients(problem.sigma, degree)
    candidates = [k for k in range(degree + 1) if c[k] != 0.0]
    return tuple(problem.law.distinct_powers(candidates))


def spike_functions(problem: Problem, degree: int, *, norm_growth: bool = False) -> Spikes:
    """Polynomials of κ that the spikes of regime ℓ carry, by their power of g (section 4).

    As published they are the powers κ^k; with norm growth the leading polynomial at each order of
    g, in units of the shift.
    """
    weights = spiked_weights(problem)
    if not norm_growth or weights.unit_shift == 0.0:
        highest = 0 if norm_growth else degree
        return {k: np.eye(k + 1)[k] for k in learned_powers(problem, highest)}
    drift = weights.unit_drift / weights.unit_shift
    growth = drift**2 + weights.unit_growth / weights.unit_shift**2
    c = coefficients(problem.sigma, 2 * degree)
    found = {p: _order_of_mean(p, c, drift, growth) for p in range(degree + 1)}
    present = [p for p, polynomial in found.items() if np.any(polynomial)]
    return {p: found[p] for p in problem.law.distinct_powers(present)}


def _order_of_mean(p: int, c: FloatArray, drift: float, growth: float) -> FloatArray:
    """Coefficient of g^p in Σ_k c_k He_k(gκ; −s), s = 2·drift·g + growth·g², in units of u.

    He_k(t; −s) = Σ_j k!/(j!(k−2j)!2^j) t^{k−2j} s^j, and g^p comes from k − j + i = p with i
    factors growth·g² among the j.
    """
    out = np.zeros(p + 1)
    for k in range(min(2 * p, c.size - 1) + 1):
        for j in range(k // 2 + 1):
            i = p - k + j
            if 0 <= i <= j:
                count = math.factorial(k) / (math.factorial(j) * math.factorial(k - 2 * j) * 2.0**j)
                turns = math.comb(j, i) * (2.0 * drift) ** (j - i) * growth**i
                out[k - 2 * j] += c[k] * count * turns
    return out


def linear_and_rest(sigma: Nonlinearity) -> tuple[float, float]:
    """c_1² and c_{>1}² = Eσ² − c_0² − c_1²: the features' linear part and all beyond it."""
    c = coefficients(sigma, 1)
    linear = float(c[1]) ** 2
    rest = max(sigma.second_moment - float(c[0]) ** 2 - linear, 0.0)
    return linear, rest if sigma.slope_variance else 0.0


@dataclass(frozen=True)
class Traces:
    """(m_1, m_2) = (N/n)(tr R, tr(RXXᵀ)/d), R = (F0F0ᵀ + λn)⁻¹, and their derivatives in λ."""

    m1: float
    m2: float
    dm1: float
    dm2: float


def traces(problem: Problem) -> Traces:
    """m_1, m_2 of the untrained network, by the scalar equation of section 3.

    Independent of the engine. The derivatives in λ are those of the implicit function.
    """
    linear, rest = linear_and_rest(problem.sigma)
    ratio, phi, lam = problem.width / problem.n, problem.phi, problem.ridge  # N/n, φ, λ

    def parts(log: float) -> tuple[float, float, float, float]:
        """δ, t_1, t_2 and B; the unknown is δ for N ≤ n and λt_1 for N > n, so nothing cancels."""
        if ratio > 1.0:
            share = float(np.exp(log))  # λ t_1
            delta, t1 = (1.0 - share) / (ratio - 1.0 + share), share / lam
        else:
            delta = float(np.exp(log))
            t1 = (1.0 - ratio * delta / (1.0 + delta)) / lam
        b = ratio * linear / ((1.0 + delta) * phi)
        return delta, t1, t1 / (1.0 + b * t1), b

    def gap(log: float) -> float:
        """Increasing in log for N > n, decreasing for N ≤ n."""
        delta, t1, t2, _ = parts(log)
        return float(np.log(linear * t2 + rest * t1) - np.log(delta))

    high = -1e-15 if ratio > 1.0 else float(np.log((linear + rest) / lam))
    high, low, values = bracket_root(gap, high, -1.0, limit=400.0)
    delta, t1, t2, b = parts(find_root(gap, high, low, values=values))
    # G(δ, λ) = c_1² t_2 + c_{>1}² t_1 − δ, differentiated with the cancelling terms left out.
    shrink = (1.0 / (1.0 + b * t1)) ** 2
    turn = t1**2 * b / (1.0 + delta)
    t1_delta, t1_lam = -ratio / ((1.0 + delta) ** 2 * lam), -t1 / lam
    slope = linear * shrink * (t1_delta + turn) + rest * t1_delta - 1.0  # ∂G/∂δ
    return Traces(
        m1=ratio * t1,
        m2=ratio * t2,
        dm1=ratio * t1_lam * (linear * shrink * turn - 1.0) / slope,
        dm2=-ratio * t1_lam * shrink * (1.0 + rest * turn) / slope,
    )


def untrained_edge(problem: Problem) -> float:
    """Upper edge of the untrained features' singular values, F0/√n, as n → ∞.

    Given W0 the rows of F0 have covariance c_1² W0W0ᵀ + c_{>1}², whose law is Marchenko and
    Pastur's: the edge is where the inverse of the Stieltjes transform has its minimum.
    """
    population, share = _covariance(problem.width / problem.d, *linear_and_rest(problem.sigma))
    m = -1.0 / (1.0 + np.exp(-np.linspace(-9.0, 9.0, 361))) / population.max()
    sums = (share * population / (1.0 + population * m[:, None])).sum(axis=1)
    return float(np.sqrt(np.min(-1.0 / m + problem.width / problem.n * sums)))


def _covariance(ratio: float, linear: float, rest: float) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of c_1² W0W0ᵀ + c_{>1}² and their shares; `ratio` is N/d."""
    angle = (np.arange(_ANGLES) + 0.5) * np.pi / _ANGLES
    x = 1.0 + ratio + 2.0 * math.sqrt(ratio) * np.cos(angle)
    share = np.sin(angle) ** 2 / x
    nothing = max(0.0, 1.0 - 1.0 / ratio)  # of the eigenvalues are 0
    share *= (1.0 - nothing) / share.sum()
    return np.append(linear * x, 0.0) + rest, np.append(share, nothing)


def largest_mean(problem: Problem) -> float:
    """Largest singular value of the features' mean given κ, E[F|κ]/√n: about the first spike's.

    An estimate of the spectrum's extent without solving for it.
    """
    weights = spiked_weights(problem)
    g, share = finite_groups(problem) or gauss_law(problem.law.name, 15)
    kappa, weight = gauss_hermite(60)
    mean = problem.sigma.moments(weights.norm(g), weights.shift(g) * kappa[:, None])[0]  # (Q, K)
    scaled = np.sqrt(weight)[:, None] * mean * np.sqrt(share * problem.width)
    return float(np.linalg.norm(scaled, 2))
