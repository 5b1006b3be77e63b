"""Spikes and errors as n grows to 100,000: the networks' own, beside what the theory predicts.

    python -m benchmarks.spikes_at_scale simulate --device cuda --out benchmarks/results
    python -m benchmarks.spikes_at_scale draw --out benchmarks/results

The first trains networks at three step exponents and writes the largest eigenvalues of FᵀF/n and
the errors of every draw, with the machine, to spikes_at_scale.json. The second reads them, adds
the predictions, draws the figure and prints the table.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from featurestep import Problem, function, predict, simulate, simulated_spectrum, spectrum
from featurestep.bench import machine

NAME = "spikes_at_scale"
EXPONENTS = (0.29, 0.36, 0.42)
DRAWS = {2000: 16, 5000: 12, 10_000: 8, 20_000: 8, 50_000: 4, 100_000: 2}
SHIFT, SCALE = 0.6, 2.0  # sin(z + SHIFT) has c_1 … c_6 ≠ 0; η = SCALE·n^α
TOP = 8
QUANTITIES = ("test_error", "train_loss", "train_mse", "readout_norm")


def library(z: Any) -> Any:
    """NumPy for its arrays, torch for tensors: the activation runs where its argument is."""
    if isinstance(z, (np.ndarray, float)):
        return np
    import torch

    return torch


def problem(n: int, exponent: float) -> Problem:
    """d = n/4, N = n/2, as many samples for the step as for the readout."""
    return Problem(
        activation=function(
            lambda z: library(z).sin(z + SHIFT),
            derivative=lambda z: library(z).cos(z + SHIFT),
            name=f"sin(z + {SHIFT})",
        ),
        centre=True,
        target="H1",
        n=n,
        d=n // 4,
        width=n // 2,
        step_exponent=exponent,
        step_scale=SCALE,
        ridge=0.1,
    )


def simulated(sizes: Iterable[int], most: int, device: str, out: Path) -> None:
    """Draw by draw, written after each: a run that is cut short keeps what it has."""
    data: dict[str, Any] = {"machine": machine(device), "draws": []}
    for n in sizes:
        for seed in range(min(most, DRAWS.get(n, most))):
            started = time.perf_counter()
            base = problem(n, EXPONENTS[0])
            grid = base.vary(step_exponent=list(EXPONENTS))
            errors = simulate(grid, seeds=[seed], device=device)
            middle = time.perf_counter()
            for index, exponent in enumerate(EXPONENTS):
                options: dict[str, Any] = {"seeds": [seed], "top": TOP, "device": device}
                found = simulated_spectrum(problem(n, exponent), **options)
                row = {"n": n, "exponent": exponent, "seed": seed}
                row["eigenvalues"] = [float(f"{v:.8g}") for v in found.found["trained"][0].top]
                row |= {name: float(errors.values[name][0, index, 0]) for name in QUANTITIES}
                data["draws"].append(row)
            end = time.perf_counter()
            rate = errors.flops / errors.wall_time / 1e12
            print(
                f"n = {n}, seed {seed}: errors {middle - started:.2f} s ({rate:.1f} Tflop/s), "
                f"spectra {end - middle:.2f} s",
                flush=True,
            )
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{NAME}.json").write_text(json.dumps(data, indent=None) + "\n")


def predicted(n: int, exponent: float) -> dict[str, Any]:
    """Edge, spikes and errors of the theory."""
    p = problem(n, exponent)
    law, errors = spectrum(p), predict(p)
    places = [spike.location for spike in law.spikes if spike.resolved]
    numbers = {name: getattr(errors, name) for name in QUANTITIES}
    return {"border": law.border.place, "edge": law.edge, "places": places, **numbers}


def table(draws: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each size and exponent: theory, means over draws, and their gaps."""
    rows = []
    for n in sorted({row["n"] for row in draws}):
        for exponent in EXPONENTS:
            here = [d for d in draws if d["n"] == n and d["exponent"] == exponent]
            if not here:
                continue
            theory = predicted(n, exponent)
            values = np.array([d["eigenvalues"] for d in here])
            counts = (values > theory["border"]).sum(axis=1)
            rows.append(
                {
                    "n": n,
                    "exponent": exponent,
                    "draws": len(here),
                    "theory": theory,
                    "counts": counts.tolist(),
                    "scatter": {
                        "test error": _root_mean_square(here, "test_error", theory),
                        "largest spike": float(
                            np.sqrt(np.mean((values[:, 0] / theory["places"][0] - 1.0) ** 2))
                        ),
                    },
                    "places": values.mean(axis=0).tolist(),
                    "place_errors": _standard_error(values).tolist(),
                    **{
                        name: (float(v.mean()), float(_standard_error(v)))
                        for name in QUANTITIES
                        for v in [np.array([d[name] for d in here])]
                    },
                }
            )
    return rows


def _root_mean_square(draws: list[dict[str, Any]], name: str, theory: dict[str, Any]) -> float:
    """Of the relative gap of one draw to the theory."""
    gaps = np.array([d[name] for d in draws]) / theory[name] - 1.0
    return float(np.sqrt(np.mean(gaps**2)))


