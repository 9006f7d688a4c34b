"""NDJSON: every record comes back as it was, whatever Arrow's own reader would have made of it."""

from __future__ import annotations

import os
from typing import Any

import pytest

from lake_core.errors import InvalidInput
from lake_core.values.types import declared_field, show_type
from log_lake.columns.json_text import json_lines
from log_lake.loading.block import Block, Reading, ReadLimits
from log_lake.loading.formats import json as ndjson
from log_lake.loading.formats.json import read_ndjson
from tests.support.command import Command, without_nulls

RECORDS = [
    pytest.param([{"k": 1, "a": "x"}, {"k": 2, "b": 1.5}, {"k": 3, "a": None}], id="fields come and go"),
    pytest.param([{"k": 1, "id.orig_h": "10.0.0.1", "id": {"orig_h": 7}}], id="dotted names"),
    pytest.param([{"k": 1, "a b": 1, "ü": "Ü", '"': "q", "$": 2}], id="names untouched"),
    pytest.param([{"k": 1, "r": {"s": {"t": [1, 2]}, "u": None}}], id="nested records"),
    pytest.param([{"k": 1, "l": [{"x": 1}, {"y": "z"}]}, {"k": 2, "l": []}], id="lists of records"),
    pytest.param([{"k": 1, "l": [[1], [], [2, 3]]}], id="lists of lists"),
    pytest.param([{"k": 1, "l": [1, None, 3]}, {"k": 2, "l": None}], id="nulls in lists"),
    pytest.param([{"k": 1, "r": {}}, {"k": 2}, {"k": 3, "r": {}}], id="empty records"),
    pytest.param([{"k": 1, "r": [{}, {}]}, {"k": 2, "r": []}], id="lists of empty records"),
    pytest.param([{"k": 1, "r": {}}, {"k": 2, "r": {"x": 1}}], id="a record that is empty at times"),
    pytest.param([{"k": 1, "r": {"s": {}}}, {"k": 2, "r": {"s": {"x": {}}}}], id="empty records inside"),
    pytest.param([{"k": 1, "a": 1}, {"k": 2, "a": "x"}, {"k": 3, "a": [True]}], id="several kinds"),
    pytest.param([{"k": 1, "a": {"b": 1}}, {"k": 2, "a": 5}], id="a record and a number"),
    pytest.param([{"k": 1, "l": [1, "x", {"y": None}, None]}], id="a list of several kinds"),
    pytest.param([{"k": 1, "a": 2**53 + 1}, {"k": 2, "a": 0.5}], id="an integer that a double rounds"),
    pytest.param([{"k": 1, "a": 2**63 - 1}, {"k": 2, "a": -(2**63)}], id="64 bits with sign"),
    pytest.param([{"k": 1, "a": 2**64 - 1}, {"k": 2, "a": 0}], id="64 bits without sign"),
    pytest.param([{"k": 1, "a": 2**64 - 1}, {"k": 2, "a": -1}], id="no 64 bits hold both"),
    pytest.param([{"k": 1, "a": 10**30}, {"k": 2, "a": [10**30]}], id="integers beyond 64 bits"),
    pytest.param(
        [{"k": 1, "t": "2018-03-24T17:15:20.600725Z"}, {"k": 2, "t": "2018-03-24"}], id="times are text"
    ),
    pytest.param([{"k": 1, "t": ["2018-03-24"], "r": {"t": "2018-03-24 10:00:00"}}], id="times inside"),
    pytest.param([{"k": 1, "a": 'q"\\\n\t\x00\x7f\u2028🜚'}], id="characters that need escapes"),
    pytest.param([{"k": 1, "a": True, "b": False}, {"k": 2, "a": False}], id="booleans"),
    pytest.param([{"k": 1, "a": 0.1, "b": 1e308, "c": 5e-324, "d": -0.0, "e": 3.0}], id="doubles"),
]


@pytest.mark.parametrize("records", RECORDS)
def test_every_record_comes_back_as_it_was(lake: Command, records: list[dict[str, Any]]) -> None:
    lake.pool("p")
    lake.load_records("p", records, "data.jsonl.gz")
    assert without_nulls(lake.scan("p")) == without_nulls(records)
    assert without_nulls(lake.query('select * from "p" order by k')) == without_nulls(records)


def test_integers_and_doubles_of_equal_value_stay_apart(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1, "i": 3, "d": 3.0}, {"k": 2, "i": 4, "d": 4.5}])
    assert '"i":3,"d":3.0' in lake("scan", "p").out


