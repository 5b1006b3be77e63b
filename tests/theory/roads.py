"""Other roads to the numbers of the engines: closed forms, and equations as they stand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.polynomial.hermite_e import poly2herme

from featurestep import Prediction, Problem
from featurestep.core.spiked import spiked_weights
from featurestep.functions.nonlinearity import coefficients, factorials
from featurestep.functions.quadrature import Rule
from featurestep.theory.exact.columns import build_columns, build_labels
from featurestep.theory.exact.solve import BlockSolution, r_nodes, solve_block, solve_rows
from featurestep.theory.exact.step import rows_of, slope_moments
from featurestep.theory.isotropic import isotropic_step
from featurestep.theory.limits import learned_powers, traces
from featurestep.theory.resolution import Effort, choose
from tests.theory.perturbed import TERMS

STEP = 1e-30  # of complex derivatives


class Numbers(NamedTuple):
    test_error: float
    train_loss: float
    norm_squared: float


def untrained(problem: Problem) -> Numbers:
    """Step 0 by the scalar equation, to leading order in d."""
    m = traces(problem)
    signal = float(coefficients(problem.sigma_star, 1)[1]) ** 2
    rest = problem.sigma_star.second_moment - signal + problem.noise_std**2
    ratio = problem.n / problem.width
    loss = signal * m.m2 + rest * m.m1  # yᵀRy, up to n/N
    slope = signal * m.dm2 + rest * m.dm1
    return Numbers(
        # generalised cross-validation, exact here: −(n/N)(c⋆_1² m_2′ + rest m_1′)/(…)²
        test_error=-slope / (ratio * m.m1**2),
        train_loss=problem.ridge * ratio * loss,
        norm_squared=ratio * (loss + problem.ridge * slope),  # dL_tr/dλ
    )


def exact_answer(
    problem: Problem, *, finite: bool = True, count: int | None = None, higher: bool = False
) -> BlockSolution:
    """The exact weight side for one problem, with or without the terms of order 1/d.

    Without `higher` terms of higher degrees in n/d² and 1/d are left out (sections 50–53).
    """
    resolution = choose(problem, spiked_weights(problem), Effort())
    groups, nodes = resolution.group_rule(), resolution.node_rule()
    with pytest.MonkeyPatch.context() as patch:
        for term in () if finite else ("sample norms (29)", "finite d (37)"):
            TERMS[term](patch, 0.0)
        count = count or r_nodes(problem)
        return solve_rows(rows_of(problem), groups, nodes, count, higher=higher)


def without_higher_degrees(
    problem: Problem, effort: Effort | None = None, method: str = "exact"
) -> Prediction:
    """The prediction with the terms of sections 50–53 left out, d → ∞ apart from (37)."""
    resolution = choose(problem, spiked_weights(problem), effort or Effort())
    (found,), _ = solve_block([problem], resolution, method, higher=False)
    assert isinstance(found, Prediction)
    return found


def exact_numbers(problem: Problem, *, finite: bool = True) -> Numbers:
    """The same as numbers, for a problem without random offset."""
    found = exact_answer(problem, finite=finite)
    return Numbers(
        float(found.errors.by_kappa[0] @ found.solution.at.samples.weight),
        float(found.fitted.train_loss[0]),
        float(found.errors.readout_squares[0].sum()),
    )


class Arrays(NamedTuple):
    """Section 3's arrays of one problem with isotropic weights, at Q nodes of κ for K groups."""

    n: float
    d: float
    ridge: float
    kappa: np.ndarray  # (Q,)
    weight: np.ndarray  # (Q,)
    neurons: np.ndarray  # (K,) N_g
    norm: np.ndarray  # (K,) ρ_g
    overlap: np.ndarray  # (K,) mean overlap of a neuron's weights with −β/‖β‖, for `full`
    alignment: float  # γ
    mean: np.ndarray  # (Q, K) m_g
    slope: np.ndarray  # (Q, K) μ_g
    spread: np.ndarray  # (Q, K) ν_g²
    y0: np.ndarray  # (Q,)
    y1: np.ndarray  # (Q,)
    rest: np.ndarray  # (Q,) y2 − y0² − y1²


