"""What a sweep can compute: a class for each task.

A task says what to compute at every point, how its units travel, and what they depend on.
Predictions, limits, baselines and spectra are the theory's verbs, problem by problem; `simulate`
runs the real network, with one unit for each point, variant and seed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from ..core.checks import from_table, listed, one_of, positive, table, whole_number, within
from ..core.errors import InvalidProblem
from ..core.grid import Grid
from ..core.problem import Problem
from ..core.results import ALL, LOSS, LOSS_QUANTITIES, QUANTITIES, Result, require_known
from ..simulation import (
    ALIGNMENT,
    DTYPES,
    Move,
    Setting,
    check_sizes,
    check_variants,
    default_test_size,
    group_key,
    make_draws,
    parse_variants,
    refuse_moved,
    simulate,
)
from ..theory import (
    Baselines,
    Limit,
    LossBaselines,
    LossPrediction,
    Prediction,
    Spectrum,
    baselines,
    limit,
    spectrum,
)
from ..theory.limits import checked_degree
from ..theory.predict import solve
from ..theory.prediction import answered, answered_loss

Values = dict[str, Any]  # numbers, text or None by quantity


class Part(NamedTuple):
    """Which of a point's units: simulations have one for each variant and seed."""

    variant: str | None = None
    seed: int | None = None


class Unit(NamedTuple):
    """One result to have: the part of a task to do at a point, and the key it is stored under."""

    task: Task
    point: int
    problem: Problem
    part: Part
    description: str
    key: bytes


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """One kind of work. The fields of a subclass are its options in a sweep file."""

    name: ClassVar[str]
    batch: ClassVar[int]  # units of one job
    meanings: ClassVar[Mapping[str, str]]  # of its quantities
    known: ClassVar[Sequence[Collection[str]]] = ()  # fields it knows, see core.results
    loss_meanings: ClassVar[Mapping[str, str]] = {}  # with another loss than the square

    @property
    def probes(self) -> str:
        """The name of its probe problems; tasks of one name have the same."""
        return self.name

    @abstractmethod
    def answer_probes(self) -> Mapping[str, Values | Exception]:
        """Answers of small fixed problems, whatever the task's options (see `identity`).

        Together they should take a fraction of a second, and go through all code that decides
        numbers. Answers of probes that are added later are added to what a store knows.
        """

    @property
    def parts(self) -> Sequence[Part]:
        """The units of every point."""
        return (Part(),)

    def options(self, problem: Problem, part: Part) -> Mapping[str, Any]:
        """What a unit's result depends on besides its problem."""
        return {}

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the task can never do, before anything starts."""
        require_known(problem, f"the task {self.name}", *self.known)

    def bundles(self, units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
        """The units that travel together; it must not depend on who computes them."""
        for start in range(0, len(units), self.batch):
            yield units[start : start + self.batch]

    def compute_problems(self, problems: Mapping[str, Problem]) -> dict[str, Values | Exception]:
        """Results of the first part at some problems, for `answer_probes`.

        Problems that the task refuses always are left out.
        """
        units = {}
        for name, problem in problems.items():
            with suppress(InvalidProblem):
                self.check(problem)
                units[name] = Unit(self, 0, problem, self.parts[0], "", b"")
        return dict(zip(units, self.compute(list(units.values())), strict=True))

    @abstractmethod
    def compute(self, units: Sequence[Unit]) -> list[Values | Exception]:
        """A result, or the error that refuses it, for each unit of a bundle."""


Answering = Callable[[Problem], Result]
_OF_BULK = ("edge", "margin", "count")
_OF_SPIKES = ("location", "degree", "resolved")
_PROBE = {"n": 120, "d": 60, "width": 90, "step_exponent": 0.3, "ridge": 0.05}
_PROBES: dict[str, dict[str, Any]] = {  # what each changes
    "tanh": {},
    "relu": {"activation": "relu", "target": "H1 + 0.5*H2", "noise_std": 0.3},
    "rademacher": {"activation": "erf", "readout": "rademacher", "n": 60, "step_exponent": 0.46},
    "formula": {"activation": "abs(z-0.5)", "target": "sin(2*z)", "centre": True},
    "full residual": {"residual": "full", "initial": "gaussian"},
    "two directions": {"target": "z1*z2 + z1", "readout": "uniform"},
    "large": {"n": 4000, "n_step": 2000, "d": 1000, "width": 3000, "step_exponent": 0.1},
    "no step": {"step_exponent": None, "step_size": 0.0},
    "same rows": {"rows": "same"},
    "half of the rows": {"rows": "half", "initial": "gaussian", "readout": "rademacher"},
    "two steps": {"steps": 2},
    "covariance": {"covariance": [2.0, 1.0, 0.5], "target_direction": 1},
    "logistic": {"loss": "logistic", "intercept": True, "noise_std": 0.3, "flip": 0.1},
    "hinge": {"loss": "hinge", "target": "H0/2 + H1", "residual": "full", "noise_std": 0.3},
    "squared hinge": {"loss": "squared_hinge", "readout": "rademacher", "noise_std": 0.3},
    "huber": {"loss": "huber", "noise_std": 0.3},
}
_BOTH = (True, False)


class TheoryTask(Task):
    """A verb at every problem; what it raises is that unit's own affair."""

    batch = 20
    probed: ClassVar[Sequence[str]] = tuple(_PROBES)

    def answer_probes(self) -> Mapping[str, Values | Exception]:
        return self.compute_problems(probe_problems(self.probed))

    @abstractmethod
    def verb(self, problems: Sequence[Problem]) -> Answering:
        """What answers for each of some problems, which it is asked in this order."""

    def values(self, found: Any) -> Values:
        """The numbers as they are, lists of notes and of powers as text."""
        return {
            name: "; ".join(map(str, value)) if isinstance(value, list) else value
            for name, value in found.as_dict().items()
        }

    def compute(self, units: Sequence[Unit]) -> list[Values | Exception]:
        problems = [unit.problem for unit in units]
        answer = self.verb(problems)
        found: list[Values | Exception] = []
        for problem in problems:
            try:
                found.append(self.values(answer(problem)))
            except Exception as error:
                found.append(error)
        return found


