"""Outliers of the weights after two steps: in the limit, at finite n by theory, and in networks.

As N → ∞ steps η_τ ~ N^α_τ leave 1 + ⌊α2/(½ − α1)⌋ outliers. At finite n they come later, where the
theory's singular values leave the bulk; one counts beyond the border of `WeightSpectrum`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.results import Progress
from ..core.types import Axes, xarray
from ..plots.style import PALETTE, log_ticks
from ..simulation import simulated_spectrum
from ..theory.spectra.weights import outliers_in_the_limit, weights_after_steps
from . import Claim, ShareDone
from .base import drawn, over, over_seeds, sizes_of

EXPONENTS = (0.2, 0.3, 0.4, 0.45)
TOP = 5
REUSED = ("fresh", "same")
MAX_VALUE_GAP = 0.05  # relative gap of a singular value


def problem(quick: bool) -> Problem:
    """An activation with c_1, c_2, c_3 ≠ 0 and a continuous law: every order has its outlier."""
    d = 500 if quick else 2000
    return Problem(
        activation="sin(z+0.6)",
        target="H1",
        n=2 * d,
        d=d,
        width=3 * d // 2,
        n_step=2 * d,
        step_size=1.0,
        ridge=0.1,
        noise_std=0.3,
    )


def reused(quick: bool, batches: str) -> Problem:
    """A target without linear part, but E[y²t] ≠ 0: information exponent 2."""
    d = 400 if quick else 1000
    width = 3 * d // 2
    return Problem(
        activation="relu",
        target="H2/2 + H3/sqrt(12)",
        n=2 * d,
        d=d,
        width=width,
        n_step=2 * d,
        steps=2,
        step_size=width**0.5,
        batches=batches,
        ridge=0.1,
        noise_std=0.1,
    )


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Counts and singular values over both exponents; overlaps for fresh batches and the same."""
    asked, seeds = problem(quick), 3 if quick else 2
    axes = {"first": EXPONENTS, "second": EXPONENTS}
    data = over(progress, partial(_point, asked, seeds), axes)
    again = over(lambda share: None, partial(_reused, quick), {"batches": REUSED})
    return data.merge(again).assign_attrs(**sizes_of(asked), seeds=seeds)


def _point(
    asked: Problem, seeds: int, told: Progress, first: float, second: float
) -> dict[str, Any]:
    """Two steps of given exponents."""
    width = asked.width
    stepped = asked.replace(step_sizes=(width**first, width**second))
    law = weights_after_steps(stepped)
    edge, border = law.edges[1], np.sqrt(law.border.place)
    found = np.array([spike.singular_value for spike in law.spikes])
    places = np.pad(found, (0, TOP), constant_values=np.nan)[:TOP]
    run = simulated_spectrum(stepped, seeds=seeds, variants=["weights"], top=TOP, progress=told)
    values = np.asarray(run.singular_values("weights"))
    return {
        "limit": outliers_in_the_limit(first, second),
        "predicted_count": int((found > border).sum()),
        "edge": edge,
        "border": border,
        "predicted": ("rank", places),
        "simulated": (("seed", "rank"), values),
        "simulated_count": ("seed", (values > border).sum(axis=1)),
    }


def _reused(quick: bool, told: Progress, batches: str) -> dict[str, Any]:
    """Squared overlaps of the three largest singular vectors of W with β⋆, summed."""
    seeds = 16 if quick else 8
    run = simulated_spectrum(reused(quick, batches), seeds=seeds, variants=["weights"], top=3)
    return {
        "overlap": ("draw", np.asarray(run.direction_overlaps("weights")["target"]).sum(axis=1))
    }


@drawn(columns=2, height=2.9)
def draw(data: xarray.Dataset, left: Axes, right: Axes) -> None:
    """Counts over the exponents; singular values along α1 = α2."""
    _counts(left, data)
    _values(right, data)


def _counts(ax: Axes, data: xarray.Dataset) -> None:
    counts = data["predicted_count"].transpose("second", "first")
    ax.imshow(counts, origin="lower", cmap="Blues", vmin=0, vmax=6, aspect="auto")
    for i, second in enumerate(EXPONENTS):
        for j, first in enumerate(EXPONENTS):
            at = data.sel(first=first, second=second)
            text = f"{int(at['limit'])} · {int(at['predicted_count'])} · "
            ax.text(
                j, i, text + f"{float(at['simulated_count'].mean()):.2g}", ha="center", va="center"
            )
    ax.set_xticks(range(len(EXPONENTS)), [f"{a:g}" for a in EXPONENTS])
    ax.set_yticks(range(len(EXPONENTS)), [f"{a:g}" for a in EXPONENTS])
    ax.set_xlabel(r"$\alpha_1$")
    ax.set_ylabel(r"$\alpha_2$")
    ax.set_title("outliers of $W_2$: limit · theory · networks")


def _values(ax: Axes, data: xarray.Dataset) -> None:
    at = [data.sel(first=alpha, second=alpha) for alpha in EXPONENTS]
    places = range(len(EXPONENTS))
    for rank in range(3):
        theory = [float(each["predicted"][rank]) for each in at]
        mean = [float(each["simulated"].mean("seed")[rank]) for each in at]
        ax.plot(places, theory, color=PALETTE[rank], label=f"theory, number {rank + 1}")
        ax.plot(places, mean, "o", color=PALETTE[rank], markersize=4, fillstyle="none")
    edges = [float(each["edge"]) for each in at]
    ax.plot(places, edges, color="0.6", linewidth=0.8, linestyle="--", label="edge of the bulk")
    log_ticks(ax, "y")
    ax.set_xlabel(r"$\alpha_1 = \alpha_2$")
    ax.set_ylabel("singular values of $W_2$")
    ax.legend(loc="upper left")


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """Counts and places as predicted; fewer than in the limit; reused batches see more."""
    predicted, values = data["predicted"], data["simulated"]
    border = data["border"]
    # Places are known to MAX_VALUE_GAP: a prediction nearer to the border decides on no count.
    decided = ~(abs(predicted / border - 1.0) < MAX_VALUE_GAP).any("rank")
    same_count = (data["simulated_count"] == data["predicted_count"]).all("seed")
    text = (
        "beyond the border of spikes every network has as many singular values of W2 as predicted"
    )
    text += f", at the {int(decided.sum())} of {decided.size} pairs with none predicted within"
    yield Claim(
        f"{text} {MAX_VALUE_GAP:.0%} of the border", bool(same_count.where(decided, True).all())
    )
    gaps = abs(values.mean("seed") / predicted - 1.0).where(predicted > border)
    largest = float(gaps.max())
    text = f"they lie where predicted, within {largest:.1%} (less than {MAX_VALUE_GAP:.0%})"
    yield Claim(text, largest < MAX_VALUE_GAP)
    limit = data["limit"]
    fewer = int((data["predicted_count"] < limit).sum())
    text = f"at this size fewer than in the limit at {fewer} of {limit.size} pairs, never more"
    yield Claim(text, bool((data["predicted_count"] <= limit).all()) and fewer > 0)
    found = {
        name: over_seeds(data["overlap"].sel(batches=name).rename(draw="seed")) for name in REUSED
    }
    (fresh, before), (same, after) = found["fresh"], found["same"]
    error = float(np.hypot(before, after))
    text = (
        f"information exponent 2: overlap of W2 with β⋆ {float(fresh):.3f} for fresh batches, "
        f"{float(same):.3f} for the same batch twice, ± {error:.3f} between them"
    )
    yield Claim(text, float(same - fresh) > 3.0 * error)