def groups_of(problem: Problem) -> Rule:
    """The values of a finite readout law and their probabilities."""
    return np.array(problem.law.values), np.array(problem.law.probabilities)


def isotropic_answer(problem: Problem, groups: Rule, nodes: Rule) -> BlockSolution:
    """The engine with isotropic weights, on given rules."""
    return solve_rows(rows_of(problem, "isotropic"), groups, nodes, 1, method="isotropic")


def arrays_of(problem: Problem, nodes: Rule | None = None) -> Arrays:
    """The arrays of a problem with a finite readout law, at the nodes of the engine or others."""
    kappa, weight = nodes or choose(problem, spiked_weights(problem), Effort()).node_rule()
    step = isotropic_step(rows_of(problem, "isotropic"), groups_of(problem))
    columns = build_columns(problem.sigma, step, kappa)
    labels = build_labels(problem.sigma_star, step, kappa)
    return Arrays(
        n=step.n[0],
        d=step.d[0],
        ridge=problem.ridge,
        kappa=kappa,
        weight=weight,
        neurons=step.neurons[0],
        norm=step.norm[0],
        overlap=step.output_slope[0] / step.beta[0] * step.a[0] * step.initial_factor[0],
        alignment=step.alignment[0],
        mean=columns.plain[0, :, : step.k.shape[1]],
        slope=columns.slope[0],
        spread=columns.spread[0],
        y0=labels.mean[0],
        y1=labels.linear[0, 0],
        rest=labels.rest[0],
    )


