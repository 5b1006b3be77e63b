"""The trained features F against F_ℓ and the Gaussian model, as n grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..plots.simulation import GAP, points
from ..plots.style import PALETTE, figure_of, label, new_axes, styled
from ..problem import Problem
from ..simulation import feature_gap, simulate
from ..theory import predict
from .base import TWO_COLUMNS, Claim, PaperFigure, Report, parts
from .spectra import base_problem

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPONENTS = {0.15: 1, 0.29: 2}  # exponent → its regime ℓ
VARIANTS = {
    "trained": "$F$",
    "spiked": r"$F_\ell$",
    "gaussian+spiked": r"Gaussian, with $\ell$ spikes",
    "initial": "$F_0$",
}
_DEGREES = (1, 2)
_SEEDS = 12


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Operator-norm gaps and test errors of every variant for each n and exponent."""
    import xarray

    sizes = (150, 300, 600, 1200) if quick else (500, 1000, 2000, 4000)
    told = parts(progress, [float(n) ** 2 for n in sizes])
    columns = [_column(_problem(n), next(told)) for n in sizes]
    joined: xarray.Dataset = xarray.concat(columns, "n").assign_coords(n=list(sizes))
    return joined


def _problem(n: int) -> Problem:
    return base_problem(n).replace(step_scale=1.0, step_exponent=0.15, noise_std=0.3)


def _column(problem: Problem, told: Any) -> xarray.Dataset:
    import xarray

    grid = problem.vary(step_exponent=list(EXPONENTS))
    names = ["trained", "initial"]
    names += [f"{kind}:{ell}" for kind in ("spiked", "gaussian+spiked") for ell in _DEGREES]
    found = simulate(grid, seeds=_SEEDS, variants=names, progress=told).dataset["test_error"]
    chosen = xarray.concat(
        [
            xarray.concat([_variant(found, name, alpha) for name in VARIANTS], "variant")
            for alpha in EXPONENTS
        ],
        "step_exponent",
    )  # (exponent, variant, seed)
    seeds = chosen.sizes["seed"]
    gaps = np.stack([feature_gap(p, degrees=_DEGREES, seeds=4).values for p in grid])
    apart = chosen.isel(variant=0) - chosen.isel(variant=1)
    axes = ("step_exponent", "degree")
    data: dict[str, Any] = {
        "gap": (axes, gaps.mean(axis=2)),
        "error_gap": (axes, gaps.std(axis=2, ddof=1) / gaps.shape[2] ** 0.5),
        "test_error": chosen.mean("seed"),
        "error_test_error": chosen.std("seed", ddof=1) / seeds**0.5,
        "difference": apart.mean("seed"),
        "error_difference": apart.std("seed", ddof=1) / seeds**0.5,
        "predicted": predict(grid)["test_error"],
    }
    coords = {"step_exponent": list(EXPONENTS), "degree": list(_DEGREES), "variant": list(VARIANTS)}
    return xarray.Dataset(data, coords)


def _variant(found: xarray.DataArray, name: str, alpha: float) -> xarray.DataArray:
    """A variant at an exponent, with the spikes of its regime."""
    full = f"{name}:{EXPONENTS[alpha]}" if name.endswith("spiked") else name
    return found.sel(variant=full, step_exponent=alpha, drop=True)


@styled
def draw(data: xarray.Dataset) -> Figure:
    """Gaps on the left; test errors for each regime beside."""
    panels = new_axes(columns=3, width=TWO_COLUMNS, height=2.5)
    _gaps(panels[0], data)
    for ax, (alpha, ell) in zip(panels[1:], EXPONENTS.items(), strict=True):
        _errors(ax, data.sel(step_exponent=alpha))
        ax.set_title(rf"$\alpha = {alpha:g}$, $\ell = {ell}$")
    figure = figure_of(panels[0])
    figure.legend(*panels[1].get_legend_handles_labels(), loc="outside lower right", ncols=5)
    for ax in panels:
        ax.set_xscale("log")
        ax.set_xlabel(label("n"))
        ax.set_xticks(data["n"].values, [str(n) for n in data["n"].values])
        ax.set_xticks([], minor=True)
    return figure


def _gaps(ax: Axes, data: xarray.Dataset) -> None:
    marks = "os^"
    lines = [(alpha, ell) for alpha, last in EXPONENTS.items() for ell in range(1, last + 1)]
    for i, (alpha, ell) in enumerate(lines):
        at = data.sel(step_exponent=alpha, degree=ell)
        colour = PALETTE[(0, 6, 4)[i]]
        ax.plot(at["n"], at["gap"], color=colour, linewidth=0.9)
        name = rf"$\ell = {ell}$ at $\alpha = {alpha:g}$"
        gap, error = at["gap"], at["error_gap"]
        points(ax, at["n"], gap, error, colour=colour, name=name, marker=marks[i])
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


def check(data: xarray.Dataset) -> list[Claim]:
    """Gaps of the regime's ℓ vanish, that of a smaller ℓ does not; errors grow together."""
    claims = []
    for alpha, ell in EXPONENTS.items():
        at = data.sel(step_exponent=alpha)
        fall, z = _fall(at.sel(degree=ell))
        text = f"α = {alpha:g}: ‖F − F_{ell}‖/√n falls, by {fall:.0%} over the sizes ({z:.1f} s.e.)"
        claims.append(Claim(f"{text}, at each of them", z >= 4.0 and _decreases(at, ell)))
        apart, error = (
            np.abs(at[name].values / at["predicted"].values)
            for name in ("difference", "error_difference")
        )
        shares = ", ".join(f"{share:.1%}" for share in apart)
        text = f"α = {alpha:g}: test errors of F and F_{ell} differ by {shares} as n grows"
        falls = apart[0] - apart[-1] >= 4.0 * np.hypot(error[0], error[-1])
        claims.append(Claim(text, bool(falls)))
    near = data.sel(step_exponent=0.15)
    gap = np.abs(near["difference"]) / near["error_test_error"].sel(variant="trained")
    largest = float(gap.max())
    text = f"α = 0.15: they agree within 2 s.e. of the test error itself (largest {largest:.1f})"
    claims.append(Claim(text, largest <= 2.0))
    fall, z = _fall(data.sel(step_exponent=0.29, degree=1))
    text = f"α = 0.29: ‖F − F_1‖/√n, one spike too few, does not fall ({fall:.0%}, {z:.1f} s.e.)"
    claims.append(Claim(text, z < 4.0))
    return claims


def _fall(at: xarray.Dataset) -> tuple[float, float]:
    """Relative fall of the gap from the smallest n to the largest, and in standard errors."""
    gap, error = at["gap"].values, at["error_gap"].values
    fall = gap[0] - gap[-1]
    return float(fall / gap[0]), float(fall / np.hypot(error[0], error[-1]))


def _decreases(at: xarray.Dataset, ell: int) -> bool:
    return bool(np.all(np.diff(at["gap"].sel(degree=ell).values) < 0.0))


FIGURE = PaperFigure(
    "equivalence", "trained, spiked and Gaussian features as n grows", compute, draw, check
)
