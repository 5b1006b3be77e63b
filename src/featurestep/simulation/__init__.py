"""The experiment of theory.md, section 1, run exactly on drawn data."""

from .equivalence import feature_gap
from .experiment import Estimate
from .failures import InsufficientMemory, NonFiniteFeatures, SingularSystem
from .result import Simulation
from .setting import Setting, Teacher
from .simulate import estimate, simulate

__all__ = [
    "Estimate",
    "InsufficientMemory",
    "NonFiniteFeatures",
    "Setting",
    "Simulation",
    "SingularSystem",
    "Teacher",
    "estimate",
    "feature_gap",
    "simulate",
]
