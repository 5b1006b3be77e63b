"""Scalar functions and their Gaussian moments: activations and targets alike."""

from .base import Function, Moments, Nonlinearity, Shifted, gaussian_panels, normalised_hermite
from .closed import Erf, HermiteSum, PiecewiseLinear, Sine
from .sampled import Analytic, UserFunction
