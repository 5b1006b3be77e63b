"""The fixed point (7), (8), (22), (23) of one problem at complex λ = −z, by Newton's method.

Off the real axis, and on it outside the bulk, the solution is unique and analytic in z; on the
bulk the physical one is the limit from above, with Im V2 > 0. Newton's method has no safeguard
here as it has for λ > 0: a solution is followed from z where it is known, in small steps.

Outside the bulk the solution is real, and Y = E[χ/(1+χ)], the effective ratio, increases with z.
z itself turns back at an edge; with Y prescribed, and z among the unknowns, Newton's method does
not notice (`at_ratio`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import NotConverged
from ...core.types import FloatArray
from ..exact.dyson import Blocks, averaged, t_matrix_determinant, t_matrix_without_readout
from ..exact.fixed_point import Evaluation, Samples, State, evaluate
from .newton import newton_and_ridge, newton_step, ridge_response

ComplexArray = npt.NDArray[Any]  # complex, or real where a problem's arrays are passed on
TOLERANCE = 1e-12  # residual below which rounding may stop Newton's method, times 1000
# Residual at places that are only passed through, and how often a step to them is halved.
_PASSING, _CAREFUL = (1e-3, 2), (1e-8, 6)  # the latter where the way was lost
_DESCENT = 2.6  # factor of the height above the real axis from step to step
_MAX_ITERATIONS, _PATIENCE = 60, 10  # the latter without a lower residual
# Work of one evaluation with Newton's step, in µs: measured for 1 to 12 groups.
_CALL_COST = {False: 300.0, True: 500.0}  # without and with sectors
_PLACE_COST = 10.0, 0.05, 1e-4  # times 1, n² and n³ for n unknowns


@dataclass(frozen=True)
class Accuracy:
    """Where each of the searches may stop; the defaults are those of `spectrum`."""

    rules: float = 1.0  # least number of nodes of κ, 1 in full
    r_nodes: int = 40  # of the law of r: its tail shows in the spectrum
    spike_groups: float = 0.6  # on the number of groups of a continuous law, for its spikes
    residual: float = 1e-12  # of the equations, at places that count
    accepted: float = 1e-9  # where rounding or an edge stops Newton's method before that
    first_nodes: int = 8  # that an interval of the bulk begins with
    most_nodes: int = 768
    depth: int = 8  # how often intervals are divided where gaps are found; smoothed beyond
    density: float = 1e-6  # estimated error of the density, largest value 1
    moment: float = 1e-2  # gap of the second moment beyond which the bulk counts as not resolved
    mass: float = 5e-4  # the same for the mass
    edge: float = 1e-9  # relative change of Y; that of the edge itself is its square
    spike: float = 1e-11  # relative change of √(z/E − 1), for a spike z beyond the edge E
    newton: int = 25  # steps along the real axis, at most
    last_height: float = 1e-6  # over the place, of the last solution above the bulk
    work: float = 2.8e6  # at most for edge and bulk, in µs
    smoothing_work: float = 5.5e6  # at most for a smoothed bulk after that

    @property
    def difference(self) -> float:
        """A relative step whose second difference is not that of residuals."""
        return float(10.0 * self.residual**0.5)


FULL = Accuracy()
DRAFT = Accuracy(
    rules=0.5,
    r_nodes=14,
    spike_groups=0.36,
    residual=1e-6,
    accepted=1e-5,
    most_nodes=64,
    depth=0,
    density=1e-4,
    moment=5e-2,
    mass=3e-3,
    edge=5e-3,
    spike=1e-5,
    newton=9,
    last_height=0.03,
    work=1e6,
    smoothing_work=1e6,
)


@dataclass(frozen=True)
class Branch:
    """Solutions at B places z."""

    z: ComplexArray  # (B,)
    state: State
    residual: FloatArray  # (B,)
    accepted: float = FULL.accepted  # residual of a solution

    @property
    def v2(self) -> ComplexArray:
        """V2, (B, K)."""
        return self.state.v2

    @property
    def chi(self) -> ComplexArray:
        """χ, (B, Q)."""
        return self.state.chi

    @property
    def converged(self) -> npt.NDArray[np.bool_]:
        """Which places reached the accepted residual."""
        return np.asarray(self.residual <= self.accepted)

    def take(self, rows: Any) -> Branch:
        """Some of the places."""
        return Branch(self.z[rows], self.state.take(rows), self.residual[rows], self.accepted)

    def require_converged(self, otherwise: str) -> Branch:
        """The same if every place is a solution; NotConverged says what went wrong if not."""
        if not np.all(self.converged):
            raise NotConverged(otherwise, residual=float(self.residual.max()))
        return self

    def scaled_to(self, z: ComplexArray) -> Branch:
        """A guess for solutions at z: V2 falls like 1/z."""
        return replace(self, state=replace(self.state, v2=self.v2 * (self.z / z)[:, None]))

    def real(self) -> Branch:
        """Without the imaginary parts, as complex numbers."""
        arrays: tuple[ComplexArray, ...] = (self.z, self.v2, self.chi, self.state.xi)
        z, *state = (_complex(array.real) for array in arrays)
        return replace(self, z=z, state=State(*state))

    def replaced(self, rows: Any, others: Branch) -> Branch:
        """With other solutions at some of the places."""
        old = (self.z, self.v2, self.chi, self.state.xi, self.residual)
        new = (others.z, others.v2, others.chi, others.state.xi, others.residual)
        arrays = [array.copy() for array in old]
        for array, part in zip(arrays, new, strict=True):
            array[rows] = part
        z, *state, residual = arrays
        return replace(self, z=z, state=State(*state), residual=residual)


def joined(parts: Sequence[Branch]) -> Branch:
    """One branch of all places, from the highest to the lowest."""
    z, v2, chi, xi, residual = (
        np.concatenate(arrays)
        for arrays in zip(
            *((part.z, part.v2, part.chi, part.state.xi, part.residual) for part in parts),
            strict=True,
        )
    )
    whole = Branch(z, State(v2, chi, xi), residual, max(part.accepted for part in parts))
    return whole.take(np.argsort(-whole.z.real, kind="stable"))


@dataclass(frozen=True)
class OnPath:
    """A real solution as a point of the path in Y = E[χ/(1+χ)], along which z turns at edges."""

    branch: Branch  # one place
    level: float  # Y
    slope: float  # dz/dY; NaN where there is no solution
    change: State  # d/dz of log V2, χ and Ξ
    signs: FloatArray  # of every V2, 1 + χ and det(I − N(r)Γ): an edge lies between others

    @property
    def z(self) -> float:
        """The place."""
        return float(self.branch.z[0].real)

    @cached_property
    def smooth(self) -> tuple[FloatArray, FloatArray]:
        """Numbers that are smooth and bounded along the path, and their slopes with Y.

        zY, zV2, 1/(1+χ) and Ξ, from z = ∞, where Y and V2 fall like 1/z, to z = 0.
        """
        z, slope, change = self.z, self.slope, self.change
        v2, xi, shrink = self.branch.v2.real, self.branch.state.xi.real, self._shrink
        values = [np.array([z * self.level]), z * v2.ravel(), shrink.ravel(), xi.ravel()]
        slopes = [
            np.array([z + self.level * slope]),
            slope * (v2 * (1.0 + z * change.v2.real)).ravel(),
            slope * (-(shrink**2) * change.chi.real).ravel(),
            slope * change.xi.real.ravel(),
        ]
        return np.concatenate(values), np.concatenate(slopes)

    @property
    def _shrink(self) -> FloatArray:
        return np.asarray(1.0 / (1.0 + self.branch.chi.real))

    def with_smooth(self, level: float, values: FloatArray) -> Branch | None:
        """A guess from the numbers of `smooth` at another Y; None on another side of an edge."""
        groups, size = self.branch.v2.shape[1], self.branch.state.xi.shape[1]
        z, scaled, shrink, xi = (values[0] / level), *np.split(values[1:], [groups, -(size**2)])
        v2 = scaled / z
        is_near = np.all(v2 * self.branch.v2[0].real > 0.0) and np.all(shrink * self._shrink > 0.0)
        if not (is_near and np.isfinite(values).all()):
            return None
        state = State(v2[None], (1.0 / shrink - 1.0)[None], xi.reshape(1, size, size))
        complex_state = State(*(_complex(a) for a in (state.v2, state.chi, state.xi)))
        return replace(self.branch, z=np.array([z + 0j]), state=complex_state)


_LEAST_DISTANCE = 0.1  # of two known points, over that to the place that is predicted from them


def predicted(known: Sequence[OnPath], level: float) -> Branch:
    """A guess at another Y: by the cubic of two points that are known with their slopes.

    By the tangent at the nearest where another is too near to it.
    """
    nearest, *others = sorted(known, key=lambda each: abs(each.level - level))
    distance = level - nearest.level
    values, slopes = nearest.smooth
    found = values + distance * slopes
    for other in others:
        step = other.level - nearest.level
        if abs(step) > _LEAST_DISTANCE * abs(distance):
            t, (there, there_slopes) = distance / step, other.smooth
            bend = there - values - step * slopes
            further = step * (there_slopes - slopes)
            found = found + t**2 * (3.0 * bend - further + t * (further - 2.0 * bend))
            break
    guess = nearest.with_smooth(level, found)
    return nearest.branch if guess is None else guess


class Equations:
    """The fixed point of one problem as a function of z."""

    def __init__(self, samples: Samples, accuracy: Accuracy = FULL, *, varies: bool = False):
        self.samples, self.accuracy, self.varies = samples, accuracy, varies
        self.weight = samples.weight
        step, size = samples.step, samples.step.k.shape[1]
        self.n, self.d = float(step.n[0]), float(step.d[0])
        self.width = float(step.neurons.sum())
        columns = samples.columns
        self._power = columns.power(step.norm)[0]  # (Q, K)
        rows = self._power @ step.neurons[0] / self.width
        self.size, self.largest_row = float(samples.weight @ rows), float(rows.max())
        self.work_left = accuracy.work
        sectors, pairs = len(columns.sectors), size * (size + 1) // 2
        bulk = size * (2 * size + 1) if np.any(step.k) else pairs
        unknowns = (1 + sectors) * pairs + bulk + size
        fixed, square, cube = _PLACE_COST
        self._call_cost = _CALL_COST[sectors > 0]
        self._place_cost = fixed + square * unknowns**2 + cube * unknowns**3
        self._free_xi = averaged(
            step.r_weight, t_matrix_without_readout(step)
        )  # Ξ at Ṽ = 0, where T is explicit

    @property
    def stretch(self) -> float:
        """How far a step's largest residual may stretch a weight, beyond what is usual, squared."""
        step = self.samples.step
        largest = np.abs(step.r).max() * (1.0 + np.sqrt(step.phi[0])) ** 2
        longest = (step.initial_factor + np.abs(step.k) * largest) ** 2 + step.delta * largest**2
        return float((longest / step.norm**2).max())

    def trace(self, branch: Branch) -> ComplexArray:
        """m(z) = (1/N) tr(FᵀF/n − z)⁻¹ (eq. 16).

        For N > n from the trace over samples, −E[1/(1+χ)]/z: the same, but where rows and columns
        vary by chance only this one has exactly N − n eigenvalues at 0.
        """
        if not self.varies or self.width <= self.n:
            return np.asarray((self.n / self.width) * branch.v2.sum(axis=1))
        over_samples = (1.0 / (1.0 + branch.chi)) @ self.weight
        return np.asarray(-(self.width - self.n + self.n * over_samples) / (self.width * branch.z))

    def trace_slope(self, branch: Branch) -> ComplexArray:
        """dm/dz."""
        slope = self.slope(branch)
        if not self.varies or self.width <= self.n:
            return np.asarray((self.n / self.width) * (branch.v2 * slope.v2).sum(axis=1))
        change = (slope.chi / (1.0 + branch.chi) ** 2) @ self.weight
        return np.asarray((self.n / self.width * change - self.trace(branch)) / branch.z)

    def evaluate(self, branch: Branch) -> Any:
        """The equations at these places, solved or not."""
        self.work_left -= self.cost(branch.z.size)
        if self.work_left < 0.0:
            raise NotConverged(
                "the bulk was not resolved within the work allowed: it has too many parts"
            )
        return self.evaluated(branch)

    # What follows is all that depends on the number of steps.

    def evaluated(self, branch: Branch) -> Any:
        """An `Evaluation`: its state, residual and 1/(1+χ) are all that this module reads."""
        state, z = branch.state, branch.z
        if _is_real(branch):
            state, z = State(state.v2.real, state.chi.real, state.xi.real), z.real
        return evaluate(self.samples, state, -z)

    def newton_step(self, found: Any) -> State:
        """Newton's step at fixed z: relative changes of V2, changes of χ and Ξ."""
        return newton_step(found)

    def ridge_response(self, found: Any) -> State:
        """d/dz of log V2, χ and Ξ at a solution."""
        return ridge_response(found)

    def newton_and_ridge(self, found: Any) -> tuple[State, State]:
        """Newton's step, and d/dz in the same equations, solved or not."""
        return newton_and_ridge(found)

    def taken(self, found: Any, rows: Any) -> Any:
        """The evaluation at some of its places."""
        return _taken(found, rows)

    def own_determinants(self, found: Any) -> FloatArray:
        """det(I − NΓ) of (22) at the nodes of r, at a real place: poles of T lie in the bulk."""
        return np.asarray(t_matrix_determinant(self.samples.step, found.blocks.coupled.real)[0])

    def sample_determinants(self, found: Any, r: FloatArray) -> FloatArray:
        """det(I − N(r)Γ) of (22) for samples of the step with residuals r, at a real place."""
        every = replace(self.samples.step, r=r[None])
        return t_matrix_determinant(every, found.blocks.coupled.real)

    def cost(self, places: int) -> float:
        """Work of one step of Newton's method at some places, in µs."""
        return float(self._call_cost + places * self._place_cost)

    def far(self, z: ComplexArray) -> Branch:
        """The solution for |z| beyond the spectrum, to leading order."""
        z = np.atleast_1d(np.asarray(z, dtype=np.complex128))
        v2 = -self.samples.step.neurons / (self.n * z[:, None])
        xi = _complex(np.repeat(self._free_xi, z.size, axis=0))
        residual = np.full(z.size, np.inf)
        return Branch(z, State(v2, v2 @ self._power.T, xi), residual, self.accuracy.accepted)

    def at(self, z: ComplexArray, start: Branch, tolerance: float | None = None) -> Branch:
        """The solution at z, by Newton's method from nearby solutions."""
        tolerance = self.accuracy.residual if tolerance is None else tolerance
        z = np.atleast_1d(np.asarray(z, dtype=np.complex128))
        v2, chi, xi = (
            _complex(np.broadcast_to(a, (z.size, *a.shape[1:])))
            for a in (start.v2, start.chi, start.state.xi)
        )
        residual, lowest = np.full(z.size, np.inf), np.full(z.size, np.inf)
        active, lowest_at = np.arange(z.size), np.zeros(z.size)
        for iteration in range(_MAX_ITERATIONS):
            state = State(v2[active], chi[active], xi[active])
            with np.errstate(all="ignore"):
                found = self.evaluate(Branch(z[active], state, residual[active]))
            before, residual[active] = residual[active], found.residual
            going = ~(found.residual < tolerance)
            going &= ~((found.residual < 1e3 * TOLERANCE) & (found.residual > 0.3 * before))
            lower = active[found.residual < lowest[active]]
            lowest[lower], lowest_at[lower] = residual[lower], iteration
            going &= np.isfinite(found.residual) & (iteration - lowest_at[active] < _PATIENCE)
            if not np.any(going):
                break
            if not np.all(going):
                active, state, found = active[going], state.take(going), self.taken(found, going)
            step = self.newton_step(found)
            factor = damping(step)
            v2[active] = state.v2 * (1.0 + factor * step.v2)
            chi[active] = state.chi + factor * step.chi
            xi[active] = state.xi + factor[:, :, None] * step.xi
        return Branch(z, State(v2, chi, xi), residual, self.accuracy.accepted)

    def slope(self, branch: Branch) -> State:
        """d/dz of log V2, χ and Ξ."""
        return self.ridge_response(self.evaluate(branch))

    def on_real_axis(self, x: FloatArray) -> Branch:
        """The physical solution on the real axis, continued down from the upper half-plane."""
        x = np.asarray(x, dtype=np.float64)
        height = self.accuracy.last_height * x
        above = self.above_real_axis(x + 1j * height, _PASSING[0])
        return self._follow(x.astype(np.complex128), above, tolerance=self.accuracy.residual)

    def above_real_axis(
        self, z: ComplexArray, tolerance: float, *, careful: bool = False
    ) -> Branch:
        """The physical solution at places in the upper half-plane, from high above them.

        Every place is reached by equal factors of its height, of about `_DESCENT`; where the way
        is lost, again with smaller residuals at the places between.
        """
        passing, depth = _CAREFUL if careful else _PASSING
        high = 4.0 * max(self.size, float(np.abs(z.real).max(initial=0.0)))
        steps = np.ceil(np.log(high / z.imag) / np.log(_DESCENT)).clip(1.0)
        known = [self.at(z.real + 1j * high, self.far(z.real + 1j * high))]
        lost = np.zeros(z.size, dtype=bool)
        for done in np.arange(1.0, steps.max(initial=0.0) + 1.0):
            rows = np.flatnonzero((steps >= done) & (careful | ~lost))
            if rows.size == 0:
                break
            place = z.real[rows] + 1j * high * (z.imag[rows] / high) ** (done / steps[rows])
            near = [branch.take(rows) for branch in known]
            guess = _next_of(near) if len(near) == 3 else None
            found = self._follow(place, near[-1], guess, tolerance=passing, depth=depth)
            lost[rows] |= self._is_lost(near[-1], found, passing)
            known = [*known[-2:], known[-1].replaced(rows, found)]
        found = self.at(z, known[-1], tolerance)
        if np.any(lost) and not careful:
            again = self.above_real_axis(z[lost], tolerance, careful=True)
            found = found.replaced(lost, again)
        return found

    def _is_lost(self, start: Branch, found: Branch, tolerance: float) -> npt.NDArray[np.bool_]:
        """Which places were not reached on the physical solution."""
        missed = ~(found.residual <= max(tolerance, self.accuracy.accepted))
        return np.asarray(missed | ~_is_above(found) | _has_jumped(start, found))

    def _follow(
        self,
        z: ComplexArray,
        start: Branch,
        guess: Branch | None = None,
        *,
        tolerance: float,
        depth: int = 6,
    ) -> Branch:
        """Go to z, by a guess or along the tangent; where that is too far, by halves."""
        found = self.at(z, self._extrapolated(z, start) if guess is None else guess, tolerance)
        wrong = self._is_lost(start, found, tolerance)
        if not np.any(wrong) or depth == 0:
            return found
        rows = np.flatnonzero(wrong)
        near = start.take(rows)
        middle = near.z.real + 1j * _halfway(near.z.imag, z[rows].imag)
        near = self._follow(middle, near, tolerance=tolerance, depth=depth - 1)
        again = self._follow(z[rows], near, tolerance=tolerance, depth=depth - 1)
        return found.replaced(rows, again)

    def _extrapolated(self, z: ComplexArray, start: Branch) -> Branch:
        """The tangent at known solutions, followed to z; V2 by no more than 0.7 of itself."""
        slope, step = self.slope(start), (z - start.z)[:, None]
        near = np.abs(slope.v2 * step).max(axis=1) < 0.7
        step = np.where(near[:, None], step, 0.0)
        state, change = start.state, [np.nan_to_num(a) for a in (slope.v2, slope.chi, slope.xi)]
        moved = State(
            state.v2 * (1.0 + change[0] * step),
            state.chi + change[1] * step,
            state.xi + change[2] * step[:, :, None],
        )
        return replace(start, state=moved)

    def ratio(self, branch: Branch) -> float:
        """The effective ratio Y = E[χ/(1+χ)] at one place: the share of a label that is fitted."""
        return float(((branch.chi / (1.0 + branch.chi)).real @ self.weight)[0])

    def on_path(self, branch: Branch) -> OnPath:
        """A real solution, for one place, as a point of the path in Y."""
        return self._on_path(branch, self.evaluate(branch))

    def _on_path(self, branch: Branch, found: Any) -> OnPath:
        change = self.ridge_response(found)
        rise = float(self._ratio_change(found, change)[0].real)
        slope = 1.0 / rise if np.isfinite(rise) else 0.0  # exactly at an edge
        parts = branch.v2[0].real, 1.0 + branch.chi[0].real, self.own_determinants(found)
        signs = np.sign(np.concatenate(parts))
        return OnPath(branch, self.ratio(branch), slope, change, signs)

    def _ratio_change(self, found: Any, change: State) -> ComplexArray:
        """Change of Y."""
        return np.asarray((change.chi * found.shrink**2) @ self.weight)

    def at_ratio(self, ratio: float, *known: OnPath) -> OnPath:
        """The real solution with Y = `ratio`, for one place, from those that are known.

        In Y the solution goes smoothly through an edge of the bulk, where dz/dY = 0.
        """
        branch, residual, accuracy = predicted(known, ratio), np.inf, self.accuracy
        lowest, lowest_at = np.inf, 0
        for iteration in range(accuracy.newton):
            with np.errstate(all="ignore"):
                found = self.evaluate(branch)
            gap = ratio - self.ratio(branch)
            before, residual = residual, max(float(found.residual[0]), abs(gap / ratio))
            settled = residual < 1e3 * TOLERANCE and residual > 0.3 * before
            if residual < lowest:
                lowest, lowest_at = residual, iteration
            is_stuck = not np.isfinite(residual) or iteration - lowest_at >= _PATIENCE
            if residual < accuracy.residual or settled or is_stuck:
                break
            branch = self._bordered_step(branch, found, gap)
        else:
            found = self.evaluate(branch)
        branch = replace(branch, residual=np.array([residual]), accepted=accuracy.accepted)
        if not branch.converged[0]:
            return OnPath(branch, ratio, np.nan, branch.state, np.zeros(0))
        return self._on_path(branch, found)

    def _bordered_step(self, branch: Branch, found: Any, gap: float) -> Branch:
        """After one step of Newton's method for the fixed point and Y, z among the unknowns."""
        own, by_z = self.newton_and_ridge(found)
        if not np.all(np.isfinite(own.chi)):  # exactly at an edge the matrix is singular
            moved = replace(branch.state, v2=branch.v2 * (1.0 + 1e-9))
            found = self.evaluate(replace(branch, state=moved))
            own, by_z = self.newton_and_ridge(found)
        dz = (gap - self._ratio_change(found, own)) / self._ratio_change(found, by_z)
        v2, chi, xi = (
            a + dz.reshape(-1, *[1] * (a.ndim - 1)) * b
            for a, b in ((own.v2, by_z.v2), (own.chi, by_z.chi), (own.xi, by_z.xi))
        )
        factor = float(damping(State(v2, chi, xi))[0, 0])
        state = State(
            branch.v2 * (1.0 + factor * v2),
            branch.chi + factor * chi,
            branch.state.xi + factor * xi,
        )
        return replace(branch, z=branch.z + factor * dz, state=state).real()


