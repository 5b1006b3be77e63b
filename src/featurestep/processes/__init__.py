"""Worker processes that can be killed: one pool serves sweeps, the page and its simulations."""

from ..core.errors import CannotStart
from .pool import Answer, Call, Pool, Seat, Wanted, always
from .process import Ending, Process
from .program import tell
