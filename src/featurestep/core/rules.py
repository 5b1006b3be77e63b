"""What the numbers and functions of a problem must satisfy beyond their own ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..functions.hermite import coefficients
from ..functions.nonlinearity import UserFunction
from .checks import non_negative, number, positive
from .errors import InvalidProblem

if TYPE_CHECKING:
    from .problem import Problem

RIDGE_RANGE = ("must be in [1e-15, 1e12]", lambda v: 1e-15 <= v <= 1e12)
NOISE_RANGE = ("must be at most 1e6", lambda v: v <= 1e6)
STEP_RANGE = ("must be at most 1e12", lambda v: v <= 1e12)
EXPONENT_RANGE = ("must be in [-4, 2]", lambda v: -4 <= v <= 2)


def step_of(given: Mapping[str, Any], n: int) -> dict[str, float]:
    """The step's fields: η = step_scale·n^step_exponent, or η outright."""
    size, exponent = given["step_size"], given["step_exponent"]
    scale = positive("step_scale", given["step_scale"])
    if size is not None:
        if exponent is not None:
            rule = "must not be given together with step_exponent"
            raise InvalidProblem("step_size", rule, (size, exponent))
        if scale != 1.0:
            rule = "goes with step_exponent, not with step_size"
            raise InvalidProblem("step_scale", rule, scale)
        size = number("step_size", non_negative("step_size", size), *STEP_RANGE)
        return {"step_scale": scale, "step_size": size}
    if exponent is None:
        raise InvalidProblem("step_exponent", "or step_size must be given", None)
    exponent = number("step_exponent", exponent, *EXPONENT_RANGE)
    size = min(scale, 1e100) * math.pow(n, exponent)
    size = number("step_scale", size, "must give a step size of at most 1e12", STEP_RANGE[1])
    return {"step_scale": scale, "step_exponent": exponent, "step_size": size}


def check_functions(problem: Problem) -> None:
    """Refuse functions that leave nothing to learn or to fit, or a step that cannot be taken."""
    sigma, law = problem.sigma, problem.law
    teacher = problem.teacher
    zero = problem.sigma_star.second_moment <= 0.0 if teacher is None else teacher.is_zero
    if zero and problem.noise_std == 0:
        raise InvalidProblem("target", "must not be zero when noise_std is 0", problem.target)
    if sigma.second_moment <= 0:
        raise InvalidProblem("activation", "must not be zero", problem.activation)
    c = coefficients(sigma, 2)
    if problem.step_size and c[1] == 0.0:
        rule = "must have c_1 = E[zσ(z)] ≠ 0 when the step is not 0, or the step learns nothing"
        raise InvalidProblem("activation", rule, problem.activation)
    if problem.residual == "full" and c[0] != 0.0 and abs(law.mean) > 1e-12:
        rule = (
            "'full' needs a centred activation (centre=True) when the readout law has mean "
            f"{law.mean:.3g}, or the initial output grows with the width"
        )
        raise InvalidProblem("residual", rule, problem.residual)
    if isinstance(sigma, UserFunction):
        _check_slope(sigma)


@lru_cache(maxsize=256)
def _check_slope(sigma: UserFunction) -> None:
    """A derivative that does not integrate to E[zσ] misses a jump or is wrong."""
    slope, expected = sigma.mean_slope, coefficients(sigma, 1)[1]
    if not abs(slope - expected) <= 1e-6 * math.sqrt(sigma.second_moment):
        raise InvalidProblem(
            "activation",
            f"must be continuous and match its derivative (E[zσ] = {expected:.6g} = E σ′)",
            f"E σ′ = {slope:.6g}",
        )
