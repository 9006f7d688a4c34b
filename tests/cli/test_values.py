"""Values on the command line: a key is what its field holds, and no digit is lost on the way.

That it holds for every value is tests/properties/test_values.py; here are the ways in which it once did not.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command import INVALID_INPUT, NOT_FOUND, Command

WORDS = ["1.1", "1.10", "1e5", "true", "null", "[1]", "7"]


@pytest.fixture
def words(lake: Command) -> Command:
    lake.pool()
    lake.load_records("p", [{"k": word, "n": n} for n, word in enumerate(WORDS)])
    return lake


@pytest.mark.parametrize("word", WORDS)
def test_a_text_key_is_the_text_whatever_it_looks_like(words: Command, word: str) -> None:
    assert [r["k"] for r in words("get", "p", word, "--json").records] == [word]
    words("delete", "p", "--key", word)
    assert sorted(r["k"] for r in words.scan("p")) == sorted(w for w in WORDS if w != word)
    assert words.run("get", "p", word).status == NOT_FOUND


NANOS = ["2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00.123457Z"]


@pytest.fixture
def nanos(lake: Command) -> Command:
    lake.pool(types={"k": "timestamp_ns"})
    lake.load_records("p", [{"k": text, "n": n, "x": [1, "mixed"][n % 2]} for n, text in enumerate(NANOS)])
    return lake


def test_nanoseconds_of_a_key_are_read_as_they_are_shown(nanos: Command) -> None:
    assert [r["k"] for r in nanos.scan("p")] == NANOS
    for n, text in enumerate(NANOS):
        assert [r["n"] for r in nanos("get", "p", text, "--json").records] == [n]
    assert [r["n"] for r in nanos.scan("p", "--from", NANOS[1])] == [1, 2]
    assert [r["n"] for r in nanos.scan("p", "--to", NANOS[1])] == [0]
    assert "123456789Z" in nanos("explain", "p", NANOS[1]).out
    nanos("delete", "p", "--key", NANOS[1])
    assert [r["n"] for r in nanos.scan("p")] == [0, 2]


@pytest.mark.parametrize("beside", [{}, {"x": 1}, {"x": "mixed"}])
def test_a_declared_type_never_cuts_a_time(lake: Command, beside: dict[str, object]) -> None:
    lake.pool(types={"t": "timestamp"})
    message = lake.refuses_records("p", [{"k": 1, "x": 1}, {"k": 2, "t": NANOS[1], **beside}])
    assert "line 2" in message
    assert "finer than microseconds" in message
    assert "declare timestamp_ns" in message


def test_a_decimal_key_of_29_digits_is_found_in_every_way(lake: Command) -> None:
    lake.pool(types={"k": "decimal(38,9)"})
    key = "12345678901234567890.123456789"
    lake.load_records("p", f'{{"k": {key}, "n": 1}}\n{{"k": 12345678901234567890.123456788, "n": 2}}\n')
    assert [r["n"] for r in lake("get", "p", key, "--json").records] == [1]
    assert [r["n"] for r in lake.scan("p", "--where", f"k = {key}")] == [1]
    assert f'"k":{key}' in lake("scan", "p", "--format", "json").out


def test_a_number_without_a_type_keeps_its_digits(lake: Command) -> None:
    lake.pool()
    lake.load_records("p", '{"k": 1, "x": 0.12345678901234567891, "y": 1e400}\n'.replace(', "y": 1e400', ""))
    assert '"x":0.12345678901234567891' in lake("scan", "p", "--format", "json").out
    assert [r["k"] for r in lake.scan("p", "--where", "x = 0.12345678901234567891")] == [1]


CSV = {
    "long decimals": "0.12345678901234567891",
    "exponents": "1e5",
    "zeros at the end": "1.10",
    "offsets": "2026-01-31T12:00:00+02:00",
    "zeros in front": "007",
}


@pytest.mark.parametrize("text", CSV.values(), ids=CSV.keys())
def test_csv_comes_back_as_it_was_written(lake: Command, text: str) -> None:
    lake.pool()
    lake.load("p", lake.file("a.csv", f"k,x\n1,{text}\n2,{text}\n"))
    assert {
        line.split('"x":')[1].strip('"}') for line in lake("scan", "p", "--format", "json").out.split()
    } == {text}
    assert {r.split(",")[1].strip('"') for r in lake("scan", "p", "--format", "csv").out.split()[1:]} == {
        text
    }


def test_bytes_are_shown_and_read_in_one_way(lake: Command) -> None:
    lake.pool()
    path = lake.folder / "b.parquet"
    lake.folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"k": pa.array([b"\x00\xff", b"ab"]), "n": [1, 2]}), path)
    lake.load("p", str(path))
    shown = [r["k"] for r in lake.scan("p")]
    assert [[r["n"] for r in lake("get", "p", text, "--json").records] for text in shown] == [[1], [2]]
    assert [r["n"] for r in lake.scan("p", "--where", f"k = '{shown[0]}'")] == [1]
    assert [r["n"] for r in lake("get", "p", "x'00ff'", "--json").records] == [1]


def test_a_key_of_several_fields_is_a_json_list(lake: Command) -> None:
    lake.pool(key="a,b")
    lake.load_records("p", [{"a": "1.10", "b": 1.5, "n": 1}, {"a": "1.1", "b": 1.5, "n": 2}])
    assert [r["n"] for r in lake("get", "p", '["1.10", 1.5]', "--json").records] == [1]
    assert [r["n"] for r in lake("get", "p", "1.10", "--json").records] == [1]
    assert "the pool key a,b has 2 fields" in lake.fails(INVALID_INPUT, "get", "p", '["1.10", 1.5, 2]')
    assert "the field is a number" in lake.fails(INVALID_INPUT, "get", "p", '["1.10", "x"]')


PARQUET = {
    "date": (pa.array([2_932_897], pa.int32()).view(pa.date32()), "a date outside of the years 1 to 9999"),
    "timestamp": (pa.array([2**62], pa.timestamp("us")), "a timestamp outside of the years 1 to 9999"),
    "map": (
        pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())),
        "a map has the same key twice",
    ),
}


@pytest.mark.parametrize("name", PARQUET)
def test_what_could_not_be_read_again_is_refused_or_quarantined(lake: Command, name: str) -> None:
    lake.pool()
    column, why = PARQUET[name]
    lake.folder.mkdir(exist_ok=True)
    good = pa.nulls(1, column.type)
    path = lake.folder / "a.parquet"
    pq.write_table(pa.table({"k": [1, 2], "x": pa.concat_arrays([good, column])}), path)
    message = lake.refuses("p", str(path))
    assert f"field 'x': {why}" in message
    assert "2" in message
    lake("set", "p", "bad_records=quarantine")
    lake.load("p", str(path))
    assert [r["k"] for r in lake.scan("p")] == [1]
    (rejected,) = lake.scan("p.$rejected")
    assert why in rejected["reason"]
    assert json.loads(rejected["raw"])["k"] == 2
