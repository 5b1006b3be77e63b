"""The picture of *Concepts*: neurons, spectrum and learned function before and after the step.

python -m docs.tools.pictures    # writes docs/images/concepts.png
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from featurestep import Problem, predict, spectrum
from featurestep.plots import spectra
from featurestep.plots.style import PALETTE, figure_of, legend_above, new_axes, render, styled

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
        colour = "0.4" if g == 0 else PALETTE[g < 0]
        axes.plot(kappa, mean, color=colour, alpha=1.0 if abs(g) > 1 else 0.6, label=f"{g:.0f}")
    axes.set_xlabel(r"$\kappa$, input along the learned direction")
    axes.set_ylabel("mean response of a neuron")
    legend_above(axes, columns=5, title=r"start of the readout, $a_j\sqrt{N}$")


def singular_values(axes: Axes) -> None:
    """Bulk and spikes after the step."""
    found = spectrum(PROBLEM)
    spectra.features(found, ax=axes)
    s, density = found.curve()
    axes.fill_between(s, density, color="0.88", linewidth=0, zorder=0)
    axes.get_legend().remove()
    axes.set_title("the bulk, and what has left it")


def learned(axes: Axes) -> None:
    """M(κ) for growing steps over the best function of κ."""
    kappa = np.linspace(-2.5, 2.5, 201)
    target = PROBLEM.sigma_star(kappa)
    axes.plot(kappa, target, color="0.45", linestyle=(0, (4, 1.5)), label="target")
    for exponent, colour in zip(EXPONENTS, PALETTE, strict=False):
        found = predict(PROBLEM.replace(step_exponent=exponent))
        axes.plot(kappa, found.learned(kappa), color=colour, label=rf"$\alpha = {exponent:g}$")
    axes.set_xlabel(r"$\kappa$")
    axes.set_ylabel(r"what the network computes along $\kappa$")
    legend_above(axes, columns=3)


@styled
def main() -> None:
    """Draw and save."""
    panels = new_axes(columns=3, width=9.0, height=2.9, sharex=False)
    for draw, axes in zip((neurons, singular_values, learned), panels, strict=True):
        draw(axes)
    (DOCS / "images" / "concepts.png").write_bytes(render(figure_of(panels[0]), "png"))


if __name__ == "__main__":
    main()