def probe_problems(names: Sequence[str]) -> dict[str, Problem]:
    """Some of the theory's probe problems."""
    return {name: Problem(**{**_PROBE, **_PROBES[name]}) for name in names}


class Predict(TheoryTask):
    """Errors at finite n, solved in large batches."""

    name = "predict"
    batch = 1000
    known = (LOSS, {"steps"}, {"covariance"}, {"rows", "intercept"})
    meanings = Prediction.MEANINGS
    loss_meanings = LossPrediction.MEANINGS

    def verb(self, problems: Sequence[Problem]) -> Answering:
        kinds = {square: [p for p in problems if p.has_square_loss is square] for square in _BOTH}
        outcomes = {square: iter(solve(some)) for square, some in kinds.items()}

        def answer(problem: Problem) -> Result:
            outcome = next(outcomes[problem.has_square_loss])
            return answered(outcome) if problem.has_square_loss else answered_loss(outcome)

        return answer


@dataclass(frozen=True, kw_only=True)
class LimitTask(TheoryTask):
    """Errors as n → ∞."""

    name = "limit"
    meanings = Limit.MEANINGS
    degree: int | Literal["maximal"] | None = None
    norm_growth: bool = False

    def __post_init__(self) -> None:
        checked_degree(self.degree)
        if not isinstance(self.norm_growth, bool):
            raise InvalidProblem("norm_growth", "must be true or false", self.norm_growth)

    def answer_probes(self) -> Mapping[str, Values | Exception]:
        problems = probe_problems(self.probed)
        grown = LimitTask(norm_growth=True).compute_problems(problems)
        named = {f"{name}, with norm growth": found for name, found in grown.items()}
        return {**LimitTask().compute_problems(problems), **named}

    def options(self, problem: Problem, part: Part) -> Mapping[str, Any]:
        return vars(self)

    def verb(self, problems: Sequence[Problem]) -> Answering:
        return partial(limit, **vars(self))


class BaselinesTask(TheoryTask):
    """Test errors of simpler predictors."""

    name = "baselines"
    known = (LOSS, {"rows", "intercept"})
    probed = tuple(  # those of other losses take a second or two each
        name for name, changes in _PROBES.items() if changes.get("loss", "huber") == "huber"
    )
    meanings = Baselines.MEANINGS
    loss_meanings = LossBaselines.MEANINGS

    def verb(self, problems: Sequence[Problem]) -> Answering:
        return baselines


class SpectrumTask(TheoryTask):
    """The upper end: edge, number of resolved spikes, and some of every spike, largest first."""

    name = "spectrum"
    batch = 4
    known = ({"steps"}, {"rows"})
    probed = ("tanh", "rademacher")  # half a second each
    meanings: ClassVar[Mapping[str, str]] = {
        **{name: Spectrum.MEANINGS[name] for name in _OF_BULK},
        **{
            f"{name}_{rank}": f"{Spectrum.MEANINGS[name]} (number {rank})"
            for rank in range(1, 7)
            for name in _OF_SPIKES
        },
    }

    def verb(self, problems: Sequence[Problem]) -> Answering:
        return spectrum

    def values(self, found: Any) -> Values:
        values = {name: getattr(found, name) for name in _OF_BULK}
        for rank, spike in enumerate(found.spikes, start=1):
            values |= {f"{name}_{rank}": getattr(spike, name) for name in _OF_SPIKES}
        return values


