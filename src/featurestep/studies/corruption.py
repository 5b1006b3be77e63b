"""Wrong labels, chosen by chance or by an adversary, and inputs pushed at test time.

A linear target of d = 100 dimensions. A fraction of the labels changes its sign, in the step's
sample and in the readout's: a random one, or that which takes most from E[y z]. What is left of
it, c, gives the direction's cosine, c/√(c² + φ0 E r²) (eqs. 1 and 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.results import Progress
from ..core.types import Axes, FloatArray, xarray
from ..figures import Claim, ShareDone
from ..figures.base import close, drawn, larger, over, over_seeds
from ..plots.simulation import points
from ..plots.style import PALETTE, label, legend_above
from ..simulation import slopes
from .given_rows import BestReadout, Layer, best_readout, network_of, stepped

FRACTIONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)
KINDS = ("by chance", "adversarial")
RADII = (0.0, 0.25, 0.5, 1.0, 2.0)
MODELS = ("untrained", "stepped")
NOISE, SIZE, ACTIVATION = 0.3, 2.0, "relu"
LabelledRows = tuple[FloatArray, FloatArray]
MIN_LOST_SHARE = 0.8  # of the target's variance: nearly everything


def flipped(
    y: FloatArray, z: FloatArray, fraction: float, kind: str, rng: np.random.Generator
) -> FloatArray:
    """The labels with the sign of some changed."""
    count = round(fraction * len(y))
    chosen = rng.permutation(len(y))[:count] if kind == KINDS[0] else np.argsort(-y * z)[:count]
    out = y.copy()
    out[chosen] *= -1.0
    return out


def predicted_cosine(fraction: float, kind: str, ratio: float) -> float:
    """From eqs. 1 and 2, with c of a large sample of flipped labels."""
    rng = np.random.default_rng(0)
    z, noise = rng.standard_normal((2, 1_000_000))
    y = z + NOISE * noise
    c = float(np.mean(flipped(y, z, fraction, kind, rng) * z))
    return c / float(np.sqrt(c**2 + ratio * np.mean(y**2)))


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Cosines and errors for every fraction; errors under a push of every radius."""
    d, seeds = (100, 8) if quick else (200, 16)
    sizes = {"d": d, "n": 10 * d, "n_step": 10 * d, "width": 4 * d, "seeds": seeds}
    axes = {"kind": KINDS, "fraction": FRACTIONS, "seed": range(seeds)}
    data = over(progress, partial(_errors, d), axes)
    pushed = over(lambda share: None, partial(_pushes, d), {"seed": range(seeds)})
    cosine = [[predicted_cosine(f, kind, 0.1) for f in FRACTIONS] for kind in KINDS]
    data = data.merge(pushed).assign(predicted_cosine=(("kind", "fraction"), cosine))
    named = data.assign_coords(model=list(MODELS), radius=list(RADII))
    return named.transpose(..., "seed").assign_attrs(sizes)


def _fits(
    d: int, kind: str, fraction: float, seed: int
) -> Iterator[tuple[Layer, BestReadout, LabelledRows]]:
    """Each model's layer and readout, and the test rows with what they should give."""
    rng, n = np.random.default_rng(seed), 10 * d
    X = [rng.standard_normal((size, d)) for size in (n, n, 2000)]
    z = [each[:, 0] for each in X]
    labels = [
        flipped(z[k] + NOISE * rng.standard_normal(n), z[k], fraction, kind, rng) for k in (0, 1)
    ]
    network = network_of(d, width=4 * d, activation=ACTIVATION, seed=seed)
    for size in (0.0, SIZE):
        layer = stepped(network, X[0], labels[0], size=size)
        found = best_readout((layer.features(X[1]), labels[1]), (layer.features(X[2]), z[2]))
        yield layer, found, (X[2], z[2])


def _errors(d: int, told: Progress, kind: str, fraction: float, seed: int) -> dict[str, Any]:
    """Errors of both models, and the cosine of the step's direction."""
    fits = list(_fits(d, kind, fraction, seed))
    beta = fits[-1][0].beta
    return {
        "cosine": beta[0] / np.linalg.norm(beta),
        "draws": ("model", [readout.error for _, readout, _ in fits]),
    }


