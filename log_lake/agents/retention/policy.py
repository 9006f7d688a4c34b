"""What a pool keeps: its settings `expire.*`, and the policy that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake_core.errors import InvalidInput
from log_lake.settings import Settings
from log_lake.settings.setting_types import SIZE, TEXT, WINDOW, count, if_given
from log_lake.settings.settings import Setting, Together, keeps_less

if TYPE_CHECKING:  # loads Arrow, which `lake --help` does not need
    from lake_core.keys import PoolKey


def _expires_otherwise(before: Settings, after: Settings) -> bool:
    """Whether another field than before gives the age of records."""
    return after["expire.age"] is not None and before["expire.by"] != after["expire.by"]


SETTINGS = {
    "expire.age": Setting(
        if_given(WINDOW),
        "",
        "expire records that are older than this: by expire.by, or by their load",
        keeps_less("expire.age"),
    ),
    "expire.by": Setting(
        TEXT,
        "",
        "field with the time of a record; if empty, the load counts, and whole objects are removed",
        _expires_otherwise,
    ),
    "expire.records": Setting(
        if_given(count(1)),
        "",
        "keep the newest loads that hold this many records together; remove older ones",
        keeps_less("expire.records"),
    ),
    "expire.bytes": Setting(
        if_given(SIZE),
        "",
        "keep the newest loads that hold this many bytes together; remove older ones",
        keeps_less("expire.bytes"),
    ),
}


def _check_expire(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if records could never expire as the settings say.

    Without `expire.by` the age of a record is that of its load.  The journal shows this age only as long as it
    keeps the entries (`history.keep`), so `expire.age` must not be longer.
    """
    by, age, keep = settings["expire.by"], settings["expire.age"], settings["history.keep"]
    if by and kind == "aggregate" and by not in key.names:
        raise InvalidInput(
            f"setting expire.by={by}: in an aggregate pool it must name a field of the key ({key})"
        )
    if age is not None and not by and age > keep:
        raise InvalidInput(
            f"setting expire.age={settings.text('expire.age')}: without expire.by the age is that of the load, "
            f"which is known for history.keep ({settings.text('history.keep')}); use at most that, set "
            "history.keep to more, or name a field with expire.by"
        )


FITS = Together(frozenset({*SETTINGS, "history.keep"}), _check_expire)


@dataclass(frozen=True)
class RetentionPolicy:
    """The limits after which records expire; None means no such limit.

    `age` is in seconds, from the time in the field `by`, or from the load if `by` is empty.  If the newest
    loads together have `records`, or `size` bytes, older loads expire.
    """

    age: float | None = None
    by: str = ""
    records: int | None = None
    size: int | None = None

    @property
    def expires(self) -> bool:
        """Whether the policy has a limit, so that records can expire."""
        return self.age is not None or self.records is not None or self.size is not None


def policy_of(settings: Settings) -> RetentionPolicy:
    """Returns the policy that the settings `expire.*` describe."""
    return RetentionPolicy(
        settings["expire.age"], settings["expire.by"], settings["expire.records"], settings["expire.bytes"]
    )
