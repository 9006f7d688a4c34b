"""Keys inside of records: the pool `--key user.id` of records `{"user": {"id": 5}}`."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.support.command import INVALID_INPUT, Command
from tests.support.files import parquet


def rows(*ids: int, v: int = 0) -> list[dict[str, Any]]:
    return [{"user": {"id": id, "name": f"n{id}"}, "v": v} for id in ids]


def kept(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records as the pool keeps them: the key is a field of its own too."""
    return [{**record, "user.id": record["user"]["id"]} for record in records]


def file_of(name: str, records: list[dict[str, Any]]) -> bytes:
    match name:
        case "a.parquet":
            return parquet(pa.Table.from_pylist(records))
        case "a.avro":
            fields = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
            user = {"type": "record", "name": "user", "fields": fields}
            schema = {
                "type": "record",
                "name": "r",
                "fields": [{"name": "user", "type": user}, {"name": "v", "type": "long"}],
            }
            sink = io.BytesIO()
            fastavro.writer(sink, fastavro.parse_schema(schema), records)
            return sink.getvalue()
        case "a.json":
            return json.dumps(records).encode()
        case "a.zson":
            users = [(r["user"]["id"], r["user"]["name"], r["v"]) for r in records]
            return "\n".join(f'{{user:{{id:{id},name:"{name}"}},v:{v}}}' for id, name, v in users).encode()
    return "".join(json.dumps(record) + "\n" for record in records).encode()


@pytest.mark.parametrize("name", ["a.ndjson", "a.json", "a.parquet", "a.avro", "a.zson"])
@pytest.mark.parametrize("format", ["parquet", "zng", "zst"])
def test_each_format_is_loaded_read_deleted_replaced_and_compacted(
    lake: Command, name: str, format: str
) -> None:
    lake.pool("p", key="user.id", format=format)
    lake.load_records("p", file_of(name, rows(3, 1, 2)), name)
    lake.load_records("p", file_of(name, rows(2, 4, 9, v=1)), name)
    assert lake.scan("p", "--from", "2", "--to", "3") == kept([*rows(2), *rows(2, v=1)])
    assert lake("get", "p", "4").records == kept(rows(4, v=1))
    assert lake.query('select count(*) as n from p where "user".id = 2 and "user.id" = 2') == [{"n": 2}]
    lake("delete", "p", "--from", "4", "--to", "5")
    lake("replace", "p", lake.file(f"new/{name}", file_of(name, rows(2, v=7))), "--from", "2", "--to", "3")
    lake("compact", "p", "--strategy", "full")
    lake("tombstones", "p", "--at-once")
    assert lake.scan("p") == kept([*rows(1), *rows(2, v=7), *rows(3), *rows(9, v=1)])


def test_upsert_and_aggregate_pools_know_such_a_key(lake: Command) -> None:
    lake("create", "u", "--key", "user.id", "--kind", "upsert")
    lake("create", "a", "--key", "user.id", "--kind", "aggregate", "--aggregate", "v=sum")
    for pool in "ua":
        lake.load_records(pool, rows(1, 2, v=1))
        lake.load_records(pool, rows(2, v=5))
    assert lake.scan("u") == kept([*rows(1, v=1), *rows(2, v=5)])
    assert lake.scan("a") == kept([*rows(1, v=1), *rows(2, v=6)])
    lake.load_records("u", [{"user": {"id": 1}, "_deleted": True}])
    assert lake.scan("u") == kept(rows(2, v=5))
    lake("compact", "u", "--strategy", "full")
    assert lake.scan("u") == kept(rows(2, v=5))


def test_a_field_of_that_exact_name_is_the_key_if_it_has_a_value(lake: Command) -> None:
    lake.pool("p", key="a.b")
    records = [{"a.b": 1, "a": {"b": 9}}, {"a": {"b": 2}}, {"a.b": None, "a": {"b": 3}}, {"a.b": 4}]
    lake.load_records("p", records)
    assert lake.scan("p") == [
        {"a.b": 1, "a": {"b": 9}}, {"a": {"b": 2}, "a.b": 2}, {"a": {"b": 3}, "a.b": 3}, {"a.b": 4}
    ]  # fmt: skip


def test_a_path_leads_through_maps_json_and_names_with_dots(lake: Command) -> None:
    for number, (record, key) in enumerate(
        [
            ({"a": {"b": {"c": 7}}}, "a.b.c"),
            ({"a.b": {"c": 7}}, "a.b.c"),
            ({"a": {"b.c": 7}}, "a.b.c"),
        ]
    ):
        lake.pool(f"p{number}", key=key)
        lake.load_records(f"p{number}", [record])
        assert lake.scan(f"p{number}") == [{**record, "a.b.c": 7}]
    lake.pool("json", key="a.b", types={"a": "json"})
    lake.load_records("json", [{"a": {"b": 2}}, {"a": {"b": 1, "c": "x"}}])
    assert [one["a.b"] for one in lake.scan("json")] == [1, 2]
    lake.pool("map", key="m.x")
    table = pa.table({"m": pa.array([[("x", 2)], [("y", 0), ("x", 1)]], pa.map_(pa.string(), pa.int64()))})
    lake.load_records("map", parquet(table), "a.parquet")
    assert [one["m.x"] for one in lake.scan("map")] == [1, 2]


