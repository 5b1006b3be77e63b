"""Signs as labels: the 0/1 error against the step, by loss; flipped labels; the margin's law.

Labels are the signs of z + z² − 1 of one direction, with a little noise. The readout is fitted with
the logistic loss, or by squares on the labels ±1, each with the ridge that makes its predicted 0/1
error least, or with a small ridge.
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
from ..figures.base import MIN_SEPARATION, close, drawn, larger, over, over_seeds
from ..plots.simulation import points
from ..plots.style import PALETTE, legend_above
from ..simulation import Features, NetworkOnRows, fit_readout, make_backend, simulate
from ..theory import LossPrediction, baselines, predict

LOSSES = {"logistic": "logistic", "squares": "square_signs"}
STEPS = (0.0, 0.25, 0.5, 1.0, 2.0)  # η/√N
FLIPS = (0.0, 0.1, 0.2, 0.3)
RIDGES = tuple(np.geomspace(0.02, 8.0, 15).tolist())
SMALL_RIDGE = 0.01
LEVELS = (-1.645, -1.0, 0.0, 1.0, 1.645)  # of the standardised output
TIE_TOLERANCE = 0.01  # relative difference of errors that counts as none
SHARE_GAP = 0.01  # of the outputs below a level
NOISE = 0.2


def problem_of(d: int, *, step: float = 1.0, loss: str = "logistic", flip: float = 0.0) -> Problem:
    """The study's problem; `step` in units of √N, `loss` by its name in the study."""
    width = 3 * d // 2
    return Problem(
        n=2 * d,
        d=d,
        width=width,
        n_step=4 * d,
        step_size=step * width**0.5,
        ridge=0.2,
        activation="relu",
        centre=True,
        readout="rademacher",
        target="H1 + H2",
        noise_std=NOISE,
        loss=LOSSES[loss],
        intercept=True,
        flip=flip,
    )


def tuned(problem: Problem) -> tuple[Problem, LossPrediction]:
    """The problem with the ridge of the least predicted 0/1 error, and its prediction."""
    found = predict(problem.vary(ridge=RIDGES)).columns["test_error"]
    best = problem.replace(ridge=RIDGES[int(np.nanargmin(found))])
    return best, predict(best)


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Predicted and simulated errors over steps, flips and losses, and the law of outputs."""
    d, seeds = (300, 12) if quick else (600, 24)
    sizes = {"d": d, "n": 2 * d, "n_step": 4 * d, "width": 3 * d // 2, "seeds": seeds}
    parts = [
        over(
            lambda at: progress(0.5 * at), partial(_step, d, seeds), {"loss": LOSSES, "step": STEPS}
        ),
        over(
            lambda at: progress(0.5 + 0.4 * at),
            partial(_flip, d, seeds),
            {"loss": LOSSES, "flip": FLIPS},
        ),
        over(
            lambda at: progress(0.9 + 0.1 * at),
            partial(_outputs, d),
            {"network": range(seeds // 2)},
        ),
    ]
    known = baselines(problem_of(d))
    constants = {name: getattr(known, name) for name in ("best_affine", "bayes_error")}
    named = xarray.merge(parts).assign_coords(level=list(LEVELS)).assign(constants)
    return named.transpose(..., "seed").assign_attrs(sizes)


def _errors(problem: Problem, seeds: int) -> Any:
    return simulate(problem, seeds=seeds).values["test_error"][0]


def _step(d: int, seeds: int, told: Progress, name: str, step: float) -> dict[str, Any]:
    """0/1 errors with the best ridge and with a small one."""
    key = next(key for key, value in LOSSES.items() if value == name)
    best, prediction = tuned(problem_of(d, step=step, loss=key))
    small = best.replace(ridge=SMALL_RIDGE)
    return {
        "predicted": prediction.test_error,
        "draws": ("seed", _errors(best, seeds)),
        "predicted_small": predict(small).test_error,
        "draws_small": ("seed", _errors(small, seeds)),
    }


def _flip(d: int, seeds: int, told: Progress, name: str, flip: float) -> dict[str, Any]:
    """Shares of wrong signs among labels that are not flipped."""
    key = next(key for key, value in LOSSES.items() if value == name)
    best, prediction = tuned(problem_of(d, loss=key, flip=flip))

    def clean(error: Any) -> Any:
        return (error - flip) / (1.0 - 2.0 * flip)

    return {
        "predicted_flipped": clean(prediction.test_error),
        "draws_flipped": ("seed", clean(_errors(best, seeds))),
    }


def _outputs(d: int, told: Progress, seed: int) -> dict[str, Any]:
    """Shares of a network's standardised outputs below some levels, on fresh inputs.

    Each network has its own mean of them, of order 1/√n, which is told apart.
    """
    problem, prediction = tuned(problem_of(d))
    rng, backend = np.random.default_rng(seed), make_backend("cpu", "float64")
    network = NetworkOnRows(problem, backend, seed=seed, outputs=1)
    X, y = _sample(problem, problem.n_step, rng)
    step = network.step(network.W0, X, y[:, None])
    W = backend.put(np.asarray(network.W0 + problem.step_size * step.G))
    X, y = _sample(problem, problem.n, rng)
    features = Features(backend, network.features_of(X, W), by_samples=False)
    fitted = fit_readout(features, y, loss=problem.loss, ridge=problem.ridge, intercept=True)
    X, _ = _sample(problem, 4000, rng)
    outputs = np.asarray(network.features_of(X, W)) @ fitted.a + fitted.b
    beta = step.beta[0] / np.linalg.norm(step.beta[0])
    mean, sd = prediction.margin(X @ beta)
    standard = (outputs - mean) / sd
    offset = float(standard.mean())
    below = [float(np.mean(standard - offset < level)) for level in LEVELS]
    return {"offset": offset, "below": ("level", below)}


def _sample(
    problem: Problem, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Inputs and signs; the target's direction is the first coordinate."""
    X = rng.standard_normal((count, problem.d))
    value = problem.sigma_star(X[:, 0]) + problem.noise_std * rng.standard_normal(count)
    return X, np.where(value >= 0.0, 1.0, -1.0)


