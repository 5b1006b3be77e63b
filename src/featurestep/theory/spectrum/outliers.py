"""Eigenvalues outside the bulk: where the matrix of (11) is singular (17), what they carry (18).

The matrix is taken in units of √|V2| and √|D|. Above the bulk V2 < 0 and it is P − I with P ≥ 0
decreasing in z: as many eigenvalues lie above z as P has eigenvalues above 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import numpy as np

from ...errors import NotConverged
from ...nonlinearity import normalised_hermite
from ...quadrature import FloatArray
from ..moments import across_alignment
from ..weight_side import Frame
from .branch import Branch, ComplexArray
from .continued import Equations
from .edges import Edge

HIGHEST = 6  # degree of the polynomials that spikes are compared with
_LADDER = 4.0  # of z, from rung to rung beyond the way to the edge


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
    ladder = _ladder(equations, edge)
    tops = np.array([_eigenvalues(equations, rung)[::-1][:count] for rung in ladder])
    found = []
    for i in range(count):
        inside = np.flatnonzero(tops[:, i] > 0.0)  # rungs below the spike
        if inside.size == 0 or inside[0] == 0:
            raise NotConverged("a spike was not bracketed")
        rung = int(inside[0])
        place = _root(equations, ladder[rung], ladder[rung - 1], i)
        found.append(_outlier(equations, place, edge.location, i))
    return found


def positive(equations: Equations, branch: Branch) -> int:
    """How many eigenvalues lie above a place that is above the bulk."""
    return int(np.count_nonzero(_eigenvalues(equations, branch) > 0.0))


def strengths(equations: Equations, edge: Edge, count: int) -> FloatArray:
    """Largest eigenvalues of P at the edge: those above 1 have left the bulk."""
    return np.asarray(_eigenvalues(equations, edge.at)[::-1][:count] + 1.0)


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
    if not found.converged[0]:
        raise NotConverged(
            f"no solution of the resolvent equations at z = {z:.4g}",
            residual=float(found.residual[0]),
        )
    return found


def _root(equations: Equations, low: Branch, high: Branch, i: int) -> Branch:
    """Where the i-th largest eigenvalue vanishes between two places."""
    known = {float(b.z[0].real): b for b in (low, high)}

    def value(z: float) -> float:
        if z not in known:
            near = min((place for place in known if place > a), key=lambda place: abs(place - z))
            known[z] = _real_at(equations, z, known[near])
        return float(_eigenvalues(equations, known[z])[::-1][i])

    brentq = import_module("scipy.optimize").brentq
    a, b = sorted(known)
    fine = equations.fineness.spike
    z = float(brentq(value, a, b, xtol=fine * b, rtol=fine))
    value(z)
    return known[z]


@dataclass(frozen=True)
class _System:
    """The matrix of (17) in units of √|V2|, with its columns."""

    matrix: FloatArray
    columns: FloatArray  # (Q, size) B̂ along κ
    mass: FloatArray  # (Q,) n w/(1+χ)


def _system(equations: Equations, branch: Branch) -> _System:
    point = equations.point(branch)
    frame = point.weights.frame(point.v2)
    k = frame.lines.shape[2]
    kappa = equations.batch.kappa[:, None]
    mass = equations.n * equations.batch.weight * point.shrink[0]
    phase = np.where(branch.v2[0].real < 0.0, 1j, 1.0)
    if frame.coupling is None and equations.own_turn is not None:
        return _turned_system(equations, branch, frame, mass, phase)
    if frame.coupling is None:
        columns = np.concatenate([frame.means[0], kappa * frame.lines[0]], axis=1)
        columns = columns / np.tile(phase, 2)
        matrix = np.diag(np.tile(phase**-2, 2)) + (columns.T * mass) @ columns
        return _System(matrix.real, columns.real, mass.real)
    nothing = np.zeros_like(frame.means[0])
    along = np.concatenate([frame.means[0], kappa * frame.lines[0], nothing], axis=1)
    across = np.concatenate([frame.coupling.means_across[0], nothing, frame.lines[0]], axis=1)
    along, across = along / np.tile(phase, 3), across / np.tile(phase, 3)
    penalty = np.diag(np.tile(phase**-2, 3))
    penalty[:k, :k] = frame.coupling.penalty[0] / np.outer(phase, phase)
    matrix = penalty + (along.T * mass) @ along + (across.T * mass) @ across
    return _System(matrix.real, along.real, mass.real)


def _turned_system(
    equations: Equations, branch: Branch, frame: Frame, mass: ComplexArray, phase: ComplexArray
) -> _System:
    """(17) with each neuron's turn in proportion to its own overlap with the target's direction.

    What a weight w·β⋆ = γ w_β + √(1−γ²) w_s does beyond w·x adds to the columns of w_β and w_s.
    """
    batch = equations.batch
    kappa, gamma = batch.kappa[:, None], float(batch.alignment[0])
    turn = equations.own_turn * np.sqrt(branch.v2 / batch.d[:, None])  # (Q, K)
    nothing = np.zeros_like(turn)
    lines = kappa * frame.lines[0] + gamma * turn
    aside = float(across_alignment(batch.alignment)[0]) * turn
    along = np.concatenate([frame.means[0], lines, aside], axis=1) / np.tile(phase, 3)
    across = np.concatenate([nothing, nothing, frame.lines[0]], axis=1) / np.tile(phase, 3)
    matrix = np.diag(np.tile(phase**-2, 3)) + (along.T * mass) @ along + (across.T * mass) @ across
    return _System(matrix.real, along.real, mass.real)


def _eigenvalues(equations: Equations, branch: Branch) -> FloatArray:
    return np.asarray(np.linalg.eigvalsh(_system(equations, branch).matrix))


def _outlier(equations: Equations, place: Branch, edge: float, i: int) -> Outlier:
    """Location and squared overlaps −Res T_ff/E f² (eq. 18) of the i-th largest spike."""
    z = float(place.z[0].real)
    system = _system(equations, place)
    _, vectors = np.linalg.eigh(system.matrix)
    carried = system.columns @ vectors[:, -1 - i]  # B̂v at every κ
    slope = _eigenvalue_slope(equations, place, edge, i)
    scale = -equations.n / (z * slope)
    kappa, weight = equations.batch.kappa, equations.batch.weight
    hermite = normalised_hermite(HIGHEST, kappa).T
    powers = kappa[:, None] ** np.arange(1, HIGHEST + 1)

    def overlap(f: FloatArray) -> FloatArray:
        inner = (system.mass / equations.n * carried) @ f
        return np.asarray(scale * inner**2 / (weight @ f**2))

    shrink = system.mass / (equations.n * weight)
    return Outlier(
        location=z,
        hermite=overlap(hermite),
        powers=overlap(powers),
        kappa=kappa,
        function=np.sqrt(max(scale, 0.0)) * shrink * carried,
    )


def _eigenvalue_slope(equations: Equations, place: Branch, edge: float, i: int) -> float:
    z = float(place.z[0].real)
    step = 1e-4 * (z - edge)
    ends = [
        float(_eigenvalues(equations, _real_at(equations, z + sign * step, place))[::-1][i])
        for sign in (-1.0, 1.0)
    ]
    return (ends[1] - ends[0]) / (2.0 * step)
