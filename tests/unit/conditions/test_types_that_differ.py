"""A delete covers the same records after a merge, or after the revert of a revert, whatever type its field had.

tests/properties/test_meaning.py asks it of any types and conditions; here are cases with their answers.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from log_lake.lake.pool import Pool
from tests.support.pools import a_pool, keys

DAY = dt.date(2026, 1, 31)
FINE = Decimal("0.10000000000000000001")
CASES = [
    pytest.param(pa.array([Decimal("1.10")]), "x = '1.10'", pa.array([1.1]), False, id="no text is a double"),
    pytest.param(pa.array([DAY]), "x = '2026-01-31'", pa.array(["2026-01-31"]), True, id="a text and a date"),
    pytest.param(pa.array(["2026-01-31"]), "x = '2026-01-31'", pa.array([DAY]), True, id="a date and a text"),
    pytest.param(pa.nulls(1), "x = '2026-01-31' or k = 0", pa.array([DAY]), True, id="a null so far"),
    pytest.param(
        pa.array([0.05]),
        "x < 0.10000000000000000005",
        pa.array([FINE]),
        True,
        id="more digits than a double has",
    ),
    pytest.param(pa.array([5]), "x in (5, 6.0)", pa.array([Decimal("6.0")]), True, id="a list of numbers"),
    pytest.param(
        pa.array([dt.datetime(2026, 1, 31)]),
        "x between '2026-01-31' and '2026-02-01'",
        pa.array([dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)]),
        True,
        id="a zone",
    ),
]


def table(k: int, x: pa.Array) -> pa.Table:
    return pa.table({"k": [k], "x": x})


def remaining(covered: bool) -> list[int]:
    return [] if covered else [1]


@pytest.mark.parametrize(("here", "where", "there", "covered"), CASES)
def test_a_merge_brings_the_meaning_of_a_delete_to_a_parent_of_another_type(
    here: pa.Array, where: str, there: pa.Array, covered: bool
) -> None:
    pool = a_pool(table(0, here))
    pool.create_branch("b")
    pool.branch("b").delete(where=where)
    pool.branch().append(table(1, there))
    pool.branch().merge("b")
    assert keys(pool) == remaining(covered)


@pytest.mark.parametrize(("here", "where", "there", "covered"), CASES)
def test_records_that_a_revert_brings_back_are_covered_by_their_own_type(
    here: pa.Array, where: str, there: pa.Array, covered: bool
) -> None:
    pool = a_pool(table(1, there), table(0, here))
    branch = pool.branch()
    reverted = branch.revert(str(pool.at().version - 1)).version
    branch.delete(where=where)
    branch.revert(str(reverted))
    assert keys(pool) == remaining(covered)


def nested(k: int, name: str) -> pa.Table:
    return pa.table({"k": [k], name: [{"b": 1}] if name == "a" else [1]})


def test_a_delete_keeps_the_path_that_its_field_was_when_it_was_written() -> None:
    pool: Pool = a_pool(nested(0, "a"))
    pool.create_branch("b")
    pool.branch("b").delete(where="a.b = 1")
    pool.branch().append(nested(1, "a.b"))
    pool.branch().append(nested(2, "a"))
    assert keys(pool, "a.b = 1") == [1]  # a new condition means the name, now that there is one
    pool.branch().merge("b")
    assert keys(pool) == [1]
