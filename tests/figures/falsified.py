"""Small made-up data on which every claim of a figure holds, and ways to make each one fail."""

from __future__ import annotations

import numpy as np
import xarray

from featurestep.demo import SETTINGS
from featurestep.figures import (
    double_descent,
    exponent,
    learning_curves,
    maximal_step,
    readout_law,
    small_d,
    two_steps,
)
from featurestep.figures.alignment import DEGREES

NAN = float("nan")


def spectrum():
    exponents, seeds = [-np.inf, 0.15, 0.29, 0.36], 3
    spikes = np.array([[NAN] * 4, [2, *[NAN] * 3], [4, 2, NAN, NAN], [6, 4, 2, NAN]])
    degrees = np.array([[NAN] * 4, [1, *[NAN] * 3], [1, 2, NAN, NAN], [1, 2, 3, NAN]])
    largest = np.repeat(np.nan_to_num(spikes, nan=1.0)[:, None, :], seeds, axis=1)
    shape = {"point": np.linspace(0.1, 1.4, 20), "bin_end": np.linspace(0.0, 1.5, 6)}
    four = np.ones((4, 1))
    return xarray.Dataset(
        {
            "singular_value": (("exponent", "point"), four * shape["point"]),
            "density": (("exponent", "point"), four * np.ones(20)),
            "bin_edge": (("exponent", "bin_end"), four * shape["bin_end"]),
            "histogram": (("exponent", "bin"), four * np.ones(5)),
            "spike": (("exponent", "rank"), spikes),
            "spike_degree": (("exponent", "rank"), degrees),
            "spike_share": (("exponent", "rank"), 0.9 + 0.0 * spikes),
            "predicted_count": ("exponent", [0, 1, 2, 3]),
            "count_without_factor": ("exponent", [0, 0, 1, 1]),
            "border": ("exponent", [1.5] * 4),
            "largest": (("exponent", "seed", "top"), largest),
            "simulated_count": (("exponent", "seed"), np.arange(4)[:, None] * np.ones(3, int)),
            "kolmogorov": ("exponent", [0.001] * 4),
        },
        {"exponent": exponents},
        attrs={"width": 1000},
    )


def weights():
    two, noise = np.ones((2, 1)), np.array([-0.01, 0.0, 0.01])
    return xarray.Dataset(
        {
            "singular_value": (("variant", "point"), two * np.linspace(0.4, 2.4, 20)),
            "density": (("variant", "point"), two * np.ones(20)),
            "bin_edge": (("variant", "bin_end"), two * np.linspace(0.0, 2.5, 6)),
            "histogram": (("variant", "bin"), two * np.ones(5)),
            "border": ("variant", [2.5, 2.5]),
            "spike": ("variant", [NAN, 4.0]),
            "spike_beta": ("variant", [NAN, 0.9]),
            "spike_target": ("variant", [NAN, 0.8]),
            "largest": (("variant", "seed", "top"), np.stack([2.4 + noise, 4 + noise])[..., None]),
            "beta": (("variant", "seed"), two * (0.9 + noise)),
            "target": (("variant", "seed"), two * (0.8 + noise)),
            "simulated_count": (("variant", "seed"), [[0, 0, 0], [1, 1, 1]]),
        },
        {"variant": ["initial_weights", "weights"]},
    )


def errors_over_exponent(setting):
    x = np.array(exponent.EXPONENTS)
    level = 1.0 - x
    degrees = np.arange(31)
    published = np.where(degrees < 2, 1.2, 1.2 if setting == 1 else 0.6)
    data = {"admitted": ("step_exponent", np.where(x > 0.3, 0.03, 0.0))}
    for name in ("train_loss", "test_error"):
        data[f"predicted_{name}"] = ("step_exponent", level)
        data[f"simulated_{name}"] = ("step_exponent", level + 0.005)
        data[f"error_{name}"] = ("step_exponent", 0.01 + 0.0 * x)
        data[f"curve_{name}"] = ("curve_exponent", [1.0, 0.5])
        data[f"published_{name}"] = data[f"grown_{name}"] = ("degree", published)
    data["gain"] = ("step_exponent", 0.3 + 0.0 * x)
    data["error_gain"] = ("step_exponent", 0.01 + 0.0 * x)
    coords = {"step_exponent": x, "curve_exponent": [0.0, 0.5], "degree": degrees}
    assert len(SETTINGS) == 2
    return xarray.Dataset(data, coords, attrs={"n": 100, "ridge": 0.9, "untrained": 1.3})


