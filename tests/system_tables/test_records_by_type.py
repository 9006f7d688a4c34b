"""SQL over pools that keep types: `POOL:types`, `POOL:typed`, `POOL:values`, and `POOL:type:ID` for one type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lake_core.errors import InvalidInput, NotFound
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from log_lake.system_tables.names import KINDS
from log_lake.system_tables.statement import pools_read
from tests.support.typed_pools import ANIMALS, load, shrink

TYPED = ("zng", "zst")
SIGHTING = "sighting=({k:int64,ip:ip,seen:[(int64,string)]})"
HENS = "{k:int64,name:string,legs:int8}"

Ask = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore(), author="test")


@pytest.fixture
def ask(lake: Lake) -> Ask:
    return lambda sql: query(lake, sql).read_all().to_pylist()


@pytest.fixture(params=TYPED)
def pool(lake: Lake, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    pool = lake.create_pool("p", key="k", settings={"format": request.param})
    load(pool, ANIMALS, tmp_path)
    load(pool, '{k:11,name:"owl",legs:2(int8)}\n', tmp_path)
    return pool


def test_the_types_are_listed_most_frequent_first(pool: Any, ask: Ask) -> None:
    types = ask('SELECT * FROM "p:types"')
    assert (types[0]["type"], types[0]["records"], types[0]["name"]) == (HENS, 2, None)
    assert [t["records"] for t in types[1:]] == [1] * 5
    assert [t["type"] for t in types if t["name"] == "sighting"] == [SIGHTING]
    shrink(pool)
    assert ask('SELECT * FROM "p:types"') == types
    assert ask('SELECT * FROM "p@1:types" ORDER BY id') == ask(
        'SELECT id, name, 1::BIGINT AS records, type FROM "p:types" ORDER BY id'
    )


def test_each_record_has_its_type_beside_the_united_fields(pool: Any, ask: Ask) -> None:
    assert ask('SELECT k, _type FROM "p:typed" WHERE k IN (2, 3, 11)') == [
        {"k": 2, "_type": SIGHTING},
        {"k": 3, "_type": HENS},
        {"k": 11, "_type": HENS},
    ]
    assert ask(f"SELECT k, legs FROM \"p:typed\" WHERE _type = '{HENS}'") == [
        {"k": 3, "legs": 2},
        {"k": 11, "legs": 2},
    ]
    united = ask('SELECT * FROM "p"')
    assert ask('SELECT * EXCLUDE (_type) FROM "p:typed"') == united
    shrink(pool)
    assert ask("SELECT k FROM \"p:typed\" WHERE _type LIKE '%ip:ip%'") == [{"k": 2}]


def test_a_type_is_a_table_of_its_own_fields(lake: Lake, pool: Any, ask: Ask) -> None:
    ((hens,), (sightings,)) = (
        ask(f"SELECT id FROM \"p:types\" WHERE type = '{text}'") for text in (HENS, SIGHTING)
    )
    for _ in range(2):
        answer = query(lake, f'SELECT * FROM "p:type:{hens["id"]}"').read_all()
        assert [(f.name, str(f.type)) for f in answer.schema] == [
            ("k", "int64"),
            ("name", "string"),
            ("legs", "int8"),
        ], "the width is the record's own; the pool's united field is wider"
        assert answer.to_pylist() == [
            {"k": 3, "name": "hen", "legs": 2},
            {"k": 11, "name": "owl", "legs": 2},
        ]
        shrink(pool)
    assert ask(f"SELECT seen, k FROM \"p:type:{sightings['id'][:6]}\" WHERE ip = '10.0.0.1'") == [
        {"seen": ["1", '"two"'], "k": 2}
    ]
    assert ask(f'SELECT count(*) AS n FROM "p@1:type:{hens["id"]}"') == [{"n": 1}]


def test_a_record_is_a_json_value(pool: Any, ask: Ask) -> None:
    assert ask("SELECT k, value ->> 'name' AS name FROM \"p:values\" WHERE k < 4") == [
        {"k": 1, "name": "crab"},
        {"k": 2, "name": None},
        {"k": 3, "name": "hen"},
    ]
    assert ask('SELECT value FROM "p:values" WHERE k = 11') == [{"value": '{"k":11,"name":"owl","legs":2}'}]


def test_deletes_hide_records_there_too(pool: Any, ask: Ask) -> None:
    pool.branch().delete(where="legs = 2")
    assert HENS not in [t["type"] for t in ask('SELECT * FROM "p:types"')]
    assert ask('SELECT k FROM "p:values" ORDER BY k DESC LIMIT 1') == [{"k": 6}]


def test_a_field_of_the_columns_name_stays_what_it_is(lake: Lake, ask: Ask, tmp_path: Path) -> None:
    pool = lake.create_pool("p", key="k", settings={"format": "zng"})
    load(pool, '{k:1,_type:"mine",value:2}\n', tmp_path)
    assert ask('SELECT * FROM "p:typed"') == [
        {"k": 1, "_type": "mine", "value": 2, "_type_1": "{k:int64,_type:string,value:int64}"}
    ]
    assert ask("SELECT k, _type, value ->> '_type' AS field FROM \"p:values\"") == [
        {"k": 1, "_type": "{k:int64,_type:string,value:int64}", "field": "mine"}
    ], "only a field of the key is beside the record"
    assert ask('SELECT value FROM "p:values"') == [{"value": '{"k":1,"_type":"mine","value":2}'}]


@pytest.mark.parametrize("name", KINDS)
def test_a_pool_may_be_called_like_one_of_the_tables(name: str, lake: Lake, ask: Ask, tmp_path: Path) -> None:
    load(lake.create_pool(name, key="k", settings={"format": "zng"}), "{k:1}\n", tmp_path)
    ((only,), rows) = (ask(f'SELECT id FROM "{name}:types"'), [{"k": 1}])
    for table in (name, f"{name}@1", f"{name}:type:{only['id']}"):
        assert ask(f'SELECT k FROM "{table}"') == rows, table
    assert ask(f'SELECT version FROM "{name}:log"') == [{"version": 1}]
    assert pools_read(f'SELECT * FROM "{name}:typed"') == [(name, "")]


def test_records_without_fields_are_counted(lake: Lake, ask: Ask, tmp_path: Path) -> None:
    pool = lake.create_pool("p", key="k", settings={"format": "zng", "nokey": "accept"})
    load(pool, "{}\n{}\n{k:1}\n", tmp_path)
    ((empty, *_),) = [ask('SELECT * FROM "p.$nokey:types"')]
    assert (empty["type"], empty["records"]) == ("{}", 2)
    assert ask(f'SELECT count(*) AS n FROM "p.$nokey:type:{empty["id"]}"') == [{"n": 2}]


def test_an_empty_pool_has_no_types(lake: Lake, ask: Ask) -> None:
    lake.create_pool("p", key="k", settings={"format": "zst"})
    assert ask('SELECT * FROM "p:types"') == []
    assert ask('SELECT * FROM "p:typed"') == []


@pytest.mark.parametrize("table", ["p:types", "p:typed", "p:values", "p:type:12ab"])
def test_a_pool_without_types_says_so(lake: Lake, ask: Ask, table: str, tmp_path: Path) -> None:
    load(lake.create_pool("p", key="k"), ANIMALS, tmp_path)
    with pytest.raises(InvalidInput, match=r"pool 'p': its records have no types .*format=zng"):
        ask(f'SELECT * FROM "{table}"')


def test_an_unknown_type_says_where_they_are_listed(pool: Any, ask: Ask) -> None:
    with pytest.raises(NotFound, match=r"no record has a type '0123456789ab'; \"p:types\" lists the types"):
        ask('SELECT * FROM "p:type:0123456789ab"')
    with pytest.raises(NotFound, match=r"there are: actions, branches, .*types, typed, values, type:ID"):
        ask('SELECT * FROM "p:type:hen"')


def test_an_ambiguous_id_asks_for_more_digits(lake: Lake, ask: Ask, tmp_path: Path) -> None:
    pool = lake.create_pool("p", key="k", settings={"format": "zng"})
    load(pool, "".join(f"{{k:{n},f{n}:1}}\n" for n in range(40)), tmp_path)
    with pytest.raises(InvalidInput, match=r"types begin with '.': .*; write more digits"):
        ask(f'SELECT * FROM "p:type:{ask("SELECT * FROM " + chr(34) + "p:types" + chr(34))[0]["id"][0]}"')


def test_the_pools_of_a_statement_are_named_without_the_shape() -> None:
    assert pools_read('SELECT * FROM "p@7:typed" JOIN "q:type:12ab" USING (k)') == [("p", "7"), ("q", "")]
