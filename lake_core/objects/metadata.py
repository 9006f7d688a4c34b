"""What a data object says of itself: enough to rebuild the catalog from the files alone.

One key-value pair of the Parquet footer, `lake`, holds JSON; byte strings are in base64.  Rows of `sample`
are evenly spaced keys with their ranks: in a sorted file an exact quantile sketch.  `groups` are the first
keys of the row groups, by which a reader of a key range skips the others.
"""

from __future__ import annotations

import msgspec

from lake_core.errors import Corrupt

KEY = b"lake"
VERSION = 1
SAMPLES = 64


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who writes an object, and for what; given by the caller of `objects.write`."""

    lake: str
    pool: str
    transaction: str
    writer: str
    job: str = ""
    inputs: tuple[str, ...] = ()


class ObjectMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """The footer's own words."""

    version: int
    object: str
    origin: Origin
    key: str
    sub: str
    schema: str
    records: int
    low: bytes
    high: bytes
    groups: tuple[bytes, ...]
    sample: tuple[tuple[int, bytes], ...]
    partition: tuple[bytes, bytes | None] = (b"", None)
    first_seq: int | None = None
    last_seq: int | None = None


_DECODER = msgspec.json.Decoder(ObjectMetadata)


def encode(metadata: ObjectMetadata) -> bytes:
    """The stored JSON."""
    return msgspec.json.encode(metadata)


def decode(data: bytes | None, *, name: str) -> ObjectMetadata:
    """The metadata of the object `name`; raises Corrupt where it is none of ours."""
    if data is None:
        raise Corrupt(f"{name}: a Parquet file without the metadata of a data object")
    try:
        found = _DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise Corrupt(f"{name}: metadata of the data object cannot be read: {error}") from error
    if found.version > VERSION:
        raise Corrupt(f"{name}: written by a newer version (format {found.version}); upgrade this program")
    return found


def sample_ranks(records: int) -> list[int]:
    """The ranks of evenly spaced records, first and last among them."""
    count = min(SAMPLES, records)
    if count < 2:
        return list(range(count))
    return [rank * (records - 1) // (count - 1) for rank in range(count)]