class Literal:
    """The training loss by (7)–(11), one problem, as a function of ridge and source.

    The source ςω is added to 1/(1+χ) wherever that stands (30), and everything is analytic:
    derivatives come from complex steps.
    """

    def __init__(self, arrays: Arrays) -> None:
        self.n, self.d, self.ridge = arrays.n, arrays.d, arrays.ridge
        self.weight, self.kappa = arrays.weight, arrays.kappa
        self.rho, self.neurons = arrays.norm, arrays.neurons
        self.mean, self.nu2, self.mu = arrays.mean, arrays.spread, arrays.slope
        self.y0, self.y1, self.rest = arrays.y0, arrays.y1, arrays.rest

    def regressions(self, v2: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Independent parts of (11): columns, variances of their fields, what they fit."""
        d = self.rho**2 * v2 / self.d  # D
        along = np.concatenate([self.mean, self.kappa[:, None] * self.mu], axis=1)
        return [(along, np.concatenate([v2, d]), self.y0), (self.mu, d, self.y1)]

    def resolvent(self, ridge: complex, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """V2 and χ by damped iteration of (7)–(10)."""
        v2 = (self.neurons / (ridge * self.n)).astype(complex)
        v1 = np.diag(self.rho**2 * v2)
        unit, gap = np.eye(v2.size), 1.0
        while gap > 1e-13:
            chi = np.einsum("qg,qh,gh->q", self.mu, self.mu, v1) + self.nu2 @ v2  # (7)
            mass = self.n * self.weight * (1.0 / (1.0 + chi) + source)
            v1_hat, v2_hat = self.mu.T @ (mass[:, None] * self.mu), mass @ self.nu2  # (8)
            d = np.diag(self.rho**2 * v2 / self.d)
            inverse = np.linalg.inv(unit + v1_hat @ d)
            new_v1 = self.d * d @ inverse  # (9)
            lam = np.diagonal(inverse @ v1_hat)
            new_v2 = self.neurons / (ridge * self.n + v2_hat + self.rho**2 * lam)  # (10)
            change = (new_v2 - v2) / v2.real
            gap = np.abs(change.real).max() + np.abs(change.imag).max() / STEP
            v2, v1 = 0.5 * (v2 + new_v2), 0.5 * (v1 + new_v1)
        return v2, chi

    def train_loss(self, ridge: complex, source: np.ndarray) -> complex:
        """The minimum of (11) over n."""
        v2, chi = self.resolvent(ridge, source)
        mass = self.weight * (1.0 / (1.0 + chi) + source)
        loss = mass @ (self.rest + self.y0**2 + self.y1**2)
        for columns, variance, y in self.regressions(v2):
            matrix = self.n * columns.T @ (mass[:, None] * columns) + np.diag(1.0 / variance)
            right = self.n * columns.T @ (mass * y)
            loss = loss - right @ np.linalg.solve(matrix, right) / self.n
        return complex(loss)

    def error(self, measure: np.ndarray) -> float:
        """E[ω(κ)(y − f)²] = dL_tr/dς (30)."""
        return float(self.train_loss(self.ridge, 1j * STEP * measure).imag / STEP)

    def numbers(self) -> Numbers:
        """Errors and ‖â‖² = dL_tr/dλ."""
        nothing = np.zeros_like(self.weight)
        loss = self.train_loss(self.ridge + 1j * STEP, nothing)
        return Numbers(self.error(nothing + 1.0), loss.real, loss.imag / STEP)


def literal(problem: Problem) -> Literal:
    """Section 3 for a problem with a finite readout law."""
    return Literal(arrays_of(problem))


class ManySamples(Literal):
    """n_step/d → ∞: one field p beside A, seen through the column of (33)."""

    def __init__(self, problem: Problem) -> None:
        last = problem.replace(n_step=10**15)
        super().__init__(arrays_of(last))
        g = groups_of(problem)[0]
        s = slope_moments(problem.sigma)
        c_star = coefficients(problem.sigma_star, 2)
        e = problem.step_size / np.sqrt(problem.width) * g
        kept = 1.0 + 2.0 * s.c2 * e * c_star[0]  # 1 + k_g m_1
        place = spiked_weights(last).shift(g) * self.kappa[:, None]
        bend = 0.5 * problem.sigma.derivative_means(self.rho, place, 2)[2]  # m′
        own = kept + 4.0 * e * s.c2 * c_star[2]
        self.column = (
            self.kappa[:, None] * self.mu * own + 2.0 * e * s.z2_psi * c_star[1] * kept * bend
        )

    def regressions(self, v2: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        along = np.concatenate([self.mean, self.column], axis=1)
        return [(along, np.concatenate([v2, v2 / self.d]), self.y0)]


def closed_train_gain(problem: Problem, degree: int) -> float:
    """Δ_ℓ = λ bᵀΩb, the papers' gain in training loss (section 4)."""
    explained, base = _explained(problem, degree), _explained(problem, 0)
    return problem.ridge * (explained[0] - base[0])


def closed_test_gain(problem: Problem, degree: int) -> float:
    """Λ_ℓ = (φ/ψ)²·(−∂(Δ_ℓ/λ)/∂λ)/m_1², the gain in test error for every ℓ (section 8).

    For ℓ = 1 and 2 these are the published gains with their missing factors restored.
    """
    slope = _explained(problem, degree)[1] - _explained(problem, 0)[1]
    return -slope * (problem.phi / problem.psi / traces(problem).m1) ** 2


def _explained(problem: Problem, degree: int) -> tuple[float, float]:
    """bᵀΩb over the learned powers, and its derivative in λ."""
    powers = learned_powers(problem, degree)
    if not powers:
        return 0.0, 0.0
    m, weights = traces(problem), spiked_weights(problem)
    p = np.arange(max(powers) + 1)
    xi = np.zeros((len(powers), p.size))  # κ^k in Hermite polynomials
    for row, k in zip(xi, powers, strict=True):
        row[: k + 1] = poly2herme(np.eye(k + 1)[k])
    target = weights.alignment**p * coefficients(problem.sigma_star, max(powers))
    scale = factorials(p.size) * problem.psi / problem.phi
    size = np.where(p == 1, m.m2, m.m1) * scale
    change = np.where(p == 1, m.dm2, m.dm1) * scale
    # Ω⁻¹ = ξ diag(size) ξᵀ and b = ξ(size·target): the powers of ‖β‖ cancel.
    b = (xi * size) @ target
    x = np.linalg.solve((xi * size) @ xi.T, b)
    fitted = x @ xi
    return float(b @ x), float(change @ (fitted * (2.0 * target - fitted)))