Item = TypeVar("Item")
_NETWORK_PROBE = Problem(n=60, d=20, width=40, step_exponent=0.3, ridge=0.05, noise_std=0.1)
# Each with what it changes of the problem and of the setting.
_NETWORK_PROBES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tanh": ({}, {}),
    "relu": ({"activation": "relu", "readout": "rademacher", "n": 30}, {"inputs": "rademacher"}),
    "full residual": ({"residual": "full", "initial": "gaussian"}, {"inputs": "sphere"}),
    "two directions": ({"target": "z1*z2 + z1", "readout": "uniform"}, {"inputs": "uniform"}),
    "student_t": ({"n_step": 90}, {"inputs": "student_t(5)", "corrupted": 0.2}),
    "mixture": ({"activation": "abs(z-0.5)"}, {"inputs": "mixture(3, 1.5)"}),
    "logistic": ({"loss": "logistic", "intercept": True, "flip": 0.1}, {}),
    "squared hinge": ({"loss": "squared_hinge", "n": 30}, {}),
    "hinge": ({"loss": "hinge", "intercept": True}, {}),
    "huber": ({"loss": "huber"}, {}),
    "same rows": ({"rows": "same", "covariance": [2.0, 1.0, 0.5], "target_direction": 1}, {}),
    "two steps": ({"steps": 2, "batches": "same", "covariance": "power(1)"}, {}),
}
_PROBE_VARIANTS = ("trained", "initial", "spiked:1", "gaussian", "srf")
_FIRST_STORES: Mapping[str, Any] = {  # what is in the problem now, so that old keys hold
    "spectrum": None,
    "direction": None,
    "data": "fresh",
    "steps": (1.0,),
    "batches": "fresh",
}
MAX_STEP_SIZES = 8  # step sizes of one job: enough to share a draw, few enough to spread the work


