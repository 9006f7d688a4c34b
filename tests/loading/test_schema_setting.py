"""The setting `schema`: a load says what it changes in the fields of a pool, and freeze and discard let it change
nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import Conflict, InvalidInput
from lake_core.schemas.hidden import ROW
from lake_core.store import address_of
from log_lake.agents.load_files import load_files
from log_lake.console.output import write_records
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.loading.sources import find_files
from log_lake.reading.scan import result_schema
from log_lake.workers import Here
from tests.support.command import INVALID_INPUT, Command

MIXED = '{"k":2,"n":2}\n{"k":3,"n":"oops"}\n{"k":4,"n":5}\n'


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    made = Lake.create(str(tmp_path / "lake")).create_pool("p", key="k")
    made.branch().append(
        pa.table({"k": [1], "n": [1], "s": ["a"], "u": [{"id": 1, "tags": ["x"]}], "t": [None]})
    )
    return made


def file(tmp_path: Path, text: str, name: str = "f.ndjson") -> list[str]:
    (tmp_path / name).write_text(text)
    return [str(tmp_path / name)]


def records(pool: Pool) -> list[dict[str, object]]:
    rows = [row for table in pool.at().scan() for row in table.to_pylist()]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def types(pool: Pool) -> dict[str, str]:
    return {field.name: str(field.type) for field in pool.at().schema}


def test_a_load_that_changes_a_type_says_so_everywhere(
    pool: Pool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = file(tmp_path, MIXED + '{"k":5,"x":1.5}\n')
    text = "field n: bigint becomes json (1 record of 4)"
    assert pool.branch().preview(files).changes == (text, "1 new field: x double")
    with caplog.at_level(logging.WARNING):
        result = pool.branch().load(files)
    assert (result.changes, result.retyped) == ((text, "1 new field: x double"), 1)
    assert text in caplog.text
    _, transaction = next(iter(pool.log()))
    assert transaction.metadata == {"retyped": "n: bigint becomes json (1 record of 4)"}


def test_a_load_that_only_brings_fields_or_nothing_new_records_no_change_of_type(
    pool: Pool, tmp_path: Path
) -> None:
    assert pool.branch().load(file(tmp_path, '{"k":9,"n":3}\n')).changes == ()
    result = pool.branch().load(file(tmp_path, '{"k":9,"y":true}\n'))
    assert (result.changes, result.retyped) == (("1 new field: y boolean",), 0)
    assert next(iter(pool.log()))[1].metadata == {}


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ('{"k":9,"n":1.5}', "field n: bigint becomes double (1 record of 1)"),
        ('{"k":9,"n":"z"}', "field n: bigint becomes json (1 record of 1)"),
        ('{"k":9,"u":{"id":"z"}}', "field u.id: bigint becomes json"),
        ('{"k":9,"u":{"id":1,"new":true}}', "1 new field: u.new boolean"),
        ('{"k":9,"u":{"tags":[1]}}', "field u.tags: list<string> becomes list<json>"),
        ('{"k":9,"u":7}', "field u: struct<id: bigint, tags: list<string>> becomes json (1 record of 1)"),
    ],
)
def test_each_change_has_its_words(pool: Pool, tmp_path: Path, line: str, change: str) -> None:
    assert pool.branch().load(file(tmp_path, line)).changes == (change,)


def test_a_first_load_changes_nothing(tmp_path: Path) -> None:
    pool = Lake.create(str(tmp_path / "lake")).create_pool("p", key="k", settings={"schema": "freeze"})
    assert pool.branch().load(file(tmp_path, MIXED)).changes == ()


def test_freeze_makes_a_record_that_would_change_a_field_a_bad_record(pool: Pool, tmp_path: Path) -> None:
    before = types(pool)
    frozen = {"schema": "freeze"}
    with pytest.raises(
        InvalidInput, match=r"f.ndjson, line 2: field 'n': 'oops' is not a bigint.*schema=freeze"
    ):
        pool.branch().load(file(tmp_path, MIXED), options=frozen)
    text = (
        MIXED + '{"k":5,"x":1}\n{"k":6,"u":{"id":"z"}}\n{"k":7,"u":{"id":2,"new":1}}\n{"k":8,"u":{"id":3}}\n'
    )
    result = pool.branch().load(file(tmp_path, text), options={**frozen, "bad_records": "quarantine"})
    assert (result.records, result.rejected, result.changes) == (3, 4, ())
    assert types(pool) == before
    assert records(pool)[1:] == [{"k": 2, "n": 2}, {"k": 4, "n": 5}, {"k": 8, "u": {"id": 3, "tags": None}}]


def test_discard_leaves_out_what_does_not_fit_and_says_how_much(pool: Pool, tmp_path: Path) -> None:
    before = types(pool)
    text = MIXED + '{"k":5,"x":1}\n{"k":6,"u":{"id":"z","tags":["a",1],"new":1}}\n'
    result = pool.branch().load(file(tmp_path, text), options={"schema": "discard"})
    assert (result.records, result.rejected, result.changes) == (5, 0, ())
    assert result.notes == (
        "f.ndjson: left out, because the pool's fields stay as they are (schema=discard): n of 1 record, "
        "u.id of 1 record, u.new of 1 record, u.tags of 1 record, x of 1 record",
    )
    assert types(pool) == before
    assert records(pool)[1:] == [
        {"k": 2, "n": 2},
        {"k": 3},
        {"k": 4, "n": 5},
        {"k": 5},
        {"k": 6, "u": {"id": None, "tags": ["a", None]}},
    ]


@pytest.mark.parametrize("policy", ["freeze", "discard"])
def test_a_key_that_does_not_fit_makes_a_bad_record(pool: Pool, tmp_path: Path, policy: str) -> None:
    with pytest.raises(InvalidInput, match="line 1: field 'k'"):
        pool.branch().load(file(tmp_path, '{"k":"z"}\n'), options={"schema": policy})


def test_text_of_csv_is_read_as_the_types_of_the_pool(pool: Pool, tmp_path: Path) -> None:
    files = file(tmp_path, "k,n,s\n2,7,1\n3,,2\n", "f.csv")
    assert pool.branch().load(files, options={"schema": "freeze"}).records == 2
    assert records(pool)[1:] == [{"k": 2, "n": 7, "s": "1"}, {"k": 3, "s": "2"}]
    bad = file(tmp_path, "k,n,s\n4,uh,3\n5,9,4\n", "g.csv")
    with pytest.raises(InvalidInput, match=r"g.csv, line 2: field 'n': 'uh' is not a bigint.*schema=freeze"):
        pool.branch().load(bad, options={"schema": "freeze"})
    result = pool.branch().load(bad, options={"schema": "discard"})
    assert "n of 1 record" in result.notes[0]
    assert records(pool)[-2:] == [{"k": 4, "s": "3"}, {"k": 5, "n": 9, "s": "4"}]


@pytest.mark.parametrize("policy", ["freeze", "discard"])
def test_typed_files_and_tables_of_programs_keep_to_the_fields(
    pool: Pool, tmp_path: Path, policy: str
) -> None:
    before = types(pool)
    fits = pa.table({"k": pa.array([2], pa.int32()), "n": [2.0], "s": pa.array(["b"]).dictionary_encode()})
    pq.write_table(fits, tmp_path / "f.parquet")
    options = {"schema": policy}
    pool.branch().load([str(tmp_path / "f.parquet")], options=options)
    pool.branch().append(fits, options=options)
    assert types(pool) == before
    breaks = pa.table({"k": [3, 4], "n": [1.5, 2.0], "x": [None, None]})
    pq.write_table(breaks, tmp_path / "g.parquet")
    for write in (
        lambda: pool.branch().load([str(tmp_path / "g.parquet")], options=options),
        lambda: pool.branch().append(breaks, options=options),
    ):
        if policy == "freeze":
            with pytest.raises(InvalidInput, match="field 'n'"):
                write()
        else:
            assert write().records == 2
    assert types(pool) == before


def test_a_replace_keeps_to_the_fields_too(pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="line 2: field 'n'"):
        pool.branch().replace(file(tmp_path, MIXED), options={"schema": "freeze"})
    pool.branch().replace(file(tmp_path, MIXED), options={"schema": "discard"})
    assert records(pool) == [{"k": 2, "n": 2}, {"k": 3}, {"k": 4, "n": 5}]


@pytest.mark.parametrize(("first", "second"), [([1], ["z"]), (["z"], [1])])
def test_of_two_first_loads_the_second_is_refused_under_freeze(
    tmp_path: Path, first: list[object], second: list[object]
) -> None:
    pool = Lake.create(str(tmp_path / "lake")).create_pool("p", key="k", settings={"schema": "freeze"})
    begun = pool.branch().begin_load()
    assert isinstance(begun, PendingLoad)
    late = pool.branch().builder(begun)
    late.add(pool.branch().block(pa.table({"k": [1], "n": second})))
    written = late.finish()
    pool.branch().append(pa.table({"k": [1], "n": first}))
    with pytest.raises(Conflict, match=r"field n: .* becomes json.*start the load again"):
        pool.branch().commit(begun, objects=[w.action for w in written], schemas=[w.schema for w in written])


def test_the_command_says_it(lake: Command, tmp_path: Path) -> None:
    lake("create", "p", "--key", "k", "--set", "schema=freeze")
    lake("load", "p", *file(tmp_path, '{"k":1,"n":1}\n', "a.ndjson"))
    dry = lake("load", "p", "--dry-run", "--schema", "evolve", *file(tmp_path, MIXED))
    assert "field n: bigint becomes json (1 record of 3)" in dry.err
    assert "schema=freeze" in lake.fails(INVALID_INPUT, "load", "p", *file(tmp_path, MIXED))
    done = lake("load", "p", "--schema", "evolve", *file(tmp_path, MIXED))
    assert "version 2: field n: bigint becomes json (1 record of 3)" in done.err


def frozen(tmp_path: Path, policy: str, field: pa.Array) -> Pool:
    made = Lake.create(str(tmp_path / "other")).create_pool("q", key="k", settings={"schema": policy})
    made.branch().append(pa.table({"k": [1], "r": field}))
    return made


def test_typed_json_inside_of_a_record_is_no_text(tmp_path: Path) -> None:
    files = file(tmp_path, '{"k":2,"r":{"a":1}}\n{"k":3,"r":{"a":"y"}}\n')
    pool = frozen(tmp_path, "freeze", pa.array([{"a": "x"}]))
    with pytest.raises(InvalidInput, match=r"line 1: field 'r.a': 1 is not a string"):
        pool.branch().load(files)
    result = pool.branch().load(files, options={"bad_records": "quarantine"})
    assert (result.records, result.rejected) == (1, 1)
    pool.branch().load(files, options={"schema": "discard"})
    assert [row["r"] for row in records(pool)] == [{"a": "x"}, {"a": None}, {"a": "y"}, {"a": "y"}]


def test_values_inside_of_records_are_kept_whatever_other_records_bring(tmp_path: Path) -> None:
    pool = frozen(tmp_path, "discard", pa.array([{"a": 1, "l": [1], "z": None}]))
    lines = '{"k":2,"r":{"a":2,"l":[2,3],"z":true}}\n{"k":3,"r":{"a":1.5,"l":[0.5],"new":1}}\n'
    pool.branch().load(file(tmp_path, lines))
    assert [row["r"] for row in records(pool)][1:] == [
        {"a": 2, "l": [2, 3], "z": True},
        {"a": None, "l": [None], "z": None},
    ]


def test_a_map_that_fits_stays_in_a_record_with_other_members(tmp_path: Path) -> None:
    def kind(item: pa.DataType, *others: pa.Field) -> pa.DataType:
        return pa.struct([pa.field("m", pa.map_(pa.string(), item)), *others])

    pool = frozen(tmp_path, "discard", pa.array([{"m": [("a", 1)]}], kind(pa.int64())))
    brought = [{"m": m, "new": 1} for m in ([("a", 2.0), ("b", None)], [("a", 0.5)], [], None)]
    wider = kind(pa.float64(), pa.field("new", pa.int64()))
    pool.branch().append(pa.table({"k": range(2, 6), "r": pa.array(brought, wider)}))
    assert pool.at().schema.field("r").type == kind(pa.int64())
    assert [row["r"] for row in records(pool)][1:] == [
        {"m": [("a", 2), ("b", None)]},
        {"m": None},
        {"m": []},
        {"m": None},
    ]


def test_a_whole_double_beside_a_text_is_an_integer(pool: Pool, tmp_path: Path) -> None:
    files = file(tmp_path, '{"k":2,"n":2.0}\n{"k":3,"n":"oops"}\n')
    pool.branch().load(files, options={"schema": "discard"})
    assert [row.get("n") for row in records(pool)] == [1, 2, None]


@pytest.mark.parametrize("policy", ["freeze", "discard"])
def test_a_counted_field_takes_any_value(tmp_path: Path, policy: str) -> None:
    made = Lake.create(str(tmp_path / "other")).create_pool(
        "q", key="k", kind="aggregate", aggregates={"n": "count"}, settings={"schema": policy}
    )
    made.branch().append(pa.table({"k": [1, 1], "n": ["x", "y"]}))
    made.branch().append(pa.table({"k": [1], "n": ["z"]}))
    for files in (file(tmp_path, '{"k":1,"n":{"a":1}}\n'), file(tmp_path, "k,n\n1,x\n", "f.csv")):
        assert "left out" not in " ".join(made.branch().load(files).notes)
    assert records(made) == [{"k": 1, "n": 5}]


def test_files_that_workers_read_say_what_was_left_out(
    pool: Pool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, text in {"a": '{"k":2,"n":"bad"}\n', "b": '{"k":3,"new":1}\n{"k":4,"n":"bad"}\n'}.items():
        file(tmp_path, text, f"{name}.ndjson")
    lake = Lake.open(str(tmp_path / "lake"))
    files = find_files([str(tmp_path / f"{name}.ndjson") for name in "ab"], access=address_of(lake.store))
    result = load_files(
        Here.of(lake.context),
        lake,
        pool_name="p",
        files=files,
        options={"schema": "discard"},
        parallelism=2,
        smallest_unit=1,
    )
    (line,) = result.notes
    assert "(schema=discard): n of 2 records, new of 1 record" in line
    assert line in caplog.text


@pytest.mark.parametrize("policy", ["freeze", "discard"])
def test_a_value_that_was_converted_is_no_record_as_it_came(tmp_path: Path, policy: str) -> None:
    made = Lake.create(str(tmp_path / "other")).create_pool(
        "q", key="k", settings={"schema": policy, "format": "zng"}
    )
    made.branch().load(file(tmp_path, "{k:1,n:1}\n", "a.zson"))
    text = '{k:2,n:"7"}\n{k:3,n:4}\n{k:4,n:2.}\n{k:5(int32),n:6}\n'
    made.branch().load(file(tmp_path, text, "b.zson"))
    assert [(row["k"], row["n"]) for row in records(made)] == [(1, 1), (2, 7), (3, 4), (4, 2), (5, 6)]
    plan = made.at().plan(keep=ROW.names)
    write_records(made.at().run(plan), result_schema(plan), format="zson", path=str(tmp_path / "out.zson"))
    assert (tmp_path / "out.zson").read_text().splitlines() == [
        "{k:1,n:1}", "{k:2,n:7}", "{k:3,n:4}", "{k:4,n:2}", "{k:5(int32),n:6}",
    ]  # fmt: skip


def test_a_member_without_a_type_takes_any_beside_json(tmp_path: Path) -> None:
    empty = pa.array(
        [{"a": 1, "z": None, "l": []}], pa.struct({"a": pa.int64(), "z": pa.null(), "l": pa.list_(pa.null())})
    )
    pool = frozen(tmp_path, "freeze", empty)
    lines = '{"k":2,"r":{"a":2,"z":true,"l":[1,2.5]}}\n{"k":3,"r":5}\n{"k":4,"r":{"z":null,"l":[]}}\n'
    result = pool.branch().load(file(tmp_path, lines), options={"bad_records": "quarantine"})
    assert (result.records, result.rejected) == (2, 1)
    assert [row["r"] for row in records(pool)][1:] == [
        {"a": 2, "z": True, "l": [1.0, 2.5]},
        {"a": None, "z": None, "l": []},
    ]
    other = file(tmp_path, '{"k":5,"r":{"z":"no","a":"no"}}\n{"k":6,"r":{"z":false,"a":1}}\n')
    assert pool.branch().load(other, options={"bad_records": "quarantine"}).records == 1


def test_left_out_items_of_a_list_count_as_one_record(pool: Pool, tmp_path: Path) -> None:
    files = file(tmp_path, '{"k":2,"u":{"tags":[1,2,3]}}\n{"k":3,"u":{"tags":["a",4]}}\n')
    (note,) = pool.branch().load(files, options={"schema": "discard"}).notes
    assert "u.tags of 2 records" in note


@pytest.mark.parametrize(("text", "fits"), [("2.0", True), ("-3.00", True), ("2.5", False), ("1e3", False)])
def test_a_whole_number_with_a_point_is_an_integer_in_csv_too(
    pool: Pool, tmp_path: Path, text: str, fits: bool
) -> None:
    files = file(tmp_path, f"k,n\n2,{text}\n", "f.csv")
    if fits:
        pool.branch().load(files, options={"schema": "freeze"})
        assert records(pool)[1]["n"] == float(text)
    else:
        with pytest.raises(InvalidInput, match=f"line 2: field 'n': '{text}' is not a bigint"):
            pool.branch().load(files, options={"schema": "freeze"})


@pytest.mark.parametrize("policy", ["freeze", "discard"])
def test_one_wrong_key_makes_no_other_record_bad(pool: Pool, tmp_path: Path, policy: str) -> None:
    files = file(tmp_path, '{"k":"z","n":1}\n{"k":2}\n{"k":"3"}\n{"k":4}\n')
    result = pool.branch().load(files, options={"schema": policy, "bad_records": "quarantine"})
    assert (result.records, result.rejected) == (3, 1)
    assert [row["k"] for row in records(pool)] == [1, 2, 3, 4]


def test_metadata_of_the_user_stays(pool: Pool, tmp_path: Path) -> None:
    mine = Lake.open(str(tmp_path / "lake"), metadata={"retyped": "mine"}).pool("p")
    assert mine.branch().load(file(tmp_path, MIXED)).retyped == 1
    assert next(iter(mine.log()))[1].metadata == {"retyped": "mine"}
