"""What a simulation refuses: non-finite features, singular systems, too little memory."""

from __future__ import annotations

from ..core.errors import FeaturestepError


class NonFiniteFeatures(FeaturestepError, ArithmeticError):
    """A feature, label or gradient came out infinite or NaN; the message says where."""


class SingularSystem(FeaturestepError, ArithmeticError):
    """The ridge system is singular to working precision; the message has the numbers."""


class InsufficientMemory(FeaturestepError, MemoryError):
    """The run would need more memory than allowed; refused before anything is allocated."""

    is_request = True


def gibibytes(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 2**30:.2f} GiB" if size >= 2**29 else f"{size / 2**20:.0f} MiB"