@drawn(columns=3, sharex=False)
def draw(data: xarray.Dataset, *panels: Axes) -> None:
    """0/1 error against the step and against the share of flips; the law of outputs."""
    for index, name in enumerate(LOSSES):
        at, colour = data.sel(loss=name), PALETTE[index]
        for kind, style in (("", "-"), ("_small", ":")):
            shown = f"{name}, λ = {SMALL_RIDGE:g}" if kind else f"{name}, best λ"
            panels[0].plot(STEPS, at[f"predicted{kind}"], style, color=colour)
            draws = over_seeds(at[f"draws{kind}"])
            marker = "s" if kind else "o"
            points(panels[0], np.array(STEPS), *draws, colour=colour, name=shown, marker=marker)
        panels[1].plot(FLIPS, at["predicted_flipped"], color=colour)
        draws = over_seeds(at["draws_flipped"])
        points(panels[1], np.array(FLIPS), *draws, colour=colour, name=name)
    panels[0].axhline(float(data["best_affine"]), color="0.6", linewidth=0.8)
    normal = np.array([_normal(level) for level in LEVELS])
    below = data["below"].rename(network="seed")
    points(panels[2], normal, *over_seeds(below), colour=PALETTE[2], name="networks")
    panels[2].plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=0.8)
    panels[0].set_xlabel(r"step $\eta/\sqrt{N}$")
    panels[0].set_ylabel("test error (0/1)")
    panels[1].set_xlabel("share of flipped labels")
    panels[1].set_ylabel("0/1 error, not flipped labels")
    panels[2].set_xlabel("share of a normal variable below")
    panels[2].set_ylabel("share of outputs below")
    for ax in panels:
        legend_above(ax, columns=1, fontsize=6)


def _normal(level: float) -> float:
    from scipy.special import ndtr  # slow to load

    return float(ndtr(level))


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """What the answer says."""
    for name in LOSSES:
        at = data.sel(loss=name)
        yield close(f"{name}, best ridge", at["predicted"], at["draws"], share=0.03)
        yield close(f"{name}, small ridge", at["predicted_small"], at["draws_small"], share=0.03)
        what = f"{name}, flips"
        yield close(what, at["predicted_flipped"], at["draws_flipped"], share=0.03)
    logistic, squares = (data.sel(loss=name) for name in LOSSES)
    for before, after in ((0.0, 0.25), (0.25, 1.0)):
        what = f"0/1 error at {before:g}√N against {after:g}√N"
        yield larger(what, *(logistic["draws"].sel(step=step) for step in (before, after)))
    what = f"ridge {SMALL_RIDGE:g}, η = √N: squares against logistic"
    yield larger(what, *(at["draws_small"].sel(step=1.0) for at in (squares, logistic)))
    apart = float(np.abs(squares["predicted"] / logistic["predicted"] - 1.0).max())
    most = f"at most {TIE_TOLERANCE:.0%}"
    text = f"best ridges: squares and logistic differ by up to {apart:.2%} ({most})"
    yield Claim(text, apart <= TIE_TOLERANCE)
    floor = float(data["best_affine"])
    least = float(logistic["draws"].mean("seed").min())
    yield Claim(
        f"0/1 error {least:.3f} above that of the best half-space, {floor:.3f}", least > floor
    )
    what = "a tenth of the labels flipped against none, on labels not flipped"
    yield larger(what, *(logistic["draws_flipped"].sel(flip=flip) for flip in (0.1, 0.0)))
    mean, error = map(float, over_seeds(data["offset"].rename(network="seed")))
    text = f"outputs are {mean:+.3f} ± {error:.3f} standard deviations from their predicted mean"
    yield Claim(f"{text}, 0 within {MIN_SEPARATION:g} s.e.", abs(mean) <= MIN_SEPARATION * error)
    normal = np.array([_normal(level) for level in LEVELS])
    gap = float(np.abs(data["below"].mean("network") - normal).max())
    text = f"shares of outputs below levels differ from the normal law's by up to {gap:.4f}"
    yield Claim(f"{text} (at most {SHARE_GAP:g})", gap <= SHARE_GAP)
