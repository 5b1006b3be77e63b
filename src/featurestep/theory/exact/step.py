"""Constants of the step W = W0 + ηG for every group of neurons: (19)–(27), (38)–(43).

A row is one problem, or one value of the random offset of its initial output (41). All rows of a
batch share activation, target, residual, start, groups and the number of nodes of r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import FIELDS, Problem
from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity, coefficients, gaussian_panels
from ...functions.quadrature import Rule, gauss_hermite, normal_density, panels
from ...functions.targets import AlignedTarget
from ..labels import Noise, ResidualLaw, across_alignment, residual_law, typical_law
from ..resolution import FEWEST_INPUTS
from .inputs import (
    HIGHEST,
    Classes,
    InputMoments,
    Parts,
    SplitRows,
    beside_variance,
    coherent_norms,
    input_classes,
    input_moments,
    sample_radius,
    sees_direction,
    split_rows,
    splits_rows,
    step_classes,
    trace_polynomials,
    trace_products,
    without_first,
)
from .visible import (
    ConditionedLaw,
    Elsewhere,
    VisibleDirection,
    conditioned_law,
    visible_direction,
    visible_step,
)

OFFSETS = 7  # values of the initial output's random mean (41)
_SHORTEST = 1e-6


class SlopeMoments(NamedTuple):
    """Averages over z ~ N(0,1) of the activation's slope: ψ = σ′ − c_1, h = ψ − 2c_2z."""

    c0: float
    c1: float
    c2: float
    slope_variance: float  # E ψ² = Var σ′
    noise_variance: float  # v_h = E h²
    z2_psi: float  # E[z²ψ] = 6c_3
    z_psi2: float  # E[zψ²]
    psi3: float  # E ψ³
    nonlinear_products: tuple[float, float, float]  # E of [zψ]², [zψ][ψ²], [ψ²]², nonlinear parts
    own_output: float  # E[(σ − c_0 − c_1z)zψ]
    own_output_h2: float  # E[zψH_2]
    slope_cubic: float  # E[σ′(z³ − 2z)]
    slope2_h2: float  # E[σ′²H_2]
    slope_h3: float  # E[σ′H_3] = 24c_4
    psi2_h2: float  # E[ψ²H_2]

    @property
    def z_psi_h(self) -> float:
        """E[zψh] of (26b)."""
        return self.z_psi2 - 2.0 * self.c2 * self.z2_psi

    @property
    def psi2_h(self) -> float:
        """E[ψ²h] of (26b)."""
        return self.psi3 - 2.0 * self.c2 * self.z_psi2


class RowMoments(NamedTuple):
    """Averages over z of σ′(az) for initial weights of norm a."""

    mean: Any  # E σ′(az)
    slope: Any  # E[zσ′(az)]: 2c_2 at a = 1
    variance: Any  # Var σ′(az)


@lru_cache(maxsize=4096)
def row_moments(sigma: Nonlinearity, norm: float) -> RowMoments:
    """The moments of one activation at one norm of the initial weights."""
    s = slope_moments(sigma)
    if norm == 1.0:
        return RowMoments(s.c1, 2.0 * s.c2, s.slope_variance)
    # E σ^(k)(az), k = 1, 2: E σ′ and E[zσ′]/a; E σ′² by panels cut where σ′ jumps.
    means = sigma.derivative_means(np.array(norm), np.array(0.0), 2)
    inside = sigma.breaks(16.0) / norm
    edges = np.concatenate([np.linspace(-16.0, 16.0, 33), inside[np.abs(inside) < 16.0]])
    z, w = panels(np.unique(edges), 16)
    slope = sigma.derivative(norm * z)
    first = float(means[1])
    second = norm * float(means[2]) if s.c2 else 0.0
    return RowMoments(first, second, float((w * normal_density(z)) @ (slope - first) ** 2))


