"""Planted targets on inputs that are not Gaussian: where does the theory hold?

Coordinates of other laws, clusters, and the images of scikit-learn's digits: raw (one scale for
all pixels), each pixel standardised, and whitened. The target and its direction are planted, so
that the theory says what to expect: for N(0, I) inputs, and for images also with their covariance.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.results import Progress
from ..core.types import Axes, FloatArray, xarray
from ..figures import Claim, ShareDone
from ..figures.base import SHIFTED_SINE, close, drawn, larger, over, over_seeds, sizes_of
from ..plots.simulation import points
from ..plots.style import PALETTE, label, legend_above
from ..simulation import Setting, simulate
from ..theory import predict
from .given_rows import digits

LAWS = ("gaussian", "rademacher", "uniform", "student_t(5)", "student_t(2.5)", "mixture(2, 3)")
WHITE = "digits, whitened"
SHAPED = ("digits, raw", "digits, standardised")
IMAGES = ("gaussian, d = 61", *SHAPED, WHITE)
INPUTS = (*LAWS, *IMAGES)
HEAVY = "student_t(2.5)"
VARIANTS = ("trained", "initial")
PREDICTIONS = ("predicted", "with_covariance")
FAR, NEAR = 0.1, 0.15
# Bounded, so that a few far inputs do not make the labels' variance; c⋆_1 and c⋆_2 ≠ 0.
TARGET = SHIFTED_SINE.centred()


def images() -> FloatArray:
    """The pixels that vary, (1797, 61)."""
    X, _ = digits("universality")
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


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Errors of the trained and the untrained network for every kind of inputs."""
    seeds = 16 if quick else 32
    data = over(progress, partial(_errors, images(), quick, seeds), {"inputs": INPUTS})
    sizes = sizes_of(problem(quick, images=False))
    return data.assign_coords(variant=list(VARIANTS)).assign_attrs(**sizes, seeds=seeds)


def _errors(X: FloatArray, quick: bool, seeds: int, told: Progress, name: str) -> dict[str, Any]:
    """Of one kind of inputs."""
    asked = problem(quick, images=name in IMAGES)
    kind, _, how = name.partition(", ")
    inputs: Any = scaled(X, how) if kind == "digits" else name if name in LAWS else kind
    found = simulate(
        asked,
        seeds=seeds,
        n_test=700 if name in IMAGES else None,
        variants=VARIANTS,
        setting=Setting(inputs=inputs),
        progress=told,
    )
    both = (asked, asked.replace(step_size=0.0))
    plain = [predict(each).test_error for each in both]
    shaped, draws = plain, found.values["test_error"]
    alike = draws  # of Gaussian inputs with the same covariance
    if name in SHAPED:
        covariance = inputs.T @ inputs / len(inputs)
        shaped = [predict(each.replace(covariance=covariance)).test_error for each in both]
        gaussian = asked.replace(covariance=covariance)
        alike = simulate(gaussian, seeds=seeds, variants=VARIANTS).values["test_error"]
    return {
        "draws": (("variant", "seed"), draws),
        "gaussian_draws": (("variant", "seed"), alike),
        "predicted": ("variant", plain),
        "with_covariance": ("variant", shaped),
    }


@drawn(height=2.8)
def draw(data: xarray.Dataset, ax: Axes) -> None:
    """Errors for every kind of inputs, beside the theory's."""
    x = np.arange(len(INPUTS))
    for index, variant in enumerate(VARIANTS):
        at = data.sel(variant=variant)
        ax.plot(x, at["predicted"], "_", color=PALETTE[index], markersize=16)
        shaped = [INPUTS.index(name) for name in SHAPED]
        ax.plot(shaped, at["with_covariance"][shaped], "x", color=PALETTE[index], markersize=5)
        points(ax, x, *over_seeds(at["draws"]), colour=PALETTE[index], name=variant)
    ax.set_xticks(x, INPUTS, rotation=30, ha="right")
    ax.set_ylabel(label("test_error"))
    ax.plot([], [], "_", color="0.3", markersize=10, label="theory for N(0, I)")
    ax.plot([], [], "x", color="0.3", markersize=5, label="with the covariance")
    legend_above(ax, columns=4)


def gap(data: xarray.Dataset, inputs: str, other: str) -> float:
    """Relative distance of the trained network's error from that on other inputs."""
    draws = data["draws"].sel(variant="trained").mean("seed")
    return float(draws.sel(inputs=inputs) / draws.sel(inputs=other) - 1.0)


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """What the answer says."""
    for name in LAWS:
        if name != HEAVY:
            at = data.sel(inputs=name)
            what = f"{name}, trained and untrained"
            yield close(what, at["predicted"], at["draws"])
    for name in (HEAVY, *IMAGES[1:]):
        value = gap(data, name, LAWS[0] if name == HEAVY else IMAGES[0])
        words, holds = f"at least {FAR:.0%} either way", abs(value) >= FAR
        if name == HEAVY:
            words, holds = f"at least {FAR:.0%} more", value >= FAR
        elif name == WHITE:
            words, holds = f"at most {NEAR:.0%} either way", abs(value) <= NEAR
        text = f"{name}: the error is {value:+.0%} from that of Gaussian inputs"
        yield Claim(f"{text} ({words})", holds)
    for name in SHAPED:
        at = data.sel(inputs=name)
        mean = at["draws"].mean("seed")
        plain, shaped = (float(np.abs(at[of] / mean - 1.0).max()) for of in PREDICTIONS)
        text = f"{name}: the theory with their covariance is {shaped:.0%} off, that for N(0, I)"
        yield Claim(f"{text} {plain:.0%}", shaped < plain)
        what = f"{name}: Gaussian inputs with their covariance, trained and untrained"
        yield close(what, at["with_covariance"], at["gaussian_draws"])
    for name in (LAWS[0], *IMAGES):
        draws = data["draws"].sel(inputs=name)
        what = f"{name}: the step helps, untrained against trained"
        yield larger(what, draws.sel(variant="initial"), draws.sel(variant="trained"), by=2.0)
