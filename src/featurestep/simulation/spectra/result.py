"""What `simulated_spectrum` returns: eigenvalues, spikes and overlaps by variant and seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...core.checks import one_of, positive
from ...core.display import Table
from ...core.errors import InvalidProblem
from ...core.problem import Problem
from ...core.spiked import Border
from ...core.types import FloatArray, xarray
from ..network.result import OverSeeds, error_of_mean, spread
from .plan import OF_WEIGHTS, WEIGHTS
from .singular import (
    Curve,
    MatrixSpectrum,
    Spikes,
    cumulative_curve,
    default_width,
    density_curve,
    find_spikes,
)

DEGREES = tuple(range(7))  # H_0(κ) … H_6(κ)
POWERS = tuple(range(1, 7))  # κ … κ⁶


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedSpectrum(OverSeeds):
    """Spectra of every variant and seed.

    For features F (n × N) eigenvalues are those of FᵀF/n and singular values those of F/√n; for
    weights W (N × d) they are those of WᵀW and of W. So an eigenvalue is always a squared
    singular value. Left singular vectors of features are compared with H_0(κ) … H_6(κ) and
    κ … κ⁶ over the sample, κ_i = x_i·β/‖β‖ with the draw's own β; each is scaled to unit length
    and none is centred. Right vectors of weights are compared with β and with the span of the
    target's directions, left ones with the readout a. All overlaps are squared.
    """

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "singular_value": "largest singular values of the first variant, means over the seeds",
        "singular_error": "their standard errors; NaN of one seed",
    }
    DIMS: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(MEANINGS, ("rank",))

    problem: Problem
    top: int  # singular values with vectors
    methods: Mapping[str, str]  # the route of each variant: dense or krylov
    borders: Mapping[str, Border]  # of the bulks, as given
    found: Mapping[str, tuple[MatrixSpectrum, ...]]  # by variant, one for each seed

    @property
    def singular_value(self) -> FloatArray:
        """Means over the seeds, (rank,)."""
        return np.asarray(self.singular_values().mean(axis=0))

    @property
    def singular_error(self) -> FloatArray:
        """Their standard errors, (rank,)."""
        return error_of_mean(self.singular_values())

    @property
    def coordinates(self) -> dict[str, Any]:
        """The ranks."""
        return {"rank": list(range(1, self.top + 1))}

    def as_dict(self) -> dict[str, Any]:
        """Largest singular values and overlaps of every variant and seed, ready for JSON."""
        found: dict[str, Any] = {}
        if self._kinds()["variant"]:
            name = self._kinds()["variant"][0]
            found["singular_values"] = self.singular_values(name).tolist()
            found["hermite_overlaps"] = self.hermite_overlaps(name).tolist()
        for name in self._kinds()["weight_variant"]:
            overlaps = self.direction_overlaps(name)
            found[name] = {
                "singular_values": self.singular_values(name).tolist(),
                "overlaps": {key: values.tolist() for key, values in overlaps.items()},
            }
        return {**self.taken(), "notes": list(map(str, self.notes)), **found}

    def tables(self) -> list[Table]:
        """The largest singular values of each variant, with what the features' vectors carry."""
        return [self._table(name) for name in self.variants]

    def _table(self, name: str) -> Table:
        header = ["variant", "rank", "singular_value"]
        rows = [[name, k + 1, spread(s)] for k, s in enumerate(self.singular_values(name).T)]
        if name not in OF_WEIGHTS:
            header += [f"H{k}" for k in DEGREES]
            for row, carried in zip(rows, self.hermite_overlaps(name).mean(axis=0), strict=True):
                row += [f"{share:.3f}" for share in carried]
        return Table.of(header, rows)

    def eigenvalues(self, variant: str | None = None) -> FloatArray:
        """All that the shape does not make 0, descending: (seeds, min(n, N)); dense route only."""
        name = self._name(variant)
        if self.methods[name] != "dense":
            rule = "must be dense for all eigenvalues; see cumulative and density for others"
            raise InvalidProblem("method", rule, self.methods[name])
        return np.stack([found.distribution.atoms for found in self.found[name]])

    def zeros(self, variant: str | None = None) -> int:
        """How many eigenvalues are 0 for the matrix's shape alone: N − n where N > n."""
        return self.found[self._name(variant)][0].distribution.zeros

    def singular_values(self, variant: str | None = None) -> FloatArray:
        """The largest, descending: (seeds, top)."""
        return np.sqrt(self._stack(variant, "top"))

    def hermite_overlaps(self, variant: str | None = None) -> FloatArray:
        """Squared overlaps of left vectors with H_0(κ) … H_6(κ): (seeds, top, 7)."""
        return self._stack(self._of_kind(variant, weights=False), "left")[..., : len(DEGREES)]

    def power_overlaps(self, variant: str | None = None) -> FloatArray:
        """Squared overlaps of left vectors with κ … κ⁶: (seeds, top, 6)."""
        return self._stack(self._of_kind(variant, weights=False), "left")[..., len(DEGREES) :]

    def direction_overlaps(self, variant: str = WEIGHTS) -> dict[str, FloatArray]:
        """Of weights, each (seeds, top): right vectors with `beta`, `target`; left with `readout`.

        With several directions `target` is the squared length of the projection on their span.
        """
        right = self._stack(self._of_kind(variant, weights=True), "right")
        left = self._stack(variant, "left")[..., 0]
        return {"beta": right[..., 0], "target": np.sum(right[..., 1:], axis=-1), "readout": left}

    def residuals(self, variant: str | None = None) -> FloatArray:
        """‖Av − λv‖/λ of the largest eigenpairs, (seeds, top); NaN for the dense route."""
        return self._stack(variant, "residual")

    def cumulative(self, x: Any, variant: str | None = None) -> Curve:
        """The share of eigenvalues ≤ x, zeros included: mean over seeds (and probes)."""
        points = _points(x)
        found = [one.distribution for one in self.found[self._name(variant)]]
        return cumulative_curve(found, points)

    def density(self, x: Any, variant: str | None = None, *, width: float | None = None) -> Curve:
        """The eigenvalues' density, smoothed by a Gaussian of standard deviation `width`.

        Without the zeros of `zeros`. By default the width is 2 % of the 99 % point.
        """
        points = _points(x)
        found = [one.distribution for one in self.found[self._name(variant)]]
        smooth = default_width(found) if width is None else positive("width", width)
        return density_curve(found, points, smooth)

    def spikes(
        self, variant: str | None = None, border: Border | None = None
    ) -> tuple[Spikes, ...]:
        """Of each seed, the eigenvalues beyond a border, by default the one that was given.

        It is where predicted eigenvalues begin to count as spikes, `spectrum(problem).border`. The
        Krylov route knows the largest eigenvalues only, `top` of them. Overlaps are those of left
        vectors: with H_0(κ) … H_6(κ), κ … κ⁶ for features, with the readout for weights.
        """
        name = self._name(variant)
        border = self.borders.get(name) if border is None else border
        if border is None:
            raise InvalidProblem("border", f"must be given for the spikes of {name}", None)
        dense = self.methods[name] == "dense"
        return tuple(
            find_spikes(
                found.distribution.atoms if dense else found.top,
                border,
                overlaps=found.left,
                complete=dense,
            )
            for found in self.found[name]
        )

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """Largest singular values and overlaps, and all eigenvalues of the dense route.

        Features have the dimension variant, weights weight_variant; then seed, rank and degree,
        power or index. Eigenvalues are descending.
        """
        coords: dict[str, Any] = {"seed": list(self.seeds), "rank": list(range(1, self.top + 1))}
        arrays: dict[str, Any] = {}
        for dim, names in self._kinds().items():
            if names:
                coords[dim] = names
                arrays.update(self._arrays(dim, names))
        if "hermite_overlap" in arrays:
            coords.update(degree=list(DEGREES), power=list(POWERS))
        attrs = {**self.record, "notes": "; ".join(self.notes) or "none"}
        return xarray.Dataset(arrays, coords, attrs=attrs)

    def __repr__(self) -> str:
        routes = ", ".join(f"{name} ({self.methods[name]})" for name in self.variants)
        return (
            f"SimulatedSpectrum of {routes}, {len(self.seeds)} seed(s): {self.flops:.3g} flops in "
            f"{self.wall_time:.3g} s"
        )

    def _arrays(self, dim: str, names: list[str]) -> dict[str, Any]:
        prefix = "" if dim == "variant" else "weight_"
        axes = (dim, "seed", "rank")

        def stack(read: Any) -> FloatArray:
            return np.stack([read(name) for name in names])

        out: dict[str, Any] = {f"{prefix}singular_value": (axes, stack(self.singular_values))}
        if dim == "variant":
            out["hermite_overlap"] = ((*axes, "degree"), stack(self.hermite_overlaps))
            out["power_overlap"] = ((*axes, "power"), stack(self.power_overlaps))
        else:
            for key in ("beta", "target", "readout"):
                overlap = stack(lambda name, key=key: self.direction_overlaps(name)[key])
                out[f"weight_{key}_overlap"] = (axes, overlap)
        if all(self.methods[name] == "dense" for name in names):
            out[f"{prefix}eigenvalue"] = ((dim, "seed", f"{prefix}index"), stack(self.eigenvalues))
        return out

    def _kinds(self) -> dict[str, list[str]]:
        return {
            "variant": [name for name in self.variants if name not in OF_WEIGHTS],
            "weight_variant": [name for name in self.variants if name in OF_WEIGHTS],
        }

    def _stack(self, variant: str | None, field: str) -> FloatArray:
        return np.stack([getattr(found, field) for found in self.found[self._name(variant)]])

    def _name(self, variant: str | None) -> str:
        """A variant of this result; the first by default."""
        return one_of("variant", self.variants[0] if variant is None else variant, self.variants)

    def _of_kind(self, variant: str | None, *, weights: bool) -> str:
        name = self._name(variant)
        if (name in OF_WEIGHTS) != weights:
            what = "weights or initial_weights" if weights else "a variant of the features"
            raise InvalidProblem("variant", f"must be {what} here", name)
        return name


def _points(x: Any) -> FloatArray:
    points = np.atleast_1d(np.asarray(x, dtype=np.float64))
    if points.ndim != 1 or not np.all(np.isfinite(points)):
        raise InvalidProblem("x", "must be finite numbers", x)
    return points