@lru_cache(maxsize=256)
def slope_moments(sigma: Nonlinearity) -> SlopeMoments:
    """The moments of one activation."""
    z, w = gaussian_panels(sigma)
    slope = sigma.derivative(z)
    c = coefficients(sigma, 3)
    c0, c1, c2 = (float(value) for value in c[:3])
    psi = slope - c1
    variance = sigma.slope_variance
    first, second = _nonlinear(z, w, z * psi), _nonlinear(z, w, psi**2)
    centred = sigma(z) - c0 - c1 * z
    return SlopeMoments(
        c0=c0,
        c1=c1,
        c2=c2,
        slope_variance=variance,
        noise_variance=max(variance - 4.0 * c2**2, 0.0),
        z2_psi=6.0 * float(c[3]),
        z_psi2=float(w @ (z * psi**2)),
        psi3=float(w @ psi**3),
        nonlinear_products=(
            float(w @ first**2),
            float(w @ (first * second)),
            float(w @ second**2),
        ),
        own_output=float(w @ (centred * z * psi)),
        own_output_h2=float(w @ (z * psi * (z**2 - 1.0))),
        slope_cubic=float(w @ (slope * (z**3 - 2.0 * z))),
        slope2_h2=float(w @ (slope**2 * (z**2 - 1.0))),
        slope_h3=float(w @ (slope * (z**3 - 3.0 * z))),
        psi2_h2=float(w @ (psi**2 * (z**2 - 1.0))),
    )


def _nonlinear(z: FloatArray, w: FloatArray, f: FloatArray) -> FloatArray:
    """f without its mean and its part linear in z: [f]_nl of (27)."""
    return np.asarray(f - w @ f - z * (w @ (z * f)))


@dataclass(frozen=True)
class ProblemRow:
    """One problem at one value ξ of its initial offset."""

    problem: Problem
    offset: float = 0.0
    share: float = 1.0


_STEP_FIELDS = attrgetter(*(name for name in FIELDS if name != "ridge"))


def step_key(problem: Problem) -> tuple[Any, ...]:
    """What the step, and what samples show of it, depend on: everything but the ridge."""
    found: tuple[Any, ...] = _STEP_FIELDS(problem)
    return found


def uses_initial_output(problem: Problem) -> bool:
    """True for the `full` residual; at step 0 the residual does not matter."""
    return problem.residual == "full" and problem.step_size > 0.0


def has_higher_degrees(problem: Problem) -> bool:
    """True if predictions of the problem know of functions of degree 2 and 3 (section 50)."""
    fresh = problem.shared_rows == 0 or problem.step_size == 0.0
    return problem.directions == 1 and fresh and problem.has_square_loss


def rows_of(problem: Problem, method: str = "exact") -> list[ProblemRow]:
    """The values of the initial offset whose weighted mean is the answer (eq. 41)."""
    centred = slope_moments(problem.sigma).c0 == 0.0
    if method == "isotropic" or centred or not uses_initial_output(problem):
        return [ProblemRow(problem)]
    xi, weight = gauss_hermite(OFFSETS)
    return [ProblemRow(problem, float(x), float(w)) for x, w in zip(xi, weight, strict=True)]


def powers(r: FloatArray, count: int) -> FloatArray:
    """r⁰ … r^(count − 1) of values (B, M), (B, count, M)."""
    found = np.ones((r.shape[0], count, r.shape[1]))
    np.cumprod(np.broadcast_to(r[:, None], found[:, 1:].shape), axis=1, out=found[:, 1:])
    return found


