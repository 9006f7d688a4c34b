"""Writing to a branch of a pool: `pool.branch("main").load([...])`.

A write reads its input, writes sorted objects, and commits one transaction.  A write that fails before the commit
leaves no trace in the history; its objects are the vacuum's.  A distributed engine takes the same steps one by
one: `begin_load` on the driver, objects built by the workers, `commit` on the driver.

`Branch` is the door.  The decisions are in modules of their own, as functions that take a branch: `loads`, `files`
(how the pool reads files), `replaces`, `deletes`, `by_keys`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from lake_core.context import Context
from lake_core.errors import Conflict, InvalidInput
from lake_core.history import Committed, Draft, History
from lake_core.journal.store_time import surely_past
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.leases import HeldLease, LeaseNote
from lake_core.leases.lease import WRITE
from lake_core.phrases import counted
from lake_core.records import AddObject, Source
from lake_core.records.conditions import Condition
from lake_core.records.pools import PoolConfig
from lake_core.schemas import Rule
from lake_core.schemas.rule import rule_of
from lake_core.store import Store, address_of
from lake_core.values.keytext import RangeText
from log_lake.lake import by_keys, deletes, loads, merges, replaces, reverts
from log_lake.lake import files as pool_files
from log_lake.lake.branches import planned
from log_lake.lake.delete_spec import DeleteSpec, may_delete
from log_lake.lake.merges import MergeResult
from log_lake.lake.refused import discard_refused
from log_lake.lake.replaces import PendingReplace
from log_lake.lake.results import DeleteResult, LoadResult, PendingLoad
from log_lake.lake.reverts import RevertResult
from log_lake.loading.block import Block, Reading, silent
from log_lake.loading.builder import ObjectBuilder
from log_lake.loading.declared import declared_columns
from log_lake.loading.files import FileSource
from log_lake.loading.preview import Preview
from log_lake.reading.limits import LIMITS, Limits
from log_lake.reading.revision import Revision
from log_lake.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Branch:
    """A line of transactions of a pool, to write to; of a sub-pool `sub_pool`, to delete from only.

    It stays with this pool, whatever the pool's name becomes.  Once the pool is dropped, every write raises
    NotFound, since the drop is an entry of the same journal (decision 30).
    """

    context: Context
    config: PoolConfig
    name: str
    history: History
    limits: Limits = LIMITS
    sub_pool: str = ""

    @property
    def key(self) -> PoolKey:
        """The order of the records; the sub-pools keep the order of arrival."""
        return self.config.key_of(self.sub_pool)

    @property
    def rule(self) -> Rule:
        """How records of equal keys combine; the sub-pools keep all."""
        return rule_of(self.config, self.sub_pool)

    @property
    def store(self) -> Store:
        """The store that holds the lake."""
        return self.context.store

    @property
    def settings(self) -> Settings:
        """The pool's policies."""
        return Settings(self.config.settings)

    def revision(self, *, now: float | None = None) -> Revision:
        """The newest revision at `now` (seconds since 1970, default: the clock).  Raises NotFound, Unavailable."""
        loaded = self.history.load_open()
        time = self.context.now() if now is None else now
        return Revision(
            self.config, loaded.version, self.name, loaded.state, time, self.sub_pool, self.limits
        )

    def revision_to_rewrite(self, *, now: float | None = None) -> Revision:
        """The newest revision at `now`, in seconds since 1970 by this machine, default: its clock.

        In it `age_off` hides only records that are old by the clock of the store, too.

        What such a revision hides, a rewrite leaves out for good.  Raises NotFound, Unavailable; InvalidInput if
        the pool has `age_off`, and this machine's clock is far from the store's.
        """
        own = self.context.now() if now is None else now
        return self.revision(
            now=surely_past(self.history.journal, own=own) if self.settings["age_off"] else own
        )

    def load(
        self,
        files: list[str],
        *,
        format: str = "auto",
        options: Mapping[str, str] | None = None,
        token: str = "",
        message: str = "",
        progress: Callable[[str, float], None] = silent,
    ) -> LoadResult:
        """Load files as one transaction; docs/files.md lists the formats.

        `options` take precedence over the pool's settings of the same names (`READ_OPTIONS`).  A repeated call with
        the same `token` returns the first result.  `progress` is called with the bytes read of each file.
        Raises InvalidInput (nothing is committed), NotFound, Conflict, OutcomeUnknown, Unavailable.
        """
        return loads.load_files(
            self,
            files,
            format=format,
            options=options,
            token=token,
            message=message,
            progress=progress,
        )

    def preview(
        self,
        files: list[str],
        *,
        format: str = "auto",
        options: Mapping[str, str] | None = None,
        progress: Callable[[str, float], None] = silent,
    ) -> Preview:
        """What a load of the files would do.  Nothing is written.

        Raises InvalidInput for a file that would fail the load as a whole, NotFound, Unavailable.
        """
        return loads.preview(self, files, format=format, options=options, progress=progress)

    def append(self, records: pa.Table, *, token: str = "", message: str = "") -> LoadResult:
        """Load an Arrow table as one transaction; as `load`, declared types (`type.FIELD`) included."""
        return loads.load_blocks(self, [self._block(records)], token=token, message=message)

    def delete(
        self,
        *,
        key_range: KeyRange | RangeText = EVERYTHING,
        where: str | Condition | None = None,
        reason: str = "",
        token: str = "",
    ) -> DeleteResult:
        """Delete the records of a key range that fulfil a condition: one small transaction, a tombstone.

        It does not hide records of loads that commit later, however early they began.  If there is surely nothing
        to delete, nothing is committed.  Raises NotFound, InvalidInput, ObjectMissing, Corrupt, OutcomeUnknown,
        Unavailable.
        """
        return deletes.delete(self, key_range=key_range, where=where, reason=reason, token=token)

    def may_delete(self, spec: DeleteSpec) -> bool:
        """Whether there may be a record to delete; False only if there is surely none."""
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
    ) -> LoadResult:
        """Replace the records of a key range that fulfil a condition by those of files, in one transaction.

        The new records must lie in the range and fulfil the condition.  Without files the range is dropped.  A
        range as text is read as the class of the key, which the new records may tell.
        Raises InvalidInput (nothing is committed), NotFound, Conflict (an overlapping replace committed since this
        one began), OutcomeUnknown, Unavailable.
        """
        return replaces.replace_by_files(
            self,
            files,
            key_range=key_range,
            where=where,
            format=format,
            options=options,
            token=token,
            message=message,
            progress=progress,
        )

    def replace_with(
        self,
        records: pa.Table,
        *,
        key_range: KeyRange | RangeText = EVERYTHING,
        where: str | Condition | None = None,
        token: str = "",
        message: str = "",
    ) -> LoadResult:
        """Replace records by those of an Arrow table; as `replace`."""
        blocks = [self._block(records)]
        return replaces.replace_by_blocks(
            self, blocks, key_range=key_range, where=where, token=token, message=message
        )

    def delete_keys(self, keys: pa.Table, *, reason: str = "", token: str = "") -> DeleteResult | LoadResult:
        """Delete the records of the keys in a table with the columns of the pool's key: one transaction.

        An upsert pool takes any number of keys, and is loaded with delete markers; otherwise the number is limited
        (`conditions.of_keys`).  Raises as `delete` does.
        """
        return by_keys.delete_keys(self, keys, reason=reason, token=token)

    def replace_keys(
        self, records: pa.Table, *, deleted: str = "", token: str = "", message: str = ""
    ) -> LoadResult:
        """Replace the records that have the keys of `records` by these, in one transaction.

        Where the boolean column `deleted` is true the record replaces by nothing; the column is not stored.  An
        upsert pool takes any number of records, otherwise the number is limited.  Raises as `replace` does.
        """
        table = self._block(records).table
        return by_keys.replace_keys(self, table, deleted=deleted, token=token, message=message)

    def _block(self, records: pa.Table) -> Block:
        """Records of a program, the declared fields in their types, as in a load; raises InvalidInput."""
        return Block(declared_columns(records, self.settings.declared, source="the records"))

    def merge(self, name: str, *, message: str = "") -> MergeResult:
        """Bring the loads, deletes and replaces of a branch that was created from this one, in one transaction.

        Merging again brings only what is new.  What is committed to that branch after this call begins may be left
        for the next merge.  Raises NotFound, InvalidInput (it was not created from this one), Conflict (both
        replaced overlapping ranges, or ingested one source file), OutcomeUnknown, Unavailable.
        """
        return merges.merge(self, name, message=message)

    def revert(self, revision: str, *, message: str = "") -> RevertResult:
        """Take back the transactions of a version of this branch, or one transaction by its id, by a new one.

        Source files and tokens that they used stay used.  Raises NotFound (purged, or none), InvalidInput (nothing
        to take back, or it is merged), Conflict (a later version must be reverted first; the message names it),
        OutcomeUnknown, Unavailable.
        """
        return reverts.revert(self, revision, message=message)

    def undo(self, revision: str) -> RevertResult:
        """As `revert`, for maintenance only: compaction, applied deletes, retired tombstones."""
        return reverts.revert(self, revision, message=f"undo version {revision}", maintenance=True)

    def begin_replace(
        self,
        *,
        key_range: KeyRange | RangeText = EVERYTHING,
        where: str | Condition | None = None,
        token: str = "",
        message: str = "",
        brought: pa.Schema | None = None,
    ) -> PendingReplace | LoadResult:
        """Begin a replace whose objects are built elsewhere, or return the first result under the token.

        Builders `check` the records; pass its `load`, and what is `settled`, to `commit`.  A condition may name
        fields that are `brought` by the new records.  Raises as `replace` does.
        """
        return replaces.begin_replace(
            self, key_range=key_range, where=where, token=token, message=message, brought=brought
        )

    def begin_load(
        self, *, token: str = "", message: str = "", options: Mapping[str, str] | None = None
    ) -> PendingLoad | LoadResult:
        """Begin a load whose objects are built elsewhere, or return the first result under the token."""
        return loads.begin_load(self, token=token, message=message, options=options)

    def readings(self, files: list[str], *, options: Mapping[str, str] | None = None) -> dict[str, Reading]:
        """How to read files for this pool, by file; `options` take precedence over its settings.

        Raises InvalidInput.
        """
        return pool_files.readings(self.config, files, options=options, access=address_of(self.store))

    def open_files(
        self,
        files: list[str],
        *,
        options: Mapping[str, str] | None,
        progress: Callable[[str, float], None],
    ) -> AbstractContextManager[FileSource]:
        """The records of files, as `files.open_files`."""
        return pool_files.open_files(
            self.config, files, options=options, access=address_of(self.store), progress=progress
        )

    def builder(self, pending: PendingLoad, *, first_ordinal: int = 0) -> ObjectBuilder:
        """Builds objects for a load, in this process; `first_ordinal` is that of the first object."""
        return loads.builder(
            self.store,
            self.config,
            pending,
            self.context.ids.new,
            first_ordinal=first_ordinal,
            limits=self.limits.objects,
        )

    def commit(
        self,
        pending: PendingLoad,
        *,
        objects: list[AddObject],
        schemas: list[pa.Schema],
        sources: list[Source] | None = None,
        replaced: DeleteSpec | None = None,
    ) -> LoadResult:
        """Commit the objects of a load; without objects, sources and `replaced` nothing is written.

        Sources without objects are recorded too, so that an empty file is loaded once.  With `replaced` the objects
        replace what it names; raises Conflict if another replace took some of its range.  Raises InvalidInput if
        more records were rejected than the load allows.
        """
        return loads.commit_load(
            self, pending, objects=objects, schemas=schemas, sources=sources, replaced=replaced
        )

    def write_lease(self, id: str, *, read_version: int, first: str, why: str) -> HeldLease:
        """The lease of work on this branch; `id` is that of its transaction.

        No new object of the work has a smaller id than `first`.  The lease is taken once the work has lasted for
        `lease.after`, and holds while the block runs.
        """
        context, settings = self.context, self.settings
        note = LeaseNote(
            WRITE, read_version, context.author, settings["lease.ttl"], why, first, dict(context.metadata)
        )
        return HeldLease(self.store, self.config.id, id, note, after=settings["lease.after"])

    def commit_draft(self, draft: Draft, *, does: str) -> Committed:
        """Commit a draft; log what it `does` and what others wrote.  Raises what `History.commit` raises."""
        try:
            committed = self.history.commit(draft)
        except Conflict:
            discard_refused(self.context, self.history, draft)
            raise
        name, version = self.config.name, committed.version
        if committed.repeated:
            log.info("%s: nothing was written: version %d used the token", name, version)
        else:
            others = counted(max(0, version - draft.read_version - 1), "entry", "entries")
            log.info("%s: version %d %s; others wrote %s since it began", name, version, does, others)
        for reason in committed.overtaken:
            log.warning("%s: version %d was %s, which hides its records in that range", name, version, reason)
        return committed

    def check_writable(self) -> None:
        """Raises InvalidInput for a sub-pool."""
        if self.sub_pool:
            raise InvalidInput(f"the sub-pool {self.sub_pool} is read-only: load into the pool itself")
