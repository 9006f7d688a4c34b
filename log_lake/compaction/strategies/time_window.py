"""Time windows: the data in each window of the key's time finally become one run.

For pools whose leading key field is a time (a timestamp, a date, or a number of seconds).  A window is closed
one window length after it ends.  Then its references become one run, once.  Late records gather until the depth
exceeds the policy, or until they are joined as small neighbours.  A window counts as compacted once it holds an
object that a compaction wrote after the close; ids contain the time.

A reference that spans several windows is merged with those of the open windows.  Small neighbours are joined
only if they lie in the same window, open or closed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from lake_core.errors import InvalidInput
from lake_core.history import Reference
from lake_core.ids import id_time
from lake_core.keys import PoolKey
from lake_core.keys.encoding import NAIVE, ZONED, Instant, Value, class_of, decode_key
from log_lake.compaction.layout import depth_of
from log_lake.compaction.planner import Planner
from log_lake.compaction.strategies.depth import depth
from log_lake.compaction.strategies.size_ratio import merge_alike

_DAY = 86_400.0


def time_window(planner: Planner) -> None:
    """Merges each closed window into one run, once; within open windows it works like `size_ratio`.

    Raises InvalidInput if the leading key field is not a time.
    """
    windowed = by_window(planner.references, key=planner.key, seconds=planner.policy.window, now=planner.now)
    for window in windowed.closed:
        if window.due(depth=planner.policy.depth):
            planner.settle(window.references, "its window has ended")
    merge_alike(planner, windowed.open)
    depth(planner)
    for references in (*(window.references for window in windowed.closed), *windowed.within):
        planner.join(references)


@dataclass(frozen=True)
class Closed:
    """The references in a window that closed at `time`, in seconds since 1970."""

    time: float
    references: tuple[Reference, ...]

    def due(self, *, depth: int) -> bool:
        """Whether no compaction wrote to the window since it closed, or whether it is deeper than `depth`
        again."""
        newest = max((r.object for r in self.references if r.oldest is not None), default="")
        settled = newest != "" and id_time(newest).timestamp() >= int(self.time)
        return not settled or depth_of(r.key_range for r in self.references) > depth


@dataclass(frozen=True)
class Windowed:
    """References divided by window of time: the closed windows; `open`, all other references; and `within`, those
    of the other references that lie in a single open window, by window."""

    closed: tuple[Closed, ...]
    open: tuple[Reference, ...]
    within: tuple[tuple[Reference, ...], ...]


def by_window(references: Sequence[Reference], *, key: PoolKey, seconds: float, now: float) -> Windowed:
    """Returns the references by window.  Raises InvalidInput if the leading key field is not a time."""
    closed: dict[float, list[Reference]] = {}
    within: dict[float, list[Reference]] = {}
    rest: list[Reference] = []
    leading = PoolKey(key.fields[:1])
    for reference in references:
        first, last = (
            _seconds(decode_key(bound, leading), leading) // seconds
            for bound in (reference.low, reference.high)
        )
        if first == last and (last + 2) * seconds <= now:
            closed.setdefault(last, []).append(reference)
        else:
            rest.append(reference)
            if first == last:
                within.setdefault(last, []).append(reference)
    windows = [
        Closed((window + 2) * seconds, tuple(of_window)) for window, of_window in sorted(closed.items())
    ]
    return Windowed(tuple(windows), tuple(rest), tuple(tuple(within[window]) for window in sorted(within)))


def _seconds(values: tuple[Value, ...], leading: PoolKey) -> float:
    """Seconds since 1970 of the leading field."""
    value = values[0] if values else None
    if isinstance(value, Instant) and value[0] in (NAIVE, ZONED):
        return float(value[1])
    if isinstance(value, dt.date):
        return (value.toordinal() - dt.date(1970, 1, 1).toordinal()) * _DAY
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    name = leading.fields[0].name if leading.fields else "(none: by arrival)"
    raise InvalidInput(
        f"compact.strategy=time_window needs a key that begins with a timestamp, a date or a number of seconds; "
        f"the key field {name!r} is a {class_of(value)}: use another strategy"
    )
