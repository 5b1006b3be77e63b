"""Random problems over the declared domain, for tests that must hold everywhere."""

from __future__ import annotations

import math

import numpy as np

from featurestep import InvalidProblem, Problem

ACTIVATIONS = (
    "tanh",
    "erf",
    "relu",
    "leaky_relu",
    "softplus",
    "gelu",
    "silu",
    "sigmoid",
    "sin",
    "hard_tanh",
    "abs",
    "identity",
    "H1 + 0.3*H3",
    "H1 + H2",
    "H1 + H2/2 - 0.2*H4",
)
TARGETS = (*ACTIVATIONS, "(H1 + H2)/sqrt(2)", "H2", "H1 + H3/6")
LAWS = (
    "gaussian",
    "rademacher",
    "constant",
    "uniform",
    ((1.5, 0.4), (-((0.1 / 0.6) ** 0.5), 0.6)),
)


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number between two positive ones, its logarithm uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def random_problem(
    rng: np.random.Generator, *, largest: float = math.inf, steep: float = math.inf
) -> Problem:
    """Exponent 0–¾, φ and ψ in 0.02–50, n_step/d in ¼–100, ridge 1e-6–1e2, n 50–1e6 (one in ten
    up to 1e9), all laws, residuals, starts and activations.

    Steps beyond `largest` √N are drawn again; for activations that oscillate or grow like a
    quartic, beyond `steep` √N: at large steps a continuous law needs more groups for them than the
    theory takes, which it says.
    """
    while True:
        phi, psi = (log_uniform(rng, 0.02, 50.0) for _ in range(2))
        activation = ACTIVATIONS[rng.integers(len(ACTIVATIONS))]
        step = {"step_exponent": float(rng.uniform(0.0, 0.75))}
        if activation == "abs":  # c_1 = 0: only the untrained network is defined
            step = {"step_size": 0.0}
        n = int(log_uniform(rng, 50.0, 1e9 if rng.random() < 0.1 else 1e6))
        samples = phi * n * log_uniform(rng, 0.25, 100.0)
        try:
            problem = Problem.from_ratios(
                phi=phi,
                psi=psi,
                n=n,
                n_step=max(1, round(samples)),
                activation=activation,
                target=TARGETS[rng.integers(len(TARGETS))],
                ridge=log_uniform(rng, 1e-6, 1e2),
                noise_std=float(rng.choice([0.0, 0.1, 1.0])),
                readout=LAWS[rng.integers(len(LAWS))],
                residual=("labels", "full")[rng.integers(2)],
                initial=("sphere", "gaussian")[rng.integers(2)],
                centre=bool(rng.integers(2)),
                **step,
            )
            is_steep = problem.sigma.oscillates or "H4" in activation
            bound = min(largest, steep) if is_steep else largest
            if problem.step_size <= bound * problem.width**0.5:
                return problem
        except InvalidProblem as error:
            if error.parameter not in ("residual", "phi", "psi"):
                raise
