"""The page's words: what is happening, numbers as people read them, controls and presets."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from .state import COEFFICIENTS, LABELS, LIMITS, NUMBERS, Choice, Number, PageState, as_text

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


MONIRI = "Moniri et al., arXiv:2310.07891"
CUI = "Cui et al., arXiv:2402.04980"
OURS = "this package"


class Preset(NamedTuple):
    """A named view, as a link has it: what it shows, and whose setting it is."""

    title: str
    text: str
    source: str
    link: str

    @property
    def state(self) -> PageState:
        """The view itself."""
        return PageState.from_query(self.link)


PRESETS: Mapping[str, Preset] = {
    "moniri2": Preset(
        "Quadratic target",
        "y = H₁ + H₂/√2: from α = 0.31 on (1/4 as n → ∞) a second spike leaves the bulk, and with "
        "it the quadratic part of the target is learned.",
        f"{MONIRI}, setting 2",
        "",
    ),
    "moniri1": Preset(
        "Noisy linear target",
        "y = H₁ + ε with ε ~ N(0, 1): the target is linear, and what larger steps learn beyond "
        "the first spike does not help.",
        f"{MONIRI}, setting 1",
        "step_exponent=0.3&c2=0&noise_std=1",
    ),
    "cui": Preset(
        "Learning curve",
        "Errors against the samples n of the readout, after a maximal step on 4d others, with a "
        "constant readout and N = d: ahead of tuned ridge on n samples while n < d, behind it "
        "from n = 1.1d on.",
        CUI,
        "step_exponent=0.5&n=2000&phi=0.5&psi=1&step_ratio=2&ridge=0.01&activation=tanh&centre=off"
        "&readout=constant&target=formula&formula=tanh&over=samples",  # n_step = 4d
    ),
    "maximal": Preset(
        "Maximal step",
        "η = 2√N, ReLU, constant readout, n₀ = 32d: spiked random features, also drawn, expect an "
        "error of 1.57 where the network has 0.85: they miss each neuron's own overlap with "
        "the target.",
        f"{OURS}, after {CUI}",
        "step_exponent=0.5&step_scale=1.6&phi=0.4&psi=0.625&step_ratio=12.8&ridge=0.01"
        "&noise_std=0.2&centre=off&readout=constant&target=formula&isotropic=on",  # 2√N = 1.6√n
    ),
    "stairs": Preset(
        "Two directions",
        "y = z₁ + z₁z₂: the step finds z₁, and z₂ can only be used linearly. More samples "
        "in the step lower what is left.",
        OURS,
        "step_exponent=0.5&phi=0.1&psi=0.2&step_ratio=4&ridge=0.01&noise_std=0.2&activation=relu"
        "&centre=off&readout=rademacher&target=formula&formula=z1 %2B z1*z2",
    ),
    "descent": Preset(
        "Double descent",
        "No step at all: the test error of random features peaks where the width N meets n.",
        OURS,
        "step=size&step_size=0&ridge=1e-05&noise_std=0.5&activation=tanh&centre=off"
        "&target=formula&formula=tanh&over=width",
    ),
    "same": Preset(
        "Same rows twice",
        "All 2,000 rows serve the step, and then the fit of the readout: the test error is 0.101. "
        "With one half of them for each, and the same ridge, it is 0.137.",
        OURS,
        "step_exponent=0.5&noise_std=0.2&activation=tanh&centre=off&readout=rademacher"
        "&target=formula&formula=tanh&rows=same",
    ),
    "classes": Preset(
        "Classification",
        "Labels are the signs of H₁ + H₂/√2 + ε, fitted by logistic regression: 27.7 % of new "
        "signs are wrong, 37.2 % without the step, 30.1 % with logistic regression on the inputs "
        "at its best ridge.",
        OURS,
        "step_exponent=0.5&noise_std=0.2&ridge=0.01&readout=rademacher&loss=logistic",
    ),
    "two": Preset(
        "Two steps",
        "y = H₁ + H₂/√2, two steps with 2,000 fresh samples each: the test error is 0.84, after "
        "the first step 1.11, and 0.93 after one step with all 4,000.",
        OURS,
        "steps=2&readout=rademacher",
    ),
    "small": Preset(
        "Small d",
        "At d = 50 an input has d(d + 1)/2 = 1,275 quadratic functions, and n = N = 1,000 suffice "
        "to learn some of them without a step. The test error is 0.53; with 100 times the sizes "
        "and the same η/√n it is 0.80.",
        OURS,
        "n=1000&phi=0.05&psi=0.05&ridge=0.01&readout=rademacher",
    ),
}


GROUPS = (
    ("Gradient step", "", ("step", "step_exponent", "step_scale", "step_size", "steps")),
    ("Sizes", "", ("n", "phi", "psi", "step_ratio")),
    ("Readout fit", "", ("rows", "ridge", "loss", "intercept")),
    ("Data", "", ("noise_std", "covariance")),
    ("Network", "", ("activation", "centre", "readout", "residual", "initial")),
    ("Target", "σ_⋆", ("target", *COEFFICIENTS, "formula")),
    ("Compare with", "", ("isotropic",)),
)
PANELS = {
    "spectrum": ("Spectrum", "singular values of the features"),
    "errors": ("Errors", ""),
    "learned": ("Learned function", "along the learned direction"),
    "degrees": ("Learned degrees", "overlaps with Hermite polynomials"),
}
WORDS = {
    "exponent": "exponent α",
    "size": "size η",
    "labels": "labels, y",
    "full": "full, y − f",
    "sphere": "unit sphere",
    "sliders": "Hermite sum",
    "fresh": "fresh",
    "half": "half",
    "same": "the step's",
    "square_signs": "square, labels ±1",
    "logistic": "logistic, labels ±1",
    "squared_hinge": "squared hinge, labels ±1",
    "hinge": "hinge, labels ±1",
    "huber": "Huber",
    "identity": "identity",
    "power_half": "eigenvalue i ∝ 1/√i",
    "power_one": "eigenvalue i ∝ 1/i",
    "two_levels": "10 % eleven times larger",
}
OVER = {"exponent": "α", "samples": "n/d", "width": "N/n", "ridge": "λ"}
_LISTS = ("activation", "readout", "over", "loss", "covariance")  # choices of many words
_PLAIN = str.maketrans("", "", "_^")
_TAGS = {"": "i", "_": "sub", "^": "sup"}


def symbol(text: str) -> Markup:
    """A paper's symbol: n_0 has a subscript, n^α a superscript."""
    parts = re.findall(r"([_^]?)([^_^/]+|/)", text)
    return Markup("").join(
        Markup("<{0}>{1}</{0}>").format(_TAGS[mark], part) for mark, part in parts
    )


