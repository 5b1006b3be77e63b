"""Laws of drawn rows: of their entries, and the shape of the inputs' cloud.

Entries come from NumPy's generators, or from pairs of uniforms. Every law of inputs has mean 0
and variance 1 in each coordinate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.checks import readable
from ...core.errors import InvalidProblem
from ...core.types import FloatArray
from ..arrays.philox import TAU, Array, Pair, Transform, normals

ROOT_THREE = 3.0**0.5
_MIXTURE = re.compile(r"mixture\(\s*(?:([0-9]+)\s*,\s*)?([0-9.eE+-]+)\s*\)")


@dataclass(frozen=True)
class RowLaw:
    """How the entries of a row are drawn, and to which length the row is then scaled."""

    name: str = "gaussian"  # or rademacher, uniform, student_t, corruption
    df: float = 0.0  # of student_t
    length: float | None = None  # of every row; None leaves it
    scale: float = 1.0

    def fill(self, generator: np.random.Generator, out: FloatArray) -> None:
        """Some rows, by NumPy."""
        if self.name == "gaussian":
            generator.standard_normal(out=out)
        elif self.name == "rademacher":
            out[:] = 2.0 * generator.integers(0, 2, out.shape) - 1.0
        elif self.name == "uniform":
            out[:] = generator.uniform(-ROOT_THREE, ROOT_THREE, out.shape)
        elif self.name == "corruption":
            generator.standard_normal(out=out)
            out[:, 0] = generator.random(len(out))
        else:
            out[:] = generator.standard_t(self.df, out.shape) * self._student_scale
        if self.length is not None:
            out *= self.length / np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]
        if self.scale != 1.0:
            out *= self.scale

    def finish(self, torch: Any, out: Array) -> None:
        """The same scaling, of a tensor; a corruption's first column becomes uniform."""
        if self.name == "corruption":
            out[..., 0] = torch.special.ndtr(out[..., 0])
        if self.length is not None:
            squares = torch.linalg.vector_norm(out, dim=-1, keepdim=True, dtype=torch.float64)
            out.mul_((self.length / squares).to(out.dtype))
        if self.scale != 1.0:
            out.mul_(self.scale)

    @property
    def transform(self) -> Transform:
        """Two entries from two uniforms."""
        laws: dict[str, Transform] = {
            "gaussian": normals,
            "rademacher": _signs,
            "uniform": _uniform,
            "corruption": normals,
            "student_t": self._student,
        }
        return laws[self.name]

    @property
    def _student_scale(self) -> float:
        return float(((self.df - 2.0) / self.df) ** 0.5)

    def _student(self, torch: Any, u: Array, v: Array) -> Pair:
        """Bailey's polar form: exact for every df. Of its two numbers, which depend on each other,
        one is taken.
        """
        radius = torch.sqrt(self.df * torch.expm1(-2.0 / self.df * torch.log(u)))
        return radius * torch.cos(TAU * v) * self._student_scale, None


def _signs(torch: Any, u: Array, v: Array) -> Pair:
    return 2.0 * (u > 0.5) - 1.0, 2.0 * (v >= 0.5) - 1.0


def _uniform(torch: Any, u: Array, v: Array) -> Pair:
    return ROOT_THREE * (2.0 * u - 1.0), ROOT_THREE * (2.0 * v - 1.0)


NORMAL = RowLaw()
CORRUPTION = RowLaw("corruption")  # a uniform number, then normals


def law_of_inputs(law: tuple[str, float] | None, d: int) -> RowLaw:
    """The law behind a setting's inputs; an array's rows are not drawn."""
    name, df = law or ("gaussian", 0.0)
    return RowLaw(length=d**0.5) if name == "sphere" else RowLaw(name, df)


def law_of_initial(initial: str, d: int) -> RowLaw:
    """The first layer's rows: of norm 1, or N(0, I/d) (theory, section 1)."""
    return RowLaw(length=1.0) if initial == "sphere" else RowLaw(scale=1.0 / d**0.5)


def parse_mixture(inputs: str) -> tuple[int, float] | None:
    """Clusters and separation behind `mixture(K, s)` or `mixture(s)`; None for another law."""
    match = _MIXTURE.fullmatch(inputs.strip())
    if match is None:
        return None
    rule = "mixture needs K >= 2 clusters and a finite separation >= 0"
    with readable("inputs", rule, inputs):
        clusters, separation = int(match.group(1) or 2), float(match.group(2))
    if clusters < 2 or not 0 <= separation < np.inf:
        raise InvalidProblem("inputs", rule, inputs)
    return clusters, separation


def corners(clusters: int, separation: float) -> FloatArray:
    """Centres (K, K − 1): a regular simplex of radius s around 0."""
    from scipy.linalg import helmert  # slow to load

    # Orthonormal rows that sum to 0.
    return np.asarray(helmert(clusters).T * separation * (clusters / (clusters - 1.0)) ** 0.5)


def borders(clusters: int) -> FloatArray:
    """Quantiles of a normal number that cut its law into equal parts, (K + 1,)."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.linspace(0.0, 1.0, clusters + 1)))