def test_lines_may_be_empty_and_the_last_may_lack_its_end(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", '\n{"k":1}\r\n   \n\n{"k":2}')
    assert lake.scan("p") == [{"k": 1}, {"k": 2}]


def test_loads_of_different_shape_unite(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 2, "a": 1, "only.first": "x"}], "a.ndjson")
    lake.load_records("p", [{"k": 1, "a": "text", "r": {"x": 1}}], "b.ndjson")
    lake.load_records("p", [{"k": 3, "r": {"y": 2.5}}], "c.ndjson")
    assert lake.scan("p") == [
        {"k": 1, "a": "text", "r": {"x": 1}},
        {"k": 2, "a": 1, "only.first": "x"},
        {"k": 3, "r": {"y": 2.5}},
    ]


def test_declared_types_are_what_the_fields_become(lake: Command) -> None:
    types = {"t": "timestamp", "d": "date", "n": "decimal(10,2)", "b": "binary", "f": "double", "j": "json"}
    lake.pool("p", types=types)
    lake.load_records(
        "p",
        [
            {
                "k": 1,
                "t": "2020-01-01T01:00:00+01:00",
                "d": "2020-02-29",
                "n": 1.25,
                "b": "AQI=",
                "f": 3,
                "j": {"x": 1},
            },
            {"k": 2, "j": "text"},
        ],
    )
    assert lake.scan("p") == [
        {
            "k": 1,
            "t": "2020-01-01T00:00:00Z",
            "d": "2020-02-29",
            "n": 1.25,
            "b": "AQI=",
            "f": 3.0,
            "j": {"x": 1},
        },
        {"k": 2, "j": "text"},
    ]
    fields = lake("show", "p", "--json").records[0]["fields"]
    assert fields == {"k": "bigint"} | {n: show_type(declared_field(n, kind)) for n, kind in types.items()}


def test_the_small_int_that_is_declared_is_stored(lake: Command) -> None:
    lake.pool("p", types={"k": "smallint"})
    lake.load_records("p", [{"k": 3}])
    assert lake("show", "p", "--json").records[0]["fields"] == {"k": "smallint"}


def test_records_without_the_key_go_to_nokey_in_order_of_arrival(lake: Command) -> None:
    lake.pool("p")
    done = lake.load_records("p", [{"a": 2}, {"k": 1, "a": 3}, {"k": None, "a": 1}])
    assert (done["records"], done["nokey"]) == (1, 2)
    assert lake.scan("p") == [{"k": 1, "a": 3}]
    assert lake.scan("p.$nokey") == [{"a": 2}, {"a": 1}]


def test_a_record_without_any_field_is_a_record_without_the_key(lake: Command) -> None:
    lake.pool("p")
    lake("set", "p", "nokey=accept")
    assert lake.load_records("p", [{}, {}])["nokey"] == 2
    assert lake.scan("p.$nokey") == [{}, {}]


def test_further_key_fields_may_be_null_and_sort_first(lake: Command) -> None:
    lake.pool("p", key="k,m")
    lake.load_records("p", [{"k": 1, "m": 2}, {"k": 1}, {"k": 1, "m": 1}])
    assert lake.scan("p") == [{"k": 1}, {"k": 1, "m": 1}, {"k": 1, "m": 2}]


def blocks(path: str, *, size: int, bad_records: str = "fail", begin: int = 64 << 10) -> list[Block]:
    limits = ReadLimits(first_json=begin)
    reading = Reading(path, key=("k",), bad_records=bad_records, block_bytes=size, limits=limits)
    return list(read_ndjson(reading))


@pytest.mark.parametrize("begin", [1, 100, 64 << 10])
@pytest.mark.parametrize("size", [1, 16, 40, 1 << 20])
def test_the_size_of_blocks_does_not_matter(lake: Command, size: int, begin: int) -> None:
    records = [{"k": i, "t": "2020-01-01" if i % 3 else "x" * i} for i in range(20)]
    path = lake.file("a.ndjson", records)
    assert [r for b in blocks(path, size=size, begin=begin) for r in b.table.to_pylist()] == records


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_key_of_another_kind_is_found_in_any_block(lake: Command, size: int) -> None:
    path = lake.file("a.ndjson", [{"k": 1}, {"k": 2.5}, {"k": "x"}, {"k": 3}])
    read = blocks(path, size=size, bad_records="quarantine")
    assert [r for b in read for r in b.table.to_pylist()] == [{"k": 1}, {"k": 2.5}, {"k": 3}]
    (rejected,) = [r for b in read for r in b.rejected]
    assert (rejected.line, rejected.raw) == (3, '{"k": "x"}')
    assert "key field 'k': a string" in rejected.reason


