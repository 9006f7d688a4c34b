"""Makes data objects with one changed part, in which all checksums are right again.

In Parquet the part is the footer, the page index, the schema of Arrow, a page's header or its content.  In ZNG
and ZST it is the footer's JSON, or the bytes of a group.
"""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from log_lake.objects.checksums import BLOCK
from tests.support import thrift
from tests.support.mutations import changed_json, flipped, mutated
from tests.support.thrift import BINARY, I32, I64, LIST, STRUCT

Struct = dict[tuple[int, int], Any]

_GROUPS, _PAIRS, _CHUNKS, _CHUNK = (4, LIST), (5, LIST), (1, LIST), (3, STRUCT)
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _SIZE = (9, I64), (10, I64), (11, I64), (7, I64)
_COLUMN_INDEX, _OFFSET_INDEX = (6, I64), (4, I64)
_DECODED, _STORED, _CRC = (2, I32), (3, I32), (4, I32)


@dataclass
class Parts:
    """The parts of a data object in Parquet: the pages, the page index after them, and the footer."""

    body: bytes
    index: bytes
    footer: Struct

    @classmethod
    def of(cls, data: bytes) -> Parts:
        footer, at = thrift.footer_of(data)
        end = json.loads(_pair(footer, b"lake"))["data_end"]
        return cls(data[:end], data[end:at], footer)

    def sealed(self) -> bytes:
        """The file with all its checksums right."""
        pairs = {pair[1, BINARY]: pair for pair in self.footer[_PAIRS]}
        described = json.loads(pairs[b"lake"][2, BINARY])
        blocks = [zlib.crc32(self.body[at : at + BLOCK]) for at in range(0, len(self.body), BLOCK)]
        described |= {"data_end": len(self.body), "blocks": blocks}
        pairs[b"lake"][2, BINARY] = json.dumps(described).encode()
        return self.with_sum()

    def with_sum(self) -> bytes:
        """The file with the right checksum of its tail, whatever the metadata say."""
        (pair,) = (pair for pair in self.footer[_PAIRS] if pair[1, BINARY] == b"lake.crc32")
        tails = []
        for told in (b"0" * 8, None):
            pair[2, BINARY] = told or f"{zlib.crc32(tails[0]):08x}".encode()
            tails.append(thrift.with_footer(self.index, self.footer))
        return self.body + tails[1]


def _pair(footer: Struct, key: bytes) -> bytes:
    (value,) = (pair[2, BINARY] for pair in footer[_PAIRS] if pair[1, BINARY] == key)
    return value


def _set_pair(footer: Struct, key: bytes, change: Callable[[bytes], bytes]) -> None:
    for pair in footer[_PAIRS]:
        if pair[1, BINARY] == key:
            pair[2, BINARY] = change(pair[2, BINARY])


def changed_parquet(data: bytes, rng: random.Random) -> bytes:
    """Returns the object with one part changed at random."""
    return rng.choice((_footer, _footer, _footer, _metadata, _metadata, _arrow, _index, _page, _page))(
        data, rng
    )


def _footer(data: bytes, rng: random.Random) -> bytes:
    """Returns the object with a changed footer: row groups, offsets, sizes, statistics, encodings, the order, or
    the schema."""
    for _ in range(50):
        parts = Parts.of(data)
        try:
            if rng.random() < 0.3:  # more often of one column than of the schema and the pairs
                groups = parts.footer[_GROUPS]
                at = rng.randrange(len(groups))
                groups[at] = mutated(groups[at], rng)
            else:
                parts.footer = mutated(parts.footer, rng)
            return parts.sealed() if rng.random() < 0.9 else parts.with_sum()
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            continue  # no footer holds such a value
    return data


def _metadata(data: bytes, rng: random.Random) -> bytes:
    parts = Parts.of(data)
    _set_pair(parts.footer, b"lake", lambda pair: changed_json(pair, rng))
    return parts.with_sum()


def _arrow(data: bytes, rng: random.Random) -> bytes:
    parts = Parts.of(data)
    _set_pair(
        parts.footer, b"ARROW:schema", lambda pair: base64.b64encode(flipped(base64.b64decode(pair), rng))
    )
    return parts.with_sum()


def _index(data: bytes, rng: random.Random) -> bytes:
    parts = Parts.of(data)
    if not parts.index:
        return _footer(data, rng)
    index = flipped(parts.index, rng)
    parts.index = index[: len(parts.index)].ljust(len(parts.index), b"\0")
    return parts.with_sum()


