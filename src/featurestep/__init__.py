"""What does a two-layer network learn in one large gradient step, and how well does it predict?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .borders import Border
    from .errors import (
        FeaturestepError,
        InaccurateQuadrature,
        InconsistentSolution,
        InvalidProblem,
        NotConverged,
    )
    from .functions.activations import function
    from .meeting.comparison import Comparison, compare
    from .meeting.phase import PhaseDiagram, PhasePoint, phase_diagram
    from .problem import Grid, Problem
    from .results import GridResult, Note, Result
    from .simulation import (
        Estimate,
        FeatureGap,
        InsufficientMemory,
        NonFiniteFeatures,
        Setting,
        SimulatedSpectrum,
        Simulation,
        SingularSystem,
        Spikes,
        Teacher,
        estimate,
        estimate_spectrum,
        feature_gap,
        find_spikes,
        simulate,
        simulated_spectrum,
    )
    from .sweeps import EngineError, StoreError, StoreInUse, sweep
    from .theory import (
        CriticalStep,
        CriticalSteps,
        Learnable,
        Limit,
        Spectrum,
        Spike,
        WeightSpectrum,
        WeightSpike,
        critical_steps,
        learnable,
        limit,
        spectrum,
    )
    from .theory.baselines import Baselines, baselines
    from .theory.optimum import Optimum, optimum
    from .theory.predict import Prediction, predict
    from .theory.solution import Groups

__version__ = "0.2.0"

__all__ = [
    "Baselines",
    "Border",
    "Comparison",
    "CriticalStep",
    "CriticalSteps",
    "EngineError",
    "Estimate",
    "FeatureGap",
    "FeaturestepError",
    "Grid",
    "GridResult",
    "Groups",
    "InaccurateQuadrature",
    "InconsistentSolution",
    "InsufficientMemory",
    "InvalidProblem",
    "Learnable",
    "Limit",
    "NonFiniteFeatures",
    "NotConverged",
    "Note",
    "Optimum",
    "PhaseDiagram",
    "PhasePoint",
    "Prediction",
    "Problem",
    "Result",
    "Setting",
    "SimulatedSpectrum",
    "Simulation",
    "SingularSystem",
    "Spectrum",
    "Spike",
    "Spikes",
    "StoreError",
    "StoreInUse",
    "Teacher",
    "WeightSpectrum",
    "WeightSpike",
    "baselines",
    "compare",
    "critical_steps",
    "estimate",
    "estimate_spectrum",
    "feature_gap",
    "find_spikes",
    "function",
    "learnable",
    "limit",
    "optimum",
    "phase_diagram",
    "predict",
    "simulate",
    "simulated_spectrum",
    "spectrum",
    "sweep",
]

_ROOMS = {  # and their names, each imported with its first use: `import featurestep` is quick
    "borders": "Border",
    "functions.activations": "function",
    "meeting.comparison": "Comparison compare",
    "errors": (
        "FeaturestepError InaccurateQuadrature InconsistentSolution InvalidProblem NotConverged"
    ),
    "meeting.phase": "PhaseDiagram PhasePoint phase_diagram",
    "problem": "Grid Problem",
    "results": "GridResult Note Result",
    "simulation": (
        "Estimate FeatureGap InsufficientMemory NonFiniteFeatures Setting SimulatedSpectrum "
        "Simulation SingularSystem Spikes Teacher estimate estimate_spectrum feature_gap "
        "find_spikes simulate simulated_spectrum"
    ),
    "sweeps": "EngineError StoreError StoreInUse sweep",
    "theory": (
        "Baselines CriticalStep CriticalSteps Groups Learnable Limit Optimum Prediction Spectrum "
        "Spike WeightSpectrum WeightSpike baselines critical_steps learnable limit optimum predict "
        "spectrum"
    ),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
