"""Eigenvalues outside the bulk: where the matrix of (11) is singular (17), what they carry (18).

The matrix is taken in units of √|V2| and √|D|. Above the bulk V2 < 0 and it is P − I with P ≥ 0
decreasing in z: as many eigenvalues lie above z as P has eigenvalues above 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...errors import NotConverged
from ...functions.nonlinearity import normalised_hermite
from ...roots import root_between
from ...types import FloatArray
from ..exact.spikes import spike_system
from ..exact.weights import ExactWeights
from .branch import Branch, ComplexArray, Spikes, joined
from .continued import Equations
from .edges import Edge

HIGHEST = 6  # degree of the polynomials that spikes are compared with
_LADDER = 4.0  # of z, from rung to rung beyond the way to the edge
_MOST_SECANTS = 8
_CLOSE = 2e-3  # of the last two


@dataclass(frozen=True)
class Outlier:
    """One eigenvalue of FᵀF/n outside the bulk."""

    location: float
    hermite: FloatArray  # (HIGHEST + 1,) squared overlaps with H_0(κ), H_1(κ), …
    powers: FloatArray  # (HIGHEST,) with κ, κ², …
    kappa: FloatArray  # (Q,)
    function: FloatArray  # (Q,) mean of √n × the left singular vector given κ


def above(equations: Equations, edge: Edge) -> list[Outlier]:
    """Eigenvalues above the bulk, largest first."""
    count = positive(equations, edge.at)
    if count == 0:
        return []
    places = _followed(equations, edge, count) or _bracketed(equations, edge, count)
    slopes = _slopes(equations, places, edge)
    rate = 2.0 * slopes * (places.z.real - edge.location)
    equations.trail.spikes = Spikes(edge.location, places, rate)
    matrix, columns, mass = _system(equations, places)
    vectors = np.linalg.eigh(matrix)[1]
    found = []
    for i, z in enumerate(map(float, places.z.real)):
        carried = columns[i] @ vectors[i, :, -1 - i]  # B̂v at every κ
        found.append(_outlier(equations, z, slopes[i], mass[i], carried))
    return found


def _bracketed(equations: Equations, edge: Edge, count: int) -> Branch:
    """Places of the spikes, by root search between places around each."""
    ladder = _ladder(equations, edge)
    tops = np.array([_eigenvalues(equations, rung)[0, ::-1][:count] for rung in ladder])
    places = []
    for i in range(count):
        inside = np.flatnonzero(tops[:, i] > 0.0)  # rungs below the spike
        if inside.size == 0 or inside[0] == 0:
            raise NotConverged("a spike was not bracketed")
        rung = int(inside[0])
        places.append(_root(equations, ladder[rung], ladder[rung - 1], i))
    return joined(places)


def _followed(equations: Equations, edge: Edge, count: int) -> Branch | None:
    """The same from the spikes of a similar problem, all at once; None if one is lost.

    Secants on t = √(z/E − 1), in which an eigenvalue of P is smooth down to the edge E.
    """
    known = equations.near.spikes
    if known is None or known.at.z.size != count or not np.all(np.isfinite(known.rate)):
        return None
    near = known.at
    t = np.sqrt(near.z.real / known.edge - 1.0)
    before: tuple[FloatArray, FloatArray] | None = None
    for _ in range(_MOST_SECANTS):
        z = edge.location * (1.0 + t**2) + 0j
        near = equations.at(z, near.scaled_to(z))
        if not (np.all(near.converged) and np.all(near.v2.real < 0.0)):
            return None
        value = _own_eigenvalues(equations, near)
        slope = known.rate / t
        if before is not None:  # a place that hardly moved tells nothing of it
            moved = np.abs(t - before[0]) > _CLOSE * t
            slope = np.where(moved, (value - before[1]) / (t - before[0]), slope)
        step = -value / slope
        if not np.all(np.abs(step) < 0.5 * t):
            return None
        before, t = (t, value), t + step
        if np.all(np.abs(step) < _CLOSE * t):
            return replace(near, z=edge.location * (1.0 + t**2) + 0j)
    return None


def _own_eigenvalues(equations: Equations, places: Branch) -> FloatArray:
    """At the place of each spike, the eigenvalue that vanishes there."""
    rows = np.arange(places.z.size)
    return np.asarray(_eigenvalues(equations, places)[rows, -1 - rows])


def _slopes(equations: Equations, places: Branch, edge: Edge) -> FloatArray:
    """How fast each spike's eigenvalue falls with z: at the edge itself without bound."""
    t = np.sqrt(places.z.real / edge.location - 1.0)
    step = 3.0 * equations.fineness.seen * t
    ends = []
    for sign in (-1.0, 1.0):
        near = equations.at(edge.location * (1.0 + (t + sign * step) ** 2) + 0j, places)
        near = near.resolved("a spike was not resolved from the bulk")
        ends.append(_own_eigenvalues(equations, near))
    slope = (ends[1] - ends[0]) / (4.0 * t * step * edge.location)
    return np.where(slope < 0.0, slope, -np.inf)


