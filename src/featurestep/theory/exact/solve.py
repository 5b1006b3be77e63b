"""Sections 11–20 for a block of problems: the exact weights, and what they do at any κ."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Problem
from ...core.spiked import spiked_weights
from ...core.types import FloatArray, IntArray
from ...functions.nonlinearity import Nonlinearity
from ...functions.quadrature import Rule
from ...functions.targets import AlignedTarget, MeanSign
from ..isotropic import isotropic_step
from ..labels import Labels, across_alignment, labels_across
from ..prediction import Groups, LossPrediction, Outcome, Prediction, checked, checked_loss
from ..resolution import Effort, Mirrored, Resolution, Roughness, choose, finite_groups
from .columns import Columns, build_columns, build_labels
from .convex import Fitting, Sides, Unknowns, sides
from .convex_solver import ConvexSolution, Rules
from .convex_solver import solve as solve_losses
from .dyson import covariance, matmul
from .errors import Errors, fluctuations, solve_errors
from .fixed_point import Samples, Solution, solve
from .inputs import class_count, sees_direction, splits_rows
from .label_rules import FINE, Orders, label_rule
from .losses import LOSSES
from .products import MAX_CLASSES
from .regression import RegressionFit, fit, misfit
from .sectors import Forms
from .step import (
    ProblemRow,
    Step,
    build_step,
    has_higher_degrees,
    rows_of,
    step_key,
    uses_initial_output,
)
from .visible import VisibleDirection

BLOCK = 100_000  # rows × elements of T(r) of one batch, few enough for a cache
LOSS_ROWS, LOSS_BLOCK = 40, 4_000_000  # the same with any loss: points, and cells at most
R_NODES, MORE_R_NODES = 14, 36  # of the law of r, and where it has heavy tails
LOSS_R_NODES = 24  # where fields are fitted with another loss than the square
SEVERAL_R_NODES = {2: 24, 3: 36}  # where products of several directions make it less smooth
_FAR, _HEAVY = 8.0, 60.0  # a target that grows faster than a parabola, in units of its size


class BlockSolution(NamedTuple):
    """A batch of rows that share all but numbers, solved."""

    rows: Sequence[ProblemRow]
    groups: Rule
    step: Step
    solution: Solution
    fitted: RegressionFit
    errors: Errors
    labels: Labels


def r_nodes(problem: Problem) -> int:
    """Nodes of the law of r for errors below 1e-6: more for a target that grows fast."""
    star = problem.star
    if isinstance(star, MeanSign):
        return R_NODES if uses_initial_output(problem) else 2
    size = np.sqrt(star.second_moment + problem.noise_std**2)
    if _far_size(star) > _HEAVY * size:
        return MORE_R_NODES
    if isinstance(star, Nonlinearity) or star.is_single:
        return R_NODES
    return SEVERAL_R_NODES[star.directions]


@lru_cache(maxsize=256)
def _far_size(star: Nonlinearity | AlignedTarget) -> float:
    """The largest of a target far out, where an axis or a diagonal of its directions points to."""
    if isinstance(star, Nonlinearity):
        return float(np.abs(star(np.array([-_FAR, _FAR]))).max())
    signs = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=star.directions)))
    signs = signs[np.any(signs, axis=1)]
    return float(np.abs(star(_FAR * signs / np.sqrt((signs**2).sum(axis=1))[:, None])).max())


def block_size(
    resolution: Resolution, problem: Problem, method: str, *, any_loss: bool = False
) -> int:
    """How many problems to solve at once."""
    if method != "isotropic" and sees_direction(problem):
        return 1  # each has its own groups
    size, nodes = (
        Mirrored.of(resolution.group_rule(), problem.sigma).rule[0].size,
        resolution.sizes[1],
    )
    if method != "isotropic" and has_higher_degrees(problem):
        count = min(class_count(problem), MAX_CLASSES)
        pairs = count * (count + 1) // 2
        split = splits_rows(problem) if pairs else problem.initial == "gaussian"
        size, nodes = size * (1 + split), 2 * nodes + pairs * size
    cells = max(R_NODES * (2 * size) ** 2, 4 * size * nodes) * len(rows_of(problem, method))
    if any_loss:  # points start from solutions of others in their block
        return max(1, BLOCK // cells, min(LOSS_ROWS, LOSS_BLOCK // cells))
    return max(1, BLOCK // cells)


def step_of(
    rows: Sequence[ProblemRow], groups: Rule, count: int, method: str, higher: bool = True
) -> Step:
    """The step's constants by a method; `count` nodes of r for exact weights."""
    if method == "isotropic":
        return isotropic_step(rows, groups)
    problem = rows[0].problem
    higher = higher and has_higher_degrees(problem)
    return build_step(rows, groups, count, higher=higher, by_norm=problem.shared_rows > 0)


