"""One step on the middle layer of three: do spikes appear, and which functions do they carry?

f(x) = aᵀσ(W2 σ(W1 x)), W1 random and fixed, one step on W2. To that step the first layer's
outputs are the inputs, so it learns along β = Hᵀy/n0: no longer a direction of x but a function
of it, whatever part of the target the first layer's features can express.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.results import Progress
from ..core.types import Axes, FloatArray, xarray
from ..figures import Claim, ShareDone
from ..figures.base import drawn, larger, over, over_seeds
from ..plots.style import PALETTE, label, legend_above
from .given_rows import best_readout, left_vectors, network_of, overlap, stepped

TARGETS = ("direction", "quadratic form")
# Two layers, and three whose first has features of odd and even degrees or of even ones only.
NETWORKS = ("two layers", "relu below", "abs below")
STEPPED = ("untrained", "stepped")
# Of each target, the networks whose first spike carries it.
CARRYING = {"direction": NETWORKS[:2], "quadratic form": NETWORKS[2:]}
FUNCTIONS = ("degree 1", "degree 2")  # of the target's own variable
NOISE, SIZE = 0.2, 2.0
CARRIES, ABSENT = 0.5, 0.2  # squared overlap of a spike that carries q, and of one that does not


def rows(rng: np.random.Generator, n: int, d: int, target: str) -> tuple[FloatArray, FloatArray]:
    """Inputs and the variable q, of mean 0 and variance 1, on which the target depends.

    The inputs lie on the sphere of radius √d. Otherwise their length, which even features see
    better than anything, hides the rest: the square of a quadratic form has a part along it.
    """
    X = rng.standard_normal((n, d))
    X *= d**0.5 / np.linalg.norm(X, axis=1, keepdims=True)
    if target == "direction":
        return X, X[:, 0]
    signs = np.where(np.arange(d) % 2 == 0, 1.0, -1.0)
    return X, np.asarray(X**2 @ signs * ((d + 2.0) / (2.0 * d**2)) ** 0.5)


def function(q: FloatArray) -> FloatArray:
    """The target: q and its square."""
    return q + 0.5 * (q**2 - 1.0)


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Errors of four models, the first singular values, and what their vectors carry."""
    d, n, widths = (16, 4000, (1200, 400)) if quick else (20, 8000, (2400, 800))
    seeds = 4 if quick else 8
    axes = {"target": TARGETS, "seed": range(seeds)}
    data = over(progress, partial(_networks, d, n, widths), axes).transpose(..., "seed")
    sizes = {"d": d, "n": n, "n_step": n, "width_1": widths[0], "width_2": widths[1]}
    return data.assign_coords(
        network=list(NETWORKS), stepped=list(STEPPED), function=list(FUNCTIONS),
        rank=[1, 2, 3, 4], spike=[1, 2],
    ).assign_attrs(**sizes, seeds=seeds)  # fmt: skip


def _networks(
    d: int, n: int, widths: tuple[int, int], told: Progress, target: str, seed: int
) -> dict[str, Any]:
    """Errors, singular values and overlaps of one draw."""
    rng = np.random.default_rng(1000 * TARGETS.index(target) + seed)
    samples = [rows(rng, n, d, target) for _ in range(3)]  # step, readout, test
    labels = [function(q) + NOISE * rng.standard_normal(n) for _, q in samples[:2]]
    plain = [X for X, _ in samples]
    below = [_hidden(plain, widths[0], activation, seed) for activation in ("relu", "abs")]
    errors, values, carried = [], [], []
    q, test_labels = samples[1][1], function(samples[2][1])
    for inputs in (plain, *below):
        network = network_of(inputs[0].shape[1], width=widths[1], activation="relu", seed=seed + 1)
        missed = []
        for size in (0.0, SIZE):
            layer = stepped(network, inputs[0], labels[0], size=size)
            F, F_test = layer.features(inputs[1]), layer.features(inputs[2])
            found = best_readout((F, labels[1]), (F_test, test_labels))
            missed.append(found.error + NOISE**2)
        top, left = left_vectors(F, 4)
        errors.append(missed)
        values.append(top)
        carried.append([[overlap(u, q), overlap(u, q**2)] for u in left[:2]])
    return {
        "draws": (("network", "stepped"), errors),
        "singular_value": (("network", "rank"), values),
        "overlap": (("network", "spike", "function"), carried),
    }


def _hidden(samples: list[FloatArray], width: int, activation: str, seed: int) -> list[FloatArray]:
    """The first layer's outputs, of mean square about 1."""
    first = network_of(samples[0].shape[1], width=width, activation=activation, seed=seed)
    scale = first.problem.sigma.second_moment**0.5
    return [np.asarray(first.features_of(X, first.W0)) / scale for X in samples]


@drawn(columns=2, height=2.8, sharex=False)
def draw(data: xarray.Dataset, left: Axes, right: Axes) -> None:
    """Errors of the networks, and what their first two spikes carry."""
    x = np.arange(len(NETWORKS) * len(STEPPED))
    for index, target in enumerate(TARGETS):
        mean, error = (each.values.ravel() for each in over_seeds(data["draws"].sel(target=target)))
        place, name = x + 0.4 * index - 0.2, f"function of a {target}"
        left.bar(place, mean, 0.38, yerr=2 * error, color=PALETTE[index], label=name)
    names = [f"{network}, {step}" for network in NETWORKS for step in STEPPED]
    left.set_xticks(x, names, rotation=35, ha="right")
    left.set_ylabel(label("test_error"))
    legend_above(left, columns=2, fontsize=6)
    _table(right, data["overlap"].mean("seed"))


def _table(ax: Axes, shares: xarray.DataArray) -> None:
    """Rows: target, network and spike; columns: q and its square."""
    table = shares.values.reshape(-1, len(FUNCTIONS))
    ax.imshow(table, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for (i, j), share in np.ndenumerate(table):
        colour = "white" if share > 0.6 else "black"
        ax.text(j, i, f"{share:.2f}", ha="center", va="center", color=colour, fontsize=6)
    names = [
        f"{target}, {network}, spike {k}"
        for target in TARGETS
        for network in NETWORKS
        for k in (1, 2)
    ]
    ax.set_yticks(range(len(names)), names, fontsize=6)
    ax.set_xticks(range(len(FUNCTIONS)), ["$q$", "$q^2$"])


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """A spike carries the part of the target that the layer below can express."""
    for target, network in itertools.product(TARGETS, NETWORKS):
        shares = data["overlap"].sel(target=target, network=network, function="degree 1")
        first, most = shares.sel(spike=1), float(shares.max("spike").mean())
        what = f"{target}, {network}:"
        if network in CARRYING[target]:
            text = f"{what} the first spike carries q with {float(first.mean()):.2f}"
            holds = bool(first.min() >= CARRIES)
            yield Claim(f"{text} (at least {CARRIES:g} in every draw)", holds)
        else:
            text = f"{what} neither spike carries q, at most {most:.2f}"
            yield Claim(f"{text} (less than {ABSENT:g})", most < ABSENT)
    draws = data["draws"].sel(target="quadratic form")
    three = draws.sel(network="abs below", stepped="stepped")
    for network, step in (("two layers", "stepped"), ("abs below", "untrained")):
        other = draws.sel(network=network, stepped=step)
        yield larger(f"quadratic form: {network}, {step}, against abs below, stepped", other, three)
