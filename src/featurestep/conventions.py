"""Other ways to give a problem's numbers: ratios, the conventions of papers and of programs.

Here the network is f(x) = Σ_j a_j σ(w_j·x) with a_j = g_j/√N, rows of norm 1 and inputs of
covariance I; the step is W₀ + η (1/n₀)[(a rᵀ)∘σ′(W₀X₀ᵀ)]X₀ and the readout minimises
(1/n)‖y − Fa‖² + λ‖a‖² (theory, section 1). Whoever counts differently finds the factor here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .core.checks import non_negative, one_of, positive, rounded, whole_number
from .core.errors import InvalidProblem
from .core.types import FloatArray
from .functions.activations import function, resolve
from .functions.nonlinearity import Nonlinearity

LOSSES = ("half_mean", "mean", "half_sum", "sum")  # ½(1/n)‖·‖², (1/n)‖·‖², ½‖·‖², ‖·‖²
SCALES = {"plain": 0.0, "over_sqrt_width": 0.5, "over_width": 1.0}  # powers of 1/N

RATIOS = ("phi", "psi", "phi_step")


def sizes_at_ratios(d: int | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes with ratios turned into sizes: n = d/φ, width = d/ψ, n_step = d/φ0.

    With n among the changes φ sets d = φ·n instead.
    """
    sizes = {name: value for name, value in changes.items() if name not in RATIOS}
    if "phi" in changes:
        phi = positive("phi", changes["phi"])
        if "n" not in sizes:
            sizes["n"] = rounded("phi", "n = d/phi", whole_number("d", sizes.get("d", d)) / phi)
        elif "d" not in sizes:
            sizes["d"] = rounded("phi", "d = phi·n", phi * whole_number("n", sizes["n"]))
        else:
            raise InvalidProblem("phi", "must not be given together with n and d", phi)
    d = whole_number("d", sizes.get("d", d))
    for ratio, size in (("psi", "width"), ("phi_step", "n_step")):
        if ratio in changes:
            refuse(sizes, (size,), f"is set by {ratio}")
            what = f"{size} = d/{ratio}"
            sizes[size] = rounded(ratio, what, d / positive(ratio, changes[ratio]))
    return sizes


def sizes_by_letter(
    n: int, d: int, N: int, rest: Mapping[str, Any], *others: str
) -> dict[str, Any]:
    """Sizes under the letters n, d and N, with all samples in one n; the rest must not set them."""
    names = ("n_step", "width", "ridge", "step_size", "step_exponent", *others)
    refuse(rest, names, "is set by the symbols of this convention")
    samples, width = whole_number("n", n), whole_number("N", N)
    return {"n": samples, "n_step": samples, "d": whole_number("d", d), "width": width}


def ridge_from(
    penalty: float,
    *,
    n: int,
    width: int,
    loss: str = "sum",
    half_penalty: bool = False,
    features: str = "plain",
) -> float:
    """`ridge` of a fit that minimises loss(y − Fa) + penalty·‖a‖², by another program or paper.

    loss
        `sum` ‖·‖² (scikit-learn's Ridge), `mean` (1/n)‖·‖², `half_sum` ½‖·‖² or `half_mean`.
    half_penalty
        Whether the penalty has a ½ as well.
    features
        What the fit sees: F itself (`plain`), F/√N (`over_sqrt_width`) or F/N (`over_width`).

    >>> ridge_from(20.0, n=2000, width=1500)  # Ridge(alpha=20) on F
    0.01
    """
    n, width = whole_number("n", n), whole_number("width", width)
    scale = _scale("features", features, width)
    weight = positive("penalty", penalty) * (0.5 if half_penalty else 1.0)
    return weight / (n * _loss_factor(loss, n) * scale**2)


def step_size_from(
    learning_rate: float,
    *,
    width: int,
    n_step: int,
    loss: str = "half_mean",
    output: str = "plain",
    readout: str = "over_sqrt_width",
    row_norm: float = 1.0,
) -> float:
    """`step_size` η of one step W − learning_rate·∇loss of a network that is written otherwise.

    loss
        As in `ridge_from`, of y − f over the step's samples; PyTorch's MSELoss is `mean`.
    output
        f = aᵀσ(Wx) (`plain`), over √N (`over_sqrt_width`) or over N (`over_width`, mean field).
    readout
        Size of a_j: g_j/√N (`over_sqrt_width`), g_j (`plain`) or g_j/N, with E g² = 1.
    row_norm
        ‖w_j‖ at the start. Rows N(0, I) on inputs x/√d have √d. The activation must then be
        `rescaled` by row_norm times the inputs' scale, here 1.

    The initial output must be of order 1 for `residual="full"` to mean the same: where
    output and readout together are smaller than 1/√N, the residual is the labels.

    >>> step_size_from(3.0, width=1500, n_step=2000, loss="mean")  # ∇ of a mean has a 2
    6.0
    """
    n_step, width = whole_number("n_step", n_step), whole_number("width", width)
    gradient = 2.0 * n_step * _loss_factor(loss, n_step)  # 1 for ½(1/n)‖·‖²
    size = _scale("output", output, width) * _scale("readout", readout, width) * math.sqrt(width)
    rate = non_negative("learning_rate", learning_rate)
    return rate * gradient * size / positive("row_norm", row_norm) ** 2


def rescaled(activation: Any, factor: float) -> Nonlinearity:
    """σ(factor·z): what unit rows see of rows of another norm, or of inputs of another scale.

    >>> import numpy as np
    >>> rescaled("relu", 2.0)(np.array([-1.0, 1.5]))
    array([0., 3.])
    """
    base, by = resolve(activation, "activation"), positive("factor", factor)
    if by == 1.0:
        return base

    def call(s: FloatArray) -> FloatArray:
        return base(by * s)

    def slope(s: FloatArray) -> FloatArray:
        return by * base.derivative(by * s)

    kinks = tuple(kink / by for kink in base.kinks)
    return function(call, derivative=slope, kinks=kinks, name=f"{base.name}({by:g}·z)")


def _loss_factor(loss: str, count: int) -> float:
    one_of("loss", loss, LOSSES)
    return (0.5 if loss.startswith("half") else 1.0) / (count if loss.endswith("mean") else 1)


def _scale(parameter: str, name: str, width: int) -> float:
    return float(width ** -SCALES[one_of(parameter, name, SCALES)])


def refuse(rest: Mapping[str, Any], names: tuple[str, ...], rule: str) -> None:
    """Refuse what else is given for fields that something else sets."""
    for name in names:
        if rest.get(name) is not None:
            raise InvalidProblem(name, rule, rest[name])
