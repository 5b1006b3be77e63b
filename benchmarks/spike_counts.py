"""Number of spikes against n in the first three published intervals, as a Markdown table.

`python -m benchmarks.spike_counts` predicts every size and simulates those up to `--largest`.
`--scale 3 --largest 0` predicts only, for another factor of the step.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from featurestep import Problem, function
from featurestep.meeting.phase import PhasePoint, phase_diagram

SIZES = (500, 1000, 2000, 4000, 8000, 16000)
EXPONENTS = (0.15, 0.29, 0.36)
SHIFT, SCALE = 0.6, 2.0  # sin(z + SHIFT) has c_1, c_2, c_3 ≠ 0; η = SCALE·n^α by default


def wave(z: np.ndarray) -> np.ndarray:
    """A bounded activation whose first three coefficients do not vanish."""
    return np.sin(z + SHIFT)


def slope(z: np.ndarray) -> np.ndarray:
    """Its derivative."""
    return np.cos(z + SHIFT)


def problem(n: int, scale: float = SCALE, ratio: int = 1) -> Problem:
    """d = n/4, N = n/2, `ratio` times as many samples for the step as for the readout."""
    return Problem(
        activation=function(wave, derivative=slope),
        centre=True,
        target="H1",
        n=n,
        d=n // 4,
        width=n // 2,
        n_step=ratio * n,
        step_exponent=EXPONENTS[0],
        step_scale=scale,
        ridge=0.1,
    )


def points(
    problems: Sequence[Problem], seeds: int, largest: int, device: str
) -> dict[tuple[float, int], PhasePoint]:
    """Each exponent and size: the limit, the prediction and, up to the largest, simulations."""
    found = {}
    for each in problems:
        drawn = seeds if each.n <= largest else 0
        diagram = phase_diagram(each.vary(step_exponent=EXPONENTS), seeds=drawn, device=device)
        found.update({(p.problem.step_exponent, each.n): p for p in diagram.points})
    return found


def cell(point: PhasePoint, kind: str) -> str:
    """The count of a point: whole where predicted, a mean over the seeds where simulated."""
    if kind == "simulated" and not point.simulated:
        return "–"
    return f"{point.count(kind):g}"


def table(found: dict[tuple[float, int], PhasePoint], sizes: Sequence[int]) -> str:
    """Two rows for each exponent."""
    lines = [
        f"| α | limit | | {' | '.join(f'n = {n}' for n in sizes)} |",
        f"|---|---|---|{'---|' * len(sizes)}",
    ]
    for alpha in EXPONENTS:
        for kind in ("predicted", "simulated"):
            row = [found[alpha, n] for n in sizes]
            head = f"{alpha:g} | {row[0].count('published'):g}" if kind == "predicted" else " | "
            lines.append(f"| {head} | {kind} | {' | '.join(cell(p, kind) for p in row)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4, help="networks at each point")
    parser.add_argument("--largest", type=int, default=4000, help="largest simulated n")
    parser.add_argument("--device", default="cpu", help="where to simulate: cpu or cuda")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--scale", type=float, default=SCALE, help="factor of the step, η/n^α")
    parser.add_argument("--step-ratio", type=int, default=1, help="n_step/n")
    options = parser.parse_args(arguments)
    problems = [problem(n, options.scale, options.step_ratio) for n in options.sizes]
    found = points(problems, options.seeds, options.largest, options.device)
    print(table(found, options.sizes))


if __name__ == "__main__":
    main()
