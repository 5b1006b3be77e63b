"""The picture of the README on several steps: test error against their number, by theory.

python -m docs.tools.schedules    # writes docs/images/steps.png, prints the numbers
"""

from __future__ import annotations

from featurestep import Problem, optimum, predict
from featurestep.plots.style import PALETTE, figure_of, legend_below, new_axes, render, styled

from .pages import DOCS

PROBLEM = Problem(
    activation="relu",
    target="H1 + H2/sqrt(2)",
    readout="constant",
    n=4000,
    d=2000,
    width=3000,
    n_step=8000,
    step_size=1.0,
    ridge=0.02,
    noise_std=0.2,
)
TOTAL = 1.5  # size of all steps together, in units of √N
STEPS, SEARCHED = (1, 2, 3, 4, 6, 8), (1, 2, 3, 4)
NAMES = {False: "batches of $n_0$ samples", True: "batches of $n_0/T$ samples"}


def batch(steps: int, *, shared: bool) -> int:
    """Samples of a step: n0, or an equal share of it."""
    return PROBLEM.n_step // steps if shared else PROBLEM.n_step


@styled
def main() -> None:
    """Compute, print, draw and save."""
    (axes,) = new_axes(columns=1, width=4.4, height=2.9)
    size = TOTAL * PROBLEM.width**0.5
    for colour, (shared, name) in zip(PALETTE, NAMES.items(), strict=False):
        equal = []
        for steps in STEPS:
            sizes = (size / steps,) * steps
            asked = PROBLEM.replace(step_sizes=sizes, n_step=batch(steps, shared=shared))
            equal.append(predict(asked).test_error)
        best = []
        for steps in SEARCHED:
            asked = PROBLEM.replace(steps=steps, n_step=batch(steps, shared=shared))
            found = optimum(asked, over="step_sizes")
            best.append(found.value)
            units = [eta / PROBLEM.width**0.5 for eta in found.location["step_sizes"]]
            print(name, steps, "best:", round(found.value, 4), [round(unit, 2) for unit in units])
        print(name, [round(error, 4) for error in equal])
        axes.plot(STEPS, equal, color=colour, label=f"{name}, equal sizes")
        axes.plot(SEARCHED, best, "v", color=colour, fillstyle="none", label="best sizes")
    axes.set_xlabel("steps $T$")
    axes.set_ylabel("test error, theory")
    legend_below(axes, ncols=2)
    (DOCS / "images" / "steps.png").write_bytes(render(figure_of(axes), "png"))


if __name__ == "__main__":
    main()
