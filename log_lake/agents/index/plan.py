"""Decides which objects a run gives their indexes, and which indexes it reads to find damaged ones; pure.

Large objects come first, because readers pay most for them.  An index that is damaged costs only time, so each run
reads just a share of all: those whose turn is today.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

from log_lake.settings import Settings
from log_lake.settings.setting_types import SIZE
from log_lake.settings.settings import Setting

if TYPE_CHECKING:  # `lake --help` reads the settings and loads no engine
    from log_lake.indexes.names import ListedIndex

SETTINGS = {
    "index.run.bytes": Setting(
        SIZE, "16GiB", "in one run, the index agent reads objects of at most this size together"
    ),
}
"""The name of this setting has a second dot; names of index rules have none, so it cannot be taken for a rule."""

DAY = 86_400
"""Seconds."""

LEAST_TURNS = 7
"""Each index is read once in this many days, or in more if the pool's indexes are larger than this many shares."""

SHARE = 64 << 20
"""Bytes of indexes that one look reads, about."""


@dataclass(frozen=True)
class IndexPolicy:
    """How many bytes the objects may have together that one run reads."""

    most_bytes: int


def policy_of(settings: Settings) -> IndexPolicy:
    """Returns the policy that the setting `index.run.bytes` describes."""
    return IndexPolicy(settings["index.run.bytes"])


def of_today(indexes: Sequence[ListedIndex], *, now: float) -> list[ListedIndex]:
    """Returns the indexes whose turn to be read is on the day of `now`, in seconds since 1970."""
    turns = max(LEAST_TURNS, -(-sum(one.info.size for one in indexes) // SHARE))
    today = int(now // DAY) % turns
    return [one for one in indexes if crc32(one.info.name.encode()) % turns == today]
