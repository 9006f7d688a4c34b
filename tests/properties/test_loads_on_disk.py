"""A load that is sorted on disk has the answers of one that is sorted in memory, in objects that share no key.

Keys are of every type, ascending and descending, null among the further ones; blocks have fields of different
types, or lack them.  With one byte of memory every block is a run of its own, and four runs are merged into one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.keys import PoolKey
from log_lake.columns.keys import keys_at
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from log_lake.objects.normalize import normalized
from log_lake.stores.memory import MemoryStore
from tests.properties.test_merge_ways import KEYS, VALUES, scalar

AGGREGATES = {"total": "sum", "most": "max", "first": "first", "last": "last", "count": "count"}
NUMBERS = ["int8", "int16", "uint8", "double"]


@dataclass(frozen=True)
class Case:
    """A pool, the blocks of a load, and which of its keys are split points."""

    key: str
    kind: str
    format: str
    blocks: list[pa.Table]
    points: list[int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(["append", "upsert", "aggregate"]))
    of_key = draw(st.sampled_from([*([name] for name in KEYS), NUMBERS]))
    of_value = [name for name in VALUES if kind != "aggregate"] or ["int64"]
    directions = [draw(st.sampled_from(["", ":desc"])) for _ in range(2)]
    choice, blocks, number = st.integers(1, 4), [], 0
    for _ in range(draw(st.integers(1, 9))):
        rows = draw(st.integers(1, 5))
        name, value = draw(st.sampled_from(of_key)), draw(st.sampled_from(of_value))
        columns = {
            "k": pa.array([scalar(name, draw(choice)) for _ in range(rows)], VALUES[name][0]),
            "n": pa.array(range(number, number + rows), pa.int64()),
            **{field: pa.array(range(number, number + rows), pa.int64()) for field in AGGREGATES},
        }
        if draw(st.booleans()):
            columns["second"] = pa.array(
                [draw(st.sampled_from([None, "", "a", "b\0"])) for _ in range(rows)], pa.string()
            )
        if kind != "aggregate" and draw(st.booleans()):
            columns["x"] = pa.array([scalar(value, draw(choice)) for _ in range(rows)], VALUES[value][0])
        number += rows
        blocks.append(pa.table(columns))
    key = f"k{directions[0]},second{directions[1]}" if draw(st.booleans()) else f"k{directions[0]}"
    format = draw(st.sampled_from(["parquet", "zng", "zst"]))
    return Case(key, kind, format, blocks, draw(st.lists(st.integers(0, number - 1), max_size=3)))


def loaded(case: Case, *, points: tuple[bytes, ...] = (), **sets: str) -> Pool:
    pool = Lake.create_on(MemoryStore()).create_pool(
        "p",
        key=case.key,
        kind=case.kind,
        aggregates=AGGREGATES if case.kind == "aggregate" else None,
        settings={"format": case.format, **{name.replace("_", "."): text for name, text in sets.items()}},
    )
    branch = pool.branch()
    pending = branch.begin_load()
    assert isinstance(pending, PendingLoad)
    with branch.builder(replace(pending, points=points)) as building:
        for table in case.blocks:
            building.add(Block(table))
        written = building.finish()
    branch.commit(pending, objects=[w.action for w in written], schemas=[w.schema for w in written])
    return pool


def shown(pool: Pool) -> list[str]:
    return [repr(list(row.items())) for row in pool.at().to_table().to_pylist()]


def points_of(case: Case) -> tuple[bytes, ...]:
    key, keys = PoolKey.parse(case.key), list[bytes]()
    for block in case.blocks:
        table = normalized(block)
        if "second" not in table.schema.names:
            table = table.append_column("second", pa.nulls(table.num_rows))
        keys += keys_at(table, list(range(table.num_rows)), key)
    return tuple(sorted({keys[at] for at in case.points}))


@settings(max_examples=150, deadline=None)
@given(cases())
def test_a_load_on_disk_has_the_answers_of_one_in_memory(case: Case) -> None:
    points = points_of(case)
    expected, found = loaded(case), loaded(case, points=points, load_memory="1")
    assert shown(found) == shown(expected)
    held = sorted(found.at().references, key=lambda r: r.low)
    for one, other in pairwise(held):
        assert one.high <= other.low
    for reference in held:
        assert not [point for point in points if reference.low < point < reference.high[:-1]]
    assert found.at().schema.equals(expected.at().schema, check_metadata=True)


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_parts_have_the_same_answers_and_overlap(kind: str) -> None:
    blocks = [pa.table({"k": [3, 1, 2], "n": [3 * i, 3 * i + 1, 3 * i + 2]}) for i in range(5)]
    case = Case("k", kind, "parquet", blocks, [])
    parts = loaded(case, load_memory="1", load_sort="parts")
    run: Any = loaded(case, load_memory="1")
    assert shown(parts) == shown(run) == shown(loaded(case))
    assert len(parts.at().references) == 5
    assert len(run.at().references) == 1
