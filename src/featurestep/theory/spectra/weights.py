"""Spectra of the weights, after one step and after several.

Row j of W is ρ_j times a direction without structure plus its group's shift b_g, which is u_gβ/‖β‖
after one step (eqs. 3, 4). With m = (1/d) tr(WᵀW − z)⁻¹ the weights' bulk, of Marchenko and Pastur,
is z(m) = −1/m + Σ_g (N_g/d) ρ_g²/(1 + ρ_g² m): edges are its turning points. Their spikes are where
an eigenvalue of −m Σ_g N_g b_gb_gᵀ/(1 + ρ_g² m) is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...core.problem import Problem
from ...core.spiked import Border, border_of
from ...core.types import FloatArray
from ...functions.roots import find_root
from ..exact.step import Step
from ..resolution import Effort
from ..several_steps.prediction import fineness_of, reach, training_of
from ..several_steps.rules import group_rule
from ..several_steps.solve import make_batches

_GROUPS = 2.0  # factor on the groups of a continuous law, each at most one outlier


@dataclass(frozen=True)
class WeightSpike:
    """A singular value that the steps push out of the weights' bulk."""

    singular_value: float
    alignment: float  # squared overlap of its right vector with β, of the first batch
    target_alignment: float  # squared overlap with β⋆, or with the target's directions together
    readout_alignment: float  # squared overlap of its left vector with a


@dataclass(frozen=True)
class WeightSpectrum:
    """The law of the min(N, d) singular values of W."""

    ratio: FloatArray  # (K,) N_g/d
    square: FloatArray  # (K,) ρ_g²
    shifts: FloatArray  # (K, K) b_g·b_h of the groups' shifts
    on_beta: FloatArray  # (K,) b_g·β/‖β‖
    on_target: FloatArray  # (K, r) b_g·θ_k for the target's directions
    readout: FloatArray  # (K,) a, up to a factor
    d: float

    @cached_property
    def edges(self) -> tuple[float, float]:
        """Ends of the bulk, as singular values."""
        if abs(self.ratio.sum() - 1.0) < 1e-9:
            low = 0.0
        else:
            low = max(self._place(self._lower), 0.0)
        return float(np.sqrt(low)), float(np.sqrt(self._place(self._upper)))

    @cached_property
    def border(self) -> Border:
        """Where a spike begins, as an eigenvalue of WᵀW: z − E = ½z″(m − m_E)² at the edge."""
        m, high = self._upper, self.edges[1] ** 2
        second = (
            2.0 * (self.ratio * (self.square / (1.0 + self.square * m)) ** 3).sum() - 2.0 / m**3
        )
        return border_of(high, float(np.sqrt(2.0 / second) * self.d) ** (-2.0 / 3.0))

    @property
    def _lower(self) -> float:
        """m at the lower edge."""
        if self.ratio.sum() > 1.0:
            return _root(self._slope, 1e-9, 1e9)
        lowest = 1.0 / self.square.min()
        return _root(self._slope, -1e12 * lowest, -lowest * (1.0 + 1e-12))

    @property
    def _upper(self) -> float:
        """m at the upper edge."""
        highest = 1.0 / self.square.max()
        return _root(self._slope, -highest * (1.0 - 1e-12), -1e-12 * highest)

    def _place(self, m: float) -> float:
        return float(-1.0 / m + (self.ratio * self.square / (1.0 + self.square * m)).sum())

    def _slope(self, m: float) -> float:
        """dz/dm, times m²."""
        terms = self.ratio * (self.square * m / (1.0 + self.square * m)) ** 2
        return float(1.0 - terms.sum())

    def density(self, s: FloatArray) -> FloatArray:
        """Density of the singular values at s."""
        s = np.asarray(s, dtype=np.float64)
        low, high = self.edges
        inside = (s > low) & (s < high)
        out = np.zeros(s.shape)
        if np.any(inside):
            m = self._trace(s[inside] ** 2)
            out[inside] = 2.0 * s[inside] * m.imag / np.pi / min(1.0, float(self.ratio.sum()))
        return out

    def _trace(self, x: FloatArray) -> np.ndarray:
        """m on the real axis, continued down from the upper half-plane."""
        z = x + 4j * max(1.0, float(x.max()))
        m = -1.0 / z
        for height in (*np.geomspace(2.0, 1e-6, 24) * max(1.0, float(x.max())), 0.0):
            z = x + 1j * height
            for _ in range(60):
                below = 1.0 + np.multiply.outer(m, self.square)
                gap = -1.0 / m + (self.ratio * self.square / below).sum(axis=1) - z
                slope = 1.0 / m**2 - (self.ratio * self.square**2 / below**2).sum(axis=1)
                step = -gap / slope
                factor = np.minimum(1.0, 0.5 * np.abs(m) / np.maximum(np.abs(step), 1e-300))
                m = m + factor * step
                if np.abs(gap).max() < 1e-12 * np.abs(z).max():
                    break
            m = np.where(m.imag < 0.0, m.conj(), m)
        return np.asarray(m)

    @property
    def spike(self) -> WeightSpike | None:
        """The largest outlier, if the step is large enough for one."""
        return self.spikes[0] if self.spikes else None

    @cached_property
    def spikes(self) -> tuple[WeightSpike, ...]:
        """The outliers, largest first: one at most after one step."""
        upper = self._upper
        count = int(np.count_nonzero(self._strengths(upper)[0] > 1.0))
        return tuple(self._spike(rank, upper) for rank in range(count))

    def _spike(self, rank: int, upper: float) -> WeightSpike:
        """The outlier at which the eigenvalue of that rank is 1.

        Its right vector v has the part √(m/α′)w along the shifts, w the unit eigenvector and α′ the
        derivative of the eigenvalue by z; its left vector is Wv/√z.
        """
        m = _root(lambda t: float(self._strengths(t)[0][rank]) - 1.0, upper, -1e-300)
        z, below = self._place(m), 1.0 + self.square * m
        neurons = self.ratio * self.d
        combine = np.sqrt(-m * neurons / below) * self._strengths(m)[1][:, rank]  # w = Σ_g C_g b_g
        along = self.shifts @ combine  # b_g·w
        rise = -float(neurons @ (along / below) ** 2) / (self._slope(m) / m**2)  # α′
        seen = m / rise
        left = float(neurons @ (self.readout * along / below)) ** 2
        return WeightSpike(
            singular_value=float(np.sqrt(z)),
            alignment=seen * float(combine @ self.on_beta) ** 2,
            target_alignment=seen * float(((combine @ self.on_target) ** 2).sum()),
            readout_alignment=seen * left / (z * float(neurons @ self.readout**2)),
        )

    def _strengths(self, m: float) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, largest first, and unit eigenvectors of the shifts' matrix, (K,), (K, K)."""
        root = np.sqrt(-m * self.ratio * self.d / (1.0 + self.square * m))
        values, vectors = np.linalg.eigh(root[:, None] * self.shifts * root)
        return values[::-1], vectors[:, ::-1]


