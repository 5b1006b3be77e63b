"""Data that bear out each study's claims, and for each claim a change that contradicts it."""

from __future__ import annotations

import numpy as np
import xarray

from featurestep.studies import (
    activations,
    beyond_half,
    classification,
    corruption,
    full_training,
    many_steps,
    reuse,
    three_layers,
    universality,
)

SEEDS = 6


def drawn(means):
    """Draws around means, on a last axis, with a common fluctuation of one per cent."""
    wobble = np.linspace(-0.01, 0.01, SEEDS)
    means = np.asarray(means, dtype=float)[..., None]
    # Two draws differ a little from model to model too, or differences had no error.
    own = 0.001 * np.sin(np.arange(means.size * SEEDS)).reshape(*means.shape[:-1], SEEDS)
    return means * (1.0 + wobble + own)


def steps_beyond_half():
    x = list(beyond_half.EXPONENTS)
    relu = np.where(np.isclose(x, 0.7), 1.0, 1.2)
    level = np.stack([np.full(len(x), 1.5), relu])
    top = np.ones((2, len(x), 2))
    top[1, :, 0] = 600.0 ** np.array(x)
    return xarray.Dataset(
        {
            "draws": (("activation", "step_exponent", "seed"), drawn(level)),
            "predicted": (("activation", "step_exponent"), level),
            "singular_value": (("activation", "step_exponent", "rank"), top),
        },
        {"activation": list(beyond_half.ACTIVATIONS), "step_exponent": x, "rank": [1, 2]},
        {"n": 600},
    )


def every_activation():
    names = list(activations.ACTIVATIONS)
    odd = np.array([name in activations.ODD for name in names])
    c_1 = np.linspace(0.99, 0.9, len(names))
    error = np.where(odd, 2.0, 1.0) - c_1
    missed = np.zeros((len(names), 3))
    missed[:, 1] = np.where(odd, 0.5, 0.05)
    c = np.stack([c_1, np.where(odd, 0.0, 0.3), 0.0 * c_1], axis=1)
    return xarray.Dataset(
        {
            "draws": (("activation", "seed"), drawn(error)),
            "predicted": ("activation", error),
            "missed": (("activation", "degree"), missed),
            "coefficient": (("activation", "degree"), c),
        },
        {"activation": names, "degree": [1, 2, 3]},
    )


def more_steps():
    fresh, same = [2.7, 2.4, 2.2, 2.0, 1.8, 1.8], [2.7, 2.6, 2.5, 2.4, 2.2, 2.0]
    values = np.ones((2, 6, 4, 8))
    values[..., 0] = 3.0
    values[:, 4:, :, 1] = 2.0
    return xarray.Dataset(
        {
            "draws": (("batches", "steps", "seed"), drawn([fresh, same])),
            "single": (("steps", "seed"), drawn([2.7, 2.5, 2.4, 2.4, 2.4, 2.5])),
            "cosine": (("batches", "steps", "seed"), drawn(np.full((2, 6), 0.9))),
            "energy": (("batches", "steps", "seed"), drawn(np.full((2, 6), 0.2))),
            "singular_value": (("batches", "steps", "network", "rank"), values),
            "predicted": ("fresh_steps", [2.7, 2.4, 2.2, 2.0]),
            "untrained": 3.3,
        },
        {
            "batches": list(many_steps.BATCHES),
            "steps": list(many_steps.STEPS),
            "fresh_steps": list(many_steps.PREDICTED),
            "rank": list(range(1, 9)),
        },
    )


def other_inputs():
    level = dict.fromkeys(universality.LAWS, (0.19, 0.28))
    level[universality.HEAVY] = (0.32, 0.33)
    level |= dict(
        zip(
            universality.IMAGES,
            ((0.16, 0.21), (0.1, 0.11), (0.12, 0.14), (0.17, 0.19)),
            strict=True,
        )
    )
    means = np.array([level[name] for name in universality.INPUTS])
    theory = np.where(
        np.arange(len(means))[:, None] < len(universality.LAWS), (0.19, 0.28), (0.16, 0.22)
    )
    return xarray.Dataset(
        {
            "draws": (("inputs", "variant", "seed"), drawn(means)),
            "predicted": (("inputs", "variant"), theory),
            "with_covariance": (("inputs", "variant"), 0.5 * (theory + means)),
            "gaussian_draws": (("inputs", "variant", "seed"), drawn(0.5 * (theory + means))),
        },
        {"inputs": list(universality.INPUTS), "variant": list(universality.VARIANTS)},
    )


