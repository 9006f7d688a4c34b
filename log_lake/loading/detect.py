"""Finds a file's format, and reads the file with the reader of that format.

`_TABLE` has a row per format.  Formats with a mark in their first bytes (Parquet, ORC, Avro, ZNG, and some that
the lake does not read) are recognized by it, even if the file's name says otherwise.  ZST has its mark at the
end of the file. That place is read only if the file does not begin like text, or if nothing else shows the
format. For text, the ending of the name decides.  If the ending says nothing, a first `{` or `[` means JSON.

The text form of ZNG begins like JSON, except that most field names in it have no quotes.

`.zst` is the ending of two kinds of files: ZST, and files compressed with zstd.  Their first bytes tell them
apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from lake_core.errors import InvalidInput
from lake_core.phrases import choices
from log_lake.loading.block import Block, Reading
from log_lake.loading.checks import checked
from log_lake.loading.expansion import content_of
from log_lake.loading.formats.avro import read_avro
from log_lake.loading.formats.csv import read_csv
from log_lake.loading.formats.csv_first_lines import w3c_log
from log_lake.loading.formats.json import read_ndjson
from log_lake.loading.formats.orc import read_orc
from log_lake.loading.formats.parquet import read_parquet
from log_lake.loading.formats.zng import read_zng
from log_lake.loading.key_paths import may_have_key
from log_lake.loading.opening import first_bytes, last_bytes
from log_lake.loading.options import FORMATS as ALL_FORMATS
from log_lake.zng.reader import looks_like_zng
from log_lake.zng.zst.layout import EMPTY, TRAILER_BYTES, has_trailer

_COMPRESSED = (".gz", ".zst", ".zstd", ".bz2", ".xz")

FORMATS = ALL_FORMATS[1:]
"""The formats that a user may declare.  `json` is lines, an array, or documents; `ndjson` is lines only."""


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """How the files of one format are found and read.

    `read`: yields a file's records in blocks, in the order of the file; raises InvalidInput.  `endings`: the
    endings of such files' names, in lower case.  `mark`: the first bytes of every such file; empty if they
    differ.  `is_text`: the file's content is text, whose size `opening` limits.  `trusts_json`: the reader
    itself wrote all typed JSON in its blocks, so `checks` does not check it again.
    """

    read: Callable[[Reading], Iterator[Block]]
    endings: tuple[str, ...] = ()
    mark: bytes = b""
    is_text: bool = False
    trusts_json: bool = False


def _read_json(reading: Reading, *, only_lines: bool = False) -> Iterator[Block]:
    """Reads a JSON file.  Keys are read as the class that the pool's records show; otherwise a first key of
    another class would make all later ones bad."""
    if reading.contract is not None:
        reading = replace(reading, declared={**reading.contract.key_fields, **reading.declared})
    return read_ndjson(reading, only_lines=only_lines)


def json_lines(reading: Reading) -> Iterator[Block]:
    """Yields the records of JSON lines, not yet examined by `checks`. Raises InvalidInput."""
    return _read_json(reading, only_lines=True)


def _read_csv(reading: Reading) -> Iterator[Block]:
    """Reads a CSV file in the types of the pool's fields, because a text shows less of its type than other
    formats."""
    if reading.contract is not None:
        fields = reading.contract.scalars.items()
        taken = {name: field for name, field in fields if name not in reading.declared}
        reading = replace(reading, declared={**reading.declared, **taken}, taken=frozenset(taken))
    return read_csv(reading)


_TABLE = {
    "json": FileFormat(
        read=_read_json,
        endings=(".ndjson", ".jsonl", ".json", ".geojson", ".log"),
        is_text=True,
        trusts_json=True,
    ),
    "ndjson": FileFormat(read=json_lines, is_text=True, trusts_json=True),
    "csv": FileFormat(
        read=_read_csv, endings=(".csv", ".tsv", ".tab", ".psv"), is_text=True, trusts_json=True
    ),
    "parquet": FileFormat(read=read_parquet, endings=(".parquet", ".pq"), mark=b"PAR1"),
    "avro": FileFormat(read=read_avro, endings=(".avro",), mark=b"Obj\x01", trusts_json=True),
    "orc": FileFormat(read=read_orc, endings=(".orc",), mark=b"ORC"),
    "zng": FileFormat(read=partial(read_zng, format="zng"), endings=(".zng",)),
    "zst": FileFormat(read=partial(read_zng, format="zst")),
    "zson": FileFormat(read=partial(read_zng, format="zson"), endings=(".zson",), is_text=True),
}
"""The row of each format, by its name in `FORMATS`."""

_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Control characters that text does not have.  Files of UTF-16 and UTF-32, which have zero bytes, are recognized
by their marks."""

