"""A published table holds what the lake gives, whatever was done to the pool, and after more was done.

pyiceberg reads the tables.  A field that is refused is left out, and objects that overlap are compacted, as the
messages say.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyiceberg")

from lake_core.errors import InvalidInput, LakeError
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.publish.run import PUBLISHED, publish_iceberg
from log_lake.publish.schema import parts_of
from log_lake.rewriting.compaction import compact
from log_lake.stores.local import LocalStore
from tests.support.iceberg import read_table, shown, values
from tests.support.spark.native_pools import CONDITIONS, a_range, build, clip, filtered

SEEDS = st.integers(0, 2**32)


def check(pool: Pool, branch: str) -> None:
    """Publish, doing what refusals say, and compare."""
    without: list[str] = []
    while refusal := _refusal(pool, branch, without):  # bounded: each takes a field away, or all overlaps
        if "no field to publish" in refusal:
            return
        field = re.search(r"field '([^']+)' ", refusal)
        if field is not None:
            without.append(field[1])
        else:
            assert "overlap" in refusal
            if compact(pool.branch(branch), pool.at(branch).references).version is None:
                return  # a compaction never mixes what is unmerged with the rest
    done = publish_iceberg(pool, branch=branch, without=without)
    view = pool.at(branch)
    table = read_table(done.location)
    assert values(table.to_pylist()) == shown(view, without=[*without, *_null_fields(view.schema)])


def _refusal(pool: Pool, branch: str, without: list[str]) -> str:
    """Why the branch is not published; "" if it is."""
    try:
        done = publish_iceberg(pool, branch=branch, without=without)
    except InvalidInput as refusal:
        return str(refusal)
    if done.outcome == PUBLISHED:
        assert done.records == read_table(done.location).num_rows
    return ""


def _null_fields(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if pa.types.is_null(field.type)]


def _has_nulls(kind: pa.DataType) -> bool:
    return pa.types.is_null(kind) or any(_has_nulls(part.type) for part in parts_of(kind))


def _more(pool: Pool, branch: str, random: Random) -> None:
    """Something more is done to the branch."""
    with contextlib.suppress(LakeError):  # what does not fit this pool
        match random.choice(["range", "where", "compact", "clip", "load", "revert"]):
            case "range":
                pool.branch(branch).delete(key_range=a_range(pool.at(branch), random))
            case "where":
                pool.branch(branch).delete(where=random.choice(CONDITIONS))
            case "compact":
                if references := pool.at(branch).references:
                    some = random.sample(references, random.randrange(1, len(references) + 1))
                    compact(pool.branch(branch), some)
            case "clip":
                clip(pool, random, branch=branch)
            case "load":
                pool.branch(branch).append(pool.at(branch).to_table().slice(0, 3))
            case "revert":
                pool.branch(branch).revert(str(pool.at(branch).held.tip))


@settings(max_examples=40)
@given(SEEDS)
def test_a_published_table_holds_what_the_lake_gives(seed: int) -> None:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.create_on(LocalStore(Path(folder) / "lake"))
        pool = build(lake, random)
        if random.random() < 0.5:
            clip(pool, random)
        state = pool.history.load_open().state
        branch = random.choice(list(state.branches))
        schemas = [state.schema(id) for id in state.schemas]
        assume(
            not any(_has_nulls(field.type) for schema in schemas for field in schema)
        )  # pyiceberg stops there
        check(pool, branch)
        for _ in range(2):
            _more(pool, branch, random)
            if random.random() < 0.4:
                pool = filtered(lake, pool, random)
            check(pool, branch)