def wrong_labels():
    fractions = np.array(corruption.FRACTIONS)
    cosine = np.stack([0.9 - fractions, 0.9 - 2 * fractions])
    chance, chosen = 0.05 + fractions, np.array([0.1, 0.5, 0.93, 1.0, 1.0, 1.0])
    stepped = np.stack([chance, chosen])
    pushed = np.stack([0.2 + np.array(corruption.RADII), 0.1 + np.array(corruption.RADII)])
    return xarray.Dataset(
        {
            "cosine": (("kind", "fraction", "seed"), drawn(cosine)),
            "predicted_cosine": (("kind", "fraction"), cosine),
            "draws": (
                ("kind", "fraction", "model", "seed"),
                drawn(np.stack([1.1 * stepped, stepped], axis=-1)),
            ),
            "pushed": (("model", "radius", "seed"), drawn(pushed)),
            "slope_along": (("model", "seed"), drawn([0.7, 0.95])),
        },
        {
            "kind": list(corruption.KINDS),
            "fraction": list(corruption.FRACTIONS),
            "model": list(corruption.MODELS),
            "radius": list(corruption.RADII),
        },
    )


def signs_as_labels():
    steps = np.array([0.32, 0.3, 0.28, 0.26, 0.25])
    small = np.stack([0.9 * steps + 0.1, steps + 0.1])
    flips = np.array([0.26, 0.28, 0.3, 0.33])
    both = {
        "": ("step", np.stack([steps, steps])),
        "_small": ("step", small),
        "_flipped": ("flip", np.stack([flips, flips])),
    }
    arrays = {f"predicted{name}": (("loss", dim), level) for name, (dim, level) in both.items()}
    for name, (dim, level) in both.items():
        arrays[f"draws{name}"] = (("loss", dim, "seed"), drawn(level))
    normal = [classification._normal(level) for level in classification.LEVELS]
    arrays |= {
        "offset": ("network", [0.1, -0.1, 0.05, -0.04]),
        "below": (("network", "level"), np.tile(normal, (4, 1))),
        "best_affine": 0.08,
        "bayes_error": 0.07,
    }
    coordinates = {
        "loss": list(classification.LOSSES),
        "step": list(classification.STEPS),
        "flip": list(classification.FLIPS),
        "level": list(classification.LEVELS),
    }
    return xarray.Dataset(arrays, coordinates)


def trained_to_the_end():
    one = [[0.6, 0.4, 0.2, 0.65], [0.5, 0.1, 0.08, 0.2], [0.5, 0.06, 0.05, 0.05]]
    two = [[0.6, 0.5, 0.25, 0.55], [0.5, 0.2, 0.15, 0.14], [0.5, 0.12, 0.1, 0.05]]
    real = [[0.07, 0.08, 0.05, 0.09], [0.05, 0.05, 0.04, 0.05], [0.04, 0.05, 0.03, 0.04]]
    return xarray.Dataset(
        {
            "draws": (("task", "size", "model", "seed"), drawn([one, two, real])),
            "n": (("task", "size"), [full_training.SIZES[task] for task in full_training.TASKS]),
        },
        {"task": list(full_training.TASKS), "model": list(full_training.MODELS)},
    )


