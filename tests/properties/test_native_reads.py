"""What a native plan says Spark's reader and the data source read is together the answer, each record once.

No Spark takes part: predicates are asked row by row (`tests/support/spark/native_model.py`).
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from lake_core.keys.ranges import EVERYTHING
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from spark_apps.native.plan import LIMITS, NativeLimits, alive, decide, unclear
from spark_apps.native.read import key_ranges
from tests.support.spark.native_model import canonical, rows
from tests.support.spark.native_pools import CONDITIONS, a_range, build, clipped

SEEDS = st.integers(0, 2**32)


def check(seed: int, limits: NativeLimits = LIMITS, **options: Any) -> None:
    random = Random(seed)
    pool = build(Lake.create_on(MemoryStore()), random)
    newest = pool.at().version
    revision = random.choice([*pool.at().state.branches, "main", str(random.randrange(1, newest + 1))])
    view = pool.at(revision)
    asked = a_range(view, random) if random.random() < 0.4 else EVERYTHING
    where = random.choice(CONDITIONS) if random.random() < 0.4 else None
    names = [name for name in view.schema.names if name != "_deleted"]
    columns = random.sample(names, random.randrange(1, len(names) + 1)) if random.random() < 0.5 else None
    try:
        plan = view.plan(key_range=asked, columns=columns, where=where)
    except InvalidInput:
        return
    if random.random() < 0.5:
        clips = [clipped(r, view, random) if random.random() < 0.5 else r for r in plan.references]
        plan = replace(plan, references=tuple(sorted(clips, key=lambda r: r.order)))
    whole = key_ranges(unclear(plan), view.store, pool_id=view.config.id)
    native = decide(alive(plan), asked=asked, whole=whole, limits=limits, **options)
    assert canonical(rows(native, plan, view)) == canonical(list(view.run(plan))), native


@settings(max_examples=200)
@given(SEEDS)
def test_both_ways_together_give_every_record_once(seed: int) -> None:
    check(seed)


@settings(max_examples=50)
@given(SEEDS, st.integers(0, 2), st.integers(1, 2), st.integers(0, 6))
def test_so_they_do_with_few_reads_ranges_and_comparisons(
    seed: int, reads: int, ranges: int, comparisons: int
) -> None:
    check(seed, NativeLimits(reads=reads, ranges=ranges, comparisons=comparisons))


@settings(max_examples=30)
@given(SEEDS)
def test_so_they_do_if_sparks_reader_reads_nothing(seed: int) -> None:
    check(seed, blocked="no connector")
