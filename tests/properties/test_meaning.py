"""What a condition's text means of records does not depend on what was loaded later, compacted or stored.

Every type that objects store, at the top and inside of records, and every form that a condition has.  A field of
one type is asked first; then a second load makes it JSON.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import math
from typing import Any

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import NAIVE, TIME, ZONED, Instant, encode_value, from_array
from lake_core.values.numbers import shown_decimal
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.texts.classes import readings
from log_lake.texts.value import show as shown
from log_lake.where import check, evaluate, show
from log_lake.where.literals import show_literal
from tests.support.pools import a_pool, compact_all
from tests.support.values import TYPES, columns

ANY_VALUE = st.one_of(*[values for _, values in TYPES])
NUMERIC = [
    (kind, values) for kind, values in TYPES if pa.types.is_integer(kind) or pa.types.is_floating(kind)
]
LATER = [["a list, with which nothing unites"], "2026-01-31", "1.10", "AP8=", "12:00", 1, 0.5, True]


@st.composite
def literals(draw: st.DrawFn, values: list[Any]) -> str:
    """A value as somebody may write it: itself, one near to it, as a text, as another class says it."""
    value = draw(st.sampled_from(values) | st.sampled_from(values) | ANY_VALUE | st.none())
    match draw(st.sampled_from(["itself", "text", "other"])), value:
        case "text", str() | bytes() | dt.date() | Instant() | decimal.Decimal():
            return "'" + shown(value).replace("'", "''") + "'"
        case "other", bool():
            pass
        case "other", int() | float() | decimal.Decimal() if math.isfinite(value):
            exact = value if isinstance(value, decimal.Decimal) else shown_decimal(value)
            if abs(exact) < 10**30 and exact.as_tuple().exponent >= -30:
                step = draw(st.sampled_from(["0", "1e-38", "-1e-38", "0.5", "-0.5"]))
                with decimal.localcontext(prec=150):
                    return show_literal(encode_value(exact + decimal.Decimal(step)))
        case "other", Instant((tag, seconds, nanos)) if tag in (NAIVE, ZONED):
            if draw(st.booleans()):
                return show_literal(encode_value(Instant((NAIVE + ZONED - tag, seconds, nanos))))
            return f"date '{shown(value)[:10]}'"
        case "other", dt.date():
            return f"'{value.isoformat()}T00:00:00Z'"
        case "other", Instant((tag, _, _)) if tag == TIME:
            return f"'{shown(value)[:5]}'"
    return show_literal(encode_value(value))


@st.composite
def texts(draw: st.DrawFn, field: str, values: list[Any], depth: int = 2) -> str:
    form = draw(
        st.sampled_from(["=", "=", "order", "in", "between", "null", *["not", "and", "or"] * bool(depth)])
    )
    if form == "not":
        return f"not ({draw(texts(field, values, depth - 1))})"
    if form in ("and", "or"):
        return " ".join(
            ["(" + draw(texts(field, values, depth - 1)) + ")", form, draw(texts(field, values, 0))]
        )
    if form == "null":
        return f"{field} is {draw(st.sampled_from(['', 'not ']))}null"
    literal = literals(values)
    negated = draw(st.sampled_from(["", "not "]))
    if form == "in":
        return f"{field} {negated}in ({', '.join(draw(st.lists(literal, min_size=1, max_size=3)))})"
    if form == "between":
        return f"{field} {negated}between {draw(literal)} and {draw(literal)}"
    ops = ["=", "!=", "<>"] if form == "=" else ["<", "<=", ">", ">="]
    return f"{field} {draw(st.sampled_from(ops))} {draw(literal)}"


def pool_of(kind: str, column: pa.Array) -> Pool:
    return a_pool(pa.table({"k": range(len(column)), "x": column}), kind=kind)


def keys(pool: Pool, where: str | None = None) -> set[int]:
    return {k for k in pool.at().to_table(where=where, columns=["k"])["k"].to_pylist() if k < 100}


@settings(max_examples=200)
@given(st.data(), st.sampled_from(["append", "upsert"]), st.booleans())
def test_a_condition_finds_and_deletes_the_same_old_records_whatever_is_loaded_later(
    data: st.DataObject, kind: str, inside: bool
) -> None:
    column = data.draw(columns())
    values = from_array(column)
    column = pa.concat_arrays([column, pa.nulls(1, column.type)])
    field = "x.a" if inside else "x"
    if inside:
        column = pa.StructArray.from_arrays([column, pa.array([1] * len(column))], names=["a", "b"])
    pool = pool_of(kind, column)
    text = data.draw(texts(field, values))
    try:
        before = keys(pool, text)
    except InvalidInput:
        assume(False)
    everything = keys(pool)

    later = pa.table({"k": [100], "x": pa.array([data.draw(st.sampled_from(LATER))])})
    mark = pa.table({"k": [101], "x": pa.array([LATER[0]])})
    deleted_before = pool_of(kind, column)
    deleted_before.branch().delete(where=text)
    for each in (pool, deleted_before):
        each.branch().append(later)
        each.branch().append(mark)
    assert keys(pool, text) == before
    assert keys(deleted_before) == everything - before
    for each in (pool, deleted_before):
        compact(each.branch(), each.at().references)
    assert keys(pool, text) == before
    assert keys(deleted_before) == everything - before
    pool.branch().delete(where=text)
    assert keys(pool) == everything - before
    compact_all(pool)
    assert keys(pool) == everything - before

    checked = check(text, pool.at().schema)
    assert check(checked, pool.at().schema) == check(show(checked), pool.at().schema) == checked


@settings(max_examples=200)
@given(st.data(), st.sampled_from(["asc", "desc"]))
def test_a_condition_on_a_key_of_numbers_finds_what_it_finds_of_any_field(
    data: st.DataObject, direction: str
) -> None:
    column = data.draw(columns(NUMERIC))
    pool = Lake.create_on(MemoryStore()).create_pool("p", key=f"k:{direction}")
    for array in (column, pa.concat_arrays([column[:1], pa.nulls(1, column.type)])):
        pool.branch().append(pa.table({"k": array, "x": array}))
    text = data.draw(texts("k", from_array(column)))
    of_field = text.replace("k ", "x ")
    try:
        said = evaluate(check(of_field, pool.at().schema), pool.at().to_table()).to_pylist()
    except InvalidInput:
        assume(False)
    held = sum(found is True for found in said)
    assert pool.at().to_table(where=of_field).num_rows == held
    assert pool.at().to_table(where=text).num_rows == held
    pool.branch().delete(where=text)
    assert pool.at().to_table().num_rows == len(said) - held


def relatives(value: Any) -> list[pa.Array]:
    """The value as other classes would hold it, an array for each: the records in which classes are told apart."""
    arrays = [pa.array([shown(value)])]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (
        is_number and math.isfinite(value) and abs(value) < 10**76
    ):  # a decimal has at most 76 digits before the point
        value = shown_decimal(value)
    if isinstance(value, decimal.Decimal):
        arrays.append(pa.array([float(value)]))
    for reading in (value, *readings(shown(value)), *readings(value)):
        with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            if isinstance(reading, Instant):
                tag, seconds, nanos = reading
                kind = {NAIVE: pa.timestamp("ns"), ZONED: pa.timestamp("ns", "UTC"), TIME: pa.time64("ns")}
                ticks = pa.array([seconds * 10**9 + nanos], pa.int64())
                arrays.append(ticks.cast(kind.get(tag, pa.duration("ns"))))
            else:
                arrays.append(pa.array([reading]))
    return arrays


@settings(max_examples=200)
@given(st.data(), st.sampled_from(["append", "upsert"]), st.booleans(), st.sampled_from(["merge", "revert"]))
def test_a_delete_means_the_same_of_each_record_whatever_type_its_field_had(
    data: st.DataObject, kind: str, inside: bool, way: str
) -> None:
    """The deleting revision has the first column only; the other one comes by a merge, or by a revert's revert."""
    first = data.draw(columns())
    values = from_array(first)
    if data.draw(st.booleans()):
        value = data.draw(st.sampled_from(values))
        second = data.draw(st.sampled_from(relatives(value)))
        values = [value, *from_array(second)]
    else:
        second = data.draw(columns())
        values += from_array(second)
    first, second = data.draw(st.sampled_from([(first, second), (second, first), (pa.nulls(1), second)]))
    text = data.draw(texts("x.a" if inside else "x", values))
    tables = []
    for column, begin in ((first, 0), (second, len(first))):
        x = pa.StructArray.from_arrays([column], names=["a"]) if inside else column
        tables.append(pa.table({"k": range(begin, begin + len(column)), "x": x}))
    both = a_pool(*tables, pa.table({"k": [101], "x": pa.array([LATER[0]])}), kind=kind)
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k", kind=kind)
    try:
        if way == "merge":
            pool.branch().append(tables[0])
            pool.create_branch("b")
            deleted = pool.branch("b").delete(where=text)
            pool.branch().append(tables[1])
            if deleted.version is not None:
                pool.branch().merge("b")
        else:
            second_load = pool.branch().append(tables[1]).version
            pool.branch().append(tables[0])
            reverted = pool.branch().revert(str(second_load)).version
            deleted = pool.branch().delete(where=text)
            pool.branch().revert(str(reverted))
    except InvalidInput:
        assume(False)
    found = keys(both, text) if deleted.version is not None else set()
    assert keys(pool) == keys(both) - found
    compact_all(pool)
    assert keys(pool) == keys(both) - found
