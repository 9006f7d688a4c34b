"""Lines of one shape: read as the reader that takes any JSON reads them, or left to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log_lake.loading.formats.json_flat import FlatLines

VALUES: dict[str, list[Any]] = {
    "integers": [0, -1, 2**63 - 1, -(2**63)],
    "doubles": [0.5, -0.0, 5, 1e-300, 0.1 + 0.2, 5e-324],
    "booleans": [True, False],
    "texts": ["", "x", "é {}[]:", "null", "2020-01-01", "1", "true"],
}


def lines_of(records: list[dict[str, Any]], *, separators: tuple[str, str] = (",", ":")) -> bytes:
    """As a machine writes them."""
    texts = [json.dumps(r, ensure_ascii=False, separators=separators) for r in records]
    return "".join(text + "\n" for text in texts).encode()


def read(lines: bytes) -> list[dict[str, Any]] | None:
    table = FlatLines().read(lines)
    return None if table is None else table.to_pylist()


def same(a: Any, b: Any) -> bool:
    """Equal, and equally written: -0.0 is not 0.0, True is not 1; an integer may be a double."""
    return repr(a) == repr(b) or (type(a) is float and type(b) is int and repr(a) == repr(float(b)))


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("field", ["first", "last"])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("kind", VALUES)
def test_values_of_flat_lines_come_back_as_they_were_written(
    kind: str, nulls: bool, field: str, separators: tuple[str, str]
) -> None:
    values = [*VALUES[kind], *([None] if nulls else [])]
    records = [{"k": i, "v": v} if field == "last" else {"v": v, "k": i} for i, v in enumerate(values)]
    found = read(lines_of(records, separators=separators))
    assert found is not None
    assert all(same(a["v"], b["v"]) and a["k"] == b["k"] for a, b in zip(found, records, strict=True)), found


def test_a_field_without_values_has_no_type() -> None:
    table = FlatLines().read(b'{"k":1,"v":null}\n{"k":2,"v":null}')
    assert table is not None
    assert [str(f.type) for f in table.schema] == ["int64", "null"]


WELL = b'{"k":1,"v":"a","n":1.5}\n'
OTHERS = {
    "a comma in a text": b'{"k":2,"v":"a,b","n":1.5}\n',
    "an escape": b'{"k":2,"v":"\\u0061","n":1.5}\n',
    "a quote within a text": b'{"k":2,"v":"a"b","n":1.5}\n',
    "one quote, made up for by another record": b'{"k":2,"v":","n":1.5}\n{"k":3,"v":"a"b"","n":1.5}\n',
    "a text of one quote": b'{"k":2,"v":","n":1.5}\n',
    "names in another order": b'{"v":"a","k":2,"n":1.5}\n',
    "the same name twice": b'{"k":2,"k":2,"n":1.5}\n',
    "the same name twice, null": b'{"k":2,"n":null,"n":null}\n',
    "fewer fields": b'{"k":2,"v":"a"}\n',
    "more fields": b'{"k":2,"v":"a","n":1.5,"m":1}\n',
    "an integer with a zero before it": b'{"k":02,"v":"a","n":1.5}\n',
    "an integer with a plus": b'{"k":+2,"v":"a","n":1.5}\n',
    "a hexadecimal integer": b'{"k":0x174876E800,"v":"a","n":1.5}\n',
    "minus zero": b'{"k":-0,"v":"a","n":1.5}\n',
    "nothing": b'{"k":,"v":"a","n":1.5}\n',
    "no value at the end": b'{"k":2,"v":"a","n":}\n',
    "a double without digits behind its point": b'{"k":2,"v":"a","n":1.}\n',
    "a double without digits before its point": b'{"k":2,"v":"a","n":.5}\n',
    "a double with a zero before it": b'{"k":2,"v":"a","n":01.5}\n',
    "not a number": b'{"k":2,"v":"a","n":NaN}\n',
    "infinity": b'{"k":2,"v":"a","n":-inf}\n',
    "more digits than a double has": b'{"k":2,"v":"a","n":1.00000000000000000001}\n',
    "a double that would be zero": b'{"k":2,"v":"a","n":1e-400}\n',
    "a double that would be infinite": b'{"k":2,"v":"a","n":1e400}\n',
    "a word": b'{"k":2,"v":"a","n":nil}\n',
    "another kind": b'{"k":2,"v":7,"n":1.5}\n',
    "a list": b'{"k":2,"v":["a"],"n":1.5}\n',
    "a record": b'{"k":2,"v":{"a":1},"n":1.5}\n',
    "spaces before a number": b'{"k": 2,"v":"a","n":1.5}\n',
    "spaces behind a text": b'{"k":2,"v":"a" ,"n":1.5}\n',
    "two records on a line": b'{"k":2,"v":"a","n":1.5} {"k":3,"v":"a","n":1.5}\n',
    "no end": b'{"k":2,"v":"a","n":1.5\n',
    "an end too many": b'{"k":2,"v":"a","n":1.5}}\n',
    "no record": b"null\n",
    "an empty line": b"\n",
    "a control character": b'{"k":2,"v":"\x01","n":1.5}\n',
    "the line ends of Windows": b'{"k":2,"v":"a","n":1.5}\r\n',
    "not UTF-8": b'{"k":2,"v":"\xff","n":1.5}\n',
    "a byte order mark": b'\xef\xbb\xbf{"k":2,"v":"a","n":1.5}\n',
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_is_not_surely_of_the_shape_is_left_to_the_other_reader(other: bytes) -> None:
    assert read(WELL * 3) is not None
    assert read(WELL + other) is None
    assert read(other + WELL) is None
    assert read(WELL + other + WELL) is None


def test_numbers_that_programs_print_with_17_digits_are_read_and_many_of_them_left_to_the_other_reader() -> (
    None
):
    assert read(b'{"n":0.10000000000000001}\n' + b'{"n":1E5}\n' + b'{"n":0.5}\n') == [
        {"n": 0.1},
        {"n": 1e5},
        {"n": 0.5},
    ]
    assert read(b'{"n":1.5E5}\n' * 100) is None


def test_after_a_block_of_another_shape_none_is_tried() -> None:
    reader = FlatLines()
    assert reader.read(WELL) is not None
    assert reader.read(OTHERS["a list"]) is None
    assert reader.read(WELL) is None


NAMES = st.sampled_from(["k", "v", "a b", "é", ":", "{", "-"])
SCALARS = st.one_of(
    st.integers(-(2**64), 2**64), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none(),
    st.text(max_size=5), st.sampled_from(["0", "null", "}", '"']),
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Records of one shape, of which a few bytes may be others."""
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    kinds = [
        draw(st.sampled_from([st.integers(-9, 9), st.floats(-9, 9), SCALARS, st.text("ab", max_size=2)]))
        for _ in names
    ]
    records = draw(
        st.lists(st.fixed_dictionaries(dict(zip(names, kinds, strict=True))), min_size=1, max_size=4)
    )
    lines = bytearray(lines_of(records, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")]))))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(lines)))
        lines[at : at + draw(st.integers(0, 2))] = draw(
            st.sampled_from(
                [b"", b'"', b",", b":", b"}", b"{", b"0", b"-", b".", b"e", b" ", b"\n", b"null", b"[", b"\\"]
            )
        )
    return bytes(lines)


@given(lines=damaged())
def test_whatever_is_read_is_json_and_has_these_values(lines: bytes) -> None:
    found = read(lines)
    if found is None:
        return
    records = [json.loads(line, object_pairs_hook=distinct) for line in lines.decode().split("\n") if line]
    assert len(records) == len(found)
    for record, one in zip(records, found, strict=True):
        assert list(record) == list(one)
        assert all(same(one[name], value) for name, value in record.items()), (one, record)


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)
