"""Section 5: bulk, spikes and which polynomial each spike carries."""

from .coordinates import HIGHEST
from .critical import CriticalStep, CriticalSteps, critical_steps
from .equations import DRAFT
from .result import Spectrum, Spike, carried_degrees, shares
from .solve import solve_spectrum, spectrum
from .weights import WeightSpectrum, WeightSpike
