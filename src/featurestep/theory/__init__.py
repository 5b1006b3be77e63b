"""The theory: predictions, limits, baselines and optima, without a single simulated number."""

from .predict import Groups, Prediction, predict

__all__ = ["Groups", "Prediction", "predict"]
