"""Settings to start from: those of the papers, and the maximal step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .state import State


@dataclass(frozen=True)
class Preset:
    """A named state, with a line on what to look for."""

    title: str
    text: str
    state: State


_CUI_RATIO = 2.0  # n/d of the learning curve's starting point, with N = d and n_step = 4d
_MAXIMAL_WIDTH = 0.75  # N/n of the maximal step: n^α times 2√(N/n) is 2√N at α = 1/2

PRESETS: Mapping[str, Preset] = {
    "moniri2": Preset(
        "Quadratic target",
        "Moniri et al., setting 2: y = H1 + H2/√2. The quadratic part is learned from α = 1/4 on.",
        State(),
    ),
    "moniri1": Preset(
        "Noisy linear target",
        "Moniri et al., setting 1: y = H1 + ε, ε ~ N(0, 1). Beyond the linear spike nothing helps.",
        State(step_exponent=0.3, c2=0.0, noise_std=1.0),
    ),
    "cui": Preset(
        "Learning curve",
        "Cui et al.: maximal step, constant readout, N = d; errors against the samples n.",
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
        "η = 2√N, ReLU, constant readout, n₀ = 32d: far from spiked random features, which miss "
        "each neuron's own overlap with the target.",
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
