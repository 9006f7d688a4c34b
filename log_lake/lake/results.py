"""Results of writes to a branch.

`LoadResult` also describes replaces and range drops; `PendingLoad` is a load that has begun but is not committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.history import Committed
from lake_core.history.state import Remembered
from lake_core.keys import PoolKey
from lake_core.naming import NOKEY, REJECTED
from lake_core.phrases import counted
from lake_core.records import AddObject
from lake_core.records.pools import PoolConfig
from log_lake.fields.names import SAME, FieldNames
from log_lake.lake.field_changes import UNCHANGED, FieldChanges
from log_lake.lake.token_kinds import TokenKind, TokenKinds
from log_lake.loading.contract import EVOLVE, Contract, contract_of
from log_lake.loading.options import Limit
from log_lake.objects.metadata import Origin
from log_lake.reading.live import LiveCount


@dataclass(frozen=True)
class LoadResult:
    """The result of a load; `version` and `transaction_id` are None if the input had nothing to load.

    `records` counts the records of the pool itself, `nokey` and `rejected` those of the sub-pools; `size` is
    the bytes of all objects.  `repeated`: the token was used before, and this is the first result.  `notes`:
    what was detected in the files.  `overtaken`: a text for each replace that hides records of the load.
    `changes`: the changes of fields, in lines, compared with the version on which the load began; `retyped`:
    the number of fields that have another type now.

    `removed`: how many records a replace removed; None if that is not known, or if the load replaced nothing.
    The number is an upper bound unless `removed_is_exact`.
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
    overtaken: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    retyped: int = 0
    removed: int | None = None
    removed_is_exact: bool = True


@dataclass(frozen=True)
class PendingLoad:
    """A load that is not committed yet: everything that workers need to build its objects, and the driver to
    commit it.

    None of its objects has an id below `first`, whatever the clock of the worker says.  `fields` are those of
    the branch when the load began; `schema` is the policy for other fields.  `inline`: the most bytes of
    objects that may be stored in the journal; 0: none.  `sums`: the objects get content sums.  `points` are the
    pool's split points, as encoded keys. Runs that were sorted on disk are cut at them; with `bulk`, all runs
    are.  `believes`: the load began on a state in memory, and fits only if that was the newest.  `names`: under
    which names the objects store the fields.  `kinds`: the work for which the token may stand.
    """

    origin: Origin
    branch: str
    read_version: int
    memory: int
    token: str
    message: str
    max_rejected: Limit | None = None
    first: str = ""
    fields: pa.Schema = field(default_factory=lambda: pa.schema([]))
    schema: str = EVOLVE
    inline: int = 0
    sums: bool = False
    points: tuple[bytes, ...] = ()
    bulk: bool = False
    believes: bool = False
    names: FieldNames = SAME
    kinds: TokenKinds = (TokenKind.LOAD,)

    def contract(self, config: PoolConfig) -> Contract | None:
        """Returns the contract for the records; None if loads may change the pool's fields, or if there are no
        fields yet."""
        return contract_of(self.schema, self.fields, config)


@dataclass(frozen=True)
class DeleteResult:
    """The result of a delete; `version` and `transaction_id` are None if no record had to be deleted.

    `covers` is how many references may hold deleted records.  `records` is how many of the records that readers
    saw were deleted, an upper bound unless `is_exact`; None if that is not known.
    """

    version: int | None
    transaction_id: str | None = None
    covers: int = 0
    repeated: bool = False
    records: int | None = None
    is_exact: bool = True


def repeated_load(first: Remembered) -> LoadResult:
    """Returns the result of the commit that used the token first."""
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


def repeated_delete(first: Remembered, *, token: str) -> DeleteResult:
    """Returns the result of the delete that used the token first.  Raises InvalidInput if the first use was not a
    delete."""
    if first.objects:
        brought = counted(first.records + first.nokey + first.rejected, "record")
        raise InvalidInput(
            f"token {token!r} stands for version {first.version}, which brought {brought}, so nothing was deleted; "
            "use another token for a delete"
        )
    return DeleteResult(first.version, first.transaction_id, repeated=True)


def check_keyed(objects: Iterable[AddObject], verb: str, key: PoolKey) -> None:
    """Raises InvalidInput if a record of the objects has no key, because no reader of the pool would see it."""
    if lost := sum(one.records for one in objects if one.sub_pool == NOKEY):
        raise InvalidInput(
            f"{verb}: {counted(lost, 'record')} would have no key; nothing was changed. The key is "
            f"{', '.join(key.names)}"
        )


def check_same(first: LoadResult, *, token: str, records: int, exact: bool) -> None:
    """Raises InvalidInput if a repeated load has other records than the load that used its token first.

    Only counts are compared, because the history stores nothing else.  `exact`: every incoming record is kept;
    otherwise records with equal keys may have become one.
    """
    first_records = first.records + first.nokey + first.rejected
    if records == first_records or (records > first_records and not exact):
        return
    raise InvalidInput(
        f"token {token!r} stands for version {first.version}, which brought {first_records:,} records; these are "
        f"{records:,}, so nothing was written; use another token for other data"
    )


def repeated_line(first: LoadResult | DeleteResult, *, pool_name: str, token: str) -> str:
    """Returns the line that is logged for work whose token was used before."""
    return f"pool {pool_name}: token {token!r} stands for version {first.version}; nothing was written now"


def committed_load(
    committed: Committed,
    objects: list[AddObject],
    *,
    changes: FieldChanges = UNCHANGED,
    removed: LiveCount | None = None,
) -> LoadResult:
    """Returns the result of a load that was just committed."""

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
        overtaken=committed.overtaken,
        changes=changes.lines,
        retyped=changes.retyped,
        removed=None if removed is None else removed.records,
        removed_is_exact=removed is None or removed.is_exact,
    )
