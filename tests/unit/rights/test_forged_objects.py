"""Data objects with right checksums that hold what no writer puts there: Corrupt, whoever reads them."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput
from lake_core.history.state import Closing
from lake_core.keys import PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import SetSchema, Transaction
from lake_core.records.pools import PoolsEntry
from lake_core.schemas.schema import stored_schema
from log_lake.lake import Lake
from log_lake.objects.facts import read_facts
from log_lake.objects.read import DataObject
from log_lake.repair.fsck import Fsck
from log_lake.stores.memory import MemoryStore
from tests.support.changed_objects import Parts, _set_pair, with_group
from tests.support.crafted import set_size
from tests.support.records import an_id
from tests.support.thrift import BINARY, LIST

NOT_TEXT = b"n\xebme"
RECORD = {"k": 1, "name": "x", "in": {"name": 2}}


def lake_of(format: str, change: Callable[[bytes], bytes]) -> Lake:
    """A lake with two pools, the only object of one of which is changed."""
    store = MemoryStore("memory://forged")
    lake = Lake.create_on(store)
    for name in ("a", "b"):
        pool = lake.create_pool(name, key="k", settings={"format": format})
        pool.branch().append(pa.Table.from_pylist([RECORD]))
    a = lake.pool("a")
    name = naming.data_object(a.config.id, a.at().references[0].object)
    changed = change(store.get(name) or b"")
    store.put(name, changed)
    set_size(store, a, len(changed))
    return Lake.open_on(store)


def read_whole(lake: Lake, id: str) -> None:
    with DataObject(lake.store, pool_id=lake.pool("a").config.id, object_id=id) as data:
        read_facts(data)
        list(data.batches(EVERYTHING, key=PoolKey.parse("k"), columns=None))


def check(lake: Lake, *, is_read: bool = False) -> None:
    a, b = lake.pool("a"), lake.pool("b")
    id = a.at().references[0].object
    if is_read:  # what is wrong is nothing that a scan needs
        assert a.at().to_table().to_pylist() == [RECORD]
    else:
        with pytest.raises(Corrupt, match=id):
            a.at().to_table()
    with pytest.raises(Corrupt, match=id):
        read_whole(lake, id)
    assert [one.pool for one in Fsck(lake.context, data=True).run() if "object" in one.kind] == ["a"]
    assert b.at().to_table().num_rows == 1


@pytest.mark.parametrize("count", [1, 2], ids=["a field", "a field within a record too"])
def test_a_field_whose_name_is_not_utf8(count: int) -> None:
    def change(data: bytes) -> bytes:
        parts = Parts.of(data)

        def renamed(pair: bytes) -> bytes:
            schema = base64.b64decode(pair)
            assert schema.count(b"name") == 2
            return base64.b64encode(schema.replace(b"name", NOT_TEXT, count))

        _set_pair(parts.footer, b"ARROW:schema", renamed)
        return parts.sealed()

    check(lake_of("parquet", change), is_read=True)


@pytest.mark.parametrize("number", [0, 1], ids=["a field", "a field within a record"])
def test_a_column_whose_name_is_not_utf8(number: int) -> None:
    def change(data: bytes) -> bytes:
        parts = Parts.of(data)
        named = [element for element in parts.footer[2, LIST] if element[4, BINARY] == b"name"]
        named[number][4, BINARY] = NOT_TEXT
        return parts.sealed()

    check(lake_of("parquet", change))


def test_a_null_instead_of_a_record() -> None:
    def change(data: bytes) -> bytes:
        return with_group(data, 0, lambda group: group[: group.index(0x17) + 1] + b"\0" + b"\xff" * 99)

    check(lake_of("zng", change))


@pytest.mark.parametrize("nested", [False, True])
def test_a_stored_schema_whose_names_are_not_utf8(nested: bool) -> None:
    field = pa.field("name", pa.int64())
    schema = pa.schema([pa.field("outer", pa.list_(pa.struct([field]))) if nested else field])
    data = schema.serialize().to_pybytes()
    assert stored_schema(data) == schema
    with pytest.raises(Corrupt, match="a stored schema"):
        stored_schema(data.replace(b"name", NOT_TEXT))


@pytest.mark.parametrize("time", [2**62, -(2**62), 253_402_300_800_000_000])
def test_a_time_that_no_reader_can_show(time: int) -> None:
    for made in (
        lambda: Transaction(an_id(1), "main", 0, 0, time, "me", (SetSchema("0" * 20, b""),)),
        lambda: Closing(1, time, "me"),
        lambda: PoolsEntry(an_id(1), time, "me", ()),
    ):
        with pytest.raises(Corrupt, match="years 1 to 9999"):
            made()


@pytest.mark.parametrize("expires", [1e12, float("inf")])
def test_a_tag_expires_before_the_year_10000(expires: float) -> None:
    lake = lake_of("parquet", lambda data: data)
    with pytest.raises(InvalidInput, match="after the year 9999"):
        lake.pool("b").tag("t", at="main", expires=expires)
