"""Pools with format=zng and format=zst: records keep their own types; all that works on pools works on these."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.schemas.hidden import ROW
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.objects.containers.rows import rows_of_table
from log_lake.objects.read import DataObject
from log_lake.publish.rules import rules_of
from log_lake.repair.finding import DAMAGE
from log_lake.repair.fsck import Fsck
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from log_lake.system_tables.inspection import inspect_object
from tests.support.typed_pools import ANIMALS, MORE, load, made, shrink
from tests.support.zng_files import lines_of, rows_of_text, zng_of

TYPED = ("zng", "zst")


def values(view: View, key_range: KeyRange = EVERYTHING) -> list[str]:
    """The records as they came, as text."""
    plan = view.plan(key_range=key_range, keep=ROW.names)
    return [
        line for table in view.run(plan) for line in lines_of(zng_of([rows_of_table(table)])) if len(table)
    ]


def by_key(text: str) -> list[str]:
    lines = lines_of(zng_of(rows_of_text(text)))
    return sorted(lines, key=lambda line: int(line.partition("k:")[2].partition(",")[0].partition("}")[0]))


def formats(pool: Pool) -> set[str]:
    return {naming.format_of(r.object) for r in pool.at().references}


def damages(pool: Pool) -> list[Any]:
    return [f for f in Fsck(pool.context, data=True).run() if f.severity == DAMAGE]


@pytest.mark.parametrize("format", naming.FORMATS)
def test_the_fields_that_queries_see_are_those_of_any_pool(format: str, tmp_path: Path) -> None:
    pool, plain = made(format), made("parquet")
    for one in (pool, plain):
        load(one, ANIMALS, tmp_path)
        load(one, MORE, tmp_path)
    expected = plain.at().to_table()
    assert pool.at().to_table().equals(expected)
    assert pool.at().to_table(columns=["legs", "k"]).equals(expected.select(["legs", "k"]))
    assert pool.at().to_table(where="legs > 2").equals(plain.at().to_table(where="legs > 2"))
    shrink(pool)
    assert pool.at().to_table().equals(expected)
    assert damages(pool) == []


@pytest.mark.parametrize("format", TYPED)
def test_records_come_out_as_they_came_before_and_after_a_compaction(format: str, tmp_path: Path) -> None:
    pool = made(format)
    load(pool, ANIMALS, tmp_path)
    load(pool, MORE, tmp_path)
    expected = by_key(ANIMALS + MORE)
    assert values(pool.at()) == expected
    assert formats(pool) == {format}
    shrink(pool)
    assert values(pool.at()) == expected
    assert formats(pool) == {"zst"}, "rows become columns"
    shrink(pool)
    assert values(pool.at()) == expected


@pytest.mark.parametrize("format", TYPED)
def test_a_key_range_reads_the_groups_that_it_touches(format: str, tmp_path: Path) -> None:
    pool = made(format)
    text = "".join(f'{{k:{k},v:"{k}"}}\n' if k % 3 else f"{{k:{k},w:{k}.5}}\n" for k in range(20_000))
    load(pool, text, tmp_path)
    (reference,) = pool.at().references
    with DataObject(pool.store, pool_id=pool.config.id, object_id=reference.object) as data:
        assert list(data.group_rows) == [8_192, 8_192, 3_616]
    low, high = pool.at().bound(8_190), pool.at().bound(8_195)
    assert values(pool.at(), KeyRange(low, high)) == by_key(text)[8_190:8_195]
    assert pool.at().get(19_999).to_pylist() == [{"k": 19_999, "v": "19999", "w": None}]


@pytest.mark.parametrize("format", TYPED)
def test_deletes_hide_records_for_ever(format: str, tmp_path: Path) -> None:
    pool = made(format)
    load(pool, ANIMALS, tmp_path)
    pool.branch().delete(where="legs = 2")
    pool.branch().delete(key_range=KeyRange(pool.at().bound(4), pool.at().bound(6)))
    left = [line for line in by_key(ANIMALS) if not any(f"k:{k}," in line for k in (3, 4, 5))]
    assert values(pool.at()) == left
    shrink(pool)
    assert values(pool.at()) == left
    assert damages(pool) == []


@pytest.mark.parametrize("format", TYPED)
def test_in_an_upsert_pool_the_newest_record_counts_with_its_own_type(format: str, tmp_path: Path) -> None:
    pool = made(format, kind="upsert")
    load(pool, "{k:1,v:1(int8)}\n{k:2,v:2(int8)}\n{k:3,v:3(int8)}\n", tmp_path)
    load(pool, '{k:1,v:"one"}\n{k:2,_deleted:true}\n', tmp_path)
    for _ in range(2):
        assert values(pool.at()) == ['{k:1,v:"one"}', "{k:3,v:3(int8)}"]
        shrink(pool)


def test_an_aggregate_pool_holds_what_its_fields_say(tmp_path: Path) -> None:
    lake = Lake.create_on(MemoryStore(), author="test")
    pool = lake.create_pool(
        "p", key="k", kind="aggregate", settings={"format": "zst"}, aggregates={"n": "sum"}
    )
    load(pool, "{k:1,n:1}\n{k:1,n:2}\n", tmp_path)
    load(pool, "{k:1,n:4}\n", tmp_path)
    for _ in range(2):
        assert pool.at().to_table().to_pylist() == [{"k": 1, "n": 7}]
        shrink(pool)
    assert formats(pool) == {"zst"}
    assert damages(pool) == []


@pytest.mark.parametrize("format", TYPED)
def test_records_of_other_files_get_the_type_of_their_fields(format: str) -> None:
    pool = made(format)
    pool.branch().append(pa.table({"k": [2, 1], "d": pa.array([1, None], pa.date32())}))
    assert values(pool.at()) == ["{k:1,d:null(lake.date=(int32))}", "{k:2,d:1(lake.date=(int32))}"]
    assert pool.at().to_table().schema.field("d").type == pa.date32()


@pytest.mark.parametrize("format", TYPED)
def test_a_field_of_a_declared_type_is_what_the_pool_declares(format: str, tmp_path: Path) -> None:
    pool = made(format, **{"type.d": "date"})
    load(pool, '{k:1,d:"2026-01-31",n:1(int8)}\n{k:2,n:2(int8)}\n', tmp_path)
    assert values(pool.at()) == ["{k:1,d:20484(lake.date=(int32)),n:1(int8)}", "{k:2,n:2(int8)}"]


@pytest.mark.parametrize("format", TYPED)
def test_records_without_the_key_and_bad_ones_go_where_they_always_go(format: str, tmp_path: Path) -> None:
    pool = made(format, bad_records="quarantine")
    load(pool, '{k:1}\n{v:1(int8)}\n"no record"\n{k:null,w:|["x"]|}\n{}(=foo)\n', tmp_path)
    assert values(pool.at()) == ["{k:1}"]
    lake = Lake.open_on(pool.store, author="test")
    assert values(lake.pool("p.$nokey").at()) == ["{v:1(int8)}", '{k:null,w:|["x"]|}', "{}(=foo)"]
    assert [r["raw"] for r in lake.pool("p.$rejected").at().to_table().to_pylist()] == ['"no record"']


@pytest.mark.parametrize(
    ("format", "text", "written"),
    [
        ("zst", "{k:1,a:[[1],null]}\n", "zng"),
        ("zst", "{k:1,a:[{x:1},null]}\n", "zng"),
        ("zng", "", "parquet"),
    ],
    ids=["a null array", "a null record", "a record of 12 MB"],
)
def test_what_a_format_cannot_hold_is_written_in_a_plainer_one(
    format: str, text: str, written: str, tmp_path: Path
) -> None:
    pool = made(format)
    if written == "parquet":  # ZNG cannot bring such a record either
        pool.branch().append(pa.table({"k": [1], "a": ["x" * (6 << 20)], "b": ["y" * (6 << 20)]}))
    else:
        load(pool, text, tmp_path)
        assert values(pool.at()) == by_key(text)
    assert formats(pool) == {written}
    load(pool, "{k:2}\n", tmp_path)
    before = pool.at().to_table()
    shrink(pool)
    assert pool.at().to_table().equals(before)
    assert damages(pool) == []


def test_objects_of_several_formats_are_merged_and_compacted_together(tmp_path: Path) -> None:
    pool = made("parquet")
    lake = Lake.open_on(pool.store, author="test")
    load(pool, '{k:1,v:"old"}\n{k:4,v:"old"}\n', tmp_path)
    for format, key in (("zng", 2), ("zst", 3)):
        lake.configure_pool("p", {"format": format})
        load(lake.pool("p"), f'{{k:{key},v:{key}(int8)}}\n{{k:4,{format}:"{format}"}}\n', tmp_path)
    pool = lake.pool("p")
    assert formats(pool) == {"parquet", "zng", "zst"}
    before = pool.at().to_table()
    assert before["k"].to_pylist() == [1, 2, 3, 4, 4, 4]
    assert values(pool.at()) == [
        '{k:1,v:"old"}',
        "{k:2,v:2(int8)}",
        "{k:3,v:3(int8)}",
        '{k:4,v:"old"}',
        '{k:4,zng:"zng"}',
        '{k:4,zst:"zst"}',
    ]
    shrink(pool)
    assert formats(pool) == {"zst"}
    assert pool.at().to_table().equals(before)
    with pytest.raises(InvalidInput, match="1 object not Parquet, as Iceberg reads it"):
        rules_of(pool.at())
    lake.configure_pool("p", {"format": "parquet"})
    shrink(lake.pool("p"))
    assert formats(lake.pool("p")) == {"parquet"}
    assert lake.pool("p").at().to_table().equals(before)
    rules_of(lake.pool("p").at())


@pytest.mark.parametrize("format", TYPED)
def test_other_programs_read_an_object_as_its_records_in_the_order_of_the_key(
    format: str, tmp_path: Path
) -> None:
    from log_lake.zng.reader import read
    from log_lake.zng.rows import rows_of
    from log_lake.zng.zst.reader import ZstFile

    pool = made(format)
    load(pool, ANIMALS, tmp_path)
    load(pool, MORE, tmp_path)
    if format == "zst":
        shrink(pool)  # its records have sequences, which such a program does not see
    found: list[str] = []
    for reference in pool.at().references:
        data = pool.store.get(naming.data_object(pool.config.id, reference.object)) or b""
        if format == "zng":
            every = list(read(io.BytesIO(data), name="x"))
        else:
            every = [rows_of(b) for b in ZstFile.open(pa.BufferReader(data), name="x").batches()]
        found += [rows.text(row) for rows in every for row in range(len(rows))]
    assert found == (by_key(ANIMALS + MORE) if format == "zst" else [*by_key(ANIMALS), *by_key(MORE)])


@pytest.mark.parametrize("format", TYPED)
def test_damage_anywhere_is_found_and_never_becomes_another_record(format: str, tmp_path: Path) -> None:
    pool = made(format)
    load(pool, ANIMALS, tmp_path)
    shrink(pool)
    if format == "zng":
        pool = made(format)
        load(pool, ANIMALS, tmp_path)
    (reference,) = pool.at().references
    name = naming.data_object(pool.config.id, reference.object)
    sound = pool.store.get(name) or b""
    chance = random.Random(format)
    cuts = [sound[:at] for at in chance.sample(range(len(sound)), 60)]
    flips = [
        sound[:at] + bytes([sound[at] ^ 1 << chance.randrange(8)]) + sound[at + 1 :]
        for at in range(len(sound))
    ]
    for data in (*cuts, *flips, b"", sound + b"\0"):
        store = MemoryStore()
        store.put(name, data)
        with (
            pytest.raises(Corrupt) as error,
            DataObject(store, pool_id=pool.config.id, object_id=reference.object) as opened,
        ):
            opened.check_bytes()
        assert "\n" not in str(error.value)
        for columns in (None, ["k"], ["k", *ROW.names]):
            with (
                pytest.raises(Corrupt),
                DataObject(store, pool_id=pool.config.id, object_id=reference.object) as opened,
            ):
                list(opened.batches(EVERYTHING, key=pool.config.key, columns=columns))


@pytest.mark.parametrize("format", TYPED)
def test_inspect_shows_the_object_and_of_columns_the_reassembly_maps(format: str, tmp_path: Path) -> None:
    pool = made(format)
    load(pool, ANIMALS, tmp_path)
    (reference,) = pool.at().references
    shown = inspect_object(pool.store, naming.data_object(pool.config.id, reference.object))
    assert shown["row_groups"] == 1
    assert shown["lake"]["records"] == 6
    assert set(ROW.names).isdisjoint(shown["fields"])
    maps = shown.get("maps", [])
    assert bool(maps) == (format == "zst")
    assert not maps or maps[-1].startswith('{magic:"zst",version:1(int32)')


@pytest.mark.parametrize("format", naming.FORMATS)
def test_an_empty_map_whose_keys_have_no_type_is_kept_and_queried(format: str, tmp_path: Path) -> None:
    text = '{k:1,m:|{}|}\n{k:2,m:|{}|(|{null:int64}|)}\n{k:3,m:|{"a":1}|}\n'
    lake = Lake.create_on(MemoryStore(), author="test")
    pool = lake.create_pool("p", key="k", settings={"format": format})
    load(pool, text, tmp_path)
    if format != "parquet":
        assert values(pool.at()) == lines_of(zng_of(rows_of_text(text)))
    for _ in range(2):
        assert pool.at().to_table()["m"].to_pylist() == [[], [], [("a", 1)]]
        answer = query(lake, 'SELECT k, cardinality(m) AS n FROM "p" ORDER BY k').read_all()
        assert answer.to_pylist() == [{"k": 1, "n": 0}, {"k": 2, "n": 0}, {"k": 3, "n": 1}]
        shrink(pool)
