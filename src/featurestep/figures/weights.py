"""Spectrum of the weights: a bulk before the step, a bulk and one spike along β after it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.results import Progress
from ..core.types import Axes, xarray
from ..plots.spectra import OUTSIDE, mark_spike, weight_curve
from ..plots.style import PALETTE
from ..simulation import simulated_spectrum
from ..theory import spectrum
from . import Claim, ShareDone
from .base import agreement, drawn, over, over_seeds, sizes_of
from .spectra import at_exponent, base_problem, bulk_of, draw_bulk

EXPONENT = 0.15
_VARIANTS = ("initial_weights", "weights")
_BINS, _TOP = 36, 4


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Singular values of W0 and W, and how their largest are aligned."""
    problem = base_problem(1200 if quick else 4000).replace(step_exponent=EXPONENT)
    data = over(progress, partial(_column, problem, 12 if quick else 16), {"variant": _VARIANTS})
    return data.assign_attrs(**sizes_of(problem), step_exponent=EXPONENT)


def _column(problem: Problem, seeds: int, told: Progress, variant: str) -> dict[str, Any]:
    """Before the step or after it."""
    after = EXPONENT if variant == "weights" else float("-inf")
    law = spectrum(at_exponent(problem, after)).weights
    found = simulated_spectrum(problem, seeds=seeds, variants=[variant], top=_TOP, progress=told)
    overlaps = found.direction_overlaps(variant)
    place, beta, target = (np.nan, np.nan, np.nan) if law.spike is None else (
        law.spike.singular_value, law.spike.alignment, law.spike.target_alignment
    )  # fmt: skip
    return {
        **bulk_of(*weight_curve(law), found, law.border, variant, _BINS),
        "spike": place,
        "spike_beta": beta,
        "spike_target": target,
        "beta": ("seed", overlaps["beta"][:, 0]),
        "target": ("seed", overlaps["target"][:, 0]),
    }


@drawn(columns=2, height=2.3)
def draw(data: xarray.Dataset, *panels: Axes) -> None:
    """W0 and W side by side over the same axis."""
    right = 1.1 * float(data["largest"].max())
    titles = ("$W_0$, before the step", rf"$W$, after a step with $\alpha = {EXPONENT:g}$")
    for i, ax in enumerate(panels):
        _panel(ax, data.isel(variant=i))
        ax.set_xlim(0.0, right)
        ax.set_title(titles[i])
        ax.set_xlabel("singular value of the weights")
    panels[0].set_ylabel("density")
    panels[0].legend(loc="upper right")


def _panel(ax: Axes, column: xarray.Dataset) -> None:
    top = draw_bulk(ax, column)
    ax.set_ylim(0.0, 1.15 * top)
    x = float(column["spike"])
    if np.isnan(x):
        return
    largest = column["largest"].values[:, 0]
    ax.plot(largest, np.full(largest.size, 0.02 * top), **OUTSIDE)
    text = rf"$\cos^2$ with $\beta$: {float(column['spike_beta']):.2f}"
    text += "\n" + rf"with $\beta_{{*}}$: {float(column['spike_target']):.2f}"
    mark_spike(ax, x, PALETTE[1], text)


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """One spike after the step, none before, where and along what is predicted."""
    before, after = (data["simulated_count"].isel(variant=i).values for i in (0, 1))
    counts = f"at most {before.max():g} outliers before, {after.min():g} to {after.max():g} after"
    text = f"one spike in each of {after.size} networks, none before the step: {counts}"
    yield Claim(text, bool(np.all(before == 0) and np.all(after == 1)))
    trained = data.isel(variant=1)
    for words, predicted, draws in (
        ("place of the spike", "spike", trained["largest"].isel(top=0)),
        ("squared overlap with β", "spike_beta", trained["beta"]),
        ("squared overlap with β⋆", "spike_target", trained["target"]),
    ):
        mean, error = map(float, over_seeds(draws))
        words += f", {float(trained[predicted]):.4f} predicted and {mean:.4f} simulated"
        yield agreement(words, trained[predicted], mean, error)
