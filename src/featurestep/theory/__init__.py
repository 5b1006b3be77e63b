"""The theory: predictions, limits, baselines and optima, without a single simulated number."""

from .baselines import Baselines, baselines
from .limits import Limit, limit
from .optimum import Optimum, optimum
from .predict import Groups, Prediction, predict

__all__ = [
    "Baselines",
    "Groups",
    "Limit",
    "Optimum",
    "Prediction",
    "baselines",
    "limit",
    "optimum",
    "predict",
]
