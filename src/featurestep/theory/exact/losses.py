"""Losses of the readout: what a sample's own influence χ does to it, averaged over its output.

The output on a fresh sample is normal, ω ~ N(M, v), given κ, s and the label. On a training sample
it is the proximal point f̂ = argmin ℓ(y, f) + (f − ω)²/2χ, with g = (f̂ − ω)/χ and h = −∂g/∂ω. All
averages over ω are closed forms but those of the logistic loss, which are sums over a lattice.

Arrays have the axes (L, B, Q, S): labels (−1 and 1, or one for real labels), problems, κ and s.
What is left after the averages over labels and s has the axes (B, Q).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from ...core.types import FloatArray, IntArray
from ...functions.quadrature import LARGEST_NORMAL, normal_density, normal_law
from .dyson import matmul
from .label_rules import DIGITS, SIGNS, LabelRule

_SMALL_INFLUENCE = 0.05  # χ/√v below which differences over χ cancel
_FINEST, _COARSEST = 0.9, 0.75  # of the logistic lattice: in units of √v, and of the output
_REACH = 6.8  # standard deviations that a lattice covers
_LARGEST_LATTICE = 600  # points; beyond, every output has nodes of its own
_OWN_NODES: FloatArray = np.linspace(-8.1, 8.1, 19)
_PROX_ROUNDS, _PROX_STEP, _ROUGH_STEP = 100, 1e-5, 1e-2
_KERNEL = 200_000  # values of one kernel
_BUCKET = 30_000  # values that take as long as a call for a bucket more
_LARGEST_EXPONENT = 300.0  # in its geometric sequences
_FACTORS = 4  # highest power of s in averages of the Newton step
_MOST_NEAR = 0.4  # share of values near a bend, up to which it is faster to gather them
_LEVENBERG = 0.1
_CELLS = 24_000  # labels × nodes of κ × nodes of s × problems of a table
_PRODUCTS = np.array(  # (5, 9): s_a s_b, s_a among 1, s, s² − 1, are the sums of s^k times these
    [
        [1.0, 0.0, -1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0],
        [0.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0],
        [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, -2.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    ]
)


class Output(NamedTuple):
    """The law of the output on a fresh sample, and the label it is meant for."""

    label: FloatArray  # (L, 1 or B, 1 or Q, 1 or S) y, or its mean given κ and s for real labels
    mean: FloatArray  # (B, Q, S) M
    variance: FloatArray  # (B, Q, 1) v
    influence: FloatArray  # (B, Q, 1) χ
    noise: FloatArray  # (B or 1, 1, 1) σ_ε² of real labels

    def take(self, rows: Any) -> Output:
        """The same for some of the problems."""
        label = self.label if self.label.shape[1] == 1 else self.label[:, rows]
        noise = self.noise if len(self.noise) == 1 else self.noise[rows]
        return Output(label, self.mean[rows], self.variance[rows], self.influence[rows], noise)


class SampleAverages(NamedTuple):
    """SampleAverages over label, s and ω given κ, (B, Q, …)."""

    h: FloatArray  # ⟨h⟩
    g_square: FloatArray  # ⟨g²⟩
    curvature: FloatArray  # (B, Q, 9) ⟨h s_a s_b⟩ of the Newton step, s_a among 1, s, s² − 1
    force: FloatArray  # (B, Q, 3) ⟨g s_a⟩


class Proximal(NamedTuple):
    """SampleAverages over ω of g, h and g², (L, B, Q, S)."""

    g: FloatArray
    h: FloatArray
    g_square: FloatArray


class Measured(NamedTuple):
    """SampleAverages of losses and errors on fresh and on training samples.

    Over ω, (L, B, Q, S), or over label, s and ω given κ, (B, Q).
    """

    test_loss: FloatArray
    train_loss: FloatArray
    test_error: FloatArray
    train_error: FloatArray


class Loss(ABC):
    """One loss: averages for the fixed point, and losses and errors."""

    width: ClassVar[float] = 0.0  # of the range of outputs over which it bends
    strip: ClassVar[float] = 0.0  # imaginary part of ω up to which g and h are analytic and bounded
    is_quadratic: ClassVar[bool] = False  # in the output

    @abstractmethod
    def averages(self, labels: LabelRule, at: Output) -> SampleAverages:
        """SampleAverages of (75) and (76)."""

    @abstractmethod
    def measured(self, labels: LabelRule, at: Output) -> Measured:
        """SampleAverages of (84) and (85) given κ."""

    def errors(self, labels: LabelRule, at: Output) -> tuple[FloatArray, ...]:
        """Test and training error given κ."""
        return self.measured(labels, at)[2:]

    def bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        """Outputs |ω| at which the proximal map or the loss bends, for labels near 0 or ±1.

        SampleAverages over ω are as smooth as its law is wide there.
        """
        return np.zeros_like(chi), np.ones_like(chi), 1.0 + chi

    def error_bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        """Outputs |ω| at which an error bends, on fresh or on training samples."""
        return ()


class ClosedLoss(Loss):
    """A loss whose averages over ω are closed forms."""

    is_smooth: ClassVar[bool] = True  # False if h alone is a poor guess of the curvature

    @abstractmethod
    def proximal(self, at: Output) -> Proximal:
        """SampleAverages over ω of g, h and g² of (74)."""

    @abstractmethod
    def measured_given_s(self, at: Output) -> Measured:
        """SampleAverages over ω of (84) and (85)."""

    def averages(self, labels: LabelRule, at: Output) -> SampleAverages:
        cells = len(labels.weight) * at.mean[0].size
        size = max(1, _CELLS // cells)  # tables fit the processor's caches
        pieces = [slice(first, first + size) for first in range(0, len(at.mean), size)]
        parts = [self._averages(labels.take(rows), at.take(rows)) for rows in pieces]
        return SampleAverages(*map(np.concatenate, zip(*parts, strict=True)))

    def _averages(self, labels: LabelRule, at: Output) -> SampleAverages:
        found, weight = self.proximal(at), labels.weight
        h_weight = _over_labels(weight, found.h)  # (B, Q, S)
        plain = h_weight.sum(axis=2)
        if not self.is_smooth:  # the solution is the same
            more = _LEVENBERG / (1.0 + at.influence + np.sqrt(at.variance))
            h_weight += more * weight.sum(axis=0)
        force = _over_labels(weight, found.g)
        return SampleAverages(
            plain,
            _over_labels(weight, found.g_square).sum(axis=2),
            matmul(h_weight[:, :, None, :], labels.powers)[:, :, 0] @ _PRODUCTS,
            matmul(force[:, :, None, :], labels.basis)[:, :, 0],
        )

    def measured(self, labels: LabelRule, at: Output) -> Measured:
        each = self.measured_given_s(at)
        return Measured(*((labels.weight * values).sum(axis=(0, 3)) for values in each))


def _over_labels(weight: FloatArray, values: FloatArray) -> FloatArray:
    """The sum over labels, (B, Q, S)."""
    found: FloatArray = weight[0] * values[0]
    for share, value in zip(weight[1:], values[1:], strict=True):
        found += share * value
    return found


class _Moments(NamedTuple):
    """E 1(b > 0), E b₊ and E b₊² of b ~ N(m, σ²)."""

    e0: FloatArray
    e1: FloatArray
    e2: FloatArray


def _positive_part(m: FloatArray, sd: FloatArray) -> _Moments:
    """Moments of the positive part of a normal variable; in place, as most time goes here."""
    z = np.ascontiguousarray(m / sd)
    near = np.flatnonzero(np.abs(z) < LARGEST_NORMAL)
    if near.size > _MOST_NEAR * z.size:
        e0, e1 = normal_law(z)
        e1 += z * e0
    else:  # the others are positive, or negative
        e0, e1 = (z > 0.0).astype(np.float64), np.maximum(z, 0.0)
        some = z.ravel()[near]
        below, mean = normal_law(some)
        mean += some * below
        e0.ravel()[near], e1.ravel()[near] = below, mean
    z *= e1
    z += e0
    e1 *= sd
    z *= sd * sd
    return _Moments(e0, np.maximum(e1, 0.0, out=e1), np.maximum(z, 0.0, out=z))


class Square(ClosedLoss):
    """½(y − f)²."""

    is_quadratic = True

    def proximal(self, at: Output) -> Proximal:
        c = 1.0 / (1.0 + at.influence)
        missed = at.label - at.mean
        square = missed**2 + at.variance + at.noise
        return Proximal(c * missed, np.broadcast_to(c, missed.shape), c * c * square)

    def measured_given_s(self, at: Output) -> Measured:
        square = (at.label - at.mean) ** 2 + at.variance + at.noise
        train = square / (1.0 + at.influence) ** 2
        return Measured(0.5 * square, 0.5 * train, square, train)


class Huber(ClosedLoss):
    """½u² for |u| = |y − f| ≤ 1, |u| − ½ beyond."""

    def proximal(self, at: Output) -> Proximal:
        c = 1.0 / (1.0 + at.influence)
        mean, sd = at.label - at.mean, np.sqrt(at.variance + at.noise)
        above, below, inner = _huber_parts(mean, sd, 1.0 + at.influence)
        return Proximal(
            c * (mean - above.e1 + below.e1), c * (1.0 - above.e0 - below.e0), c * c * inner
        )

    def measured_given_s(self, at: Output) -> Measured:
        c = 1.0 / (1.0 + at.influence)
        mean, sd = at.label - at.mean, np.sqrt(at.variance + at.noise)
        above, below, inner = _huber_parts(mean, sd, np.ones_like(at.influence))
        test = 0.5 * inner + above.e1 + below.e1
        above, below, inner = _huber_parts(mean, sd, 1.0 + at.influence)
        tail = above.e1 + below.e1
        outside = above.e2 + below.e2 + 2.0 * tail
        return Measured(
            test_loss=test,
            train_loss=0.5 * c * c * inner + tail,
            test_error=mean**2 + sd**2,
            train_error=c * c * inner + outside,
        )


def _huber_parts(
    mean: FloatArray, sd: FloatArray, bound: FloatArray
) -> tuple[_Moments, _Moments, FloatArray]:
    """Tails of u ~ N(mean, sd²) above the bound and below its negative, and E min(u², bound²)."""
    above, below = _positive_part(mean - bound, sd), _positive_part(-mean - bound, sd)
    tails = above.e2 + below.e2 + 2.0 * bound * (above.e1 + below.e1)
    return above, below, np.maximum(mean**2 + sd**2 - tails, 0.0)


class MarginLoss(Loss):
    """A loss of the margin a = yf, of labels ±1."""

    slope_at_zero: ClassVar[float]  # |ℓ′(0)|

    def error_bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        return np.zeros_like(chi), self.slope_at_zero * chi

    def errors(self, labels: LabelRule, at: Output) -> tuple[FloatArray, ...]:
        found = self.errors_given_s(at.label * at.mean, at)
        return tuple((labels.weight * each).sum(axis=(0, 3)) for each in found)

    def errors_given_s(self, m: FloatArray, at: Output) -> tuple[FloatArray, FloatArray]:
        """Shares of wrong signs, of fresh margins ~ N(m, v) and of training samples."""
        sd = np.sqrt(at.variance)
        pushed = m + at.influence * self.slope_at_zero  # yf̂ < 0 below −χ|ℓ′(0)|
        return special.ndtr(-m / sd), special.ndtr(-pushed / sd)


class ClosedMarginLoss(MarginLoss, ClosedLoss):
    """A loss of the margin whose averages over ω are closed forms."""

    @abstractmethod
    def margin_proximal(self, m: FloatArray, at: Output) -> Proximal:
        """SampleAverages of yg, h and g² for a fresh margin ~ N(m, v)."""

    @abstractmethod
    def margin_losses(self, m: FloatArray, at: Output) -> tuple[FloatArray, FloatArray]:
        """SampleAverages of the loss on fresh and on training samples."""

    def proximal(self, at: Output) -> Proximal:
        found = self.margin_proximal(at.label * at.mean, at)
        return found._replace(g=np.multiply(at.label, found.g, out=found.g))

    def measured_given_s(self, at: Output) -> Measured:
        m = at.label * at.mean
        return Measured(*self.margin_losses(m, at), *self.errors_given_s(m, at))


class SquareSigns(ClosedMarginLoss):
    """½(y − f)² = ½(1 − yf)²."""

    slope_at_zero = 1.0

    def bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        return ()

    def margin_proximal(self, m: FloatArray, at: Output) -> Proximal:
        c = 1.0 / (1.0 + at.influence)
        square = (1.0 - m) ** 2 + at.variance
        return Proximal(c * (1.0 - m), np.broadcast_to(c, m.shape), c * c * square)

    def margin_losses(self, m: FloatArray, at: Output) -> tuple[FloatArray, FloatArray]:
        square = 0.5 * ((1.0 - m) ** 2 + at.variance)
        return square, square / (1.0 + at.influence) ** 2


class SquaredHinge(ClosedMarginLoss):
    """½(1 − yf)₊² (eq. 87)."""

    slope_at_zero = 1.0

    def bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        return (np.ones_like(chi),)

    def margin_proximal(self, m: FloatArray, at: Output) -> Proximal:
        c = 1.0 / (1.0 + at.influence)
        e = _positive_part(1.0 - m, np.sqrt(at.variance))
        return Proximal(c * e.e1, c * e.e0, c * c * e.e2)

    def margin_losses(self, m: FloatArray, at: Output) -> tuple[FloatArray, FloatArray]:
        e = _positive_part(1.0 - m, np.sqrt(at.variance))
        return 0.5 * e.e2, 0.5 * e.e2 / (1.0 + at.influence) ** 2


class Hinge(ClosedMarginLoss):
    """(1 − yf)₊."""

    is_smooth = False
    slope_at_zero = 1.0

    def bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        return np.ones_like(chi), np.abs(1.0 - chi)

    def margin_proximal(self, m: FloatArray, at: Output) -> Proximal:
        chi, sd = at.influence, np.sqrt(at.variance)
        small = (chi < _SMALL_INFLUENCE * sd)[..., 0]  # (B, Q)
        parts = ((small, _hinge_by_series), (~small, _hinge))
        for nodes, method in parts:
            if nodes.all():
                return method(1.0 - m, chi, sd)
        found = Proximal(*(np.empty_like(m) for _ in Proximal._fields))
        for nodes, method in parts:
            each = method(1.0 - m[:, nodes], chi[nodes], sd[nodes])
            for whole, part in zip(found, each, strict=True):
                whole[:, nodes] = part
        return found

    def margin_losses(self, m: FloatArray, at: Output) -> tuple[FloatArray, FloatArray]:
        sd = np.sqrt(at.variance)
        return _positive_part(1.0 - m, sd).e1, _positive_part(1.0 - m - at.influence, sd).e1


def _hinge(b: FloatArray, chi: FloatArray, sd: FloatArray) -> Proximal:
    """SampleAverages of the hinge for 1 − a ~ N(b, σ²); in place."""
    (h, g, g_square), beyond = _positive_part(b, sd), _positive_part(b - chi, sd)
    for found, part in zip((h, g, g_square), beyond, strict=True):
        found -= part
        found /= chi
    g_square -= np.multiply(beyond.e1, 2.0, out=beyond.e1)
    g_square /= chi
    return Proximal(g, h, g_square)


def _hinge_by_series(b: FloatArray, chi: FloatArray, sd: FloatArray) -> Proximal:
    """The same at small ε = χ/σ, where the differences cancel.

    g and g² are averages over u in [0, 1] of Φ and 2uΦ at (b − χu)/σ, h of φ/σ: powers of ε up to
    the fifth, about u = ½.
    """
    step = chi / sd
    z = (b - 0.5 * chi) / sd
    below, density, square = special.ndtr(z), normal_density(z), z * z
    second, fourth = step**2 / 24.0, step**4 / 1920.0
    fifth = (square - 6.0) * square + 3.0  # Φ⁽⁵⁾/φ
    g = below - density * z * (second + fourth * (square - 3.0))
    h = density * (1.0 + second * (square - 1.0) + fourth * fifth) / sd
    odd = 1.0 + step**2 / 40.0 * (square - 1.0) + step**4 / 4480.0 * fifth
    return Proximal(g, h, g - density * step / 6.0 * odd)


class Logistic(MarginLoss):
    """log(1 + e^{−yf})."""

    slope_at_zero = 0.5
    width = 1.8
    strip = 0.8 * np.pi  # of π, where they have poles if χ = 0

    def bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        return np.zeros_like(chi), 0.5 * chi

    def averages(self, labels: LabelRule, at: Output) -> SampleAverages:
        g, h, g_square = smoothed(_logistic_proximal, labels, at)  # (B, Q, 5) each
        force = g[..., :3] @ _PRODUCTS[:3, :3]
        return SampleAverages(h[..., 0], g_square[..., 0], h @ _PRODUCTS, force)

    def measured(self, labels: LabelRule, at: Output) -> Measured:
        test, train = smoothed(_logistic_losses, labels, at, powers=1)[..., 0]
        return Measured(test, train, *self.errors(labels, at))


def _logistic_proximal(y: FloatArray, a: FloatArray, chi: FloatArray) -> FloatArray:
    """g, h and g² of the logistic loss at y and margins a (nodes, L, …), (nodes, 3, L, …)."""
    e = _logistic_point(a, chi)[1]
    found = np.empty((len(e), 3, *e.shape[1:]))
    np.multiply(y, e, out=found[:, 0])
    np.multiply(e, e, out=found[:, 2])
    curvature = np.subtract(e, found[:, 2], out=e)
    np.divide(curvature, 1.0 + chi * curvature, out=found[:, 1])
    return found


def _logistic_losses(_: FloatArray, a: FloatArray, chi: FloatArray) -> FloatArray:
    """The logistic loss at fresh margins a and at their proximal points, (nodes, 2, L, …)."""
    margins = np.stack([a, logistic_prox(a, chi)], axis=1)
    found = np.log1p(np.exp(-np.abs(margins)))
    found += np.maximum(-margins, 0.0)
    return np.asarray(found)


def logistic_prox(a: FloatArray, chi: FloatArray) -> FloatArray:
    """z = a + χ/(1 + e^z), the proximal point of the logistic loss (eq. 74).

    Halley's method in a bracket, all rounds but the last in single precision: 2 for χ ≤ 3, 4 for
    χ = 1000, 8 for χ = 10⁶.
    """
    return _logistic_point(a, chi)[0]


def _logistic_point(a: FloatArray, chi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same, and 1/(1 + e^z) there."""
    with np.errstate(over="ignore"):  # of e^z, whose inverse is 0 then
        start = _rough_point(a.astype(np.float32), chi.astype(np.float32))
        z, e, step = _halley(start.astype(np.float64), a, chi, a, a + chi, last=_PROX_STEP)
    e += e * (1.0 - e) * step * (1.0 + (0.5 - e) * step)
    return z, e


