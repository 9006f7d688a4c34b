"""Writing to a branch of a pool: `pool.branch("main").load([...])`.

A write reads its input, writes sorted objects, and commits one transaction.  A write that fails before the
commit leaves no trace in the history; a vacuum deletes its objects.  A distributed engine takes the same steps
one by one: `begin_load` on the driver, objects built by the workers, `commit` on the driver.

`Branch` only has the methods that users call. What they do is decided by functions that take a branch, in other
modules: `loads`, `files` (how the pool reads files), `replaces`, `deletes`, `by_keys`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import AddObject, Source
from lake_core.records.conditions import Condition
from lake_core.store import address_of
from log_lake.lake import by_keys, deletes, loads, merges, replaces, reverts
from log_lake.lake import files as pool_files
from log_lake.lake.branches import planned
from log_lake.lake.delete_spec import DeleteSpec, may_delete
from log_lake.lake.line import Line
from log_lake.lake.merges import MergeResult
from log_lake.lake.replaces import PendingReplace
from log_lake.lake.results import DeleteResult, LoadResult, PendingLoad
from log_lake.lake.reverts import RevertResult
from log_lake.lake.token_kinds import TokenKind, TokenKinds
from log_lake.lake.write import WriteArguments
from log_lake.loading.block import Block, Reading, silent
from log_lake.loading.builder import ObjectBuilder
from log_lake.loading.declared import declared_columns
from log_lake.loading.misfits import Misfits
from log_lake.loading.preview import Preview
from log_lake.texts.keytext import RangeText

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Branch(Line):
    """A branch of a pool, for writing; or a branch of a sub-pool (`sub_pool`), for deleting only.

    It stays with this pool even if the pool is renamed. Once the pool is dropped, every write raises NotFound,
    because the drop is an entry of the same journal (decision 30).
    """

    def load(
        self,
        files: list[str],
        *,
        format: str = "auto",
        options: Mapping[str, str] | None = None,
        token: str = "",
        message: str = "",
        progress: Callable[[str, float], None] = silent,
        bulk: bool = False,
        paths: Mapping[str, str] | None = None,
    ) -> LoadResult:
        """Loads files as one transaction; docs/files.md lists the formats.

        `options` take precedence over the pool's settings of the same names (`READ_OPTIONS`).  A repeated call
        with the same `token` returns the first result.  `progress` is called with the bytes read of each file.
        `bulk`: whatever `load.sort` says, no two new objects share a key, and none has keys on both sides of a
        split point.  `paths`: where on this machine the bytes of a file are, if not under its name; errors then
        show the name.  Raises InvalidInput (nothing is committed), NotFound, Conflict, OutcomeUnknown,
        Unavailable.
        """
        write = WriteArguments(
            token=self.token_of(token),
            message=message,
            format=format,
            options=options or {},
            progress=progress,
            bulk=bulk,
            paths=paths or {},
        )
        return loads.load_files(self, files, write)

    def preview(
        self,
        files: list[str],
        *,
        format: str = "auto",
        options: Mapping[str, str] | None = None,
        progress: Callable[[str, float], None] = silent,
    ) -> Preview:
        """Returns the result that a load of the files would have; writes and commits nothing.

        Raises InvalidInput for a file that would fail the load as a whole, and NotFound, Unavailable.
        """
        write = WriteArguments(format=format, options=options or {}, progress=progress)
        return loads.preview(self, files, write)

    def append(
        self,
        records: pa.Table,
        *,
        token: str = "",
        message: str = "",
        options: Mapping[str, str] | None = None,
    ) -> LoadResult:
        """Loads an Arrow table as one transaction.  As `load` does, it reads declared types (`type.FIELD`).

        Of the `options` only `schema` applies, because the others say how files are read.
        """
        write = WriteArguments(token=self.token_of(token), message=message, options=options or {})
        return loads.append_blocks(self, [self.block(records)], write)

    def delete(
        self,
        *,
        key_range: KeyRange | RangeText = EVERYTHING,
        where: str | Condition | None = None,
        reason: str = "",
        token: str = "",
        count: bool = False,
    ) -> DeleteResult:
        """Deletes the records of a key range that fulfil a condition: one small transaction, a tombstone.

        It does not hide records of loads that commit later, however early they began.  Nothing is committed if
        there is certainly nothing to delete, unless the range covers an interval that a replace brought.
        `count`: count the records even if that means reading up to 100,000; otherwise they are counted only if
        the state shows their number.

        Raises NotFound, InvalidInput, ObjectMissing, Corrupt, OutcomeUnknown, Unavailable.
        """
        write = WriteArguments(
            token=self.token_of(token), message=reason, key_range=key_range, where=where, count=count
        )
        return deletes.delete(self, write)

    def may_delete(self, spec: DeleteSpec) -> bool:
        """Whether the pool may have a record to delete; False only if it certainly has none."""
        return planned(lambda: may_delete(self.revision(), spec, self.history, self.store))

    def replace(
        self,
        files: list[str],
        *,
        key_range: KeyRange | RangeText = EVERYTHING,
        where: str | Condition | None = None,
        format: str = "auto",
        options: Mapping[str, str] | None = None,
        token: str = "",
        message: str = "",
        progress: Callable[[str, float], None] = silent,
        count: bool = False,
    ) -> LoadResult:
        """Replaces the records of a key range that fulfil a condition by those of files, in one transaction.

        The new records must lie in the range and fulfil the condition.  Without files the range is dropped.  A
        bound that is a text is read as a value of the key's class; if the pool has no records, the new ones
        show that class.  `count`: as in `delete`. Raises InvalidInput (nothing is committed), NotFound,
        OutcomeUnknown, Unavailable.  Raises Conflict if an overlapping replace was committed after this one
        began.
        """
        write = WriteArguments(
            token=self.token_of(token),
            message=message,
            key_range=key_range,
            where=where,
            format=format,
            options=options or {},
            progress=progress,
            count=count,
        )
        return replaces.replace_by_files(self, files, write)

    def replace_with(
        self,
        records: pa.Table,
        *,
        key_range: KeyRange | RangeText = EVERYTHING,
        where: str | Condition | None = None,
        token: str = "",
        message: str = "",
    ) -> LoadResult:
        """Replaces the records of a key range that fulfil a condition by those of an Arrow table; otherwise like
        `replace`."""
        write = WriteArguments(token=self.token_of(token), message=message, key_range=key_range, where=where)
        return replaces.replace_by_blocks(self, [self.block(records)], write)

    def delete_keys(self, keys: pa.Table, *, reason: str = "", token: str = "") -> DeleteResult | LoadResult:
        """Deletes all records whose keys are in `keys`, in one transaction; `keys` has the columns of the pool's
        key.

        In an upsert pool the number of keys is unlimited, because the delete is a load of delete markers; in
        other pools it is limited (`where.of_keys`).  Raises what `delete` raises.
        """
        _check_table(keys, "keys")
        return by_keys.delete_keys(self, keys, WriteArguments(token=self.token_of(token), message=reason))

    def replace_keys(
        self, records: pa.Table, *, deleted: str = "", token: str = "", message: str = ""
    ) -> LoadResult:
        """Replaces the records that have the keys of `records` by these records, in one transaction.

        If the boolean column `deleted` is true in a record, the old records are only deleted; the column is not
        stored.  In an upsert pool the number of records is unlimited; in other pools it is limited.  Raises what
        `replace` raises.
        """
        table = self.block(records).table
        write = WriteArguments(token=self.token_of(token), message=message)
        return by_keys.replace_keys(self, table, write, deleted=deleted)

    def block(self, records: pa.Table) -> Block:
        """Returns records of a program as a block, with the declared fields in their types, as in a load.  Raises
        InvalidInput."""
        _check_table(records, "records")
        return Block(declared_columns(records, self.settings.declared, source="the records"))

    def merge(self, name: str, *, message: str = "") -> MergeResult:
        """Brings the loads, deletes and replaces of a branch that was created from this one, in one transaction.

        A later merge of the same branch brings only newer writes.  Writes that are committed to that branch
        after this call begins may wait for the next merge.  Raises NotFound, InvalidInput (it was not created
        from this one), Conflict (both replaced overlapping ranges, or ingested one source file),
        OutcomeUnknown, Unavailable.
        """
        return merges.merge(self, name, message=message)

    def revert(self, revision: str, *, message: str = "") -> RevertResult:
        """Commits a transaction that undoes the transactions of a version of this branch, or only the one with
        the given id.

        Source files and tokens that they used stay used.  Raises NotFound (purged, or never existed),
        InvalidInput (nothing to undo, or it is merged), Conflict (a later version must be reverted first; the
        message names it), OutcomeUnknown, Unavailable.
        """
        return reverts.revert(self, revision, message=message)

    def undo(self, revision: str) -> RevertResult:
        """Like `revert`, but only for maintenance: compaction, applied deletes, retired tombstones."""
        return reverts.revert(self, revision, message=f"undo version {revision}", maintenance=True)

    def begin_replace(
        self,
        *,
        key_range: KeyRange | RangeText = EVERYTHING,
        where: str | Condition | None = None,
        token: str = "",
        message: str = "",
        options: Mapping[str, str] | None = None,
        brought: pa.Schema | None = None,
    ) -> PendingReplace | LoadResult:
        """Begins a replace whose objects other processes build, or returns the first result under the token.

        The builders must `check` the records. At the end, pass `load` and `settled` of the result to `commit`.
        A condition may name fields that only the new records have (`brought`).  Raises what `replace` raises.
        """
        write = WriteArguments(
            token=self.token_of(token),
            message=message,
            key_range=key_range,
            where=where,
            options=options or {},
        )
        return replaces.begin_replace(self, write, brought=brought)

    def begin_load(
        self,
        *,
        token: str = "",
        message: str = "",
        options: Mapping[str, str] | None = None,
        bulk: bool = False,
        kinds: TokenKinds = (TokenKind.LOAD,),
    ) -> PendingLoad | LoadResult:
        """Begins a load whose objects other processes build, or returns the first result under the token.

        `bulk`: as in `load`.  `kinds`: the work for which the token may stand.
        """
        write = WriteArguments(token=self.token_of(token), message=message, options=options or {}, bulk=bulk)
        return loads.begin_load(self, write, kinds=kinds)

    def readings(
        self,
        files: list[str],
        *,
        options: Mapping[str, str] | None = None,
        fields: pa.Schema | None = None,
    ) -> dict[str, Reading]:
        """Returns how to read each file for this pool; `options` take precedence over its settings.

        `fields` are the fields of the load (`PendingLoad`); the setting `schema` may limit the records to them.
        Raises InvalidInput.
        """
        access = address_of(self.store)
        return pool_files.readings(self.config, files, options=options, access=access, fields=fields)

    def builder(self, pending: PendingLoad, *, first_ordinal: int = 0) -> ObjectBuilder:
        """Returns a builder of objects for a load, in this process; `first_ordinal` is the ordinal of its first
        object."""
        return loads.builder_of(self, pending, first_ordinal=first_ordinal)

    def commit(
        self,
        pending: PendingLoad,
        *,
        objects: list[AddObject],
        schemas: list[pa.Schema],
        sources: list[Source] | None = None,
        replaced: DeleteSpec | None = None,
        misfits: Misfits | None = None,
    ) -> LoadResult:
        """Commits the objects of a load; without objects, sources and `replaced` it commits nothing.

        Sources without objects are recorded too, so that an empty file is loaded once.  With `replaced`, the
        objects replace the records of that range and condition; raises Conflict if another replace took some of
        the range.  Raises InvalidInput if more records were rejected than the load allows.

        `misfits`: by field, how many new values do not fit the type of the pool's field (`misfits.summed`).
        """
        return loads.commit_load(
            self,
            pending,
            objects=objects,
            schemas=schemas,
            sources=sources,
            replaced=replaced,
            misfits=misfits,
        )


def _check_table(table: object, what: str) -> None:
    if not isinstance(table, pa.Table):
        raise InvalidInput(
            f"the {what} are a {type(table).__name__}: give an Arrow table; pa.Table.from_pylist makes it "
            "of records, pa.Table.from_pandas of a frame"
        )
