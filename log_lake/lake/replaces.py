"""Replaces: a replace is a load whose transaction also deletes the old records.  Called by `Branch`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from lake_core.errors import Conflict, InvalidInput
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import AddObject
from log_lake.lake.delete_spec import DeleteSpec, check_delete
from log_lake.lake.line import Line
from log_lake.lake.loads import begin_load, builder_of, commit_written, fields_at, lease_of
from log_lake.lake.replace_checks import check_fulfils, check_inside, key_classes_with
from log_lake.lake.results import LoadResult, PendingLoad
from log_lake.lake.token_kinds import TokenKind, check_brought
from log_lake.lake.write import WriteArguments
from log_lake.loading.block import Block
from log_lake.loading.contract import EVOLVE
from log_lake.loading.roll_up import rolled
from log_lake.measuring import measured
from log_lake.texts.keytext import RangeText, check_classes, check_range


@dataclass(frozen=True)
class PendingReplace:
    """A replace that is not committed yet: the load of the new records, and the range and condition that they
    replace.

    `waiting`: a range as text, if only the new records can show the class of its bounds; None if `spec` has the
    range.
    """

    load: PendingLoad
    spec: DeleteSpec
    waiting: RangeText | None = None

    def check(self, records: pa.Table) -> None:
        """Raises InvalidInput if a new record does not fulfil the condition."""
        if self.spec.condition is not None and records.num_rows:
            check_fulfils(records, self.load.names.shown_condition(self.spec.condition))

    def settled(self, branch: Line, objects: Sequence[AddObject], schemas: Sequence[pa.Schema]) -> DeleteSpec:
        """Returns the range and condition whose records the new objects replace.  Raises InvalidInput if a new
        record lies outside of the range."""
        spec, key = self.spec, branch.config.key
        if self.waiting is not None:
            classes = key_classes_with(branch.revision(), objects, schemas)
            spec = replace(spec, key_range=self.waiting.read(key, classes))
            check_classes(spec.key_range, key, classes)
            check_range(spec.key_range, key)
        check_inside(objects, spec.key_range, key)
        return spec


def begin_replace(
    branch: Line, write: WriteArguments, *, brought: pa.Schema | None = None, narrow: bool = False
) -> PendingReplace | LoadResult:
    """Begins a load with the range that it replaces, or returns the first result under the token; `brought` are
    fields of the new records.

    If only the new records can show the class of the range's bounds, the bounds stay text until the records are
    read.  With `narrow` the condition narrows the range.
    """
    pending = begin_load(branch, write, kinds=(TokenKind.REPLACE,))
    if isinstance(pending, LoadResult):
        return pending
    if write.where is not None and branch.rule.kind == "upsert":
        raise InvalidInput(
            "in an upsert pool a replace takes a range without a condition; delete by the condition, then load"
        )
    revision, key_range, waiting = branch.revision(), write.key_range, None
    if revision.names != pending.names:
        raise Conflict(
            f"pool {branch.config.name!r}: a field was renamed or dropped since this began; start again"
        )
    if isinstance(key_range, RangeText):
        if not key_range.is_readable(revision.key, revision.key_classes):
            waiting, key_range = key_range, EVERYTHING
        else:
            key_range = key_range.read(revision.key, revision.key_classes)
    spec = check_delete(revision, key_range=key_range, where=write.where, narrow=narrow, brought=brought)
    if spec is None:
        raise InvalidInput("replace: no record can fulfil the condition; change it")
    return PendingReplace(pending, spec, waiting)


def replace_by_files(branch: Line, files: list[str], write: WriteArguments) -> LoadResult:
    """Replaces the records that `write` names by those of files."""
    keeps = write.settings(branch.config)["schema"] != EVOLVE
    fields = fields_at(branch.history.load_open().state, branch.name) if keeps else None
    with branch.open_files(files, write, fields=fields) as source:
        done = replace_by_blocks(branch, source.blocks(write.format), write)
    return replace(done, notes=source.notes)


def replace_by_blocks(
    branch: Line, blocks: Iterable[Block], write: WriteArguments, *, narrow: bool = False
) -> LoadResult:
    """Replaces the records that `write` names by those of blocks, which must be in the replaced range and fulfil
    the condition.

    A condition is checked once the first new records are there, because it may name fields that only they have.
    """
    blocks = iter(blocks)
    first = next(blocks, None) if write.where is not None else None
    brought = first.table.schema if first is not None else None
    begun = begin_replace(branch, write, brought=brought, narrow=narrow)
    if isinstance(begun, LoadResult):
        given = chain([first] if first is not None else [], blocks)
        # a replace whose entry is there brought records, or none were given; a purged one may have been a delete
        if branch.history.journal.read(begun.version or 0) is None and any(b.table.num_rows for b in given):
            check_brought(begun.version, begun.objects, token=write.token, verb="replace")
        return begun
    with (
        measured(branch.store, "load", pool=branch.config.name, branch=branch.name) as work,
        builder_of(branch, begun.load, alone=True) as builder,
        lease_of(branch, begun.load, why="replace"),
    ):
        for block in work.each("read", chain([first] if first is not None else [], blocks)):
            rounded = replace(block, table=rolled(block.table, branch.settings["roll_up"]))
            begun.check(rounded.table)
            builder.add(rounded)
        written = builder.finish()
        spec = begun.settled(branch, [w.action for w in written], [w.schema for w in written])
        return commit_written(branch, begun.load, written, replaced=spec, count=write.count)
