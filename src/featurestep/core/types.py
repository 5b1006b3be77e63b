"""The types of arrays, and of what is slow to load: it is loaded with its first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import xarray as xarray
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:

    class _Lazy:
        """A module by its name."""

        def __init__(self, name: str) -> None:
            self.name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self.name), attribute)

    xarray = _Lazy("xarray")
    Axes = Figure = Any

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