def _page(data: bytes, rng: random.Random) -> bytes:
    """Returns the object with a column whose first page has another header, or other content. The column is moved
    behind all others."""
    for _ in range(50):
        parts = Parts.of(data)
        group = rng.choice(parts.footer[_GROUPS])
        column = rng.choice(group[_CHUNKS])[_CHUNK]
        begin = column.get(_DICTIONARY_PAGE, column[_DATA_PAGE])
        end = begin + column[_SIZE]
        at = rng.choice([at for at in (begin, column[_DATA_PAGE]) if at < end])
        header, content = thrift.decoded(parts.body, at)
        stop = content + header[_STORED]
        page = parts.body[content:stop]
        try:
            if rng.random() < 0.5:
                header = mutated(header, rng)
            else:
                page = _changed_content(page, header, rng)
            if rng.random() < 0.9:
                header[_CRC] = int.from_bytes(zlib.crc32(page).to_bytes(4, "big"), "big", signed=True)
            new = thrift.encoded(header) + page
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, OSError):
            continue  # no header holds such a value
        chunk = parts.body[begin:at] + new + parts.body[stop:end]
        moved = len(parts.body) - begin
        for offset in (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE):
            if offset in column:
                column[offset] += moved + (len(new) - (stop - at) if column[offset] > at else 0)
        column[_SIZE] = len(chunk)
        for one in parts.footer[_GROUPS]:
            for other in one[_CHUNKS]:
                for offset in (_COLUMN_INDEX, _OFFSET_INDEX):
                    if offset in other:
                        other[offset] += len(chunk)
        parts.body += chunk
        return parts.sealed()
    return data


def with_text(data: bytes, column: int, text: bytes) -> bytes:
    """Returns the object in which the column's dictionary has this text instead of its only one."""
    parts = Parts.of(data)
    chunk = parts.footer[_GROUPS][0][_CHUNKS][column][_CHUNK]
    begin, end = chunk[_DICTIONARY_PAGE], chunk[_DICTIONARY_PAGE] + chunk[_SIZE]
    header, content = thrift.decoded(parts.body, begin)
    stop = content + header[_STORED]
    plain = struct.pack("<I", len(text)) + text
    page = pa.Codec("zstd").compress(plain, asbytes=True)
    header |= {_DECODED: len(plain), _STORED: len(page)}
    header[_CRC] = int.from_bytes(zlib.crc32(page).to_bytes(4, "big"), "big", signed=True)
    new = thrift.encoded(header) + page + parts.body[stop:end]
    shorter = end - begin - len(new)
    chunk[_DATA_PAGE] += len(parts.body) - begin - shorter
    chunk[_DICTIONARY_PAGE], chunk[_SIZE] = len(parts.body), len(new)
    for group in parts.footer[_GROUPS]:
        for other in group[_CHUNKS]:
            for offset in (_COLUMN_INDEX, _OFFSET_INDEX):
                if offset in other:
                    other[offset] += len(new)
    parts.body += new
    return parts.sealed()


def _changed_content(page: bytes, header: Struct, rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return flipped(page, rng)
    codec = pa.Codec("zstd")
    content = flipped(codec.decompress(page, header[_DECODED], asbytes=True), rng)
    header[_DECODED] = len(content)
    page = codec.compress(content, asbytes=True)
    header[_STORED] = len(page)
    return page


_MARK = struct.Struct("<8sIII")


def changed_typed(data: bytes, rng: random.Random) -> bytes:
    """Returns the object in ZNG or ZST with another footer, or with other bytes in a group."""
    if rng.random() < 0.5:
        return _with_footer(data, lambda footer: changed_json(footer, rng))
    number = rng.randrange(len(_described(data)["groups"]))
    return with_group(data, number, lambda group: flipped(group, rng))


def with_group(data: bytes, number: int, change: Callable[[bytes], bytes]) -> bytes:
    """Returns the object in ZNG or ZST with as many other bytes in a group."""
    footer = _described(data)
    begin, end = footer["groups"][number][1:3]
    group = change(data[begin:end])[: end - begin].ljust(end - begin, b"\0")
    data = data[:begin] + group + data[end:]
    footer["groups"][number][5] = zlib.crc32(group)
    body = data[: footer["object"]["data_end"]]
    footer["object"]["blocks"] = [zlib.crc32(body[at : at + BLOCK]) for at in range(0, len(body), BLOCK)]
    footer["object"]["sample"] = footer["object"]["sample"][:1]  # so that the rest has room
    return _with_footer(data, lambda _: json.dumps(footer, separators=(",", ":")).encode())


def _described(data: bytes) -> dict[str, Any]:
    at = data.rindex(b"lakerows")
    size = _MARK.unpack_from(data, at)[1]
    described: dict[str, Any] = json.loads(data[at - size : at])
    return described


def _with_footer(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Returns the object with another footer of the same length, and that footer's checksum."""
    at = data.rindex(b"lakerows")
    magic, length, _, after = _MARK.unpack_from(data, at)
    footer = change(data[at - length : at])
    footer = footer.ljust(length) if len(footer) <= length else footer[:length]
    return (
        data[: at - length]
        + footer
        + _MARK.pack(magic, length, zlib.crc32(footer), after)
        + data[at + _MARK.size :]
    )
