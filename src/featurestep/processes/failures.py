"""What this room refuses."""

from __future__ import annotations

from ..errors import FeaturestepError


class CannotStart(FeaturestepError):
    """Worker processes do not start, for the reason told."""
