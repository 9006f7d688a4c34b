"""A file that says of itself that it has more records than are there is refused: none is lost in silence."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from lake_core.errors import InvalidInput
from log_lake.loading.block import Reading
from log_lake.loading.detect import read_blocks, read_row_groups
from tests.support.command import INVALID_INPUT, Command
from tests.support.files import parquet

RECORDS = [{"k": k, "n": k * 1000, "s": f"s{k}"} for k in range(1, 9)]
TABLE = pa.Table.from_pylist(RECORDS)
NESTED = pa.table(
    {"k": range(1, 9), "l": [[k, k] for k in range(1, 9)], "r": [{"x": k} for k in range(1, 9)]}
)


def as_orc(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    orc.write_table(table, sink)
    return sink.getvalue()


def as_avro(table: pa.Table) -> bytes:
    fields = [{"name": name, "type": "string" if name == "s" else "long"} for name in table.column_names]
    sink = io.BytesIO()
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": fields})
    fastavro.writer(sink, schema, table.to_pylist())
    return sink.getvalue()


def with_other_counts(content: bytes, begin: int, eight: int, others: tuple[int, ...]) -> Iterator[bytes]:
    """The file, with each byte from `begin` on that may say "8 records" saying another number."""
    for at in range(begin, len(content)):
        if content[at] == eight:
            for other in others:
                yield content[:at] + bytes((other,)) + content[at + 1 :]


def read(path: Path) -> list[object]:
    return [row for block in read_blocks(Reading(str(path))) for row in block.table.to_pylist()]


@pytest.mark.parametrize(
    ("write", "begin", "eight", "others", "table", "refused"),
    [
        (parquet, lambda c: len(c) - 8 - int.from_bytes(c[-8:-4], "little"), 16, (0, 10, 18), TABLE, 10),
        (parquet, lambda c: len(c) - 8 - int.from_bytes(c[-8:-4], "little"), 16, (0, 10, 18), NESTED, 8),
        (as_orc, lambda c: len(c) - 200, 8, (0, 5, 9), TABLE, 2),
        (as_avro, lambda c: c.index(c[-16:]) + 16, 16, (0, 10, 18), TABLE, 3),
    ],
    ids=["parquet", "nested parquet", "orc", "avro"],
)
def test_no_wrong_count_loses_a_record(
    tmp_path: Path,
    write: Callable[[pa.Table], bytes],
    begin: Callable[[bytes], int],
    eight: int,
    others: tuple[int, ...],
    table: pa.Table,
    refused: int,
) -> None:
    content = write(table)
    found = 0
    for number, wrong in enumerate(with_other_counts(content, begin(content), eight, others)):
        path = tmp_path / f"{number}.file"
        path.write_bytes(wrong)
        try:
            assert len(read(path)) == table.num_rows
        except InvalidInput:
            found += 1
    assert found >= refused


def damaged() -> bytes:
    """A Parquet file of 8 records whose column `n` has none, as its footer says."""
    whole = parquet(TABLE, compression="none", use_dictionary=False, write_statistics=False)
    for wrong in with_other_counts(whole, len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), 16, (0,)):
        footer = pa.parquet.ParquetFile(io.BytesIO(wrong)).metadata
        if footer.num_rows == 8 and footer.row_group(0).column(1).num_values == 0:
            return wrong
    raise AssertionError("the footer has no count of the column's values")


def test_a_column_without_its_values_is_named_and_a_replace_deletes_nothing(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", RECORDS)
    path = lake.file("damaged.parquet", damaged())
    says = "row group 1 says that it has 8 records, but its column 'n' has 0 values"
    for words in (("load", "p"), ("replace", "p", "--from", "1", "--to", "9"), ("load", "--dry-run", "p")):
        assert says in lake.fails(INVALID_INPUT, *words, path)
    assert lake.scan("p") == RECORDS
    with pytest.raises(InvalidInput, match="row group 1"):
        list(read_row_groups(Reading(path), [0]))


def test_a_page_that_does_not_have_its_checksum_is_refused(lake: Command) -> None:
    content = parquet(TABLE, compression="none", use_dictionary=False, write_page_checksum=True)
    at = content.index((3000).to_bytes(8, "little"))
    lake.pool("p")
    message = lake.refuses_records("p", content[:at] + b"\1" + content[at + 1 :], "a.parquet")
    assert "CRC checksum verification failed" in message
