"""Problems that several tests start from."""

from __future__ import annotations

from featurestep import CriticalStep, CriticalSteps, Problem

CENTRED_RELU = Problem(
    activation="relu",
    centre=True,
    target="H1 + H2/sqrt(2)",
    n=400,
    d=200,
    width=300,
    step_exponent=0.3,
    ridge=0.1,
)


def known_critical_steps(problem: Problem) -> CriticalSteps:
    """Critical steps of two degrees as they might be, at once."""
    n = problem.n
    steps = (
        CriticalStep(1, n**0.13, 0.13, n**0.2, 0.2, 0.0, ()),
        CriticalStep(2, n**0.33, 0.33, None, None, 0.25, ("at most 43% of degree 2 is learned",)),
    )
    return CriticalSteps(problem, steps, 4.0 * problem.width**0.5)
