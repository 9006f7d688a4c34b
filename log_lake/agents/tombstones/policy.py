"""When tombstones are applied and retired: a pool's settings `tombstones.*`, and their values at a time."""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.settings import Settings
from log_lake.settings.setting_types import DURATION
from log_lake.settings.settings import Setting

SETTINGS = {
    "tombstones.apply": Setting(DURATION, "1d", "rewrite objects to remove deleted records after this time"),
    "tombstones.remember": Setting(
        DURATION, "1d", "remember a replace at least this long, for loads that began before it"
    ),
}


@dataclass(frozen=True)
class TombstonesPolicy:
    """Which tombstones are due, by the time at which they were written, in microseconds since 1970.

    Tombstones that were written up to `due` are applied; None: all, even if their writer's clock was ahead.
    The tombstone of a replace may be retired only if it was written up to `forget`.
    """

    due: int | None
    forget: int


def policy_of(settings: Settings, *, now: float, at_once: bool = False) -> TombstonesPolicy:
    """Returns the policy at the time `now`, in seconds since 1970; `at_once`: every tombstone is due, whatever its
    age."""
    return TombstonesPolicy(
        due=None if at_once else int((now - settings["tombstones.apply"]) * 1_000_000),
        forget=int((now - settings["tombstones.remember"]) * 1_000_000),
    )
