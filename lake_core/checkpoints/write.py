"""Writes a checkpoint as a stream: at most two row groups are in memory, however large the checkpoint is."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake_core.checkpoints.layout import (
    ROW,
    SINCE,
    CheckpointFooter,
    RowGroup,
    SectionPart,
    complete,
    encode_footer,
)
from lake_core.checkpoints.limits import CHECKPOINT_LIMITS, CheckpointLimits
from lake_core.errors import LakeError, Unavailable, words
from lake_core.store import Store

log = logging.getLogger(__name__)


def write_checkpoint(
    store: Store,
    name: str,
    footer: CheckpointFooter,
    parts: Iterable[SectionPart],
    *,
    limits: CheckpointLimits = CHECKPOINT_LIMITS,
) -> CheckpointFooter:
    """Writes the rows, and returns the footer with its groups.  The object appears whole or not at all.  No
    other writer may use the name.  Raises Unavailable."""
    try:
        with store.open_output(name) as file:
            written = write_rows(file, footer, parts, limits=limits)
    except LakeError:
        raise
    except Exception as error:  # Arrow raises errors of many classes
        raise Unavailable(f"{store.uri}/{name}: writing this checkpoint failed: {words(error)}") from error
    rows, groups = sum(g.rows for g in written.groups), len(written.groups)
    log.info("%s: wrote %d rows in %d row groups", name, rows, groups)
    return written


def write_rows(
    file: BinaryIO,
    footer: CheckpointFooter,
    parts: Iterable[SectionPart],
    *,
    limits: CheckpointLimits = CHECKPOINT_LIMITS,
) -> CheckpointFooter:
    """Writes the content of the file, and returns the footer with its groups."""
    groups: list[RowGroup] = []
    with pq.ParquetWriter(
        file,
        ROW,
        compression="zstd",
        use_dictionary=["section", "branch", "sub", "schema"],
        write_page_checksum=True,
        write_statistics=False,
    ) as writer:
        for part in parts:
            for table in _grouped(part.tables, rows=limits.group_rows):
                writer.write_table(complete(table, part), row_group_size=limits.group_rows)
                groups.append(_group(table, part))
        version = max((SINCE.get(group.section, 0) for group in groups), default=0)
        version = max(version, footer.format_version)
        footer = msgspec.structs.replace(footer, groups=tuple(groups), format_version=version)
        writer.add_key_value_metadata(encode_footer(footer))
    return footer


def _grouped(tables: Iterable[pa.Table], *, rows: int) -> Iterator[pa.Table]:
    """Yields the same rows in tables of `rows` rows; the last table may be smaller."""
    buffer: list[pa.Table] = []
    count = 0
    for table in tables:
        buffer.append(table)
        count += table.num_rows
        while count >= rows:
            whole = pa.concat_tables(buffer)
            yield whole.slice(0, rows)
            buffer, count = [whole.slice(rows)], count - rows
    if count:
        yield pa.concat_tables(buffer)


def _group(table: pa.Table, part: SectionPart) -> RowGroup:
    keys = table["key"]
    return RowGroup(
        part.section,
        part.branch,
        part.sub_pool,
        first=keys[0].as_py(),
        last=keys[-1].as_py(),
        reach=pc.max(table["high"]).as_py() or b"",
        rows=table.num_rows,
    )
