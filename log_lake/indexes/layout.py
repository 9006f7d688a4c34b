"""The bytes of an index object: a header of 64 bytes, then pages of blocks, each with a checksum.

    0   4   `LKIX`
    4   2   version: 1
    6   2   kind: 1 is bloom, 2 is values, 3 is sketch
    8   8   digest of the rule
    16  16  digest of the data object's name
    32  8   distinct values; of a sketch, records
    40  8   blocks; of other kinds than bloom, bytes of the body
    48  8   zero
    56  8   xxh3 of the bytes before it

A page of a bloom filter has up to 127 blocks of 32 bytes, and the xxh3 of these with the page's number and the
header's checksum as seed.  Integers are little endian.  A reader needs the header and one page.  So it knows that a
page is whole, is the page that it asked for, and belongs to this rule and this data object.  Other kinds have one
body, which is read as a whole, and its xxh3 with the seed of page 0 (`row_groups`, `sketch`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import blake2b

import xxhash

from lake_core.errors import Corrupt
from lake_core.ids import without_home
from log_lake.indexes.bloom import BLOCK, blocks_for
from log_lake.indexes.rule import BLOOM, SKETCH, VALUES, IndexRule

HEADER = 64
PAGE_BLOCKS = 127
PAGE = PAGE_BLOCKS * BLOCK + 8
"""Bytes of a whole page: nearly 4 KiB, which a disk reads as fast as one block."""

_MAGIC, _VERSION = b"LKIX", 1
_KINDS = {BLOOM: 1, VALUES: 2, SKETCH: 3}
_BLOOM = _KINDS[BLOOM]
_HEADER = struct.Struct("<4sHH8s16sQQQ")
_SUM = struct.Struct("<Q")
_BITS = 2**64


@dataclass(frozen=True)
class IndexHeader:
    """What the header of an index object says: its kind, its distinct values, its blocks (or the bytes of its
    body), and the header's checksum."""

    kind: int
    values: int
    blocks: int
    sum: int

    @property
    def size(self) -> int:
        """Bytes of the whole index object."""
        if self.kind != _BLOOM:
            return HEADER + self.blocks + 8
        return HEADER + self.blocks * BLOCK + 8 * -(-self.blocks // PAGE_BLOCKS)


@dataclass(frozen=True)
class IndexPage:
    """Where a page lies in an index object: from `begin` (inclusive) to `end` (exclusive)."""

    number: int
    begin: int
    end: int


def index_bytes(rule: IndexRule, object_id: str, *, values: int, body: bytes) -> bytes:
    """The index object of a data object: the filter of its `values` distinct values, or the body of another
    kind."""
    is_bloom = rule.kind == BLOOM
    blocks = len(body) // BLOCK if is_bloom else len(body)
    step = PAGE_BLOCKS * BLOCK if is_bloom else max(1, len(body))
    begin = _HEADER.pack(
        _MAGIC,
        _VERSION,
        _KINDS[rule.kind],
        bytes.fromhex(rule.digest),
        _object_digest(object_id),
        values,
        blocks,
        0,
    )
    total = xxhash.xxh3_64_intdigest(begin)
    parts = [begin, _SUM.pack(total)]
    for number, start in enumerate(range(0, len(body) or 1, step)):
        page = body[start : start + step]
        parts += [page, _SUM.pack(_page_sum(page, total, number))]
    return b"".join(parts)


def read_header(data: bytes, digest: str, object_id: str) -> IndexHeader:
    """The header in these bytes.  Raises Corrupt if they are not the index of this rule and data object."""
    if len(data) < HEADER:
        raise Corrupt("it is too short")
    magic, version, kind, own_digest, object_digest, values, blocks, rest = _HEADER.unpack_from(data)
    (total,) = _SUM.unpack_from(data, HEADER - 8)
    if magic != _MAGIC or xxhash.xxh3_64_intdigest(data[: HEADER - 8]) != total:
        raise Corrupt("its header is damaged")
    if version != _VERSION or kind not in _KINDS.values() or rest:
        raise Corrupt("a newer version of log-lake wrote it")
    if own_digest != bytes.fromhex(digest) or object_digest != _object_digest(object_id):
        raise Corrupt("it is the index of another rule or data object")
    if kind == _BLOOM and blocks != blocks_for(values):
        raise Corrupt("its header does not fit its values")
    return IndexHeader(kind, values, blocks, total)


def page_of(header: IndexHeader, block: int) -> IndexPage:
    """The page that has a block."""
    number = block // PAGE_BLOCKS
    begin = HEADER + number * PAGE
    return IndexPage(number, begin, min(begin + PAGE, header.size))


def block_in(page: bytes, place: IndexPage, header: IndexHeader, block: int) -> bytes:
    """The block in the bytes of its page.  Raises Corrupt if the page is damaged."""
    if len(page) != place.end - place.begin or len(page) <= 8:
        raise Corrupt("it is too short")
    blocks = page[:-8]
    if _SUM.unpack_from(page, len(page) - 8)[0] != _page_sum(blocks, header.sum, place.number):
        raise Corrupt("a page is damaged")
    at = (block - place.number * PAGE_BLOCKS) * BLOCK
    return blocks[at : at + BLOCK]


def check_whole(data: bytes, digest: str, object_id: str) -> IndexHeader:
    """The header of a whole index object.  Raises Corrupt if any part of it is damaged."""
    header = read_header(data, digest, object_id)
    if len(data) != header.size:
        raise Corrupt("it has another size than its header says")
    if header.kind != _BLOOM:
        if _SUM.unpack_from(data, len(data) - 8)[0] != _page_sum(data[HEADER:-8], header.sum, 0):
            raise Corrupt("its body is damaged")
        return header
    for block in range(0, header.blocks, PAGE_BLOCKS):
        place = page_of(header, block)
        block_in(data[place.begin : place.end], place, header, block)
    return header


def body_in(data: bytes, digest: str, object_id: str) -> tuple[IndexHeader, bytes]:
    """The header and the body of a whole index object that is no bloom filter.  Raises Corrupt."""
    header = check_whole(data, digest, object_id)
    return header, data[HEADER:-8]


def _object_digest(object_id: str) -> bytes:
    return blake2b(without_home(object_id).encode(), digest_size=16).digest()


def _page_sum(page: bytes, total: int, number: int) -> int:
    return xxhash.xxh3_64_intdigest(page, seed=(total + number) % _BITS)
