"""Every named activation on one target: which Hermite coefficients decide what is learned?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..figures.base import TWO_COLUMNS, Claim, Report, parts, sizes_of
from ..functions.activations import NAMED
from ..functions.hermite import coefficients
from ..plots.simulation import points
from ..plots.style import PALETTE, figure_of, label, new_axes, styled
from ..problem import Problem
from ..simulation import simulate
from ..theory import predict
from ..types import FloatArray
from .base import Study, close, larger, over_draws

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

ACTIVATIONS = tuple(name for name in NAMED if coefficients(NAMED[name], 1)[1] != 0.0)
ODD = tuple(name for name in ACTIVATIONS if coefficients(NAMED[name].centred(), 2)[2] == 0.0)
SHARE = 0.04
SHIFT = 1.0  # u of a neuron with g = 1: the step of every activation shifts neurons alike
MISSED, LEFT = 0.6, 0.2  # of the quadratic part: missed where it cannot be learned, where it can
RANKED = 0.6
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


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Coefficients, predicted error and what is missed of each degree; simulated errors."""
    import xarray

    seeds = 8 if quick else 12
    told = parts(progress, [1.0] * len(ACTIVATIONS))
    draws = np.empty((len(ACTIVATIONS), seeds))
    predicted, missed, c = [], [], []
    for index, activation in enumerate(ACTIVATIONS):
        asked = problem(activation, quick)
        draws[index] = simulate(asked, seeds=seeds, progress=next(told)).values["test_error"][0]
        found = predict(asked)
        degrees = found.error_by_degree(3)
        predicted.append(found.test_error)
        missed.append([degrees[k] for k in (1, 2, 3)])
        scale = asked.sigma.second_moment**0.5
        c.append(coefficients(asked.sigma, 3)[1:] / scale)
    return xarray.Dataset(
        {
            "draws": (("activation", "seed"), draws),
            "predicted": ("activation", predicted),
            "missed": (("activation", "degree"), missed),
            "coefficient": (("activation", "degree"), c),
        },
        {"activation": list(ACTIVATIONS), "degree": [1, 2, 3]},
        {**sizes_of(problem("tanh", quick)), "seeds": seeds},
    )


@styled
def draw(data: xarray.Dataset) -> Figure:
    """Errors of every activation, and the missed quadratic part against |c_2|."""
    left, right = new_axes(columns=2, width=TWO_COLUMNS, height=2.8, sharex=False)
    mean, error = over_draws(data["draws"])
    order = np.argsort(mean)
    names = data["activation"].values[order]
    x = np.arange(len(order))
    left.plot(x, data["predicted"].values[order], "_", color=PALETTE[0], markersize=12)
    points(left, x, mean[order], error[order], colour=PALETTE[1])
    left.set_xticks(x, names, rotation=60, ha="right")
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
    return figure_of(left)


def check(data: xarray.Dataset) -> list[Claim]:
    """Theory holds for all; the quadratic part is learned by those with c_2 ≠ 0 and no others."""
    mean, _ = over_draws(data["draws"])
    claims = [close("every activation", data["predicted"], data["draws"], share=SHARE)]
    gone = data["missed"].sel(degree=2) / QUADRATIC
    odd = gone.sel(activation=list(ODD))
    even = gone.drop_sel(activation=list(ODD))
    text = (
        f"with c_2 = 0 ({', '.join(ODD)}) at least {float(odd.min()):.0%} of the quadratic part "
        f"is missed (at least {MISSED:.0%})"
    )
    claims.append(Claim(text, bool(odd.min() >= MISSED)))
    text = f"with c_2 ≠ 0 at most {float(even.max()):.0%} of it is missed (at most {LEFT:.0%})"
    claims.append(Claim(text, bool(even.max() <= LEFT)))
    linear = data["coefficient"].sel(degree=1)
    for name, among in (("c_2 = 0", odd), ("c_2 ≠ 0", even)):
        here = data["activation"].isin(among["activation"]).values
        rank = _rank_correlation(-linear.values[here], mean[here])
        text = f"among those with {name} the error falls with c_1²/Eσ²: rank correlation {rank:.2f}"
        claims.append(Claim(f"{text} (at least {RANKED:g})", bool(rank >= RANKED)))
    draws = data["draws"]
    best = str(data["activation"].values[int(np.argmin(mean))])
    claims.append(
        larger(
            f"tanh is worse than {best}, the best",
            draws.sel(activation="tanh"),
            draws.sel(activation=best),
        )
    )
    return claims


def _rank_correlation(left: FloatArray, right: FloatArray) -> float:
    ranks = [np.argsort(np.argsort(values)) for values in (left, right)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


STUDY = Study(
    name="activations",
    title="Every named activation with the same shift: errors and what is missed of each degree",
    question="Which Hermite coefficients of the activation decide what one step learns?",
    compute=compute,
    draw=draw,
    claims=check,
)
