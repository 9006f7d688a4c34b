"""How an erasure treats what may still be needed: a pool's settings, and what the run says, as one value."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.errors import InvalidInput
from log_lake.settings import Settings
from log_lake.settings.setting_types import duration


@dataclass(frozen=True)
class ErasurePolicy:
    """`grace`: seconds for which an object that was never committed may be that of a load under way."""

    grace: float


def policy_of(settings: Settings, *, grace: str | None = None) -> ErasurePolicy:
    """The policy that `vacuum.grace` spells, or the duration `grace` of the run.  Raises InvalidInput."""
    if grace is None:
        return ErasurePolicy(settings["vacuum.grace"])
    try:
        return ErasurePolicy(duration(grace))
    except ValueError as error:
        raise InvalidInput(f"parameter 'grace': {grace!r}: {error}; nothing was done") from error
