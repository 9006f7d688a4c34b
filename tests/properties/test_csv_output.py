"""What a scan prints as CSV, loaded into fields of the same types, is the same records; a key typed back is found.

Types that a pool can declare; nested values are JSON in CSV, as they are in a field of JSON.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake_core.keys.encoding import encode_value, from_array, key_class
from lake_core.values.types import declared_field, json_field
from log_lake.cli.main import main
from log_lake.columns.json_text import json_lines
from log_lake.console.output import write_records
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.texts.fit import array_of
from log_lake.texts.value import read
from tests.support.values import (
    DATES,
    DOUBLES,
    NEAR,
    NUMBERS,
    STRINGS,
    decimals,
    instants,
)

DECLARED: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "bigint": NUMBERS,
    "uint64": st.integers(0, 2**64 - 1),
    "tinyint": st.integers(-128, 127),
    "double": DOUBLES,
    "float": st.floats(width=32),
    "string": STRINGS | st.sampled_from(["a,b", 'say "hi"', "two\nlines", "\r", "\r\n", " ", "#", "NA", "-"]),
    "binary": st.binary(max_size=5),
    "date": DATES,
    "timestamp": instants(0x09, 10**3),
    "timestamp_ntz": instants(0x08, 10**3),
    "timestamp_ns": instants(0x09, 1, NEAR),
    "decimal(9,2)": decimals(9, 2),
    "decimal(38,10)": decimals(38, 10),
    "decimal(38,38)": decimals(38, 38),
}


def as_csv(table: pa.Table) -> bytes:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out):
        write_records([table], table.schema, format="csv", path=None)
    return out.buffer.getvalue()  # type: ignore[attr-defined, no-any-return]


def loaded(csv: bytes, types: dict[str, str]) -> pa.Table:
    settings = {f"type.{name}": kind for name, kind in types.items()}
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="n", settings=settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_bytes(csv)
        pool.branch().load([str(path)])
    return pool.at().to_table(columns=list(types))


@pytest.mark.parametrize("word", DECLARED)
def test_what_a_scan_prints_as_csv_loads_as_the_same_values(word: str) -> None:
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.none() | DECLARED[word], min_size=1, max_size=5))
    def holds(values: list[Any]) -> None:
        column = array_of(values, declared_field("x", word).type)
        table = pa.table({"n": pa.array(range(len(values)), pa.int64()), "x": column})
        back = loaded(as_csv(table), {"n": "bigint", "x": word})
        assert back.schema.field("x").type == column.type
        found = [encode_value(v) for v in from_array(back["x"])]
        assert found == [encode_value(v) for v in from_array(column)]

    holds()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.sampled_from([0.5, -1.0]) | STRINGS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(PLAIN.filter(lambda v: v is not None), min_size=1, max_size=4))
def test_json_in_csv_loads_as_the_same_json(values: list[Any]) -> None:
    schema = pa.schema([pa.field("n", pa.int64()), json_field("x")])
    table = pa.table([range(len(values)), [json.dumps(v) for v in values]], schema=schema)
    back = loaded(as_csv(table), {"n": "bigint", "x": "json"})
    assert [json.loads(t) for t in back["x"].to_pylist()] == values


def test_nested_values_in_csv_are_the_json_that_the_scan_shows() -> None:
    pairs = pa.array([[("k", 2)]], pa.map_(pa.string(), pa.int64()))
    table = pa.table({"n": [1], "x": [{"a": [1.0, None], "b": 'q"'}], "y": pairs})
    assert as_csv(table) == b'"n","x","y"\n1,"{""a"":[1.0,null],""b"":""q\\""""}","{""k"":2}"\n'
    assert json.loads(json_lines(table).to_pylist()[0])["x"] == {"a": [1.0, None], "b": 'q"'}


def test_one_column_of_nulls_keeps_its_lines() -> None:
    assert as_csv(pa.table({"x": pa.array([None, "a", ""], pa.string())})) == b'"x"\n""\n"a"\n""\n'
    assert as_csv(pa.table({"x": pa.array([None, 1.0])})) == b'"x"\n""\n1.0\n'


@pytest.mark.parametrize(
    "word", ["double", "float", "decimal(9,2)", "timestamp_ns", "binary", "string", "date"]
)
def test_a_key_of_a_csv_typed_back_is_found(word: str, tmp_path: Path) -> None:
    samples = {
        "double": ["1.0", "1e22", "NaN", "Infinity", "5e-324"],
        "float": ["0.10000000149011612", "-Infinity"],
        "decimal(9,2)": ["1.10", "-0.05"],
        "timestamp_ns": ["2020-01-01T00:00:00.123456789Z", "1969-12-31T23:59:59.999999999Z"],
        "binary": ["AP8=", ""],
        "string": ["1.10", "true", 'say "hi"', "two\nlines"],
        "date": ["0001-01-01", "9999-12-31"],
    }[word]
    uri = str(tmp_path / "lake")
    pool = Lake.create(uri).create_pool("p", key="k", settings={"type.k": word})
    kind = declared_field("k", word).type
    keys = array_of([read(text, key_class(kind)) for text in samples], kind)
    pool.branch().append(pa.table({"k": keys, "n": range(len(samples))}))
    rows = list(csv.reader(io.StringIO(as_csv(pool.at().to_table()).decode(), newline="")))[1:]
    for key, number in rows:
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(out):
            assert main(["get", "--lake", uri, "p", "--json", "--", key]) == 0
        (record,) = out.buffer.getvalue().splitlines()  # type: ignore[attr-defined]
        assert json.loads(record)["n"] == int(number)
