"""Wrong labels, chosen by chance or by an adversary, and inputs pushed at test time.

A linear target of d = 100 dimensions. A fraction of the labels changes its sign, in the step's
sample and in the readout's: a random one, or that which takes most from E[y z]. What is left of
it, c, gives the direction's cosine, c/√(c² + φ0 E r²) (eqs. 1 and 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..figures.base import TWO_COLUMNS, Claim, Report
from ..plots.simulation import points
from ..plots.style import PALETTE, figure_of, label, legend_above, new_axes, styled
from ..simulation.network.step import slopes
from ..types import FloatArray
from .base import Study, close, larger, over_draws
from .given_rows import Layer, Readout, best_readout, network_of, stepped

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

FRACTIONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)
KINDS = ("by chance", "adversarial")
RADII = (0.0, 0.25, 0.5, 1.0, 2.0)
MODELS = ("untrained", "stepped")
NOISE, SIZE, ACTIVATION = 0.3, 2.0, "relu"
LOST = 0.8  # of the target's variance: nearly everything


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


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Cosines and errors for every fraction; errors under a push of every radius."""
    import xarray

    d, seeds = (100, 8) if quick else (200, 16)
    n, width = 10 * d, 4 * d
    shape = (len(KINDS), len(FRACTIONS))
    cosines = np.empty((*shape, seeds))
    errors = np.empty((*shape, len(MODELS), seeds))
    pushed = np.empty((len(MODELS), len(RADII), seeds))
    along = np.empty((len(MODELS), seeds))
    for seed in range(seeds):
        for i, kind in enumerate(KINDS):
            for j, fraction in enumerate(FRACTIONS):
                found = _fits(d, n, width, fraction, kind, seed)
                cosines[i, j, seed], errors[i, j, :, seed] = found[:2]
                if fraction == 0.0 and i == 0:
                    pushed[..., seed], along[:, seed] = found[2:]
        progress((seed + 1) / seeds)
    cosine = [[predicted_cosine(f, kind, d / n) for f in FRACTIONS] for kind in KINDS]
    axes = ("kind", "fraction")
    return xarray.Dataset(
        {
            "cosine": ((*axes, "seed"), cosines),
            "predicted_cosine": (axes, cosine),
            "draws": ((*axes, "model", "seed"), errors),
            "pushed": (("model", "radius", "seed"), pushed),
            "slope_along": (("model", "seed"), along),
        },
        {
            "kind": list(KINDS),
            "fraction": list(FRACTIONS),
            "model": list(MODELS),
            "radius": list(RADII),
        },
        {"d": d, "n": n, "n_step": n, "width": width, "seeds": seeds},
    )


def _fits(
    d: int, n: int, width: int, fraction: float, kind: str, seed: int
) -> tuple[float, list[float], FloatArray, list[float]]:
    """Cosine, errors, errors under pushes, and the share of the slope along the target."""
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((size, d)) for size in (n, n, 2000)]
    z = [each[:, 0] for each in X]
    labels = [
        flipped(z[k] + NOISE * rng.standard_normal(n), z[k], fraction, kind, rng) for k in (0, 1)
    ]
    network = network_of(d, width=width, activation=ACTIVATION, seed=seed)
    errors, pushed, along = [], [], []
    for size in (0.0, SIZE):
        layer = stepped(network, X[0], labels[0], size=size)
        found = best_readout((layer.features(X[1]), labels[1]), (layer.features(X[2]), z[2]))
        errors.append(found.error)
        if fraction == 0.0:
            slope = _slopes(layer, found, X[2])
            pushed.append([_pushed(layer, found, X[2], z[2], slope, r) for r in RADII])
            along.append(float(np.sum(slope[:, 0] ** 2) / np.sum(slope**2)))
    cosine = float(layer.beta[0] / np.linalg.norm(layer.beta))
    return cosine, errors, np.array(pushed), along