def test_a_field_may_have_no_name_and_names_may_differ_in_case_alone(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1, "": "nameless", "a": 1, "A": "x"}])
    assert lake.scan("p") == [{"k": 1, "": "nameless", "a": 1, "A": "x"}]
    assert lake.query('select * from "p"') == [{"k": 1, "": "nameless", "a": 1, "A": "x"}]


def test_a_block_with_times_is_parsed_once(lake: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's reader makes times of them; which fields look like that shows in the beginning."""
    parsed: list[int] = []
    parse = ndjson._parse
    monkeypatch.setattr(
        ndjson,
        "_parse",
        lambda block, *rest, new: parsed.append(len(block)) or parse(block, *rest, new=new),
    )
    records = [
        {"k": i, "t": "2020-01-01T10:00:00Z", "d": None if i % 2 else "2020-01-01", "l": [i, i]}
        for i in range(8000)
    ]
    path = lake.file("a.ndjson", records)
    found = blocks(path, size=1 << 20)
    assert [r for block in found for r in block.table.to_pylist()] == records
    assert len(found) > 2
    assert parsed[0] == parsed[1]
    assert parsed[0] * 4 < parsed[2]
    assert sum(parsed[1:]) == os.path.getsize(path)


@pytest.mark.parametrize("kind", ["double", "float"])
def test_what_a_scan_shows_of_nan_and_infinity_is_read_into_a_declared_double(
    lake: Command, kind: str
) -> None:
    lake.pool("p", types={"x": kind})
    records = [{"k": n, "x": x} for n, x in enumerate(["NaN", "Infinity", "-Infinity", 1.5])]
    lake.load_records("p", records)
    assert lake.scan("p") == records
    found = lake.query('select k from "p" where isnan(x) or isinf(x) order by k')
    assert found == [{"k": 0}, {"k": 1}, {"k": 2}]
    assert "'inf' is not a" in lake.refuses_records("p", [{"k": 1, "x": "inf"}])


LONG = {
    "0.30000000000000004": True,
    "12.300000000000001": True,
    "1.2345678901234568e-05": True,
    "0.10000000000000001": True,
    "0.12345678901234567": False,
    "1e-310": False,
    "0.12345678901234567891": False,
    "0.1000000000000000055511151231257827": False,
    "-12345678901234567890.5": False,
}


@pytest.mark.parametrize("number", LONG)
def test_a_block_is_read_line_by_line_only_if_a_double_would_lose_digits_of_it(
    lake: Command, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    """Doubles with all their digits are what most programs write: reading these is fast."""
    slow: list[bytes] = []
    exact = ndjson.read_exact
    monkeypatch.setattr(
        ndjson, "read_exact", lambda block, *rest, **how: slow.append(block) or exact(block, *rest, **how)
    )
    path = lake.file(
        "a.ndjson",
        f'{{"k": 1, "x": 0.5, "id": "12345678901234567890.5", "u": "8e-4123-0E-900"}}\n{{"k":2,"x":{number}}}\n',
    )
    (block,) = read_ndjson(Reading(path, key=("k",)))
    assert (slow == []) == LONG[number]
    shown = json_lines(block.table).to_pylist()[1]
    assert float(shown.partition('"x":')[2].rstrip("}")) == float(number)
    assert LONG[number] or f'"x":{number}' in shown


@pytest.mark.parametrize("number", ["1E-400", "\r1e-400", "[1e-400]", "-0.00000000000000000000000001e-310"])
def test_a_number_that_is_too_small_for_a_double_is_no_zero_wherever_it_stands(
    lake: Command, number: str
) -> None:
    path = lake.file("a.ndjson", f'{{"k":1,"x":0.5}}\n{{"k":2,"x":{number}}}\n')
    with pytest.raises(InvalidInput, match="line 2: malformed JSON: more digits than a decimal has"):
        list(read_ndjson(Reading(path, key=("k",))))


@pytest.mark.parametrize(
    "text",
    [
        "null",
        'null\n{"k": 1}',
        '{"k": 1}\nnull',
        '{"k": 1}\n  null\n',
        '[null, {"k": 1}]',
        '[{"k": 1}, null]',
    ],
)
def test_a_file_that_holds_null_instead_of_a_record_is_refused(lake: Command, text: str) -> None:
    """Arrow's reader ends the process at it, or takes it for a record without fields."""
    lake.pool("p")
    assert "a record must be a JSON object, not null" in lake.refuses("p", lake.file("a.json", text))
