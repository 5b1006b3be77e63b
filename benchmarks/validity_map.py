"""The map of `benchmarks.validity`: predictions beside the record, as a table and a figure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.validity import LARGE, RECORD, ROOT, read_record
from featurestep import FeaturestepError, Problem, predict
from featurestep.plots.style import PALETTE, figure_of, new_axes, render, styled

PAGE = ROOT / "docs" / "validity-map.md"
FIGURE = ROOT / "docs" / "images" / "validity.png"
WITHIN = (0.01, 0.03, 0.10)
QUADRATIC = (0.0, 0.03, 0.1, math.inf)
FAMILIES = ("odd", "others (c_2 ≠ 0)", "polynomial")  # of activations
STEPS = (0.0, 0.1, 0.5, 2.0, 8.0, math.inf)


@dataclass(frozen=True)
class Point:
    """One problem: how far the network is from the prediction, and how sure that is."""

    problem: Problem
    gap: float  # simulated/predicted − 1; NaN where the prediction is refused
    error: float  # standard error of the gap
    isotropic_gap: float
    noted: bool
    status: str

    @property
    def step(self) -> float:
        """η/√N."""
        return float(self.problem.step_size / self.problem.width**0.5)

    @property
    def quadratic(self) -> float:
        """min(n, N) over the number of quadratic functions of an input, d(d + 1)/2."""
        q = self.problem
        return min(q.n, q.width) / (q.d * (q.d + 1) / 2)

    @property
    def family(self) -> str:
        """Polynomials grow fast; odd functions have no c_2; the rest has one."""
        sigma = self.problem.sigma
        if "H" in sigma.name:
            return "polynomial"
        even = abs(sigma.derivative_means(np.ones(1), np.zeros(1), 2)[2, 0])
        return "odd" if even < 1e-9 else "others (c_2 ≠ 0)"


def measured(row: dict[str, Any], quantity: str = "test_error") -> Point:
    """One row of a record beside its prediction."""
    problem = Problem(**row["problem"])
    mean, error = row[quantity]
    try:
        found = predict(problem)
        isotropic = getattr(predict(problem, method="isotropic"), quantity)
    except FeaturestepError as refusal:
        return Point(problem, math.nan, math.nan, math.nan, False, str(refusal))
    value = getattr(found, quantity)
    gap, other = mean / value - 1.0, mean / isotropic - 1.0
    return Point(problem, gap, error / value, other, bool(found.notes), "ok")


def points() -> list[Point]:
    """Every problem of both records."""
    rows = [*read_record(RECORD), *json.loads(LARGE.read_text())]
    return [measured(row) for row in rows]


def shares(chosen: Sequence[Point], gaps: Sequence[float]) -> list[str]:
    """Cells: per cent within 1, 3, 10 %, and the median of the gap's size."""
    if not chosen:
        return ["–"] * (len(WITHIN) + 1)
    size = np.abs(np.array(gaps))
    cells = [f"{100 * np.mean(size <= limit):.0f}" for limit in WITHIN]
    return [*cells, f"{100 * np.median(size):.1f}"]


def best_possible(chosen: Sequence[Point]) -> list[str]:
    """The same cells if predictions were perfect: what the error bars of the record allow."""
    drawn = np.random.default_rng(0).standard_normal((2000, len(chosen)))
    size = np.abs(drawn * np.array([p.error for p in chosen]))
    return [*(f"{100 * np.mean(size <= w):.0f}" for w in WITHIN), f"{100 * np.median(size):.1f}"]


def surely_off(chosen: Sequence[Point], limit: float) -> int:
    """Problems whose gap exceeds a limit by more than two standard errors."""
    return sum(abs(p.gap) - 2.0 * p.error > limit for p in chosen)


