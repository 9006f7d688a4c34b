"""Values: what the lake shows of one, typed back, finds it and nothing else; whatever becomes of its field.

Every type that objects store, every value that a load accepts, every way to ask.  The expected answer is made of
encoded values (`encode_value`), which are canonical.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.keys import PoolKey
from lake_core.keys.encoding import class_of, encode_value, from_array, key_class
from lake_core.records.conditions import OPS, Compare, Condition, In
from lake_core.values.types import json_field
from log_lake.columns.json_text import json_lines, typed
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from log_lake.texts.fit import array_of
from log_lake.texts.keytext import show_key
from log_lake.texts.typed_json import text_of, to_shown, value_of
from log_lake.texts.value import read, show
from log_lake.where import check, evaluate, parse
from log_lake.where.literals import show_literal
from tests.support.pools import a_pool, compact_all
from tests.support.values import NUMBERS, STRINGS, TYPES, columns

IDS = [str(kind) for kind, _ in TYPES]


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=IDS)
def test_the_text_of_a_value_reads_back_as_the_value(kind: pa.DataType, values: Any) -> None:
    @given(values)
    def holds(value: Any) -> None:
        assert encode_value(read(show(value), class_of(value))) == encode_value(value)

    holds()


@given(columns())
def test_typed_json_reads_back_as_the_value(column: pa.Array) -> None:
    texts = typed(pa.chunked_array([column]), pa.field("f", column.type)).to_pylist()
    for text, value in zip(texts, from_array(column), strict=True):
        assert encode_value(value_of(text)) == encode_value(value)
        assert text_of(value_of(text)) == text or isinstance(value, float | int | decimal.Decimal)


JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False, allow_infinity=False) | STRINGS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "lake:date", "lake:record", "lake:map", ""]), inner, max_size=2
        )
    ),
    max_leaves=6,
)


@given(JSON)
def test_plain_values_of_any_names_are_told_from_those_that_say_a_class(value: Any) -> None:
    text = text_of(value)
    assert value_of(text) == value
    assert json.loads(to_shown(text)) == value


# ---------------------------------------------------------------- keys


def one_pool(*arrays: pa.Array, key: str = "k", kind: str = "append") -> Pool:
    starts = [0, *itertools.accumulate(map(len, arrays))]
    tables = (
        pa.table({"k": a, "n": range(start, start + len(a))})
        for start, a in zip(starts, arrays, strict=False)
    )
    return a_pool(*tables, key=key, kind=kind)


def as_typed(shown: Any) -> str:
    """What a person copies from the lake's JSON to the command line."""
    return shown if isinstance(shown, str) else json.dumps(shown)


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=IDS)
def test_a_key_as_it_is_shown_finds_its_records_and_no_other(kind: pa.DataType, values: Any) -> None:
    @settings(max_examples=25)
    @given(st.lists(values, min_size=1, max_size=5), st.booleans())
    def holds(keys: list[Any], descending: bool) -> None:
        array = array_of(keys, kind)
        pool = one_pool(array, key="k:desc" if descending else "k")
        wanted = [encode_value(v) for v in from_array(array)]
        for number, line in enumerate(json_lines(pa.table({"k": array})).to_pylist()):
            token = line.removeprefix('{"k":').removesuffix("}")
            text = json.loads(token) if token.startswith('"') else token
            same = {n for n, data in enumerate(wanted) if data == wanted[number]}
            view = pool.at()
            low = view.bound_of_text(text)
            assert set(view.to_table(key_range=_of(low))["n"].to_pylist()) == same
            bound = show_key(low, view.key)
            assert view.bound_of_text(as_typed(bound)) == low

    holds()


def _of(prefix: bytes) -> Any:
    from lake_core.keys import KeyRange
    from lake_core.keys.encoding import AFTER

    return KeyRange(prefix, prefix + AFTER)


@given(STRINGS, st.one_of(*[values for _, values in TYPES]))
def test_a_key_of_two_fields_as_it_is_shown_is_the_same_key(first: str, second: Any) -> None:
    from lake_core.keys.encoding import encode_key
    from log_lake.texts.keytext import encoded, parts_of

    key = PoolKey.parse("a,b:desc")
    data = encode_key([first, second], key)
    text = json.dumps(show_key(data, key))
    assert encoded(parts_of(text, key), key, {"a": "string", "b": class_of(second)}) == data


