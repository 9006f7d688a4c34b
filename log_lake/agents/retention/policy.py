"""What a pool keeps: its settings `expire.*` as one value."""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.settings import Settings


@dataclass(frozen=True)
class RetentionPolicy:
    """What expires; None: no such limit.

    `age` is in seconds, from the time in the field `by`, or from the load if `by` is empty.  If the newest loads
    together hold `records`, or `size` bytes, older loads expire.
    """

    age: float | None = None
    by: str = ""
    records: int | None = None
    size: int | None = None

    @property
    def expires(self) -> bool:
        """Whether anything ever expires."""
        return self.age is not None or self.records is not None or self.size is not None


def policy_of(settings: Settings) -> RetentionPolicy:
    """The policy from the settings `expire.*`."""
    return RetentionPolicy(
        settings["expire.age"], settings["expire.by"], settings["expire.records"], settings["expire.bytes"]
    )
