"""The bytes of an index object (docs/format.md): an index that an older program wrote must be read, or refused."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
from typing import Any

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

VALUES_DIGEST = "a65b3e6fd7314cca"
GROUPS = (
    "4c4b495801000200a65b3e6fd7314ccaeacad0bf64bafcd3807399ee4f8b583f0200000000000000"
    "1a000000000000000000000000000000e5da86c2c5e6fdf50200000000000000509b05d33bc12d40"
    "4b38aaaa782668e801032b46eeb201d2e5fa"
)
"""The row groups of two flights: a header, the number of groups, two numbers, and two bitmaps."""

SKETCH_DIGEST = "b186122674d9efce"
SKETCH = (
    "4c4b495801000300b186122674d9efceeacad0bf64bafcd3807399ee4f8b583f0400000000000000"
    "5e000000000000000000000000000000e0ab20779ec749f3990401c410d991fcfa0c08497305f642"
    "536b490adcc400c40b03c0080000000000000000c40b03c014000000000000000093c40b03c00800"
    "00000000000000c40b03c0080000000000000000c40b03c014000000000000000093010101002080"
    "306f37b5ada1"
)
"""The sketch of two numbers that are there three times."""

LARGE_SKETCH = (7809, "81b41db44b71dd99eec93283b395db048f6ef172b3a65d41afb14664e0606508")
"""The size and the SHA-256 of the sketch of 20,000 numbers."""

NUMBERS: list[tuple[Value, int]] = [
    (True, 0x3600F925F4E479BD),
    (1, 0x20699D2A9355A558),
    (1.5, 0x0A2662A7876F1958),
    (decimal.Decimal("0.1"), 0xD8A947806BE14CFC),
    ("UA1545", 0xE8682678AAAA384B),
    (b"\0", 0x562DBB71CF56FAD9),
    (dt.date(2026, 1, 31), 0x277363526EF7BCB1),
]


def written(values: list[Any], kind: str = "bloom") -> tuple[str, bytes]:
    """The name and the bytes of the index object of these values, in row groups of two records."""
    store = MemoryStore("memory://golden")
    writer = IndexWriter([parse_rule("index.by_flight", f"{kind}(flight)")])
    groups = [2] * (len(values) // 2)
    writer.add(pa.table({"flight": values}), groups)
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


def test_the_row_groups_of_values() -> None:
    name, data = written(["UA1545", "UA1714", None, "UA1545"], "values")
    assert name.endswith(VALUES_DIGEST)
    assert data.hex() == GROUPS


def test_a_sketch() -> None:
    name, data = written([3, 5, None, 3], "sketch")
    assert name.endswith(SKETCH_DIGEST)
    assert data.hex() == SKETCH
    _, large = written(list(range(20_000)), "sketch")
    assert (len(large), hashlib.sha256(large).hexdigest()) == LARGE_SKETCH


@pytest.mark.parametrize(("value", "number"), NUMBERS)
def test_the_number_of_a_value(value: Value, number: int) -> None:
    assert number_of(encode_value(value)) == number
