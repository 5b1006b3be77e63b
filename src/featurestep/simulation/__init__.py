"""The experiment of theory.md, section 1, run exactly on drawn data."""

from ..functions.targets import Teacher
from .draws.setting import Setting
from .failures import InsufficientMemory, NonFiniteFeatures, SingularSystem
from .network.equivalence import FeatureGap, feature_gap
from .network.experiment import Estimate
from .network.result import Simulation
from .network.verb import estimate, simulate
from .spectra.distribution import Spikes, find_spikes
from .spectra.result import SimulatedSpectrum
from .spectra.verb import estimate_spectrum, simulated_spectrum
