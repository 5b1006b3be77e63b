"""What does a two-layer network learn in one large gradient step, and how well does it predict?"""

from .activations import function
from .compare import Comparison, compare
from .errors import (
    FeaturestepError,
    InaccurateQuadrature,
    InconsistentSolution,
    InvalidProblem,
    NotConverged,
)
from .problem import Grid, Problem
from .simulation import (
    Estimate,
    InsufficientMemory,
    NonFiniteFeatures,
    Setting,
    Simulation,
    SingularSystem,
    Teacher,
    estimate,
    feature_gap,
    simulate,
)
from .theory import (
    Baselines,
    Groups,
    Limit,
    Optimum,
    Prediction,
    baselines,
    limit,
    optimum,
    predict,
)

__version__ = "0.1.0"

__all__ = [
    "Baselines",
    "Comparison",
    "Estimate",
    "FeaturestepError",
    "Grid",
    "Groups",
    "InaccurateQuadrature",
    "InconsistentSolution",
    "InsufficientMemory",
    "InvalidProblem",
    "Limit",
    "NonFiniteFeatures",
    "NotConverged",
    "Optimum",
    "Prediction",
    "Problem",
    "Setting",
    "Simulation",
    "SingularSystem",
    "Teacher",
    "baselines",
    "compare",
    "estimate",
    "feature_gap",
    "function",
    "limit",
    "optimum",
    "predict",
    "simulate",
]
