"""A checked and costed spectrum: everything `simulated_spectrum` knows before it draws.

The route to each variant's singular values, dense or Krylov, is chosen by its work and memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.checks import one_of, whole_number
from ...core.display import gibibytes
from ...core.errors import InsufficientMemory, InvalidProblem
from ...core.problem import Problem
from ...core.results import ALL, require_known
from ...core.spiked import Border
from ..backend import EIGEN_FLOPS, Backend
from ..draw import check_sizes
from ..network.experiment import Draws, Experiment, check_variants
from ..network.plan import Group, GroupCost, Resources, Shape, make_groups
from ..network.step import FeatureKey, Variant, feature_key
from ..streams import CHUNK
from .krylov import PROBES, kept_piece, krylov_flops, likely_steps, most_steps
from .singular import gram_flops, reduction_flops

METHODS = ("auto", "dense", "krylov")
MAX_DENSE_SIDE = 6000  # up to here the dense route takes seconds, and it gives every eigenvalue
SLOW_FLOP_FACTOR = 3.0  # time of a flop of a reduction, or with few vectors, to a large product's
KEPT_BYTES = {"float64": 8, "float32": 4}
MIN_FUNCTIONS = 16  # at least as many as a left vector is compared with


@dataclass(frozen=True)
class Size:
    """A matrix whose spectrum is asked for."""

    rows: int
    columns: int
    feature_flops: int  # to compute it once; 0 for weights, which are in memory
    extra_weights: int = 0  # weight matrices beside those that every variant finds in memory

    @property
    def side(self) -> int:
        """The smaller side."""
        return min(self.rows, self.columns)


@dataclass(frozen=True)
class Route:
    """How a matrix's spectrum is found."""

    method: str  # dense or krylov
    keep: str | None  # krylov: the precision in which features are kept; None: not at all
    memory: int  # bytes beyond weights and row buffers
    flops: int  # at most, for one draw
    effort: float  # flops that are likely, slow ones counted as more

    def __str__(self) -> str:
        return self.method if self.keep is None else f"{self.method}, features kept in {self.keep}"


@dataclass(frozen=True, kw_only=True)
class SpectrumCost(GroupCost):
    """A group whose spectra are asked for: no readout is fitted."""

    routes: Mapping[str, Route]  # of all variants


def spectrum_cost(
    group: Group, resources: Resources, sizes: Mapping[str, Size], method: str
) -> SpectrumCost:
    """The preferred routes that fit the memory, or InsufficientMemory.

    The route is chosen with the smallest blocks; the blocks then grow into what memory is left.
    """
    most, told = resources.limit
    shape = Shape(group, resources.backend)
    routes: dict[str, Route] = {}

    def peak(block: int) -> int:
        return max(_peak(shape, block, sizes[name], route) for name, route in routes.items())

    for name, size in sizes.items():
        possible = _routes(size, method, resources.backend)
        peaks = [_peak(shape, CHUNK, size, route) for route in possible]
        if min(peaks) > most:
            raise InsufficientMemory(
                f"{name} needs at least {gibibytes(min(peaks))} (method {method}, "
                f"{shape.describe()}); {told} is {gibibytes(most)}"
            )
        pairs = zip(possible, peaks, strict=True)
        routes[name] = _best([route for route, needed in pairs if needed <= most], size)
    block = shape.default_rows() if resources.block_rows is None else resources.block_rows
    while block > CHUNK and peak(block) > most:
        block = max(CHUNK, block // 2 // CHUNK * CHUNK)
    flops = shape.step_flops() + sum(route.flops for route in routes.values())
    return SpectrumCost(
        group=group,
        rows=block,
        buffers=shape.buffers,
        flops=flops,
        memory=peak(block),
        routes=routes,
    )


def _peak(shape: Shape, block: int, size: Size, route: Route) -> int:
    """Of the step, or of one variant."""
    weight = shape.N * shape.d * shape.itemsize
    stepping = max(shape.step_bytes(), 2 * weight)  # β needs a gradient at any η
    inside = (shape.matrices + size.extra_weights) * weight + route.memory
    return shape.block_bytes(block) + max(stepping, inside) + shape.limits.workspace


def _best(fitting: list[Route], size: Size) -> Route:
    """Dense when it is small or takes less effort; else the first that fits."""
    dense = [route for route in fitting if route.method == "dense"]
    others = [route for route in fitting if route.method != "dense"]
    if dense and (not others or size.side <= MAX_DENSE_SIDE or dense[0].effort <= others[0].effort):
        return dense[0]
    return others[0]


def _routes(size: Size, method: str, backend: Backend) -> list[Route]:
    routes = []
    if method != "krylov":
        routes.append(_dense(size, backend))
    if method != "dense":
        kept = ("float64", "float32")[backend.itemsize == 4 :] if size.feature_flops else ()
        routes += [_krylov(size, keep, backend) for keep in (*kept, None)]
    return routes


def _dense(size: Size, backend: Backend) -> Route:
    gram, reduction = gram_flops(size.rows, size.columns), reduction_flops(size.side)
    copies = 1 if backend.name == "cpu" else 4  # torch keeps the vectors and their workspace
    held = size.side**2 * copies
    if size.rows < size.columns and size.feature_flops:
        held += size.rows * size.columns
    memory = held * backend.solver.itemsize + _functions(size)
    flops = size.feature_flops + gram + reduction
    on_cpu = backend.eigen_flops == EIGEN_FLOPS
    slow = SLOW_FLOP_FACTOR * reduction if on_cpu else backend.eigen_flops * size.side**3
    return Route("dense", None, memory, flops, size.feature_flops + gram + slow)


def _krylov(size: Size, keep: str | None, backend: Backend) -> Route:
    m = size.side
    basis = min((most_steps(m) + 1) * PROBES, m)
    memory = 8 * basis * m + 4 * 8 * basis * basis + _functions(size)  # T, a copy, Ritz vectors
    if keep is not None:
        memory += KEPT_BYTES[keep] * size.rows * size.columns + 8 * kept_piece(backend)
    sweeps = 1 if size.columns <= size.rows else 2

    def features(steps: int) -> int:
        """One pass for the overlaps, then one or two for each step and for the residuals."""
        return size.feature_flops * (1 + sweeps * (steps + 1) if keep is None else 1)

    flops = features(most_steps(m)) + krylov_flops(size.rows, size.columns, most_steps(m))
    likely = krylov_flops(size.rows, size.columns, likely_steps(m))
    return Route(
        "krylov", keep, memory, flops, features(likely_steps(m)) + SLOW_FLOP_FACTOR * likely
    )


def _functions(size: Size) -> int:
    """What left vectors are compared with, or its moments."""
    return 8 * MIN_FUNCTIONS * size.side


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