def alignment():
    axes = ("step_exponent", "rank", "hermite")
    overlaps = np.stack([0.8 * np.eye(5)[1:4]] * 2)
    return xarray.Dataset(
        {
            "predicted": (axes, overlaps),
            "simulated": (axes, overlaps + 0.005),
            "standard_error": (axes, 0.01 + 0.0 * overlaps),
            "curve": (("curve_exponent", *axes[1:]), overlaps),
        },
        {
            "step_exponent": [0.2, 0.36],
            "curve_exponent": [0.1, 0.4],
            "rank": list(DEGREES),
            "hermite": range(5),
        },
    )


def equivalence():
    alphas, sizes = [0.15, 0.29], [100, 200, 400]
    gap = np.empty((3, 2, 2))
    gap[:] = np.array([0.4, 0.3, 0.2])[:, None, None]
    gap[:, 1, 0] = 0.5
    error = np.full((3, 2, 4), 0.3)
    difference = np.array([0.03, 0.02, 0.01])[:, None] * np.ones(2)
    return xarray.Dataset(
        {
            "gap": (("n", "step_exponent", "degree"), gap),
            "error_gap": (("n", "step_exponent", "degree"), 0.01 + 0.0 * gap),
            "test_error": (("n", "step_exponent", "variant"), error),
            "error_test_error": (("n", "step_exponent", "variant"), 0.02 + 0.0 * error),
            "difference": (("n", "step_exponent"), difference),
            "error_difference": (("n", "step_exponent"), 0.001 + 0.0 * difference),
            "predicted": (("n", "step_exponent"), 0.3 + 0.0 * difference),
        },
        {
            "n": sizes,
            "step_exponent": alphas,
            "degree": [1, 2],
            "variant": ["trained", "spiked", "gaussian+spiked", "initial"],
        },
    )


def double():
    widths = [round(100 * ratio) for ratio in double_descent.RATIOS]
    height = np.exp(-np.abs(np.log(double_descent.RATIOS)))
    level = np.stack([0.2 + 5 * height, 0.2 + height, 0.5 - 0.3 * height], axis=1)
    return xarray.Dataset(
        {
            "predicted": (("width", "ridge"), level),
            "simulated": (("width", "ridge"), level * 1.001),
            "standard_error": (("width", "ridge"), 0.01 * level),
            "curve": (("curve_width", "ridge"), level),
        },
        {"width": widths, "curve_width": widths, "ridge": list(double_descent.RIDGES)},
        attrs={"n": 100},
    )


def small_sizes():
    samples = [round(2500 * ratio) for ratio in small_d.RATIOS]
    level = 2.0 * np.array(samples, dtype=float) ** -0.25
    return xarray.Dataset(
        {
            "predicted": ("n", level),
            "simulated": ("n", level * 1.001),
            "standard_error": ("n", 0.01 * level),
            "curve": ("curve_n", level),
            "limit": ("curve_n", 3.0 * level),
        },
        {"n": samples, "curve_n": samples},
        attrs={"d": 50},
    )


def curves():
    cases = [case.activation for case in learning_curves.CASES]
    samples, shifts = list(learning_curves.SAMPLES), list(learning_curves.SHIFTS)
    axes = ("case", "samples", "shift")
    level = np.ones((2, 1, 1)) / (np.array(samples)[:, None] * np.array(shifts))
    both = np.stack([level, level], axis=-1)
    flat = 0.4 * np.ones((2, len(samples)))
    return xarray.Dataset(
        {
            "predicted": (axes, level),
            "admitted": (axes, np.zeros(level.shape)),
            "simulated": ((*axes, "variant"), 1.01 * both),
            "standard_error": ((*axes, "variant"), 0.01 * both),
            "kernel": (axes[:2], flat),
            "ridge": (axes[:2], flat),
            "best_linear": (axes[:2], flat),
            "curve": (("case", "curve_samples", "shift"), level),
            "curve_kernel": (("case", "curve_samples"), flat),
            "curve_ridge": (("case", "curve_samples"), flat),
        },
        {
            "case": cases,
            "samples": samples,
            "curve_samples": samples,
            "shift": shifts,
            "variant": list(learning_curves.VARIANTS),
        },
    )


