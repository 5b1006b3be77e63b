"""What the page shows, as one frozen and validated record that a link carries whole, and its axes.

The axes of the panels are here so that the server has them without the engine. The spectrum's stay
where they are while the step grows: that of the singular value is linear over the bulk and
logarithmic beyond, and where it bends, where it ends and how high the density may be come from the
untrained network's bulk and from the features' mean at the largest step, so that none of them
depends on the step exponent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from ..core.axes import read_axis
from ..core.errors import InvalidProblem
from ..core.problem import BINARY_LOSSES, INITIALS, LOSSES, RESIDUALS, ROWS, Grid, Problem
from ..core.results import LOSS, departing
from ..core.types import FloatArray
from ..functions.activations import NAMED
from ..functions.readout import NAMES as LAWS

MAX_QUERY = 2000
MAX_FORMULA = 200
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Number:
    """A number's limits; on a log slider equal moves are equal factors."""

    low: float
    high: float
    log: bool = False
    whole: bool = False
    step: float = 0.01  # of the slider; decades when log
    zero: bool = False  # whether 0 is allowed too, at the left end of a log slider

    def check(self, name: str, value: Any) -> float:
        """The number itself, or InvalidProblem."""
        kind = "a whole number" if self.whole else "a number"
        rule = f"must be {kind} from {self.low:g} to {self.high:g}{', or 0' * self.zero}"
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InvalidProblem(name, rule, value)
        inside = self.low <= value <= self.high or (self.zero and value == 0)
        if not inside or (self.whole and value != int(value)):
            raise InvalidProblem(name, rule, value)
        return int(value) if self.whole else float(f"{value:.12g}")  # as a link carries it

    def read(self, name: str, text: str) -> float:
        """The number behind a link's text."""
        value: Any = text
        if len(text) <= 40 and _NUMBER.fullmatch(text):
            value = float(text)
        return self.check(name, value)


@dataclass(frozen=True)
class Choice:
    """One of a few words; a switch is on or off."""

    options: tuple[Any, ...]

    @property
    def is_switch(self) -> bool:
        """Whether its options are True and False."""
        return self.options == (True, False)

    def check(self, name: str, value: Any) -> Any:
        """The word itself, or InvalidProblem."""
        if type(value) is not type(self.options[0]) or value not in self.options:
            rule = f"must be one of {', '.join(map(as_text, self.options))}"
            raise InvalidProblem(name, rule, value)
        return value

    def read(self, name: str, text: str) -> Any:
        """The option behind a link's text."""
        return self.check(name, {as_text(each): each for each in self.options}.get(text, text))


@dataclass(frozen=True)
class Text:
    """A text such as a formula, whose grammar is checked where it is parsed."""

    longest: int
    pattern: str = ".*"  # of all of it

    def check(self, name: str, value: Any) -> str:
        """The text itself, or InvalidProblem."""
        if not isinstance(value, str) or len(value) > self.longest or not value.isprintable():
            rule = f"must be at most {self.longest} printable characters"
            raise InvalidProblem(name, rule, value)
        if not re.fullmatch(self.pattern, value):
            raise InvalidProblem(name, f"must read {self.pattern}", value)
        return value

    read = check


Limits = Number | Choice | Text


def _control(default: Any, limits: Limits, word: str = "", sign: str = "") -> Any:
    return field(default=default, metadata={"limits": limits, "label": (word, sign)})


_COEFFICIENT = Number(-2.0, 2.0, step=0.05)
COVARIANCES: Mapping[str, Any] = {  # spectra of the inputs to choose from
    "identity": None,
    "power_half": "power(0.5)",
    "power_one": "power(1)",
    "two_levels": ((5.5, 0.1), (0.5, 0.9)),
}


