"""The settings that every agent reads: whether it may work on a pool, and when."""

from __future__ import annotations

from log_lake.agents.upkeep_hours import upkeep_hours
from log_lake.settings.setting_types import SettingType, one_of
from log_lake.settings.settings import Setting

HOURS = SettingType(
    upkeep_hours, "`HH:MM-HH:MM`, several separated by commas, and a time zone if it is not UTC"
)

SETTINGS = {
    "agents": Setting(
        one_of("active", "paused"),
        "active",
        "paused: every agent skips this pool and says so; commands and programs still work on it",
    ),
    "upkeep": Setting(
        one_of("active", "paused"),
        "active",
        "paused: compact, split, checkpoint, tombstones, index and retention skip this pool and say so; loads "
        "and erasures go on",
    ),
    "upkeep.window": Setting(
        HOURS,
        "",
        "hours in which compact, split, checkpoint, tombstones, index and retention may begin (22:00-06:00); "
        "empty: at any time",
    ),
}