def _next_of(known: list[Branch]) -> Branch:
    """The fourth of a sequence with equal steps, by a parabola through three.

    V2 and 1 + χ by their logarithms: next to z = 0 they are powers of z.
    No linear system has to be solved for it, and its error is of third order in the step.
    """
    first, second, third = (branch.state for branch in known)
    state = State(
        third.v2 * (third.v2 / second.v2) ** 2 * (first.v2 / second.v2),
        (1.0 + third.chi) ** 3 * (1.0 + first.chi) / (1.0 + second.chi) ** 3 - 1.0,
        3.0 * (third.xi - second.xi) + first.xi,
    )
    return replace(known[-1], state=state)


def _taken(found: Evaluation, rows: Any) -> Evaluation:
    """The evaluation at some of its places, with T(r)."""
    blocks = Blocks(*(getattr(found.blocks, field.name)[rows] for field in fields(Blocks)))
    names = ("ridge", "shrink", "mass", "roots", "information")
    arrays = {name: getattr(found, name)[rows] for name in names}
    sectors = None if found.every_sector is None else found.every_sector.take(rows)
    state = found.state.take(rows)
    part = replace(found, state=state, blocks=blocks, every_sector=sectors, **arrays)
    part.__dict__["t_matrices"] = found.t_matrices[rows]
    return part


