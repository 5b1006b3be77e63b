"""What is happening, in words; and numbers as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NAMES = ("constant", "linear", "quadratic", "cubic", "quartic", "fifth-degree", "sixth-degree")
_PRESENT = 0.02  # of the target's norm: less than that is not worth a word
_LEARNED, _PARTLY = 0.85, 0.1  # shares from which a degree counts as learned, or partly learned


def shares(degrees: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each degree the share of the target's part that is learned; None where it has none."""
    size = sum(row["target"] ** 2 for row in degrees) ** 0.5
    found: list[dict[str, Any]] = []
    for row in degrees:
        present = abs(row["target"]) > _PRESENT * size
        share = row["learned"] / row["target"] if present else None
        found.append({"degree": row["degree"], "share": share})
    return found


_GRAVE = (  # beginnings of notes on what may be far off, before those on a few per cent
    "step exponent",
    "the readout law has too many",
    "isotropic weights",
    "some points",
    "small sizes",
)


def gravest_first(notes: Sequence[str]) -> list[str]:
    """The notes, those that may matter most in front."""

    def rank(note: str) -> int:
        found = (place for place, begin in enumerate(_GRAVE) if note.startswith(begin))
        return next(found, len(_GRAVE))

    return sorted(notes, key=rank)


def sentence(point: Any) -> str:
    """What of the target is learned, and what that is worth."""
    return f"{_degrees(point)} {_worth(point)}"


def spikes(found: Sequence[Mapping[str, Any]]) -> str:
    """How many spikes leave the bulk, and which features they carry."""
    seen = [spike for spike in found if spike["resolved"]]
    if not seen:
        return "No spike stands clear of the bulk."
    carried = _listed([NAMES[k] for k in dict.fromkeys(spike["degree"] for spike in seen)])
    features = "feature" if len(seen) == 1 else "features"
    return (
        f"{len(seen)} spike{'s' * (len(seen) > 1)}: {carried} {features} of the learned direction."
    )


def _degrees(point: Any) -> str:
    """Which parts of the target, along the learned direction, are learned."""
    learned, partly, absent = list[str](), list[str](), list[str]()
    for row in shares(point["degrees"]):
        name, share = NAMES[int(row["degree"])], row["share"]
        if share is None:
            continue
        if share >= _LEARNED:
            learned.append(name)
        elif share >= _PARTLY:
            partly.append(f"{name} ({share:.0%})")
        else:
            absent.append(name)
    told = [
        f"the {_listed(names)} part{'s' * (len(names) > 1)} {how}"
        for names, how in ((learned, "well"), (partly, "partly"), (absent, "not at all"))
        if names
    ]
    if not told:
        return "The target has no part along the learned direction."
    return f"Of the target it learns {', '.join(told)}."


def _worth(point: Any) -> str:
    test, still = point["test_error"], point["baselines"]["untrained"]
    if point["step_size"] == 0:
        return f"Nothing is trained but the readout: the test error is {number(test)}."
    change = test / still - 1.0 if still > 0 else 0.0
    if abs(change) < 0.005:
        against = "as without the step"
    else:
        against = f"{abs(change):.0%} {'below' if change < 0 else 'above'} the untrained network's"
    return f"The test error, {number(test)}, is {against}."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def number(value: float) -> str:
    """Four significant digits, thousands set apart."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        text = f"{value:.4g}"
        return f"{value:,.0f}" if abs(value) >= 1e4 else text
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(_RAISED)}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


TILES = (
    ("test_error", "test error", "L_te"),
    ("train_loss", "training loss", "L_tr"),
    ("alignment", "alignment", "γ"),
    ("step_size", "step size", "η"),
    ("d", "dimension", "d"),
    ("width", "width", "N"),
)


def values(point: Mapping[str, Any]) -> dict[str, str]:
    """The numbers on top, by their element's id."""
    shown = {name: number(point[name]) for name in ("test_error", "train_loss", "step_size")}
    shown["alignment"] = f"{point['alignment']:.3f}"
    shown |= {name: f"{point[name]:,}" for name in ("d", "width")}
    return {f"value-{name}": text for name, text in shown.items()}
