"""Makes ZNG and ZST in memory, for tests, and finds files of the original programs, which are beside the
project."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from log_lake.zng.reader import read
from log_lake.zng.rows import Batch, Rows
from log_lake.zng.text_reader import read_text
from log_lake.zng.writer import ZngWriter
from log_lake.zng.zst.reader import ZstFile
from log_lake.zng.zst.writer import ZstWriter

SHARED = Path(__file__).parents[3] / "shared"
CONFORMANCE = SHARED / "conformance"
ZEEK = SHARED / "data" / "zeek" / "zng"


def files(folder: Path, pattern: str) -> list[object]:
    """Returns parameters of a test: the files; or one that is skipped, if there are none."""
    found = sorted(folder.glob(pattern))
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(f"no files at {folder}"))]
    return [pytest.param(path, id=path.name.partition(".")[0]) for path in found]


def rows_of(data: bytes) -> list[Rows]:
    return list(read(io.BytesIO(data), name="test"))


def lines_of(data: bytes) -> list[str]:
    return [rows.text(row) for rows in rows_of(data) for row in range(len(rows))]


def rows_of_text(text: str) -> list[Rows]:
    def refuse(line: int, why: str, _: bytes) -> None:
        raise ValueError(f"line {line}: {why}")

    lines = io.BytesIO(text.encode(errors="surrogateescape"))
    return [rows for rows, _ in read_text(lines, name="test", bad=refuse)]


def zng_of(values: Iterable[Rows | Batch], *, block_bytes: int = 0) -> bytes:
    output = io.BytesIO()
    writer = ZngWriter(output, block_bytes=block_bytes)
    for some in values:
        writer.write(some)
    writer.close()
    return output.getvalue()


def zst_of(values: Iterable[Rows | Batch], **thresholds: int) -> bytes:
    output = io.BytesIO()
    writer = ZstWriter(output, **thresholds)
    for some in values:
        writer.write(some)
    writer.close()
    return output.getvalue()


def opened(data: bytes) -> ZstFile:
    return ZstFile.open(pa.BufferReader(data), name="test")