@dataclass(frozen=True, kw_only=True)
class PageState:
    """Every control of the page: what one sees first, its limits, its word and its symbol."""

    step: str = _control("exponent", Choice(("exponent", "size")))
    step_exponent: float = _control(0.4, Number(0.0, 0.5, step=0.005), "exponent", "α")
    step_scale: float = _control(1.0, Number(0.05, 20.0, log=True), "scale", "η/n^α")
    step_size: float = _control(10.0, Number(0.01, 1000.0, log=True, zero=True), "step size", "η")
    steps: int = _control(1, Number(1, 4, whole=True, step=1.0), "steps", "T")
    n: int = _control(2000, Number(100, 1_000_000, log=True, whole=True), "samples", "n")
    phi: float = _control(0.3, Number(0.05, 20.0, log=True), "d/n", "φ")
    psi: float = _control(0.6, Number(0.05, 20.0, log=True), "d/N", "ψ")
    step_ratio: float = _control(1.0, Number(0.1, 100.0, log=True), "step", "n_0/n")  # n_step/n
    ridge: float = _control(0.1, Number(1e-6, 1e3, log=True, step=0.05), "ridge", "λ")
    noise_std: float = _control(0.0, Number(0.0, 3.0, step=0.05), "noise", "σ_ε")
    loss: str = _control("square", Choice(LOSSES), "loss")
    intercept: bool = _control(False, Choice((True, False)), "intercept")
    rows: str = _control("fresh", Choice(ROWS), "rows")
    covariance: str = _control("identity", Choice(tuple(COVARIANCES)), "covariance")
    activation: str = _control("relu", Choice(tuple(NAMED)), "activation", "σ")
    centre: bool = _control(True, Choice((True, False)), "centred", "E σ = 0")
    readout: str = _control("gaussian", Choice(LAWS), "readout law")
    residual: str = _control("labels", Choice(RESIDUALS), "residual")
    initial: str = _control("sphere", Choice(INITIALS), "first layer")
    target: str = _control("sliders", Choice(("sliders", "formula")))
    c1: float = _control(1.0, _COEFFICIENT, "degree 1", "c^⋆_1")
    c2: float = _control(0.7071, _COEFFICIENT, "degree 2", "c^⋆_2")
    c3: float = _control(0.0, _COEFFICIENT, "degree 3", "c^⋆_3")
    c4: float = _control(0.0, _COEFFICIENT, "degree 4", "c^⋆_4")
    formula: str = _control("H1 + H2/sqrt(2)", Text(MAX_FORMULA), "target", "σ_⋆")
    isotropic: bool = _control(False, Choice((True, False)), "spiked random features")
    over: str = _control("exponent", Choice(("exponent", "samples", "width", "ridge")))
    theme: str = _control("light", Choice(("light", "dark")))

    def __post_init__(self) -> None:
        for name, limits in LIMITS.items():
            object.__setattr__(self, name, limits.check(name, getattr(self, name)))

    @classmethod
    def from_query(cls, text: str) -> PageState:
        """The state of a link; what it leaves out keeps its default."""
        if not isinstance(text, str) or len(text) > MAX_QUERY:
            raise InvalidProblem("link", f"must be text of at most {MAX_QUERY} characters", text)
        try:
            pairs = parse_qsl(
                text, keep_blank_values=True, strict_parsing=True, max_num_fields=2 * len(LIMITS)
            )
        except ValueError:
            if text:
                raise InvalidProblem("link", "must read name=value&name=value", text) from None
            pairs = []
        values: dict[str, Any] = {}
        for name, value in pairs:
            if name not in LIMITS:
                raise InvalidProblem("link", f"must name fields ({', '.join(LIMITS)})", name)
            if name in values:
                raise InvalidProblem("link", "must give every field once", name)
            values[name] = LIMITS[name].read(name, value)
        return cls(**values)

    def to_query(self) -> str:
        """The link's text, which `from_query` reads back to the same state."""
        return urlencode({name: as_text(getattr(self, name)) for name in LIMITS})

    def replace(self, **changes: Any) -> PageState:
        """The same state with some fields changed."""
        return replace(self, **changes)

    @property
    def target_text(self) -> str:
        """The target as a Hermite sum or a name, as `Problem` takes it."""
        if self.target == "formula":
            return self.formula.strip()
        terms = [
            f"{getattr(self, name):.12g}*H{degree}"
            for degree, name in enumerate(COEFFICIENTS, 1)
            if getattr(self, name) != 0.0
        ]
        return " + ".join(terms).replace("+ -", "- ") or "0*H1"

    @property
    def problem(self) -> Problem:
        """The problem on show, with every size spelled out."""
        step: dict[str, Any] = {"step_size": self.step_size}
        if self.step == "exponent":
            step = {"step_exponent": self.step_exponent, "step_scale": self.step_scale}
        ratio = 1.0 if self.rows == "same" else self.step_ratio  # the same rows are as many
        n_step = max(1, round(ratio * self.n))
        step["n_step"] = None if n_step == self.n else n_step
        return Problem.from_ratios(
            activation=self.activation,
            target=self.target_text,
            phi=self.phi,
            psi=self.psi,
            n=self.n,
            ridge=self.ridge,
            noise_std=self.noise_std,
            readout=self.readout,
            residual=self.residual,
            initial=self.initial,
            centre=self.centre,
            loss=self.loss,
            intercept=self.intercept,
            rows=self.rows,
            steps=self.steps,
            covariance=COVARIANCES[self.covariance],
            **step,
        )

    @property
    def features(self) -> PageState:
        """The state as far as the features after the step depend on it: real labels, any fit."""
        loss = self.loss if self.loss in BINARY_LOSSES else PLAIN.loss
        return self.replace(loss=loss, intercept=self.intercept and loss != PLAIN.loss)

    @property
    def exponent(self) -> float | None:
        """α with η = step_scale·n^α; None when η = 0."""
        if self.step == "exponent":
            return self.step_exponent
        return math.log(self.step_size) / math.log(self.n) if self.step_size > 0 else None