_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]")
_BARE_NAME = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*[A-Za-z_$][A-Za-z0-9_$]*\s*:")

_TEXT_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")

_REFUSED = (
    (rb"PAR[E]", "an encrypted Parquet file", "decrypt it first"),
    (rb"PK\x03\x04(?s:.{0,4000})xl/", "an Excel workbook", "save the sheet as CSV"),
    (rb"PK\x03\x04|PK\x05\x06", "a ZIP archive", "unpack it first"),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document (.xls, .doc)", "save the sheet as CSV"),
    (rb"%PDF-", "a PDF", "extract the table first"),
    (rb"\s*<!doctype html|\s*<html", "an HTML page", "perhaps a download failed; download it again"),
    (rb"\s*<\?xml|\s*<[a-z]+[^>]*>", "XML", "convert it to JSON or CSV"),
    (rb"SQLite format 3\x00", "an SQLite database", "export its tables as CSV"),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file", "convert it to Parquet"),
    (rb"CDF[\x01\x02\x05]", "a NetCDF file", "convert it to Parquet"),
    (rb"\x93NUMPY", "a NumPy array", "convert it to Parquet"),
    (rb"ARROW1\x00\x00|FEA1", "an Arrow or Feather file", "convert it to Parquet"),
    (rb"RD[AX][23]\n|[XA]\n\x00\x00\x00[\x02\x03]|[XA]\n[23]\n\d", "R data", "save it as CSV or Parquet"),
    (rb"\x80[\x02-\x05][\x95}\]c(K]", "a Python pickle", "save it as CSV or Parquet"),
    (rb"(?s:.{257})ustar", "a tar archive", "unpack it first"),
    (rb"7z\xbc\xaf\x27\x1c|Rar!\x1a\x07", "an archive", "unpack it first"),
    (rb"\x04\x22\x4d\x18|\x1f\x9d|\x1f\xa0|\xff\x06\x00\x00sNaPpY", "compressed with lz4, compress or snappy",
     "use gzip, zstd, bz2 or xz"),
    (rb"\x1f\x8b|\x28\xb5\x2f\xfd|BZh[1-9]1AY|\xfd7zXZ", "compressed twice", "unpack it once"),
    (rb"\x89PNG\r\n|GIF8|\xff\xd8\xff|II\*\x00|MM\x00\*|RIFF|\x00\x00\x01\x00", "an image or a recording",
     "leave it out"),
    (rb"\$FL[23]@", "an SPSS file", "convert it to Parquet"),
    (rb"<stata_dta>|[\x71-\x73][\x01\x02]\x01\x00", "a Stata file", "convert it to Parquet"),
    (rb"\x7fELF|MZ|\xca\xfe\xba\xbe", "a program", "leave it out"),
    (rb"SEQ[\x04-\x06]", "a Hadoop sequence file", "convert it to Parquet"),
)  # fmt: skip
_REFUSED_PATTERNS = [(re.compile(pattern, re.IGNORECASE), what, do) for pattern, what, do in _REFUSED]