def solve_rows(
    rows: Sequence[ProblemRow],
    groups: Rule,
    nodes: Rule,
    count: int,
    *,
    method: str = "exact",
    slack: float = 1.0,
    higher: bool = True,
) -> BlockSolution:
    """Solve rows that share all but numbers: the way from (19) to (32).

    Without `higher` terms of higher degrees in n/d² and 1/d are left out (sections 50–53).
    """
    problem = rows[0].problem
    kappa, weight = nodes
    different, same = _steps_of(rows)
    step = step_of(different, groups, count, method, higher)
    x = None
    if step.visible is not None:
        weight = np.multiply.outer(step.visible.rule()[1], weight).ravel()
        kappa, x = _at_places(kappa, step.visible)
    columns = build_columns(problem.sigma, step, kappa, x)
    beside, known = None, None
    if step.is_radial:
        beside, known = labels_across(problem.sigma_star, step.alignment, kappa)
    labels = build_labels(problem.star, step, kappa, x, known)
    if len(different) < len(rows):
        ridge = np.array([row.problem.ridge for row in rows])
        step, columns = replace(step.take(same), ridge=ridge), columns.take(same)
        labels, beside = labels.take(same), None if beside is None else beside.take(same)
    if step.has_norm_nodes:
        kappa, weight = np.tile(kappa, 2), np.tile(0.5 * weight, 2)
    solution = solve(Samples(step, columns, kappa, weight), slack)
    at = solution.at
    found = covariance(step, at.state.xi, at.class_whole, at.average)
    fitted = fit(at, labels, found, beside)
    errors = solve_errors(at, found, fitted, slack)
    return BlockSolution(rows, groups, step, solution, fitted, errors, labels)


def _steps_of(rows: Sequence[ProblemRow]) -> tuple[list[ProblemRow], IntArray]:
    """Rows with different steps, and the place of every row among them."""
    places: dict[tuple[Any, ...], int] = {}
    different: list[ProblemRow] = []
    index = np.empty(len(rows), dtype=np.intp)
    for i, row in enumerate(rows):
        key = (*step_key(row.problem), row.offset)
        index[i] = place = places.setdefault(key, len(different))
        if place == len(different):
            different.append(row)
    return different, index


def _at_places(kappa_0: FloatArray, seen: VisibleDirection) -> tuple[FloatArray, FloatArray]:
    """κ and x beside a direction that is conditioned on, at all κ_0 for each h of (121).

    What all groups share of their shifts is along κ_0, which needs dense nodes; along h they differ
    by what neurons had before the step.
    """
    h, c = seen.rule()[0], float(seen.along[0])
    across = float(np.sqrt(1.0 - c**2))
    k, h = np.tile(kappa_0, h.size), np.repeat(h, kappa_0.size)
    return across * k - c * h, c * k + across * h


def solve_block(
    problems: Sequence[Problem], resolution: Resolution, method: str, *, higher: bool = True
) -> tuple[list[Outcome], Roughness]:
    """Outcomes of problems that share their rules, and how rough the solutions are on them."""
    groups, nodes = Mirrored.of(resolution.group_rule(), problems[0].sigma), resolution.node_rule()
    count = max(r_nodes(problem) for problem in problems)
    if count > 2:  # two values are exact
        count = round(resolution.residuals * resolution.residuals_by_reach * count)
    rows = [row for problem in problems for row in rows_of(problem, method)]
    slack = resolution.slack
    found = solve_rows(rows, groups.rule, nodes, count, method=method, slack=slack, higher=higher)
    state, size = found.solution.at.state, groups.rule[0].size
    rough = Roughness.of(state.chi, state.v2 / found.step.neurons, nodes[0], size)
    predictions = _predictions(found, groups, len(problems), method)
    outcomes = [checked(one, slack) for one in predictions]
    return outcomes, rough.of_problems(len(problems))