def rows_used_twice():
    shape = (len(reuse.TASKS), len(reuse.RATIOS))
    best = np.tile([0.3, 0.25], (*shape, 1))
    best[1, :, 0] = 0.251  # with much noise the two ways are alike
    as_fresh = np.outer([0.255, 0.28, 0.255], np.ones(shape[1]))
    training = np.tile([0.2, 0.1], (*shape, 1))
    ridges = training.copy()
    ridges[1] = [0.2, 1.0]
    return xarray.Dataset(
        {
            "plain": (("task", "ratio", "way"), 1.2 * best),
            "best": (("task", "ratio", "way"), best),
            "tuned_as_fresh": (("task", "ratio"), as_fresh),
            "draws": (("task", "ratio", "way", "seed"), drawn(best)),
            "ridges": (("task", "ratio", "rows"), ridges),
            "training": (("task", "ratio", "rows"), training),
            "training_draws": (("task", "ratio", "own", "seed"), drawn(training[..., ::-1])),
        },
        {
            "task": list(reuse.TASKS),
            "ratio": list(reuse.RATIOS),
            "way": list(reuse.WAYS),
            "rows": ["fresh", "same"],
            "own": ["with", "without"],
        },
    )


def a_middle_layer():
    errors = [[[0.1, 0.05], [0.15, 0.06], [1.2, 1.1]], [[0.5, 0.35], [0.6, 0.45], [0.6, 0.15]]]
    shares = np.zeros((2, 3, 2, 2))
    shares[0, :2, 0, 0] = 0.95
    shares[1, 2, 0, 0] = 0.85
    return xarray.Dataset(
        {
            "draws": (("target", "network", "stepped", "seed"), drawn(errors)),
            "singular_value": (("target", "network", "rank", "seed"), drawn(np.ones((2, 3, 4)))),
            "overlap": (("target", "network", "spike", "function", "seed"), drawn(shares)),
        },
        {
            "target": list(three_layers.TARGETS),
            "network": list(three_layers.NETWORKS),
            "stepped": list(three_layers.STEPPED),
            "rank": [1, 2, 3, 4],
            "spike": [1, 2],
            "function": list(three_layers.FUNCTIONS),
        },
    )


