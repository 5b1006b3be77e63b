"""Networks after several steps, written out in torch: for many draws on a GPU.

    python -m benchmarks.plain_steps record --device cuda --draws 256 --output FILE
    python -m benchmarks.plain_steps held-out --device cuda --draws 160 --output FILE
    python -m benchmarks.plain_steps small-d --device cuda --draws 96 --output FILE
    python -m benchmarks.plain_steps few-rows --draws 1500 --output FILE
    python -m benchmarks.plain_steps overlaps --device cuda --draws 24 --output FILE

Nothing of the package's simulation is used, so that a gap to the theory is not one of the package's
draws. `record`, `held-out`, `small-d` and `few-rows` write errors of the problems of
`benchmarks.several_steps`, `overlaps` what the left singular vectors of the features (n = 4000)
carry of the samples' coordinates along the target's directions. An output that exists is continued.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.several_steps import QUANTITIES, few_rows, moved_shifts, problems, small_d
from featurestep import Problem

HELD_OUT = 41  # seed of problems that nobody has looked at
TESTS = 6000
TOP = 3
Tensor = Any


class Activation(NamedTuple):
    """A function and its derivative."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]


def _normal_cdf(z: Tensor) -> Tensor:
    return 0.5 * (1.0 + torch.erf(z / math.sqrt(2.0)))


def _normal_pdf(z: Tensor) -> Tensor:
    return torch.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


ACTIVATIONS = {
    "relu": Activation(torch.relu, lambda z: (z > 0).to(z.dtype)),
    "erf": Activation(torch.erf, lambda z: 2.0 / math.sqrt(math.pi) * torch.exp(-z * z)),
    "tanh": Activation(torch.tanh, lambda z: 1.0 - torch.tanh(z) ** 2),
    "softplus": Activation(torch.nn.functional.softplus, torch.sigmoid),
    "sin(z+0.6)": Activation(lambda z: torch.sin(z + 0.6), lambda z: torch.cos(z + 0.6)),
    "gelu": Activation(lambda z: z * _normal_cdf(z), lambda z: _normal_cdf(z) + z * _normal_pdf(z)),
}


class Network:
    """One draw: data, first layer after its steps, features."""

    def __init__(self, problem: Problem, name: str, seed: int, device: str) -> None:
        self.problem, self.sigma = problem, ACTIVATIONS[name]
        self.kind: dict[str, Any] = {"device": device, "dtype": torch.float64}
        self.made = torch.Generator(device=device).manual_seed(seed)
        grid = torch.linspace(-12.0, 12.0, 4801, **self.kind)
        weight = _normal_pdf(grid) * (24.0 / 4800)
        mean = float((self.sigma.value(grid) * weight).sum())
        self.centre = mean if problem.centre else 0.0
        width = int(problem.width)
        w = self._normal(width, int(problem.d))
        if problem.initial == "sphere":
            w /= w.norm(dim=1, keepdim=True)
        else:
            w /= math.sqrt(problem.d)
        law = problem.law.name
        g = torch.ones(width, **self.kind)
        if law != "constant":
            g = self._normal(width)
            g = torch.sign(g) if law == "rademacher" else g
        for eta in problem.step_sizes:
            x, y = self.sample(int(problem.n_step))
            slope = self.sigma.slope(x @ w.T)
            change = ((slope * y[:, None]).T @ x) / len(x)
            w = w + (eta / math.sqrt(width)) * g[:, None] * change
        self.weights = w

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.made, **self.kind)

    def sample(self, rows: int) -> tuple[Tensor, Tensor]:
        """Inputs and noisy labels."""
        x = self._normal(rows, int(self.problem.d))
        t = x[:, : self.problem.directions].cpu().numpy()
        y = self.problem.star(t if self.problem.directions > 1 else t[:, 0])
        noise = self.problem.noise_std * self._normal(rows)
        return x, torch.as_tensor(np.asarray(y), **self.kind) + noise

    def features(self, x: Tensor) -> Tensor:
        """σ(xWᵀ)."""
        return self.sigma.value(x @ self.weights.T) - self.centre

    def errors(self) -> tuple[float, float, float]:
        """Test error, training loss and mean squared error of the ridge readout."""
        n, ridge = int(self.problem.n), self.problem.ridge
        x, y = self.sample(n)
        f = self.features(x)
        gram = f.T @ f
        gram.diagonal().add_(ridge * n)
        a = torch.cholesky_solve((f.T @ y)[:, None], torch.linalg.cholesky(gram))[:, 0]
        mse = ((y - f @ a) ** 2).mean()
        x, y = self.sample(TESTS)
        test = ((y - self.features(x) @ a) ** 2).mean()
        return float(test), float(mse + ridge * a @ a), float(mse)

    def overlaps(self) -> tuple[list[float], list[float]]:
        """Largest eigenvalues of FFᵀ/n, and their vectors' squared overlaps with coordinates."""
        x, _ = self.sample(int(self.problem.n))
        f = self.features(x)
        values, vectors = torch.linalg.eigh(f @ f.T / len(f))
        vectors = vectors[:, -TOP:].flip(1)
        along = x[:, : self.problem.directions].T @ vectors / math.sqrt(len(x))
        return values[-TOP:].flip(0).tolist(), (along**2).sum(dim=0).tolist()


