"""Rows used twice: when is it better to fit the readout on the rows of the step?

With a number of rows at hand, either half of them serve the step and the others the readout, or all
of them serve both. The theory of both is known, so that each gets its best ridge and step. Where
rows are used twice, a row's label is in the weights that its own features are computed with: the
last part removes this share of a row in its own features, and asks the training error.
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
from ..figures.base import close, drawn, larger, over, over_seeds, sizes_of
from ..plots.simulation import points
from ..plots.style import PALETTE, legend_above
from ..simulation import simulate
from ..theory import optimum, predict

RATIOS = (0.1, 0.3, 1.0, 2.0)  # d over all rows
TASKS = {  # activation, target, standard deviation of the noise
    "little noise": ("tanh", "tanh", 0.3),
    "much noise": ("tanh", "tanh", 1.0),
    "ReLU": ("relu", "H1 + 0.5*H2", 0.3),
}
WAYS = ("halves", "twice")
SHARE = 0.04  # within which the theory is asked to hold
COST = 0.05  # of ridge and step that are best for as many fresh rows: less with little noise
SIMILAR = 0.04  # relative: both ways with much noise
SEARCH = 1e-3  # relative, of the errors that a search finds
MEMORISED = 0.75  # training error at the largest d, over that on fresh rows


def problem(task: str, ratio: float, quick: bool) -> Problem:
    """All rows used twice, with a step of √N."""
    rows = 1000 if quick else 3000
    activation, target, noise = TASKS[task]
    return Problem(
        activation=activation,
        target=target,
        n=rows,
        d=round(ratio * rows),
        width=rows // 2,
        step_size=(rows // 2) ** 0.5,
        ridge=0.05,
        noise_std=noise,
        readout="rademacher",
        rows="same",
    )


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Best errors of both ways, and training errors."""
    seeds = 8 if quick else 16
    axes = {"task": tuple(TASKS), "ratio": RATIOS}
    data = over(progress, partial(_point, quick, seeds), axes)
    names = {"way": list(WAYS), "rows": ["fresh", "same"], "own": ["with", "without"]}
    return data.assign_coords(names).assign_attrs(
        **sizes_of(problem("little noise", 1.0, quick)), seeds=seeds
    )