@dataclass(frozen=True)
class Step:
    """Arrays of B rows, K groups, M nodes of r and S special directions."""

    n: FloatArray  # (B,)
    d: FloatArray
    ridge: FloatArray
    noise: FloatArray  # σ_ε²
    phi: FloatArray  # φ0
    beta: FloatArray  # ‖β‖
    alignment: FloatArray  # γ
    across: FloatArray  # q
    output_slope: FloatArray  # c_1 for `full`, whose β contains −c_1W0ᵀa; 0 for `labels`
    neurons: FloatArray  # (B, K) N_g
    a: FloatArray  # g/√N
    e: FloatArray  # (19)
    k: FloatArray  # (19)
    delta: FloatArray  # (21)
    initial_factor: FloatArray  # 1 − eε_g (42): of the initial weights that stays
    norm: FloatArray  # ρ_g
    shift: FloatArray  # u_g − a_gf_1 (3), (43)
    norm_on_weights: FloatArray  # (B, K, 3) b^w of (26a), along β_1, β_2, β_3
    norm_on_noise: FloatArray  # (B, K, 3) φ0 e b^h of (26b)
    norm_variance: FloatArray  # (B, K) d·Var_g (27)
    sample_norm: FloatArray  # (B, K, K) s_gh, covariance over samples of xᵀK_gx/d and xᵀK_hx/d
    norm_slope: FloatArray  # (B, K) R′_g = dρ²/dω of (38)
    shift_slope: FloatArray  # (B, K) u′_g = du/dω of (38)
    r: FloatArray  # (B, M)
    r_weight: FloatArray  # (B, M)
    r_first: FloatArray  # (B, S, M)
    r_second: FloatArray  # (B, S, S, M)
    r_moments: FloatArray  # (B, 7)
    r_overlaps: FloatArray  # (B, S, 4)
    target: FloatArray  # (B, 4) c⋆_0 … c⋆_3 of a target of one direction
    is_full: bool
    is_gaussian: bool  # rows of W0 drawn from N(0, I/d), their norms a field Ω (39)
    is_isotropic: bool = False  # weights without structure beside β: theory/isotropic.py
    classes: Classes | None = None  # of coordinates, for inputs with a covariance
    is_radial: bool = False  # norms of samples and of rows are nodes and groups: section 51
    has_products: bool = False  # of classes: blocks of degree 2 for pairs of them, section 43
    visible: VisibleDirection | None = None  # of the inputs, conditioned on: section 44

    def take(self, rows: Any) -> Step:
        """The same for some of the rows."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        classes, visible = values.pop("classes"), values.pop("visible")
        flags = ("is_full", "is_gaussian", "is_isotropic", "is_radial", "has_products")
        taken = {n: v if n in flags else v[rows] for n, v in values.items()}
        return Step(
            **taken,
            classes=None if classes is None else classes.take(rows),
            visible=None if visible is None else visible.take(rows),
        )

    @cached_property
    def r_powers(self) -> FloatArray:
        """1, r, …, r⁶ at the nodes of r, (B, 7, M)."""
        return powers(self.r, 7)

    @cached_property
    def sample_coupling(self) -> tuple[FloatArray, FloatArray]:
        """rk and r²δ, the diagonals of N(r) in (22), (B, M, K)."""
        if self.visible is not None:
            return self.visible.cross, self.visible.own
        r = self.r[:, :, None]
        return r * self.k[:, None, :], r**2 * self.delta[:, None, :]

    @property
    def has_norm_nodes(self) -> bool:
        """True if nodes are those of κ with the norm of a sample: all with h = 1, then h = −1."""
        return self.is_radial or self.has_products

    @property
    def directions(self) -> int:
        """r, those of the target: `full` has the readout's start as one more special direction.

        Isotropic weights see targets of one direction only, and β itself as special.
        """
        return int(self.r_first.shape[1]) - int(self.is_full or self.is_isotropic)

    def __len__(self) -> int:
        return int(self.n.size)


def residual_noise(row: ProblemRow) -> Noise:
    """What the residual contains besides the target: label noise, initial output (section 17)."""
    problem = row.problem
    noise = 0.0 if problem.is_binary else problem.noise_std**2  # signs have it in their law
    if not uses_initial_output(problem):
        return Noise(noise)
    s = slope_moments(problem.sigma)
    output = problem.sigma.second_moment - s.c0**2
    radius = 2.0 * (s.c2 * problem.law.mean) ** 2 * problem.width / problem.d
    return Noise(noise + output + radius, -s.c0 * row.offset, s.c1)


class _InitialRows(NamedTuple):
    """Groups of neurons before the step, and what their rows of W0 are like."""

    g: FloatArray  # (K,)
    share: FloatArray  # (K,) of the neurons
    norm: FloatArray  # (B, K)
    length: FloatArray  # (B, K) of Σ^½w_j
    in_classes: SplitRows | None  # with classes of coordinates

    def repeated(self, count: int) -> _InitialRows:
        """The same groups so many times."""
        g, share, norm, length = (np.tile(part, count) for part in self[:4])
        in_classes = None if self.in_classes is None else self.in_classes.repeated(count)
        return _InitialRows(g, share, norm, length, in_classes)


class _StepSamples(NamedTuple):
    """What the step's samples are like."""

    phi: FloatArray  # (B,) φ0
    moments: FloatArray  # (B, 7) E r^j
    overlaps: FloatArray  # (B, S, 4) E[θ_s·x r^j]
    nodes: Sequence[ResidualLaw | ConditionedLaw]
    inputs: InputMoments  # without directions that are conditioned on

    @property
    def powers(self) -> FloatArray:
        """M_k of the inputs, (B, 7, 1)."""
        return self.inputs.powers[:, :, None]


