"""The setting `schema`: a load says what it changes in the fields of a pool, and freeze and discard let it change
nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import Conflict, InvalidInput
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
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
    late.add(pool.branch()._block(pa.table({"k": [1], "n": second})))
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
