"""`spectrum`: section 5 for one problem, or followed along a grid."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...errors import InconsistentSolution, NotConverged
from ...functions.hermite import coefficients
from ...problem import Problem
from ...threads import one_thread
from ...types import FloatArray
from ..batch import Batch
from ..exact.step import bulk_products
from .above import BLUR, blurred_interval
from .branch import Trail
from .bulk import bulk
from .continued import Equations
from .edges import Edge, right_edge
from .entries import entry_reach, sample_reach
from .fineness import FULL, Budget, Fineness
from .interval import Interval
from .law import MARGIN, Spectrum, Spike, carried_degrees
from .notes import spectrum_notes
from .outliers import Outlier, above
from .typical import STRAY, smooth_batch, typical_batch
from .weights_law import weight_spectrum

MASS_ERROR = 5e-4  # refused beyond it
MASS_NOTED = 1e-6
BLURRED_MASS_ERROR, BLURRED_MOMENT_ERROR = 1e-2, 2e-2  # of a bulk seen from above
FINEST = 4.0
_FURTHER = 0.02  # of the edge, that single samples must reach beyond to be told
_SOME = 0.002  # share of neurons or samples that is not to be cut off from the rest


@dataclass(frozen=True)
class Outlook:
    """The upper end of the bulk and what lies beyond it, without the bulk's density."""

    problem: Problem
    equations: Equations
    edge: Edge
    outliers: tuple[Outlier, ...]
    scale: float  # Tracy–Widom scale of the edge
    reach: float  # how far single large entries of F push eigenvalues, at least the edge

    @property
    def margin(self) -> float:
        """How far beyond the edge an eigenvalue must lie to count as a spike."""
        return max(MARGIN * self.scale, self.reach - self.edge.location)

    @cached_property
    def spikes(self) -> tuple[Spike, ...]:
        """The outliers with their degrees, largest first."""
        top = self.edge.location
        c_0 = float(coefficients(self.problem.sigma, 0)[0])
        degrees = carried_degrees([o.hermite for o in self.outliers], centred=abs(c_0) < 1e-9)
        return tuple(
            Spike(
                location=o.location,
                degree=degree,
                overlaps=tuple(map(float, o.hermite[1:])),
                constant_overlap=float(o.hermite[0]),
                power_overlaps=tuple(map(float, o.powers)),
                distance=o.location / top - 1.0,
                resolved=o.location > top + self.margin,
                kappa=o.kappa,
                function=o.function,
            )
            for o, degree in zip(self.outliers, degrees, strict=True)
        )


def outlook(
    problem: Problem,
    *,
    refine: float = 1.0,
    fineness: Fineness = FULL,
    near: Trail | None = None,
    smooth: int = 0,
    budget: Budget | None = None,
) -> Outlook:
    """Edge and spikes of one problem: what phase diagrams and critical steps need."""
    with one_thread(), np.errstate(all="ignore"):  # what does not converge is refused
        batch = typical_batch(problem, refine=refine, smooth=smooth)
        equations = Equations(batch, fineness, near, budget)
        edge = right_edge(equations)
        outliers = tuple(above(equations, edge))
        scale = edge_scale(equations, edge)
        reach = (
            entry_reach(problem, equations, edge)
            if batch.exact is None
            else sample_reach(problem, equations, edge)
        )
        return Outlook(problem, equations, edge, outliers, scale, reach)


def edge_scale(equations: Equations, edge: Edge) -> float:
    """(C N)^(−2/3) for a density (C/π)√(E − x) below the edge E: the scale of Tracy and Widom.

    Near the edge z − E = ½ z″(Y)(Y − Y_E)² and m is linear in Y, which gives C.
    """
    if edge.root is not None:
        return float((edge.root * equations.width) ** (-2.0 / 3.0))
    level = float(equations.level(edge.at)[0])
    sizes = (1e-3, 1e-2, 3e-2, 1e-4, 1e-5)
    steps = [size * level for size in sizes if size >= equations.fineness.seen]
    tries = itertools.product(steps, (edge.at, edge.path[-1]))
    for step, start in tries:
        ends = [equations.at_level(level + sign * step, start)[0] for sign in (-1.0, 1.0)]
        if not all(end.converged[0] for end in ends):
            continue
        bend = sum(float(end.z[0].real) - edge.location for end in ends) / step**2  # z″
        m = [float(equations.trace(end)[0].real) for end in ends]
        slope = (m[1] - m[0]) / (2.0 * step)
        root = abs(slope) * np.sqrt(2.0 / abs(bend))
        return float((root * equations.width) ** (-2.0 / 3.0))
    raise NotConverged("the density next to the edge of the bulk was not resolved")


