"""Files of ZNG and ZST go into a pool and come out with the types that they had."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from log_lake.zng.rows import Batch, Rows, batch_of
from log_lake.zng.to_arrow import record_batches
from tests.support.command import Command, lake
from tests.support.zng_files import CONFORMANCE, ZEEK, files, lines_of, opened, rows_of, rows_of_text, zng_of

__all__ = ["lake"]

LOGS = files(ZEEK, "*.zng.gz")
INPUTS = files(CONFORMANCE / "zst", "*.zng")


def table_of(batches: list[Batch]) -> pa.Table:
    """The records of one type, in the order of their times; records of one time in the order of the file."""
    tables = [pa.Table.from_batches(record_batches(batch)) for batch in batches if len(batch)]
    table = pa.concat_tables(tables)
    return table.take(pc.sort_indices(table.column("ts")))


def out_of(lake: Command, format: str, *words: str) -> list[Batch]:
    output = lake("scan", *words, "--format", format).output
    if format == "zst":
        return list(opened(output).batches())
    groups = rows_of(output) if format == "zng" else rows_of_text(output.decode())
    return [batch_of(rows) for rows in groups]


@pytest.mark.parametrize("path", LOGS)
def test_a_log_comes_out_equal_after_a_load(lake: Command, path: Path) -> None:
    lake.pool("p", key="ts")
    lake.load("p", str(path))
    rows = rows_of(gzip.decompress(path.read_bytes()))
    expected = table_of(list(map(batch_of, rows)))
    small = expected.num_rows < 1_000
    for format in ("zng", "zst", "zson")[: None if small else 1]:
        assert table_of(out_of(lake, format, "p")).equals(expected, check_metadata=True)


@pytest.mark.skipif(not ZEEK.is_dir(), reason="the logs are not there")
def test_types_outlive_a_compaction(lake: Command) -> None:
    lake.pool("p", key="ts")
    path = ZEEK / "ftp.zng.gz"
    for _ in range(3):
        lake.load("p", str(path))
    lake("compact", "p", "--strategy", "full")
    rows = rows_of(gzip.decompress(path.read_bytes()))
    expected = table_of([batch_of(some) for some in rows for _ in range(3)])
    assert table_of(out_of(lake, "zng", "p")).schema.equals(expected.schema, check_metadata=True)
    assert sorted(lines(out_of(lake, "zng", "p"))) == sorted(lines(list(map(batch_of, rows))) * 3)


def lines(batches: list[Batch] | list[Rows]) -> list[str]:
    return lines_of(zng_of(batches))


@pytest.mark.parametrize("path", INPUTS)
@pytest.mark.parametrize("form", [".zng", ".zst"])
def test_an_input_comes_out_with_its_types(lake: Command, path: Path, form: str) -> None:
    """Records of one type come out as they were; of several types, as one type that holds all."""
    lake("create", "p", "--key", "no_such_field", "--set", "nokey=accept")
    data = path.read_bytes()
    rows = rows_of(data)
    lake.load("p", str(path.with_suffix(form)))
    if not rows:
        return
    output = lake("scan", "p.$nokey", "--format", "zng").output
    assert len(lines_of(output)) == len(lines_of(data))
    kinds = {kind for some in rows for kind in some.types}
    if len(kinds) == 1 and "union" not in path.stem and path.stem != "typevalue-map-etc":
        lost = path.stem == "array-nulls" and form == ".zst"
        assert (lines_of(output) == lines_of(data)) is not lost


def test_narrow_floats_and_texts_of_bytes_come_back(lake: Command) -> None:
    lake.pool()
    text = (
        '{k:1,h:1.5(float16),a:[2.5(float16)],b:"\\xff\\x01"(bstring),e:"x"(error),t:(int64),d:0x01(decimal)}'
    )
    lake.load_records("p", zng_of(rows_of_text(text)), "a.zng")
    assert lake("scan", "p", "--format", "zson").out == text + "\n"
    assert lake("get", "p", "1", "--format", "zson").out == text + "\n"


def test_answers_of_sql_have_the_plainest_types(lake: Command) -> None:
    lake.pool()
    lake.load_records("p", "{k:1,ip:10.0.0.1}", "a.zson")
    done = lake("query", 'select k, ip, 1.5::decimal(3,1) as d from "p"', "--format", "zson")
    assert done.out == '{k:1,ip:"10.0.0.1",d:"1.5"(=lake.decimal_3_1)}\n'


@pytest.mark.parametrize(("ending", "format"), [("zng", "zng"), ("zst", "zst"), ("zson", "zson")])
def test_a_files_name_asks_for_the_format(lake: Command, ending: str, format: str) -> None:
    lake.pool()
    lake.load_records("p", "{k:1(uint8)}", "a.zson")
    path = lake.folder / f"out.{ending}"
    lake("scan", "p", "-o", str(path))
    lake.pool("q")
    lake.load("q", str(path))
    assert lake("scan", "q", "--format", "zson").out == "{k:1(uint8)}\n"
