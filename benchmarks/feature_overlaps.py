"""What the features' singular vectors carry of the target's coordinates after several steps.

    python -m benchmarks.feature_overlaps --device cuda --draws 24 \\
        --output tests/agreement/feature_overlaps.json

Networks are written out here in torch, apart from the package's simulation: squared overlaps of the
left singular vectors of F, n = 4000, with the samples' coordinates Xθ_k, summed over the target's
directions.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from featurestep import Problem

TOP = 3
SIZES = {"n": 4000, "d": 2000, "width": 3000, "n_step": 4000, "ridge": 0.1, "noise_std": 0.3}
CASES: list[dict[str, Any]] = [
    {"activation": activation, "target": target, "readout": readout, "centre": centre,
     "step_sizes": sizes}
    for activation, target, readout, centre, sizes in (
        ("relu", "H1 + H2/sqrt(2)", "rademacher", True, (20.0, 20.0)),
        ("gelu", "H1 + H2/sqrt(2)", "gaussian", True, (20.0, 20.0)),
        ("sin(z+0.6)", "H1", "rademacher", False, (40.0, 30.0)),
        ("tanh", "H1", "constant", False, (20.0, 20.0, 20.0)),
        ("gelu", "z1 + z1*z2", "rademacher", True, (40.0, 40.0)),
    )
]  # fmt: skip


def drawn_overlaps(fields: dict[str, Any], seed: int, device: str) -> tuple[list[float], ...]:
    """Largest eigenvalues of FFᵀ/n and the overlaps of their vectors, one draw."""
    import torch

    problem = Problem(**fields, **SIZES)
    n, d, width = (int(SIZES[name]) for name in ("n", "d", "width"))
    made = torch.Generator(device=device).manual_seed(seed)
    kind: dict[str, Any] = {"device": device, "dtype": torch.float64}

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=made, **kind)

    def on_host(function: Callable[[Any], Any], at: Any) -> Any:
        return torch.as_tensor(function(at.cpu().numpy()), **kind)

    def batch(rows: int) -> tuple[Any, Any]:
        x = normal(rows, d)
        z = x[:, :2]
        many = problem.directions > 1
        y = on_host(problem.star, z if many else z[:, 0])
        return x, y + problem.noise_std * normal(rows)

    w = normal(width, d)
    w /= w.norm(dim=1, keepdim=True)
    g = {"constant": lambda: torch.ones(width, **kind),
         "rademacher": lambda: torch.sign(normal(width)),
         "gaussian": lambda: normal(width)}[str(fields["readout"])]()  # fmt: skip
    a = g / math.sqrt(width)
    for eta in fields["step_sizes"]:
        x, y = batch(int(SIZES["n_step"]))
        slope = on_host(problem.sigma.derivative, x @ w.T)
        w = w + eta * a[:, None] * ((slope * y[:, None]).T @ x) / len(x)
    x, _ = batch(n)
    features = on_host(problem.sigma, x @ w.T)
    values, vectors = torch.linalg.eigh(features @ features.T / n)
    values, vectors = values[-TOP:].flip(0), vectors[:, -TOP:].flip(1)
    coordinates = x[:, : problem.directions] / math.sqrt(n)
    found = ((coordinates.T @ vectors) ** 2).sum(dim=0)
    return values.tolist(), found.tolist()


def main() -> None:
    """Draw networks and write means and standard errors."""
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    record = []
    for fields in CASES:
        seeds = range(asked.draws)
        drawn = np.array([drawn_overlaps(fields, seed, asked.device) for seed in seeds])
        mean, error = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / math.sqrt(asked.draws)
        record.append(
            {
                "problem": {**fields, **SIZES},
                "seeds": asked.draws,
                "location": [mean[0].tolist(), error[0].tolist()],
                "target_overlap": [mean[1].tolist(), error[1].tolist()],
            }
        )
        asked.output.write_text(json.dumps(record, indent=1) + "\n")
        print(len(record), mean[1], flush=True)


if __name__ == "__main__":
    main()
