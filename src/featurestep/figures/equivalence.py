"""The trained features F against F_ℓ and the Gaussian model, as n grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.results import Progress
from ..core.types import Axes, xarray
from ..plots.simulation import GAP, points
from ..plots.style import PALETTE, figure_of, label
from ..simulation import feature_gap, simulate
from ..theory import predict
from . import Claim, ShareDone
from .base import drawn, over, over_seeds
from .spectra import base_problem

EXPONENTS = {0.15: 1, 0.29: 2}  # exponent → its regime ℓ
VARIANTS = {
    "trained": "$F$",
    "spiked": r"$F_\ell$",
    "gaussian+spiked": r"Gaussian, with $\ell$ spikes",
    "initial": "$F_0$",
}
_DEGREES = (1, 2)
_SEEDS = 12


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Operator-norm gaps and test errors of every variant for each n and exponent."""
    sizes = (150, 300, 600, 1200) if quick else (500, 1000, 2000, 4000)
    axes = {"n": sizes, "step_exponent": list(EXPONENTS)}
    return over(progress, _column, axes, lambda n, alpha: float(n) ** 2)


def _column(told: Progress, n: int, alpha: float) -> dict[str, Any]:
    """Of one n and exponent, with the spikes of its regime."""
    problem = base_problem(n).replace(step_scale=1.0, step_exponent=alpha, noise_std=0.3)
    ell = EXPONENTS[alpha]
    names = [f"{name}:{ell}" if name.endswith("spiked") else name for name in VARIANTS]
    found = simulate(problem, seeds=_SEEDS, variants=names, progress=told).dataset["test_error"]
    gaps = feature_gap(problem, degrees=_DEGREES, seeds=4).dataset
    data: dict[str, Any] = {"gap": gaps["gap"], "error_gap": gaps["gap_error"]}
    errors = found.assign_coords(variant=list(VARIANTS))
    data["test_error"], data["error_test_error"] = over_seeds(errors)
    data["difference"], data["error_difference"] = over_seeds(found[0] - found[1])
    return {**data, "predicted": predict(problem).test_error}


@drawn(columns=3, height=2.5)
def draw(data: xarray.Dataset, *panels: Axes) -> None:
    """Gaps on the left; test errors for each regime beside."""
    _gaps(panels[0], data)
    for ax, (alpha, ell) in zip(panels[1:], EXPONENTS.items(), strict=True):
        _errors(ax, data.sel(step_exponent=alpha))
        ax.set_title(rf"$\alpha = {alpha:g}$, $\ell = {ell}$")
    figure_of(panels[0]).legend(
        *panels[1].get_legend_handles_labels(), loc="outside lower right", ncols=5
    )
    for ax in panels:
        ax.set_xscale("log")
        ax.set_xlabel(label("n"))
        ax.set_xticks(data["n"].values, [str(n) for n in data["n"].values])
        ax.set_xticks([], minor=True)


def _gaps(ax: Axes, data: xarray.Dataset) -> None:
    lines = [(alpha, ell) for alpha, last in EXPONENTS.items() for ell in range(1, last + 1)]
    for i, (alpha, ell) in enumerate(lines):
        at = data.sel(step_exponent=alpha, degree=ell)
        colour = PALETTE[(0, 6, 4)[i]]
        ax.plot(at["n"], at["gap"], color=colour, linewidth=0.9)
        name = rf"$\ell = {ell}$ at $\alpha = {alpha:g}$"
        style = {"colour": colour, "name": name, "marker": "os^"[i]}
        points(ax, at["n"], at["gap"], at["error_gap"], **style)
    ax.set_ylim(0.0, 1.55 * float(data["gap"].max()))
    ax.set_ylabel(GAP)
    ax.legend(loc="upper left")


def _errors(ax: Axes, data: xarray.Dataset) -> None:
    ax.plot(data["n"], data["predicted"], color="black", linewidth=0.9, label="theory")
    spread = np.linspace(-0.05, 0.05, len(VARIANTS))  # so that points do not hide each other
    for i, (variant, name) in enumerate(VARIANTS.items()):
        at = data.sel(variant=variant)
        x = at["n"] * np.exp(spread[i])
        mean, error = at["test_error"], at["error_test_error"]
        points(ax, x, mean, error, colour=PALETTE[i], name=name, marker="os^D"[i])
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel(label("test_error"))


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """Gaps of the regime's ℓ vanish, that of a smaller ℓ does not; errors grow together."""
    for alpha, ell in EXPONENTS.items():
        at = data.sel(step_exponent=alpha, degree=ell)
        fall, z = _fall(at)
        text = f"α = {alpha:g}: ‖F − F_{ell}‖/√n falls, by {fall:.0%} over the sizes ({z:.1f} s.e.)"
        decreases = bool(np.all(np.diff(at["gap"]) < 0.0))
        yield Claim(f"{text}, at each of them", z >= 4.0 and decreases)
        apart, error = (
            np.abs(at[name].values / at["predicted"].values)
            for name in ("difference", "error_difference")
        )
        shares = ", ".join(f"{share:.1%}" for share in apart)
        text = f"α = {alpha:g}: test errors of F and F_{ell} differ by {shares} as n grows"
        yield Claim(text, bool(apart[0] - apart[-1] >= 4.0 * np.hypot(error[0], error[-1])))
    near = data.sel(step_exponent=0.15)
    gap = np.abs(near["difference"]) / near["error_test_error"].sel(variant="trained")
    largest = float(gap.max())
    text = f"α = 0.15: they agree within 2 s.e. of the test error itself (largest {largest:.1f})"
    yield Claim(text, largest <= 2.0)
    fall, z = _fall(data.sel(step_exponent=0.29, degree=1))
    text = f"α = 0.29: ‖F − F_1‖/√n, one spike too few, does not fall ({fall:.0%}, {z:.1f} s.e.)"
    yield Claim(text, z < 4.0)


def _fall(at: xarray.Dataset) -> tuple[float, float]:
    """Relative fall of the gap from the smallest n to the largest, and in standard errors."""
    gap, error = at["gap"].values, at["error_gap"].values
    fall = gap[0] - gap[-1]
    return float(fall / gap[0]), float(fall / np.hypot(error[0], error[-1]))
