"""Packs of work as objects of the lake: `find` of an agent writes them, and only their names go between tasks.

What goes between tasks Airflow keeps in its database, and each task reads it there.  A plan of ten thousand files
has megabytes.  So a pack, the work of one mapped task, is an object below `packs/`: a JSON list of pieces of
work, as the agent's `find` hands them out.  All packs of a plan bear the plan's id.

A pack is never changed, and no task deletes its own, so tasks may be tried again or cleared while it is there.
Each plan deletes packs that are older than `KEPT`, up to `CLEANED` of them, which is more than a plan has.  A
task whose pack is gone says what to clear: `find`, which looks again (decision 114).

What came of a pack that a submitted application carried out is kept beside it, in the same form (decision 132).
Callers: `airflow_lake.groups`, `spark_apps.agent`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, takewhile
from typing import Any

import msgspec

from lake_core import naming
from lake_core.errors import NotFound
from lake_core.records.decoding import decoded_json
from log_lake.lake import Lake

KEPT = 30 * 86_400.0
"""Seconds that a pack stays: a run may wait for a person for weeks, and be cleared after that."""

CLEANED = 1_000
"""Old packs that a plan deletes at most: one page of a listing, and one request to delete, of S3."""

AT_ONCE = 16
"""Requests at a time: a plan has at most 64 packs."""


def write_packs(lake: Lake, packs: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """The names of the packs of one plan, which are written now; none if there is no pack.

    Deletes old packs first.  Raises Unavailable.
    """
    if not packs:
        return []
    clean(lake)
    plan_id = lake.context.ids.new()
    names = [naming.pack(plan_id, number) for number in range(len(packs))]

    with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
        list(threads.map(lambda number: write_pack(lake, names[number], packs[number]), range(len(packs))))
    return names


def write_pack(lake: Lake, name: str, pack: Sequence[Mapping[str, Any]]) -> None:
    """Write one pack, or what came of one, under a name that is `naming.pack`'s.  Raises Unavailable."""
    lake.store.put(name, msgspec.json.encode(pack), durable=True)


def read_packs(lake: Lake, names: Sequence[str]) -> list[list[dict[str, Any]]]:
    """The work of the packs of these names, in their order.

    Raises NotFound if one is gone, Corrupt if one cannot be read, Unavailable.
    """
    with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
        return list(threads.map(lambda name: _read(lake, name), names))


def _read(lake: Lake, name: str) -> list[dict[str, Any]]:
    data = lake.store.get(name)
    if data is None:
        raise NotFound(
            f"{name}: the work that was found for this task is not kept any more; clear the task `find` of this "
            "run, which looks again"
        )
    kind, advice = list[dict[str, Any]], "clear the task `find` of this run, which looks again"
    pack: list[dict[str, Any]] = decoded_json(data, kind, name=name, what="not a pack of work", advice=advice)
    return pack


def clean(lake: Lake) -> int:
    """How many packs older than `KEPT` were deleted: the oldest, at most `CLEANED`.  Raises Unavailable."""
    old = list(islice(_older(lake), CLEANED))
    if old:
        lake.store.delete_all(old)
    return len(old)


def _older(lake: Lake) -> Iterator[str]:
    """The names of old packs: names sort by the time of their plan."""
    until = naming.pack(naming.first_id(lake.context.now() - KEPT), 0)
    return takewhile(lambda name: name < until, (info.name for info in lake.store.list(naming.PACKS)))
