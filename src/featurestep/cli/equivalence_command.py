"""`equivalence`: how near the spiked features are to the trained ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..problem import Problem
from ..simulation import feature_gap
from ..types import FloatArray
from .answers import Verb, answer
from .options import Request, curve_options, problem_options
from .run import SMALL
from .values import numbers, one_or_list

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Gaps:
    """‖F − F_ℓ‖_op/√n of one problem, for some degrees."""

    problem: Problem
    degrees: tuple[Any, ...]
    values: FloatArray  # (degree, seed)

    def as_dict(self) -> dict[str, float]:
        """Means over the seeds, and the largest deviation from them."""
        means = self.values.mean(axis=1)
        spread = abs(self.values - means[:, None]).max(axis=1)
        numbers = {f"gap_{ell}": float(m) for ell, m in zip(self.degrees, means, strict=True)}
        return {**numbers, "largest_deviation": float(spread.max())}


@click.command()
@click.option("--degrees", metavar="ℓ,…", default="1,2,3", show_default=True, help="of F_ℓ")
@click.option("--seeds", metavar="K", default="2", show_default=True, help="draws, or 3,5,8")
@partial(problem_options, defaults=SMALL)
@curve_options
def equivalence(
    degrees: str,
    seeds: str,
    over: tuple[str, ...],
    as_json: bool,
    plot: str | None,
    **options: Any,
) -> None:
    """How near the spiked features F_ℓ are to the trained ones, ‖F − F_ℓ‖_op/√n.

    It vanishes as n grows when ℓ is at least the degree of the step exponent's regime. For the
    errors of these feature maps on the same draws, see `simulate --variants`.

    \b
    Examples
      featurestep equivalence --n 400 --d 200 --width 300
      featurestep equivalence --phi 0.5 --psi 0.7 --over n=250,500,1000 --plot gaps.pdf
    """
    listed = tuple(numbers(degrees))
    meanings = {f"gap_{ell}": f"‖F − F_{ell}‖_op/√n, mean over the seeds" for ell in listed}
    verb = Verb(
        meanings={**meanings, "largest_deviation": "of a seed from these means"},
        columns=(*meanings, "largest_deviation"),
        one=lambda problem: Gaps(
            problem, listed, feature_gap(problem, degrees=listed, seeds=one_or_list(seeds))
        ),
        draw_many=partial(_draw, tuple(meanings)),
    )
    answer(verb, Request(options, over, SMALL), as_json=as_json, plot=plot)


def _draw(columns: tuple[str, ...], request: Request, results: xarray.Dataset) -> Axes:
    from .figures import draw_together

    return draw_together(request, results, columns, r"$\|F - F_\ell\|_{\mathrm{op}}/\sqrt{n}$")