def _point(quick: bool, seeds: int, told: Progress, task: str, ratio: float) -> dict[str, Any]:
    """One task with one number of coordinates."""
    twice = problem(task, ratio, quick)
    fresh = twice.replace(rows="fresh")
    ways = {"halves": fresh.replace(n=twice.n // 2, n_step=twice.n // 2), "twice": twice}
    best = {}
    for done, (way, given) in enumerate(ways.items()):
        best[way] = optimum(given, over=("ridge", "step_size"))
        told(1 + done, 5)
    as_fresh = optimum(fresh, over=("ridge", "step_size")).location
    told(3, 5)
    draws = [_draws(found.problem, seeds) for found in best.values()]
    own = [_with_and_without_own_share(twice, seed) for seed in range(seeds)]
    return {
        "plain": ("way", [predict(ways[way]).test_error for way in WAYS]),
        "best": ("way", [best[way].value for way in WAYS]),
        "best_ridge": ("way", [best[way].location["ridge"] for way in WAYS]),
        "best_step": ("way", [_in_roots(best[way].problem) for way in WAYS]),
        "tuned_as_fresh": predict(twice.replace(**as_fresh)).test_error,
        "ridges": ("rows", [optimum(given).location["ridge"] for given in (fresh, twice)]),
        "draws": (("way", "seed"), draws),
        "training": ("rows", [predict(p).train_mse for p in (fresh, twice)]),
        "training_draws": (("own", "seed"), np.transpose(own)),
    }


def _in_roots(given: Problem) -> float:
    """The step in units of √N."""
    return float(given.step_size / given.width**0.5)


def _draws(given: Problem, seeds: int) -> FloatArray:
    return np.asarray(simulate(given, seeds=seeds).values["test_error"]).ravel()


def _with_and_without_own_share(given: Problem, seed: int) -> tuple[float, float]:
    """Training errors of a network, and with what a row adds to its own features taken away.

    x_i·w′_j contains e_j‖x_i‖²r_iσ′(w_j·x_i)/n, the row's own part of the gradient.
    """
    rng = np.random.default_rng([27, seed])
    n, d, N = given.n, given.d, given.width
    W0 = rng.standard_normal((N, d))
    W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
    a = given.law.sample(rng, N) / N**0.5
    X = rng.standard_normal((n, d))
    y = given.sigma_star(X[:, 0]) + given.noise_std * rng.standard_normal(n)
    slopes = y[:, None] * given.sigma.derivative(X @ W0.T) * (given.step_size / n * a)  # (n, N)
    P = X @ (W0 + slopes.T @ X).T
    own = (X**2).sum(axis=1, keepdims=True) * slopes
    return _training_error(given, P, y), _training_error(given, P - own, y)


def _training_error(given: Problem, P: FloatArray, y: FloatArray) -> float:
    """Of ridge regression on the features σ(P)."""
    F = given.sigma(P)  # (n, N)
    penalty = given.n * given.ridge * np.eye(given.width)
    return float(np.mean((y - F @ np.linalg.solve(F.T @ F + penalty, F.T @ y)) ** 2))


@drawn(columns=2)
def draw(data: xarray.Dataset, left: Axes, right: Axes) -> None:
    """Test errors of both ways, at their best and dotted at step √N, and training errors."""
    x = data["ratio"].values
    for i, task in enumerate(TASKS):
        at = data.sel(task=task)
        for j, way in enumerate(WAYS):
            colour = PALETTE[2 * i + j]
            name = "halves" if way == "halves" else "all rows twice"
            left.plot(x, at["best"].sel(way=way), color=colour, label=f"{task}, {name}")
            left.plot(x, at["plain"].sel(way=way), ":", color=colour)
            points(left, x, *over_seeds(at["draws"].sel(way=way)), colour=colour)
        for j, rows in enumerate(("fresh", "same")):
            name = "fresh rows" if rows == "fresh" else "the step's rows"
            style = ("--", "-")[j]
            colour = PALETTE[2 * i]
            right.plot(
                x, at["training"].sel(rows=rows), style, color=colour, label=f"{task}, {name}"
            )
        right.plot(
            x,
            at["training_draws"].sel(own="without").mean("seed"),
            "x",
            color=PALETTE[2 * i],
            label=f"{task}, own share removed",
        )
        points(right, x, *over_seeds(at["training_draws"].sel(own="with")), colour=PALETTE[2 * i])
    left.set_ylabel("test error")
    right.set_ylabel("training error")
    for ax in (left, right):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("d/rows")
        legend_above(ax, columns=2, fontsize=6)


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """Rows are better used twice; training errors then lie low because of a row's own share."""
    for task in TASKS:
        at = data.sel(task=task)
        yield close(f"{task}, both ways at their best", at["best"], at["draws"], share=SHARE)
        yield from _similar(task, at) if task == "much noise" else _better_twice(task, at)
        costs = (at["tuned_as_fresh"] / at["best"].sel(way="twice")).values - 1.0
        cost = costs.max()
        text = (
            f"{task}: ridge and step that are best for as many fresh rows cost {cost:.1%} at most"
        )
        yield Claim(text, bool(costs.min() > -SEARCH and (cost <= COST) == (task != "much noise")))
        yield _best_ridge(task, at)
        yield _memorised(task, at)


def _best_ridge(task: str, at: xarray.Dataset) -> Claim:
    """The best ridge at a step of √N, over that for as many fresh rows: larger with much noise."""
    *times, last = (at["ridges"].sel(rows="same") / at["ridges"].sel(rows="fresh")).values
    text = (
        f"{task}: at a step of √N the best ridge is {min(times):.1f} to {max(times):.1f} times "
        f"that for as many fresh rows up to d = n, {last:.1f} times at d = 2n"
    )
    return Claim(text, bool(min(times) > 1.0 if task == "much noise" else max(times) < 1.0))


def _better_twice(task: str, at: xarray.Dataset) -> Iterator[Claim]:
    """All rows twice are better than halves, at every d."""
    for ratio in RATIOS:
        draws = at["draws"].sel(ratio=ratio)
        what = f"{task}, d/n = {ratio:g}: halves are worse than all rows twice"
        yield larger(what, draws.sel(way="halves"), draws.sel(way="twice"))


def _similar(task: str, at: xarray.Dataset) -> Iterator[Claim]:
    """Both ways give nearly the same error."""
    mean = at["draws"].mean("seed")
    gap = float(np.abs(mean.sel(way="halves") / mean.sel(way="twice") - 1.0).max())
    yield Claim(f"{task}: both ways are within {gap:.1%} of each other", gap <= SIMILAR)


def _memorised(task: str, at: xarray.Dataset) -> Claim:
    """The training error at the largest d, on fresh rows, on the step's, without own share."""
    last = at.isel(ratio=-1)
    fresh = float(last["training"].sel(rows="fresh"))
    same, without = (
        float(last["training_draws"].sel(own=own).mean()) / fresh for own in ("with", "without")
    )
    text = (
        f"{task}: at d = 2n the training error is {same:.2f} of that on fresh rows, {without:.2f} "
        "when a row's own share is taken out of its features"
    )
    return Claim(text, same <= MEMORISED < without)
