"""The real images that studies ask: scikit-learn's digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidProblem
from ..types import FloatArray


def digits(study: str) -> tuple[FloatArray, Any]:
    """Pixels (1797, 64) and classes; without scikit-learn the study is refused in one line."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        rule = "needs scikit-learn: pip install 'featurestep[sklearn]'"
        raise InvalidProblem("NAME", rule, study) from None
    X, y = load_digits(return_X_y=True)
    return np.asarray(X, dtype=np.float64), y