def context(state: PageState, *, told: bool) -> dict[str, Any]:
    """What the template needs to draw the page for a state; `told`: its link was refused."""
    return {
        "state": state,
        "groups": [(title, symbol(sign), fields) for title, sign, fields in GROUPS],
        "controls": {name: _control(name, getattr(state, name)) for name in LIMITS},
        "panels": PANELS,
        "presets": PRESETS,
        "tiles": [(name, word, symbol(sign)) for name, (word, sign, _) in TILES.items()],
        "known": {
            "fields": list(LIMITS),
            "numbers": {
                n: {"low": x.low, "high": x.high, "log": x.log} for n, x in NUMBERS.items()
            },
            "switches": [n for n, x in LIMITS.items() if isinstance(x, Choice) and x.is_switch],
            "presets": {name: preset.state.to_query() for name, preset in PRESETS.items()},
            "start": state.to_query(),
            "told": told,
        },
    }


def _control(name: str, value: Any) -> dict[str, Any]:
    """One field: its kind, its words, and what it is set to; the script puts sliders in place."""
    limits = LIMITS[name]
    word, sign = LABELS[name]
    made: dict[str, Any] = {"word": word, "symbol": symbol(sign), "value": value}
    if isinstance(limits, Number):
        ends = (math.log10(limits.low), math.log10(limits.high)) if limits.log else ()
        low, high = ends or (limits.low, limits.high)
        label = f"{word} {sign}".translate(_PLAIN)
        made |= {"kind": "number", "text": as_text(value), "label": label, "step": limits.step}
        return {**made, "low": low - limits.zero * limits.step, "high": high}
    if isinstance(limits, Choice) and limits.is_switch:
        return {**made, "kind": "switch"}
    if isinstance(limits, Choice):
        words = OVER if name == "over" else WORDS
        options = [(each, words.get(each, each.replace("_", " "))) for each in limits.options]
        return {**made, "kind": "list" if name in _LISTS else "choice", "options": options}
    return {**made, "kind": "text"}
