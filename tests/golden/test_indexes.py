"""The bytes of an index object (docs/format.md): an index that an older program wrote must be read, or refused."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib

import pyarrow as pa
import pytest

from lake_core.keys.encoding import Value, encode_value
from log_lake.indexes.hashes import number_of
from log_lake.indexes.rule import parse_rule
from log_lake.indexes.writing import IndexWriter
from log_lake.stores.memory import MemoryStore
from tests.golden.test_golden import an_id

RULE = parse_rule("index.by_flight", "bloom(flight)")

SMALL = (
    "4c4b4958010001003216881cba6fd05ceacad0bf64bafcd3807399ee4f8b583f"
    "020000000000000001000000000000000000000000000000b063f33cb7d1c3b0"
    "0060000004000080104000000000004001010000020002000010040002000200242c890e178c9b24"
)
"""The index of two flights: a header, and a page of one block."""

LARGE = "43917cc7b7c4c78aed42e3a99b639f5e4df482018186700128405fef80762f2b"
"""The SHA-256 of the index of 20,000 flights, with seven pages."""

NUMBERS: list[tuple[Value, int]] = [
    (True, 0x3600F925F4E479BD),
    (1, 0x20699D2A9355A558),
    (1.5, 0x0A2662A7876F1958),
    (decimal.Decimal("0.1"), 0xD8A947806BE14CFC),
    ("UA1545", 0xE8682678AAAA384B),
    (b"\0", 0x562DBB71CF56FAD9),
    (dt.date(2026, 1, 31), 0x277363526EF7BCB1),
]


def written(values: list[str | None]) -> tuple[str, bytes]:
    """The name and the bytes of the index object of these values."""
    store = MemoryStore("memory://golden")
    writer = IndexWriter([RULE])
    writer.add(pa.table({"flight": values}))
    writer.write(store, an_id(1), an_id(2))
    (info,) = store.list("")
    data = store.get(info.name)
    assert data is not None
    return info.name, data


def test_an_index() -> None:
    name, data = written(["UA1545", "UA1714", None, "UA1545"])
    assert name == f"{an_id(1)}/data/index/{an_id(2)}.3216881cba6fd05c"
    assert data.hex() == SMALL


def test_an_index_of_many_values() -> None:
    _, data = written([f"UA{number}" for number in range(20_000)])
    assert (len(data), hashlib.sha256(data).hexdigest()) == (27_000, LARGE)


@pytest.mark.parametrize(("value", "number"), NUMBERS)
def test_the_number_of_a_value(value: Value, number: int) -> None:
    assert number_of(encode_value(value)) == number