TRUE = {
    "beyond-half": steps_beyond_half,
    "reuse": rows_used_twice,
    "activations": every_activation,
    "many-steps": more_steps,
    "universality": other_inputs,
    "corruption": wrong_labels,
    "classification": signs_as_labels,
    "full-training": trained_to_the_end,
    "three-layers": a_middle_layer,
}
STEP, END = "one step, reuse", "trained to the end"
FALSE = [
    # study, variable, entry, value, words of the claim that this contradicts
    ("beyond-half", "predicted", {"activation": "tanh", "step_exponent": 0.4}, 2.0, "tanh, α"),
    ("reuse", "best", {"task": "little noise", "ratio": 0.1}, 0.4, "little noise, both"),
    ("reuse", "best", {"task": "much noise", "ratio": 0.1}, 0.4, "much noise, both"),
    ("reuse", "best", {"task": "ReLU", "ratio": 0.1}, 0.4, "ReLU, both"),
    ("reuse", "tuned_as_fresh", {"task": "ReLU"}, 0.3, "ReLU: ridge"),
    ("reuse", "training_draws", {"task": "ReLU", "own": "with"}, 0.2, "ReLU: at d"),
    ("reuse", "tuned_as_fresh", {"task": "little noise"}, 0.3, "little noise: ridge"),
    ("reuse", "ridges", {"task": "ReLU", "rows": "same"}, 0.3, "the best ridge is"),
    ("reuse", "ridges", {"task": "much noise", "rows": "same"}, 0.1, "much noise: at a step"),
    ("reuse", "tuned_as_fresh", {"task": "much noise"}, 0.2, "much noise: ridge"),
    ("reuse", "training_draws", {"task": "little noise", "own": "with"}, 0.2, "little noise: at d"),
    ("reuse", "training_draws", {"task": "much noise", "own": "without"}, 0.1, "much noise: at d"),
    ("reuse", "draws", {"task": "much noise", "ratio": 0.3, "way": "twice"}, 0.2, "within"),
    *(
        ("reuse", "draws", {"task": t, "ratio": r, "way": "twice"}, 0.3, f"{t}, d/n = {r:g}:")
        for t in ("little noise", "ReLU")
        for r in reuse.RATIOS
    ),
    ("beyond-half", "predicted", {"activation": "relu", "step_exponent": 1.0}, 2.0, "relu, α"),
    ("beyond-half", "draws", {"activation": "relu", "step_exponent": 0.5}, 1.0, "α = 0.5 is worse"),
    ("beyond-half", "draws", {"activation": "relu", "step_exponent": 1.0}, 1.0, "α = 1 is worse"),
    (
        "beyond-half",
        "singular_value",
        {"activation": "tanh", "step_exponent": 1.0, "rank": 1},
        3.0,
        "tanh: from",
    ),
    (
        "beyond-half",
        "singular_value",
        {"activation": "relu", "step_exponent": 1.0, "rank": 1},
        300.0,
        "relu: from",
    ),
    ("activations", "predicted", {"activation": "sin"}, 3.0, "every activation"),
    ("activations", "missed", {"activation": "tanh", "degree": 2}, 0.1, "with c_2 = 0 ("),
    ("activations", "missed", {"activation": "relu", "degree": 2}, 0.4, "with c_2 ≠ 0 at most"),
    ("activations", "coefficient", {"activation": "tanh", "degree": 1}, 0.1, "with c_2 = 0 the"),
    ("activations", "coefficient", {"activation": "relu", "degree": 1}, 0.1, "with c_2 ≠ 0 the"),
    ("activations", "draws", {"activation": "tanh"}, 0.01, "tanh is worse"),
    ("many-steps", "predicted", {"fresh_steps": 1}, 1.0, "one step"),
    ("many-steps", "predicted", {"fresh_steps": 2}, 2.0, "2 fresh steps"),
    ("many-steps", "predicted", {"fresh_steps": 3}, 2.4, "3 fresh steps"),
    ("many-steps", "predicted", {"fresh_steps": 4}, 2.4, "4 fresh steps"),
    ("many-steps", "draws", {"batches": "fresh", "steps": 2}, 2.8, "a second fresh step"),
    ("many-steps", "draws", {"batches": "same", "steps": 4}, 1.9, "beat reused ones"),
    ("many-steps", "single", {"steps": 8}, 1.5, "as large as 8"),
    ("many-steps", "draws", {"batches": "fresh", "steps": 6}, 3.0, "from 6 steps to 8"),
    (
        "many-steps",
        "singular_value",
        {"batches": "fresh", "steps": 8, "rank": 2},
        1.0,
        "spikes after one step",
    ),
    ("universality", "predicted", {"inputs": "gaussian"}, 1.0, "gaussian, trained"),
    ("universality", "predicted", {"inputs": "rademacher"}, 1.0, "rademacher, trained"),
    ("universality", "predicted", {"inputs": "uniform"}, 1.0, "uniform, trained"),
    ("universality", "predicted", {"inputs": "student_t(5)"}, 1.0, "student_t(5), trained"),
    ("universality", "predicted", {"inputs": "mixture(2, 3)"}, 1.0, "mixture(2, 3), trained"),
    ("universality", "draws", {"inputs": "student_t(2.5)"}, 0.19, "student_t(2.5): the error"),
    ("universality", "draws", {"inputs": "digits, raw"}, 0.16, "digits, raw: the error"),
    (
        "universality",
        "draws",
        {"inputs": "digits, standardised"},
        0.16,
        "digits, standardised: the error",
    ),
    *(
        ("universality", "with_covariance", {"inputs": name}, 1.0, f"{name}: the theory with their")
        for name in universality.SHAPED
    ),
    *(
        ("universality", "gaussian_draws", {"inputs": name}, 1.0, f"{name}: Gaussian inputs with")
        for name in universality.SHAPED
    ),
    ("universality", "draws", {"inputs": "digits, whitened"}, 0.4, "digits, whitened: the error"),
    *(
        ("universality", "draws", {"inputs": name, "variant": "initial"}, 0.05, f"{name}: the step")
        for name in ("gaussian", *universality.IMAGES)
    ),
    *(
        ("classification", f"predicted{kind}", {"loss": name, dim: at}, 0.5, f"{name}, {words}")
        for name in classification.LOSSES
        for kind, dim, at, words in (
            ("", "step", 0.5, "best ridge"),
            ("_small", "step", 0.5, "small ridge"),
            ("_flipped", "flip", 0.2, "flips"),
        )
    ),
    ("classification", "draws", {"loss": "logistic", "step": 0.0}, 0.3, "at 0√N against 0.25√N"),
    ("classification", "draws", {"loss": "logistic", "step": 1.0}, 0.3, "at 0.25√N against 1√N"),
    ("classification", "draws_small", {"loss": "squares", "step": 1.0}, 0.3, "η = √N: squares"),
    ("classification", "predicted", {"loss": "squares", "step": 1.0}, 0.27, "squares and logistic"),
    ("classification", "best_affine", {}, 0.3, "above that of the best half-space"),
    ("classification", "draws_flipped", {"loss": "logistic", "flip": 0.1}, 0.26, "flipped against"),
    ("classification", "offset", {}, 0.4, "from their predicted mean"),
    ("classification", "below", {"level": 1.0}, 0.8, "differ from the normal law"),
    ("corruption", "predicted_cosine", {"kind": "by chance"}, 0.2, "cosine, by chance"),
    ("corruption", "predicted_cosine", {"kind": "adversarial"}, 0.1, "cosine, adversarial"),
    (
        "corruption",
        "draws",
        {"kind": "by chance", "fraction": 0.3, "model": "untrained"},
        0.1,
        "30% wrong by chance",
    ),
    (
        "corruption",
        "draws",
        {"kind": "adversarial", "fraction": 0.05, "model": "untrained"},
        0.1,
        "5% wrong adversarial",
    ),
    (
        "corruption",
        "draws",
        {"kind": "adversarial", "fraction": 0.1, "model": "stepped"},
        0.3,
        "a tenth of the labels",
    ),
    (
        "corruption",
        "draws",
        {"kind": "by chance", "fraction": 0.1, "model": "stepped"},
        0.9,
        "a tenth of the labels",
    ),
    ("corruption", "pushed", {"model": "untrained", "radius": 1.0}, 0.1, "after a push of 1"),
    ("corruption", "slope_along", {"model": "stepped"}, 0.1, "squared slope along"),
    *(
        ("full-training", "draws", {"task": task, "size": size, "model": model}, 0.01, words)
        for task, size, model, words in (
            ("one direction", 2, "random features", "one direction, 4000 rows: random features"),
            ("two directions", 2, "random features", "two directions, 4000 rows: random features"),
            ("one direction", 0, END, "one direction, 250 rows: trained to the end"),
            ("two directions", 0, END, "two directions, 250 rows: trained to the end"),
            ("two directions", 2, STEP, "two directions, 4000 rows: one step, reuse"),
            ("one direction", 0, "one step, half", "one direction, 250 rows: one step, half"),
            ("digits", 2, END, "digits, 1000 rows"),
        )
    ),
    *(
        (
            "three-layers",
            "overlap",
            {"target": target, "network": network, "spike": 1, "function": "degree 1"},
            0.35,
            f"{target}, {network}:",
        )
        for target in three_layers.TARGETS
        for network in three_layers.NETWORKS
    ),
    (
        "three-layers",
        "draws",
        {"target": "quadratic form", "network": "two layers", "stepped": "stepped"},
        0.1,
        "two layers, stepped, against",
    ),
    (
        "three-layers",
        "draws",
        {"target": "quadratic form", "network": "abs below", "stepped": "untrained"},
        0.1,
        "abs below, untrained, against",
    ),
]


def changed(data, name, where, value):
    """The data with some entries changed."""
    copy = data.copy(deep=True)
    copy[name] = copy[name].astype(float)
    places = {key: at for key, at in where.items() if key in copy[name].coords}
    rest = {key: at for key, at in where.items() if key not in places}
    indexers = {key: list(copy[name][key].values).index(at) for key, at in places.items()}
    copy[name][{**indexers, **rest}] = value
    return copy