def _rough_point(a: Any, chi: Any) -> Any:
    """z in single precision."""
    one = np.float32(1.0)
    half = a + np.float32(0.5) * chi
    low = np.maximum(a, np.minimum(np.float32(0.0), half))  # a, for a > 0
    pull = np.exp(low)
    pull += one
    np.divide(chi, pull, out=pull)
    slope = one + np.float32(0.25) * chi
    start = np.where(a > 0.0, a * slope + pull, half)
    start /= slope
    pull += a
    return _halley(start, a, chi, low, pull, last=_ROUGH_STEP)[0]


def _halley(
    z: Any, a: Any, chi: Any, low: Any, high: Any, *, last: float
) -> tuple[Any, FloatArray, FloatArray]:
    """z, 1/(1 + e^z) before the last step, and that step, the first one shorter than `last`."""
    for _ in range(_PROX_ROUNDS):
        np.maximum(z, low, out=z)
        np.minimum(z, high, out=z)
        e = np.exp(z)
        e += 1.0
        np.divide(1.0, e, out=e)  # SciPy's expit takes five times as long
        bend = e * (1.0 - e)
        bend *= chi  # f′ − 1, for f = z − a − χe
        slope = 1.0 + bend
        step = z - a
        step -= chi * e
        step /= slope
        bend *= 1.0 - 2.0 * e
        bend /= slope
        bend *= step
        bend *= 0.5
        bend += 1.0
        step /= bend
        z -= step
        if not max(step.max(initial=0.0), -step.min(initial=0.0)) > last:
            break  # the next one is its cube
    return z, e, step


