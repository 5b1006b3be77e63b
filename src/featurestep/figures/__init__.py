"""The figures of the two papers: computed, drawn and held to what the papers claim.

The module of a figure is loaded when it is computed, drawn or checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from ..core.errors import FeaturestepError, InvalidProblem
from ..core.types import Figure, xarray
from ..functions.formula import suggestion

ShareDone = Callable[[float], None]  # told the share of the work that is done


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, with the figure's numbers on it."""

    text: str
    holds: bool


class FigureClaimFailed(FeaturestepError):
    """The data of a figure contradict what it claims; `claims` has all of them."""

    kind = "figure"

    def __init__(self, figure: str, claims: tuple[Claim, ...]) -> None:
        self.figure = figure
        self.claims = claims
        failed = "; ".join(claim.text for claim in claims if not claim.holds)
        super().__init__(f"{self.kind} {figure} contradicts its claim: {failed}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.figure, self.claims)


@dataclass(frozen=True)
class PaperFigure:
    """One figure. Its data carry all that the drawing and the claims need."""

    name: str
    title: str
    compute: Callable[[bool, ShareDone], xarray.Dataset]  # quick?, progress
    draw: Callable[[xarray.Dataset], Figure]
    claims: Callable[[xarray.Dataset], Iterable[Claim]]
    failure: ClassVar[type[FigureClaimFailed]] = FigureClaimFailed

    def check(self, data: xarray.Dataset) -> tuple[Claim, ...]:
        """The claims, all of which hold; `failure` if one does not."""
        claims = tuple(self.claims(data))
        if not all(claim.holds for claim in claims):
            raise self.failure(self.name, claims)
        return claims


Kind = TypeVar("Kind", bound=PaperFigure)


def chosen(known: Mapping[str, Kind], name: str | None) -> tuple[Kind, ...]:
    """The known one of a name, or every one for `all`."""
    if name == "all":
        return tuple(known.values())
    if name is None or name not in known:
        hint = suggestion(name, known) if name else ""
        rule = f"must be all or one of {', '.join(known)}{hint}"
        raise InvalidProblem("NAME", rule, "nothing" if name is None else name)
    return (known[name],)


def encoded(data: xarray.Dataset) -> bytes:
    """The data as a netCDF 3 file, which SciPy writes and everybody reads."""
    return bytes(data.to_netcdf(engine="scipy"))


def functions_of(module: str, *first: Any) -> dict[str, Callable[..., Any]]:
    """The functions compute, draw and check of a module, which is loaded when one is called.

    first: arguments that come before those of the call.
    """

    def function(name: str) -> Callable[..., Any]:
        return lambda *rest: getattr(import_module(module), name)(*first, *rest)

    return {"compute": function("compute"), "draw": function("draw"), "claims": function("check")}


_FIGURES: dict[str, tuple[Any, ...]] = {  # title, module, first arguments of its functions
    "spectrum": ("spectrum of the features before and after the step", "spectra"),
    "weights": ("spectrum of the weights with its one spike", "weights"),
    "exponent-1": (
        "errors against the step exponent, setting 1: y = H₁ + ε, ε ~ N(0, 1)", "exponent", 1,
    ),
    "exponent-2": (
        "errors against the step exponent, setting 2: y = H₁ + H₂/√2", "exponent", 2,
    ),
    "alignment": ("overlaps of the singular vectors with polynomials of κ", "alignment"),
    "equivalence": ("trained, spiked and Gaussian features as n grows", "equivalence"),
    "double-descent": ("the untrained network against its width", "double_descent"),
    "small-d": ("the untrained network with n of the order of d²", "small_d"),
    "learning-curves": ("learning curves at the maximal step", "learning_curves"),
    "readout-law": ("test error against the exponent for four readout laws", "readout_law"),
    "maximal-step": (
        "test error at steps of order √N, exactly and by spiked random features", "maximal_step",
    ),
    "two-steps": ("outliers of the weights after two steps", "two_steps"),
}  # fmt: skip
FIGURES = {
    name: PaperFigure(name, title, **functions_of(f"{__name__}.{module}", *first))
    for name, (title, module, *first) in _FIGURES.items()
}