class _Start(NamedTuple):
    """Problems before the step."""

    problems: Sequence[Problem]
    rows: _InitialRows
    samples: _StepSamples
    powers: FloatArray  # (B, 7) M_k of all inputs
    classes: Sequence[Parts | None]  # with the target's mass beside what is conditioned on
    visible: int  # how many classes are conditioned on
    given: ConditionedLaw | None  # the law of the samples along those
    is_radial: bool
    has_products: bool
    by_norm: bool


class _Learned(NamedTuple):
    """The learned direction β, (B,) each."""

    norm: FloatArray  # ‖β‖
    alignment: FloatArray  # γ
    across: FloatArray  # q
    output_slope: FloatArray  # c_1 for `full`


class _Moved(NamedTuple):
    """Groups of neurons after the step, (B, K) each."""

    share: FloatArray  # (K,) of the neurons
    a: FloatArray
    e: FloatArray
    k: FloatArray
    k_mean: FloatArray  # k m_1
    delta: FloatArray
    kept: FloatArray  # factor on the initial weights
    shift: FloatArray
    spread: FloatArray  # e²φ0b_2 Var σ′
    left: Any = 0.0  # of a squared shift, beside κ and s


def build_step(
    rows: Sequence[ProblemRow],
    groups: Rule,
    count: int,
    *,
    samples: float | None = None,
    higher: bool = False,
    by_norm: bool = False,
) -> Step:
    """Constants of rows that share all but numbers.

    `count` is the number of nodes for the law of r.

    With `samples` the nodes of r are those of a law cut off at what so many samples reach; moments
    stay those of the full law. With `higher` there are terms of degrees 2 and 3: the norm of a
    sample is left to the nodes (κ, h), and every group of Gaussian rows is cut in two, those of the
    long rows first; inputs with a covariance have products of two inputs instead. With `by_norm`
    groups of Gaussian rows are cut in two without terms of higher degrees.
    """
    start = _start(rows, groups, count, samples, higher=higher, by_norm=by_norm)
    problems, first, drawn = start.problems, start.problems[0], start.samples
    learned = _learned_direction(first, drawn)
    moved = _moved(start, learned)
    visible: VisibleDirection | None = None
    if start.given is not None:
        moved, visible = _moved_beside(start, start.given, moved, learned)
    norm, along = _norms(start.rows, moved, drawn)
    constants, coherent = _norm_constants(start, moved, learned, along)
    classes, sample_norm = _sample_norms(start, moved, coherent, norm)
    law = {name: np.stack([getattr(each, name) for each in drawn.nodes]) for name in _OF_LAW}
    return Step(
        n=_each(problems, "n"),
        d=_each(problems, "d"),
        ridge=_each(problems, "ridge"),
        noise=_each(problems, "noise_std") ** 2,
        phi=drawn.phi,
        beta=learned.norm,
        alignment=learned.alignment,
        across=learned.across,
        output_slope=learned.output_slope,
        neurons=_each(problems, "width")[:, None] * moved.share,
        **{name: getattr(moved, name) for name in ("a", "e", "k", "delta", "shift")},
        initial_factor=moved.kept,
        norm=norm,
        **constants,
        sample_norm=sample_norm,
        r=law["nodes"],
        r_weight=law["weight"],
        r_first=law["first"],
        r_second=law["second"],
        r_moments=drawn.moments,
        r_overlaps=drawn.overlaps,
        target=np.stack([_target_coefficients(problem.star) for problem in problems]),
        is_full=uses_initial_output(first),
        is_gaussian=first.initial == "gaussian" and not start.by_norm,
        classes=classes,
        is_radial=start.is_radial,
        has_products=start.has_products,
        visible=visible,
    )


_OF_LAW = ("nodes", "weight", "first", "second")


def _each(problems: Sequence[Problem], name: str) -> FloatArray:
    """A number of every problem, (B,)."""
    return np.array([float(getattr(problem, name)) for problem in problems])


