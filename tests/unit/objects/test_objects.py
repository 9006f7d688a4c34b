"""Data objects: written sorted and described, read back by key range, and refused when they are not ours."""

from __future__ import annotations

import io
import itertools
import zlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import Corrupt, InvalidInput, ObjectMissing, Unavailable
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, encode_key, encode_value
from lake_core.keys.spec import ARRIVAL
from lake_core.records import Column
from lake_core.schemas import APPEND
from lake_core.schemas.schema import schema_id
from lake_core.store import Store
from log_lake.objects import metadata, read
from log_lake.objects.containers.limits import OBJECT_LIMITS, ObjectLimits
from log_lake.objects.metadata import SAMPLES, ObjectMetadata, Sample
from log_lake.objects.normalize import normalized
from log_lake.objects.read import DataObject
from log_lake.objects.statistics import LONGEST_BOUND, column_statistics
from log_lake.objects.write import WrittenObject, sorted_table, write_object
from log_lake.stores.memory import MemoryStore
from tests.support.arrow_memory import measured_memory
from tests.support.changed_objects import with_text
from tests.support.records import ORIGIN, an_id
from tests.support.stores import ScriptedStore

STORED = (
    pa.null(), pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(9, 2),
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary(3), pa.date32(), pa.date64(),
    pa.time32("s"), pa.time64("ns"), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.duration("ms"),
    pa.list_(pa.int8()), pa.struct([("a", pa.null())]), pa.dictionary(pa.int8(), pa.string()),
)  # fmt: skip
"""Types that a load may bring."""

KEY = PoolKey.parse("k")
NAME = f"pool/data/{an_id(1)}.parquet"


def written(store: Store, table: pa.Table, key: PoolKey = KEY, **fields: Any) -> WrittenObject:
    return write_object(store, table, key=key, object_id=an_id(1), origin=ORIGIN, **fields)


def opened(store: Store) -> DataObject:
    return DataObject(store, pool_id="pool", object_id=an_id(1))


def rows(
    store: Store,
    span: KeyRange | None = None,
    *,
    key: PoolKey = KEY,
    columns: list[str] | None = None,
    batch_rows: int = 1000,
) -> list[dict[str, Any]]:
    with opened(store) as data:
        batches = data.batches(span or KeyRange(), key=key, columns=columns, batch_rows=batch_rows)
        return [row for batch in batches for row in batch.to_pylist()]


