"""Section 5: bulk, spikes and which polynomial each spike carries."""

from .critical import CriticalStep, CriticalSteps, critical_steps
from .equations import DRAFT
from .result import HIGHEST, Spectrum, Spike, WeightSpectrum, WeightSpike, carried_degrees, shares
from .solve import solve_spectrum, spectrum