def slope(rows: list[dict[str, Any]], kind: str) -> float:
    """The exponent with which a draw's gap falls in n, over all step exponents."""
    sizes = np.log([row["n"] for row in rows])
    gaps = np.log([row["scatter"][kind] for row in rows])
    weights = np.sqrt([row["draws"] for row in rows])  # a logarithm's error is about (2k)^(−1/2)
    return float(np.polyfit(sizes, gaps, 1, w=weights)[0])


def _standard_error(values: np.ndarray) -> np.ndarray:
    count = len(values)
    if count < 2:
        return np.full(values.shape[1:], np.nan)
    return values.std(axis=0, ddof=1) / count**0.5


def lines(rows: list[dict[str, Any]]) -> str:
    """The table as Markdown."""
    out = [
        "| α | n | draws | spikes: theory | simulated | largest gap of a place "
        "| test error: theory | simulated | gap | gap of one draw |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda r: (r["exponent"], r["n"])):
        places = np.array(row["theory"]["places"])
        gaps = np.array(row["places"][: len(places)]) / places - 1.0
        worst = gaps[np.argmax(np.abs(gaps))] if len(gaps) else np.nan
        mean, error = row["test_error"]
        expected = row["theory"]["test_error"]
        out.append(
            f"| {row['exponent']} | {row['n']} | {row['draws']} | {len(places)} | "
            f"{np.mean(row['counts']):g} | {worst:+.2%} | "
            f"{expected:.5f} | {mean:.5f} ± {error:.5f} | {mean / expected - 1:+.2%} | "
            f"{row['scatter']['test error']:.2%} |"
        )
    falls = ", ".join(f"{kind} n^{slope(rows, kind):.2f}" for kind in rows[0]["scatter"])
    out += ["", f"The root mean square gap of one draw to the theory falls like: {falls}."]
    return "\n".join(out)


def draw(rows: list[dict[str, Any]], device: str, path: Path) -> None:
    """Counts, places, errors and gaps against n."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.5), layout="constrained")
    (counts, places), (errors, gaps) = figure.subplots(2, 2)
    for index, exponent in enumerate(EXPONENTS):
        here = [row for row in rows if row["exponent"] == exponent]
        n = [row["n"] for row in here]
        color = f"C{index}"
        label = f"α = {exponent}"
        counts.plot(n, [len(r["theory"]["places"]) for r in here], color=color, label=label)
        counts.plot(n, [np.mean(r["counts"]) for r in here], "o", color=color)
        for rank in range(max(len(r["theory"]["places"]) for r in here)):
            seen = [r for r in here if len(r["theory"]["places"]) > rank]
            size = [r["n"] for r in seen]
            places.plot(size, [r["theory"]["places"][rank] for r in seen], color=color, lw=1)
            places.plot(size, [r["places"][rank] for r in seen], "o", ms=4, color=color)
        errors.plot(n, [r["theory"]["test_error"] for r in here], color=color, label=label)
        errors.errorbar(
            n,
            [r["test_error"][0] for r in here],
            [r["test_error"][1] for r in here],
            fmt="o",
            color=color,
        )
        for kind, mark in (("test error", "o-"), ("largest spike", "s:")):
            gaps.plot(n, [r["scatter"][kind] for r in here], mark, ms=5, color=color)
    size = np.array([row["n"] for row in rows if row["exponent"] == EXPONENTS[0]], dtype=float)
    gaps.plot(size, 0.1 * (size / size[0]) ** -0.5, color="0.6", lw=2, label=r"$n^{-1/2}$")
    counts.set(ylabel="spikes", title="lines: theory; points: networks")
    places.set(ylabel="eigenvalue of FᵀF/n", yscale="log", title="places of the spikes")
    errors.set(ylabel="test error", xlabel="n")
    gaps.set(
        ylabel="root mean square of draw/theory − 1",
        yscale="log",
        xlabel="n",
        title="one draw's gap (circles: test error, squares: largest spike)",
    )
    for ax in (counts, places, errors, gaps):
        ax.set_xscale("log")
        ax.title.set_fontsize(10)
    counts.legend()
    gaps.legend(fontsize="small")
    figure.suptitle(f"sin(z + {SHIFT}), d = n/4, width = n/2, η = {SCALE:g} n^α\n{device}", size=9)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("simulate", "draw"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(DRAWS))
    parser.add_argument("--most", type=int, default=16, help="draws of one size, at most")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--figure", type=Path, default=Path(f"docs/images/{NAME}.png"))
    options = parser.parse_args()
    if options.what == "simulate":
        simulated(options.sizes, options.most, options.device, options.out)
        return
    data = json.loads((options.out / f"{NAME}.json").read_text())
    rows = table(data["draws"])
    text = f"{data['machine']}\n\n{lines(rows)}\n"
    (options.out / f"{NAME}.md").write_text(text)
    draw(rows, data["machine"], options.figure)
    print(text)


if __name__ == "__main__":
    main()
