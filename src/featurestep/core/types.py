"""Types of arrays, and packages that are slow to import, imported with their first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import xarray as xarray
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from scipy import optimize as optimize
    from scipy import special as special
else:

    class _Lazy:
        """A module that is imported when one of its attributes is first used."""

        def __init__(self, name: str) -> None:
            self.name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(import_module(self.name), attribute)
            setattr(self, attribute, value)  # found without this method from now on
            return value

    xarray = _Lazy("xarray")
    optimize = _Lazy("scipy.optimize")
    special = _Lazy("scipy.special")
    Axes = Figure = Any

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
