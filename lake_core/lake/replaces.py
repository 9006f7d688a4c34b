"""Replaces: a load whose transaction also deletes what it replaces.  Called by `Branch`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.lake.delete_spec import DeleteSpec, check_delete
from lake_core.lake.files import open_files
from lake_core.lake.loads import begin_load, commit_written, lease_of
from lake_core.lake.replace_checks import check_fulfils, check_inside, key_classes_with
from lake_core.lake.results import LoadResult, PendingLoad
from lake_core.loading.block import Block
from lake_core.records.conditions import Condition
from lake_core.values.keytext import RangeText, check_range

if TYPE_CHECKING:
    from lake_core.lake.branch import Branch


def begin_replace(
    branch: Branch,
    *,
    key_range: KeyRange,
    where: str | Condition | None,
    token: str,
    message: str,
    options: Mapping[str, str] | None,
    brought: pa.Schema | None = None,
) -> tuple[PendingLoad, DeleteSpec] | LoadResult:
    """A load and what it replaces, or the first result under the token; `brought` are fields of the new records."""
    pending = begin_load(branch, token=token, message=message, options=options)
    if isinstance(pending, LoadResult):
        return pending
    if where is not None and branch.rule.kind == "upsert":
        raise InvalidInput(
            "in an upsert pool a replace takes a range without a condition; delete by the condition, then load"
        )
    spec = check_delete(branch.revision(), key_range=key_range, where=where, narrow=False, brought=brought)
    assert spec is not None  # None only if the condition narrows the range
    return pending, spec


def replace_by_files(
    branch: Branch,
    files: list[str],
    *,
    key_range: KeyRange | RangeText,
    where: str | Condition | None,
    format: str,
    options: Mapping[str, str] | None,
    token: str,
    message: str,
    progress: Callable[[str, float], None],
) -> LoadResult:
    """Replace records by those of files."""
    with open_files(branch.config, files, options=options, progress=progress) as source:
        done = replace_by_blocks(
            branch,
            source.blocks(format),
            key_range=key_range,
            where=where,
            token=token,
            message=message,
            options=options,
        )
    return replace(done, notes=source.notes)


def replace_by_blocks(
    branch: Branch,
    blocks: Iterable[Block],
    *,
    key_range: KeyRange | RangeText,
    where: str | Condition | None,
    token: str,
    message: str,
    options: Mapping[str, str] | None = None,
) -> LoadResult:
    """Replace records by others, which must be among those that they replace.

    A range as text waits for the records if nothing else tells the class of its values.  A condition waits for the
    first of them, since it may name fields that only they bring: every new record must fulfil it.
    """
    key, classes = branch.config.key, branch.revision().key_classes
    blocks = iter(blocks)
    first = next(blocks, None) if where is not None else None
    waits = isinstance(key_range, RangeText) and not key_range.is_readable(key, classes)
    begun = begin_replace(
        branch,
        key_range=EVERYTHING if waits else _read(key_range, key, classes),
        where=where,
        token=token,
        message=message,
        options=options,
        brought=first.table.schema if first is not None else None,
    )
    if isinstance(begun, LoadResult):
        return begun
    pending, spec = begun
    builder = branch.builder(pending)
    with lease_of(branch, pending, why="replace"):
        for block in chain([first] if first is not None else [], blocks):
            if spec.condition is not None and block.table.num_rows:
                check_fulfils(block.table, spec.condition)
            builder.add(block)
        written = builder.finish()
        objects, schemas = [w.action for w in written], [w.schema for w in written]
        if waits:
            classes = key_classes_with(branch.revision(), objects, schemas)
            spec = replace(spec, key_range=_read(key_range, key, classes))
            check_range(spec.key_range, key)
        check_inside(objects, spec.key_range, key)
        return commit_written(branch, pending, written, replaced=spec)


def _read(key_range: KeyRange | RangeText, key: PoolKey, classes: Mapping[str, str]) -> KeyRange:
    return key_range if isinstance(key_range, KeyRange) else key_range.read(key, classes)