def positive(equations: Equations, branch: Branch) -> int:
    """How many eigenvalues lie above a place that is above the bulk."""
    return int(np.count_nonzero(_eigenvalues(equations, branch) > 0.0))


def strengths_at(equations: Equations, place: Branch) -> FloatArray:
    """Eigenvalues of P, largest first: as many eigenvalues lie above the place as exceed 1."""
    return np.asarray(_eigenvalues(equations, place)[0, ::-1] + 1.0)


def _ladder(equations: Equations, edge: Edge) -> list[Branch]:
    """Real solutions from beyond every spike down to the edge."""
    rungs = list(edge.path)
    while positive(equations, rungs[0]) > 0:
        z = float(rungs[0].z[0].real)
        if z > 1e15 * edge.location:
            raise NotConverged("a spike was not bracketed")
        rungs.insert(0, _real_at(equations, _LADDER * z, rungs[0]))
    return [*rungs, edge.at]


def _real_at(equations: Equations, z: float, start: Branch) -> Branch:
    found = equations.at(np.array([z + 0j]), start)
    return found.resolved(f"no solution of the resolvent equations at z = {z:.4g}")


def _root(equations: Equations, low: Branch, high: Branch, i: int) -> Branch:
    """Where the i-th largest eigenvalue vanishes between two places."""
    known = {float(b.z[0].real): b for b in (low, high)}

    def value(z: float) -> float:
        if z not in known:
            near = min((place for place in known if place > a), key=lambda place: abs(place - z))
            known[z] = _real_at(equations, z, known[near])
        return float(_eigenvalues(equations, known[z])[0, -1 - i])

    a, b = sorted(known)
    z = root_between(value, a, b, relative=equations.fineness.spike)
    value(z)
    return known[z]


def _system(equations: Equations, branch: Branch) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The matrix of (17) in units of √|V2|, its columns along κ, and n w/(1+χ), at B places."""
    point = equations.point(branch)
    if isinstance(point.weights, ExactWeights):
        seen = equations.mass(point)
        found = spike_system(point.weights, equations.batch.exact, point.v2.real, seen)
        return *found, seen
    mass = equations.n * equations.batch.weight * point.shrink
    frame = point.isotropic.frame(point.v2)
    kappa = equations.batch.kappa[:, None]
    phase = np.where(branch.v2.real < 0.0, 1j, 1.0)  # (B, K)
    nothing = np.zeros_like(frame.means)
    along = [frame.means, kappa * frame.lines]
    if frame.coupling is not None:
        along.append(nothing)
    phases = np.tile(phase, len(along))[:, None, :]
    seen = _beside(*along) / phases
    matrix = _gram(seen, mass)
    diagonal = np.arange(matrix.shape[1])
    matrix[:, diagonal, diagonal] += phases[:, 0, :] ** -2
    if frame.coupling is not None:
        across = _beside(frame.coupling.means_across, nothing, frame.lines)
        matrix += _gram(across / phases, mass)
        k = phase.shape[1]
        penalty = frame.coupling.penalty / (phase[:, :, None] * phase[:, None, :])
        matrix[:, :k, :k] += penalty
        matrix[:, diagonal[:k], diagonal[:k]] -= phase**-2
    return matrix.real, seen.real, mass.real


def _beside(*parts: ComplexArray) -> ComplexArray:
    return np.concatenate(parts, axis=2)


def _gram(columns: ComplexArray, mass: ComplexArray) -> ComplexArray:
    weighted = columns * mass[:, :, None]
    return np.asarray(np.matmul(weighted.transpose(0, 2, 1), columns))


def _eigenvalues(equations: Equations, branch: Branch) -> FloatArray:
    """Ascending, (B, size)."""
    return np.asarray(np.linalg.eigvalsh(_system(equations, branch)[0]))


def _outlier(
    equations: Equations, z: float, slope: float, mass: FloatArray, carried: FloatArray
) -> Outlier:
    """Location and squared overlaps −Res T_ff/E f² (eq. 18) of a spike.

    `slope` is that of its eigenvalue with z, and `carried` the vector seen at every κ.
    """
    scale = -equations.n / (z * slope)
    nodes = equations.batch.readout_nodes
    kappa, weight = equations.batch.kappa[:nodes], equations.batch.weight[:nodes]
    hermite = normalised_hermite(HIGHEST, kappa).T
    powers = kappa[:, None] ** np.arange(1, HIGHEST + 1)

    def overlap(f: FloatArray) -> FloatArray:
        inner = (mass / equations.n * carried) @ f
        return np.asarray(scale * inner**2 / (weight @ f**2))

    return Outlier(
        location=z,
        hermite=overlap(hermite),
        powers=overlap(powers),
        kappa=kappa,
        function=np.sqrt(max(scale, 0.0)) * mass / (equations.n * weight) * carried,
    )