def solve_spectrum(problem: Problem, *, refine: float = 1.0) -> Spectrum:
    """The whole spectrum of one problem."""
    with one_thread(), np.errstate(all="ignore"):
        return _solve(problem, refine * fineness_of_rules(smooth_batch(problem), FULL.rules))


def _solve(problem: Problem, refine: float) -> Spectrum:
    """At the fineness that is needed, or at another one where that loses a part of the bulk.

    A bulk of too many parts is seen from above instead, and the result says so.
    """
    failure: NotConverged | None = None
    budgets = {smooth: Budget(FULL.work) for smooth in range(len(STRAY))}  # spent, it fails
    for rules, smooth in _attempts(problem, refine):
        try:
            return _resolved(problem, rules, budgets[smooth], smooth=smooth)
        except NotConverged as error:
            failure = failure or error
    try:
        return _blurred(problem, min(refine, 1.0))
    except NotConverged as error:
        raise (failure or error) from None


def _attempts(problem: Problem, first: float) -> list[tuple[float, int]]:
    """How fine, and which rung of `typical_batch`: better without some variation than nothing."""
    batch = typical_batch(problem)
    if batch.exact is not None:
        return [(first, rung) for rung in range(len(STRAY))]
    varies = batch.felt is not batch.spread
    again = [(factor * first, int(varies)) for factor in (0.84, 1.19)]
    return [(first, 0), *([(first, 1)] if varies else []), *again]


def _resolved(problem: Problem, refine: float, budget: Budget, *, smooth: int) -> Spectrum:
    """With every interval of the bulk between its edges."""
    atom = atom_of(problem)
    view = outlook(problem, refine=refine, smooth=smooth, budget=budget)
    parts = bulk(view.equations, atom, view.edge)
    notes = [*notes_of(view, smooth=smooth), *_losses(atom, parts)]
    return _checked(_result(view, parts, atom, notes), MASS_ERROR, FULL.moment)


def _blurred(problem: Problem, refine: float) -> Spectrum:
    """With the bulk as one interval, seen from above the axis."""
    atom = atom_of(problem)
    view = outlook(problem, refine=refine)
    # Single samples make the outermost parts: with exact weights they are all in sight.
    top = view.edge.location if view.equations.batch.exact is None else view.reach
    part = blurred_interval(view.equations, top, atom)
    note = (
        "the bulk has too many parts to be resolved one by one: its density is blurred over "
        f"{BLUR:.1%} of its width, its lower end is approximate, and its mass with the atom is "
        f"{atom + part.mass:.4f}"
    )
    found = _result(view, (part,), atom, [*notes_of(view), note])
    return _checked(found, BLURRED_MASS_ERROR, BLURRED_MOMENT_ERROR)


def _result(view: Outlook, parts: tuple[Interval, ...], atom: float, notes: list[str]) -> Spectrum:
    problem, batch = view.problem, view.equations.batch
    mean, mean_square = exact_moments(batch)
    return Spectrum(
        problem=problem,
        intervals=parts,
        atom=atom,
        spikes=view.spikes,
        edge_scale=view.scale,
        entry_reach=view.reach,
        weights=weight_spectrum(batch),
        validity=(*spectrum_notes(problem), *notes),
        mean=mean,
        mean_square=mean_square,
    )


def _checked(found: Spectrum, mass_error: float, moment_error: float) -> Spectrum:
    """The result, if mass and second moment are what they must be."""
    gap = abs(found.moment(2) / found.mean_square - 1.0)
    if not (abs(found.mass - 1.0) <= mass_error and gap <= moment_error):
        raise InconsistentSolution(
            f"the bulk was not resolved: mass {found.mass:.8f} with its atom, second moment off "
            f"by {gap:.1g}",
            residual=max(abs(found.mass - 1.0), gap),
        )
    return found


def atom_of(problem: Problem) -> float:
    """Share of eigenvalues that are 0: features beyond the rank."""
    rank = min(problem.n, problem.width)
    if problem.sigma.slope_variance == 0.0:  # affine features have the rank of the inputs
        rank = min(rank, problem.d)
    return 1.0 - rank / problem.width


