"""What a sweep refuses besides bad input: a store or an engine that cannot be used."""

from __future__ import annotations

from ..errors import FeaturestepError


class StoreError(FeaturestepError):
    """The store cannot be opened, read or written; what it already holds is left as it is."""


class StoreInUse(StoreError):
    """Another driver is writing to the store."""


class EngineError(FeaturestepError):
    """The engine cannot start or has lost its workers for good."""
