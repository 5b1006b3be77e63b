"""What is happening, in words; and numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from .state import PageState

DEGREES = 6  # of the learned direction
NAMES = ("constant", "linear", "quadratic", "cubic", "quartic", "fifth-degree", "sixth-degree")
_DEPARTURES = {  # fields of the page beyond a plain problem
    "loss": "this loss",
    "intercept": "an intercept",
    "rows": "rows used twice",
    "steps": "several steps",
    "covariance": "a covariance",
}
_PRESENT = 0.02  # of the target's norm: less than that is not worth a word
_LEARNED, _PARTLY = 0.85, 0.1  # shares from which a degree counts as learned, or partly learned


def shares(degrees: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """For degrees 1, 2, … the share of the target's part that is learned; None without a part."""
    size = sum(row["target"] ** 2 for row in degrees) ** 0.5
    return [
        row["learned"] / row["target"] if abs(row["target"]) > _PRESENT * size else None
        for row in degrees
    ]


def gravest_first(notes: Iterable[str]) -> list[tuple[str, float]]:
    """The notes as sentences with the error that each admits, the largest in front.

    A note without a guarantee (infinite size) counts as 1e9: JSON has no infinity.
    """
    sized = [(f"{note}.", min(getattr(note, "size", math.inf), 1e9)) for note in notes]
    return sorted(sized, key=lambda pair: -pair[1])


def missing(state: PageState, fields: Collection[str]) -> str:
    """What the errors' panel leaves out, given the fields that are not those of a plain problem."""
    told = []
    if fields and state.over == "exponent":
        told.append("limits n → ∞")
    if fields and state.isotropic:
        told.append("spiked random features")
    if "covariance" in fields:
        told.append("ridge regression")
    which = [_DEPARTURES[name] for name in fields if name in _DEPARTURES]
    return f"no {_listed(told, 'or')} with {_listed(which)}" if told and which else ""


def no_spectrum(fields: Collection[str]) -> str:
    """Why there is no spectrum, given the fields that are not those of a plain problem."""
    unknown = [name for name in fields if name not in ("intercept", "steps")]
    if unknown in ([], ["rows"]):
        return ""
    words = {**_DEPARTURES, "loss": "labels ±1"}
    return f"There is no theory of the spectrum with {_listed([words[name] for name in unknown])}."


def sentence(point: Any) -> str:
    """What of the target is learned, and what that is worth."""
    return f"{_degrees(point)} {_worth(point)}" if point["degrees"] else _worth(point)


def spikes(found: Sequence[Mapping[str, Any]]) -> str:
    """How many spikes leave the bulk, and which features they carry."""
    seen = [spike for spike in found if spike["resolved"]]
    if not seen:
        return "No spike leaves the bulk."
    carried = _listed([NAMES[k] for k in dict.fromkeys(spike["degree"] for spike in seen)])
    features = "feature" if len(seen) == 1 else "features"
    return (
        f"{len(seen)} spike{'s' * (len(seen) > 1)}: {carried} {features} of the learned direction."
    )


def _degrees(point: Any) -> str:
    """Which parts of the target, along the learned direction, are learned."""
    well, partly, not_at_all = list[str](), list[str](), list[str]()
    for name, share in zip(NAMES[1:], shares(point["degrees"]), strict=True):
        if share is None:
            continue
        if share >= _LEARNED:
            well.append(name)
        elif share >= _PARTLY:
            partly.append(f"{share:.0%} of the {name} part")
        else:
            not_at_all.append(name)
    told = [f"{_parts(well)} well", *partly] if well else partly
    if not told and not not_at_all:
        return "The target has no part along the learned direction."
    if not told:
        return f"The network learns nothing of {_parts(not_at_all)} of the target."
    rest = f", and nothing of {_parts(not_at_all)}" if not_at_all else ""
    return f"Of the target the network learns {_listed(told)}{rest}."


def _parts(names: Sequence[str]) -> str:
    return f"the {_listed(names)} part{'s' * (len(names) > 1)}"


def _worth(point: Any) -> str:
    test, still = point["test_error"], point["baselines"]["untrained"]
    shown = f"{test:.1%} of the signs wrong" if point["is_binary"] else number(test)
    if point["step_size"] == 0:
        return f"Only the readout is trained: the test error is {shown}."
    change = test / still - 1.0 if still > 0 else 0.0
    if abs(change) < 0.005:
        against = "as without the step"
    else:
        against = f"{abs(change):.0%} {'below' if change < 0 else 'above'} the untrained network's"
    return f"The test error, {shown}, is {against}."


def _listed(names: Sequence[str], word: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def number(value: float) -> str:
    """Four significant digits, thousands set apart."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        text = f"{value:.4g}"
        return f"{value:,.0f}" if abs(value) >= 1e4 else text
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(_RAISED)}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


TILES: Mapping[str, tuple[str, str, Callable[[float], str]]] = {  # word, symbol, how it is written
    "test_error": ("test error", "L_te", number),
    "train_loss": ("training loss", "L_tr", number),
    "alignment": ("alignment", "γ", "{:.3f}".format),
    "step_size": ("step size", "η", number),
    "d": ("dimension", "d", "{:,}".format),
    "width": ("width", "N", "{:,}".format),
}


def values(point: Mapping[str, Any]) -> dict[str, str]:
    """The numbers on top, by their element's id."""
    return {f"value-{name}": write(point[name]) for name, (*_, write) in TILES.items()}