def _is_real(branch: Branch) -> bool:
    """True at real places where no root of V2_gV2_h is complex."""
    if np.any(branch.z.imag) or np.any(branch.v2.imag) or np.any(branch.chi.imag):
        return False
    v2 = branch.v2.real
    one_sign = np.all(v2 < 0.0) or np.all(v2 > 0.0)
    return bool(one_sign) and not np.any(branch.state.xi.imag)


def _complex(array: ComplexArray) -> ComplexArray:
    """A complex copy."""
    return np.array(array, dtype=np.complex128)


def damping(step: State) -> FloatArray:
    """A factor with which no V2 changes by more than half of itself in one step, (B, 1)."""
    largest = np.abs(step.v2).max(axis=1, keepdims=True)
    return np.asarray(np.minimum(1.0, 0.5 / np.maximum(largest, 1e-300)))


def _halfway(high: FloatArray, low: FloatArray) -> FloatArray:
    """A height between two, by their ratio where neither is 0."""
    return np.where(low > 0.0, np.sqrt(np.maximum(high * low, 0.0)), 0.1 * high)


def _has_jumped(start: Branch, found: Branch) -> npt.NDArray[np.bool_]:
    """Whether the imaginary part vanished at once: another, real solution was met."""
    before, after = (np.abs(branch.v2.sum(axis=1).imag) for branch in (start, found))
    gone = after < 1e-3 * before
    return np.asarray(gone & (before > 1e-4 * np.abs(start.v2.sum(axis=1))))


def _is_above(branch: Branch) -> npt.NDArray[np.bool_]:
    """Im V2 ≥ 0 up to rounding."""
    floor = -1e-9 * np.abs(branch.v2)
    return np.asarray(np.all(branch.v2.imag >= floor, axis=1))
