"""The task that runs the real network: one unit for each point, variant and seed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ...core.checks import from_table, one_of, positive, whole_number, within
from ...core.errors import InvalidProblem
from ...core.extensions import ALL
from ...core.grid import Grid
from ...core.problem import Problem
from ...core.results import LOSS_QUANTITIES, QUANTITIES
from ...simulation import (
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
from .base import Part, Task, Unit, Values

Item = TypeVar("Item")
_PROBE = Problem(n=60, d=20, width=40, step_exponent=0.3, ridge=0.05, noise_std=0.1)
_PROBES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # changes of the problem, setting
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
        for name, (changes, setting) in _PROBES.items():
            problem = {name: _PROBE.replace(**changes)}
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
            run = simulate(_PROBE, seeds=1, n_test=64, device=device, drawn="device")
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
