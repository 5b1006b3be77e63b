"""The experiment of theory.md, section 1, run exactly on drawn data."""

from .equivalence import feature_gap
from .experiment import Estimate
from .failures import InsufficientMemory, NonFiniteFeatures, SingularSystem
from .result import Simulation
from .setting import Setting, Teacher
from .simulate import estimate, simulate
from .spectrum import estimate_spectrum, simulated_spectrum
from .spectrum_result import SimulatedSpectrum
from .spikes import Spikes, edge_margin, find_spikes

__all__ = [
    "Estimate",
    "InsufficientMemory",
    "NonFiniteFeatures",
    "Setting",
    "SimulatedSpectrum",
    "Simulation",
    "SingularSystem",
    "Spikes",
    "Teacher",
    "edge_margin",
    "estimate",
    "estimate_spectrum",
    "feature_gap",
    "find_spikes",
    "simulate",
    "simulated_spectrum",
]
