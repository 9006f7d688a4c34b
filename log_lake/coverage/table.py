"""`POOL:coverage`: a row for each interval of the schedule, or for each range of keys if there is no schedule."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from lake_core.history.covered import CoveredInterval, covered_intervals
from log_lake.coverage.coverage import HELD, coverage_of, has_schedule, loaded_at
from log_lake.reading.revision import Revision
from log_lake.texts.keytext import show_key

_TIME = pa.timestamp("us", "UTC")

COVERAGE = pa.schema(
    [
        ("begin", _TIME),
        ("end", _TIME),
        ("state", pa.string()),
        ("version", pa.int64()),
        ("loaded", _TIME),
        ("due", _TIME),
        ("low", pa.string()),
        ("high", pa.string()),
    ]
)
"""The columns of `coverage_table`; `begin`, `end` and `due` are null for ranges of keys, `low` and `high` for
intervals of time."""

LEFT_OUT = "left out"
"""The state of the first row if earlier intervals are left out, because they are too many.  The row has no
`begin`; its `end` is where the shown intervals begin."""


def coverage_table(revision: Revision) -> pa.Table:
    """Returns the intervals up to now, in order; a row `LEFT_OUT` first if there are too many.

    Raises what `coverage_of` raises.
    """
    if not has_schedule(revision):
        return pa.Table.from_pylist(key_rows(revision), schema=COVERAGE)
    coverage = coverage_of(revision)
    cut = coverage.cut_before
    rows = [] if cut is None else [{"end": cut, "state": LEFT_OUT}]
    return pa.Table.from_pylist(rows + [vars(one) for one in coverage.intervals], schema=COVERAGE)


def key_rows(revision: Revision) -> list[dict[str, Any]]:
    """Returns the ranges of keys that replaces brought, in the order of the key; bounds as JSON."""

    def row(one: CoveredInterval) -> dict[str, Any]:
        low, high = (
            json.dumps(show_key(bound, revision.key), ensure_ascii=False)
            for bound in (one.key_range.low, one.key_range.high)
        )
        return {"low": low, "high": high, "state": HELD, "version": one.version, "loaded": loaded_at(one)}

    return [row(one) for one in covered_intervals(revision.state, revision.branch)]
