"""The theory: predictions, limits, baselines and optima, without a single simulated number."""

from .baselines import Baselines, LossBaselines, baselines
from .learnable import Learnable, Term, learnable
from .limits import Limit, limit
from .optimum import LossOptimum, Optimum, optimum
from .predict import predict
from .prediction import Groups, LossPrediction, Prediction
from .spectra import (
    CriticalStep,
    CriticalSteps,
    Spectrum,
    Spike,
    WeightSpectrum,
    WeightSpike,
    critical_steps,
    spectrum,
)
