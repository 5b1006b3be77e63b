"""A checked and costed spectrum: everything `simulated_spectrum` knows before it draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.borders import Border
from ...core.checks import one_of, whole_number
from ...core.errors import InvalidProblem
from ...core.extensions import ALL, require_known
from ...core.problem import Problem
from ..arguments import Draws, Resources, check_variants
from ..draws.draw import check_sizes
from ..network.experiment import Experiment
from ..network.plan import Group, make_groups
from ..network.variants import FeatureKey, Variant, feature_key
from .cost import METHODS, Size, SpectrumCost, spectrum_cost

KNOWN = ALL - {"loss", "intercept"}
OF_WEIGHTS = WEIGHTS, INITIAL_WEIGHTS = "weights", "initial_weights"
TRAINED = Variant("trained", "trained")


@dataclass(frozen=True)
class SpectrumPlan(Experiment):
    """An experiment on one problem: the step and its features, and how each spectrum is found."""

    problem: Problem
    cost: SpectrumCost  # of the one group; memory and flops are at most
    top: int
    borders: dict[str, Border]

    def batch(self, index: int) -> int:
        """One draw after the other."""
        return 1

    def key(self, variant: Variant) -> FeatureKey:
        """The features of a variant; those of `trained` for `weights`."""
        base = TRAINED if variant.name == WEIGHTS else variant
        return feature_key(base, self.problem)


def make_plan(
    problem: Problem,
    draws: Draws,
    resources: Resources,
    *,
    border: Border | Mapping[str, Border] | None,
    top: int,
    method: str,
) -> SpectrumPlan:
    """Check the other arguments, choose the routes, and fit them to the memory."""
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", "must be a Problem", problem)
    require_known(problem, "simulated_spectrum", KNOWN)
    one_of("method", method, METHODS)
    check_variants(problem, draws.variants)
    check_sizes(problem, draws.setting, 0)
    group = _group(problem, draws)
    sizes = {v.name: _size(problem, v, group) for v in draws.variants}
    number, borders = _checked_top(top, sizes), _checked_borders(border, draws.variants)
    cost = spectrum_cost(group, resources, sizes, method)
    return SpectrumPlan(
        problem=problem,
        problems=(problem,),
        draws=draws,
        resources=resources,
        n_test=1,
        groups=(cost,),
        cost=cost,
        top=number,
        borders=borders,
    )


def _group(problem: Problem, draws: Draws) -> Group:
    """The features asked for; trained weights come with trained features."""
    features = {v.name: v for v in draws.variants if v.name not in OF_WEIGHTS}
    if any(v.name == WEIGHTS for v in draws.variants):
        features.setdefault(TRAINED.name, TRAINED)
    return make_groups([problem], tuple(features.values()), 1, draws.setting)[0]


def _size(problem: Problem, variant: Variant, group: Group) -> Size:
    n, d, N = problem.n, problem.d, problem.width
    if variant.name == WEIGHTS:
        return Size(N, d, 0)
    if variant.name == INITIAL_WEIGHTS:
        return Size(N, d, 0, extra_weights=int(bool(group.moves) and not group.initial_needed))
    return Size(n, N, 2 * n * N * d)


def _checked_top(top: Any, sizes: Mapping[str, Size]) -> int:
    number = whole_number("top", top)
    name, size = min(sizes.items(), key=lambda item: item[1].side)
    if number > size.side:
        rule = f"must be <= {size.side}, the smaller side of {name} ({size.rows} × {size.columns})"
        raise InvalidProblem("top", rule, top)
    return number


def _checked_borders(border: Any, variants: tuple[Variant, ...]) -> dict[str, Border]:
    """The border of each variant that has one: one by itself is meant for features."""
    names = [v.name for v in variants]
    if border is None:
        return {}
    if not isinstance(border, Mapping):
        border = {name: border for name in names if name not in OF_WEIGHTS}
    for name, value in border.items():
        if name not in names:
            raise InvalidProblem("border", f"must name some of {', '.join(names)}", name)
        if not isinstance(value, Border):
            rule = "must be a Border, as spectrum(problem).border is"
            raise InvalidProblem("border", rule, value)
    return dict(border)
