"""`cluster.by=FIELD:N`: records lie by the hash of a field, and each object says its bucket only if it is true."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lake_core.checkpoints import SectionPart
from lake_core.errors import Corrupt, InvalidInput
from lake_core.history import Reference
from lake_core.history.snapshot.reference import from_rows, to_rows
from lake_core.keys.encoding import encode_value
from lake_core.records.column import MOST_BUCKETS, Bucket, Column
from lake_core.records.conditions import Compare
from log_lake.indexes.cluster import buckets_of
from log_lake.indexes.cluster_rule import ClusterRule
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.reading.clustered import may_lie_there
from log_lake.repair.check_objects import check_objects
from log_lake.repair.compare import first_difference
from log_lake.repair.fsck import Fsck
from log_lake.stores.memory import MemoryStore

USERS = [f"u{number % 37}" for number in range(400)]


def pool_with(by: str = "user:8", *, key: str = "k", kind: str = "append", **more: str) -> Pool:
    settings = {"cluster.by": by, "cluster.least": "1B", **{n.replace("_", "."): v for n, v in more.items()}}
    lake = Lake.create_on(MemoryStore("memory://clusters"))
    return lake.create_pool("p", key=key, kind=kind, settings=settings)


def load(pool: Pool, users: list[Any] = USERS, *, first: int = 0) -> None:
    pool.branch().append(pa.table({"k": list(range(first, first + len(users))), "user": users}))


def buckets(pool: Pool, at: str = "main") -> list[int | None]:
    """The buckets that the objects state, in order; None for an object of several."""
    stated = ([c.bucket for c in r.columns if c.bucket] for r in pool.at(at).references)
    return sorted((one[0].number if one else None for one in stated), key=lambda n: -1 if n is None else n)


def faults(pool: Pool) -> list[str]:
    return [one.what for one in Fsck(pool.context, (), data=True, older_than=0.0).run()]


def test_a_load_is_one_object_for_each_bucket_and_a_lookup_reads_one() -> None:
    pool = pool_with()
    load(pool)
    assert buckets(pool) == list(range(8))
    for user in ("u0", "u5", "u36"):
        plan = pool.at().plan(where=f"user = '{user}'")
        assert len(plan.references) == 1
        assert plan.left_out.by_cluster + plan.left_out.by_statistics == 7
        keys = pool.at().to_table(where=f"user = '{user}'")["k"].to_pylist()
        assert keys == [k for k, own in enumerate(USERS) if own == user]
    assert pool.at().plan(where="user = 'u20x'").left_out.by_cluster > 0
    assert len(pool.at().plan(where="user in ('u0', 'u5')").references) == 2
    assert len(pool.at().plan(where="user >= 'u5' and user <= 'u5'").references) == 1
    assert len(pool.at().plan(where="not (user = 'u5')").references) == 8
    assert faults(pool) == []


def test_a_small_load_is_one_object_that_is_always_read() -> None:
    pool = pool_with(cluster_least="1MiB")
    load(pool)
    assert buckets(pool) == [None]
    load(pool, ["u1"] * 5)  # all records have one bucket, which costs nothing to say
    (number,) = {number for number in buckets(pool) if number is not None}
    assert [number] == list(map(int, buckets_of(pa.table({"user": ["u1"]}), ClusterRule("user", 8)) or []))


@pytest.mark.parametrize(
    ("array", "same"),
    [
        (pa.array([5], pa.int8()), pa.array([5.0], pa.float32())),
        (pa.array([5], pa.int64()), pa.array([5], pa.decimal128(20, 3))),
        (pa.array([-0.0]), pa.array([0], pa.uint64())),
        (pa.array([math.nan]), pa.array([math.nan], pa.float32())),
        (pa.array([7], pa.timestamp("s")), pa.array([7_000_000_000], pa.timestamp("ns"))),
        (pa.array([None], pa.int64()), pa.array([None], pa.string())),
    ],
)
def test_equal_values_have_one_bucket_whatever_their_type(array: pa.Array, same: pa.Array) -> None:
    rule = ClusterRule("f", 251)
    one, other = (buckets_of(pa.table({"f": values}), rule) for values in (array, same))
    assert one is not None
    assert other is not None
    assert one.tolist() == other.tolist()


def test_null_has_bucket_0_and_types_without_order_have_none() -> None:
    rule = ClusterRule("r.x", 7)
    inner = pa.array([None, {"x": None}, {"x": 3}], pa.struct([("x", pa.int64())]))
    found = buckets_of(pa.table({"r": inner}), rule)
    assert found is not None
    assert found.tolist()[:2] == [0, 0]
    for values in (pa.array([[1]]), pa.array([{"y": 1}]), pa.nulls(1)):
        assert buckets_of(pa.table({"r": values}), ClusterRule("r", 7)) is None
    assert buckets_of(pa.table({"other": [1]}), rule) is None


def test_a_field_inside_of_records() -> None:
    pool = pool_with("who.id:4")
    who = [{"id": number % 11, "x": "y"} for number in range(100)]
    pool.branch().append(pa.table({"k": list(range(100)), "who": who}))
    assert buckets(pool) == [0, 1, 2, 3]
    assert len(pool.at().plan(where="who.id = 3").references) == 1
    assert pool.at().to_table(where="who.id = 3").num_rows == 9
    assert faults(pool) == []


def test_the_field_is_neither_renamed_nor_dropped_while_the_rule_names_it() -> None:
    pool = pool_with()
    load(pool)
    for does in (lambda: pool.drop_field("user"), lambda: pool.rename_field(old="user", new="account")):
        with pytest.raises(InvalidInput, match=r"cluster\.by names it"):
            does()


@pytest.mark.parametrize(
    ("by", "kind", "why"),
    [
        ("user", "append", "use FIELD:N"),
        ("user:1", "append", "use FIELD:N"),
        ("user:257", "append", "use FIELD:N"),
        (":8", "append", "use FIELD:N"),
        ("user:8", "upsert", "the field must be one of the key: k"),
    ],
)
def test_a_rule_that_no_pool_can_use_is_refused(by: str, kind: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        pool_with(by, kind=kind)


def test_an_aggregate_pool_has_no_clusters() -> None:
    lake = Lake.create_on(MemoryStore("memory://aggregate"))
    with pytest.raises(InvalidInput, match="has no clusters; use append or upsert"):
        lake.create_pool(
            "p", key="k", kind="aggregate", aggregates={"n": "sum"}, settings={"cluster.by": "k:4"}
        )


def test_in_an_upsert_pool_a_bucket_of_the_key_counts_where_objects_overlap() -> None:
    pool = pool_with("k:4", kind="upsert")
    for value in ("old", "new"):
        pool.branch().append(pa.table({"k": list(range(100)), "v": [value] * 100}))
    pool.branch().delete(where="k = 3")
    assert len(pool.at().plan(where="k = 7").references) == 2
    assert pool.at().to_table(where="k = 7").to_pylist() == [{"k": 7, "v": "new"}]
    assert pool.at().to_table(where="k = 3").num_rows == 0
    assert len(pool.at().plan(where="v = 'old'").references) == 8


def changed(pool: Pool, bucket: Bucket) -> list[Reference]:
    """The references, of which the first states another bucket."""
    first, *rest = pool.at().references
    columns = tuple(
        msgspec.structs.replace(column, bucket=bucket) if column.bucket else column
        for column in first.columns
    )
    return [msgspec.structs.replace(first, columns=columns), *rest]


def test_fsck_reports_a_wrong_bucket_which_would_hide_records() -> None:
    pool = pool_with()
    load(pool)
    (stated,) = [c.bucket for c in pool.at().references[0].columns if c.bucket]
    wrong = changed(pool, Bucket(stated.of, (stated.number + 1) % stated.of))
    (found,) = check_objects(pool.store, pool.config, wrong, data=True)
    assert (found.kind, "of another bucket than the reference says" in found.what) == ("statistics_lie", True)
    assert check_objects(pool.store, pool.config, pool.at().references, data=True) == []


@pytest.mark.parametrize(("of", "number"), [(8, 8), (8, -1), (0, 0), (MOST_BUCKETS + 1, 3)])
def test_a_bucket_that_cannot_be_is_damage(of: int, number: int) -> None:
    with pytest.raises(Corrupt, match="which it cannot be"):
        Bucket(of, number)


def test_a_bucket_is_stored_and_read_and_its_absence_costs_no_byte() -> None:
    column = Column("user", bucket=Bucket(8, 3, ("id",)))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(column), type=Column) == column
    assert msgspec.msgpack.encode(Column("user")) == msgspec.msgpack.encode({"name": "user"})
    pool = pool_with()
    load(pool)
    references = pool.at().references
    assert list(from_rows(to_rows(references), sub_pool="")) == references


def test_a_checkpoint_of_a_program_that_knows_no_buckets_is_no_damage() -> None:
    pool = pool_with()
    load(pool)
    references = pool.at().references
    without = [
        msgspec.structs.replace(r, columns=tuple(msgspec.structs.replace(c, bucket=None) for c in r.columns))
        for r in references
    ]

    def part(own: list[Reference]) -> list[SectionPart]:
        return [SectionPart("reference", "main", "", iter([to_rows(own)]))]

    assert first_difference(part(references), part(without), since=0) is None
    wrong = changed(pool, Bucket(64, 1))
    assert "differs" in (first_difference(part(references), part(wrong), since=0) or "")
    fewer = [replace_records(without[0]), *without[1:]]
    assert "differs" in (first_difference(part(references), part(fewer), since=0) or "")


def replace_records(reference: Reference) -> Reference:
    return msgspec.structs.replace(reference, records=reference.records + 1)


def test_where_records_combine_only_a_bucket_of_the_key_counts() -> None:
    """An object without the value may have an older version of a record that a newer object has with the value."""
    schema, where = pa.schema([("k", pa.int64()), ("v", pa.int64())]), Compare(("v",), "=", encode_value(1))
    own = int((buckets_of(pa.table({"v": [1]}), ClusterRule("v", 8)) or [0])[0])
    columns = (Column("k"), Column("v", bucket=Bucket(8, (own + 1) % 8)))
    assert not may_lie_there(where, schema, columns)
    assert not may_lie_there(where, schema, columns, among_fields=["v"])
    assert may_lie_there(where, schema, columns, among_fields=["k"])


def test_a_lake_of_an_older_format_has_no_clusters_until_it_is_upgraded() -> None:
    """Else a program that reads that format would meet objects that it cannot read."""
    store = Lake.create_on(MemoryStore()).store
    lake = Lake(store, Lake.open_on(store).context.lake_id, format_version=2)
    with pytest.raises(InvalidInput, match=r"format version 2, .* cannot read objects .*: run lake upgrade"):
        lake.create_pool("p", key="k", settings={"cluster.by": "user:4"})
    pool = lake.create_pool("p", key="k")
    with pytest.raises(InvalidInput, match="run lake upgrade"):
        lake.configure_pool("p", {"cluster.by": "user:4"})
    lake.configure_pool("p", {"cluster.by": ""})
    lake.upgrade()
    lake.configure_pool("p", {"cluster.by": "user:4"})
    assert lake.pool("p").config.id == pool.config.id
