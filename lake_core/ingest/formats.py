"""Which format a landed file has, and the reader for it."""

from __future__ import annotations

from collections.abc import Iterator

from lake_core.catalog.settings import FORMATS as ALL_FORMATS
from lake_core.errors import InvalidInput
from lake_core.ingest.block import Block, Reading
from lake_core.ingest.csvfile import read_csv
from lake_core.ingest.ndjson import read_ndjson
from lake_core.ingest.parquetfile import read_parquet

_ENDINGS = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".log": "ndjson",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS = ALL_FORMATS[1:]


def format_of(file: str, declared: str = "auto") -> str:
    """The format by the file's ending (before `.gz`), unless it is said; raises InvalidInput."""
    if declared != "auto":
        if declared not in FORMATS:
            raise InvalidInput(f"format {declared!r} is unknown; use {', '.join(FORMATS)}")
        return declared
    name = file.rpartition("/")[2].lower().removesuffix(".gz")
    for ending, found in _ENDINGS.items():
        if name.endswith(ending):
            return found
    raise InvalidInput(f"{file}: cannot tell the format from the name; say --format {'|'.join(FORMATS)}")


def read_blocks(reading: Reading, *, format: str = "auto", null: str = "") -> Iterator[Block]:
    """The records of a file, a block at a time; raises InvalidInput, NotFound, Unavailable."""
    match format_of(reading.file, format):
        case "ndjson":
            yield from read_ndjson(reading)
        case "csv":
            yield from read_csv(reading, null=null)
        case _:
            yield from read_parquet(reading)
