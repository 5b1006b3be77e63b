"""Random problems over the declared domain, for tests that must hold everywhere."""

from __future__ import annotations

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


def random_problem(rng: np.random.Generator) -> Problem:
    """Exponent 0–½, φ and ψ in 0.02–50, ridge 1e-6–1e2, n 50–1e9, all laws and activations."""
    while True:
        phi, psi = np.exp(rng.uniform(np.log(0.02), np.log(50.0), 2))
        activation = ACTIVATIONS[rng.integers(len(ACTIVATIONS))]
        step = {"step_exponent": float(rng.uniform(0.0, 0.5))}
        if activation == "abs":  # c_1 = 0: only the untrained network is defined
            step = {"step_size": 0.0}
        try:
            return Problem.from_ratios(
                phi=float(phi),
                psi=float(psi),
                n=int(np.exp(rng.uniform(np.log(50.0), np.log(1e9)))),
                activation=activation,
                target=TARGETS[rng.integers(len(TARGETS))],
                ridge=float(np.exp(rng.uniform(np.log(1e-6), np.log(1e2)))),
                noise_std=float(rng.choice([0.0, 0.1, 1.0])),
                readout=LAWS[rng.integers(len(LAWS))],
                residual=("labels", "full")[rng.integers(2)],
                centre=bool(rng.integers(2)),
                **step,
            )
        except InvalidProblem as error:
            if error.parameter not in ("residual", "phi", "psi"):
                raise
