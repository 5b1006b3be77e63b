"""The picture of *Concepts*: neurons, spectrum and learned function before and after the step.

python -m docs.tools.pictures    # writes docs/images/concepts.png
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featurestep import Problem, predict, spectrum

from .pages import DOCS

PROBLEM = Problem(
    activation="relu",
    centre=True,
    target="H1 + H2/sqrt(2)",
    n=2000,
    d=500,
    width=1000,
    n_step=16_000,
    step_exponent=0.4,
    step_scale=1.5,
    ridge=0.02,
    noise_std=0.1,
)
EXPONENTS = (0.0, 0.2, 0.3, 0.45)


def neurons(axes: Axes) -> None:
    """Mean response of five neurons along κ."""
    kappa = np.linspace(-3.0, 3.0, 201)
    unit = predict(PROBLEM).groups
    slope = float(unit.shift[-1] / unit.g[-1])
    for g in (-2.0, -1.0, 0.0, 1.0, 2.0):
        mean, _, _ = PROBLEM.sigma.moments(np.ones(1), slope * g * kappa)
        axes.plot(kappa, mean, color="black" if g == 0 else None, label=f"g = {g:+.0f}")
    axes.set(xlabel="κ, the input along the learned direction", title="mean response of a neuron")
    axes.legend(frameon=False, fontsize="small")


def singular_values(axes: Axes) -> None:
    """Bulk and spikes after the step."""
    found = spectrum(PROBLEM)
    top = found.edge**0.5
    s = np.linspace(1e-3, 1.02 * top, 400)
    density = 2.0 * s * found.density(s**2)
    axes.fill_between(s, density, color="0.75", lw=0)
    axes.plot(s, density, color="0.3", lw=1)
    for spike in found.spikes:
        at = spike.location**0.5
        label = f"κ{'' if spike.degree == 1 else '²'}"
        axes.plot(at, 0.0, marker="^", ms=11, color="C3", clip_on=False)
        axes.text(at, 0.09 * density.max(), label, ha="center", color="C3", size="large")
    axes.set(xlabel="singular value", title="the bulk, and what has left it", yticks=[])
    axes.set(xlim=(0.0, 1.1 * found.spikes[0].location ** 0.5), ylim=(0.0, None))


def learned(axes: Axes) -> None:
    """M(κ) for growing steps over the best function of κ."""
    kappa = np.linspace(-2.5, 2.5, 201)
    target = PROBLEM.sigma_star(kappa)
    axes.plot(kappa, target, color="black", ls="--", lw=1, label="target")
    for exponent in EXPONENTS:
        found = predict(PROBLEM.replace(step_exponent=exponent))
        axes.plot(kappa, found.learned(kappa), label=f"n^{exponent:g}")
    axes.set(xlabel="κ", title="what the network computes along κ")
    axes.legend(frameon=False, fontsize="small", title="step", title_fontsize="small")


def main() -> None:
    """Draw and save."""
    figure = Figure(figsize=(12.0, 3.6), layout="constrained")
    for draw, axes in zip((neurons, singular_values, learned), figure.subplots(1, 3), strict=True):
        draw(axes)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(DOCS / "images" / "concepts.png", dpi=110)


if __name__ == "__main__":
    main()
