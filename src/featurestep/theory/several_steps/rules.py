"""Quadrature rules for several steps: groups of neurons, and coordinates ξ in a frame.

Functions of ξ vary along a direction at the scale ρ_g/|L_g| at which a neuron's pre-activation
does, and at that at which the label does. Rules are products along the principal directions of
both, so that most vary along the first alone. An equispaced rule resolves them with a spacing in
proportion to that scale; where everything varies slowly along a direction, Gauss nodes are fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.errors import NotConverged
from ...core.types import FloatArray
from ...functions.quadrature import Rule, gauss_hermite, saturating_gauss_law, trapezoid_normal
from ...functions.readout import Law
from .batches import Frame

_NODES_BY_REACH = ((0.36, 11), (0.71, 13), (2.0, 15), (np.inf, 19))  # of continuous laws
_SHARPEST_LABEL = 0.5  # scale in t at which labels may vary
_FREQUENCY = 4.0  # up to which functions of a pre-activation have parts that matter
_FEW_NEURONS = 2e-3  # share whose functions of ξ may vary faster than the rule resolves
_MOST_GAUSS = 60  # nodes, beyond which an equispaced rule is better for sure
_HALF_WIDTH = 8.0


@dataclass(frozen=True)
class Fineness:
    """Numbers of nodes: results must not depend on them."""

    groups: float = 1.0  # factor on the groups of a continuous law
    most_groups: int = 19  # before that factor
    first: int = 36  # nodes of y for a batch that meets weights without shift
    labels: int = 14  # nodes of y at every ξ, for one axis
    labels_of_many: int = 10  # the same for several axes
    batch: float = 0.6  # spacing of ξ, in units of the scale
    readout: float = 0.5  # the same for the readout's samples
    tolerance: float = 1e-11  # of rules for slow functions, and of products of rules
    least: float = 1e-12  # weight of a batch's node, relative to the largest


# For laws with many groups. Against finer rules these moved test errors by at most 1e-5 (two steps)
# and 4e-5 (three and six steps of 1.5 √N in all; tanh, ReLU).
CONTINUOUS = Fineness(
    most_groups=15,
    labels=7,
    labels_of_many=5,
    batch=1.4,
    readout=0.9,
    tolerance=1e-4,
    least=1e-6,
)
MOST_NODES = 40_000


def group_rule(law: Law, reach: float, fineness: Fineness) -> Rule:
    """Values g and probabilities; `reach` is the effect of all steps on a neuron with g = 1."""
    if law.is_finite:
        return np.array(law.values), np.array(law.probabilities)
    count = next(count for most, count in _NODES_BY_REACH if reach <= most)
    rounded = float(2.0 ** (0.5 * np.ceil(2.0 * np.log2(np.clip(reach, 2.0**-6, 4.0)))))
    count = round(fineness.groups * min(count, fineness.most_groups))
    return saturating_gauss_law(law.name, count, rounded / (1.0 + 0.4 * rounded))


def frame_rule(frame: Frame, share: FloatArray, spacing: float, tolerance: float) -> Rule:
    """Nodes of ξ, (X, Q), and weights; `share` (K,) are the probabilities of the groups."""
    blur = max(float(np.linalg.eigvalsh(frame.across)[0]), _SHARPEST_LABEL)
    shift, gamma = frame.shift / np.sqrt(frame.norm2)[:, None], frame.gamma / blur
    turned = np.linalg.eigh(gamma.T @ gamma + (shift.T * share) @ shift)[1][:, ::-1]
    shift, gamma = np.abs(shift @ turned), np.abs(gamma @ turned)
    nodes, weight = np.zeros((1, 0)), np.ones(1)
    for i in range(frame.axes):
        steepness, of_labels = shift[:, i], float(gamma[:, i].max())
        steepest = max(_largest(steepness, share), of_labels)
        left = gauss_errors(np.append(steepness, of_labels), np.append(share, 1.0))
        rules = [
            _axis_rule(left, steepest, spacing, float(allowed))
            for allowed in tolerance * weight.max() / weight
        ]
        sizes = [x.size for x, _ in rules]
        if sum(sizes) > MOST_NODES:
            raise NotConverged(
                "take smaller steps: the activation varies too fast along the learned directions, "
                f"more than {MOST_NODES} nodes would be needed"
            )
        along, factor = (np.concatenate(parts) for parts in zip(*rules, strict=True))
        nodes = np.column_stack([np.repeat(nodes, sizes, axis=0), along])
        weight = np.repeat(weight, sizes) * factor
        kept = weight > 1e-3 * tolerance * weight.max()
        nodes, weight = nodes[kept], weight[kept]
    return nodes @ turned.T, weight / weight.sum()


def _axis_rule(left: FloatArray, steepest: float, spacing: float, tolerance: float) -> Rule:
    """Nodes of one coordinate: Gauss's, or equispaced ones where these are fewer.

    `left` are errors of Gauss's rules, as `gauss_errors` returns them.
    """
    count = gauss_count(left, tolerance)
    step = spacing / float(np.hypot(1.0, steepest))
    if count * step < 2.0 * _HALF_WIDTH:
        return gauss_hermite(int(count))
    return trapezoid_normal(_HALF_WIDTH, step)


def _largest(values: FloatArray, share: FloatArray) -> float:
    """The largest value but of few neurons, which add little to any average."""
    order = np.argsort(values)[::-1]
    return float(values[order][np.searchsorted(np.cumsum(share[order]), _FEW_NEURONS)])


def gauss_errors(steepness: FloatArray, share: FloatArray) -> FloatArray:
    """Errors of Gauss's rules with 0, 1, … nodes for functions of steepness·ξ_i, by their shares.

    The functions have polynomials of low degree as factors.
    """
    count = np.arange(1, _MOST_GAUSS + 1)
    factors = 0.5 * (_FREQUENCY * steepness) ** 2 / (2 * count[:, None] - 1)  # x^2n n!/(2n)!
    left = np.cumprod(np.concatenate([np.ones((1, share.size)), factors]), axis=0)
    return np.asarray(left @ share)


def gauss_count(left: FloatArray, tolerance: float) -> float:
    """Nodes of the Gauss rule whose error is within the tolerance, and two for the factors.

    Infinite where the errors end before that.
    """
    within = np.flatnonzero(left <= tolerance)
    return 2 + int(within[0]) if within.size else np.inf
