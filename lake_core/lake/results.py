"""What writing to a branch did: for people, programs and the agents.

`LoadResult` also of replaces and drops; `Job` is a load under way.
"""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.catalog.settings import Limit
from lake_core.errors import InvalidInput
from lake_core.history import Committed
from lake_core.history.state import Remembered
from lake_core.naming import NOKEY, REJECTED
from lake_core.objects.metadata import Origin
from lake_core.records import AddObject


@dataclass(frozen=True)
class LoadResult:
    """What a load did: `transaction` is None where there was nothing to load.

    `records` counts those of the pool itself, `size` the bytes of all objects; `nokey` and `rejected` those of
    the sub-pools.  `repeated` says that the token had been used and the first outcome stands.  `notes` say what was
    detected of the files.
    """

    version: int | None
    transaction_id: str | None = None
    records: int = 0
    objects: int = 0
    size: int = 0
    nokey: int = 0
    rejected: int = 0
    repeated: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PendingLoad:
    """A load under way: all that a worker must know to build objects for it, and the driver to commit it."""

    origin: Origin
    branch: str
    read_version: int
    memory: int
    token: str
    message: str
    max_rejected: Limit | None = None


@dataclass(frozen=True)
class DeleteResult:
    """What a delete did: `transaction` is None where nothing was there to delete.

    `covers` counts references that may hold what was deleted.
    """

    version: int | None
    transaction_id: str | None = None
    covers: int = 0
    repeated: bool = False


def repeated_load(first: Remembered) -> LoadResult:
    """The outcome of the commit that used the token first."""
    return LoadResult(
        first.version,
        first.transaction_id,
        first.records,
        first.objects,
        first.size,
        first.nokey,
        first.rejected,
        repeated=True,
    )


def check_same(first: LoadResult, *, token: str, records: int, exact: bool) -> None:
    """Raise InvalidInput if a repeated load brings other records than the load that used its token first.

    Only numbers are compared, since the history keeps no more of a token.  `exact` says that every record that
    comes in is kept: records of equal keys may otherwise have become one.
    """
    held = first.records + first.nokey + first.rejected
    if records == held or (records > held and not exact):
        return
    raise InvalidInput(
        f"token {token!r} stands for version {first.version}, which brought {held:,} records; these are "
        f"{records:,}, so nothing was written; use another token for other data"
    )


def repeated_line(first: LoadResult, *, pool: str, token: str) -> str:
    """What to log of a load that was done before under its token."""
    return f"pool {pool}: token {token!r} stands for version {first.version}; nothing was written now"


def committed_load(committed: Committed, objects: list[AddObject]) -> LoadResult:
    def count(sub_pool: str) -> int:
        return sum(o.records for o in objects if o.sub_pool == sub_pool)

    return LoadResult(
        committed.version,
        committed.transaction_id,
        records=count(""),
        objects=len(objects),
        size=sum(o.size for o in objects),
        nokey=count(NOKEY),
        rejected=count(REJECTED),
    )
