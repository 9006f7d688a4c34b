"""Integers that a JSON file writes as strings, as protobuf does: read exactly, or named."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.command import Command
from tests.support.files import parquet

FITS = {"bigint": ["9223372036854775807", "-9223372036854775808", "0", "7"], "uint64": ["18446744073709551615"],
        "tinyint": ["-128", "127"]}  # fmt: skip
FAILS = {"bigint": ["9223372036854775808", "1.0", "1e3", "", " 1", "1_000", "x", "0x10"], "tinyint": ["128"],
         "uint64": ["-1"]}  # fmt: skip


@pytest.mark.parametrize("kind", list(FITS))
def test_the_digits_of_an_integer_are_that_integer(lake: Command, kind: str) -> None:
    lake.pool("p", types={"n": kind})
    records = [{"k": k, "n": text} for k, text in enumerate(FITS[kind])]
    lake.load_records("p", records)
    assert [str(one["n"]) for one in lake.scan("p")] == FITS[kind]
    lake.pool("q", types={"n": kind})
    lake.load_records("q", parquet(pa.Table.from_pylist(records)), "a.parquet")
    assert [str(one["n"]) for one in lake.scan("q")] == FITS[kind]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in FAILS.items() for text in texts])
def test_other_text_makes_a_bad_record(lake: Command, kind: str, text: str) -> None:
    lake.pool("p", types={"n": kind})
    message = lake.refuses_records("p", [{"k": 1, "n": "1"}, {"k": 2, "n": text}])
    assert f"line 2: field 'n': '{text}' is not a {kind}" in message


def test_a_key_may_be_written_so(lake: Command) -> None:
    lake.pool("p", types={"k": "bigint"})
    lake.load_records("p", [{"k": "9007199254740993"}, {"k": "9007199254740992"}, {"k": 3}])
    assert [one["k"] for one in lake.scan("p")] == [3, 9007199254740992, 9007199254740993]
    assert lake("get", "p", "9007199254740993").records == [{"k": 9007199254740993}]


def test_a_number_without_a_fraction_is_an_integer(lake: Command) -> None:
    lake.pool("p", types={"n": "bigint"})
    texts = ["1.0", "1e3", "-2.50e1", "9007199254740993.0", "-0.0", "9.223372036854775807E18"]
    lake.load_records("p", "".join(f'{{"k":{k},"n":{text}}}\n' for k, text in enumerate(texts)).encode())
    assert [one["n"] for one in lake.scan("p")] == [1, 1000, -25, 9007199254740993, 0, 2**63 - 1]
    for text in ("1.5", "1e-3", "9223372036854775808.0", "-1e19"):
        assert "line 1: field 'n': " in lake.refuses_records("p", f'{{"k":7,"n":{text}}}\n'.encode())