def solve_loss_block(
    problems: Sequence[Problem], resolution: Resolution
) -> tuple[list[Outcome], Roughness]:
    """The same for problems with any loss, which they share (sections 31–33)."""
    first = problems[0]
    groups = Mirrored.of(resolution.group_rule(), first.sigma)
    count = max(r_nodes(problem) for problem in problems)
    count = round(resolution.residuals * (count if count == 2 else max(count, LOSS_R_NODES)))
    rows = [row for problem in problems for row in rows_of(problem)]

    different, same = _steps_of(rows)
    own = build_step(different, groups.rule, count)

    def sample(step: Step, nodes: Rule) -> Samples:
        found = _samples(first, own, nodes)
        return replace(found, step=step, columns=found.columns.take(same))

    step = replace(own.take(same), ridge=np.array([row.problem.ridge for row in rows]))
    fitted = partial(_fitting, [row.problem for row in rows])
    found = solve_losses(Rules(resolution, sample, fitted, step))
    each = len(rows) // len(problems)
    parts = [slice(i, i + each) for i in range(0, len(rows), each)]
    outcomes = [
        checked_loss(_loss_prediction(found, step, groups, rows[part], part)) for part in parts
    ]
    return outcomes, found.roughness.of_problems(len(problems))


def _samples(problem: Problem, step: Step, nodes: Rule) -> Samples:
    """Columns of problems that share all but numbers, at nodes of κ."""
    kappa, weight = nodes
    return Samples(step, build_columns(problem.sigma, step, kappa), kappa, weight)


def _fitting(every: Sequence[Problem], samples: Samples, orders: Orders, rows: IntArray) -> Fitting:
    """Samples of some of many problems that share all but numbers, with labels and loss."""
    problems = [every[row] for row in rows.tolist()]
    stars = [problem.star for problem in problems if isinstance(problem.star, Nonlinearity)]
    return Fitting(
        samples,
        label_rule(stars, samples.step.alignment, samples.kappa, orders),
        LOSSES[problems[0].loss],
        bool(problems[0].intercept),
    )


def _loss_prediction(
    found: ConvexSolution,
    step: Step,
    groups: Mirrored,
    offsets: Sequence[ProblemRow],
    rows: slice,
) -> LossPrediction:
    """Losses and errors of one problem, the mean over its rows."""
    problem, part = offsets[0].problem, np.array([row.share for row in offsets])
    weights = spiked_weights(problem)
    measured = {name: float(part @ m[rows]) for name, m in found.measured._asdict().items()}
    unknowns = Unknowns(*(of[rows] for of in found.unknowns))
    square = float(part @ found.squares[rows])
    return LossPrediction(
        problem=problem,
        **measured,
        train_objective=measured["train_loss"] + 0.5 * problem.ridge * square,
        readout_norm=float(np.sqrt(max(square, 0.0))),
        intercept=float(part @ unknowns.intercept),
        alignment=weights.alignment,
        beta_norm=weights.beta_norm,
        groups=joined_groups(
            groups,
            step.neurons[rows][0],
            part @ step.shift[rows],
            part @ step.norm[rows],
            (part @ unknowns.coefficients).reshape(-1, step.k.shape[1]),
            1,
        ),
        method="exact",
        solver_residual=float(found.residual[rows].max()),
        iterations=int(found.iterations[rows].max()),
        self_check=float(found.self_check[rows].max()),
        nodes=int(found.nodes[rows].max()),
        network=LossNetwork(problem, part, step.take(rows), unknowns),
    )


