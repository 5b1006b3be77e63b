"""Other ways to give a problem's numbers: ratios, and the conventions of Cui et al."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .checks import non_negative, positive, rounded, whole_number
from .errors import InvalidProblem

RATIOS = ("phi", "psi", "phi_step")


def sizes_from_ratios(
    phi: float, psi: float, n: int, phi_step: float | None, rest: Mapping[str, Any]
) -> dict[str, Any]:
    """n, d, width and, with phi_step, n_step."""
    _refuse(rest, ("d", "width"), "is set by phi and psi")
    n = whole_number("n", n)
    d = rounded("phi", "d = phi·n", positive("phi", phi) * n)
    width = rounded("psi", "width = d/psi", d / positive("psi", psi))
    sizes = {"n": n, "d": d, "width": width}
    if phi_step is not None:
        _refuse(rest, ("n_step",), "is set by phi_step")
        steps = d / positive("phi_step", phi_step)
        sizes["n_step"] = rounded("phi_step", "n_step = d/phi_step", steps)
    return sizes


def sizes_at_ratios(d: int, changes: Mapping[str, Any]) -> dict[str, Any]:
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
            _refuse(sizes, (size,), f"is set by {ratio}")
            what = f"{size} = d/{ratio}"
            sizes[size] = rounded(ratio, what, d / positive(ratio, changes[ratio]))
    return sizes


def fields_from_cui(
    ratios: Mapping[str, float], eta_tilde: float, lambda_: float, d: int, rest: Mapping[str, Any]
) -> dict[str, Any]:
    """Sizes as multiples of d, ridge = λ·N/n and step size η̃·√N."""
    d = whole_number("d", d)
    sizes = {}
    for name, key in (("alpha", "n"), ("alpha0", "n_step"), ("width_ratio", "width")):
        value = positive(name, ratios[name]) * d
        sizes[key] = rounded(name, f"{key} = {name}·d", value)
    penalty, shift = positive("lambda_", lambda_), non_negative("eta_tilde", eta_tilde)
    names = ("n", "n_step", "width", "ridge", "step_size", "step_exponent")
    _refuse(rest, names, "is set by the ratios of this convention")
    return {
        "d": d,
        **sizes,
        "ridge": penalty * sizes["width"] / sizes["n"],
        "step_size": shift * math.sqrt(sizes["width"]),
    }


def _refuse(rest: Mapping[str, Any], names: tuple[str, ...], rule: str) -> None:
    for name in names:
        if rest.get(name) is not None:
            raise InvalidProblem(name, rule, rest[name])
