"""What does a two-layer network learn in one large gradient step, and how well does it predict?"""

from .activations import function
from .errors import (
    FeaturestepError,
    InaccurateQuadrature,
    InconsistentSolution,
    InvalidProblem,
    NotConverged,
)
from .problem import Grid, Problem
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
    "FeaturestepError",
    "Grid",
    "Groups",
    "InaccurateQuadrature",
    "InconsistentSolution",
    "InvalidProblem",
    "Limit",
    "NotConverged",
    "Optimum",
    "Prediction",
    "Problem",
    "baselines",
    "function",
    "limit",
    "optimum",
    "predict",
]
