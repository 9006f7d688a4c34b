"""Packs of work as objects of the lake: `find` writes them, and tasks pass only their names.

Airflow stores in its database what tasks pass to each other, and each task reads it from there.  A plan of ten
thousand files has megabytes.  So a pack, the work of one mapped task, is an object below `packs/`: a JSON list
of pieces of work.  All packs of a plan have the plan's id in their names.

A pack never changes, and no task deletes its own pack, so tasks may be retried or cleared while the pack exists.
Each plan deletes packs that are older than `KEPT`, up to `CLEANED` of them, which is more than a plan has.  If a
task's pack is gone, the error says to clear `find`, which looks again (decision 114).

A pack's name ends in a digest of its bytes.  Every agent may write below `packs/`, even one with rights to one
pool only.  If it overwrites another agent's pack, that work is not done (decision 192).

The outcome of a pack that a submitted application carried out is stored beside it, in the same form (decision
132).

Callers: `airflow_lake.groups`, `spark_apps.agent`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import islice, takewhile
from typing import Any

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt, NotFound
from lake_core.ids import first_id
from lake_core.records.decoding import decoded_json
from log_lake.lake import Lake

KEPT = 30 * 86_400.0
"""Seconds that a pack stays: a run may wait for a person for weeks, and be cleared after that."""

CLEANED = 1_000
"""The most old packs that a plan deletes: one page of a listing, and one request to delete, of S3."""

AT_ONCE = 16
"""The most requests at a time: a plan has at most 64 packs."""


def write_packs(lake: Lake, packs: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Writes the packs of one plan and returns their names; an empty list if there is no pack.

    Deletes old packs first.  Raises Unavailable.
    """
    if not packs:
        return []
    clean(lake)
    plan_id = lake.context.ids.new()
    contents = [msgspec.json.encode(pack) for pack in packs]
    names = [naming.pack(plan_id, number, _digest(data)) for number, data in enumerate(contents)]

    with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
        list(threads.map(lambda name, data: lake.store.put(name, data, durable=True), names, contents))
    return names


def write_outcome(lake: Lake, name: str, outcome: Sequence[Mapping[str, Any]]) -> None:
    """Writes the outcome of packs, under a name that `naming.pack` made without a digest.  Raises
    Unavailable."""
    lake.store.put(name, msgspec.json.encode(outcome), durable=True)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:32]


def read_packs(lake: Lake, names: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Returns the pieces of work in the packs of these names, in their order.

    Raises NotFound if a pack was deleted, Corrupt if a pack cannot be read or is not what was written, and
    Unavailable.
    """
    with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
        return list(threads.map(lambda name: _read(lake, name), names))


def _read(lake: Lake, name: str) -> list[dict[str, Any]]:
    data = _kept(lake, name)
    if _digest(data) != naming.pack_digest(name):
        raise Corrupt(f"{name}: not the work that was found for this task, but changed since; {ADVICE}")
    return _decoded(data, name)


def read_outcome(lake: Lake, name: str) -> list[dict[str, Any]]:
    """Returns the outcome that `write_outcome` stored under that name.  Raises what `read_packs` raises."""
    return _decoded(_kept(lake, name), name)


ADVICE = "clear the task `find` of this run, which looks again"
"""What a user can do if a task cannot use the values that another task passed to it."""


def _kept(lake: Lake, name: str) -> bytes:
    data = lake.store.get(name)
    if data is None:
        raise NotFound(f"{name}: the work that was found for this task is not kept any more; {ADVICE}")
    return data


def _decoded(data: bytes, name: str) -> list[dict[str, Any]]:
    kind, what = list[dict[str, Any]], "not a pack of work"
    pack: list[dict[str, Any]] = decoded_json(data, kind, name=name, what=what, advice=ADVICE)
    return pack


def clean(lake: Lake) -> int:
    """Deletes packs older than `KEPT`, the oldest first, at most `CLEANED`.  Returns how many it deleted.  Raises
    Unavailable."""
    old = list(islice(_older(lake), CLEANED))
    if old:
        lake.store.delete_all(old)
    return len(old)


def _older(lake: Lake) -> Iterator[str]:
    """Yields the names of old packs: names sort by the time of their plan."""
    until = naming.pack(first_id(lake.context.now() - KEPT), 0)
    return takewhile(lambda name: name < until, (info.name for info in lake.store.list(naming.PACKS)))
