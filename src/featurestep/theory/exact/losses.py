"""Losses of the readout: what a sample's own influence χ does to it, averaged over its output.

The output on a fresh sample is normal, ω ~ N(M, v), given κ, s and the label. On a training sample
it is the proximal point f̂ = argmin ℓ(y, f) + (f − ω)²/2χ, with g = (f̂ − ω)/χ and h = −∂g/∂ω. All
averages over ω are closed forms but those of the logistic loss, which are sums over a lattice.

Arrays have the axes (L, B, Q, S): labels (−1 and 1, or one for real labels), problems, κ and s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from ...core.types import FloatArray, IntArray
from ...functions.quadrature import gauss_legendre, normal_density
from .dyson import matmul

SIGNS = np.array([-1.0, 1.0])  # of labels, in the order of the first axis
_SMALL_INFLUENCE = 0.05  # χ/√v below which differences over χ cancel
_SMALL_NODES = 4
_FINEST, _COARSEST = 0.9, 0.75  # of the logistic lattice: in units of √v, and of the output
_REACH = 6.8  # standard deviations that a lattice covers
_LARGEST_LATTICE = 600  # points; beyond, every output has nodes of its own
_OWN_NODES: FloatArray = np.linspace(-8.1, 8.1, 19)
_PROX_ROUNDS, _PROX_STEP = 100, 1e-5
_KERNEL = 200_000


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


class Proximal(NamedTuple):
    """Averages over ω of g, h and g², (L, B, Q, S)."""

    g: FloatArray
    h: FloatArray
    g_square: FloatArray


class Measured(NamedTuple):
    """Averages over ω of losses and errors on fresh and on training samples, (L, B, Q, S)."""

    test_loss: FloatArray
    train_loss: FloatArray
    test_error: FloatArray
    train_error: FloatArray


class Loss(ABC):
    """One loss: proximal averages, and losses and errors."""

    width: ClassVar[float] = 0.0  # of the range of outputs over which it bends
    strip: ClassVar[float] = 0.0  # imaginary part of ω up to which g and h are analytic and bounded
    is_quadratic: ClassVar[bool] = False  # in the output
    is_smooth: ClassVar[bool] = True  # False if h alone is a poor guess of the curvature

    @abstractmethod
    def proximal(self, at: Output) -> Proximal:
        """Averages of g, h and g² of (74)."""

    @abstractmethod
    def measured(self, at: Output) -> Measured:
        """Averages of (84) and (85)."""

    def bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        """Outputs |ω| at which the proximal map or the loss bends, for labels near 0 or ±1.

        Averages over ω are as smooth as its law is wide there.
        """
        return np.zeros_like(chi), np.ones_like(chi), 1.0 + chi

    def error_bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        """Outputs |ω| at which an error bends, on fresh or on training samples."""
        return ()


class _Moments(NamedTuple):
    """E 1(b > 0), E b₊ and E b₊² of b ~ N(m, σ²)."""

    e0: FloatArray
    e1: FloatArray
    e2: FloatArray


def _positive_part(m: FloatArray, sd: FloatArray) -> _Moments:
    """Moments of the positive part of a normal variable; in place, as most time goes here."""
    z = m / sd
    e0 = special.ndtr(z)
    z *= z
    z *= -0.5
    e1 = np.exp(z, out=z)
    e1 *= sd / np.sqrt(2.0 * np.pi)
    e1 += m * e0
    e2 = m * e1
    e2 += sd * sd * e0
    return _Moments(e0, np.maximum(e1, 0.0, out=e1), np.maximum(e2, 0.0, out=e2))


class Square(Loss):
    """½(y − f)²."""

    is_quadratic = True

    def proximal(self, at: Output) -> Proximal:
        c = 1.0 / (1.0 + at.influence)
        missed = at.label - at.mean
        square = missed**2 + at.variance + at.noise
        return Proximal(c * missed, np.broadcast_to(c, missed.shape), c * c * square)

    def measured(self, at: Output) -> Measured:
        square = (at.label - at.mean) ** 2 + at.variance + at.noise
        train = square / (1.0 + at.influence) ** 2
        return Measured(0.5 * square, 0.5 * train, square, train)


class Huber(Loss):
    """½u² for |u| = |y − f| ≤ 1, |u| − ½ beyond."""

    def proximal(self, at: Output) -> Proximal:
        c = 1.0 / (1.0 + at.influence)
        mean, sd = at.label - at.mean, np.sqrt(at.variance + at.noise)
        above, below, inner = _huber_parts(mean, sd, 1.0 + at.influence)
        return Proximal(
            c * (mean - above.e1 + below.e1), c * (1.0 - above.e0 - below.e0), c * c * inner
        )

    def measured(self, at: Output) -> Measured:
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

    @abstractmethod
    def margin_proximal(self, m: FloatArray, at: Output) -> Proximal:
        """Averages of yg, h and g² for a fresh margin ~ N(m, v)."""

    @abstractmethod
    def margin_losses(self, m: FloatArray, at: Output) -> tuple[FloatArray, FloatArray]:
        """Averages of the loss on fresh and on training samples."""

    def proximal(self, at: Output) -> Proximal:
        found = self.margin_proximal(at.label * at.mean, at)
        return found._replace(g=at.label * found.g)

    def measured(self, at: Output) -> Measured:
        m, sd = at.label * at.mean, np.sqrt(at.variance)
        test, train = self.margin_losses(m, at)
        pushed = m + at.influence * self.slope_at_zero  # yf̂ < 0 below −χ|ℓ′(0)|
        return Measured(test, train, special.ndtr(-m / sd), special.ndtr(-pushed / sd))


class SquareSigns(MarginLoss):
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


class SquaredHinge(MarginLoss):
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


class Hinge(MarginLoss):
    """(1 − yf)₊."""

    is_smooth = False
    slope_at_zero = 1.0

    def bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        return np.ones_like(chi), np.abs(1.0 - chi)

    def margin_proximal(self, m: FloatArray, at: Output) -> Proximal:
        chi, sd = at.influence, np.sqrt(at.variance)
        e, beyond = _positive_part(1.0 - m, sd), _positive_part(1.0 - m - chi, sd)
        found = Proximal(
            (e.e1 - beyond.e1) / chi,
            (e.e0 - beyond.e0) / chi,
            (e.e2 - beyond.e2 - 2.0 * chi * beyond.e1) / chi**2,
        )
        small = (chi < _SMALL_INFLUENCE * sd)[..., 0]  # (B, Q)
        if np.any(small):
            for whole, part in zip(
                found, _hinge_by_nodes(1.0 - m[:, small], chi[small], sd[small]), strict=True
            ):
                whole[:, small] = part
        return found

    def margin_losses(self, m: FloatArray, at: Output) -> tuple[FloatArray, FloatArray]:
        sd = np.sqrt(at.variance)
        return _positive_part(1.0 - m, sd).e1, _positive_part(1.0 - m - at.influence, sd).e1


def _hinge_by_nodes(b: FloatArray, chi: FloatArray, sd: FloatArray) -> Proximal:
    """The hinge at small χ: integrals over u in [0, 1] of Φ and φ at (b − χu)/σ."""
    x, w = gauss_legendre(_SMALL_NODES)
    g, h, g_square = (np.zeros_like(b) for _ in range(3))
    for u, weight in zip(0.5 * (1.0 + x), 0.5 * w, strict=True):
        z = (b - chi * u) / sd
        below = special.ndtr(z)
        g += weight * below
        g_square += weight * 2.0 * u * below
        h += weight * normal_density(z) / sd
    return Proximal(g, h, g_square)


class Logistic(MarginLoss):
    """log(1 + e^{−yf})."""

    slope_at_zero = 0.5
    width = 1.8
    strip = 0.8 * np.pi  # of π, where they have poles if χ = 0

    def bends(self, chi: FloatArray) -> tuple[FloatArray, ...]:
        return np.zeros_like(chi), 0.5 * chi

    def margin_proximal(self, m: FloatArray, at: Output) -> Proximal:
        return Proximal(*smoothed(_logistic_proximal, m, at))

    def margin_losses(self, m: FloatArray, at: Output) -> tuple[FloatArray, FloatArray]:
        test, train = smoothed(_logistic_losses, m, at)
        return test, train


def _logistic_proximal(a: FloatArray, chi: FloatArray) -> FloatArray:
    """g, h and g² of the logistic loss at margins a, (3, *shape)."""
    e = _logistic_point(a, chi)[1]
    curvature = e * (1.0 - e)
    return np.stack([e, curvature / (1.0 + chi * curvature), e * e])


def _logistic_losses(a: FloatArray, chi: FloatArray) -> FloatArray:
    """The logistic loss at fresh margins a and at their proximal points, (2, *shape)."""
    return np.stack([np.logaddexp(0.0, -a), np.logaddexp(0.0, -logistic_prox(a, chi))])


def logistic_prox(a: FloatArray, chi: FloatArray) -> FloatArray:
    """z = a + χ/(1 + e^z), the proximal point of the logistic loss (eq. 74).

    Halley's method in a bracket: 2 rounds for χ ≤ 3, 4 for χ = 1000, 8 for χ = 10⁶.
    """
    return _logistic_point(a, chi)[0]


def _logistic_point(a: FloatArray, chi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same, and 1/(1 + e^z) there."""
    half = a + 0.5 * chi
    low = np.maximum(a, np.minimum(0.0, half))  # a, for a > 0
    pull = chi * special.expit(-low)
    high = a + pull
    z = np.where(a > 0.0, a * (1.0 + 0.25 * chi) + pull, half) / (1.0 + 0.25 * chi)
    for _ in range(_PROX_ROUNDS):
        np.maximum(z, low, out=z)
        np.minimum(z, high, out=z)
        e = special.expit(-z)
        curvature = e * (1.0 - e)
        bend = chi * curvature  # f′ − 1, for f = z − a − χe
        slope = 1.0 + bend
        step = (z - a - chi * e) / slope
        step /= 1.0 + 0.5 * step * bend * (1.0 - 2.0 * e) / slope
        z -= step
        if not max(step.max(initial=0.0), -step.min(initial=0.0)) > _PROX_STEP:
            break  # the next one is its cube
    e += curvature * step * (1.0 + (0.5 - e) * step)
    return z, e