def weight_spectrum(step: Step) -> WeightSpectrum:
    """The weights' spectrum from the groups of one problem."""
    d, shift = float(step.d[0]), step.shift[0]
    return WeightSpectrum(
        ratio=step.neurons[0] / d,
        square=step.norm[0] ** 2,
        shifts=np.outer(shift, shift),
        on_beta=shift,
        on_target=float(step.alignment[0]) * shift[:, None],
        readout=shift,
        d=d,
    )


def weights_after_steps(problem: Problem) -> WeightSpectrum:
    """The weights' spectrum after several steps on fresh batches, from (163) and (164).

    Groups of a continuous law are many: each may have an outlier of its own.
    """
    fineness = fineness_of(problem, Effort(groups=_GROUPS))
    g, share = groups = group_rule(problem.law, reach(problem), fineness)
    frame = make_batches(training_of(problem), groups, fineness)[-1].after
    return WeightSpectrum(
        ratio=problem.width * share / problem.d,
        square=frame.norm2,
        shifts=frame.gram,
        on_beta=frame.on_beta,
        on_target=frame.on_target,
        readout=g,
        d=float(problem.d),
    )


def outliers_in_the_limit(first: float, second: float) -> int:
    """Outliers after two steps η_τ ~ N^α_τ as N → ∞, α in (0, ½): 1 + ⌊α2/(½ − α1)⌋.

    One for the direction of both steps' linear parts, and those that the second step adds: its
    part of order k in what the first learned is of size N^(α2 − k(½ − α1)).
    """
    return 1 + int(np.floor(second / (0.5 - first) + 1e-9))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return find_root(function, low, high, relative=1e-13)