class LossNetwork(NamedTuple):
    """A network fitted with any loss, at any κ, for each of R values of the initial offset."""

    problem: Problem
    share: FloatArray  # (R,) probabilities of the offsets
    step: Step
    unknowns: Unknowns  # with the intercept of columns that are not centred

    def _sides(self, nodes: Rule) -> Sides:
        """The law of the output at nodes of κ."""
        samples = _samples(self.problem, self.step, nodes)
        every = np.arange(len(self.step))
        fitting = _fitting([self.problem] * every.size, samples, FINE, every)
        labels = replace(fitting.labels, digits=None)  # as accurate at every κ
        return sides(replace(fitting, labels=labels, intercept=False), self.unknowns)

    def _at(self, kappa: FloatArray) -> Sides:
        return self._sides((kappa, np.full(kappa.size, 1.0 / max(kappa.size, 1))))

    def parts(self, kappa: FloatArray) -> FloatArray:
        """E[f|κ] and E[s f|κ]."""
        return np.asarray(np.tensordot(self.share, self._at(kappa).parts[:, :2], axes=1))

    def error(self, kappa: FloatArray) -> FloatArray:
        """The test error given κ: of signs, or squared."""
        at = self._at(kappa)
        found = at.fitting.loss.measured(at.fitting.labels, at.output)
        return np.asarray(self.share @ found.test_error)

    def moments(self, kappa: FloatArray) -> FloatArray:
        """Mean and standard deviation of the output given κ."""
        at = self._at(kappa)
        mean, linear, square = np.moveaxis(at.parts, 1, 0)  # (R, Q) each
        second = at.output.variance[..., 0] + linear**2 + 2.0 * square**2 + mean**2
        whole = self.share @ mean
        return np.stack([whole, np.sqrt(self.share @ second - whole**2)])

    def _at_nodes(self) -> Sides:
        """The same at nodes of averages over κ."""
        return self._sides(choose(self.problem, spiked_weights(self.problem), Effort()).node_rule())

    def offset_variance(self) -> float:
        """Variance over draws of the constant that a fit adds to all outputs, to order 1/n.

        E⟨g²⟩/n over (E⟨h⟩ + 1/nC)²: of an intercept C = ∞, of features with a mean E_κ m_g, which
        serve as one, C = Σ_g (E_κ m_g)² V2_g; 0 if there is neither.
        """
        at = self._at_nodes()
        n, weight = self.problem.n, at.fitting.samples.weight
        curvature, square = at.averages.h @ weight, at.averages.g_square @ weight  # (R,)
        if not self.problem.intercept:
            allowed = n * (at.fitting.means**2 * self.unknowns.v2).sum(axis=1)
            curvature = curvature + 1.0 / np.maximum(allowed, 1e-100)
        return float(self.share @ (square / curvature**2)) / n

    def errors_with(self, variance: float) -> FloatArray:
        """Test loss, test and training error if outputs vary by so much more than they do."""
        at = self._at_nodes()
        output = at.output._replace(variance=at.output.variance + variance)
        found = replace(at, output=output).measured
        errors = (found.test_loss, found.test_error, found.train_error)
        return np.array([self.share @ each for each in errors])

    def probability(self, output: FloatArray) -> FloatArray:
        """P(y = 1|output), by the law of κ, s and the label."""
        at = self._at_nodes()
        sd = np.sqrt(at.output.variance)  # (R, Q, 1)
        weight = at.fitting.labels.weight * at.fitting.samples.weight[:, None] / sd
        weight = weight * self.share[:, None, None]  # (2, R, Q, S)
        found = np.empty(output.size)
        for i, value in enumerate(output):
            exponent = -0.5 * ((value - at.output.mean) / sd) ** 2
            density = weight * np.exp(exponent - exponent.max())
            found[i] = density[1].sum() / density.sum()
        return found


def change_by_higher_degrees(problem: Problem) -> float:
    """Relative change of the test error by functions of degree 2 and 3, on as many fresh rows.

    Of the square loss without intercept, with signs in the place of a continuous readout law; nan
    where fresh rows are refused.
    """
    fresh = problem.replace(rows="fresh", loss="square", intercept=False)
    if finite_groups(fresh) is None:
        fresh = fresh.replace(readout="rademacher")
    resolution = choose(fresh, spiked_weights(fresh), Effort())
    (known,), _ = solve_block([fresh], resolution, "exact")
    (without,), _ = solve_block([fresh], resolution, "exact", higher=False)
    if not (isinstance(known, Prediction) and isinstance(without, Prediction)):
        return math.nan
    return known.test_error / without.test_error - 1.0


