"""The settings `compact.*` of a pool, and the policy that they describe."""

from __future__ import annotations

from log_lake.compaction.policy import CompactionPolicy
from log_lake.compaction.strategies import names
from log_lake.settings import Settings
from log_lake.settings.setting_types import (
    SIZE,
    SIZE_PATTERN,
    WINDOW,
    SettingType,
    count,
    one_of,
    pattern,
    size_of,
)
from log_lake.settings.settings import Setting


def _strategy(text: str) -> str:
    """Returns the name of a compaction strategy; a program may have registered the strategy itself.  Raises
    ValueError for an unknown name."""
    return str(one_of(*names())(text))


def _ratio(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 < value < 1000:
        raise ValueError("use a number greater than 1 and less than 1000, such as 1.5")
    return value


def _object_size(text: str) -> int:
    """Reads the size in bytes that an object of a compaction should have.  A job is cut into as many pieces as it
    has objects of that size."""
    size = size_of(text)
    if size < LEAST_OBJECT:
        raise ValueError(f"use a size of at least {LEAST_OBJECT >> 20}MiB")
    return size


def _share(text: str) -> int:
    share: int = count(1)(text)
    if share > MOST_SHARE:
        raise ValueError(f"use a whole number from 1 to {MOST_SHARE:,}")
    return share


MOST_SHARE = 1_000
"""The most pieces of work that a pool may give in one turn, when a run with a limit takes work of the pools in
turns.  With more, turns would have no effect."""

LEAST_OBJECT = 1 << 20
"""Bytes: the minimum of compact.target_size."""


STRATEGY = SettingType(_strategy, "the name of a strategy of compaction")
SHARE = SettingType(
    _share,
    f"a whole number from 1 to {MOST_SHARE:,} (inclusive)",
    {**pattern("[0-9]{1,4}", "integer"), "minimum": 1, "maximum": MOST_SHARE},
)
OBJECT_SIZE = SettingType(
    _object_size, f"a size of at least {LEAST_OBJECT >> 20}MiB", pattern(SIZE_PATTERN, "integer")
)
RATIO = SettingType(_ratio, "a number greater than 1 and less than 1000", {"type": ["string", "number"]})

SETTINGS = {
    "compact.strategy": Setting(STRATEGY, "size_ratio", "how compaction chooses what to merge"),
    "compact.target_size": Setting(
        OBJECT_SIZE, "128MiB", "approximate size of the objects that compaction writes"
    ),
    "compact.depth": Setting(count(1), "8", "merge objects if more than this many overlap at a key"),
    "compact.ratio": Setting(
        RATIO,
        "2",
        "merge neighbouring runs whose total size is at least this many times the largest of them",
    ),
    "compact.window": Setting(WINDOW, "1d", "for time_window: length of one window"),
    "compact.max_inputs": Setting(count(2), "64", "maximum number of objects in one compaction job"),
    "compact.max_bytes": Setting(SIZE, "4GiB", "maximum size of one compaction job"),
    "compact.share": Setting(
        SHARE, "1", "pieces of up to 64 jobs that the pool may do in each turn of a run over several pools"
    ),
}


def policy_of(settings: Settings) -> CompactionPolicy:
    """Returns the policy that a pool's settings `compact.*` describe."""
    return CompactionPolicy(
        strategy=settings["compact.strategy"],
        target_size=settings["compact.target_size"],
        max_inputs=settings["compact.max_inputs"],
        max_bytes=settings["compact.max_bytes"],
        depth=settings["compact.depth"],
        ratio=settings["compact.ratio"],
        window=settings["compact.window"],
    )