# ---------------------------------------------------------------- conditions, whatever becomes of the field


@st.composite
def comparisons(draw: st.DrawFn, values: list[Any]) -> Condition:
    held = st.sampled_from(values) | st.one_of(*[s for _, s in TYPES])
    if draw(st.booleans()):
        chosen = draw(st.lists(held, min_size=1, max_size=3))
        return In(("f",), tuple(sorted({encode_value(v) for v in chosen})))
    value = draw(held)
    ops = ["=", "!="] if isinstance(value, bool) else list(OPS)
    return Compare(("f",), draw(st.sampled_from(ops)), encode_value(value))


@settings(max_examples=600)
@given(st.data())
def test_a_condition_says_the_same_of_a_value_in_its_own_column_and_in_json(data: st.DataObject) -> None:
    column = data.draw(columns())
    condition = data.draw(comparisons(from_array(column)))
    own = pa.table({"f": column})
    mixed = pa.table(
        [typed(pa.chunked_array([column]), pa.field("f", column.type))], schema=pa.schema([json_field("f")])
    )
    assert evaluate(condition, own).to_pylist() == evaluate(condition, mixed).to_pylist()


def same(a: Any, b: Any) -> bool:
    """Whether a literal of the one finds the other: of one class, or a number and a decimal, and equal."""
    numeric = {class_of(a), class_of(b)} == {"number", "decimal"}
    if numeric:
        number, exact = (a, b) if class_of(a) == "number" else (b, a)
        return (
            math.isfinite(number)
            and decimal.Decimal(repr(number) if isinstance(number, float) else number) == exact
        )
    return encode_value(a) == encode_value(b)


@settings(max_examples=120)
@given(columns(), columns(), st.sampled_from(["append", "upsert"]), st.integers(0, 7))
def test_a_value_of_a_mixed_field_is_found_deleted_and_kept_by_its_literal(
    first: pa.Array, second: pa.Array, kind: str, which: int
) -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k", kind=kind)
    values: list[Any] = []
    for array in (first, second):
        keys = range(len(values), len(values) + len(array))
        pool.branch().append(pa.table({"k": keys, "f": array}))
        values += from_array(array)
    chosen = values[which % len(values)]
    literal = show_literal(encode_value(chosen))
    found = {n for n, v in enumerate(values) if same(v, chosen)}
    try:
        check(f"f = {literal}", pool.at().schema)
    except Exception:  # not of the field's class: the literal was made for the mixed field
        return
    left = set(range(len(values)))
    assert set(pool.at().to_table(where=f"f = {literal}")["k"].to_pylist()) >= found
    assert pool.at().to_table(where="f is null").num_rows == 0
    deleted = set(pool.at().to_table(where=f"f = {literal}")["k"].to_pylist())
    pool.branch().delete(where=f"f = {literal}")
    compact_all(pool)
    assert set(pool.at().to_table()["k"].to_pylist()) == left - deleted
    pool.branch().append(pa.table({"k": [1000], "f": [["a list, with which nothing unites"]]}))
    compact_all(pool)
    assert set(pool.at().to_table()["k"].to_pylist()) == (left - deleted) | {1000}
    texts = dict(
        zip(pool.at().to_table()["k"].to_pylist(), pool.at().to_table()["f"].to_pylist(), strict=True)
    )
    for n in left - deleted:
        back = value_of(texts[n])
        assert same(back, values[n]) or encode_value(back) == encode_value(values[n])


@given(columns())
def test_a_literal_reads_back_as_the_value_that_it_shows(column: pa.Array) -> None:
    for value in from_array(column):
        condition = parse(f"f = {show_literal(encode_value(value))}")
        assert isinstance(condition, Compare)
        assert condition.value == encode_value(value)


def test_no_class_is_left_out() -> None:
    stored = {key_class(kind) for kind, _ in TYPES}
    assert stored == {
        *("boolean", "number", "decimal", "string", "bytes", "date", "timestamp", "timestamp with zone"),
        *("time", "duration"),
    }
    assert isinstance(dt.date.min, dt.date)
