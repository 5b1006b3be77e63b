"""Open questions, one file each: computed, drawn, and answered with claims that are checked.

The module of a study is loaded when it is computed, drawn or checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..figures import FigureClaimFailed, PaperFigure, functions_of


class StudyClaimFailed(FigureClaimFailed):
    """The data of a study contradict its answer; `claims` has all of them."""

    kind = "study"


@dataclass(frozen=True)
class Study(PaperFigure):
    """A question that no published figure answers; the written answer is in docs/studies.md."""

    question: str = ""
    failure: ClassVar[type[FigureClaimFailed]] = StudyClaimFailed


_STUDIES = {  # what it shows, what it asks
    "staircase": (
        "Several steps on targets with stairs: each step finds one more direction",
        "What do several gradient steps learn that one cannot, and which target needs them?",
    ),
    "universality": (
        "Planted targets on inputs of other laws and on real images",
        "On which inputs, Gaussian or not, does the theory hold?",
    ),
    "many-steps": (
        "One to eight steps on fresh and reused batches: errors and spikes",
        "Does the expansion in spikes and degrees go on with more steps, or does it saturate?",
    ),
    "beyond-half": (
        "Steps larger than √n: test error and spikes for α up to 1",
        "What happens for step exponents from ½ to 1, and does the theory hold there?",
    ),
    "corruption": (
        "Labels of the wrong sign, by chance or adversarial, and inputs pushed at test time",
        "How do one step and random features bear wrong labels and perturbed inputs?",
    ),
    "activations": (
        "Every named activation with the same shift: errors and what is missed of each degree",
        "Which Hermite coefficients of the activation decide what one step learns?",
    ),
    "full-training": (
        "One step against the same network trained to the end, on the same rows",
        "What does one step leave to a network whose layers are both trained to the end?",
    ),
    "classification": (
        "Signs as labels: 0/1 errors by step, loss and flips, and the law of the output",
        "At which step does one step help the 0/1 error, is the logistic loss better than squares?",
    ),
    "reuse": (
        "Half of the rows for the step and half for the readout, or all rows for both",
        "When is it better to fit the readout on the rows that the step has used?",
    ),
    "three-layers": (
        "One step on the middle layer of three: errors and what the spikes carry",
        "Do spikes appear when the middle of three layers takes the step? What is in them?",
    ),
}
STUDIES = {
    name: Study(
        name, title, question=question, **functions_of(f"{__name__}.{name.replace('-', '_')}")
    )
    for name, (title, question) in _STUDIES.items()
}