def laws():
    learned = [[law in readout_law.LEARNED[k] for law in readout_law.LAWS] for k in (2, 3)]
    x = np.array(readout_law.EXPONENTS)
    level = np.where(learned, 0.6, 1.5)[..., None] + 0.1 * np.arange(4)[:, None] * np.ones(x.size)
    axes = ("learns", "law", "step_exponent")
    return xarray.Dataset(
        {
            "predicted": (axes, level),
            "admitted": (axes, np.zeros(level.shape)),
            "draws": ((*axes, "seed"), level[..., None] * np.linspace(1.0, 1.02, 3)),
            "simulated": (axes, level + 0.01),
            "standard_error": (axes, 0.01 + 0.0 * level),
            "curve": (("learns", "law", "curve_exponent"), level),
            "in_limit": (axes[:2], np.array(learned, int)),
            "best_linear": (axes[:2], np.ones((2, 4))),
        },
        {
            "learns": [2, 3],
            "law": list(readout_law.LAWS),
            "step_exponent": x,
            "curve_exponent": x,
        },
    )


def large_steps():
    cases, x = [case.name for case in maximal_step.CASES], np.array(maximal_step.STEPS)
    level = np.ones((2, 3, 1)) + 0.1 * x
    axes = ("case", "ratio", "step")
    return xarray.Dataset(
        {
            "simulated": (axes, 1.01 * level),
            "standard_error": (axes, 0.005 * level),
            "exact": (axes, level),
            "isotropic": (axes, level * (1.0 + 0.2 * x)),
            "curve_exact": (("case", "ratio", "curve_step"), level),
            "curve_isotropic": (("case", "ratio", "curve_step"), 1.2 * level),
        },
        {"case": cases, "ratio": list(maximal_step.RATIOS), "step": x, "curve_step": x},
    )


def two_outliers():
    """Two outliers at every pair of exponents; four in the limit."""
    x = list(two_steps.EXPONENTS)
    pairs, ranks = np.ones((len(x), len(x))), two_steps.TOP
    places = pairs[..., None] * np.array([8.0, 3.0, *[np.nan] * (ranks - 2)])
    values = np.array([8.0, 3.0, *[2.0] * (ranks - 2)]) * np.linspace(0.99, 1.01, 3)[:, None]
    axes = ("first", "second")
    return xarray.Dataset(
        {
            "limit": (axes, 4 * pairs),
            "predicted_count": (axes, 2 * pairs),
            "edge": (axes, 2.2 * pairs),
            "border": (axes, 2.4 * pairs),
            "predicted": ((*axes, "rank"), places),
            "simulated": ((*axes, "seed", "rank"), pairs[..., None, None] * values),
            "simulated_count": ((*axes, "seed"), 2 * pairs[..., None] * np.ones(3)),
            "overlap": (
                ("batches", "draw"),
                np.array([[0.07], [0.19]]) * np.linspace(0.9, 1.1, 8),
            ),
        },
        {"first": x, "second": x, "batches": list(two_steps.REUSED)},
    )


def changed(data, name, where, value):
    """The data with one entry changed."""
    copy = data.copy(deep=True)
    copy[name] = copy[name].astype(float)
    copy[name][where] = value
    return copy


