"""A checked and costed spectrum: everything `simulated_spectrum` knows before it draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..checks import positive, whole_number
from ..errors import InvalidProblem
from ..problem import Problem
from .backend import Backend, make_backend
from .draw import check_sizes
from .experiment import Estimate, checked_rows, checked_seeds, refuse_one_step_variants
from .plan import Group, make_groups
from .setting import Setting
from .spectrum_cost import METHODS, Size, SpectrumCost, spectrum_cost
from .streams import checked_streams
from .variants import FeatureKey, Variant, feature_key, parse_variants

WEIGHTS, INITIAL_WEIGHTS = "weights", "initial_weights"
TRAINED = Variant("trained", "trained")


@dataclass(frozen=True)
class SpectrumPlan:
    """The arguments, checked, and how each variant will be run."""

    problem: Problem
    setting: Setting
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    streams: dict[str, int]
    backend: Backend
    top: int
    edges: dict[str, float]
    group: Group
    cost: SpectrumCost

    @property
    def estimate(self) -> Estimate:
        """Peak memory and flops, both at most."""
        return Estimate(self.cost.memory, len(self.seeds) * self.cost.flops, self.cost.rows)

    def key(self, variant: Variant) -> FeatureKey:
        """The features of a variant; those of `trained` for `weights`."""
        base = TRAINED if variant.name == WEIGHTS else variant
        return feature_key(base, _first_step(self.problem, self.setting), self.problem.noise_std)


def make_plan(
    problem: Problem,
    *,
    seeds: int | Iterable[int],
    variants: Iterable[str],
    setting: Setting | None,
    edge: float | Mapping[str, float] | None,
    top: int,
    method: str,
    max_memory: float | None,
    block_rows: int | None,
    dtype: str,
    device: str,
    streams: Mapping[str, int] | None,
) -> SpectrumPlan:
    """Check every argument, choose the routes, and fit them to the memory."""
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", "must be a Problem", problem)
    setting = Setting() if setting is None else setting
    if not isinstance(setting, Setting):
        raise InvalidProblem("setting", "must be a Setting", setting)
    if method not in METHODS:
        raise InvalidProblem("method", f"must be one of {', '.join(METHODS)}", method)
    parsed = parse_variants(variants, (WEIGHTS, INITIAL_WEIGHTS))
    refuse_one_step_variants(parsed, setting)
    check_sizes(problem, setting, 0)
    backend = make_backend(device, dtype)
    group = _group(problem, parsed, setting)
    sizes = {v.name: _size(problem, v, group) for v in parsed}
    cost = spectrum_cost(
        group,
        setting,
        sizes,
        method=method,
        itemsize=backend.itemsize,
        copies=1 if backend.name == "cpu" else 4,  # torch keeps the vectors and their workspace
        rows=None if block_rows is None else checked_rows(block_rows),
        max_memory=None if max_memory is None else int(positive("max_memory", max_memory)),
    )
    return SpectrumPlan(
        problem=problem,
        setting=setting,
        variants=parsed,
        seeds=checked_seeds(seeds),
        streams=checked_streams(streams),
        backend=backend,
        top=_checked_top(top, sizes),
        edges=_checked_edges(edge, parsed),
        group=group,
        cost=cost,
    )


def _group(problem: Problem, variants: tuple[Variant, ...], setting: Setting) -> Group:
    """The features asked for; trained weights come with trained features."""
    features = {v.name: v for v in variants if v.name not in (WEIGHTS, INITIAL_WEIGHTS)}
    if any(v.name == WEIGHTS for v in variants):
        features.setdefault(TRAINED.name, TRAINED)
    return make_groups([problem], tuple(features.values()), 1, setting)[0]


def _size(problem: Problem, variant: Variant, group: Group) -> Size:
    n, d, N = problem.n, problem.d, problem.width
    if variant.name == WEIGHTS:
        return Size(N, d, 0)
    if variant.name == INITIAL_WEIGHTS:
        return Size(N, d, 0, extra_weights=int(bool(group.moves) and not group.initial_needed))
    return Size(n, N, 2 * n * N * d)


def _first_step(problem: Problem, setting: Setting) -> float:
    """The step size that names a variant's features, as in `make_groups`."""
    return problem.eta * (setting.multiples[0] if len(setting.multiples) == 1 else 1.0)


def _checked_top(top: Any, sizes: Mapping[str, Size]) -> int:
    number = whole_number("top", top)
    name, size = min(sizes.items(), key=lambda item: item[1].side)
    if number > size.side:
        rule = f"must be <= {size.side}, the smaller side of {name} ({size.rows} × {size.columns})"
        raise InvalidProblem("top", rule, top)
    return number


def _checked_edges(edge: Any, variants: tuple[Variant, ...]) -> dict[str, float]:
    """The edge of each variant that has one: a number is meant for features."""
    names = [v.name for v in variants]
    if edge is None:
        return {}
    if not isinstance(edge, Mapping):
        number = positive("edge", edge)
        return {name: number for name in names if name not in (WEIGHTS, INITIAL_WEIGHTS)}
    for name, value in edge.items():
        if name not in names:
            raise InvalidProblem("edge", f"must name some of {', '.join(names)}", name)
        positive(f"edge[{name!r}]", value)
    return {name: float(value) for name, value in edge.items()}
