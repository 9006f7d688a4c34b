"""A reference: a data object clipped to a key range, as a branch holds it; and tables of references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa

from lake_core.checkpoints.layout import rows
from lake_core.keys import KeyRange
from lake_core.records import Column
from lake_core.records.branching import check_data
from lake_core.records.sums import check_sums


class Reference(msgspec.Struct, frozen=True, gc=False):
    """A data object clipped to keys from `low` to before `high`.

    `seq` is the sequence of its newest record; `ordinal` orders the objects of one transaction by arrival.
    `oldest` is None if all records have the sequence `seq`.  Otherwise a compaction wrote the object: `oldest`
    is the sequence of its oldest record, and each record stores its own sequence and ordinal.  The object has
    no record that a tombstone up to version `applied` covers.  `lifts` turn the sequences that the object
    stores into those that they have on this branch (`history.lift`).  `data` are the bytes of an inlined
    object, which is not on the store; b"" for an object on the store.  `content` are the sums
    of the object (`records.sums`), b"" if it has none.

    No reference can be part of a cycle, so the garbage collector does not visit it: a large pool has millions.
    """

    object: str
    low: bytes
    high: bytes
    seq: int
    ordinal: int
    records: int
    size: int
    schema: str
    sub_pool: str = ""
    columns: tuple[Column, ...] = ()
    oldest: int | None = None
    applied: int = 0
    lifts: tuple[int, ...] = ()
    data: bytes = b""
    content: bytes = b""

    @property
    def first_seq(self) -> int:
        """The sequence of its oldest record."""
        return self.seq if self.oldest is None else self.oldest

    @property
    def key_range(self) -> KeyRange:
        """The keys of the reference."""
        return KeyRange(self.low, self.high)

    @property
    def order(self) -> tuple[bytes, int, int, str]:
        """The key by which references are sorted: low bound, arrival, then id, so that every process has the same
        order."""
        return self.low, self.seq, self.ordinal, self.object


class ColumnsAndMore(msgspec.Struct, frozen=True, omit_defaults=True):
    """The stored value of a reference that has lifts or sums, or is inlined; other references store their columns
    alone."""

    columns: tuple[Column, ...]
    lifts: tuple[int, ...] = ()
    data: bytes = b""
    content: bytes = b""


_COLUMNS = msgspec.msgpack.Decoder(tuple[Column, ...] | ColumnsAndMore)
_NO_COLUMNS = msgspec.msgpack.encode(())
_NO_LIFTS: tuple[int, ...] = ()


def _value(reference: Reference) -> bytes:
    if reference.lifts or reference.data or reference.content:
        more = ColumnsAndMore(reference.columns, reference.lifts, reference.data, reference.content)
        return msgspec.msgpack.encode(more)
    return msgspec.msgpack.encode(reference.columns) if reference.columns else _NO_COLUMNS


def to_rows(references: Sequence[Reference]) -> pa.Table:
    """Returns the references as rows of a checkpoint; all must belong to one sub-pool."""
    return rows(
        key=[r.low for r in references],
        high=[r.high for r in references],
        object=[r.object for r in references],
        seq=[r.seq for r in references],
        oldest=[r.oldest for r in references],
        applied=[r.applied for r in references],
        place=[r.ordinal for r in references],
        records=[r.records for r in references],
        size=[r.size for r in references],
        schema=[r.schema for r in references],
        value=[_value(r) for r in references],
    )


def are_inlined(table: pa.Table) -> list[bool]:
    """Returns for each of the rows, in their order, whether it holds the bytes of its object."""
    decoded = map(_COLUMNS.decode, table["value"].to_pylist())
    return [isinstance(one, ColumnsAndMore) and bool(one.data) for one in decoded]


_NAMES = ("object", "key", "high", "seq", "oldest", "applied", "place", "records", "size", "schema", "value")


def from_rows(table: pa.Table, *, sub_pool: str) -> Iterator[Reference]:
    """Yields the references that the rows hold."""
    columns = (table[name].to_pylist() for name in _NAMES)
    for row in zip(*columns, strict=True):
        object, low, high, seq, oldest, applied, ordinal, records, size, schema, value = row
        decoded = _COLUMNS.decode(value)
        if isinstance(decoded, ColumnsAndMore):
            statistics, lifts, data = decoded.columns, decoded.lifts, decoded.data
            content = decoded.content
            check_data(object, data, size=size, inlined=bool(data))
            check_sums(object, content, has_ages=oldest is not None)
        else:
            statistics, lifts, data, content = decoded, _NO_LIFTS, b"", b""
        yield Reference(
            object,
            low,
            high,
            seq,
            ordinal,
            records,
            size,
            schema,
            sub_pool,
            statistics,
            oldest,
            applied,
            lifts,
            data,
            content,
        )


def in_order(references: Iterable[Reference]) -> list[Reference]:
    """Returns the references by low bound, then by arrival."""
    return sorted(references, key=lambda r: r.order)


def span_of(references: Iterable[Reference]) -> KeyRange:
    """Returns the range from the lowest bound of the references to the highest; there must be at least one
    reference."""
    all_references = list(references)
    return KeyRange(min(r.low for r in all_references), max(r.high for r in all_references))
