"""How near the spiked features are to the trained ones: ‖F − F_ℓ‖_op/√n (theory, section 2)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...errors import InvalidProblem
from ...problem import Problem
from ...types import FloatArray
from ..arguments import checked_seeds
from ..arrays.backend import make_backend
from ..draws.draw import Draw
from ..draws.setting import Setting
from ..draws.streams import Streams
from .cost import group_cost
from .plan import make_groups
from .run import TRAIN, GroupRun
from .variants import Variant, feature_key, parse_variants


def feature_gap(
    problem: Problem, *, degrees: Iterable[int] = (1, 2, 3), seeds: int | Iterable[int] = 4
) -> FloatArray:
    """‖F − F_ℓ‖_op/√n on the readout's sample: one row for each degree ℓ, one column for a seed.

    Moniri et al. (Theorem 3.3) have it vanish as n grows for ℓ of the step exponent's regime. What
    the growth of the neurons' norms adds (theory, section 4) is not in F_ℓ and stays.
    """
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", "must be a Problem", problem)
    if problem.step_size == 0:
        raise InvalidProblem("step_size", "must be > 0, or F is F0", problem.step_size)
    if not isinstance(degrees, Iterable):
        raise InvalidProblem("degrees", "must be a list of degrees", degrees)
    variants = parse_variants(["trained", *(f"spiked:{degree}" for degree in degrees)])
    gaps = [_gaps(problem, variants, seed) for seed in checked_seeds(seeds)]
    return np.stack(gaps, axis=1)


def _gaps(problem: Problem, variants: tuple[Variant, ...], seed: int) -> FloatArray:
    backend, setting = make_backend("cpu", "float64"), Setting()
    (group,) = make_groups([problem], variants, 1, setting)
    cost = group_cost(group, setting, backend, rows=None, max_memory=None)
    draw = Draw(problem, setting, Streams(seed), backend, 1)
    run = GroupRun(group, draw, setting, cost, lambda flops: None)
    weights, buffers = run.prepare()
    trained, *spiked = (feature_key(v, problem.step_size, problem.noise_std) for v in variants)
    grams = [backend.zeros(problem.width, problem.width) for _ in spiked]
    sample = draw.readout_sample(problem.n)
    for block, rows in run.blocks(weights, sample, TRAIN, buffers):
        count = block.rows
        F = run.features(trained, weights, rows, backend.empty(count, problem.width))
        for key, gram in zip(spiked, grams, strict=True):
            F_ell = run.features(key, weights, rows, buffers[-1][:count])
            F_ell -= F
            backend.add_gram(gram, F_ell)
    return np.array([np.sqrt(_largest(gram) / problem.n) for gram in grams])


def _largest(gram: FloatArray) -> float:
    """Largest eigenvalue, from the lower triangle."""
    from scipy import linalg  # slow to load

    last = [len(gram) - 1] * 2
    return float(linalg.eigh(gram, lower=True, eigvals_only=True, subset_by_index=last)[0])
