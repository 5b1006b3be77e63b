"""What does a two-layer network learn in one large gradient step, and how well does it predict?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names of `_ROOMS`, each said to be public
    from .core.spiked import Border as Border
    from .core.errors import (
        FeaturestepError as FeaturestepError,
        InaccurateQuadrature as InaccurateQuadrature,
        InconsistentSolution as InconsistentSolution,
        InvalidProblem as InvalidProblem,
        NotConverged as NotConverged,
    )
    from .functions.activations import function as function
    from .meeting.comparison import Comparison as Comparison, compare as compare
    from .meeting.phase import (
        PhaseDiagram as PhaseDiagram,
        PhasePoint as PhasePoint,
        phase_diagram as phase_diagram,
    )
    from .core.problem import Grid as Grid, Problem as Problem
    from .core.results import GridResult as GridResult, Note as Note, Result as Result
    from .simulation import (
        Estimate as Estimate,
        FeatureGap as FeatureGap,
        InsufficientMemory as InsufficientMemory,
        NonFiniteFeatures as NonFiniteFeatures,
        Setting as Setting,
        SimulatedSpectrum as SimulatedSpectrum,
        Simulation as Simulation,
        SingularSystem as SingularSystem,
        Spikes as Spikes,
        Teacher as Teacher,
        estimate as estimate,
        estimate_spectrum as estimate_spectrum,
        feature_gap as feature_gap,
        find_spikes as find_spikes,
        simulate as simulate,
        simulated_spectrum as simulated_spectrum,
    )
    from .sweeps import (
        EngineError as EngineError,
        StoreError as StoreError,
        StoreInUse as StoreInUse,
        sweep as sweep,
    )
    from .theory import (
        CriticalStep as CriticalStep,
        CriticalSteps as CriticalSteps,
        Learnable as Learnable,
        Limit as Limit,
        Spectrum as Spectrum,
        Spike as Spike,
        WeightSpectrum as WeightSpectrum,
        WeightSpike as WeightSpike,
        critical_steps as critical_steps,
        learnable as learnable,
        limit as limit,
        spectrum as spectrum,
    )
    from .theory.baselines import (
        Baselines as Baselines,
        LossBaselines as LossBaselines,
        baselines as baselines,
    )
    from .theory.optimum import (
        LossOptimum as LossOptimum,
        Optimum as Optimum,
        optimum as optimum,
    )
    from .theory.predict import predict as predict
    from .theory.prediction import (
        Groups as Groups,
        LossPrediction as LossPrediction,
        Prediction as Prediction,
    )

__version__ = "0.2.0"

_ROOMS = {  # and their names, each imported with its first use: `import featurestep` is quick
    "core.spiked": "Border",
    "functions.activations": "function",
    "meeting.comparison": "Comparison compare",
    "core.errors": (
        "FeaturestepError InaccurateQuadrature InconsistentSolution InvalidProblem NotConverged"
    ),
    "meeting.phase": "PhaseDiagram PhasePoint phase_diagram",
    "core.problem": "Grid Problem",
    "core.results": "GridResult Note Result",
    "simulation": (
        "Estimate FeatureGap InsufficientMemory NonFiniteFeatures Setting SimulatedSpectrum "
        "Simulation SingularSystem Spikes Teacher estimate estimate_spectrum feature_gap "
        "find_spikes simulate simulated_spectrum"
    ),
    "sweeps": "EngineError StoreError StoreInUse sweep",
    "theory": (
        "Baselines CriticalStep CriticalSteps Groups Learnable Limit LossBaselines LossOptimum "
        "LossPrediction Optimum Prediction Spectrum Spike WeightSpectrum WeightSpike baselines "
        "critical_steps learnable limit optimum predict spectrum"
    ),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
