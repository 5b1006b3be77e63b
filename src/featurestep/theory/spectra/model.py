"""The spectral model of a problem: every array of its equations, every correction that applies.

A model is made in one place and nothing is set on it later. Where the equations of one are not
resolved, the next rung of the ladder is tried: the law of the step's residual cut off elsewhere,
other rules, no chance variation of rows and columns, at last a bulk that is seen from above the
axis. Spectra, grids, phase diagrams, sweeps, critical steps and drafts all climb the same ladder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...core.problem import Problem
from ...core.spiked import spiked_weights
from ...core.types import FloatArray
from ..exact.step import bulk_products
from ..moments import Batch
from ..validity import isotropic_bulk_notes, prediction_notes, rung_notes
from .fineness import FIRST, FULL, STRAY, Rung
from .typical import spectral_method, typical_batch

FINEST = 4.0
_SOME = 0.002  # share of neurons or samples that is not to be cut off from the rest
_OTHER_STRAYS = (80.0, 20.0, 160.0)
_OTHER_RULES = (0.84, 1.19)


@dataclass(frozen=True)
class Model:
    """One problem's equations on one rung."""

    problem: Problem
    rung: Rung
    batch: Batch
    atom: float  # share of eigenvalues that are 0
    notes: tuple[str, ...]  # what its weights leave out, and what its rung does

    @property
    def is_exact(self) -> bool:
        """Whether its weights are the exact ones."""
        return self.batch.exact is not None

    @property
    def is_heavy(self) -> bool:
        """Whether rows and columns vary by chance in it."""
        return self.batch.varies

    def moments(self) -> tuple[float, float]:
        """First two moments of the bulk: (1/N) tr of FᵀF/n and of its square, means left out.

        With p_g = ρ_g²μ_g² + ν_g² and P_g = E p_g they are Σ π_g P_g and Σ π_g(P_g² + C_g),
        C_g = Σ_h N_h (E[p_g p_h]/n + ρ_g²ρ_h² E[μ_gμ_h]²/d): the 1/z expansion of (7)–(10). In a
        mean with p_h, p_g is what V̂2 sees of it and p_h what χ sees.
        """
        batch = self.batch
        linear = batch.linear[0] ** 2  # (Q, K)
        seen = linear + batch.spread[0]
        felt = seen if batch.felt is None else linear + batch.felt[0]
        weight, neurons = batch.weight, batch.neurons[0]
        size = weight @ felt
        rows = (felt.T * weight) @ seen / batch.n[0]
        columns = ((batch.linear[0].T * weight) @ batch.linear[0]) ** 2 / batch.d[0]
        if self.is_exact:  # tr K_gK_h/d in place of ρ_g²ρ_h²
            square = batch.norm[0] ** 2
            columns *= bulk_products(batch.exact.step)[0] / np.multiply.outer(square, square)
        share = neurons / neurons.sum()
        return float(share @ size), float(share @ (size**2 + (rows + columns) @ neurons))


def model_of(
    problem: Problem, rung: Rung = FIRST, *, least: float = FULL.rules, most: float = FINEST
) -> Model:
    """The model of one rung, the first by default, as fine as needed.

    What is needed counts as at least `least`, and as at most `most`.
    """
    coarse = typical_batch(problem, replace(rung, varies=False))
    needed = _needed(coarse, least, most)
    fine = min(needed, 1.0) if rung.blurred else rung.factor * needed
    batch = typical_batch(problem, rung, refine=fine)
    lost = rung_notes(cut_elsewhere=rung.stray != STRAY, varies=rung.varies)
    notes = (*spectrum_notes(problem, light=rung.light), *lost)
    return Model(problem, rung, batch, _atom(problem), notes)


def spectrum_notes(problem: Problem, *, light: bool = False) -> tuple[str, ...]:
    """Notes on what the weights that a spectrum rests on leave out."""
    weights, method = spiked_weights(problem), spectral_method(problem, light=light)
    if method == "isotropic":
        return isotropic_bulk_notes(problem, weights)
    return prediction_notes(problem, weights, method)


def ladder(first: Model) -> tuple[Rung, ...]:
    """All rungs for a problem whose model on the first one is given."""
    if first.is_exact and first.is_heavy:
        others = [Rung(varies=False), *(Rung(stray=s, varies=False) for s in _OTHER_STRAYS)]
    elif first.is_exact:
        others = [Rung(stray=stray) for stray in _OTHER_STRAYS]
    elif first.is_heavy:  # better without some variation than nothing
        others = [Rung(factor, varies=False) for factor in (1.0, *_OTHER_RULES)]
    else:
        others = [Rung(factor) for factor in _OTHER_RULES]
    return (FIRST, *others, Rung(blurred=True))


def _atom(problem: Problem) -> float:
    """Share of eigenvalues that are 0: features beyond the rank."""
    rank = min(problem.n, problem.width)
    if problem.sigma.slope_variance == 0.0:  # affine features have the rank of the inputs
        rank = min(rank, problem.d)
    return 1.0 - rank / problem.width


def _needed(batch: Batch, least: float, most: float) -> float:
    """How fine the rules must be, within bounds, for gaps not to open between their nodes.

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
    return float(np.clip(2.0 ** (0.5 * np.ceil(2.0 * np.log2(step / (0.15 * width)))), least, most))


def _largest_step(values: FloatArray, share: FloatArray) -> float:
    """Largest ratio of neighbouring values that carry some weight, as a logarithm."""
    order = np.argsort(values)
    kept = np.log(values[order][share[order] > _SOME])
    return float(np.diff(kept).max(initial=1e-12))