def format_by_name(file: str, declared: str = "auto") -> str:
    """Returns the declared format, or else the format of the name's ending (before the ending of a compression);
    "" if it is unknown.

    Raises InvalidInput for an unknown declared format.
    """
    if declared != "auto":
        if declared not in FORMATS:
            raise InvalidInput(f"unknown format {declared!r}: use {choices(FORMATS)}")
        return declared
    name = file.rpartition("/")[2].lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return next((format for format, row in _TABLE.items() if name.endswith(row.endings)), "")


def format_of(reading: Reading, declared: str = "auto") -> str:
    """Returns the format of a file, found by its content and its name.

    Raises InvalidInput if the lake does not read the format, or cannot recognize it.
    """
    by_name = format_by_name(reading.file, declared)
    if declared != "auto":
        return by_name
    begin = first_bytes(reading)
    if why := w3c_log(begin, reading.csv):
        reading.unreadable(0, why)
    if by_bytes := _format_by_bytes(begin):
        if by_name and by_name != by_bytes:
            reading.tell(f"format {by_bytes}, by its first bytes")
        return by_bytes
    refused = next(((what, do) for pattern, what, do in _REFUSED_PATTERNS if pattern.match(begin)), None)
    is_text = not _NO_TEXT.search(begin) or begin.startswith(_TEXT_MARKS)
    is_named_so = reading.file.lower().endswith(".zst")
    is_in_doubt = refused or is_named_so or not is_text or not (by_name or _JSON.match(begin))
    may_be_zst = begin and not begin[0] % 2  # it begins with the tag of a primitive
    if is_in_doubt and may_be_zst and has_trailer(last_bytes(reading, TRAILER_BYTES)):
        if by_name or not is_named_so:
            reading.tell("format zst, by its last bytes")
        return "zst"
    if refused:
        raise InvalidInput(f"{reading.file}: this is {refused[0]}; {refused[1]}")
    if by_name:
        return by_name
    if _BARE_NAME.match(begin):
        reading.tell("format zson, by its first name, which has no quotes")
        return "zson"
    if _JSON.match(begin):
        reading.tell("format json, by its first character")
        return "json"
    if not begin.strip() and not reading.file.rpartition("/")[2].strip("-"):
        return "json"  # standard input without a byte
    raise InvalidInput(
        f"{reading.file}: neither the name nor the first bytes tell the format; add --format {'|'.join(FORMATS)} "
        "(in a program: format=)"
    )


def _format_by_bytes(begin: bytes) -> str:
    """Returns the format whose mark the bytes begin with; "" if there is none."""
    for format, row in _TABLE.items():
        if row.mark and begin.startswith(row.mark):
            return format
    if begin.startswith(EMPTY):
        return "zst"
    return "zng" if looks_like_zng(begin) else ""


def read_blocks(reading: Reading, *, format: str = "auto") -> Iterator[Block]:
    """Yields the records of a file, a block at a time, within the limits.

    Raises InvalidInput, NotFound, Unavailable.
    """
    row = _TABLE[format_of(reading, format)]
    blocks = row.read(reading)
    if not row.is_text:
        blocks = _measured(blocks, reading)
    yield from checked(blocks, reading, trusts_json=row.trusts_json)


def _measured(blocks: Iterator[Block], reading: Reading) -> Iterator[Block]:
    """Yields the blocks.  Raises InvalidInput when their tables together exceed `Reading.expansion`."""
    content = 0
    for block in blocks:
        content += content_of(block.table)
        if fault := reading.expansion.fault(content):
            reading.unreadable(0, fault)
        yield block


def read_row_groups(reading: Reading, row_groups: list[int]) -> Iterator[Block]:
    """Yields the records of some row groups of a Parquet file, like `read_blocks`.

    Whether a record has the key is checked only if the file lacks the field, because other tasks read the other
    row groups.
    """
    blocks = _measured(read_parquet(reading, row_groups), reading)
    first = next(blocks, None)
    if first is not None:
        lacks = bool(reading.key) and not may_have_key(reading.key[0], first.table.schema.names)
        yield from checked(chain([first], blocks), reading if lacks else replace(reading, keyless="accept"))
