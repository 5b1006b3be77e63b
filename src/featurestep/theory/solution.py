"""One problem solved, or refused: what every way of solving answers with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..errors import FeaturestepError, InconsistentSolution, NotConverged
from ..functions.quadrature import Rule
from ..spiked import SpikedWeights
from ..types import FloatArray

ACCEPTED = 1e-10  # residual of the fixed-point equations
SELF_CHECK = 1e-9  # relative gap of the two training losses


class Detail(NamedTuple):
    """What the exact solution is made of, for each value of the initial offset (R of them)."""

    groups: Rule
    r_nodes: int
    used: FloatArray  # (R, F) fields A, τ, ψ_1 … ψ_r, Δ (, Ω), K of each
    powers: FloatArray  # (R, K) P_g
    bulk: FloatArray  # (R, K, K) Q_gh


@dataclass(frozen=True)
class Groups:
    """Neurons by the value of their initial readout, and what the fitted readout does with them."""

    g: FloatArray  # √N times the initial readout
    neurons: FloatArray  # how many, N_g
    shift: FloatArray  # u_g, gained along the learned direction
    norm: FloatArray  # ρ_g, of the remaining weights
    use: FloatArray  # A_g, total fitted readout
    along: FloatArray  # τ_g, bulk directions fitted along κ
    across: FloatArray  # ψ_g, (r, K) for r > 1: those fitted along the rest of the target


class Solution(NamedTuple):
    """One problem solved: its errors, and its groups of neurons with what they learned."""

    weights: SpikedWeights
    method: str  # "isotropic" or "exact"
    test_error: float
    train_loss: float
    train_mse: float
    norm_squared: float
    test_spread: float  # standard deviation of the test error over the initial offset
    residual: float
    iterations: int
    self_check: float
    nodes: int
    groups: Groups
    detail: Detail | None = None


Outcome = Solution | FeaturestepError


def checked(solution: Solution, slack: float = 1.0) -> Outcome:
    """The solution, or the error that refuses it; `slack` is a factor on what may be left."""
    kind: type[NotConverged] = InconsistentSolution
    left = solution.self_check
    errors = (solution.test_error, solution.train_loss, solution.train_mse, solution.norm_squared)
    if not solution.residual <= slack * ACCEPTED:
        kind, left = NotConverged, solution.residual
        text = (
            f"resolvent equations: residual {left:.2g} after {solution.iterations} iterations "
            f"(needs {ACCEPTED:.0e})"
        )
    elif not left <= slack * SELF_CHECK:
        text = f"the two training losses differ by {left:.2g} (needs {SELF_CHECK:.0e})"
    elif not min(errors) > 0.0:
        text = "an error came out negative: terms of order 1/d are too large at these sizes"
    else:
        return solution
    return kind(text, residual=left, iterations=solution.iterations, solution=solution)