def _predictions(
    found: BlockSolution, groups: Mirrored, count: int, method: str
) -> Iterator[Prediction]:
    """Errors of `count` problems, means over rows, with the worst residual of any (eq. 14)."""
    step, errors, solution, fitted = found.step, found.errors, found.solution, found.fitted
    each = len(found.rows) // count
    weight, part = solution.at.samples.weight, np.array([row.share for row in found.rows[:each]])

    def by_problem(values: Any) -> Any:
        return values.reshape(count, each, *values.shape[1:])

    def mean(values: FloatArray) -> FloatArray:  # over the rows of every problem
        own = by_problem(values)
        return np.asarray((own * part.reshape(-1, *[1] * (own.ndim - 2))).sum(axis=1))

    test, mse = ((e * weight).sum(axis=1) for e in (errors.by_kappa, errors.train_by_kappa))
    squares = errors.readout_squares.sum(axis=1)
    check = np.abs((mse + step.ridge * squares) / fitted.train_loss - 1.0)
    spread = mean((test - np.repeat(mean(test), each)) ** 2)
    fields = mean(fitted.coefficients).reshape(count, -1, step.k.shape[1])
    shift, norm = step.shift, step.norm
    if step.visible is not None:
        neurons = step.neurons[0].reshape(-1, groups.rule[0].size)
        shift, norm = step.visible.along_kappa(shift, norm, neurons)
    joined = joined_groups(
        groups, by_problem(step.neurons)[:, 0], mean(shift), mean(norm), fields, step.directions
    )
    own = (joined.neurons, joined.shift, joined.norm, joined.use, joined.along, joined.across)
    numbers = zip(
        *(mean(x).tolist() for x in (test, fitted.train_loss, mse)),
        *(np.sqrt(x).tolist() for x in (mean(squares), spread)),
        *(by_problem(x).max(axis=1).tolist() for x in (solution.residual, check)),
        by_problem(solution.iterations).max(axis=1).tolist(),
        zip(*own, strict=True),
        strict=True,
    )
    for i, (error, loss, train, norm, sd, residual, gap, steps, parts) in enumerate(numbers):
        rows = slice(i * each, (i + 1) * each)
        offsets = found.rows[rows]
        weights = spiked_weights(offsets[0].problem)
        square = errors.square_gram
        yield Prediction(
            problem=offsets[0].problem,
            test_error=error,
            train_loss=loss,
            train_mse=train,
            readout_norm=norm,
            alignment=weights.alignment,
            beta_norm=weights.beta_norm,
            test_error_sd=sd,
            groups=Groups(joined.g, *parts),
            method=method,
            solver_residual=residual,
            iterations=steps,
            self_check=gap,
            nodes=int(weight.size),
            network=SolvedNetwork(
                offsets,
                found.groups,
                step.r.shape[1],
                method,
                fitted.coefficients[rows],
                errors.readout_squares[rows],
                errors.grams.take(rows),
                None if square is None else square[rows],
                step.is_radial or step.has_products,
            ),
        )


def joined_groups(
    groups: Mirrored,
    neurons: FloatArray,
    shift: FloatArray,
    norm: FloatArray,
    fields: FloatArray,
    directions: int,
) -> Groups:
    """Groups by g: one of long and one of short initial rows belong to the same.

    For N_g, u_g and ρ_g (…, K) and fields (…, f, K) of one problem or of several.

    Of a group of |g| those of g and −g have their share; it is the sum of readouts and the shift
    that change their sign.
    """
    size = groups.rule[0].size
    halves, place, share = neurons.shape[-1] // size, groups.place, groups.share

    def joined(values: FloatArray) -> FloatArray:
        parts = values.reshape(*values.shape[:-1], halves, size).sum(axis=-2)
        return np.asarray(parts[..., place])

    fields = joined(fields) * share
    last = 2 if directions == 1 else slice(2, 2 + directions)
    return Groups(
        g=groups.g,
        neurons=joined(neurons) * share,
        shift=groups.sign * joined(shift) / halves,
        norm=joined(norm) / halves,
        use=groups.sign * fields[..., 0, :],
        along=fields[..., 1, :],
        across=fields[..., last, :],
    )


