"""Predicted spectra against those of networks of n = 4000 at large steps, as a table.

    python -m benchmarks.large_spectra --device cuda

Kolmogorov's distance of the bulk, the largest gap of a spike's place and of its overlaps with
H_0 … H_3, and the number of singular values beyond the stated margin, predicted and simulated.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

import numpy as np

from featurestep import FeaturestepError, Problem, function, simulated_spectrum, spectrum

ACTIVATIONS: dict[str, Any] = {
    "relu": "relu",
    "sin(z+.6)": function(
        lambda z: np.sin(z + 0.6), derivative=lambda z: np.cos(z + 0.6), name="sin(z+.6)"
    ),
}


def network(name: str, law: str, samples: int, step: float, n: int = 4000) -> Problem:
    """A step of so many √N on so many times d samples."""
    return Problem(
        activation=ACTIVATIONS[name],
        target="H1 + H2/sqrt(2)",
        n=n,
        d=n // 2,
        width=3 * n // 4,
        n_step=samples * n // 2,
        step_size=step * (3 * n / 4) ** 0.5,
        ridge=0.01,
        noise_std=0.2,
        readout=law,
    )


def kolmogorov(law: Any, eigenvalues: np.ndarray) -> float:
    """Distance of the bulk's distribution function from that of all draws together, zeros aside."""
    places = np.sort(eigenvalues.ravel())
    below = np.arange(places.size) / places.size
    found = (law.cumulative(places) - law.atom) / (1.0 - law.atom)
    return float(max(np.abs(found - below).max(), np.abs(found - below - 1 / places.size).max()))


def compared(problem: Problem, seeds: int, device: str) -> str:
    """One row of the table."""
    began = time.perf_counter()
    try:
        law = spectrum(problem)
    except FeaturestepError as error:
        return f"refused: {error}"
    took = time.perf_counter() - began
    found = simulated_spectrum(problem, seeds=seeds, device=device)
    values, overlaps = found.eigenvalues(), found.hermite_overlaps()
    spikes = [spike for spike in law.spikes if spike.resolved]
    distance = kolmogorov(law, values[:, len(law.spikes) :])
    gaps, differences = [], []
    for rank, spike in enumerate(spikes):
        seen = values[:, rank]
        error = seen.std(ddof=1) / seeds**0.5
        gap = seen.mean() / spike.location - 1.0
        gaps.append(f"{gap:+.2%} ({(seen.mean() - spike.location) / error:+.1f})")
        expected = np.array([spike.constant_overlap, *spike.overlaps[:3]])
        differences.append(float(np.abs(overlaps[:, rank, :4].mean(axis=0) - expected).max()))
    beyond = (values > law.edge + law.margin).sum(axis=1)
    return (
        f"KS {distance:.4f}  spikes {', '.join(gaps) or '-'}  overlaps "
        f"{max(differences, default=0.0):.3f}  beyond {len(spikes)} predicted, {beyond.tolist()} "
        f"seen; edge {law.edge**0.5:.3f} reach {(law.edge + law.margin) ** 0.5:.3f} second "
        f"{np.sqrt(values[:, len(spikes)]).round(2).tolist()}  {took:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--laws", nargs="+", default=["constant", "rademacher"])
    parser.add_argument("--steps", nargs="+", type=float, default=[0.25, 0.5, 1.0, 2.0])
    arguments = parser.parse_args()
    axes = (ACTIVATIONS, arguments.laws, (2, 8), arguments.steps)
    for name, law, samples, step in itertools.product(*axes):
        problem = network(name, law, samples, step, arguments.n)
        row = compared(problem, arguments.seeds, arguments.device)
        print(f"{name} {law} n0/d={samples} η={step}√N: {row}", flush=True)


if __name__ == "__main__":
    main()
