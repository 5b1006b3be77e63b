"""Predictions for inputs with a covariance of eight classes: time of one point.

Random problems with finite readout laws, as those of `tests/agreement/structured_networks.py`. In
the second row the first class is a single direction that carries a visible share of a neuron's
variance and is conditioned on. Activations given by a formula are apart: their averages are
computed by quadrature.
"""

from __future__ import annotations

import time

import numpy as np

from featurestep import Problem, predict
from featurestep.core.types import FloatArray
from featurestep.theory.exact.inputs import sees_direction

COUNT, SEED, CLASSES = 40, 8, 8
NAMED = ("relu", "tanh", "gelu", "erf", "softplus")
FORMULA = ("sin(z+0.6)",)
GOAL = 100  # ms


def random_problem(rng: np.random.Generator, names: tuple[str, ...], single: bool) -> Problem:
    """One problem; with a `single` direction of a large eigenvalue."""
    n = int(rng.choice((800, 1200)))
    width, d = int(n * rng.choice((0.5, 1.0, 1.5))), int(n * rng.choice((0.25, 0.4, 0.6, 1.0)))
    values, shares = rng.uniform(0.2, 3.0, CLASSES), rng.uniform(0.5, 2.0, CLASSES)
    if single:
        values[0], shares[0] = 20.0, 0.0
    shares /= shares.sum()
    if single:
        shares *= 1.0 - 1.0 / d
        shares[0] = 1.0 / d
    return Problem(
        activation=str(rng.choice(names)),
        target=str(rng.choice(("tanh", "H1 + H2/sqrt(2)", "relu", "H1", "sin(z)"))),
        n=n,
        d=d,
        width=width,
        n_step=int(n * rng.choice((0.5, 1.0, 2.0))),
        step_size=float(rng.choice((0.0, 0.25, 0.5, 1.0, 2.0))) * width**0.5,
        ridge=float(rng.choice((0.01, 0.03, 0.1))),
        noise_std=0.1,
        readout=str(rng.choice(("constant", "rademacher"))),
        covariance=list(zip(values.tolist(), shares.tolist(), strict=True)),
        target_exponent=float(rng.choice((0.0, -0.5, 0.5))),
    )


def seconds(names: tuple[str, ...], single: bool) -> FloatArray:
    """Times of predictions that nothing is known about beforehand."""
    rng, found = np.random.default_rng(SEED), []
    while len(found) < COUNT:
        problem = random_problem(rng, names, single)
        if sees_direction(problem) == single:
            start = time.perf_counter()
            predict(problem)
            found.append(time.perf_counter() - start)
    return np.array(found)


def main() -> None:
    """Print the table."""
    predict(random_problem(np.random.default_rng(0), NAMED, False))
    print(f"inputs of {CLASSES} classes, finite laws: ms of one point (goal {GOAL})")
    print(f"{'activation':12}{'direction':20}{'median':>8}{'90 %':>8}{'largest':>9}")
    for names, name in ((NAMED, "named"), (FORMULA, "formula")):
        for single, seen in ((False, "none visible"), (True, "one conditioned on")):
            times = 1e3 * seconds(names, single)
            row = np.median(times), np.quantile(times, 0.9), times.max()
            print(f"{name:12}{seen:20}{row[0]:8.0f}{row[1]:8.0f}{row[2]:9.0f}", flush=True)


if __name__ == "__main__":
    main()