def _start(
    rows: Sequence[ProblemRow],
    groups: Rule,
    count: int,
    samples: float | None,
    *,
    higher: bool,
    by_norm: bool,
) -> _Start:
    """Groups, samples and inputs before the step."""
    problems = [row.problem for row in rows]
    first, d = problems[0], _each(problems, "d")
    found = [input_classes(problem) for problem in problems]
    whole, powers = found[0], input_moments(found).powers
    radial = higher and whole is None
    by_norm = by_norm or radial
    visible = int(higher and sees_direction(first))
    # Rows of different norms are groups of their own. Affine: only W·x matters.
    split = (higher or by_norm) and slope_moments(first.sigma).slope_variance > 0.0
    split = split and (first.initial == "gaussian" if by_norm else splits_rows(first))
    before = _initial_rows(first, groups, d, found, split=split, by_norm=by_norm, visible=visible)
    seen = [(row.problem.star, residual_noise(row)) for row in rows]
    laws = [residual_law(*each, count) for each in seen]
    nodes: Sequence[ResidualLaw | ConditionedLaw] = laws
    if samples is not None:
        nodes = [
            typical_law(residual_law(*each, count, samples), law)
            for each, law in zip(seen, laws, strict=True)
        ]
    overlaps = np.stack([law.overlaps for law in laws])
    given: ConditionedLaw | None = None
    if visible and whole is not None:
        given = conditioned_law(first, whole)
        found, nodes, overlaps = [without_first(whole)], [given], given.overlaps[None]
        before = before.repeated(given.groups)
    phi, moments = d / _each(problems, "n_step"), np.stack([law.moments for law in laws])
    drawn = _StepSamples(phi, moments, overlaps, nodes, input_moments(found, visible))
    return _Start(
        problems,
        before,
        drawn,
        powers,
        found,
        visible,
        given,
        is_radial=radial,
        has_products=higher and not radial,
        by_norm=by_norm,
    )


def _initial_rows(
    problem: Problem,
    groups: Rule,
    d: FloatArray,
    found: Sequence[Parts | None],
    *,
    split: bool,
    by_norm: bool,
    visible: int,
) -> _InitialRows:
    """The groups of a rule; with `split` each is cut in two, by norms of the rows of W0."""
    (g, share), norm = groups, np.ones((d.size, groups[0].size))
    if split and by_norm:
        (g, share), norm = _split_by_norm(groups, d)
    elif split:
        g, share, norm = np.tile(g, 2), np.tile(0.5 * share, 2), np.tile(norm, 2)
    gaussian = problem.initial == "gaussian"
    in_classes = split_rows(found, d, g.size, split=split, gaussian=gaussian, first=visible)
    length = norm if in_classes is None else np.sqrt(in_classes.square)
    return _InitialRows(g, share, norm, length, in_classes)


def _learned_direction(problem: Problem, drawn: _StepSamples) -> _Learned:
    """β in the frame of (45): of the target's directions the first alone has an overlap with it."""
    lean = slope_moments(problem.sigma).c1 if uses_initial_output(problem) else 0.0
    slope, target = drawn.overlaps[:, 0, 1], drawn.inputs.target
    noise = drawn.phi * drawn.moments[:, 2] * drawn.inputs.powers[:, 2]
    beta = np.sqrt(slope**2 * target[:, 2] + lean**2 + noise)  # (1), (91)
    gamma = slope * target[:, 1] / beta
    return _Learned(beta, gamma, across_alignment(gamma), np.full(beta.size, lean))


def _moved(start: _Start, learned: _Learned) -> _Moved:
    """Shifts and covariances of the neurons' weights (eqs. 19, 21, 43, 92)."""
    problem, before, drawn = start.problems[0], start.rows, start.samples
    width, d = _each(start.problems, "width"), _each(start.problems, "d")
    a = before.g / np.sqrt(width)[:, None]
    e = _each(start.problems, "step_size")[:, None] * a
    own = _own_output(problem, a, width, d) if uses_initial_output(problem) else np.zeros_like(a)
    of_rows = _of_rows(problem.sigma, before.length)
    mean, square = drawn.moments[:, 1, None], drawn.moments[:, 2, None]
    k = of_rows.slope * e
    beside = np.maximum(of_rows.variance - of_rows.slope**2, 0.0)
    shift = of_rows.mean * e * learned.norm[:, None]
    return _Moved(
        share=before.share,
        a=a,
        e=e,
        k=k,
        k_mean=k * mean,
        delta=e**2 * drawn.phi[:, None] * beside,
        kept=before.norm - e * own,
        shift=shift - a * (learned.output_slope / learned.norm)[:, None],  # f_1
        spread=e**2 * drawn.phi[:, None] * square * of_rows.variance,
    )


