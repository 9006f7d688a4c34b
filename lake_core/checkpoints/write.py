"""Writing a checkpoint as a stream: no more than two row groups are in memory, whatever its size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake_core.checkpoints.layout import (
    GROUP_ROWS,
    ROW,
    CheckpointFooter,
    Group,
    Part,
    complete,
    encode_footer,
)
from lake_core.errors import LakeError, Unavailable
from lake_core.store import Store
from lake_core.store.failures import words


def write_checkpoint(
    store: Store, name: str, footer: CheckpointFooter, parts: Iterable[Part]
) -> CheckpointFooter:
    """Write the rows under a name nobody else uses; it appears whole, or not at all.

    Raises Unavailable.
    """
    try:
        with store.open_output(name) as file:
            return write_rows(file, footer, parts)
    except LakeError:
        raise
    except Exception as error:  # Arrow raises classes of many families
        raise Unavailable(f"{store.uri}/{name}: cannot be written: {words(error)}") from error


def write_rows(file: BinaryIO, footer: CheckpointFooter, parts: Iterable[Part]) -> CheckpointFooter:
    """The file itself; the head with its groups."""
    groups: list[Group] = []
    with pq.ParquetWriter(
        file,
        ROW,
        compression="zstd",
        use_dictionary=["section", "branch", "sub", "schema"],
        write_page_checksum=True,
        write_statistics=False,
    ) as writer:
        for part in parts:
            for table in _grouped(part.tables):
                writer.write_table(complete(table, part), row_group_size=GROUP_ROWS)
                groups.append(_group(table, part))
        footer = msgspec.structs.replace(footer, groups=tuple(groups))
        writer.add_key_value_metadata(encode_footer(footer))
    return footer


def _grouped(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of a row group's size; the last may be smaller."""
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        held.append(table)
        count += table.num_rows
        while count >= GROUP_ROWS:
            whole = pa.concat_tables(held)
            yield whole.slice(0, GROUP_ROWS)
            held, count = [whole.slice(GROUP_ROWS)], count - GROUP_ROWS
    if count:
        yield pa.concat_tables(held)


def _group(table: pa.Table, part: Part) -> Group:
    keys = table["key"]
    return Group(
        part.section,
        part.branch,
        part.sub_pool,
        first=keys[0].as_py(),
        last=keys[-1].as_py(),
        reach=pc.max(table["high"]).as_py() or b"",
        rows=table.num_rows,
    )