def _pushes(d: int, told: Progress, seed: int) -> dict[str, Any]:
    """Errors under pushes, and the share of the slope along the target, with correct labels."""
    pushed, along = [], []
    for layer, readout, (X, z) in _fits(d, KINDS[0], 0.0, seed):
        slope = _slopes(layer, readout, X)
        pushed.append([_pushed(layer, readout, X, z, slope, radius) for radius in RADII])
        along.append(np.sum(slope[:, 0] ** 2) / np.sum(slope**2))
    return {"pushed": (("model", "radius"), pushed), "slope_along": ("model", along)}


def _slopes(layer: Layer, readout: BestReadout, X: FloatArray) -> FloatArray:
    """∂f/∂x, (rows, d)."""
    network = layer.network
    P = network.project(X, network.backend.put(layer.W))
    slopes(network.backend, network.problem, P)
    return np.asarray((P * readout.a_hat) @ layer.W)


def _pushed(
    layer: Layer,
    readout: BestReadout,
    X: FloatArray,
    z: FloatArray,
    slope: FloatArray,
    radius: float,
) -> float:
    """The error after every input has moved by `radius` along the slope, away from its label."""
    away = (
        np.sign(readout.guess - z)[:, None] * slope / np.linalg.norm(slope, axis=1, keepdims=True)
    )
    guess = layer.features(X + radius * away) @ readout.a_hat + readout.offset
    return float(np.mean((guess - z) ** 2))


@drawn(columns=3, sharex=False)
def draw(data: xarray.Dataset, *panels: Axes) -> None:
    """Cosine and error against the fraction; error against the push."""
    x = np.array(FRACTIONS)
    for index, kind in enumerate(KINDS):
        at, colour = data.sel(kind=kind), PALETTE[index]
        panels[0].plot(x, at["predicted_cosine"], color=colour)
        points(panels[0], x, *over_seeds(at["cosine"]), colour=colour, name=kind)
        for model, style in zip(MODELS, (":", "-"), strict=True):
            mean = at["draws"].sel(model=model).mean("seed")
            panels[1].plot(x, mean, style, color=colour, label=f"{kind}, {model}")
    for index, model in enumerate(MODELS):
        pushed = over_seeds(data["pushed"].sel(model=model))
        points(panels[2], np.array(RADII), *pushed, colour=PALETTE[2 + index], name=model)
    panels[0].set_ylabel("cosine of the direction")
    panels[1].set_ylabel(label("test_error"))
    panels[2].set_ylabel("error after the push")
    panels[2].set_xlabel("radius of the push")
    for ax in panels[:2]:
        ax.set_xlabel("labels with a wrong sign")
    for ax in panels:
        legend_above(ax, columns=1, fontsize=6)


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """What the answer says."""
    for kind in KINDS:
        at = data.sel(kind=kind).sel(fraction=slice(0.0, 0.3))
        yield close(f"cosine, {kind}", at["predicted_cosine"], at["cosine"], share=0.03)
    draws = data["draws"]
    for kind, fraction in ((KINDS[0], 0.3), (KINDS[1], 0.05)):
        here = draws.sel(kind=kind, fraction=fraction)
        what = f"{fraction:.0%} wrong {kind}: the untrained network against the stepped one"
        yield larger(what, *(here.sel(model=model) for model in MODELS))
    tenth = draws.sel(model="stepped", fraction=0.1)
    ruined, harmless = (float(tenth.sel(kind=kind).mean()) for kind in KINDS[::-1])
    text = f"a tenth of the labels wrong: error {ruined:.2f} adversarial, {harmless:.2f} by chance"
    holds = ruined >= MIN_LOST_SHARE and harmless <= 1.0 - MIN_LOST_SHARE
    yield Claim(f"{text} (at least {MIN_LOST_SHARE:g}, at most {1 - MIN_LOST_SHARE:g})", holds)
    pushed = data["pushed"].sel(radius=1.0)
    what = "after a push of 1: the untrained network against the stepped one"
    yield larger(what, *(pushed.sel(model=model) for model in MODELS))
    along = data["slope_along"].mean("seed")
    one, other = (float(along.sel(model=model)) for model in MODELS)
    text = f"share of the squared slope along the target: {one:.2f} untrained, {other:.2f} stepped"
    yield Claim(text, other > one)