def _slopes(layer: Layer, readout: Readout, X: FloatArray) -> FloatArray:
    """∂f/∂x, (rows, d)."""
    network = layer.network
    P = network.project(X, network.backend.put(layer.W))
    slopes(network.backend, network.problem, P)
    return np.asarray((P * readout.a_hat) @ layer.W)


def _pushed(
    layer: Layer, readout: Readout, X: FloatArray, z: FloatArray, slope: FloatArray, radius: float
) -> float:
    """The error after every input has moved by `radius` along the slope, away from its label."""
    away = (
        np.sign(readout.guess - z)[:, None] * slope / np.linalg.norm(slope, axis=1, keepdims=True)
    )
    guess = layer.features(X + radius * away) @ readout.a_hat + readout.offset
    return float(np.mean((guess - z) ** 2))


@styled
def draw(data: xarray.Dataset) -> Figure:
    """Cosine and error against the fraction; error against the push."""
    panels = new_axes(columns=3, width=TWO_COLUMNS, height=2.4, sharex=False)
    x = np.array(FRACTIONS)
    for index, kind in enumerate(KINDS):
        at, colour = data.sel(kind=kind), PALETTE[index]
        panels[0].plot(x, at["predicted_cosine"], color=colour)
        points(panels[0], x, *over_draws(at["cosine"]), colour=colour, name=kind)
        for model, style in zip(MODELS, (":", "-"), strict=True):
            mean, _ = over_draws(at["draws"].sel(model=model))
            panels[1].plot(x, mean, style, color=colour, label=f"{kind}, {model}")
    for index, model in enumerate(MODELS):
        pushed = over_draws(data["pushed"].sel(model=model))
        points(panels[2], np.array(RADII), *pushed, colour=PALETTE[2 + index], name=model)
    panels[0].set_ylabel("cosine of the direction")
    panels[1].set_ylabel(label("test_error"))
    panels[2].set_ylabel("error after the push")
    panels[2].set_xlabel("radius of the push")
    for ax in panels[:2]:
        ax.set_xlabel("labels with a wrong sign")
    for ax in panels:
        legend_above(ax, columns=1, fontsize=6)
    return figure_of(panels[0])


def check(data: xarray.Dataset) -> list[Claim]:
    """What the answer says."""
    claims = []
    for kind in KINDS:
        at = data.sel(kind=kind).sel(fraction=slice(0.0, 0.3))
        claims.append(close(f"cosine, {kind}", at["predicted_cosine"], at["cosine"], share=0.03))
    draws = data["draws"]
    for kind, fraction in ((KINDS[0], 0.3), (KINDS[1], 0.05)):
        here = draws.sel(kind=kind, fraction=fraction)
        what = f"{fraction:.0%} wrong {kind}: the untrained network against the stepped one"
        claims.append(larger(what, here.sel(model="untrained"), here.sel(model="stepped")))
    tenth = draws.sel(model="stepped", fraction=0.1)
    ruined, harmless = (float(tenth.sel(kind=kind).mean()) for kind in KINDS[::-1])
    text = f"a tenth of the labels wrong: error {ruined:.2f} adversarial, {harmless:.2f} by chance"
    holds = ruined >= LOST and harmless <= 1.0 - LOST
    claims.append(Claim(f"{text} (at least {LOST:g}, at most {1 - LOST:g})", bool(holds)))
    pushed = data["pushed"].sel(radius=1.0)
    what = "after a push of 1: the untrained network against the stepped one"
    claims.append(larger(what, pushed.sel(model="untrained"), pushed.sel(model="stepped")))
    along = data["slope_along"].mean("seed")
    one, other = (float(along.sel(model=model)) for model in MODELS)
    text = f"share of the squared slope along the target: {one:.2f} untrained, {other:.2f} stepped"
    claims.append(Claim(text, bool(other > one)))
    return claims


STUDY = Study(
    name="corruption",
    title="Labels of the wrong sign, by chance or adversarial, and inputs pushed at test time",
    question="How do one step and random features bear wrong labels and perturbed inputs?",
    compute=compute,
    draw=draw,
    claims=check,
)