def test_declared_types_bad_values_and_absent_keys(lake: Command) -> None:
    lake.pool("p", key="e.t", types={"e.t": "timestamp"}, bad_records="quarantine")
    records = [
        {"e": {"t": "2026-01-02T00:00:00Z"}},
        {"e": {"t": "soon"}},
        {"e": {}},
        {"e": {"t": "2026-01-01"}},
    ]
    lake.load_records("p", records)
    assert [one["e.t"] for one in lake.scan("p")] == ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]
    (bad,) = lake.scan("p.$rejected")
    assert bad["line"] == 2
    assert "field 'e.t': 'soon' is not a timestamp" in bad["reason"]
    assert len(lake.scan("p.$nokey")) == 1
    assert "no record has the key field 'e.t'" in lake.refuses_records("p", [{"e": 1}], "b.ndjson")


def test_a_program_s_table_and_keys_are_read_by_the_path(lake: Command) -> None:
    lake.pool("p", key="user.id")
    branch = Lake.open(lake.uri).pool("p").branch()
    branch.append(pa.Table.from_pylist(rows(1, 2, 3)))
    branch.delete_keys(pa.Table.from_pylist([{"user": {"id": 2}}]))
    assert lake.scan("p") == kept(rows(1, 3))
    branch.replace_keys(pa.Table.from_pylist(rows(3, v=8)))
    assert lake.scan("p") == kept([*rows(1), *rows(3, v=8)])


def test_a_pool_with_such_a_key_is_published(lake: Command) -> None:
    lake.pool("p", key="user.id")
    lake.load_records("p", [{"user.id": 1}])
    lake("publish", "p")
    lake.load_records("p", rows(2))
    lake("publish", "p")
    lake("compact", "p", "--strategy", "full")
    assert "2 records in 1 object" in lake("publish", "p").err


def test_this_is_no_key_unless_a_field_is_called_so(lake: Command) -> None:
    message = lake.fails(INVALID_INPUT, "create", "p", "--key", "this")
    assert "key 'this': a key is a field, not the whole record; name one" in message
    file = lake.file("pools.yaml", "pools:\n  p:\n    key: this\n")
    assert "key 'this'" in lake.fails(INVALID_INPUT, "apply", file)
    lake.pool("p", key="this:asc")
    lake.load_records("p", [{"this": 1}])
    assert lake.scan("p") == [{"this": 1}]
    assert "this:asc" in lake("export", "p").out


def test_each_record_has_its_key_whatever_paths_the_records_beside_it_have(lake: Command) -> None:
    records = [
        {"a.b": {"c": 5}},
        {"a": {"b": {"c": 1}}},
        {"a": {"b.c": 3}},
        {"a.b.c": 2},
        {"a.b": {"c": None}, "a": {"b": {"c": 4}}},
        {"a.b": {"c": 6}, "a": {"b": {"c": 9}, "b.c": 8}},
    ]
    lake.pool("p", key="a.b.c")
    lake.load_records("p", records)
    assert [one["a.b.c"] for one in lake.scan("p")] == [1, 2, 3, 4, 5, 6]
    lake.pool("q", key="a.b.c")
    lake.load_records("q", [{"a": 5}, {"a": {"b.c": None, "b": {"c": 2}}}, {"a": {"b.c": 1, "b": {"c": 3}}}])
    assert [one["a.b.c"] for one in lake.scan("q")] == [1, 2]


def test_a_path_leads_through_a_map_of_records(lake: Command) -> None:
    kind = pa.map_(pa.string(), pa.struct([("id", pa.int64())]))
    table = pa.table({"m": pa.array([[("x", {"id": 2})], [("y", {"id": 7}), ("x", {"id": 1})], []], kind)})
    lake.pool("p", key="m.x.id")
    lake.load_records("p", parquet(table), "a.parquet")
    assert [one["m.x.id"] for one in lake.scan("p")] == [1, 2]


def test_a_declared_key_is_read_from_texts_beside_numbers(lake: Command) -> None:
    lake.pool("p", key="user.id", types={"user.id": "bigint"})
    lake.load_records("p", [{"user": {"id": "3"}}, {"user": {"id": 1}}, {"user.id": 2, "user": {"id": "x"}}])
    assert [one["user.id"] for one in lake.scan("p")] == [1, 2, 3]
    message = lake.refuses_records("p", [{"user": {"id": 1}}, {"user": {"id": "x"}}])
    assert "line 2: field 'user.id': 'x' is not a bigint" in message