def smoothed(
    functions: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    labels: LabelRule,
    at: Output,
    powers: int = _FACTORS + 1,
) -> FloatArray:
    """Averages over ω, s and labels of functions of (y, yω, χ), (fields, B, Q, P) (eq. 88).

    Times s^k, k < P = `powers`. By the trapezoidal rule on one lattice for each κ, which serves
    every s and both labels: the functions are analytic in a strip of width π whatever χ. Steps are
    longer where κ is improbable, and nodes of s that do not matter there are left out.
    """
    rows, count, points = at.mean.shape
    place = at.mean.reshape(rows * count, points)
    sd, chi = np.sqrt(at.variance).reshape(-1, 1), at.influence.reshape(-1, 1)
    longer = np.sqrt(DIGITS / labels.needed_digits)[:, None]
    spacing = np.minimum(_FINEST * sd.reshape(rows, count, 1) * longer, _COARSEST * longer**2)
    reach = _REACH * sd / np.tile(longer, (rows, 1))
    spacing, ends = spacing.reshape(-1, 1), np.tile(labels.reach, (rows, 1))
    low, high = _extremes(at.mean, labels.reach)
    first, last = np.floor((low - reach) / spacing), np.ceil((high + reach) / spacing)
    needed = (last - first)[:, 0] + 1.0
    weights = np.moveaxis(labels.weight, 0, 2).reshape(-1, *labels.weight.shape[::3])  # (·, L, S)
    power_of = labels.powers[0, 0, :, :powers]
    y = SIGNS[:, None]
    found: list[FloatArray] = []
    members: list[IntArray] = []
    for now, size in _buckets(needed, ends[:, 1] - ends[:, 0]):
        begin, end = int(ends[now, 0].min()), int(ends[now, 1].max())
        share, m = weights[now % len(weights), :, begin:end], place[now, begin:end]
        own_chi = chi[now][..., None]
        if size > _LARGEST_LATTICE:
            nodes = m[..., None] + sd[now][..., None] * _OWN_NODES  # (nodes, S, J)
            weight = normal_density(_OWN_NODES)
            values = functions(y[..., None], y[..., None] * nodes[:, None], own_chi[..., None])
            values = values @ (weight / weight.sum())
        else:
            lattice = spacing[now] * (first[now] + np.arange(size))  # (nodes, J)
            kernel, norm = _kernel(lattice, m, sd[now])
            values = functions(y, y * lattice[:, None], own_chi)  # (nodes, fields, L, J)
            norm *= spacing[now] / (sd[now] * np.sqrt(2.0 * np.pi))
            values *= norm[:, None, None]
            values = matmul(values.reshape(now.size, -1, size), kernel)  # (nodes, fields L, S)
        values = values.reshape(now.size, -1, *share.shape[1:])  # (nodes, fields, L, S)
        each = values[:, :, 0] * share[:, None, 0]
        each += values[:, :, 1] * share[:, None, 1]
        found.append(each @ power_of[begin:end])
        members.append(now)
    whole = np.empty((rows * count, *found[0].shape[1:]))
    whole[np.concatenate(members)] = np.concatenate(found)
    return np.moveaxis(whole.reshape(rows, count, *whole.shape[1:]), 2, 0)


