"""Records, lists and maps in each other, sliced, with nulls: no value moves to another row, none is lost."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.schemas.schema import unite_schemas
from lake_core.values.types import json_field
from log_lake.columns.cast import cast_table
from log_lake.columns.json_text import json_lines, shown, typed
from log_lake.objects.normalize import normalized
from log_lake.texts.typed_json import MapEntries, value_of

LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-(2**60), 2**60)),
    (pa.float64(), st.sampled_from([0.5, -1.0, 1e300])),
    (pa.string(), st.sampled_from(["", "a", 'q"', "lake:date"])),
    (pa.bool_(), st.booleans()),
    (pa.null(), st.none()),
]


@st.composite
def types(draw: st.DrawFn, depth: int = 3) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    """A type, and values of it as `to_pylist` gives them."""
    shape = draw(st.sampled_from(["leaf", "list", "large list", "map", "record"])) if depth else "leaf"
    if shape == "leaf":
        kind, values = draw(st.sampled_from(LEAVES))
        return kind, st.none() | values
    inner, values = draw(types(depth - 1))
    match shape:
        case "list":
            return pa.list_(inner), st.none() | st.lists(values, max_size=3)
        case "large list":
            return pa.large_list(inner), st.none() | st.lists(values, max_size=3)
        case "map":
            entries = st.dictionaries(st.sampled_from(["a", "b", ""]), values, max_size=2)
            return pa.map_(pa.string(), inner), st.none() | entries.map(lambda d: list(d.items()))
    other, more = draw(types(depth - 1))
    record = pa.struct([("x", inner), ("y", other)])
    return record, st.none() | st.fixed_dictionaries({"x": values, "y": more})


@st.composite
def arrays(draw: st.DrawFn) -> pa.Array:
    kind, values = draw(types())
    made = draw(st.lists(values, min_size=1, max_size=5))
    array = pa.array(made, kind)
    if draw(st.booleans()):  # null rows that have items all the same
        mask = draw(st.lists(st.booleans(), min_size=len(made), max_size=len(made)))
        array = pc.if_else(pa.array(mask), array, pa.nulls(len(made), kind)) if len(made) else array
    start = draw(st.integers(0, len(made) - 1))
    return array.slice(start, draw(st.integers(0, len(made) - start)))


def plain(value: Any) -> Any:
    """A value of `to_pylist`, maps as `value_of` gives them, members that are null left out."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items() if member is not None}
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return MapEntries((key, plain(item)) for key, item in value)
    return [plain(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=400)
@given(arrays())
def test_nested_values_come_back_from_typed_json(array: pa.Array) -> None:
    texts = typed(pa.chunked_array([array], array.type), pa.field("f", array.type)).to_pylist()
    back = [None if text is None else value_of(text) for text in texts]
    assert back == [plain(v) for v in array.to_pylist()]


@settings(max_examples=400)
@given(arrays(), arrays())
def test_nested_values_are_shown_alike_in_every_form(first: pa.Array, second: pa.Array) -> None:
    field = pa.field("f", first.type)
    before = [
        {} if text is None else {"f": json.loads(text)}
        for text in shown(pa.chunked_array([first], first.type), field).to_pylist()
    ]
    stored = normalized(pa.table({"f": pa.chunked_array([first], first.type)}))
    other = normalized(pa.table({"f": pa.chunked_array([second], second.type)}))
    united = unite_schemas([stored.schema, other.schema])
    mixed = pa.schema([json_field("f")])
    for schema in (stored.schema, united, unite_schemas([united, mixed]), mixed):
        table = cast_table(stored, schema, what="test")
        assert [json.loads(line) for line in json_lines(table).to_pylist()] == before


@settings(max_examples=200)
@given(arrays(), arrays(), arrays())
def test_uniting_is_associative_and_commutative(a: pa.Array, b: pa.Array, c: pa.Array) -> None:
    schemas = [normalized(pa.table({"f": pa.chunked_array([x], x.type)})).schema for x in (a, b, c)]
    whole = unite_schemas(schemas)
    for first, second, third in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        parts = unite_schemas([schemas[first], schemas[second]])
        assert unite_schemas([parts, schemas[third]]).field("f").type == whole.field("f").type