def as_text(value: object) -> str:
    """A field as a link writes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


LIMITS: Mapping[str, Limits] = {f.name: f.metadata["limits"] for f in fields(PageState)}
LABELS: Mapping[str, tuple[str, str]] = {f.name: f.metadata["label"] for f in fields(PageState)}
NUMBERS = {name: limits for name, limits in LIMITS.items() if isinstance(limits, Number)}
COEFFICIENTS = tuple(name for name, limits in LIMITS.items() if limits is _COEFFICIENT)
PLAIN = PageState()  # what one sees first


FIELDS = {"exponent": "step_exponent", "samples": "n", "width": "width", "ridge": "ridge"}
POINTS = {"exponent": 31, "samples": 33, "width": 33, "ridge": 31}  # of a curve, by its axis
_SLOW_POINTS = 13  # where a point takes longer
_SLOWEST_POINTS = 7  # and with a continuous readout law
_DRAFT_POINTS, _SLOW_DRAFT_POINTS, _SLOWEST_DRAFT_POINTS = 9, 5, 3  # points of its draft
_PEAK_RATIOS = (0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25)  # of n over N, or N over n
_DRAFT_PEAK_RATIOS = (0.9, 1.0, 1.1)
_SIZE_FACTOR = 10  # of sizes, either way


def errors(state: PageState) -> tuple[str, str]:
    """The two numbers that the errors' panel draws, by their names in a prediction.

    `train_loss` of ridge regression is what it minimises; with another loss or an intercept the
    training error has the test error's unit, and the loss need not.
    """
    is_ridge = state.loss == "square" and not state.intercept
    return "test_error", "train_loss" if is_ridge else "train_error"


def base(state: PageState) -> Problem:
    """The problem whose one field the errors' axis varies.

    Away from the exponent the step keeps its size and its samples, as in a learning curve.
    """
    problem = state.problem
    if state.over == "exponent":
        scale = state.step_scale if state.step == "exponent" else 1.0
        return problem.replace(step_exponent=0.0, step_scale=scale)
    return problem.replace(step_size=problem.step_size, n_step=problem.n_step)


def exponents(state: PageState) -> tuple[float, float]:
    """The range of α on the errors' axis: 0 to 1/2, and on in tenths to where the step lies."""
    at = state.exponent
    if at is None:
        return 0.0, 0.5
    low, high = math.floor(10.0 * at + 1e-6) / 10.0, math.ceil(10.0 * at - 1e-6) / 10.0
    return min(0.0, low), max(0.5, high)


def axis_text(
    state: PageState, count: int | None = None, peak: Sequence[float] = _PEAK_RATIOS
) -> str:
    """The varied field and its values, as the command line's --over takes them.

    Over sizes there are points around the peak of double descent, where n meets N.
    """
    if count is None:
        count = _by_speed(state, POINTS[state.over], _SLOW_POINTS, _SLOWEST_POINTS)
    if state.over == "exponent":
        low, high = exponents(state)
        return f"step_exponent={low:g}:{high:g}:{1 + round((count - 1) * (high - low) / 0.5)}"
    if state.over == "ridge":
        return f"ridge=log:1e-06:1000:{count}"
    problem = state.problem
    unit, other = _unit(state, problem), problem.width if state.over == "samples" else problem.n
    low, high = max(1, round(unit / _SIZE_FACTOR)), round(unit * _SIZE_FACTOR)
    even = np.geomspace(low, high, count)
    near = [other * factor for factor in peak if low < other * factor < high]
    sizes = sorted({round(value) for value in (*even, *near)})
    return f"{FIELDS[state.over]}={','.join(map(str, sizes))}"


def _by_speed(state: PageState, plain: int, slow: int, slowest: int) -> int:
    """A number of points, by how long one takes."""
    if departing(state.problem).keys() <= LOSS:
        return plain
    return slow if state.readout in ("constant", "rademacher") else slowest


def _unit(state: PageState, problem: Problem) -> int:
    """What sizes are counted in on the axis."""
    return {"samples": problem.d, "width": problem.n}.get(state.over, 1)


