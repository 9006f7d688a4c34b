"""Writing to a branch of a pool: `pool.branch("main").load([...])`.

A load is: read blocks, write sorted objects, land one transaction.  Nothing that fails on the way leaves a
trace in the history; objects of a load that never landed are the vacuum's.  `job` hands the same steps to a
distributed engine: workers build objects, one driver commits them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa

from lake_core.catalog import Settings
from lake_core.catalog.csv_options import csv_options
from lake_core.catalog.settings import check_settings
from lake_core.combine import APPEND, Rule
from lake_core.combine.hidden import DELETED
from lake_core.combine.rule import rule_of
from lake_core.context import Context
from lake_core.errors import InvalidInput, LakeError
from lake_core.history import Committed, Draft, History
from lake_core.history.rebase import key_classes, rebase, still_covered
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import key_class
from lake_core.keys.ranges import EVERYTHING
from lake_core.keys.spec import ARRIVAL
from lake_core.lake.delete_spec import DeleteSpec, check_delete, may_delete
from lake_core.lake.replace_checks import check_fulfils, check_inside
from lake_core.lake.results import (
    DeleteResult,
    LoadResult,
    PendingLoad,
    committed_load,
    repeated_load,
)
from lake_core.loading.block import QUARANTINE, Block, Reading, silent
from lake_core.loading.builder import ObjectBuilder
from lake_core.loading.files import FileSource, check_rejected, rejected_fault
from lake_core.loading.opening import kept_streams
from lake_core.loading.partitions import partition_fields
from lake_core.loading.preview import Nowhere, Preview, PreviewBuilder
from lake_core.objects.metadata import Origin
from lake_core.phrases import counted
from lake_core.reading.limits import LIMITS, Limits
from lake_core.records import Action, AddObject, Consume, Source
from lake_core.records.conditions import Condition
from lake_core.records.pools import PoolConfig
from lake_core.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Branch:
    """A line of transactions of a pool, to be written to; of a sub-pool `sub`, only to be deleted from.

    It is of this pool for ever, whatever the pool's name becomes.  Once the pool is dropped, all that writes raises
    NotFound, for the drop is an entry of the same journal (decision 30).
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
        return ARRIVAL if self.sub_pool else self.config.key

    @property
    def store(self) -> Store:
        """Where the lake is kept."""
        return self.context.store

    @property
    def settings(self) -> Settings:
        """The pool's policies."""
        return Settings(self.config.settings)

    @property
    def rule(self) -> Rule:
        """What becomes of equal keys; the sub-pools keep all."""
        return APPEND if self.sub_pool else rule_of(self.config.kind, self.config.aggregates)

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
        """Take in files as one transaction; docs/files.md says which formats.

        `options` go before the pool's settings of the same names (`READ_OPTIONS`).  With a `token` a repeated call
        returns the first outcome.  `progress` hears of the bytes read of each file.
        Raises InvalidInput (nothing is committed), NotFound, Conflict, OutcomeUnknown, Unavailable.
        """
        job = self.job(token=token, message=message, options=options)
        if isinstance(job, LoadResult):
            return job
        builder = self.builder(job)
        with self.reading_files(files, options=options, progress=progress) as source:
            for block in source.blocks(format, limit=job.max_rejected):
                builder.add(block)
        written = builder.finish()
        done = self.commit(job, objects=[w.action for w in written], schemas=[w.schema for w in written])
        return replace(done, notes=source.notes)

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
        chosen = dict(options or {})
        policy = Settings({**self.config.settings, **chosen})["bad_records"]
        chosen["bad_records"] = QUARANTINE
        job = self.job(options=chosen)
        assert isinstance(job, PendingLoad)  # only a token is repeated
        nowhere = cast(Store, Nowhere(self.store))
        builder = PreviewBuilder(
            nowhere, self.config.key, job.origin, job.memory, self.context.ids.new, rule=self.rule
        )
        with self.reading_files(files, options=chosen, progress=progress) as source:
            for block in source.blocks(format):
                builder.add(block)
        written = builder.finish()
        found = replace(builder.preview(), notes=source.notes)
        objects = [w.action for w in written]
        if found.bad and policy != QUARANTINE:
            return replace(found, fails=True)
        if fault := rejected_fault(objects, job.max_rejected):
            return replace(found, fails=True, why=fault)
        draft = self._draft(job, tuple(objects), [w.schema for w in written])
        now = int(self.context.now() * 1_000_000)
        rebase(self.history.load().state, draft, key=self.config.key, rule=self.rule, time=now)
        return found

    def append(self, records: pa.Table, *, token: str = "", message: str = "") -> LoadResult:
        """Take in an Arrow table as one transaction; as `load`."""
        return self._load([Block(records)], token=token, message=message)

    def delete(
        self,
        *,
        key_range: KeyRange = EVERYTHING,
        where: str | Condition | None = None,
        reason: str = "",
        token: str = "",
    ) -> DeleteResult:
        """Make records of a key range of which a condition holds invisible: one small transaction.

        Loads that land later are not touched, however long ago they began.  Where there is surely nothing to
        delete, nothing is committed.  Raises NotFound, InvalidInput, ObjectMissing, Corrupt, OutcomeUnknown,
        Unavailable.
        """
        loaded = self.history.load_open()
        if token and (done := loaded.state.tokens.get(token)) is not None:
            return DeleteResult(done.version, done.transaction_id, repeated=True)
        spec = check_delete(
            loaded.state,
            branch=self.name,
            key=self.key,
            rule=self.rule,
            key_range=key_range,
            where=where,
            narrow=True,
            sub_pool=self.sub_pool,
        )
        if spec is None or not self.may_delete(spec):
            return DeleteResult(None)
        id = self.context.ids.new()
        action = spec.tombstone(id, reason=reason)
        committed = self.history.commit(
            Draft(id, self.name, loaded.version, self.context.author, (action,), message=reason, token=token)
        )
        self.log_commit(committed, read_version=loaded.version, did="deletes")
        if committed.repeated:
            return DeleteResult(committed.version, committed.transaction_id, repeated=True)
        return DeleteResult(committed.version, committed.transaction_id, covers=self._covers(id))

    def may_delete(self, spec: DeleteSpec) -> bool:
        """Whether there may be a visible record to delete; False only where that is sure."""
        state = self.history.load().state
        key, rule = self.key, self.rule
        return may_delete(state, spec, self.store, pool=self.config.id, branch=self.name, key=key, rule=rule)

    def key_class(self) -> str | None:
        """The class of the leading key field's values; None where no record has told, and nothing is declared."""
        name = self.config.key.names[0]
        declared = self.settings.declared.get(name)
        known = key_classes(self.history.load().state, self.config.key).get(name)
        return known or (key_class(declared.type) if declared is not None else None)

    def _covers(self, name: str) -> int:
        try:
            state = self.history.load().state
            branch = state.branches[self.name]
            tombstone = branch.tombstones.get(name)
            return len(still_covered(state, branch, tombstone)) if tombstone is not None else 0
        except LakeError:  # the delete is committed: that it cannot be counted now must not be its outcome
            return 0

    def replace(
        self,
        files: list[str],
        *,
        key_range: KeyRange = EVERYTHING,
        where: str | Condition | None = None,
        format: str = "auto",
        options: Mapping[str, str] | None = None,
        token: str = "",
        message: str = "",
        progress: Callable[[str, float], None] = silent,
    ) -> LoadResult:
        """Put the records of files in the place of those in a range of which a condition holds, at once.

        The new records must lie in the range and fulfil the condition.  Without files the range is dropped.
        Raises InvalidInput (nothing is committed), NotFound, Conflict (an overlapping replace landed since this
        began), OutcomeUnknown, Unavailable.
        """
        with self.reading_files(files, options=options, progress=progress) as source:
            done = self._replace(
                source.blocks(format),
                key_range=key_range,
                where=where,
                token=token,
                message=message,
                options=options,
            )
        return replace(done, notes=source.notes)

    def replace_with(
        self,
        records: pa.Table,
        *,
        key_range: KeyRange = EVERYTHING,
        where: str | Condition | None = None,
        token: str = "",
        message: str = "",
    ) -> LoadResult:
        """The same with the records of an Arrow table."""
        return self._replace([Block(records)], key_range=key_range, where=where, token=token, message=message)

    def begin_replace(
        self,
        *,
        key_range: KeyRange = EVERYTHING,
        where: str | Condition | None = None,
        token: str = "",
        message: str = "",
        options: Mapping[str, str] | None = None,
    ) -> tuple[PendingLoad, DeleteSpec] | LoadResult:
        """Begin a replace whose objects are built elsewhere; `commit` it with what it replaces."""
        job = self.job(token=token, message=message, options=options)
        if isinstance(job, LoadResult):
            return job
        if where is not None and self.rule.kind == "upsert":
            raise InvalidInput(
                "in an upsert pool a replace takes a range without a condition; delete by the condition, then load"
            )
        spec = check_delete(
            self.history.load().state,
            branch=self.name,
            key=self.config.key,
            rule=self.rule,
            key_range=key_range,
            where=where,
            narrow=False,
        )
        assert spec is not None
        return job, spec

    def _replace(
        self,
        blocks: Iterable[Block],
        *,
        key_range: KeyRange,
        where: str | Condition | None,
        token: str,
        message: str,
        options: Mapping[str, str] | None = None,
    ) -> LoadResult:
        begun = self.begin_replace(
            key_range=key_range, where=where, token=token, message=message, options=options
        )
        if isinstance(begun, LoadResult):
            return begun
        job, spec = begun
        builder = self.builder(job)
        for block in blocks:
            if spec.condition is not None and block.table.num_rows:
                check_fulfils(block.table, spec.condition)
            builder.add(block)
        written = builder.finish()
        check_inside([w.action for w in written], spec.key_range, self.config.key)
        return self.commit(
            job,
            objects=[w.action for w in written],
            schemas=[w.schema for w in written],
            replaced=spec,
        )

    def readings(self, files: list[str], *, options: Mapping[str, str] | None = None) -> dict[str, Reading]:
        """How the pool wants files read, by file; `options` go before its settings.  Raises InvalidInput."""
        pool = self.config
        check_settings(
            options or {}, kind=pool.kind, key=pool.key, aggregates=pool.aggregates, stored=pool.settings
        )
        settings = Settings({**self.config.settings, **(options or {})})
        declared = settings.declared
        if self.rule.kind == "upsert":
            declared.setdefault(DELETED, pa.field(DELETED, pa.bool_()))
        constants = partition_fields(files, declared) if settings["partitions"] == "hive" else {}
        return {
            file: Reading(
                file,
                declared=declared,
                key=self.config.key.names,
                rule=self.rule,
                bad_records=settings["bad_records"],
                keyless=settings["nokey"],
                csv=csv_options(settings),
                constants=constants.get(file, ()),
            )
            for file in files
        }

    @contextmanager
    def reading_files(
        self,
        files: list[str],
        *,
        options: Mapping[str, str] | None = None,
        progress: Callable[[str, float], None] = silent,
    ) -> Iterator[FileSource]:
        """The records of files; standard input and FIFOs are copied to disk for as long as the block lasts."""
        readings = self.readings(files, options=options)
        with kept_streams(files) as copies:
            for file, reading in readings.items():
                reading.path, reading.progress = copies.get(file, ""), progress
            yield FileSource([readings[file] for file in files])

    def job(
        self, *, token: str = "", message: str = "", options: Mapping[str, str] | None = None
    ) -> PendingLoad | LoadResult:
        """Begin a load whose objects are built elsewhere, or give the outcome that the token stands for."""
        self.check_writable()
        loaded = self.history.load_open()
        if token and (done := loaded.state.tokens.get(token)) is not None:
            return repeated_load(done)
        return PendingLoad(
            origin=Origin(self.context.lake_id, self.config.id, self.context.ids.new(), self.context.author),
            branch=self.name,
            read_version=loaded.version,
            memory=self.settings["load.memory"],
            token=token,
            message=message,
            max_rejected=Settings({**self.config.settings, **(options or {})})["bad_records.max"],
        )

    def builder(self, job: PendingLoad, *, first_place: int = 0) -> ObjectBuilder:
        """Builds objects for the job, here."""
        return ObjectBuilder(
            self.store, self.config.key, job.origin, job.memory, self.context.ids.new, first_place, self.rule
        )

    def commit(
        self,
        job: PendingLoad,
        *,
        objects: list[AddObject],
        schemas: list[pa.Schema],
        sources: list[Source] | None = None,
        replaced: DeleteSpec | None = None,
    ) -> LoadResult:
        """Land the objects of a job; nothing is written where there are neither objects nor sources.

        Sources alone are recorded too (an empty file is taken in once, not looked at for ever).  With `replaced`
        they take the place of what it covers; raises Conflict where another replace took some of its range, and
        InvalidInput if more records were rejected than the job allows.
        """
        check_rejected(objects, job.max_rejected)
        tombstones = (
            [replaced.tombstone(job.origin.transaction_id, reason=job.message, replaces=True)]
            if replaced
            else []
        )
        actions: tuple[Action, ...] = (
            *([Consume(tuple(sources))] if sources else []),
            *tombstones,
            *objects,
        )
        if not actions:
            return LoadResult(None)
        committed = self.history.commit(self._draft(job, actions, schemas))
        self.log_commit(
            committed, read_version=job.read_version, did=f"adds {counted(len(objects), 'object')}"
        )
        return repeated_load(committed.repeated) if committed.repeated else committed_load(committed, objects)

    def _draft(self, job: PendingLoad, actions: tuple[Action, ...], schemas: Sequence[pa.Schema]) -> Draft:
        return Draft(
            id=job.origin.transaction_id,
            branch=job.branch,
            read_version=job.read_version,
            author=self.context.author,
            actions=actions,
            schemas=tuple(schemas),
            message=job.message,
            token=job.token,
        )

    def log_commit(self, committed: Committed, *, read_version: int, did: str) -> None:
        """What was committed, and what others committed since it began."""
        if committed.repeated:
            log.info(
                "%s: nothing was written: version %d used the token", self.config.name, committed.version
            )
            return
        others = counted(max(0, committed.version - read_version - 1), "entry", "entries")
        log.info(
            "%s: version %d %s; others wrote %s since it began",
            self.config.name,
            committed.version,
            did,
            others,
        )

    def check_writable(self) -> None:
        if self.sub_pool:
            raise InvalidInput(f"the sub-pool {self.sub_pool} is read-only: load into the pool itself")

    def _load(self, blocks: Iterable[Block], *, token: str, message: str) -> LoadResult:
        job = self.job(token=token, message=message)
        if isinstance(job, LoadResult):
            return job
        builder = self.builder(job)
        for block in blocks:
            builder.add(block)
        written = builder.finish()
        return self.commit(job, objects=[w.action for w in written], schemas=[w.schema for w in written])
