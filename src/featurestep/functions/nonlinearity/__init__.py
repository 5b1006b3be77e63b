"""Scalar functions and their Gaussian moments: activations and targets alike."""

from .base import Function, Moments, Nonlinearity, Shifted, gaussian_panels, normalised_hermite
from .closed import HermiteSum, PiecewiseLinear, Sine
from .sampled import Analytic, UserFunction

__all__ = [
    "Analytic",
    "Function",
    "HermiteSum",
    "Moments",
    "Nonlinearity",
    "PiecewiseLinear",
    "Shifted",
    "Sine",
    "UserFunction",
    "gaussian_panels",
    "normalised_hermite",
]
