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
from .theory import Groups, Prediction, predict

__version__ = "0.1.0"

__all__ = [
    "FeaturestepError",
    "Grid",
    "Groups",
    "InaccurateQuadrature",
    "InconsistentSolution",
    "InvalidProblem",
    "NotConverged",
    "Prediction",
    "Problem",
    "function",
    "predict",
]
