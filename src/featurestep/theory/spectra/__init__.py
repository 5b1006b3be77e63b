"""Section 5: bulk, spikes and which polynomial each spike carries."""

from .critical import CriticalStep, CriticalSteps, critical_steps
from .law import Spectrum, Spike
from .solve import spectrum
from .weights_law import WeightSpectrum, WeightSpike