def _extremes(mean: FloatArray, reach: IntArray) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest of M over the nodes of s that matter, (B Q, 1) each."""
    node = np.arange(mean.shape[2])
    kept = (node >= reach[:, :1]) & (node < reach[:, 1:])
    low, high = np.where(kept, mean, np.inf).min(axis=2), np.where(kept, mean, -np.inf).max(axis=2)
    return low.reshape(-1, 1), high.reshape(-1, 1)


def _kernel(
    lattice: FloatArray, place: FloatArray, sd: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """A (rows, J, S) and b (rows, J), A_js b_j = e^{−(x_j − m_s)²/2v} of lattices x and places m.

    On a lattice A_js is a geometric sequence in j: far fewer exponentials.
    """
    size = lattice.shape[1]
    x = (lattice - lattice[:, size // 2, None]) / sd
    m = (place - lattice[:, size // 2, None]) / sd
    if not (np.abs(x).max(axis=1) * np.abs(m).max(axis=1)).max() < _LARGEST_EXPONENT:
        kernel = x[:, :, None] - m[:, None, :]
        kernel *= kernel
        kernel *= -0.5
        return np.exp(kernel, out=kernel), np.ones_like(x)
    kernel, spacing, known = np.empty((size, *m.shape)), x[:, 1:2] - x[:, :1], 1
    np.exp((x[:, :1] - 0.5 * m) * m, out=kernel[0])
    while known < size:
        ratio = np.exp(known * spacing * m)
        np.multiply(kernel[: size - known][:known], ratio, out=kernel[known : 2 * known])
        known *= 2
    return kernel.transpose(1, 0, 2), np.exp(-0.5 * x * x)


def _buckets(needed: FloatArray, points: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Nodes of lattices of similar lengths, with the longest of them; too long ones at last.

    Kernels of one bucket, of `points` values for each place of a lattice, fit the processor's
    cache; it is as large as what shorter ones cost more in it is less than another bucket.
    """
    order = np.argsort(needed * points)
    far = needed[order] > _LARGEST_LATTICE
    order, beyond = order[~far], order[far]
    while order.size:
        size = needed[order] * points[order]
        every = size * np.arange(1, size.size + 1)
        fits = (every <= _KERNEL) & (every - np.cumsum(size) <= _BUCKET)
        count = max(1, int(np.count_nonzero(fits)))
        yield order[:count], int(needed[order[:count]].max())
        order = order[count:]
    if beyond.size:
        yield beyond, _LARGEST_LATTICE + 1


LOSSES: dict[str, Loss] = {
    "square": Square(),
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
    "hinge": Hinge(),
    "square_signs": SquareSigns(),
    "huber": Huber(),
}