TRUE = {
    "spectrum": spectrum,
    "weights": weights,
    "exponent-1": lambda: errors_over_exponent(1),
    "exponent-2": lambda: errors_over_exponent(2),
    "alignment": alignment,
    "equivalence": equivalence,
    "double-descent": double,
    "small-d": small_sizes,
    "learning-curves": curves,
    "readout-law": laws,
    "maximal-step": large_steps,
    "two-steps": two_outliers,
}
# figure, variable, entry, value, words of the claim that this contradicts
FALSE = [
    ("spectrum", "simulated_count", {"exponent": 2, "seed": 1}, 1, "2 predicted, 2, 1, 2"),
    ("spectrum", "predicted_count", {"exponent": 3}, 2, "3 spikes published, 2 predicted"),
    ("spectrum", "kolmogorov", {"exponent": 1}, 0.02, "Kolmogorov"),
    ("weights", "simulated_count", {"variant": 0, "seed": 0}, 1, "none before"),
    ("weights", "simulated_count", {"variant": 1, "seed": 0}, 2, "one spike"),
    ("weights", "spike", {"variant": 1}, 4.5, "place of the spike"),
    ("weights", "spike_beta", {"variant": 1}, 0.5, "with β"),
    ("exponent-1", "simulated_train_loss", {"step_exponent": 0}, 1.2, "train loss"),
    ("exponent-1", "simulated_test_error", {"step_exponent": 1}, NAN, "test error"),
    ("exponent-1", "gain", {"step_exponent": 3}, 0.01, "untrained"),
    ("exponent-1", "published_test_error", {"degree": 2}, 1.0, "no quadratic part"),
    ("exponent-2", "simulated_test_error", {"step_exponent": 6}, 1.19, "linear part alone"),
    ("exponent-2", "error_test_error", {"step_exponent": 6}, 0.2, "tuned ridge"),
    ("alignment", "simulated", {"step_exponent": 0, "rank": 1, "hermite": 2}, 0.5, "spike 2"),
    ("alignment", "simulated", {"step_exponent": 1, "rank": 2, "hermite": 1}, 0.9, "1, 2, 1"),
    ("equivalence", "gap", {"n": 1, "step_exponent": 0, "degree": 0}, 0.1, "falls"),
    ("equivalence", "gap", {"n": 2, "step_exponent": 1, "degree": 0}, 0.2, "does not fall"),
    ("equivalence", "difference", {"n": 2, "step_exponent": 1}, 0.03, "differ by"),
    ("equivalence", "error_test_error", {"n": 0}, 0.001, "within 2 s.e."),
    ("double-descent", "simulated", {"width": 3, "ridge": 0}, 9.0, "the peak"),
    ("double-descent", "simulated", {"width": 4, "ridge": 2}, 0.9, "times"),
    ("double-descent", "simulated", {"width": 0, "ridge": 1}, 0.9, "test error"),
    ("small-d", "simulated", {"n": 4}, 0.2, "the error falls"),
    ("small-d", "limit", {"curve_n": 8}, 0.2, "limit of large d"),
    ("small-d", "simulated", {"n": 0}, 0.9, "test error"),
    ("learning-curves", "simulated", {"case": 0, "samples": 0}, 1.5, "spiked model"),
    ("learning-curves", "kernel", {"case": 1}, 0.01, "kernel ridge nowhere"),
    ("learning-curves", "best_linear", {"case": 0}, 0.01, "best linear"),
    ("readout-law", "in_limit", {"learns": 1, "law": 2}, 1, "the limit disagrees"),
    ("readout-law", "simulated", {"learns": 0, "law": 0}, 1.5, "gaussian learns H_2"),
    ("readout-law", "draws", {"learns": 0, "law": 1}, 1.8, "uniform learns H_2"),
    ("readout-law", "simulated", {"learns": 1, "law": 3}, 0.5, "constant does not learn H_3"),
    ("maximal-step", "simulated", {"case": 0, "ratio": 1, "step": 2}, 1.3, "relu: network within"),
    ("maximal-step", "exact", {"case": 1, "ratio": 2, "step": 7}, 1.3, "sine: network within"),
    ("maximal-step", "simulated", {"case": 1, "ratio": 0, "step": 0}, NAN, "sine: network within"),
    ("maximal-step", "isotropic", {"case": 0, "ratio": 2}, 1.1, "spiked random features are off"),
    (
        "two-steps",
        "simulated_count",
        {"first": 1, "second": 2, "seed": 0},
        3,
        "at the 16 of 16 pairs",
    ),
    ("two-steps", "simulated", {"first": 0, "second": 0, "rank": 1}, 3.4, "where predicted"),
    ("two-steps", "predicted_count", {"first": 3, "second": 3}, 5, "than in the limit"),
    ("two-steps", "overlap", {"batches": 1}, 0.07, "information exponent 2"),
]
