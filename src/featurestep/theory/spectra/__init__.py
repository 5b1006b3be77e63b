"""Section 5: bulk, spikes and which polynomial each spike carries."""

from .critical import CriticalStep, CriticalSteps, critical_steps
from .equations import DRAFT
from .model import HIGHEST
from .solve import Spectrum, shares, solve_spectrum, spectrum
from .spikes import Spike, carried_degrees
from .weights import WeightSpectrum, WeightSpike