class SolvedNetwork(NamedTuple):
    """What a solved network computes at any κ, for each value of the initial offset (R of them)."""

    rows: Sequence[ProblemRow]
    groups: Rule
    r_nodes: int
    method: str
    coefficients: FloatArray  # (R, F) of the fields A, τ, ψ_1 … ψ_r, Δ …, K of each
    readout_squares: FloatArray  # (R, K) P_g
    grams: Forms  # Q_gh, and the same for blocks of higher degrees
    square_gram: FloatArray | None = None  # (R, K, K) the same for s_2
    higher: bool = False

    def parts(self, kappa: FloatArray) -> FloatArray:
        """E[f|κ] and E[s_i f|κ]."""
        at = self._at(kappa)
        plain = matmul(at.columns.plain, self.coefficients[:, :, None])[:, :, 0]
        linear = matmul(at.columns.linear, self.coefficients[:, None, :, None])[..., 0]
        found = np.concatenate([(at.share @ plain)[None], np.tensordot(at.share, linear, axes=1)])
        if at.on_place is not None and at.on_rest is not None:  # s is made of x and of s beside it
            found[1] = at.on_place * found[0] + at.on_rest * found[1]
        return at.mean(found)

    def error(self, kappa: FloatArray) -> FloatArray:
        """E[(y − f)²|κ], the misfit and the variance v of the output (eq. 13)."""
        at = self._at(kappa)
        labels = build_labels(self.rows[0].problem.star, at.step, at.kappa, at.x)
        missed = misfit(at.columns, labels, at.step.sample_norm, self.coefficients)
        varied = fluctuations(at.columns, self.grams, self.readout_squares, self.square_gram)
        return at.mean(at.share @ (missed + varied))

    def _at(self, kappa: FloatArray) -> _AtKappa:
        """The step and its columns at κ, or at places x of a direction given κ (eq. 121)."""
        problem = self.rows[0].problem
        step = step_of(self.rows, self.groups, self.r_nodes, self.method, self.higher)
        share = np.array([row.share for row in self.rows])
        seen = step.visible
        if seen is None:
            columns = build_columns(problem.sigma, step, kappa)
            return _AtKappa(step, columns, share, kappa.size, kappa)
        weight = seen.rule()[1]
        beside, x = _at_places(kappa, seen)
        at = np.tile(kappa, weight.size)
        weights = spiked_weights(problem)
        gamma = weights.alignment
        q, rest = across_alignment(np.array(gamma)), float(seen.rest[0])
        place = rest * step.alignment[0] * beside + seen.target[0] * x
        return _AtKappa(
            step,
            build_columns(problem.sigma, step, beside, x),
            share,
            kappa.size,
            beside,
            np.tile(0.5 * weight, 2),
            x,
            np.tile((place - gamma * at) / q, 2),
            rest * float(step.across[0]) / float(q),
        )


class _AtKappa(NamedTuple):
    """Columns at Q places κ, or at all of them for each norm of a sample or each place x."""

    step: Step
    columns: Columns
    share: FloatArray  # (R,) probabilities of the initial offsets
    places: int  # Q
    kappa: FloatArray  # beside x, where there is one
    weight: FloatArray | None = None  # (X,) of places given κ; all norms are alike
    x: FloatArray | None = None
    on_place: FloatArray | None = None  # s of the whole target, as a function of x
    on_rest: float | None = None  # and of s beside it

    def mean(self, values: FloatArray) -> FloatArray:
        """Means over norms or places, (…, Q)."""
        parts = values.reshape(*values.shape[:-1], -1, self.places)
        if self.weight is None:
            return np.asarray(parts.mean(axis=-2))
        return np.asarray(np.einsum("x,...xq->...q", self.weight, parts))
