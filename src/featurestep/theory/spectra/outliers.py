"""Eigenvalues outside the bulk: where the matrix of (11) is singular (17), what they carry (18).

The matrix is taken in units of √|V2| and √|D|. Above the bulk V2 < 0 and it is P − I with P ≥ 0
decreasing in z: as many eigenvalues lie above z as P has eigenvalues above 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.errors import NotConverged
from ...core.types import FloatArray
from ...functions.nonlinearity import normalised_hermite
from ..exact.spikes import spike_system
from ..exact.weights import ExactWeights
from .branch import Branch, joined
from .continued import Equations
from .edges import Edge

HIGHEST = 6  # degree of the polynomials that spikes are compared with
_LADDER = 4.0  # of z, from rung to rung beyond the way to the edge
_MOST_STEPS = 60
_LOST = "a spike was not resolved from the bulk"


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
    places = _places(equations, edge, count)
    slopes = _slopes(equations, places, edge)
    matrix, columns, mass = _system(equations, places)
    vectors = np.linalg.eigh(matrix)[1]
    found = []
    for i, z in enumerate(map(float, places.z.real)):
        carried = columns[i] @ vectors[i, :, -1 - i]  # B̂v at every κ
        found.append(_outlier(equations, z, slopes[i], mass[i], carried))
    return found


def _places(equations: Equations, edge: Edge, count: int) -> Branch:
    """Places of the spikes, all at once: by regula falsi in the Illinois form.

    On t = √(z/E − 1), in which an eigenvalue of P is smooth down to the edge E.
    """
    ladder = joined(_ladder(equations, edge))
    tops = _eigenvalues(equations, ladder)[:, ::-1][:, :count]
    rung = np.argmax(tops > 0.0, axis=0)  # the highest below each spike
    a, b = (np.sqrt(ladder.z[rows].real / edge.location - 1.0) for rows in (rung, rung - 1))
    value_a, value_b = (tops[rows, np.arange(count)] for rows in (rung, rung - 1))
    near = ladder.take(rung - 1)
    for _ in range(_MOST_STEPS):
        t = (a * value_b - b * value_a) / (value_b - value_a)
        z = edge.location * (1.0 + t**2) + 0j
        near = equations.at(z, near.scaled_to(z)).resolved(_LOST)
        value = _own_eigenvalues(equations, near)
        if np.all(np.minimum(np.abs(t - a), np.abs(t - b)) <= equations.fineness.spike * t):
            return near
        passed = value * value_b < 0.0
        a, value_a = np.where(passed, b, a), np.where(passed, value_b, 0.5 * value_a)
        b, value_b = t, value
    raise NotConverged(_LOST)


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
        near = near.resolved(_LOST)
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
        z = _LADDER * rungs[0].z
        if z[0].real > 1e15 * edge.location:
            raise NotConverged("a spike was not bracketed")
        rungs.insert(0, equations.at(z, rungs[0].scaled_to(z)).resolved(_LOST))
    return [*rungs, edge.at]


def _system(equations: Equations, branch: Branch) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The matrix of (17) in units of √|V2|, its columns along κ, and n w/(1+χ), at B places."""
    point = equations.point(branch)
    mass = equations.mass(point)
    if isinstance(point.weights, ExactWeights):
        return *spike_system(point.weights, equations.batch.exact, point.v2.real, mass), mass
    frame = point.isotropic.frame(point.v2)  # above the bulk √V2 and all its columns are imaginary
    means, lines = frame.means.imag, frame.lines.imag
    nothing = np.zeros_like(means)
    along = _beside(means, equations.batch.kappa[:, None] * lines)
    if not frame.leans:
        return _gram(along, mass) - np.eye(along.shape[2]), along, mass
    along = _beside(along, nothing)
    across = _beside(frame.means_across.imag, nothing, lines)
    matrix = _gram(along, mass) + _gram(across, mass) - np.eye(along.shape[2])
    k = means.shape[2]
    matrix[:, :k, :k] += np.eye(k) - point.isotropic.penalty(frame).real
    return matrix, along, mass


def _beside(*parts: FloatArray) -> FloatArray:
    return np.concatenate(parts, axis=2)


def _gram(columns: FloatArray, mass: FloatArray) -> FloatArray:
    weighted = columns * mass[:, :, None]
    return np.asarray(np.matmul(weighted.transpose(0, 2, 1), columns))


def _eigenvalues(equations: Equations, branch: Branch) -> FloatArray:
    """Ascending, (B, size)."""
    return np.asarray(np.linalg.eigvalsh(_system(equations, branch)[0]))


def _outlier(
    equations: Equations, z: float, slope: float, mass: FloatArray, carried: FloatArray
) -> Outlier:
    """Location and squared overlaps −Res T_ff/E f² (eq. 18) of a spike.

    `slope` is that of its eigenvalue with z, and `carried` the vector seen at every κ, of either
    sign: its function is the one that goes along with the Hermite polynomial it has most of.
    """
    scale = -equations.n / (z * slope)
    nodes = equations.batch.readout_nodes
    kappa, weight = equations.batch.kappa[:nodes], equations.batch.weight[:nodes]
    hermite = normalised_hermite(HIGHEST, kappa).T
    powers = kappa[:, None] ** np.arange(1, HIGHEST + 1)

    def inner(f: FloatArray) -> FloatArray:
        return np.asarray((mass / equations.n * carried) @ f)

    def overlap(f: FloatArray) -> FloatArray:
        return np.asarray(scale * inner(f) ** 2 / (weight @ f**2))

    most = max(inner(hermite), key=abs)
    return Outlier(
        location=z,
        hermite=overlap(hermite),
        powers=overlap(powers),
        kappa=kappa,
        function=np.copysign(np.sqrt(max(scale, 0.0)), most)
        * (mass / (equations.n * weight) * carried),
    )
