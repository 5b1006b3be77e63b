"""Which degrees are learned depends on the law of the readout at the start."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.results import Progress
from ..core.types import Axes, xarray
from ..plots.curves import shade_regimes
from ..plots.simulation import SIMULATED_NAME, points
from ..plots.style import PALETTE, label, legend_below
from ..theory import baselines, limit
from . import Claim, ShareDone
from .base import SHIFTED_SINE, as_predicted, below, beside, drawn, over, over_seeds, sizes_of

LAWS = ("gaussian", "uniform", "rademacher", "constant")
TARGETS = {2: "H1 + H2/sqrt(2)", 3: "H1 + H3/sqrt(6)"}  # by the degree to be learned
TITLES = {2: r"$\sigma_{*} = H_1 + H_2/\sqrt{2}$", 3: r"$\sigma_{*} = H_1 + H_3/\sqrt{6}$"}
LEARNED = {2: ("gaussian", "uniform", "rademacher"), 3: ("gaussian", "uniform")}
EXPONENTS = (0.05, 0.15, 0.25, 0.32, 0.39, 0.45)
JUDGED_EXPONENTS = {2: 0.39, 3: 0.45}  # degree → exponent at which it is or is not learned


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Test errors of each law and target against the exponent, and the learned powers."""
    n, seeds = (1000, 8) if quick else (3000, 16)
    axes = {"learns": list(TARGETS), "law": LAWS}
    data = over(progress, partial(_column, n, seeds), axes)
    return data.assign_attrs(**sizes_of(_problem(n, TARGETS[2], LAWS[0])), seeds=seeds)


def _problem(n: int, target: str, law: str) -> Problem:
    """Many samples in the step, which keeps the change of the norms small."""
    return Problem(
        activation=SHIFTED_SINE,
        centre=True,
        target=target,
        n=n,
        d=n // 4,
        width=n // 2,
        n_step=4 * n,
        step_exponent=0.3,
        step_scale=1.5,
        ridge=0.1,
        readout=law,
    )


def _column(n: int, seeds: int, told: Progress | None, degree: int, law: str) -> dict[str, Any]:
    problem = _problem(n, TARGETS[degree], law)
    grid, fine = (
        problem.vary(step_exponent=each) for each in (EXPONENTS, np.linspace(0.0, 0.48, 49))
    )
    return {
        **beside(grid, fine, seeds=seeds, progress=told),
        "in_limit": int(degree in limit(problem, degree=3).powers),
        "best_linear": baselines(problem).best_linear,
    }


@drawn(columns=2, height=2.8)
def draw(data: xarray.Dataset, *panels: Axes) -> None:
    """A panel for each target, a line for each law."""
    for ax, degree in zip(panels, TARGETS, strict=True):
        part = data.sel(learns=degree)
        ax.set_xlim(0.0, 0.48)
        shade_regimes(ax)
        for i, law in enumerate(LAWS):
            at = part.sel(law=law)
            ax.plot(at["curve_exponent"], at["curve"], color=PALETTE[i], label=f"{law} readout")
            style: dict[str, Any] = {
                "colour": PALETTE[i],
                "noted": at["admitted"],
                "marker": "os^D"[i],
            }
            points(ax, at["step_exponent"], at["simulated"], at["standard_error"], **style)
        level = float(part["best_linear"][0])
        ax.axhline(level, color="0.6", linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=0)
        words: dict[str, Any] = {"textcoords": "offset points", "fontsize": 6.5}
        ax.annotate("best linear predictor", (0.005, level), xytext=(0, 2), **words)
        ax.set_title(TITLES[degree], pad=14)
        ax.set_xlabel(label("step_exponent"))
    panels[0].set_ylabel(label("test_error"))
    points(panels[0], [], [], [], colour="0.3", name=SIMULATED_NAME)
    legend_below(panels[0], shared=True, ncols=5)


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """Each law learns the degrees whose power of the readout is new, and no others."""
    for degree in TARGETS:
        part = data.sel(learns=degree)
        yield as_predicted(f"H_{degree} in the target", part, part["admitted"])
        judged = part.sel(step_exponent=JUDGED_EXPONENTS[degree])
        yield from (_verdict(degree, law, judged) for law in LAWS)


def _verdict(degree: int, law: str, judged: xarray.Dataset) -> Claim:
    """A law that learns the degree beats every linear predictor; one that does not, does not.

    All laws see the same draws, so that what a law gains over the constant one is known far
    better than its error.
    """
    at, learns = judged.sel(law=law), law in LEARNED[degree]
    if bool(at["in_limit"]) != learns:
        return Claim(f"{law}: the limit disagrees on whether H_{degree} is learned", False)
    value, linear = float(at["simulated"]), float(at["best_linear"])
    if not learns:
        text = f"{law} does not learn H_{degree}: the best linear predictor is below its error"
        return below(text, linear, float(at["standard_error"]), value)
    gain, error = map(float, over_seeds(judged["draws"].sel(law="constant") - at["draws"]))
    words = f"{law} learns H_{degree}: below the best linear {linear:.3g}, and the constant law's"
    claim = below(words, value, error, value + gain)
    return Claim(claim.text, claim.holds and value < linear)
