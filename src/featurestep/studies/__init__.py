"""Open questions, one file each: computed, drawn, and answered with claims that are checked."""

from __future__ import annotations

from functools import partial

from ..figures.base import chosen
from . import (
    activations,
    beyond_half,
    corruption,
    full_training,
    many_steps,
    staircase,
    three_layers,
    universality,
)
from .base import Study, StudyClaimFailed

__all__ = ["STUDIES", "Study", "StudyClaimFailed", "find"]

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        staircase.STUDY,
        universality.STUDY,
        many_steps.STUDY,
        beyond_half.STUDY,
        corruption.STUDY,
        activations.STUDY,
        full_training.STUDY,
        three_layers.STUDY,
    )
}

find = partial(chosen, STUDIES)