def fineness_of_rules(batch: Batch, least: float) -> float:
    """How fine the rules must be, `least` or more, for gaps not to open between their nodes.

    A group alone (or a node) would fill a bulk of relative width about 4√(N/n) or 4√(n/N): mean
    squares of neighbours have to differ by less.
    """
    power = batch.linear[0] ** 2 + batch.spread[0]  # (Q, K)
    share = batch.neurons[0] / batch.neurons.sum()
    ratio = float(batch.neurons.sum() / batch.n[0])
    width = 4.0 * np.sqrt(min(ratio, 1.0 / ratio))
    step = max(
        _largest_step(batch.weight @ power, share), _largest_step(power @ share, batch.weight)
    )
    return float(
        np.clip(2.0 ** (0.5 * np.ceil(2.0 * np.log2(step / (0.15 * width)))), least, FINEST)
    )


def _largest_step(values: FloatArray, share: FloatArray) -> float:
    """Largest ratio of neighbouring values that carry some weight, as a logarithm."""
    order = np.argsort(values)
    kept = np.log(values[order][share[order] > _SOME])
    return float(np.diff(kept).max(initial=1e-12))


def exact_moments(batch: Batch) -> tuple[float, float]:
    """First two moments of the bulk: (1/N) tr of FᵀF/n and of its square, means left out.

    With p_g = ρ_g²μ_g² + ν_g² and P_g = E p_g they are Σ π_g P_g and Σ π_g(P_g² + C_g),
    C_g = Σ_h N_h (E[p_g p_h]/n + ρ_g²ρ_h² E[μ_gμ_h]²/d): the 1/z expansion of (7)–(10). In a mean
    with p_h, p_g is what V̂2 sees of it and p_h what χ sees.
    """
    linear = batch.linear[0] ** 2  # (Q, K)
    seen, felt = linear + batch.spread[0], linear + batch.felt[0]
    weight, neurons = batch.weight, batch.neurons[0]
    size = weight @ felt
    rows = (felt.T * weight) @ seen / batch.n[0]
    columns = ((batch.linear[0].T * weight) @ batch.linear[0]) ** 2 / batch.d[0]
    if batch.exact is not None:  # tr K_gK_h/d in place of ρ_g²ρ_h²
        square = batch.norm[0] ** 2
        columns *= bulk_products(batch.exact.step)[0] / np.multiply.outer(square, square)
    share = neurons / neurons.sum()
    return float(share @ size), float(share @ (size**2 + (rows + columns) @ neurons))


def notes_of(view: Outlook, *, smooth: int = 0) -> list[str]:
    """What to say of edge and spikes."""
    notes = []
    near = [spike for spike in view.spikes if not spike.resolved]
    if near:
        notes.append(
            f"{len(near)} spike(s) within {MARGIN:g} Tracy–Widom scales of the edge: not resolved "
            "from the bulk at this size"
        )
    heavy = view.equations.largest_row / view.equations.size
    if heavy > 3.0:
        notes.append(
            f"heavy rows: a typical sample's most extreme row has {heavy:.3g} times the mean "
            "square of a feature, so single rows lie outside the bulk and its edge varies from "
            "draw to draw"
        )
    batch = view.equations.batch
    if batch.exact is not None:
        return [*notes, *_stray_notes(view, smooth=smooth)]
    if smooth:
        notes.append(
            "heavy-tailed activation: rows and columns vary by chance, which is left out because "
            "the bulk was not resolved with it; its edge is seen further out"
        )
    if batch.felt is not batch.spread:
        notes.append(
            "heavy-tailed activation: rows and columns vary by chance, which is included to first "
            f"order; single large entries may lie outside the bulk up to {view.reach:.4g}"
        )
    return notes


def _stray_notes(view: Outlook, *, smooth: int) -> list[str]:
    """What to say of single samples of the step."""
    notes = []
    if view.reach > view.edge.location * (1.0 + _FURTHER):
        notes.append(
            "large residuals of single samples stretch the weights: the bulk has no sharp edge, "
            f"and draws have singular values up to about {view.reach**0.5:.4g}"
        )
    if smooth:
        notes.append(
            "the law of the step's residual is cut off elsewhere than usual, because the bulk was "
            "not resolved with its tail: the edge is less certain"
        )
    return notes


def _losses(atom: float, parts: tuple[Interval, ...]) -> list[str]:
    """What to say of a bulk that is not quite resolved."""
    notes = []
    missing = abs(atom + sum(part.mass for part in parts) - 1.0)
    if missing > MASS_NOTED:
        notes.append(
            f"a share {missing:.1g} of the eigenvalues lies in islands beside the bulk that were "
            "not resolved"
        )
    worst = max((part.error for part in parts if np.isfinite(part.error)), default=0.0)
    if worst > 1e-6:
        notes.append(f"the density is resolved to {worst:.1g} of its largest value only")
    return notes
