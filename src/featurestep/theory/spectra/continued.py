"""The resolvent equations (7)–(10) continued to complex λ = −z, by Newton's method.

Off the real axis, and on it outside the bulk, the solution is unique and analytic in z; on the
bulk the physical one is the limit from above, with Im V2 > 0. Newton's method has no safeguard
here as it has for λ > 0: a solution is followed from z where it is known, in small steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...core.errors import NotConverged
from ...core.types import FloatArray
from ..moments import Batch
from ..response import Point, evaluate, respond
from .branch import Branch, ComplexArray, Nodes, Trail
from .fineness import FULL, Budget, Fineness

TOLERANCE = 1e-12
_ON_THE_WAY = 1e-5  # residual at places that are only passed through
_MAX_ITERATIONS = 60
_PASSES = 3  # through (22), from weights that answer without readout
_OVERHEAD = 3e5  # of one evaluation, in units of one multiplication


class Equations:
    """Equations (7)–(10) of one problem as functions of z."""

    def __init__(
        self,
        batch: Batch,
        fineness: Fineness = FULL,
        near: Trail | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.batch = batch
        self.fineness = fineness
        nodes = Nodes(batch.kappa, batch.g, batch.neurons[0])
        self.budget = budget or Budget(fineness.work)
        self.n, self.d = float(batch.n[0]), float(batch.d[0])
        self.width = float(batch.neurons.sum())
        self.size = float(
            np.einsum("q,qk,k->", batch.weight, self._power(), batch.neurons[0]) / self.width
        )
        self.trail = Trail(nodes)
        self.near = Trail() if near is None else near.moved(nodes, self._with_weights(near))

    def _with_weights(self, near: Trail) -> Callable[[Branch], Branch]:
        """What gives a solution for isotropic weights, or on other groups, unknowns Ξ of (22)."""
        own, old = self.batch.readout_nodes, near.at
        if self.batch.exact is None or (
            old and old.has_weights and old.g.size == self.batch.g.size
        ):
            return lambda branch: branch

        def settled(branch: Branch) -> Branch:
            chi = branch.chi.copy()
            chi[:, own:] = self.batch.exact.free()
            for _ in range(_PASSES):
                chi[:, own:] = self.point(replace(branch, chi=chi)).mapped_chi[:, own:]
            return replace(branch, chi=chi)

        return settled

    def _power(self) -> FloatArray:
        return np.asarray(self.batch.linear[0] ** 2 + self.batch.spread[0])

    @property
    def largest_row(self) -> float:
        """Largest mean square of a row of features."""
        return float((self._power() @ self.batch.neurons[0]).max() / self.width)

    @property
    def stretch(self) -> float:
        """How far a step's largest residual may stretch a weight, beyond what is usual, squared."""
        if self.batch.exact is None:
            return 1.0
        step = self.batch.exact.step
        largest = np.abs(step.r).max() * (1.0 + np.sqrt(step.phi[0])) ** 2
        longest = (step.kept + np.abs(step.k) * largest) ** 2 + step.delta * largest**2
        return float((longest / step.norm**2).max())

    def trace(self, branch: Branch) -> ComplexArray:
        """m(z) = (1/N) tr(FᵀF/n − z)⁻¹ (eq. 16).

        For N > n from the trace over samples, −E[1/(1+χ)]/z: the same, but with rows and columns
        that vary (`wobble`) only this one has exactly N − n eigenvalues at 0.
        """
        if not self.batch.varies or self.width <= self.n:
            return np.asarray((self.n / self.width) * branch.v2.sum(axis=1))
        over_samples = (1.0 / (1.0 + branch.chi)) @ self.batch.weight
        return np.asarray(-(self.width - self.n + self.n * over_samples) / (self.width * branch.z))

    def trace_slope(self, branch: Branch) -> ComplexArray:
        """dm/dz."""
        p, x = self.slope(branch)
        if not self.batch.varies or self.width <= self.n:
            return np.asarray((self.n / self.width) * (branch.v2 * p).sum(axis=1))
        change = (x / (1.0 + branch.chi) ** 2) @ self.batch.weight
        return np.asarray((self.n / self.width * change - self.trace(branch)) / branch.z)

    def point(self, branch: Branch) -> Point:
        """Everything that the readout side needs at these places."""
        return evaluate(self._at_places(branch.z), branch.v2, branch.chi)

    def mass(self, point: Point) -> FloatArray:
        """n w/(1+χ) at the nodes of κ, at real places."""
        mass = self.n * self.batch.weight * point.shrink
        return np.asarray(mass[:, : self.batch.readout_nodes].real)

    def far(self, z: ComplexArray) -> Branch:
        """The solution for |z| beyond the spectrum, to leading order."""
        z = np.atleast_1d(np.asarray(z, dtype=np.complex128))
        v2 = -self.batch.neurons / (self.n * z[:, None])
        chi = v2 @ self._power().T
        if self.batch.exact is not None:
            chi[:, self.batch.readout_nodes :] = self.batch.exact.free()
        return Branch(z, v2, chi, np.full(z.size, np.inf))

    def readout_chi(self, branch: Branch) -> ComplexArray:
        """χ at the nodes of κ alone."""
        return branch.chi[:, : self.batch.readout_nodes]

    def scaled_chi(self, branch: Branch, factor: float) -> ComplexArray:
        """χ times a factor; the weights' own unknowns stay."""
        chi = branch.chi.copy()
        chi[:, : self.batch.readout_nodes] *= factor
        return chi

    def at(self, z: ComplexArray, start: Branch, tolerance: float | None = None) -> Branch:
        """The solution at z, by Newton's method from nearby solutions."""
        tolerance = self.fineness.residual if tolerance is None else tolerance
        z = np.atleast_1d(np.asarray(z, dtype=np.complex128))
        v2 = np.array(np.broadcast_to(start.v2, (z.size, self.batch.g.size)))
        chi = np.array(np.broadcast_to(start.chi, (z.size, self.batch.kappa.size)))
        residual = np.full(z.size, np.inf)
        active = np.arange(z.size)
        for _ in range(_MAX_ITERATIONS):
            with np.errstate(all="ignore"):
                point = evaluate(self._at_places(z[active]), v2[active], chi[active])
            before, residual[active] = residual[active], point.residual
            going = ~(point.residual < tolerance)
            going &= ~((point.residual < 1e3 * TOLERANCE) & (point.residual > 0.3 * before))
            going &= np.isfinite(point.residual)
            if not np.any(going):
                break
            x, p = newton_step(point)
            factor = damping(p)
            v2[active] = np.where(going[:, None], point.v2 * (1.0 + factor * p), point.v2)
            chi[active] = np.where(going[:, None], point.chi + factor * x, point.chi)
            active = active[going]
        return Branch(z, v2, chi, residual, self.fineness.accepted)

    def slope(self, branch: Branch) -> tuple[ComplexArray, ComplexArray]:
        """d log V2/dz and dχ/dz, (B, K) and (B, Q)."""
        x, p = answer(self.point(branch), self.n * branch.v2, newton=False)
        return p, x

    def lowered(self, x: FloatArray) -> Branch:
        """The physical solution on the real axis, continued down from the upper half-plane."""
        x = np.asarray(x, dtype=np.float64)
        above = self.descended(x + 1j * self.fineness.last * x, self.fineness.steps, _ON_THE_WAY)
        return self._follow(x.astype(np.complex128), above, tolerance=self.fineness.residual)

    def descended(self, z: ComplexArray, steps: int, tolerance: float) -> Branch:
        """The physical solution at places in the upper half-plane, from high above them."""
        high = 4.0 * max(self.size, float(np.abs(z.real).max(initial=0.0)))
        branch = self.at(z.real + 1j * high, self.far(z.real + 1j * high))
        for done in np.arange(1, steps + 1) / steps:
            height = high * (z.imag / high) ** done
            branch = self._follow(z.real + 1j * height, branch, tolerance=tolerance)
        return branch

    def _follow(
        self, z: ComplexArray, start: Branch, *, tolerance: float, depth: int = 6
    ) -> Branch:
        """Go to z; places where the step was too long are reached by halves."""
        found = self.at(z, self._ahead(z, start), tolerance)
        wrong = (
            ~(found.residual <= max(tolerance, self.fineness.accepted))
            | ~_is_physical(found)
            | _jumped(start, found)
        )
        if not np.any(wrong) or depth == 0:
            return found
        rows = np.flatnonzero(wrong)
        near = start.take(rows)
        middle = near.z.real + 1j * _halfway(near.z.imag, z[rows].imag)
        near = self._follow(middle, near, tolerance=tolerance, depth=depth - 1)
        again = self._follow(z[rows], near, tolerance=tolerance, depth=depth - 1)
        return found.replaced(rows, again)

    def _ahead(self, z: ComplexArray, start: Branch) -> Branch:
        """The tangent at known solutions, followed to z."""
        p, x = self.slope(start)
        step = (z - start.z)[:, None]
        far = ~(np.abs(p * step).max(axis=1) < 0.7)  # beyond the reach of a tangent
        v2 = np.where(far[:, None], start.v2, start.v2 * (1.0 + p * step))
        chi = np.where(far[:, None], start.chi, start.chi + x * step)
        return Branch(start.z, v2, chi, start.residual)

    def _at_places(self, z: ComplexArray) -> Batch:
        """The batch with λ = −z; all else is of one problem and stands for every place."""
        k, q = self.batch.g.size, self.batch.kappa.size
        unknowns = min(k * (k + 3) // 2, (q + k) * (0.5 if self.batch.mirrored else 1.0))
        if self.batch.exact is not None:
            unknowns += self.batch.exact.unknowns
        self.budget.left -= _OVERHEAD + z.size * unknowns**3
        if self.budget.left < 0.0:
            raise NotConverged(
                "the bulk was not resolved within the work allowed: it has too many parts"
            )
        return replace(self.batch, ridge=-z)


def newton_step(point: Point) -> tuple[ComplexArray, ComplexArray]:
    """Newton's step for (7)–(10) at fixed z."""
    right = point.demand * (1.0 - point.demand / point.batch.neurons)
    return answer(point, right, change=point.mapped_chi - point.chi, newton=True)


def answer(
    point: Point, right: ComplexArray, *, newton: bool, change: ComplexArray | None = None
) -> tuple[ComplexArray, ComplexArray]:
    """The linear response; not finite where it is singular."""
    source = np.zeros_like(point.chi) if change is None else change
    with np.errstate(all="ignore"):
        try:
            x, p = respond(point, source, right, newton=newton)
        except np.linalg.LinAlgError:
            return np.full_like(point.chi, np.nan), np.full_like(point.v2, np.nan)
    return np.asarray(x), np.asarray(p)


def damping(p: ComplexArray) -> FloatArray:
    """No V2 changes by more than half of itself in one step, (B, 1)."""
    largest = np.abs(p).max(axis=1, keepdims=True)
    return np.asarray(np.minimum(1.0, 0.5 / np.maximum(largest, 1e-300)))


def _halfway(high: FloatArray, low: FloatArray) -> FloatArray:
    """A height between two, by their ratio where neither is 0."""
    return np.where(low > 0.0, np.sqrt(np.maximum(high * low, 0.0)), 0.1 * high)


def _jumped(start: Branch, found: Branch) -> npt.NDArray[np.bool_]:
    """Whether the imaginary part vanished at once: another, real solution was met."""
    before, after = (np.abs(branch.v2.sum(axis=1).imag) for branch in (start, found))
    gone = after < 1e-3 * before
    return np.asarray(gone & (before > 1e-4 * np.abs(start.v2.sum(axis=1))))


def _is_physical(branch: Branch) -> npt.NDArray[np.bool_]:
    """Im V2 ≥ 0 up to rounding."""
    floor = -1e-9 * np.abs(branch.v2)
    return np.asarray(np.all(branch.v2.imag >= floor, axis=1))
