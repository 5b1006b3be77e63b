"""The experiment of theory.md, section 1, run exactly on drawn data.

Other rooms import from here only. The verbs are `simulate`, `simulated_spectrum` and `feature_gap`,
with `estimate` and `estimate_spectrum` for what they will cost. Sweeps plan units of `simulate`;
estimators and studies run its step and readout on given rows.
"""

from ..core.errors import InsufficientMemory, NonFiniteFeatures, SingularSystem
from ..functions.targets import Teacher
from .arguments import SEEDS, check_variants, checked_seeds, make_draws, make_resources
from .arrays.backend import DTYPES, Array, Backend, make_backend, usable_memory
from .cluster import client_of
from .draws.draw import check_sizes
from .draws.setting import Setting, refuse_moved
from .network.convex import Features, fit_readout
from .network.equivalence import FeatureGap, feature_gap
from .network.experiment import Estimate
from .network.given import BLOCK_ROWS, GradientStep, NetworkOnRows, sum_of_squares
from .network.plan import default_test_size, group_key
from .network.readout import ridge_readouts, smaller_gram
from .network.result import ALIGNMENT, Simulation
from .network.step import Move, parse_variants, slopes
from .network.verb import estimate, simulate
from .over_seeds import spread
from .spectra.distribution import Spikes, find_spikes
from .spectra.plan import OF_WEIGHTS
from .spectra.result import SimulatedSpectrum
from .spectra.singular import MatrixSpectrum, RowBlock, RowMatrix, dense_spectrum
from .spectra.verb import estimate_spectrum, simulated_spectrum