def table(found: Sequence[Point]) -> str:
    """The map in Markdown."""
    known = [p for p in found if p.status == "ok"]
    head = "| problems | how many | within 1 % | 3 % | 10 % | median gap, % | surely off by > 3 % |"
    lines = [head, "|---|---|---|---|---|---|---|"]

    def line(name: str, chosen: list[Point]) -> str:
        cells = [*shares(chosen, [p.gap for p in chosen]), str(surely_off(chosen, 0.03))]
        return f"| {name} | {len(chosen)} | {' | '.join(cells)} |"

    def split(title: str, key: Callable[[Point], bool]) -> None:
        lines.append(line(title, [p for p in known if key(p)]))

    split("**all**", lambda p: True)
    cells = [*best_possible(known), "–"]
    lines.append(
        f"| *a perfect theory, with these error bars* | {len(known)} | {' | '.join(cells)} |"
    )
    cells = shares(known, [p.isotropic_gap for p in known])
    lines.append(f"| *isotropic weights (as published)* | {len(known)} | {' | '.join(cells)} | – |")
    split("no validity note", lambda p: not p.noted)
    split("with a note", lambda p: p.noted)
    for low, high in pairwise(STEPS):
        name = f"{low:g} ≤ η/√N < {high:g}" if high < math.inf else f"η/√N ≥ {low:g}"
        split(name, lambda p, low=low, high=high: low <= p.step < high)  # type: ignore[misc]
    for family in FAMILIES:
        split(f"activation: {family}", lambda p, f=family: p.family == f)  # type: ignore[misc]
    for low, high in pairwise(QUADRATIC):
        name = (
            f"min(n, N) from {low:g} to {high:g} of d²/2" if low else f"min(n, N) < {high:g}·d²/2"
        )
        name = name if high < math.inf else f"min(n, N) ≥ {low:g}·d²/2"
        split(name, lambda p, low=low, high=high: low <= p.quadratic < high)  # type: ignore[misc]
    split("no polynomial", lambda p: p.family != "polynomial")
    split(
        f"no polynomial, min(n, N) < {QUADRATIC[1]:g}·d²/2",
        lambda p: p.family != "polynomial" and p.quadratic < QUADRATIC[1],
    )
    for residual in ("labels", "full"):
        split(f"residual: {residual}", lambda p, r=residual: p.problem.residual == r)  # type: ignore[misc]
    for initial in ("sphere", "gaussian"):
        split(f"rows: {initial}", lambda p, i=initial: p.problem.initial == i)  # type: ignore[misc]
    for low, high in ((0, 700), (700, 1600), (1600, 10**9)):
        name = f"n from {low or 400} to {high}" if high < 10**9 else "n = 2000 to 3000"
        split(name, lambda p, a=low, b=high: a <= p.problem.n < b)  # type: ignore[misc]
    refused = [p for p in found if p.status != "ok"]
    lines += ["", f"Refused, with a reason in words: {len(refused)} of {len(found)}.", ""]
    lines += [f"- {p.status}" for p in refused[:10]]
    lines += ["", "The ten largest gaps that are certain beyond two standard errors:", ""]
    lines += [
        "| gap, % | activation, target | n, d, N, n₀ | η/√N | readout, residual, rows | noted |"
    ]
    lines += ["|---|---|---|---|---|---|"]
    certain = sorted(known, key=lambda p: 2.0 * p.error - abs(p.gap))[:10]
    return "\n".join([*lines, *(_worst(p) for p in certain if abs(p.gap) > 2 * p.error)]) + "\n"


def _worst(p: Point) -> str:
    q = p.problem
    law = q.readout if isinstance(q.readout, str) else "list"
    sizes = f"{q.n}, {q.d}, {q.width}, {q.n_step}"
    gap = f"{100 * p.gap:+.1f} ± {100 * p.error:.1f}"
    return (
        f"| {gap} | {q.sigma.name}, {q.sigma_star.name} | {sizes} | {p.step:.2g} | "
        f"{law}, {q.residual}, {q.initial} | {'yes' if p.noted else 'no'} |"
    )


@styled
def draw(found: Sequence[Point], path: Path) -> None:
    """Gaps with error bars against the step, exact and isotropic weights."""
    known = [p for p in found if p.status == "ok"]
    panels = new_axes(columns=2, width=8.0, height=3.6)
    titles = ("predict", "isotropic weights")
    for axes, title, name in zip(panels, titles, ("gap", "isotropic_gap"), strict=True):
        for family, colour in zip(FAMILIES, PALETTE, strict=False):
            chosen = [p for p in known if p.family == family]
            x = [max(p.step, 1e-2) for p in chosen]
            y = [100.0 * getattr(p, name) for p in chosen]
            bars = [200.0 * p.error for p in chosen]
            label = family.replace("c_2 ≠ 0", r"$c_2 \neq 0$")
            axes.errorbar(
                x, y, bars, fmt="o", markersize=2.5, linewidth=0.6, color=colour, label=label
            )
        for limit in WITHIN:
            for sign in (-1.0, 1.0):
                axes.axhline(100 * sign * limit, color="0.6", linewidth=0.6, zorder=0)
        axes.set(xscale="log", xlabel=r"step $\eta/\sqrt{N}$", title=title, ylim=(-150, 250))
        axes.set_yscale("symlog", linthresh=3.0)
        axes.set_yticks([-100, -10, -3, -1, 0, 1, 3, 10, 100])
        axes.set_yticklabels(["−100", "−10", "−3", "−1", "0", "1", "3", "10", "100"])
    panels[0].set_ylabel("network against prediction, %")
    handles = panels[0].get_legend_handles_labels()
    figure_of(panels[0]).legend(*handles, loc="outside lower center", ncols=3, title="activation")
    path.write_bytes(render(figure_of(panels[0]), "png"))


def write() -> None:
    """Predict everything; write the page and the figure."""
    found = points()
    PAGE.write_text(table(found))
    draw(found, FIGURE)
