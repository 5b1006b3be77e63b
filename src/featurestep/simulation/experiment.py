"""A checked and costed experiment: everything `simulate` knows before it draws a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import positive, whole_number
from ..errors import InvalidProblem
from ..grid import Grid
from ..problem import Problem
from .backend import Backend, make_backend
from .cost import GroupCost, group_cost
from .draw import check_sizes
from .failures import gibibytes
from .plan import Group, default_test_size, make_groups
from .setting import Setting
from .streams import CHUNK, checked_seed, checked_streams
from .variants import Variant, parse_variants


@dataclass(frozen=True)
class Estimate:
    """What a simulation will take: the peak of its memory and its counted flops."""

    memory: int  # bytes, beyond what Python and its libraries hold before the run
    flops: int  # over all seeds
    block_rows: int  # the largest block in use

    def __str__(self) -> str:
        rows = f"blocks of {self.block_rows} rows"
        return f"{gibibytes(self.memory)} of memory, {self.flops:.3g} flops, {rows}"


@dataclass(frozen=True)
class Experiment:
    """Points, variants, seeds and how each group of points will be run."""

    problem: Problem | Grid
    problems: tuple[Problem, ...]
    setting: Setting
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    streams: dict[str, int]
    backend: Backend
    n_test: int
    groups: tuple[tuple[Group, GroupCost], ...]

    @property
    def estimate(self) -> Estimate:
        """Groups run one after the other: memory is their largest, flops their sum."""
        return Estimate(
            memory=max(cost.memory for _, cost in self.groups),
            flops=len(self.seeds) * sum(cost.flops for _, cost in self.groups),
            block_rows=max(cost.rows for _, cost in self.groups),
        )


def make_experiment(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int],
    n_test: int | None,
    variants: Iterable[str],
    setting: Setting | None,
    dtype: str,
    device: str,
    max_memory: float | None,
    block_rows: int | None,
    streams: Mapping[str, int] | None,
) -> Experiment:
    """Check every argument, form the groups, and fit them to the memory."""
    if not isinstance(problem, (Problem, Grid)):
        raise InvalidProblem("problem", "must be a Problem or a grid made by vary", problem)
    setting = Setting() if setting is None else setting
    if not isinstance(setting, Setting):
        raise InvalidProblem("setting", "must be a Setting", setting)
    parsed = parse_variants(variants)
    refuse_one_step_variants(parsed, setting)
    problems = tuple(problem) if isinstance(problem, Grid) else (problem,)
    count = default_test_size(problems) if n_test is None else whole_number("n_test", n_test)
    for each in problems:
        check_sizes(each, setting, count)
    backend = make_backend(device, dtype)
    limit = None if max_memory is None else int(positive("max_memory", max_memory))
    rows = None if block_rows is None else checked_rows(block_rows)
    groups = make_groups(problems, parsed, count, setting)
    itemsize = backend.itemsize
    costs = [group_cost(g, setting, itemsize=itemsize, rows=rows, max_memory=limit) for g in groups]
    return Experiment(
        problem=problem,
        problems=problems,
        setting=setting,
        variants=parsed,
        seeds=checked_seeds(seeds),
        streams=checked_streams(streams),
        backend=backend,
        n_test=count,
        groups=tuple(zip(groups, costs, strict=True)),
    )


def refuse_one_step_variants(variants: tuple[Variant, ...], setting: Setting) -> None:
    """Variants that describe one step are no answer to several."""
    if len(setting.multiples) == 1:
        return
    for variant in variants:
        if variant.degree or variant.base == "srf":
            rule = "describe one step (theory, section 2), not several, for spiked and srf features"
            raise InvalidProblem("variants", rule, variant.name)


def checked_seeds(seeds: Any) -> tuple[int, ...]:
    """The seeds behind a number or a list, or InvalidProblem."""
    if isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool):
        if seeds < 1:
            raise InvalidProblem("seeds", "must be a number >= 1 or a list of seeds", seeds)
        return tuple(range(int(seeds)))
    if isinstance(seeds, (str, bytes, bool)) or not isinstance(seeds, Iterable):
        raise InvalidProblem("seeds", "must be a number >= 1 or a list of seeds", seeds)
    listed = tuple(checked_seed("seeds", seed) for seed in seeds)
    if not listed or len(set(listed)) < len(listed):
        raise InvalidProblem("seeds", "must be distinct, and at least one", listed)
    return listed


def checked_rows(block_rows: Any) -> int:
    """Rounded up to whole chunks, in which rows are drawn."""
    return -(-whole_number("block_rows", block_rows) // CHUNK) * CHUNK