def spectrum_cases() -> list[dict[str, Any]]:
    """Problems whose features have spikes."""
    sizes = {"n": 4000, "d": 2000, "width": 3000, "n_step": 4000, "ridge": 0.1, "noise_std": 0.3}
    return [
        {"activation": activation, "target": target, "readout": readout, "centre": centre,
         "step_sizes": list(steps), **sizes}
        for activation, target, readout, centre, steps in (
            ("relu", "H1 + H2/sqrt(2)", "rademacher", True, (20.0, 20.0)),
            ("gelu", "H1 + H2/sqrt(2)", "gaussian", True, (20.0, 20.0)),
            ("sin(z+0.6)", "H1", "rademacher", False, (40.0, 30.0)),
            ("tanh", "H1", "constant", False, (20.0, 20.0, 20.0)),
            ("gelu", "z1 + z1*z2", "rademacher", True, (40.0, 40.0)),
        )
    ]  # fmt: skip


def mean_and_error(values: np.ndarray) -> list[Any]:
    """Mean over draws and its standard error."""
    return [
        values.mean(axis=0).tolist(),
        (values.std(axis=0, ddof=1) / len(values) ** 0.5).tolist(),
    ]


def drawn(fields: dict[str, Any], draws: int, device: str, *, spectra: bool) -> dict[str, Any]:
    """One problem's row of a record."""
    problem, found = Problem(**fields), []
    for seed in range(draws):
        network = Network(problem, fields["activation"], seed, device)
        found.append(network.overlaps() if spectra else network.errors())
    names = ("location", "target_overlap") if spectra else QUANTITIES
    table = np.moveaxis(np.array(found), 1, 0)
    row = {name: mean_and_error(values) for name, values in zip(names, table, strict=True)}
    return {"problem": fields, "seeds": draws, **row}


def main() -> None:
    """Draw the networks of one set of problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sets: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "record": problems,
        "moved": moved_shifts,
        "held-out": lambda: problems(32, HELD_OUT),
        "small-d": small_d,
        "small-d-held-out": lambda: small_d(seed=HELD_OUT),
        "few-rows": few_rows,
        "overlaps": spectrum_cases,
    }
    parser.add_argument("problems", choices=list(sets))
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    record = json.loads(asked.output.read_text()) if asked.output.exists() else []
    start = time.perf_counter()
    for fields in sets[asked.problems]()[len(record) :]:
        spectra = asked.problems == "overlaps"
        record.append(drawn(fields, asked.draws, asked.device, spectra=spectra))
        asked.output.write_text(json.dumps(record, indent=1) + "\n")
        print(len(record), f"{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
