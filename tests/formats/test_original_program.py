"""Beside the original program: it writes the same bytes, and reads what is written here, data objects too.

`LAKE_TEST_ZQ` is the path of its command `zq` (brimdata/zed at 87686d6e6, December 2021; `go build ./cmd/zq`).
Without it these tests are skipped: CI compares with the outputs in the conformance data only.  The original crashes
on type values of decimals and half floats, and prints symbols of enums without quotes; no value here has these.
"""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings

from lake_core.schemas.hidden import ROW
from log_lake.lake import Lake
from log_lake.objects.containers.rows import rows_of_table
from log_lake.rewriting.compaction import compact
from log_lake.stores.local import LocalStore
from log_lake.zng.types import DECIMAL, FLOAT16, TYPE, Enum, Type
from tests.support.zng_files import ZEEK, files, lines_of, rows_of, zng_of, zst_of
from tests.support.zng_values import stream, stream_values

ZQ = os.environ.get("LAKE_TEST_ZQ", "")
LOGS = files(ZEEK, "*.zng.gz")

pytestmark = pytest.mark.skipif(not ZQ, reason="LAKE_TEST_ZQ names no zq of the original program")


def zq(*words: str) -> bytes:
    return subprocess.run([ZQ, "-validate", *words], capture_output=True, check=True).stdout


def printed(path: Path, format: str) -> list[str]:
    """The values of a file as the original reads and prints them."""
    text = zq("-i", format, "-pretty", "0", "-f", "zson", str(path)).decode(errors="surrogateescape")
    return text.rstrip("\n").split("\n")


def is_known(kind: Type) -> bool:
    """Whether the original can write the type, and print its values so that they are read back."""
    if kind in (DECIMAL, FLOAT16, TYPE) or (isinstance(kind, Enum) and "x y" in kind.symbols):
        return False
    return all(map(is_known, kind.children))


@pytest.mark.parametrize("path", LOGS)
def test_a_log_becomes_the_same_columns(path: Path, tmp_path: Path) -> None:
    (tmp_path / "in.zng").write_bytes(gzip.decompress(path.read_bytes()))
    zq("-f", "zst", "-o", str(tmp_path / "out.zst"), str(tmp_path / "in.zng"))
    data = (tmp_path / "in.zng").read_bytes()
    assert (tmp_path / "out.zst").read_bytes() == zst_of(rows_of(data))
    rows = zq("-i", "zng", "-f", "zng", "-znglz4blocksize", "0", str(tmp_path / "in.zng"))
    assert rows == zng_of(rows_of(data))


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]
)
@given(values=stream_values(records=True, inner_nulls=False))
def test_random_records_become_the_same_bytes_and_are_read_by_the_original(
    values: list[tuple[Type, bytes]], tmp_path: Path
) -> None:
    found = [(kind, body) for kind, body in values if is_known(kind)]
    assume(found)
    data = stream(found)
    given_file, columns, rows = (tmp_path / name for name in ("in.zng", "out.zst", "out.zng"))
    given_file.write_bytes(data)
    zq("-i", "zng", "-f", "zst", "-o", str(columns), str(given_file))
    assert columns.read_bytes() == zst_of(rows_of(data))
    assert printed(columns, "zst") == lines_of(data)
    written = zng_of(rows_of(data))
    assert zq("-i", "zng", "-f", "zng", "-znglz4blocksize", "0", str(given_file)) == written
    rows.write_bytes(zng_of(rows_of(data), block_bytes=16_384))
    assert printed(rows, "zng") == lines_of(data)


@pytest.mark.parametrize("format", ["zng", "zst"])
@pytest.mark.parametrize("path", LOGS)
def test_the_original_reads_a_data_object(path: Path, format: str, tmp_path: Path) -> None:
    pool = Lake.create_on(LocalStore(tmp_path)).create_pool("p", key="ts", settings={"format": format})
    pool.branch().load([str(path)])
    if format == "zst":
        compact(pool.branch(), pool.at().references)  # objects of compactions have hidden columns
    view = pool.at()
    tables = view.run(view.plan(keep=ROW.names))
    expected = [line for table in tables for line in lines_of(zng_of([rows_of_table(table)]))]
    found = [line for r in view.references for line in printed(tmp_path / view.object_name(r), format)]
    assert sorted(found) == sorted(expected)  # objects of a load may overlap
