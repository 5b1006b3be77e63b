"""Resumable experiments: grids of problems, tasks at every point, results in a store."""

from ..core.errors import EngineError, StoreError, StoreInUse
from .verb import Progress, sweep

__all__ = ["EngineError", "Progress", "StoreError", "StoreInUse", "sweep"]