def test_a_few_records_are_tried_once_and_then_whole_row_groups_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To decode a group a few records at a time takes three times as long."""
    store = MemoryStore()
    count = OBJECT_LIMITS.row_group + 100
    written(store, pa.table({"k": range(count), "s": ["x" * (i % 50) for i in range(count)]}))
    asked: list[int] = []
    batches = pq.ParquetFile.iter_batches

    def spied(file: pq.ParquetFile, batch_size: int, **options: Any) -> Any:
        if batch_size > 1:  # a look at dictionaries asks for one record
            asked.append(batch_size)
        return batches(file, batch_size, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spied)
    for _ in range(2):
        found = rows(store, batch_rows=100_000)
        assert [r["k"] for r in found] == list(range(count))
        assert [r["s"] for r in found] == ["x" * (i % 50) for i in range(count)]
    assert asked == [read.FIRST_ROWS, count, count]
    assert rows(store, columns=["s"], batch_rows=100_000) == [{"s": r["s"]} for r in found]
    assert asked[3:] == [read.FIRST_ROWS, count]


def with_dictionary(store: Store) -> list[str]:
    """The columns of the first row group that have one."""
    group = pq.ParquetFile(io.BytesIO(store.get(NAME) or b"")).metadata.row_group(0)
    named = [group.column(c) for c in range(group.num_columns)]
    return [c.path_in_schema for c in named if "RLE_DICTIONARY" in c.encodings]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


# ---------------------------------------------------------------- writing


def test_records_are_sorted_and_equal_keys_keep_their_order(store: MemoryStore) -> None:
    written(store, pa.table({"k": [2, 1, 2, None, 1], "v": [0, 1, 2, 3, 4]}))
    assert [(r["k"], r["v"]) for r in rows(store)] == [(None, 3), (1, 1), (1, 4), (2, 0), (2, 2)]


def test_descending_fields_are_sorted_so(store: MemoryStore) -> None:
    key = PoolKey.parse("a,b:desc")
    written(store, pa.table({"b": [1, 2, 3], "a": ["x", "x", "w"]}), key)
    assert [(r["a"], r["b"]) for r in rows(store, key=key)] == [("w", 3), ("x", 2), ("x", 1)]


def test_without_key_fields_records_stay_in_order_of_arrival(store: MemoryStore) -> None:
    action = written(store, pa.table({"v": [3, 1, 2]}), ARRIVAL, sub_pool="$nokey").action
    assert [r["v"] for r in rows(store, key=ARRIVAL)] == [3, 1, 2]
    assert (action.low, action.high, action.sub_pool) == (b"", b"\0", "$nokey")


def test_the_action_says_what_the_object_holds(store: MemoryStore) -> None:
    made = written(store, pa.table({"k": [5, 3, 4], "v": ["x", None, "y"]}), ordinal=7)
    action = made.action
    assert (action.object, action.records, action.ordinal, action.sub_pool) == (an_id(1), 3, 7, "")
    assert action.size == len(store.get(NAME) or b"")
    assert (action.low, action.high) == (encode_value(3), encode_value(5) + b"\0")
    assert action.schema == schema_id(made.schema)
    assert action.columns == (
        Column("k", 0, encode_value(3), encode_value(5)),
        Column("v", 1, encode_value("x"), encode_value("y")),
    )


def test_the_footer_of_an_object_says_all_that_its_transaction_says(store: MemoryStore) -> None:
    action = written(store, pa.table({"k": list(range(100, 0, -1))})).action
    with opened(store) as data:
        end = data.metadata.data_end
        assert data.metadata == ObjectMetadata(
            version=1,
            object=an_id(1),
            origin=ORIGIN,
            key="k",
            sub_pool="",
            schema=action.schema,
            records=100,
            low=action.low,
            high=action.high,
            groups=(encode_value(1),),
            sample=tuple((rank, encode_value(rank + 1)) for rank in [*range(0, 100, 2), 99]),
            data_end=end,
            blocks=(zlib.crc32((store.get(NAME) or b"")[:end]),),
        )


def test_the_file_is_zstd_with_a_page_index_and_says_how_it_is_sorted(store: MemoryStore) -> None:
    written(store, pa.table({"v": [1], "k": [1]}), PoolKey.parse("k:desc"))
    described = pq.ParquetFile(io.BytesIO(store.get(NAME) or b"")).metadata
    group = described.row_group(0)
    assert {group.column(c).compression for c in range(2)} == {"ZSTD"}
    assert group.column(0).has_offset_index
    assert group.sorting_columns == (pq.SortingColumn(1, descending=True, nulls_first=True),)


@pytest.mark.parametrize("inside", [False, True])
def test_records_of_thousands_of_fields_are_not_cut_into_tiny_row_groups(
    store: MemoryStore, inside: bool
) -> None:
    values = pa.nulls(900, pa.int64())
    names = [str(n) for n in range(3000)]
    columns = (
        {"a": pa.StructArray.from_arrays([values] * 3000, names)} if inside else dict.fromkeys(names, values)
    )
    written(store, pa.table({"k": range(900), **columns}))
    assert pq.ParquetFile(io.BytesIO(store.get(NAME) or b"")).num_row_groups == 1


@pytest.mark.parametrize("count", [40, 1_000, 20_000])
def test_columns_whose_values_recur_have_dictionaries(store: MemoryStore, count: int) -> None:
    written(
        store, pa.table({"k": range(count), "few": [i % 5 for i in range(count)], "none": pa.nulls(count)})
    )
    assert with_dictionary(store) == ["few"]


@pytest.mark.parametrize(
    ("count", "dictionaries"), [(OBJECT_LIMITS.row_group - 1, ["late"]), (OBJECT_LIMITS.row_group, [])]
)
def test_of_an_object_of_less_than_a_row_group_a_few_records_tell(
    store: MemoryStore, count: int, dictionaries: list[str]
) -> None:
    """A column that recurs in the first records only: where few are looked at it is taken for one that recurs."""
    late = [0 if i < 256 else i for i in range(count)]
    written(store, pa.table({"k": range(count), "late": late}))
    assert with_dictionary(store) == dictionaries


@pytest.mark.parametrize("kind", STORED, ids=str)
def test_a_column_of_any_type_may_be_empty_in_many_records(store: MemoryStore, kind: pa.DataType) -> None:
    written(store, normalized(pa.table({"k": range(2_000), "v": pa.nulls(2_000, kind)})))
    assert {r["v"] for r in rows(store)} == {None}


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())])], ids=str)
def test_a_key_without_order_is_refused_before_anything_is_written(
    store: MemoryStore, kind: pa.DataType
) -> None:
    with pytest.raises(InvalidInput):
        written(store, pa.table({"k": pa.nulls(1, kind)}))
    assert list(store.list("")) == []


def test_a_store_that_fails_while_it_is_written_is_unavailable() -> None:
    store = ScriptedStore()

    def fail() -> Any:
        raise OSError(28, "no space left on device")

    store.on("open_output", NAME, instead=fail)
    with pytest.raises(Unavailable, match="no space left"):
        written(store, pa.table({"k": [1]}))


def sampled(*chunks: int) -> list[int]:
    """The ranks that are held of records that come in such chunks."""
    sample, first = Sample(), 0
    for count in chunks:
        ranks = sample.wants(first, count)
        sample.take((rank, b"%d" % rank) for rank in ranks)
        first += count
    found = sample.done(first - 1, b"%d" % (first - 1))
    assert [key for _, key in found] == [b"%d" % rank for rank, _ in found]
    return [rank for rank, _ in found]


@pytest.mark.parametrize("records", [1, 2, 3, 64])
def test_few_records_are_all_sampled(records: int) -> None:
    assert sampled(records) == list(range(records))


@pytest.mark.parametrize("chunks", [[65], [1000], [12_345_678], [1, 2, 3, 500, 7], [8192] * 40], ids=str)
def test_many_records_are_sampled_evenly_from_first_to_last(chunks: list[int]) -> None:
    ranks = sampled(*chunks)
    gaps = {b - a for a, b in itertools.pairwise(ranks[:-1])}
    assert len(gaps) == 1
    assert SAMPLES // 2 <= len(ranks) <= SAMPLES + 1
    assert (ranks[0], ranks[-1]) == (0, sum(chunks) - 1)
    assert ranks[-1] - ranks[-2] <= max(gaps)


# ---------------------------------------------------------------- statistics


def column(values: pa.Array) -> Column:
    (found,) = column_statistics(pa.table({"f": values}))
    return found


def test_nothing_but_nulls_and_what_has_no_order_have_no_bounds() -> None:
    assert column(pa.array([None, None], pa.int64())) == Column("f", 2)
    assert column(pa.array([[1]])) == Column("f", 0)
    assert column(pa.array([{"a": 1}, None])) == Column("f", 1)


def test_nan_has_no_place_in_a_bound() -> None:
    nan = float("nan")
    assert column(pa.array([nan, 1.0, None, 2.0])) == Column("f", 1, encode_value(1.0), encode_value(2.0))
    assert column(pa.array([nan, nan])) == Column("f", 0)


@pytest.mark.parametrize("text", ["x" * 1000, "\u00e9" * 500, "\0" * 200, "\0" * 31 + "\u00ff" * 9])
def test_long_bounds_are_cut_and_stay_on_their_side(text: str) -> None:
    found = column(pa.array([text + "a", text + "b"]))
    assert found.low is not None
    assert found.high is not None
    assert len(found.low) <= LONGEST_BOUND
    assert len(found.high) <= LONGEST_BOUND
    assert found.low <= encode_value(text + "a") <= encode_value(text + "b") <= found.high


# ---------------------------------------------------------------- reading a range


@pytest.fixture
def evens(store: MemoryStore) -> MemoryStore:
    """The even numbers below 100, each three times, in row groups of 7."""
    limits = ObjectLimits(row_group=7)
    written(
        store,
        pa.table({"k": [k for k in range(0, 100, 2) for _ in range(3)], "v": list(range(150))}),
        limits=limits,
    )
    return store


@pytest.mark.parametrize("batch_rows", [1, 5, 7, 1000])
@pytest.mark.parametrize(
    ("low", "high"),
    [(None, None), (10, 20), (11, 19), (0, 1), (98, 200), (-5, 0), (12, 12), (50, None), (None, 3)],
)
def test_a_range_gives_its_records_and_no_others(
    evens: MemoryStore, low: int | None, high: int | None, batch_rows: int
) -> None:
    span = KeyRange(b"" if low is None else encode_value(low), None if high is None else encode_value(high))
    expected = [
        i for i in range(150) if (low is None or i // 3 * 2 >= low) and (high is None or i // 3 * 2 < high)
    ]
    assert [r["v"] for r in rows(evens, span, batch_rows=batch_rows)] == expected


def test_a_range_opens_only_the_row_groups_that_it_can_touch(evens: MemoryStore) -> None:
    with opened(evens) as data:
        assert len(data.groups(KeyRange())) == 22
        assert data.groups(KeyRange(encode_value(50), encode_value(51))) == [10, 11]
        assert data.groups(KeyRange(encode_value(200), None)) == [21]


WIDE = tuple(f"c{n}" for n in range(read.KEYS_FIRST))


@pytest.mark.parametrize("batch_rows", [1, 5, 7, 1000])
@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 2), (11, 19), (98, 200), (-5, 0), (12, 12), (13, 14), (50, None), (None, 3), (8, 41)],
)
def test_a_narrow_range_of_many_columns_gives_its_records_and_no_others(
    store: MemoryStore, low: int | None, high: int | None, batch_rows: int
) -> None:
    keys = [k for k in range(0, 100, 2) for _ in range(3)]
    table = pa.table({"k": keys, **{name: [f"{name} {k}" for k in keys] for name in WIDE}})
    written(store, table, limits=ObjectLimits(row_group=40))
    span = KeyRange(b"" if low is None else encode_value(low), None if high is None else encode_value(high))
    expected = [
        row
        for row in table.to_pylist()
        if (low is None or row["k"] >= low) and (high is None or row["k"] < high)
    ]
    for columns in (None, ["k", *reversed(WIDE)], [WIDE[1], "k", WIDE[0], "not there"]):
        found = rows(store, span, columns=columns, batch_rows=batch_rows)
        shown = table.column_names if columns is None else [c for c in columns if c in table.column_names]
        assert found == [{name: row[name] for name in shown} for row in expected]
        assert all([*row] == shown for row in found)


def test_of_a_narrow_range_no_record_behind_it_is_decoded(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 5_000
    written(store, pa.table({"k": range(count), **{name: ["x"] * count for name in WIDE}}))
    rows(store, KeyRange(encode_value(0), encode_value(1)))  # the size of a record is known from now on
    asked: list[tuple[int, Any]] = []
    batches = pq.ParquetFile.iter_batches

    def spied(file: pq.ParquetFile, batch_size: int, **options: Any) -> Any:
        for batch in batches(file, batch_size, **options):
            asked.append((batch.num_rows, options["columns"]))
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spied)
    assert len(rows(store, KeyRange(encode_value(100), encode_value(110)), batch_rows=100_000)) == 10
    assert asked == [(count, ["k"]), (110, [*WIDE])], "and no key twice"
    assert rows(store, KeyRange(encode_value(count), encode_value(count + 1))) == []
    assert asked[2:] == [(count, ["k"])], "and of a key that is not there nothing but keys"


def test_a_prefix_of_the_key_is_a_range(store: MemoryStore) -> None:
    key = PoolKey.parse("a,b")
    written(store, pa.table({"a": ["x", "x", "x\0", "y"], "b": [1, 2, 3, 4]}), key)
    prefix = encode_key(["x"], key)
    assert [r["b"] for r in rows(store, KeyRange(prefix, prefix + AFTER), key=key)] == [1, 2]


def test_columns_are_chosen_by_exact_name_dots_and_all(store: MemoryStore) -> None:
    table = pa.table({"k": [1], "id": ["a"], "id.orig_h": ["b"], "r": [{"x": 1}], "r.x": [2]})
    written(store, table)
    assert rows(store, columns=["id"]) == [{"id": "a"}]
    assert rows(store, columns=["id.orig_h", "r"]) == [{"id.orig_h": "b", "r": {"x": 1}}]
    assert rows(store, columns=["r.x", "not there"]) == [{"r.x": 2}]


# ---------------------------------------------------------------- what is not ours


def test_a_missing_object_is_said_by_name(store: MemoryStore) -> None:
    with pytest.raises(ObjectMissing, match=NAME):
        opened(store)


def test_bytes_that_are_no_parquet_are_corrupt(store: MemoryStore) -> None:
    written(store, pa.table({"k": [1]}))
    whole = store.get(NAME) or b""
    for damaged in (b"garbage", whole[:-20], whole[: len(whole) // 2]):
        store.put(NAME, damaged)
        with pytest.raises(Corrupt, match=NAME):
            opened(store)


def test_damage_inside_is_corrupt_when_it_is_read(store: MemoryStore) -> None:
    written(store, pa.table({"k": list(range(1000))}))
    whole = store.get(NAME) or b""
    store.put(NAME, whole[:4] + b"\xff" * 1000 + whole[1004:])
    with pytest.raises(Corrupt, match=NAME):
        rows(store)


@pytest.mark.parametrize("about", [None, b"garbage", b"{}", b'{"version": 2}'], ids=repr)
def test_a_parquet_file_of_somebody_else_is_corrupt(store: MemoryStore, about: bytes | None) -> None:
    buffer = io.BytesIO()
    table = pa.table({"k": [1]})
    pq.write_table(table if about is None else table.replace_schema_metadata({metadata.KEY: about}), buffer)
    store.put(NAME, buffer.getvalue())
    with pytest.raises(Corrupt, match=NAME):
        opened(store)


def test_an_object_of_a_newer_format_is_refused() -> None:
    described = ObjectMetadata(
        metadata.VERSION + 1, an_id(1), ORIGIN, "k", "", "s", 1, b"a", b"b", (b"a",), ()
    )
    with pytest.raises(Corrupt, match=rf"newer version \(format {metadata.VERSION + 1}\)"):
        metadata.decode(metadata.encode(described), name=NAME)


def test_leading_records_are_counted_by_bisection() -> None:
    table = pa.table({"k": [1, 1, 3, 5]})
    bounds = [encode_value(n) for n in (0, 1, 2, 5, 6)]
    assert [read.rows_below(table, b, KEY) for b in bounds] == [0, 0, 2, 3, 4]


@pytest.mark.parametrize("columns", [None, ["s"]])
def test_an_inlined_object_with_a_text_that_is_not_utf_8_is_corrupt(columns: list[str] | None) -> None:
    """Whoever may write an entry may make its checksum."""
    store = MemoryStore()
    written(store, pa.table({"k": range(50), "s": ["abc"] * 50}))
    data = store.get(NAME)
    assert data is not None
    changed = with_text(data, 1, b"\xf9bc")
    with (
        DataObject(store, pool_id="pool", object_id=an_id(1), data=changed) as inlined,
        pytest.raises(Corrupt, match="Invalid UTF8"),
    ):
        list(inlined.batches(KeyRange(), key=KEY, columns=columns))


def test_sorting_holds_the_records_about_twice() -> None:
    with measured_memory() as pool:
        tables = [pa.table({"k": [at % 97], "s": ["x" * 40_000]}) for at in range(400)]
        size = sum(table.nbytes for table in tables)  # 16 MB in many chunks
        keys = sorted_table(tables, KEY, APPEND)["k"].to_pylist()
        most = pool.max_memory()
    assert keys == sorted(at % 97 for at in range(400))
    assert most < 2.3 * size, most