class Points(Grid):
    """Problems one by one in the place of a grid."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.base = problems[0]
        self.axes = {"point": tuple(range(len(problems)))}
        self._problems = tuple(problems)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._problems)


@dataclass(frozen=True, kw_only=True)
class Simulate(Task):
    """The experiment itself; points of one draw travel together."""

    name: ClassVar[str] = "simulate"
    known: ClassVar[Sequence[Collection[str]]] = (ALL,)
    meanings: ClassVar[Mapping[str, str]] = {**QUANTITIES, **ALIGNMENT}
    loss_meanings: ClassVar[Mapping[str, str]] = {**LOSS_QUANTITIES, **ALIGNMENT}
    seeds: Any = 8
    variants: Sequence[str] = ("trained",)
    n_test: int | None = None
    dtype: str = "float64"
    device: str = "cpu"
    max_memory: float | None = None
    setting: Any = None

    def __post_init__(self) -> None:
        setting = _setting(self.setting)
        draws = make_draws(seeds=self.seeds, variants=self.variants, setting=setting)
        self._put("setting", setting)
        self._put("seeds", draws.seeds)
        self._put("variants", tuple(variant.name for variant in draws.variants))
        if self.n_test is not None:
            self._put("n_test", whole_number("n_test", self.n_test))
        one_of("dtype", self.dtype, DTYPES)
        one_of("device", self.device, ("cpu", "cuda", "torch"))
        if self.max_memory is not None:
            positive("max_memory", self.max_memory)

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def probes(self) -> str:
        return self.name if self.device == "cpu" else f"{self.name} on devices"

    def answer_probes(self) -> Mapping[str, Values | Exception]:
        answers: dict[str, Values | Exception] = {}
        for name, (changes, setting) in _NETWORK_PROBES.items():
            problem = {name: _NETWORK_PROBE.replace(**changes)}
            for variant in _PROBE_VARIANTS if name == "tanh" else ("trained",):
                task = Simulate(seeds=1, n_test=64, variants=(variant,), setting=setting)
                found = task.compute_problems(problem)
                answers |= {f"{name}, {variant}": answer for answer in found.values()}
        return answers if self.device == "cpu" else answers | _drawn_on_a_device()

    @property
    def parts(self) -> Sequence[Part]:
        return tuple(Part(variant, seed) for variant in self.variants for seed in self.seeds)

    def options(self, problem: Problem, part: Part) -> Mapping[str, Any]:
        setting = self.setting
        return {
            "variant": part.variant,
            "seed": part.seed,
            "n_test": self._tests(problem),
            "dtype": self.dtype,
            "device": self.device,
            "inputs": setting.inputs,
            "corrupted": float(setting.corrupted),
            **_FIRST_STORES,
        }

    def _tests(self, problem: Problem) -> int:
        """Of this problem alone: what else is in the grid must not change a unit."""
        return self.n_test or default_test_size([problem])

    def check(self, problem: Problem) -> None:
        super().check(problem)
        check_variants(problem, parse_variants(self.variants))
        with within("setting"):
            check_sizes(problem, self.setting, self._tests(problem))

    def bundles(self, units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
        draws: dict[Any, dict[Move, list[Unit]]] = {}
        for unit in units:
            p = unit.problem
            steps = draws.setdefault((unit.part.seed, self._tests(p), group_key(p)), {})
            steps.setdefault((p.step_sizes, p.noise_std), []).append(unit)
        for steps in draws.values():
            moves = list(steps.values())
            for start in range(0, len(moves), MAX_STEP_SIZES):
                yield [unit for move in moves[start : start + MAX_STEP_SIZES] for unit in move]

    def compute(self, units: Sequence[Unit]) -> list[Values | Exception]:
        points = _places(unit.problem for unit in units)
        variants = _places(str(unit.part.variant) for unit in units)
        run = simulate(
            Points(list(points)),
            seeds=[units[0].part.seed or 0],
            n_test=self._tests(units[0].problem),
            variants=list(variants),
            setting=self.setting,
            dtype=self.dtype,
            device=self.device,
            max_memory=self.max_memory,
        )
        found: list[Values | Exception] = []
        for problem, variant in ((unit.problem, str(unit.part.variant)) for unit in units):
            place = variants[variant], points[problem], 0
            values = {name: run.values[name][place] for name in run.quantities}
            if variant == "trained":
                values |= _alignment(run.values, points[problem], problem.steps)
            found.append(values)
        return found


def _drawn_on_a_device() -> dict[str, Values]:
    """The first probe with torch's random numbers, which are the same on a GPU and on the CPU.

    Nothing where torch is not installed, as where a store is only read.
    """
    for device in ("cuda", "torch"):
        with suppress(InvalidProblem):
            run = simulate(_NETWORK_PROBE, seeds=1, n_test=64, device=device, drawn="device")
            return {"drawn on a device": run.numbers}
    return {}


def _places(items: Iterable[Item]) -> dict[Item, int]:
    """The distinct items, each with its place among them."""
    return {item: place for place, item in enumerate(dict.fromkeys(items))}


def _alignment(arrays: Mapping[str, Any], point: int, count: int) -> dict[str, Any]:
    """After the step, or after each of several."""
    numbers = {}
    for name in ALIGNMENT:
        steps = arrays[name][point, 0, :count]
        for step, value in enumerate(steps, 1):
            numbers[name if len(steps) == 1 else f"{name}_{step}"] = value
    return numbers


def _setting(value: Any) -> Setting:
    """A setting that content can tell: no arrays, no functions."""
    given = {} if value is None else value
    if isinstance(given, Mapping):
        refuse_moved(given, "setting.")
    setting = given if isinstance(given, Setting) else from_table("setting", Setting, given)
    rule = (
        "must be a name in a sweep, or left out: an array or a function cannot be identified in "
        "the store"
    )
    for which in ("inputs", "teacher"):
        what = getattr(setting, which)
        if what is not None and not isinstance(what, str):
            raise InvalidProblem(f"setting.{which}", rule, what)
    return setting


TASKS: dict[str, type[Task]] = {
    kind.name: kind for kind in (Predict, LimitTask, BaselinesTask, SpectrumTask, Simulate)
}


def read_tasks(value: Any) -> tuple[Task, ...]:
    """The tasks of a file: a list of names, or a table of options for each."""
    if not isinstance(value, Mapping):
        names = [one_of("tasks", name, TASKS) for name in listed("tasks", value)]
        value = {name: {} for name in names}
        if len(value) < len(names):
            raise InvalidProblem("tasks", "must name each task once", names)
    tasks = table("tasks", value)
    if not tasks:
        raise InvalidProblem("tasks", f"must name some of {', '.join(TASKS)}", tasks)
    found = []
    for name, options in tasks.items():
        if name not in TASKS:
            raise InvalidProblem(f"tasks.{name}", f"is not a task ({', '.join(TASKS)})", options)
        found.append(from_table(f"tasks.{name}", TASKS[name], options))
    return tuple(found)
