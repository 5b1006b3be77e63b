"""Settings to start from: those of the papers, and the maximal step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .state import State


@dataclass(frozen=True)
class Preset:
    """A named state: what it shows, and whose setting it is."""

    title: str
    text: str
    source: str
    state: State


MONIRI = "Moniri et al., arXiv:2310.07891"
CUI = "Cui et al., arXiv:2402.04980"
OURS = "this package"


_CUI_RATIO = 2.0  # n/d of the learning curve's starting point, with N = d and n_step = 4d
_MAXIMAL_WIDTH = 0.75  # N/n of the maximal step: n^α times 2√(N/n) is 2√N at α = 1/2

PRESETS: Mapping[str, Preset] = {
    "moniri2": Preset(
        "Quadratic target",
        "y = H₁ + H₂/√2: from α = 1/4 on a second spike leaves the bulk, and with it the "
        "quadratic part of the target is learned.",
        f"{MONIRI}, setting 2",
        State(),
    ),
    "moniri1": Preset(
        "Noisy linear target",
        "y = H₁ + ε with ε ~ N(0, 1): the target is linear, and what larger steps learn beyond "
        "the first spike does not help.",
        f"{MONIRI}, setting 1",
        State(step_exponent=0.3, c2=0.0, noise_std=1.0),
    ),
    "cui": Preset(
        "Learning curve",
        "Errors against the samples n after a maximal step, with a constant readout and N = d: "
        "the network beats linear methods once n is large enough.",
        CUI,
        State(
            step_exponent=0.5,
            n=int(1000 * _CUI_RATIO),
            phi=1.0 / _CUI_RATIO,
            psi=1.0,
            step_ratio=4.0 / _CUI_RATIO,
            ridge=0.01,
            activation="tanh",
            centre=False,
            readout="constant",
            target="formula",
            formula="tanh",
            over="samples",
        ),
    ),
    "maximal": Preset(
        "Maximal step",
        "η = 2√N, ReLU, constant readout, n₀ = 32d: spiked random features fail here, for they "
        "miss each neuron's own overlap with the target.",
        f"{OURS}, after {CUI}",
        State(
            step_exponent=0.5,
            step_scale=2.0 * _MAXIMAL_WIDTH**0.5,
            phi=0.5,
            psi=0.5 / _MAXIMAL_WIDTH,
            step_ratio=16.0,
            ridge=0.01,
            noise_std=0.2,
            centre=False,
            readout="constant",
            target="formula",
            formula="H1 + H2/sqrt(2)",
        ),
    ),
    "descent": Preset(
        "Double descent",
        "No step at all: the test error of random features peaks where the width N meets n.",
        OURS,
        State(
            step="size",
            step_size=0.0,
            ridge=1e-5,
            noise_std=0.5,
            activation="tanh",
            centre=False,
            target="formula",
            formula="tanh",
            over="width",
        ),
    ),
}
