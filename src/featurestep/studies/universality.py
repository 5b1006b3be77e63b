"""Planted targets on inputs that are not Gaussian: where does the theory hold?

Coordinates of other laws, clusters, and the images of scikit-learn's digits: raw (one scale for
all pixels), each pixel standardised, and whitened. The target and its direction are planted, so
that theory for N(0, I) inputs says what to expect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..figures.base import SHIFTED_SINE, TWO_COLUMNS, Claim, Report, parts, sizes_of
from ..plots.simulation import points
from ..plots.style import PALETTE, figure_of, label, legend_above, new_axes, styled
from ..problem import Problem
from ..simulation import Setting, simulate
from ..theory import predict
from ..types import FloatArray
from .base import Study, close, larger, over_draws
from .given_rows import digits

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

LAWS = ("gaussian", "rademacher", "uniform", "student_t(5)", "student_t(2.5)", "mixture(2, 3)")
IMAGES = ("gaussian, d = 61", "digits, raw", "digits, standardised", "digits, whitened")
INPUTS = (*LAWS, *IMAGES)
HEAVY = "student_t(2.5)"
VARIANTS = ("trained", "initial")
SHARE = 0.04
FAR, NEAR = 0.1, 0.15
# Bounded, so that a few far inputs do not make the labels' variance; c⋆_1 and c⋆_2 ≠ 0.
TARGET = SHIFTED_SINE.centred()


def images() -> FloatArray:
    """The pixels that vary, (1797, 61)."""
    X, _ = digits(STUDY.name)
    return np.asarray(X[:, X.std(axis=0) > 0])


def scaled(X: FloatArray, how: str) -> FloatArray:
    """Rows of mean 0, with one scale, one for each column, or the covariance I."""
    Z = X - X.mean(axis=0)
    if how == "raw":
        return np.asarray(Z / Z.std())
    Z = Z / Z.std(axis=0)
    if how == "standardised":
        return np.asarray(Z)
    values, vectors = np.linalg.eigh(Z.T @ Z / len(Z))
    return np.asarray(Z @ vectors / np.sqrt(values))


def problem(quick: bool, *, images: bool) -> Problem:
    """Sizes for drawn inputs; for images, sizes that leave some of them for the test."""
    n, d, width = (500, 61, 300) if images else (800, 200, 400) if quick else (2000, 500, 1000)
    return Problem(
        activation="relu",
        target=TARGET,
        n=n,
        d=d,
        width=width,
        n_step=n if images else 2 * n,
        step_size=1.5 * width**0.5,
        ridge=0.05,
        noise_std=0.2,
        centre=True,
    )


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Errors of the trained and the untrained network for every kind of inputs."""
    import xarray

    seeds = 16 if quick else 32
    X = images()
    told = parts(progress, [1.0] * len(INPUTS))
    draws = np.empty((len(INPUTS), len(VARIANTS), seeds))
    predicted = np.empty((len(INPUTS), len(VARIANTS)))
    for index, name in enumerate(INPUTS):
        asked = problem(quick, images=name in IMAGES)
        kind, _, how = name.partition(", ")
        inputs: Any = scaled(X, how) if kind == "digits" else name if name in LAWS else kind
        found = simulate(
            asked,
            seeds=seeds,
            n_test=700 if name in IMAGES else None,
            variants=VARIANTS,
            setting=Setting(inputs=inputs),
            progress=next(told),
        )
        draws[index] = found.values["test_error"]
        both = (asked, asked.replace(step_size=0.0))
        predicted[index] = [predict(each).test_error for each in both]
    return xarray.Dataset(
        {
            "draws": (("inputs", "variant", "seed"), draws),
            "predicted": (("inputs", "variant"), predicted),
        },
        {"inputs": list(INPUTS), "variant": list(VARIANTS)},
        {**sizes_of(problem(quick, images=False)), "seeds": seeds},
    )


@styled
def draw(data: xarray.Dataset) -> Figure:
    """Errors for every kind of inputs, beside the theory's."""
    (ax,) = new_axes(width=TWO_COLUMNS, height=2.8)
    x = np.arange(len(INPUTS))
    for index, variant in enumerate(VARIANTS):
        at = data.sel(variant=variant)
        ax.plot(x, at["predicted"], "_", color=PALETTE[index], markersize=16)
        points(ax, x, *over_draws(at["draws"]), colour=PALETTE[index], name=variant)
    ax.set_xticks(x, INPUTS, rotation=30, ha="right")
    ax.set_ylabel(label("test_error"))
    ax.plot([], [], "_", color="0.3", markersize=10, label="theory for N(0, I)")
    legend_above(ax, columns=3)
    return figure_of(ax)


def gap(data: xarray.Dataset, inputs: str, other: str = IMAGES[0]) -> float:
    """Relative distance of the trained network's error from that on other inputs."""
    draws = data["draws"].sel(variant="trained").mean("seed")
    return float(draws.sel(inputs=inputs) / draws.sel(inputs=other) - 1.0)


def check(data: xarray.Dataset) -> list[Claim]:
    """What the answer says."""
    claims = []
    for name in LAWS:
        if name != HEAVY:
            at = data.sel(inputs=name)
            what = f"{name}, trained and untrained"
            claims.append(close(what, at["predicted"], at["draws"], share=SHARE))
    heavy = gap(data, HEAVY, LAWS[0])
    text = f"{HEAVY}: the error is {heavy:+.0%} from that of Gaussian inputs"
    claims.append(Claim(f"{text} (at least {FAR:.0%} more)", bool(heavy >= FAR)))
    for name in IMAGES[1:3]:
        value = gap(data, name)
        text = f"{name}: the error is {value:+.0%} from that of Gaussian inputs"
        claims.append(Claim(f"{text} (at least {FAR:.0%} either way)", bool(abs(value) >= FAR)))
    value = gap(data, IMAGES[3])
    text = f"{IMAGES[3]}: the error is {value:+.0%} from that of Gaussian inputs"
    claims.append(Claim(f"{text} (at most {NEAR:.0%} either way)", bool(abs(value) <= NEAR)))
    for name in (LAWS[0], *IMAGES):
        draws = data["draws"].sel(inputs=name)
        what = f"{name}: the step helps, untrained against trained"
        both = (draws.sel(variant="initial"), draws.sel(variant="trained"))
        claims.append(larger(what, *both, by=2.0))
    return claims


STUDY = Study(
    name="universality",
    title="Planted targets on inputs of other laws and on real images",
    question="On which inputs, Gaussian or not, does the theory hold?",
    compute=compute,
    draw=draw,
    claims=check,
)
