"""The words for what erasures would find and what they did: for the agent's logs, its report and `lake erase`.

No line says which records are erased: only the receipt holds the condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lake_core.phrases import counted, human_size, listed
from log_lake.agents.reporting import newest_version
from log_lake.agents.work import Result
from log_lake.erasure.holders import release
from log_lake.erasure.receipt import PENDING, Receipt
from log_lake.erasure.sighting import Bound, Sighting

MAX_HOLDERS = 100
"""The most holders that a result names: tasks pass results to each other, and Airflow stores them."""


@dataclass(frozen=True)
class ErasureResult:
    """The result of one erasure, since its beginning.

    `deleted` objects of `freed` bytes held matching records; `written` objects of `size_written` bytes replaced
    them. `purged`: the version up to which the journal was purged, 0 if it was not.  `held` objects stay,
    because of the holders in `by`.  `not_searched`: the number of records of sub-pools that were not searched.
    `version`: the newest version that this run committed, None if it committed nothing.  `records`: as in the
    receipt.
    """

    pool: str
    version: int | None
    erasure: str
    status: str
    deleted: int
    freed: int
    written: int
    size_written: int
    purged: int
    held: int
    by: list[str]
    not_searched: dict[str, int]
    records: int | None = None


@dataclass(frozen=True)
class ErasuresResult(Result):
    """The results of all erasures of a pool; `version` is the newest version that the run committed."""

    version: int | None
    erasures: tuple[ErasureResult, ...]


def result_of(pool_name: str, receipt: Receipt, *, before: Receipt) -> ErasureResult:
    """Returns the result that a receipt shows; `before` is the receipt as the run found it."""
    new = {one.id: one.version for one in receipt.transactions}
    for one in before.transactions:
        new.pop(one.id, None)
    ids = {one.object for one in receipt.held if one.object}
    deleted = [one for one in receipt.erased if one.object not in ids]
    return ErasureResult(
        pool_name,
        newest_version(new.values()),
        receipt.id,
        receipt.status,
        deleted=len(deleted),
        freed=sum(one.size for one in deleted),
        written=len(receipt.written),
        size_written=receipt.size_written,
        purged=receipt.purged,
        held=len(ids),
        by=list(dict.fromkeys(one.by for one in receipt.held))[:MAX_HOLDERS],
        not_searched=receipt.not_searched,
        records=receipt.records,
    )


def sighting_line(pool_name: str, sighting: Sighting, *, met: int | None, erasure_id: str = "") -> str:
    """Returns what a dry run found, in a line; `erasure_id` is the id of a pending erasure.

    `met`: how many matching records the readers of `main` see; None if they were not counted.
    """
    which = f"pending erasure {erasure_id}: " if erasure_id else ""
    line = (
        f"{pool_name}: {which}would rewrite {counted(len(sighting.referred), 'object')} "
        f"({human_size(sighting.size)}), and delete {counted(len(sighting.removed), 'removed object')} and "
        f"{counted(len(sighting.uncommitted), 'orphan')} that hold such records"
    )
    objects = {one.object for one in sighting.held if one.object}
    if met is not None:
        line += f"; readers of main see {counted(met, 'such record')}"
    by = list(dict.fromkeys(one.by for one in sighting.held))
    if not by:
        return line
    what = f"{counted(len(objects), 'object')} would stay" if objects else "it would wait"
    return f"{line}; {what}, because of {listed(by)}"


def bound_text(bound: Bound) -> str:
    """Returns words for the objects and records that an erasure may touch at most."""
    objects = counted(bound.objects, "object")
    return f"up to {objects} of {counted(bound.records, 'record')}, {human_size(bound.size)}"


def erasure_line(result: ErasureResult) -> str:
    """Returns a line that says what an erasure did."""
    line = (
        f"{result.pool}: erasure {result.erasure} is {result.status}: deleted "
        f"{counted(result.deleted, 'object')} ({human_size(result.freed)}), wrote {result.written:,} "
        f"({human_size(result.size_written)})"
    )
    if result.records is not None:
        line += f"; readers of main saw {counted(result.records, 'such record')} when it began"
    if result.purged:
        line += f", purged the journal up to version {result.purged:,}"
    if result.status == PENDING:
        line += f"; {counted(result.held, 'object')} with such records may not be deleted yet"
    for sub_pool, records in result.not_searched.items():
        line += f"; {result.pool}.{sub_pool} with {counted(records, 'record')} was not searched"
    return line


def release_lines(result: ErasureResult) -> Iterator[str]:
    """Yields a line for each holder of matching records: how to make it release the objects."""
    for by in result.by:
        how = release(by, pool_name=result.pool, erasure_id=result.erasure)
        yield f"{result.pool}: erasure {result.erasure} is held by {by}: {how}"