def _moved_beside(
    start: _Start, given: ConditionedLaw, moved: _Moved, learned: _Learned
) -> tuple[_Moved, VisibleDirection]:
    """The same beside a direction that is conditioned on, and what neurons have along it."""
    inputs, before = start.samples.inputs, start.rows
    beta, gamma, q = (float(part[0]) for part in learned[:3])
    base = slice(0, before.g.size // given.groups)
    seen = visible_step(
        start.problems[0],
        given,
        Elsewhere(beta, gamma, q, inputs.powers[0], inputs.target[0]),
        moved.e[0, base],
        before.length[0, base],
    )
    moved = moved._replace(
        share=seen.share * moved.share,
        k=seen.slope[None],
        k_mean=seen.drift[None],
        spread=seen.spread[None],
        shift=seen.shift[None],
        left=seen.left,
    )
    return moved, visible_direction(given, seen)


def _norms(
    before: _InitialRows, moved: _Moved, drawn: _StepSamples
) -> tuple[FloatArray, FloatArray]:
    """ρ_g and Λ_g of (99), (B, K) each (eq. 93)."""
    m, k_mean = drawn.powers, moved.k_mean
    square, along = moved.kept**2, moved.kept * m[:, 2]
    if before.in_classes is not None:
        square, along = before.in_classes.square, before.in_classes.along
    growth = square + 2.0 * k_mean * along + k_mean**2 * m[:, 3] + moved.left
    norm = np.maximum(np.sqrt(growth + moved.spread * m[:, 2]), _SHORTEST)  # (4), (42)
    return norm, along + k_mean * m[:, 3]


def _norm_constants(
    start: _Start, moved: _Moved, learned: _Learned, along: FloatArray
) -> tuple[dict[str, Any], FloatArray]:
    """How norms and shifts of neurons vary (eqs. 25, 26a, 26b, 38, 100, 101).

    The fields of `Step` that say it, and R_g of (103).
    """
    s, drawn, e = slope_moments(start.problems[0].sigma), start.samples, moved.e
    m, phi = drawn.powers, drawn.phi[:, None]
    mean, square = drawn.moments[:, 1, None], drawn.moments[:, 2, None]
    linear, quadratic = 2.0 * e * along, e**2 * phi * m[:, 2]  # α, β̃
    zero = np.zeros_like(e)
    initial = 1.0 + s.slope_h3 * e * mean * along + 0.5 * quadratic * square * s.psi2_h2
    on_noise = np.stack([zero, linear * s.z_psi_h, quadratic * s.psi2_h], axis=2)
    variance = _norm_variance(s, linear, quadratic, moved.spread, drawn)
    beside = beside_variance(moved.kept, moved.k_mean, m)
    drift = moved.kept + moved.k_mean
    found = {
        "norm_on_weights": np.stack([linear * s.z2_psi, quadratic * s.z_psi2, zero], axis=2),
        "norm_on_noise": (phi * e)[:, :, None] * on_noise,
        "norm_variance": variance + 4.0 * moved.spread * beside,
        "norm_slope": drift * (1.0 + e * mean * s.slope_cubic)
        + quadratic * square * (0.5 * s.slope2_h2 - s.c1 * s.z2_psi),
        "shift_slope": 0.5 * s.z2_psi * e * learned.norm[:, None],
    }
    return found, coherent_norms(initial, moved.k_mean)


def _sample_norms(
    start: _Start, moved: _Moved, coherent: FloatArray, norm: FloatArray
) -> tuple[Classes | None, FloatArray]:
    """Classes of coordinates, and s_gh without what nodes of the samples' norms have, (B, K, K)."""
    drawn, gaussian = start.samples, start.problems[0].initial == "gaussian"
    factor = moved.kept if start.by_norm else np.ones_like(moved.k)
    averages = drawn.phi, drawn.moments, start.powers, drawn.inputs.powers
    polynomials = trace_polynomials(moved.k, moved.delta, *averages)
    found = _trace_products(factor, moved.k, moved.delta, *averages)
    if start.is_radial:  # the norm of a sample, which all groups share, is left to its nodes
        found = found - (norm[:, :, None] * norm[:, None, :]) ** 2
    classes = step_classes(
        start.classes,
        drawn.inputs,
        start.rows.in_classes,
        coherent,
        moved.spread,
        moved.k * drawn.moments[:, 1, None],
        polynomials,
        gaussian,
        start.visible,
    )
    if classes is not None:  # of groups with longer or shorter rows, to leading order in k
        found = found + classes.trace_change
    found = found * (2.0 / _each(start.problems, "d"))[:, None, None]
    if classes is not None and start.has_products:
        radius = sample_radius(found, norm)
        classes, shown = replace(classes, radius=radius), radius * norm**2
        found = found - shown[:, :, None] * shown[:, None, :]
    return classes, found


def _target_coefficients(star: Nonlinearity | AlignedTarget) -> FloatArray:
    """c⋆_0 … c⋆_3 of a target of one direction; zeros for several, which (151) leaves out."""
    return np.asarray(coefficients(star, 3)) if isinstance(star, Nonlinearity) else np.zeros(4)


def _split_by_norm(groups: Rule, d: FloatArray) -> tuple[Rule, FloatArray]:
    """Groups of Gaussian rows, each cut in two by the norm of its rows, and these norms (B, 2K).

    ‖w_j‖² = 1 + ω with ω = ±√(2/d) stands for its law, of (143).
    """
    g, share = groups
    omega = np.sqrt(2.0 / np.maximum(d, FEWEST_INPUTS))[:, None] * np.repeat([1.0, -1.0], g.size)
    split = np.tile(g, 2), np.tile(0.5 * share, 2)
    return split, np.sqrt(1.0 + omega)


def _of_rows(sigma: Nonlinearity, norms: FloatArray) -> RowMoments:
    """Moments of σ′(az) for the norms a of initial weights, (B, K) each (eq. 143)."""
    values, where = np.unique(norms, return_inverse=True)
    found = np.array([row_moments(sigma, float(value)) for value in values])  # (·, 3)
    return RowMoments(*found[where.reshape(norms.shape)].transpose(2, 0, 1))


def _own_output(problem: Problem, a: FloatArray, width: FloatArray, d: FloatArray) -> FloatArray:
    """ε_g, the effect of a neuron's own output in the residual (eq. 42)."""
    s = slope_moments(problem.sigma)
    radius = s.c2 * s.own_output_h2 * problem.law.mean * np.sqrt(width) / d
    return np.asarray(a * s.own_output + radius[:, None])


def _norm_variance(
    s: SlopeMoments,
    linear: FloatArray,
    quadratic: FloatArray,
    spread: FloatArray,
    drawn: _StepSamples,
) -> FloatArray:
    """d·Var_g: variance of a neuron's norm that is not linear in its weights (eqs. 27, 102).

    Without what initial weights and other samples add with a covariance.
    """
    one, mixed, two = s.nonlinear_products
    b = drawn.moments[:, :, None]
    samples = (
        linear**2 * b[:, 2] * one
        + 2.0 * linear * quadratic * b[:, 3] * mixed
        + quadratic**2 * b[:, 4] * two
    )
    return np.asarray(drawn.phi[:, None] * samples + 2.0 * spread**2 * drawn.powers[:, 4])


def sample_norm_of_radius(step: Step) -> FloatArray:
    """The part (2/d)(tr K_g/d)(tr K_h/d) of s_gh that ‖x‖² makes, (B, K, K).

    As s_gh it has 1 for the factor on the initial weights.
    """
    mean, square = step.r_moments[:, 1, None], step.r_moments[:, 2, None]
    second = step.phi[:, None] * square + mean**2
    trace = 1.0 + 2.0 * step.k * mean + step.k**2 * second + step.delta * square
    return np.asarray((2.0 / step.d)[:, None, None] * trace[:, :, None] * trace[:, None, :])


def bulk_products(step: Step) -> FloatArray:
    """tr(K_gK_h)/d, (B, K, K), for the law of r that the step's nodes stand for."""
    powers = step.r[:, None, :] ** np.arange(5)[:, None]
    moments = np.einsum("bjm,bm->bj", powers, step.r_weight)
    unit = np.ones((len(step), HIGHEST + 1))
    return _trace_products(step.initial_factor, step.k, step.delta, step.phi, moments, unit)


def _trace_products(
    factor: FloatArray,
    k: FloatArray,
    delta: FloatArray,
    phi: FloatArray,
    moments: FloatArray,
    powers: FloatArray,
    outer: FloatArray | None = None,
) -> FloatArray:
    """tr(K_gK_h)/d for K_g = (a_g + k_gS)² + δ_gS2 with the `factor` a on the initial weights."""
    scale = (factor[:, :, None] * factor[:, None, :]) ** 2
    return scale * trace_products(k / factor, delta / factor**2, phi, moments, powers, outer)
