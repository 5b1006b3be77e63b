"""The experiment of theory.md, section 1, run exactly on drawn data.

Other rooms import from here only. The verbs are `simulate`, `simulated_spectrum` and `feature_gap`,
with `estimate` and `estimate_spectrum` for what they will cost. Sweeps plan units of `simulate`;
estimators and studies run its step and readout on given rows.
"""

from ..core.errors import InsufficientMemory, NonFiniteFeatures, SingularSystem
from ..functions.targets import Teacher
from .backend import DTYPES, Array, Backend, make_backend, usable_memory
from .cluster import ClusterError, client_of, row_ranges
from .draw import Block, Draw, check_sizes
from .network.convex import Features, fit_readout
from .network.experiment import SEEDS, Estimate, check_variants, checked_seeds, make_draws
from .network.plan import default_test_size, group_key, make_resources
from .network.readout import ridge_readouts, smaller_gram
from .network.result import ALIGNMENT, Simulation, spread
from .network.step import (
    BLOCK_ROWS,
    GradientStep,
    Move,
    NetworkOnRows,
    gradient,
    parse_variants,
    slopes,
    sum_of_squares,
)
from .network.verb import FeatureGap, estimate, feature_gap, simulate
from .setting import Setting, refuse_moved
from .spectra.plan import OF_WEIGHTS
from .spectra.result import SimulatedSpectrum
from .spectra.singular import (
    MatrixSpectrum,
    RowBlock,
    RowMatrix,
    Spikes,
    dense_spectrum,
    find_spikes,
)
from .spectra.verb import estimate_spectrum, simulated_spectrum
from .streams import STREAMS, Source, Streams
