"""The published limits (section 4): what n → ∞ leaves in each regime of the step exponent.

In regime ℓ the bulk is that of the untrained network and the powers κ, …, κ^ℓ of the learned
direction enter the regression (11) without penalty. Gains over the untrained network come from that
regression, for every ℓ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import ClassVar, Literal

import numpy as np

from ..core.errors import InvalidProblem
from ..core.problem import Grid, Problem
from ..core.results import GridResult, Note, Progress, Result, over_grid, verb
from ..core.spiked import SpikedWeights, spiked_weights
from ..core.types import FloatArray
from ..functions.hermite import coefficients
from .engine import solve
from .labels import along_first
from .moments import build_batch
from .prediction import answered
from .resolution import target_nodes
from .resolvent import solve_resolvent
from .response import Point
from .risk import Risk, least_squares, misfit, solve_risk, solve_signal
from .spike_functions import Spikes, exact_spikes, published_spikes
from .untrained import traces

MAX_DEGREE = 30
_FAR = 10**13


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
        """None: a limit leaves nothing out that stays as n grows, or says so in its name."""
        return ()


Degree = int | Literal["maximal"] | None


@verb
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
    leaves out, the change of the neurons' remaining norms: with it this is where `predict` goes.
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
    base = _unspiked_limit(seen)
    if chosen is None:
        spikes: Spikes = {}
        test, train = _maximal(problem)
    else:
        spikes = (exact_spikes if norm_growth else published_spikes)(seen, chosen)
        risk = _spiked_limit(seen, spikes)
        test, train = float(risk.test_error[0]), float(risk.train_loss[0])
    return Limit(
        problem=problem,
        degree=chosen,
        powers=tuple(spikes),
        test_error=test,
        train_loss=train,
        test_gain=float(base.test_error[0]) - test,
        train_gain=float(base.train_loss[0]) - train,
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


@lru_cache(maxsize=8)
def _unspiked_limit(problem: Problem) -> Risk:
    """What gains are counted from; kept, because all regimes of a problem have it in common."""
    return _spiked_limit(problem, published_spikes(problem, 0))


def _spiked_limit(problem: Problem, spikes: Spikes) -> Risk:
    """Step 0's bulk, with the spikes' functions of κ as regressors without penalty."""
    weights = spiked_weights(problem)
    point = _bulk(problem, weights, degree=max(spikes, default=0))
    batch = point.batch
    columns = [np.polynomial.polynomial.polyval(batch.kappa, p) for p in spikes.values()]
    basis = [column / np.sqrt(batch.weight @ column**2) for column in columns]
    lines = point.isotropic.frame(point.v2).lines
    design = np.concatenate(
        [*(column[None, :, None] for column in basis), batch.kappa[None, :, None] * lines], axis=2
    )
    free = len(basis)
    norms = _initial_norms(problem, lines)
    if norms is not None:
        design = np.concatenate([design, norms], axis=2)
    penalty = np.concatenate([np.zeros(free), np.ones(design.shape[2] - free)])
    solution, rest_along = least_squares(point, design, batch.target_mean, penalty)
    across, rest_across = least_squares(point, lines, batch.target_linear, np.ones(1))
    fitted = np.matmul(design, solution[:, :, None])[:, :, 0]
    slope = np.matmul(lines, across[:, :, None])[:, :, 0]
    outside = (batch.weight * point.shrink * batch.target_rest).sum(axis=1)
    signal = replace(
        solve_signal(point),
        misfit=misfit(batch, fitted, slope),
        source_groups=(solution[:, free:] ** 2).sum(axis=1, keepdims=True) + across**2,
        train_loss=outside + (rest_along + rest_across) / batch.n,
    )
    return solve_risk(point, signal)


def _initial_norms(problem: Problem, lines: FloatArray) -> FloatArray | None:
    """The column of Ω as u → 0, c_2√(2D): rows of W0 whose norms differ show a constant (40)."""
    c = coefficients(problem.sigma, 2)
    if problem.initial != "gaussian" or c[2] == 0.0:
        return None
    # With c_1 = 0 there are no lines to scale with; then W·x is not seen either.
    return np.asarray(float(c[2]) * np.sqrt(2.0) * lines / float(c[1])) if c[1] else None


def _bulk(problem: Problem, weights: SpikedWeights, *, degree: int) -> Point:
    """The resolvent of the untrained network at nodes that resolve the target along β."""
    still = replace(weights, unit_shift=0.0, unit_drift=0.0, unit_growth=0.0, correlation=0.0)
    nodes = target_nodes(problem, weights, degree=degree)
    batch = build_batch([problem], [still], (np.ones(1), np.ones(1)), nodes)
    return solve_resolvent(batch).point


def _maximal(problem: Problem) -> tuple[float, float]:
    """The limit at fixed η/√N: the engine at sizes where the penalty on A has vanished."""
    factor = max(1, _FAR // max(problem.n, problem.d, problem.width, problem.n_step))
    sizes = {
        "n": problem.n * factor,
        "d": problem.d * factor,
        "width": problem.width * factor,
        "n_step": problem.n_step * factor,
    }
    (outcome,) = solve([problem.replace(step_size=problem.step_size * factor**0.5, **sizes)])
    found = answered(outcome)
    return found.test_error, found.train_loss
