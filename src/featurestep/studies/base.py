"""A study: one question, what it computes to answer it, and what the answer claims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..figures.base import PaperFigure
from ..figures.claims import Claim, FigureClaimFailed


@dataclass(frozen=True)
class Study(PaperFigure):
    """A question that no published figure answers; the written answer is in docs/studies.md."""

    question: str = ""


class StudyClaimFailed(FigureClaimFailed):
    """The data of a study contradict its answer; `claims` has all of them."""

    kind = "study"


def settled(study: str, claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims, all of which hold; StudyClaimFailed if one does not."""
    listed = tuple(claims)
    if not all(claim.holds for claim in listed):
        raise StudyClaimFailed(study, listed)
    return listed
