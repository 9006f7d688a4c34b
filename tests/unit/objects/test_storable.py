"""What a type can hold and the lake cannot is found by row, at the limit and one above."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lake_core.values.types import JSON_MARK
from log_lake.objects.storable import unstorable

FIRST, LAST = -719_162, 2_932_896
DAY = 86_400


def ticks(values: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.date32(), FIRST, LAST),
        (pa.timestamp("s"), FIRST * DAY, LAST * DAY + DAY - 1),
        (pa.timestamp("us", "UTC"), FIRST * DAY * 10**6, (LAST + 1) * DAY * 10**6 - 1),
        (pa.time32("ms"), 0, DAY * 1000 - 1),
        (pa.time64("ns"), 0, DAY * 10**9 - 1),
    ],
    ids=str,
)
def test_the_first_and_the_last_time_are_stored_and_those_beyond_are_not(
    kind: pa.DataType, low: int, high: int
) -> None:
    column = pa.chunked_array([ticks([low, None], kind), ticks([high, low - 1, high + 1], kind)])
    assert list(unstorable(column)) == [3, 4]


def test_nanoseconds_reach_nowhere_near_the_limit() -> None:
    assert not unstorable(pa.chunked_array([ticks([-(2**63), 2**63 - 1], pa.timestamp("ns"))]))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda a: pa.StructArray.from_arrays([a], ["x"]),
        lambda a: pa.ListArray.from_arrays(pa.array(range(len(a) + 1), pa.int32()), a),
        lambda a: a.dictionary_encode(),
        lambda a: pa.MapArray.from_arrays(
            pa.array(range(len(a) + 1), pa.int32()), pa.array([str(i) for i in range(len(a))]), a
        ),
    ],
    ids=["record", "list", "dictionary", "map"],
)
def test_values_inside_are_found_by_their_row(wrap: Any) -> None:
    dates = ticks([0, LAST + 1, None, FIRST - 1], pa.date32())
    assert list(unstorable(pa.chunked_array([wrap(dates), wrap(dates).slice(1)]))) == [1, 3, 4, 6]


def test_two_maps_of_one_record_may_have_the_same_key() -> None:
    kind = pa.list_(pa.map_(pa.string(), pa.int64()))
    lists = pa.array([[[("a", 1)], [("a", 2)]], [[("a", 1), ("a", 2)]]], kind)
    assert list(unstorable(pa.chunked_array([lists]))) == [1]


@pytest.mark.parametrize("kind", ["list", "map"])
def test_rows_that_are_null_and_have_items_are_passed_over(kind: str) -> None:
    times = ticks([0, LAST + 1, LAST + 1], pa.date32())
    offsets, mask = pa.array([0, 1, 3], pa.int32()), pa.array([False, True])
    if kind == "list":
        rows = pa.ListArray.from_arrays(offsets, times, mask=mask)
    else:
        rows = pa.MapArray.from_arrays(offsets, pa.array(["a", "b", "b"]), times, mask=mask)
    assert not unstorable(pa.chunked_array([rows]))


@pytest.mark.parametrize(
    ("wrap", "inside"),
    [
        (lambda f: pa.struct([f]), lambda v: {"x": v}),
        (lambda f: pa.list_(f), lambda v: [v]),
        (lambda f: pa.map_(pa.string(), f), lambda v: [("a", v)]),
    ],
    ids=["record", "list", "map"],
)
def test_typed_json_of_another_program_is_read_at_any_depth(wrap: Any, inside: Any) -> None:
    json = pa.field("x", pa.string(), metadata=JSON_MARK)
    texts = ['{"a":1}', "no json", None, '"a"\n', '{"lake:map":[1]}']
    column = pa.chunked_array([pa.array(texts, pa.string())])
    nested = pa.chunked_array([pa.array([inside(text) for text in texts], wrap(json))])
    assert list(unstorable(column, json)) == [1, 3, 4]
    assert list(unstorable(nested, pa.field("y", wrap(json)))) == [1, 3, 4]
    assert not unstorable(nested), "what a reader of the lake wrote"


def test_a_map_with_a_key_twice_is_found() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    maps = pa.array([[("a", 1)], [("a", 1), ("b", 2)], None, [("a", 1), ("a", 2)], []], kind)
    assert unstorable(pa.chunked_array([maps, maps.slice(2)])) == dict.fromkeys(
        (3, 6), "a map has the same key twice"
    )


NAN = float("nan")


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.float64(), pa.float32(), pa.float16()),
        *(pa.struct([("x", pa.float64())]), pa.struct([("x", pa.float16())]), pa.list_(pa.float64())),
    ],
    ids=str,
)
def test_the_two_zeros_are_one_key_of_a_map_and_so_are_all_nan(kind: pa.DataType) -> None:
    def key(value: float) -> Any:
        return {"x": value} if pa.types.is_struct(kind) else [value] if pa.types.is_list(kind) else value

    rows = [[0.0, -0.0], [-0.0, 1.0], [NAN, -NAN], [NAN, 0.0]]
    maps = pa.array([[(key(v), 1) for v in row] for row in rows], pa.map_(kind, pa.int64()))
    assert list(unstorable(pa.chunked_array([maps]))) == [0, 2]