def grid(state: PageState, count: int | None = None, *, draft: bool = False) -> Grid:
    """The problems along the errors' axis: those of the curve or its draft, or `count` of them."""
    if draft:
        count = _by_speed(state, _DRAFT_POINTS, _SLOW_DRAFT_POINTS, _SLOWEST_DRAFT_POINTS)
        text = axis_text(state, count, _DRAFT_PEAK_RATIOS)
    else:
        text = axis_text(state, count, _PEAK_RATIOS if count is None else ())
    name, values = read_axis("axis", text)
    return base(state).vary(**{name: values})


def axis(state: PageState, problems: Grid) -> FloatArray:
    """The grid's values as the axis shows them."""
    (values,) = problems.coordinates().values()
    return np.asarray(values, dtype=np.float64) / _unit(state, problems.base)


def here(state: PageState) -> float | None:
    """Where the current point lies on the axis; nowhere for the exponent of step 0."""
    if state.over == "exponent":
        return state.exponent
    problem = state.problem
    return float(getattr(problem, FIELDS[state.over]) / _unit(state, problem))


_BULK_SHARE = 0.66  # of the axis, up to the bend
_BEND_OVER_EDGE = 1.3  # of the untrained bulk, which widens as it is trained
_MAX_OVER_MEAN_DENSITY = 3.2  # mean from 0 to the edge, in a bulk of usual shape
_POLE_FACTOR = 2.5  # times that: what is higher is not shown whole
_STEPS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)


def nice(value: float) -> float:
    """The next round number outwards: axes that stay while a curve moves are easy to read."""
    if value <= 0.0:
        return 0.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step for step in _STEPS if step * scale >= 0.999999 * value) * scale


@dataclass(frozen=True)
class SpectrumAxes:
    """Where a singular value is drawn, from 0 to 1, and the largest density."""

    bend: float
    right: float
    top: float

    @property
    def is_bent(self) -> bool:
        """Whether anything lies beyond the linear part."""
        return self.right > self.bend

    def place(self, s: Iterable[float]) -> list[float]:
        """Positions of singular values on the axis."""
        values = np.asarray(list(s), dtype=np.float64)
        if not self.is_bent:
            return [float(x) for x in values / self.bend]
        beyond = np.log(np.maximum(values, self.bend) / self.bend) / math.log(
            self.right / self.bend
        )
        linear = _BULK_SHARE * np.minimum(values, self.bend) / self.bend
        return [float(x) for x in linear + (1.0 - _BULK_SHARE) * beyond]

    def as_dict(self) -> dict[str, float]:
        """What a script needs to put other values on this axis."""
        return {"bend": self.bend, "right": self.right, "share": _BULK_SHARE}

    def ticks(self) -> list[float]:
        """Round numbers: even steps over the bulk, then 1, 2, 5, 10, … beyond."""
        step = next(s for s in _rounds() if self.bend / s <= 6.0)
        inner = [k * step for k in range(1 + math.floor(self.bend / step + 1e-9))]
        outer = [x for x in _rounds() if 1.3 * self.bend < x <= self.right]
        return inner + outer[:: -(-len(outer) // 4) if outer else 1]

    def reaching(self, spikes: Sequence[float], density: Sequence[float]) -> SpectrumAxes:
        """The same with room for all spikes and for the density, if that has no pole at 0."""
        right = max([self.right, *(nice(1.1 * s) for s in spikes if s > self.right)])
        highest = max(density, default=0.0)
        top = nice(1.1 * highest) if highest < _POLE_FACTOR * self.top else self.top
        return replace(self, right=right, top=max(self.top, top))


def _rounds() -> list[float]:
    return [m * 10.0**k for k in range(-3, 8) for m in (1, 2, 5)]


def spectrum_axes(state: PageState) -> SpectrumAxes:
    """The axes of every step exponent up to 1/2, and of larger steps as needed."""
    from ..theory.limits import largest_mean, untrained_edge  # the engine, for workers only

    problem = state.problem
    edge = untrained_edge(problem)
    width = min(1.0, problem.n / problem.width) / edge
    bend, top = nice(_BEND_OVER_EDGE * edge), nice(1.1 * _MAX_OVER_MEAN_DENSITY * width)
    if problem.step_size == 0.0:
        return SpectrumAxes(bend, bend, top)
    scale = state.step_scale if state.step == "exponent" else 1.0
    largest = problem.replace(step_size=max(scale * problem.n**0.5, problem.step_size))
    furthest = math.hypot(largest_mean(largest), edge)
    return SpectrumAxes(bend, max(nice(1.2 * furthest), bend), top)