def smoothed(
    functions: Callable[[FloatArray, FloatArray], FloatArray], m: FloatArray, at: Output
) -> FloatArray:
    """Averages of functions of (a, χ) over a ~ N(m, v), (fields, L, B, Q, S) (eq. 88).

    By the trapezoidal rule on one lattice for each κ, which serves every s and both labels: the
    functions are analytic in a strip of width π whatever χ. The label −1 has the kernel of the
    label 1, and the functions at −a.
    """
    labels, rows, count, points = m.shape
    place = m[-1].reshape(rows * count, points)  # y = 1
    sd, chi = np.sqrt(at.variance).reshape(-1, 1), at.influence.reshape(-1, 1)
    spacing = np.minimum(_FINEST * sd, _COARSEST)
    first = np.floor((place.min(axis=1, keepdims=True) - _REACH * sd) / spacing)
    last = np.ceil((place.max(axis=1, keepdims=True) + _REACH * sd) / spacing)
    needed = (last - first)[:, 0] + 1.0
    found = np.empty((labels, rows * count, points, len(functions(np.zeros(1), np.ones(1)))))
    for now, size in _buckets(needed, points):
        if size > _LARGEST_LATTICE:
            own = sd[now][..., None] * _OWN_NODES
            weight = normal_density(_OWN_NODES)
            for y, out in zip(SIGNS, found, strict=True):
                values = functions(y * place[now][..., None] + own, chi[now][..., None])
                out[now] = np.moveaxis(values @ (weight / weight.sum()), 0, -1)
            continue
        lattice = spacing[now] * (first[now] + np.arange(size))  # (rows, J)
        width = 1.0 / (np.sqrt(2.0) * sd[now])
        kernel = (lattice * width)[:, None, :] - (place[now] * width)[:, :, None]
        kernel *= kernel
        np.negative(kernel, out=kernel)
        np.exp(kernel, out=kernel)
        weight = spacing[now] / (sd[now] * np.sqrt(2.0 * np.pi))
        both = functions(SIGNS[:, None, None] * lattice, chi[now])  # (fields, 2, rows, J)
        sums = matmul(kernel, (both * weight).transpose(2, 3, 1, 0).reshape(*lattice.shape, -1))
        found[:, now] = np.moveaxis(sums.reshape(*sums.shape[:2], 2, -1), 2, 0)
    return np.moveaxis(found, -1, 0).reshape(-1, *m.shape)


def _buckets(needed: FloatArray, points: int) -> Iterator[tuple[IntArray, int]]:
    """Rows of lattices of similar lengths, with the longest of them, up to the largest lattice.

    Kernels of one bucket, of `points` values a row, fit the processor's cache.
    """
    order = np.argsort(needed)
    while order.size:
        most = min(1.5 * needed[order[0]], _LARGEST_LATTICE)
        count = max(int(np.searchsorted(needed[order], most, side="right")), 1)
        if needed[order[0]] > _LARGEST_LATTICE:
            count = order.size
        else:
            count = max(1, min(count, int(_KERNEL / (points * needed[order[0]]))))
        yield order[:count], int(needed[order[count - 1]])
        order = order[count:]


LOSSES: dict[str, Loss] = {
    "square": Square(),
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
    "hinge": Hinge(),
    "square_signs": SquareSigns(),
    "huber": Huber(),
}
