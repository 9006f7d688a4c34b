"""Records: whatever can be made comes back from its bytes as it was, and equal records have equal bytes."""

from __future__ import annotations

import zlib

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from lake_core import naming
from lake_core.keys import KeyField, PoolKey
from lake_core.records import (
    AddObject,
    AddTombstone,
    Close,
    Column,
    ConfigurePool,
    Consume,
    CreatePool,
    DropPool,
    Entry,
    MarkApplied,
    PoolsEntry,
    RemoveReference,
    RemoveTombstone,
    RenamePool,
    SetSchema,
    Source,
    Transaction,
)
from lake_core.records.codec import Codec
from lake_core.records.conditions import IsNull
from lake_core.records.decoding import FIRST_TIME, LAST_TIME
from lake_core.records.pools import PoolConfig

IDS = st.text("0123456789ABCXYZabcxyz", min_size=27, max_size=27)
TEXTS = st.text(max_size=8)
NAMES = st.text("abc.-_\u00e9", min_size=1, max_size=8)
COUNTS = st.integers(0, 2**63 - 1)
SOME = st.integers(1, 2**63 - 1)
PLACES = st.integers(0, 2**31 - 1)
SUB_POOLS = st.sampled_from(["", *naming.SUB_POOLS])
BYTES = st.binary(max_size=12)
BOUNDS = st.none() | st.binary(min_size=1, max_size=12)
RANGES = st.tuples(BYTES, BYTES).filter(lambda r: r[0] < r[1])

COLUMNS = st.builds(Column, TEXTS, COUNTS, BOUNDS, BOUNDS)
OBJECTS = st.builds(
    lambda id, records, size, schema, span, place, sub, columns, seqs, applied: AddObject(
        id, records, size, schema, span[0], span[1], place, sub, tuple(columns), seqs, applied
    ),
    IDS, SOME, SOME, TEXTS, RANGES, PLACES, SUB_POOLS, st.lists(COLUMNS, max_size=3),
    st.none() | st.tuples(SOME, SOME).map(lambda seqs: (min(seqs), max(seqs))), COUNTS,
)  # fmt: skip
SOURCES = st.builds(Source, TEXTS, COUNTS, TEXTS, COUNTS)
ACTIONS = st.one_of(
    OBJECTS,
    st.builds(RemoveReference, IDS, BYTES),
    st.builds(MarkApplied, IDS, BYTES, COUNTS),
    st.builds(
        AddTombstone,
        NAMES,
        st.just(b""),
        st.none() | st.binary(min_size=1),
        st.none() | st.builds(IsNull, st.tuples(NAMES)),
        TEXTS,
        st.booleans(),
        st.booleans(),
    ),
    st.builds(RemoveTombstone, NAMES),
    st.builds(SetSchema, TEXTS, BYTES),
    st.builds(Consume, st.lists(SOURCES, max_size=3).map(tuple)),
    st.builds(Close),
)
TIMES = st.integers(FIRST_TIME, LAST_TIME)
TRANSACTIONS = st.builds(
    Transaction,
    id=IDS,
    branch=NAMES,
    parent=COUNTS,
    read_version=COUNTS,
    time=TIMES,
    author=TEXTS,
    actions=st.lists(ACTIONS, min_size=1, max_size=4).map(tuple),
    message=TEXTS,
    token=TEXTS,
)
ENTRIES = st.builds(Entry, IDS, st.lists(TRANSACTIONS, min_size=1, max_size=3).map(tuple))

FIELDS = st.lists(st.builds(KeyField, NAMES, st.booleans()), max_size=3, unique_by=lambda f: f.name)
SETTINGS = st.dictionaries(TEXTS, TEXTS, max_size=3)
POOLS = st.builds(PoolConfig, IDS, NAMES, st.builds(lambda f: PoolKey(tuple(f)), FIELDS), TEXTS, SETTINGS)
POOL_ACTIONS = st.one_of(
    st.builds(CreatePool, POOLS),
    st.builds(ConfigurePool, IDS, SETTINGS),
    st.builds(RenamePool, IDS, NAMES),
    st.builds(DropPool, IDS),
)
POOLS_ENTRIES = st.builds(
    PoolsEntry, IDS, TIMES, TEXTS, st.lists(POOL_ACTIONS, min_size=1, max_size=4).map(tuple)
)


@given(ENTRIES)
def test_an_entry_comes_back_from_its_bytes(made: Entry) -> None:
    codec = Codec(Entry)
    data = codec.encode(made)
    assert codec.decode(data, name="x") == made
    assert codec.encode(codec.decode(data, name="x")) == data


@given(POOLS_ENTRIES)
def test_an_entry_of_the_list_of_pools_comes_back_from_its_bytes(made: PoolsEntry) -> None:
    codec = Codec(PoolsEntry)
    data = codec.encode(made)
    assert codec.decode(data, name="x") == made
    assert codec.encode(codec.decode(data, name="x")) == data


@given(st.one_of(ENTRIES, POOLS_ENTRIES))
def test_an_entry_is_plain_messagepack_behind_its_header(made: Entry | PoolsEntry) -> None:
    data: bytes = Codec(type(made)).encode(made)
    assert data[:4] == b"LKJ\x02"
    assert data[4:8] == zlib.crc32(data[8:]).to_bytes(4, "big")
    assert msgspec.msgpack.decode(data[8:])["id"] == made.id
