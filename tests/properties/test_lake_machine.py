"""The lake against a plain dictionary: loads and compactions in any order, read at any revision.

Three pools of one lake, one of each kind, take the same loads.  Compactions rewrite random subsets of references,
at once or begun on one state and committed on a later one; lakes are opened anew, with and without checkpoints.
After every step each pool reads as the model says, whole, in a range, in some columns, now and at older revisions.

`LAKE_MACHINE_SECONDS` makes it run that long, over and over with new seeds.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lake_core.commits import Reference
from lake_core.compaction import Compaction, rewrite
from lake_core.errors import Conflict
from lake_core.journal import write_state
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import encode_key
from lake_core.lake import Lake
from lake_core.objects import write
from lake_core.pool import Pool
from lake_core.scan import scan as scanning
from lake_core.store import Store
from lake_core.store.local import LocalStore
from lake_core.store.memory import MemoryStore

Record = dict[str, Any]

FUNCTIONS = {"v": "sum", "low": "min", "high": "max", "n": "count", "one": "first", "end": "last"}
KINDS = ("append", "upsert", "aggregate")
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("s", pa.string()),
        ("v", pa.int64()),
        ("low", pa.int32()),
        ("high", pa.float64()),
        ("n", pa.int64()),
        ("one", pa.string()),
        ("end", pa.string()),
    ]
)
WORDS = st.sampled_from([None, "", "a", "b\0", "\u00e9"])
SMALL = st.one_of(st.none(), st.integers(-3, 3))
RECORDS = st.fixed_dictionaries(
    {
        "k": st.integers(0, 3),
        "s": WORDS,
        "v": SMALL,
        "low": SMALL,
        "high": st.one_of(st.none(), st.sampled_from([-1.5, 0.0, 2.0])),
        "n": st.just(1),
        "one": WORDS,
        "end": WORDS,
    }
)
LOADS = st.lists(RECORDS, min_size=1, max_size=6)


@dataclass
class Model:
    """What one pool should hold: the records of every transaction, in the order of arrival."""

    kind: str
    key: PoolKey
    loads: dict[int, list[Record]] = field(default_factory=dict)

    def encoded(self, record: Record) -> bytes:
        return encode_key([record[name] for name in self.key.names], self.key)

    def at(self, n: int) -> list[Record]:
        """The records at revision `n`, in order."""
        arrived = [r for number, records in sorted(self.loads.items()) if number <= n for r in records]
        by_key: dict[bytes, list[Record]] = {}
        for record in arrived:
            by_key.setdefault(self.encoded(record), []).append(record)
        return [r for _, group in sorted(by_key.items()) for r in self._combined(group)]

    def _combined(self, group: list[Record]) -> list[Record]:
        if self.kind == "append":
            return group
        if self.kind == "upsert":
            return group[-1:]
        made = {name: group[0][name] for name in self.key.names}
        for name in SCHEMA.names:
            if name in self.key.names:
                continue
            known = [r[name] for r in group if r[name] is not None]
            made[name] = _fold(FUNCTIONS.get(name, "last"), known)
        return [made]


def _fold(function: str, known: list[Any]) -> Any:
    if not known:
        return None
    return {
        "sum": lambda: sum(known),
        "count": lambda: sum(known),
        "min": lambda: min(known),
        "max": lambda: max(known),
        "first": lambda: known[0],
        "last": lambda: known[-1],
    }[function]()


def contiguous(references: list[Reference], chosen: list[Reference]) -> list[Reference]:
    """The chosen ones and all between them in age: what an aggregate pool may compact together."""
    if not chosen:
        return []
    oldest, newest = min(r.first_seq for r in chosen), max(r.seq for r in chosen)
    while True:  # the range only grows, and at most to all references
        inside = [r for r in references if r.seq >= oldest and r.first_seq <= newest]
        wider = min(r.first_seq for r in inside), max(r.seq for r in inside)
        if wider == (oldest, newest):
            return inside
        oldest, newest = wider


class LakeMachine(RuleBasedStateMachine):
    """One run: a lake in a folder, and the models of its pools."""

    @initialize(
        key=st.sampled_from(["k", "k:desc", "k,s", "k:desc,s:desc"]),
        native=st.booleans(),
        group=st.integers(1, 5),
        memory=st.sampled_from(["1", "700", "1MiB"]),
        loads=st.lists(LOADS, min_size=2, max_size=5),
    )
    def begin(self, key: str, native: bool, group: int, memory: str, loads: list[list[Record]]) -> None:
        self.folder = tempfile.mkdtemp()
        self.patches = [
            patch.object(scanning, "FEWEST_NATIVE", 0 if native else 1 << 60),
            patch.object(write, "ROW_GROUP", group),
        ]
        for one in self.patches:
            one.start()
        self.store: Store = LocalStore(self.folder) if native else MemoryStore()
        self.lake = Lake.create_on(self.store)
        for kind in KINDS:
            self.lake.create_pool(
                kind,
                key=key,
                kind=kind,
                settings={"load.memory": memory},
                aggregates=FUNCTIONS if kind == "aggregate" else None,
            )
        self.models = {kind: Model(kind, PoolKey.parse(key)) for kind in KINDS}
        self.tips = dict.fromkeys(KINDS, 0)
        self.begun: list[tuple[str, Compaction]] = []
        for records in loads:
            self.load(records)

    def teardown(self) -> None:
        for one in getattr(self, "patches", []):
            one.stop()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def pool(self, kind: str) -> Pool:
        return self.lake.pool(kind)

    @rule(records=LOADS)
    def load(self, records: list[Record]) -> None:
        for kind in KINDS:
            done = self.pool(kind).branch().append(pa.Table.from_pylist(records, schema=SCHEMA))
            assert done.transaction == self.tips[kind] + 1
            self.tips[kind] = done.transaction
            self.models[kind].loads[done.transaction] = records

    def choose(self, kind: str, data: st.DataObject) -> list[Reference]:
        held = self.pool(kind).at().references
        places = st.sets(st.integers(0, len(held) - 1), min_size=min(2, len(held)))
        chosen = [held[place] for place in sorted(data.draw(places))]
        return contiguous(held, chosen) if kind == "aggregate" else chosen

    @rule(kind=st.sampled_from(KINDS), outputs=st.integers(1, 3), data=st.data())
    def compact(self, kind: str, outputs: int, data: st.DataObject) -> None:
        done = self.pool(kind).branch().compact(self.choose(kind, data), outputs=outputs)
        self.tips[kind] = done.transaction

    @precondition(lambda self: len(self.begun) < 3)
    @rule(kind=st.sampled_from(KINDS), outputs=st.integers(1, 3), data=st.data())
    def begin_compaction(self, kind: str, outputs: int, data: st.DataObject) -> None:
        chosen = self.choose(kind, data)
        work = self.pool(kind).branch().begin_compaction(chosen, outputs=outputs, message="slow")
        self.begun.append((kind, work))

    @precondition(lambda self: self.begun)
    @rule(data=st.data())
    def finish_compaction(self, data: st.DataObject) -> None:
        kind, work = self.begun.pop(data.draw(st.integers(0, len(self.begun) - 1)))
        branch = self.pool(kind).branch()
        held = {(r.object, r.low) for r in self.pool(kind).at().references}
        made = [rewrite(work, p, self.lake.store, new_id=self.lake.ids.new) for p in range(len(work.pieces))]
        written = [w for w in made if w is not None]
        if all((r.object, r.low) in held for r in work.inputs):
            self.tips[kind] = branch.commit_compaction(work, written).transaction
        else:
            with pytest.raises(Conflict, match="another compaction"):
                branch.commit_compaction(work, written)

    @rule(kind=st.sampled_from(KINDS))
    def checkpoint(self, kind: str) -> None:
        journal = self.pool(kind).history.journal
        write_state(journal, journal.load(), id=self.lake.ids.new(), now=time.time())

    @rule()
    def open_anew(self) -> None:
        self.lake = Lake.open_on(self.store)

    @rule(
        kind=st.sampled_from(KINDS),
        data=st.data(),
        low=st.integers(-1, 4),
        high=st.integers(-1, 4),
        columns=st.lists(st.sampled_from(SCHEMA.names), min_size=1, unique=True),
    )
    def read_some(self, kind: str, data: st.DataObject, low: int, high: int, columns: list[str]) -> None:
        n = data.draw(st.integers(1, self.tips[kind]))
        model = self.models[kind]
        view = self.pool(kind).at(str(n))
        bounds = sorted(view.bound(value) for value in (low, high))
        span = KeyRange(bounds[0], bounds[1])
        if span.empty:
            return
        expected = [
            {name: r[name] for name in columns} for r in model.at(n) if span.contains(model.encoded(r))
        ]
        assert view.to_table(span=span, columns=columns).to_pylist() == expected

    @invariant()
    def every_pool_reads_as_the_model_says(self) -> None:
        for kind in getattr(self, "models", {}):
            view = self.pool(kind).at()
            assert view.n == self.tips[kind]
            assert view.to_table(columns=SCHEMA.names).to_pylist() == self.models[kind].at(view.n)


TestLake = LakeMachine.TestCase
TestLake.settings = settings(
    max_examples=80, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)


def hours(seconds: float, run: Callable[[], None]) -> None:
    """Runs over and over for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run()


@pytest.mark.skipif("LAKE_MACHINE_SECONDS" not in os.environ, reason="LAKE_MACHINE_SECONDS says how long")
def test_the_machine_for_as_long_as_it_is_asked() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    long = settings(
        max_examples=200,
        stateful_step_count=50,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    hours(
        float(os.environ["LAKE_MACHINE_SECONDS"]),
        lambda: run_state_machine_as_test(LakeMachine, settings=long),
    )
