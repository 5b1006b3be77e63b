"""Every named activation on one target: which Hermite coefficients decide what is learned?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.results import Progress
from ..core.types import Axes, xarray
from ..figures import Claim, ShareDone
from ..figures.base import close, drawn, larger, over, over_seeds, sizes_of
from ..functions.activations import NAMED
from ..functions.nonlinearity import coefficients
from ..plots.simulation import points
from ..plots.style import PALETTE, label
from ..simulation import simulate
from ..theory import predict

ACTIVATIONS = tuple(name for name in NAMED if coefficients(NAMED[name], 1)[1] != 0.0)
ODD = tuple(name for name in ACTIVATIONS if coefficients(NAMED[name].centred(), 2)[2] == 0.0)
SHIFT = 1.0  # u of a neuron with g = 1: the step of every activation shifts neurons alike
MISSED, LEFT = 0.6, 0.2  # of the quadratic part: missed where it cannot be learned, where it can
MIN_RANK_CORRELATION = 0.6
TARGET, QUADRATIC = "H1 + 0.6*H2", 2 * 0.6**2


def problem(activation: str, quick: bool) -> Problem:
    """Steps of c_1η‖β‖/√N = SHIFT, so that activations differ by their shape alone."""
    d = 200 if quick else 500
    base = Problem(
        activation=activation,
        target=TARGET,
        n=6 * d,
        d=d,
        width=3 * d,
        n_step=8 * d,
        step_size=1.0,
        ridge=0.01,
        noise_std=0.3,
        centre=True,
    )
    # A ridge in units of the activation's own square, and a step in units of its c_1.
    c_1 = float(coefficients(base.sigma, 1)[1])
    second = base.sigma_star.second_moment + base.noise_std**2
    beta = (1.0 + base.phi_step * second) ** 0.5
    return base.replace(
        ridge=0.05 * base.sigma.second_moment, step_size=SHIFT * base.width**0.5 / (abs(c_1) * beta)
    )


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Coefficients, predicted error and what is missed of each degree; simulated errors."""
    seeds = 8 if quick else 12
    data = over(progress, partial(_column, quick, seeds), {"activation": ACTIVATIONS})
    return data.assign_attrs(**sizes_of(problem("tanh", quick)), seeds=seeds)


def _column(quick: bool, seeds: int, told: Progress, activation: str) -> dict[str, Any]:
    asked = problem(activation, quick)
    drawn = simulate(asked, seeds=seeds, progress=told)
    found, degrees = predict(asked), [1, 2, 3]
    missed = found.error_by_degree(3)
    c = coefficients(asked.sigma, 3)[degrees] / asked.sigma.second_moment**0.5
    return {
        "draws": ("seed", drawn.values["test_error"][0]),
        "predicted": found.test_error,
        "missed": ("degree", [missed[k] for k in degrees]),
        "coefficient": ("degree", c),
        "degree": degrees,
    }


@drawn(columns=2, height=2.8, sharex=False)
def draw(data: xarray.Dataset, left: Axes, right: Axes) -> None:
    """Errors of every activation, and the missed quadratic part against |c_2|."""
    ordered = data.isel(activation=np.argsort(data["draws"].mean("seed").values))
    x = np.arange(ordered.sizes["activation"])
    left.plot(x, ordered["predicted"], "_", color=PALETTE[0], markersize=12)
    points(left, x, *over_seeds(ordered["draws"]), colour=PALETTE[1])
    left.set_xticks(x, ordered["activation"].values, rotation=60, ha="right")
    left.set_ylabel(label("test_error"))
    c_2 = np.abs(data["coefficient"].sel(degree=2).values)
    gone = data["missed"].sel(degree=2).values / QUADRATIC
    right.plot(c_2, gone, "o", color=PALETTE[0])
    words: dict[str, Any] = {"fontsize": 6, "va": "center"}
    line = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkB": 3}
    for rank, i in enumerate(i for i in np.argsort(c_2) if c_2[i] > 0):  # a column of names
        name, at = str(data["activation"].values[i]), (c_2[i], gone[i])
        where: dict[str, Any] = {"xytext": (0.5, 0.25 + 0.09 * rank), "textcoords": "axes fraction"}
        right.annotate(name, at, ha="right", arrowprops=line, **where, **words)
    where = {"xytext": (6, 0), "textcoords": "offset points"}
    right.annotate(", ".join(ODD), (0.0, gone[c_2 == 0].max()), **where, **words)
    right.set_xlabel(r"$|c_2|/\sqrt{E\sigma^2}$")
    right.set_ylabel("share of the quadratic part missed")


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """Theory holds for all; the quadratic part is learned by those with c_2 ≠ 0 and no others."""
    draws, mean = data["draws"], data["draws"].mean("seed")
    yield close("every activation", data["predicted"], draws)
    gone = data["missed"].sel(degree=2) / QUADRATIC
    odd = gone.sel(activation=list(ODD))
    even = gone.drop_sel(activation=list(ODD))
    text = f"with c_2 = 0 ({', '.join(ODD)}) at least {float(odd.min()):.0%} of the quadratic part"
    yield Claim(f"{text} is missed (at least {MISSED:.0%})", bool(odd.min() >= MISSED))
    text = f"with c_2 ≠ 0 at most {float(even.max()):.0%} of it is missed (at most {LEFT:.0%})"
    yield Claim(text, bool(even.max() <= LEFT))
    for name, among in (("c_2 = 0", odd), ("c_2 ≠ 0", even)):
        linear = data["coefficient"].sel(degree=1, activation=among["activation"])
        rank = _rank_correlation(-linear, mean.sel(activation=among["activation"]))
        text = f"among those with {name} the error falls with c_1²/Eσ²: rank correlation {rank:.2f}"
        yield Claim(
            f"{text} (at least {MIN_RANK_CORRELATION:g})", bool(rank >= MIN_RANK_CORRELATION)
        )
    best = mean.idxmin().item()
    worse = draws.sel(activation="tanh")
    yield larger(f"tanh is worse than {best}, the best", worse, draws.sel(activation=best))


def _rank_correlation(left: Any, right: Any) -> float:
    ranks = [np.argsort(np.argsort(values)) for values in (left, right)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
