"""The writes of one table: add its records, replace all, or merge them.  Each is one transaction of its pool.

A merge of a root table is a load into an upsert pool: the newest record of a key counts.  Nested records that a
new version of their root record no longer has must go, too.  `merge_nested` reads which these are, and writes
delete markers for them together with the new records.  It commits only if nothing was committed to the pool
since it read; otherwise it reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake_core.schemas.hidden import DELETED
from log_lake.dlt.tables import MERGE, PipelineTable
from log_lake.lake.branches import planned
from log_lake.lake.by_keys import as_markers
from log_lake.lake.line import Line
from log_lake.lake.loads import begin_load, builder_of, commit_written, lease_of
from log_lake.lake.pool import Pool
from log_lake.lake.replaces import begin_replace
from log_lake.lake.results import LoadResult, PendingLoad, check_keyed
from log_lake.lake.write import WriteArguments
from log_lake.loading.block import Block
from log_lake.objects.write import WrittenObject

MOST_NAMED = 1_000
"""The most root records that the scan for their nested records names in its condition.  If there are more, it
reads the ids of all nested records."""


@dataclass(frozen=True)
class RootIds:
    """The ids of the root records of a load package, and the ids of those among them that the package
    deletes."""

    ids: pa.Array
    deleted: pa.Array

    @classmethod
    def of_files(cls, files: Sequence[str], table: PipelineTable) -> RootIds:
        """Reads the ids from the files of the root table."""
        ids = _ids(files, table.row_id)
        if not table.hard_delete:
            return cls(ids, ids.slice(0, 0))
        read = [pq.read_table(file, columns=[table.row_id, table.hard_delete]) for file in files]
        deleted = [one.filter(_deletes(one, table)).column(table.row_id) for one in read]
        return cls(ids, _texts(chunk for column in deleted for chunk in column.chunks))


def add(
    pool: Pool,
    table: PipelineTable,
    files: Sequence[str],
    write: WriteArguments,
    *,
    first: Callable[[], None] | None = None,
) -> LoadResult:
    """Adds the records of the files to the table's pool: to an append pool, or as the newest records of an upsert
    pool.

    `first` is called once the load has begun.  The load then commits only if nothing was committed to the pool
    since; otherwise raises PlanAgain.
    """
    branch = pool.branch()
    pending = begin_load(branch, write)
    if isinstance(pending, LoadResult):
        return pending
    read = (_as_deletes(block, table) for block in _blocks(pool, files, write, fields=pending.fields))
    with _written(branch, table, pending, read, first=first) as written:
        return commit_written(branch, pending, written, is_exact=first is not None)


def replace_all(
    pool: Pool,
    table: PipelineTable,
    files: Sequence[str],
    write: WriteArguments,
    *,
    first: Callable[[], None] | None = None,
) -> LoadResult:
    """Replaces all records by those of the files; without files it only deletes.

    `first` is called once the replace has begun.  Raises Conflict if another replace was committed since.
    """
    branch = pool.branch()
    begun = begin_replace(branch, write)
    if isinstance(begun, LoadResult):
        return begun
    read = _blocks(pool, files, write, fields=begun.load.fields)
    with _written(branch, table, begun.load, read, first=first) as written:
        return commit_written(branch, begun.load, written, replaced=begun.spec)


@contextmanager
def _written(
    branch: Line,
    table: PipelineTable,
    pending: PendingLoad,
    blocks: Iterable[Block],
    *,
    first: Callable[[], None] | None = None,
) -> Iterator[list[WrittenObject]]:
    """Writes the objects of a load and yields them, to be committed within the block; the load's lease is held
    until then.

    `first` is called before a block is read.
    """
    with builder_of(branch, pending, alone=True) as builder, lease_of(branch, pending, why="dlt"):
        if first is not None:
            first()
        for block in blocks:
            builder.add(block)
        written = builder.finish()
        check_keyed((one.action for one in written), f"table {table.name!r}", branch.key)
        yield written


def merge_nested(
    pool: Pool, table: PipelineTable, files: Sequence[str], roots: RootIds, write: WriteArguments
) -> LoadResult:
    """Replaces the records that belong to the root records by those of the files.

    Raises PlanAgain if others committed to the pool during each of several tries.
    """
    return planned(lambda: _merge_nested(pool, table, files, roots, write))


def _merge_nested(
    pool: Pool, table: PipelineTable, files: Sequence[str], roots: RootIds, write: WriteArguments
) -> LoadResult:
    branch = pool.branch()
    pending = begin_load(branch, write)
    if isinstance(pending, LoadResult):
        return pending
    deleted = pc.SetLookupOptions(value_set=roots.deleted)

    def blocks() -> Iterator[Block]:
        for stale in _stale(pool, pending.read_version, table, files, roots):
            yield Block(as_markers(stale))
        for block in _blocks(pool, files, write, fields=pending.fields):
            of_deleted = pc.is_in(block.table.column(table.root_id), options=deleted)
            yield replace(block, table=block.table.filter(pc.invert(of_deleted)))

    with _written(branch, table, pending, blocks()) as written:
        return commit_written(branch, pending, written, is_exact=True)


def _stale(
    pool: Pool, version: int, table: PipelineTable, files: Sequence[str], roots: RootIds
) -> Iterator[pa.Table]:
    """Yields the keys of the records that belong to the root records at a version, and are not in the files."""
    if not version or not len(roots.ids):
        return
    view = pool.at_version(version)
    if not view.references:
        return
    names = list(view.key.names)
    new = _ids(files, table.row_id)
    stays = pc.SetLookupOptions(value_set=new)
    of_roots = pc.SetLookupOptions(value_set=roots.ids)
    deleted = pc.SetLookupOptions(value_set=roots.deleted)
    for keys in view.scan(columns=names, where=_naming(table.root_id, roots.ids)):
        root = keys.column(table.root_id)
        kept = pc.and_not(pc.is_in(keys.column(table.row_id), options=stays), pc.is_in(root, options=deleted))
        yield keys.filter(pc.and_not(pc.is_in(root, options=of_roots), kept))


def _naming(field: str, ids: pa.Array) -> str | None:
    """Returns a condition that names the ids; None if they are too many to name."""
    if len(ids) > MOST_NAMED:
        return None
    quoted = ", ".join("'" + id.replace("'", "''") + "'" for id in ids.to_pylist())
    return f'"{field}" in ({quoted})'


def _blocks(pool: Pool, files: Sequence[str], write: WriteArguments, *, fields: pa.Schema) -> Iterator[Block]:
    if not files:
        return
    with pool.branch().open_files(list(files), write, fields=fields) as source:
        yield from source.blocks("parquet")


def _as_deletes(block: Block, table: PipelineTable) -> Block:
    """Returns the block, with delete markers in place of the records that the hint hard_delete deletes."""
    if not table.hard_delete or table.disposition != MERGE:
        return block
    flags = _deletes(block.table, table)
    names = block.table.schema.names
    kept = block.table.drop_columns([DELETED]) if DELETED in names else block.table
    return replace(block, table=kept.append_column(DELETED, flags))


def _deletes(records: pa.Table, table: PipelineTable) -> pa.ChunkedArray:
    """Whether the hint deletes a record: its column is true, or has a value if it is not boolean."""
    column = records.column(table.hard_delete)
    return pc.fill_null(column, False) if table.deletes_if_true else pc.is_valid(column)


def _ids(files: Sequence[str], column: str) -> pa.Array:
    """Returns the values of a column of all files."""
    return _texts(chunk for file in files for chunk in pq.read_table(file, columns=[column]).column(0).chunks)


def _texts(chunks: Iterable[pa.Array]) -> pa.Array:
    """Returns the chunks as one array of texts."""
    return pa.concat_arrays([pa.array([], pa.string()), *(chunk.cast(pa.string()) for chunk in chunks)])
