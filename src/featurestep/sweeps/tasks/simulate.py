"""The task that runs the real network: one unit for each point, variant and seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ...core.checks import from_table, one_of, positive, whole_number, within
from ...core.errors import InvalidProblem
from ...core.grid import Grid
from ...core.problem import Problem
from ...core.results import QUANTITIES
from ...simulation import Setting, simulate
from ...simulation.arguments import make_draws
from ...simulation.arrays.backend import DTYPES
from ...simulation.draws.draw import check_sizes
from ...simulation.network.plan import default_test_size, group_key
from ...simulation.network.result import ALIGNMENT
from .base import Part, Task, Unit, Values

Item = TypeVar("Item")
MOST_STEPS = 8  # step sizes of one job: enough to share a draw, few enough to spread the work


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
    engine: ClassVar[str] = "simulation"
    meanings: ClassVar[Mapping[str, str]] = {**QUANTITIES, **ALIGNMENT}
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
            "spectrum": setting.spectrum,
            "direction": setting.direction,
            "corrupted": float(setting.corrupted),
            "data": setting.data,
            "steps": setting.multiples,
            "batches": setting.batches,
        }

    def _tests(self, problem: Problem) -> int:
        """Of this problem alone: what else is in the grid must not change a unit."""
        return self.n_test or default_test_size([problem])

    def check(self, problem: Problem) -> None:
        super().check(problem)
        with within("setting"):
            check_sizes(problem, self.setting, self._tests(problem))

    def bundles(self, units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
        draws: dict[Any, dict[tuple[float, float], list[Unit]]] = {}
        for unit in units:
            p = unit.problem
            steps = draws.setdefault((unit.part.seed, self._tests(p), group_key(p)), {})
            steps.setdefault((p.step_size, p.noise_std), []).append(unit)
        for steps in draws.values():
            moves = list(steps.values())
            for start in range(0, len(moves), MOST_STEPS):
                yield [unit for move in moves[start : start + MOST_STEPS] for unit in move]

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
            values = {name: run.values[name][place] for name in QUANTITIES}
            if variant == "trained":
                values |= _alignment(run.values, points[problem])
            found.append(values)
        return found


def _places(items: Iterable[Item]) -> dict[Item, int]:
    """The distinct items, each with its place among them."""
    return {item: place for place, item in enumerate(dict.fromkeys(items))}


def _alignment(arrays: Mapping[str, Any], point: int) -> dict[str, Any]:
    """After the step, or after each of several."""
    numbers = {}
    for name in ALIGNMENT:
        steps = arrays[name][point, 0]
        for step, value in enumerate(steps, 1):
            numbers[name if len(steps) == 1 else f"{name}_{step}"] = value
    return numbers


def _setting(value: Any) -> Setting:
    """A setting that content can tell: no arrays, no functions."""
    given = {} if value is None else value
    setting = given if isinstance(given, Setting) else from_table("setting", Setting, given)
    rule = "must be left out of a sweep unless it is a name: it has no content to tell it by"
    for which in ("inputs", "covariance", "teacher"):
        what = getattr(setting, which)
        if what is not None and not isinstance(what, str):
            raise InvalidProblem(f"setting.{which}", rule, what)
    return setting
