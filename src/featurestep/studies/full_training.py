"""One step and a ridge readout against the same network trained to the end, on the same rows.

Both have one hidden layer of the same width and see the same rows. Full training is Adam on both
layers, stopped when a held-out tenth of the rows gets no better; the step takes its size and
ridge from the rows as well. Planted functions of one and of two directions, and real digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.results import Progress
from ..core.types import Axes, FloatArray, xarray
from ..figures import Claim, ShareDone
from ..figures.base import drawn, larger, over, over_seeds
from ..plots.simulation import points
from ..plots.style import PALETTE, legend_below, log_ticks
from .given_rows import digits

MODELS = ("random features", "one step, half", "one step, reuse", "trained to the end")
TASKS = ("one direction", "two directions", "digits")
# Rows to learn from: there are 1797 digits in all.
SIZES = {
    "one direction": (250, 1000, 4000),
    "two directions": (250, 1000, 4000),
    "digits": (250, 500, 1000),
}
FEW, MIDDLING, MANY = range(3)
DIMENSION, NOISE, TEST = 30, 0.2, 600
ONE, TWO, DIGITS = TASKS
STEP, END = MODELS[2:]


def planted(task: str, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """z + 0.7(z² − 1), or z + zw."""
    X = rng.standard_normal((n, DIMENSION))
    z, w = X[:, 0], X[:, 1]
    clean = z + 0.7 * (z**2 - 1.0) if task == ONE else z + z * w
    return X, np.asarray(clean + NOISE * rng.standard_normal(n))


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Test errors of every model, task and number of rows."""
    images = digits("full-training")  # before anything is computed: it may be refused
    seeds, width = (4, 200) if quick else (10, 400)
    axes = {"task": TASKS, "size": range(3), "seed": range(seeds)}
    data = over(progress, partial(_errors, images, width), axes)
    data = data.assign(n=(("task", "size"), [SIZES[task] for task in TASKS]))
    sizes = {"d": DIMENSION, "width": width, "seeds": seeds, "noise": NOISE}
    return data.assign_coords(model=list(MODELS)).transpose(..., "seed").assign_attrs(sizes)


def _errors(
    images: tuple[FloatArray, Any], width: int, told: Progress, task: str, size: int, seed: int
) -> dict[str, Any]:
    """Every model on the same rows."""
    X, y, X_test, y_test = _rows(task, SIZES[task][size], seed, images)
    classes = task == DIGITS
    fitted = [_model(name, classes, width, seed).fit(X, y) for name in MODELS]
    return {"draws": ("model", [_error(f.predict(X_test), y_test, classes) for f in fitted])}


def _rows(
    task: str, n: int, seed: int, images: tuple[FloatArray, Any]
) -> tuple[FloatArray, Any, FloatArray, Any]:
    rng = np.random.default_rng(seed)
    if task != DIGITS:
        X, y = planted(task, n + 2 * TEST, rng)
    else:
        order = rng.permutation(len(images[1]))
        X, y = (part[order] for part in images)
    return X[:n], y[:n], X[n : n + TEST], y[n : n + TEST]


def _model(name: str, classes: bool, width: int, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from ..estimators import OneStepClassifier, OneStepRegressor

    if name == END:
        kind = MLPClassifier if classes else MLPRegressor
        network = kind(
            hidden_layer_sizes=(width,),
            early_stopping=True,
            n_iter_no_change=20,
            max_iter=1000,
            learning_rate_init=3e-3,
            random_state=seed,
        )
        return make_pipeline(StandardScaler(), network)
    own = OneStepClassifier if classes else OneStepRegressor
    split = "half" if name == MODELS[1] else "reuse"
    step: Any = 0.0 if name == MODELS[0] else "auto"
    return own(width=width, split=split, step_size=step, random_state=seed)


def _error(guess: Any, y: Any, classes: bool) -> float:
    """Share of wrong classes, or of the labels' variance that is missed."""
    if classes:
        return float(np.mean(guess != y))
    return float(np.mean((guess - y) ** 2) / np.var(y))


@drawn(columns=len(TASKS), sharex=False)
def draw(data: xarray.Dataset, *panels: Axes) -> None:
    """Errors against the number of rows, for each task."""
    for ax, task in zip(panels, TASKS, strict=True):
        n = np.array(SIZES[task])
        for index, model in enumerate(MODELS):
            mean, error = over_seeds(data["draws"].sel(task=task, model=model))
            colour = PALETTE[index]
            ax.plot(n, mean, color=colour, linewidth=0.8)
            points(ax, n, mean, error, colour=colour, name=model)
        ax.set_xscale("log")
        log_ticks(ax, "y")
        ax.set_xticks(n, [str(count) for count in n])
        ax.minorticks_off()
        ax.set_xlabel("rows")
        ax.set_title(task)
    panels[0].set_ylabel("test error, share")
    legend_below(panels[0], shared=True, ncols=4)


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """What the answer says."""
    comparisons = (
        (ONE, MANY, "random features", STEP),
        (TWO, MANY, "random features", STEP),
        (ONE, FEW, END, STEP),
        (TWO, FEW, END, STEP),
        (TWO, MANY, STEP, END),
        (ONE, FEW, "one step, half", STEP),
    )
    for task, size, worse, better in comparisons:
        at = data["draws"].sel(task=task).isel(size=size)
        what = f"{task}, {SIZES[task][size]} rows: {worse} against {better}"
        yield larger(what, at.sel(model=worse), at.sel(model=better))
    at = data["draws"].sel(task=DIGITS).isel(size=MANY)
    step, end = (float(at.sel(model=model).mean()) for model in (STEP, END))
    text = f"{DIGITS}, {SIZES[DIGITS][MANY]} rows: one step misses {step:.1%}, full training"
    yield Claim(f"{text} {end:.1%} (no more)", step <= end)
