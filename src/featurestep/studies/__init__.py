"""Open questions, one file each: computed, drawn, and answered with claims that are checked."""

from __future__ import annotations

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

__all__ = ["STUDIES", "Study", "StudyClaimFailed"]

_ASKED = {  # module, what it shows, what it asks
    "staircase": (
        staircase,
        "Several steps on targets with stairs: each step finds one more direction",
        "What do several gradient steps learn that one cannot, and which target needs them?",
    ),
    "universality": (
        universality,
        "Planted targets on inputs of other laws and on real images",
        "On which inputs, Gaussian or not, does the theory hold?",
    ),
    "many-steps": (
        many_steps,
        "One to eight steps on fresh and reused batches: errors and spikes",
        "Does the expansion in spikes and degrees go on with more steps, or does it saturate?",
    ),
    "beyond-half": (
        beyond_half,
        "Steps larger than √n: test error and spikes for α up to 1",
        "What happens for step exponents from ½ to 1, and does the theory hold there?",
    ),
    "corruption": (
        corruption,
        "Labels of the wrong sign, by chance or adversarial, and inputs pushed at test time",
        "How do one step and random features bear wrong labels and perturbed inputs?",
    ),
    "activations": (
        activations,
        "Every named activation with the same shift: errors and what is missed of each degree",
        "Which Hermite coefficients of the activation decide what one step learns?",
    ),
    "full-training": (
        full_training,
        "One step against the same network trained to the end, on the same rows",
        "What does one step leave to a network whose layers are both trained to the end?",
    ),
    "three-layers": (
        three_layers,
        "One step on the middle layer of three: errors and what the spikes carry",
        "Do spikes appear when the middle of three layers takes the step? What is in them?",
    ),
}
STUDIES = {
    name: Study(name, title, module.compute, module.draw, module.check, question)
    for name, (module, title, question) in _ASKED.items()
}
