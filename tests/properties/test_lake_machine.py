"""The lake against a plain model (`tests/support/lake_model.py`), read at any revision: loads, deletes, replaces,
compactions in any order.

Three pools of one lake, one of each kind, take the same loads.  Records are deleted and replaced by range and
condition; loads and replaces land long after they began, so that others overtake them.  Compactions rewrite random
subsets of references, at once or begun on one state and committed on a later one; pools are split and joined;
deletes are applied and forgotten; lakes are opened anew, with and without checkpoints.
The field `any` holds values of another type in each load, so it becomes JSON sooner or later.
After every step each pool reads as the model says, whole, in a range, in some columns, now and at older revisions.

`LAKE_MACHINE_SECONDS` makes it run that long, over and over with new seeds.
"""

from __future__ import annotations

import ast
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lake_core.errors import Conflict, InvalidInput
from lake_core.history import Reference
from lake_core.ids import IdSource
from lake_core.journal import write_state
from lake_core.keys import KeyRange
from lake_core.naming import FORMATS
from lake_core.records.transactions import version_of
from lake_core.store import Store
from log_lake.agents.tombstones import run as tombstones
from log_lake.compaction.ranges import places
from log_lake.lake import Lake
from log_lake.lake.delete_spec import DeleteSpec
from log_lake.lake.pool import Pool
from log_lake.lake.replaces import PendingReplace
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from log_lake.objects.containers.limits import ObjectLimits
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.repair.finding import DAMAGE
from log_lake.repair.fsck import Fsck
from log_lake.rewriting.compaction import begin_compaction
from log_lake.rewriting.rewriting import Rewriting
from log_lake.rewriting.work import write_piece
from log_lake.stores.local import LocalStore
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Worker
from tests.support import lake_model
from tests.support.lake_model import (
    CONDITIONS,
    FIRST_MOMENT,
    FUNCTIONS,
    KEY_CONDITIONS,
    LATER_MOMENT,
    Erased,
    Model,
    Moment,
    Order,
    Record,
    Span,
    canonical,
    value_of_json,
)
from tests.support.rewrites import committed, lost

NOW = 1_800_000_000.0
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
        ("any", pa.null()),
    ]
)
"""The type of `any` is that of a load's values."""

ANY: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [1, 2, 2**53 + 1, None]),
    (pa.float64(), [1.0, math.nan, math.inf, 0.1]),
    (pa.string(), ["a", "1", "NaN", "2026-01-01"]),
    (
        pa.timestamp("ns", "UTC"),
        [FIRST_MOMENT, LATER_MOMENT, None, None],
    ),
    (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("0.10"), Decimal("-5"), None]),
    (pa.list_(pa.string()), [["a"], [], ["1", "2"], None]),
]
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
        "any": st.integers(0, 3),
    }
)


def with_any(records: list[Record], kind: int) -> list[Record]:
    """The records with values of one type in `any`."""
    return [record | {"any": ANY[kind][1][record["any"]]} for record in records]


LOADS = st.builds(with_any, st.lists(RECORDS, min_size=1, max_size=6), st.integers(0, len(ANY) - 1))


def table_of(records: list[Record]) -> pa.Table:
    """The records in Arrow, `any` in the type that holds its values."""
    values = [record["any"] for record in records]
    known = [v for v in values if v is not None]
    kind = next(
        (kind for kind, held in ANY if known and type(known[0]) in {type(v) for v in held}), pa.null()
    )
    if pa.types.is_timestamp(kind):
        nanos = [None if v is None else v.seconds * 10**9 + v.nanos for v in values]
        column = pa.array(nanos, pa.int64()).cast(kind)
    else:
        column = pa.array(values, kind)
    others = pa.Table.from_pylist(records, schema=SCHEMA.remove(SCHEMA.get_field_index("any")))
    return others.append_column("any", column)


def rows_of(table: pa.Table) -> list[Record]:
    """The records, the values of `any` canonical."""
    if "any" not in table.schema.names:
        return list(table.to_pylist())
    place = table.schema.get_field_index("any")
    values = [canonical(value) for value in values_of(table.column(place), table.schema.field(place))]
    rows = table.remove_column(place).to_pylist()
    return [
        {name: value if name == "any" else row[name] for name in table.schema.names}
        for row, value in zip(rows, values, strict=True)
    ]


def values_of(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """The values of `any`, which is typed JSON where its types do not unite."""
    if field.metadata and field.metadata.get(b"lake.type") == b"json":
        return [value_of_json(text) for text in column.to_pylist()]
    if pa.types.is_timestamp(field.type):
        nanos = column.cast(pa.timestamp("ns", "UTC")).cast(pa.int64()).to_pylist()
        return [None if n is None else Moment(*divmod(n, 10**9)) for n in nanos]
    return list(column.to_pylist())


def as_rows(records: list[Record]) -> list[Record]:
    """Records of the model as `rows_of` gives them."""
    return [r | {"any": canonical(r["any"])} if "any" in r else r for r in records]


BOUNDS = st.tuples(st.integers(-1, 3), st.none() | st.integers(0, 4))
Bounds = tuple[int, int | None]

ANY_CONDITIONS, OF_KEY = tuple(CONDITIONS), tuple(KEY_CONDITIONS)


@dataclass(frozen=True)
class Begun:
    """A load under way; with an erasure a replace, and the condition of it."""

    kind: str
    job: PendingLoad
    records: list[Record]
    erasure: DeleteSpec | None = None
    span: Span | None = None
    where: str | None = None


def contiguous(references: list[Reference], chosen: list[Reference]) -> list[Reference]:
    """The chosen ones and all between them in age: what an aggregate pool may surely compact together."""
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
        few=st.sampled_from([0, 2, LIMITS.min_bulk_ratio]),
        group=st.integers(1, 5),
        memory=st.sampled_from(["1", "700", "1MiB"]),
        inline=st.sampled_from(["0", "1500", "64KiB"]),
        sort=st.sampled_from(["run", "parts"]),
        format=st.sampled_from(FORMATS),
        seed=st.integers(0, 99),
        loads=st.lists(LOADS, min_size=2, max_size=5),
    )
    def begin_lake(
        self,
        key: str,
        native: bool,
        few: int,
        group: int,
        memory: str,
        inline: str,
        sort: str,
        format: str,
        seed: int,
        loads: list[list[Record]],
    ) -> None:
        self.folder = tempfile.mkdtemp()
        self.store: Store = LocalStore(self.folder) if native else MemoryStore()
        # which of two began first may be decided by their ids: these must be the same when a run is repeated
        self.ids = IdSource(clock=lambda: NOW, entropy=Random(seed).randbytes)
        limits = ScanLimits(
            min_datafusion_rows=0 if native else 1 << 60,
            min_bulk_ratio=few,
            objects=ObjectLimits(row_group=group),
        )
        self.lake = Lake.create_on(self.store, ids=self.ids, limits=limits)
        for kind in KINDS:
            self.lake.create_pool(
                kind,
                key=key,
                kind=kind,
                settings={
                    "load.memory": memory,
                    "load.inline": inline,
                    "load.sort": sort,
                    "format": format,
                },
                aggregates=FUNCTIONS if kind == "aggregate" else None,
            )
        self.models = {kind: Model(kind, Order.parse(key), SCHEMA.names) for kind in KINDS}
        self.tips = dict.fromkeys(KINDS, 0)
        self.points: dict[str, set[int]] = {kind: set() for kind in KINDS}
        self.begun: list[tuple[str, Rewriting]] = []
        self.waiting: list[Begun] = []
        for records in loads:
            self.load(records)

    def teardown(self) -> None:
        if hasattr(self, "lake"):
            found = Fsck(self.lake.context, data=True).run()
            damage = [f for f in found if f.severity == DAMAGE]
            assert damage == [], damage
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def pool(self, kind: str) -> Pool:
        return self.lake.pool(kind)

    @rule(records=LOADS)
    def load(self, records: list[Record]) -> None:
        for kind in KINDS:
            done = self.pool(kind).branch().append(table_of(records))
            assert done.version == self.tips[kind] + 1
            self.tips[kind] = done.version
            self.models[kind].loads[done.version] = records

    @rule(records=LOADS)
    def import_in_bulk(self, records: list[Record]) -> None:
        """A load like others, but none of its objects has keys on both sides of a split point."""
        file = f"{self.folder}/import.parquet"
        pq.write_table(table_of(records), file)
        for kind in KINDS:
            pool = self.pool(kind)
            done = pool.branch().load([file], bulk=True)
            assert done.version == self.tips[kind] + 1
            self.tips[kind] = done.version
            self.models[kind].loads[done.version] = records
            view = pool.at()
            new = [r for r in view.references if version_of(r.seq) == done.version]
            assert all(len(places(r, view.points)) == 1 for r in new)

    def range_of(self, kind: str, *bounds: int | None, at: str = "main") -> tuple[KeyRange, Span] | None:
        """Keys whose first field is in [low, high), the other way round where it descends; None: empty.

        For the lake, and for the model.
        """
        view = self.pool(kind).at(at)
        ends = sorted(view.bound(end) for end in bounds if end is not None)
        key_range = KeyRange(ends[0], ends[1] if len(ends) > 1 else None)
        span = self.models[kind].order.span(*bounds)
        assert key_range.empty == (span is None)
        return None if span is None else (key_range, span)

    @rule(kind=st.sampled_from(KINDS), format=st.sampled_from(FORMATS))
    def change_format(self, kind: str, format: str) -> None:
        """From here on objects have another format; those that are there keep theirs."""
        self.lake.configure_pool(kind, {"format": format})

    @rule(bounds=BOUNDS, where=st.sampled_from(ANY_CONDITIONS), of_key=st.sampled_from(OF_KEY))
    def delete(self, bounds: Bounds, where: str | None, of_key: str | None) -> None:
        for kind in KINDS:
            self.delete_from(kind, bounds, of_key if kind == "aggregate" else where)

    def delete_from(self, kind: str, bounds: Bounds, where: str | None) -> None:
        model, ranges = self.models[kind], self.range_of(kind, *bounds)
        if ranges is None:
            return
        key_range, span = ranges
        before = model.at(self.tips[kind])
        try:
            done = self.pool(kind).branch().delete(key_range=key_range, where=where)
        except InvalidInput:  # no value of `any` is of the condition's class so far
            assert "any" in str(where)
            return
        covers = CONDITIONS[where]
        if done.version is None:
            assert not any(model.inside(r, span) and covers(r) for r in before)
            return
        self.tips[kind] = done.version
        model.erased.append(Erased(done.version, span, covers))

    def suits(self, kind: str, records: list[Record], span: Span, where: str | None) -> list[Record]:
        """What of the records a replace of the range may bring."""
        model = self.models[kind]
        return [r for r in records if model.inside(r, span) and CONDITIONS[where](r)]

    def begin(
        self, kind: str, records: list[Record], bounds: Bounds | None, data: st.DataObject
    ) -> Begun | None:
        """A load under way, or with bounds a replace; None where the range is empty."""
        branch, model = self.pool(kind).branch(), self.models[kind]
        if bounds is None:
            job = branch.begin_load()
            assert isinstance(job, PendingLoad)
            return Begun(kind, job, records)
        ranges = self.range_of(kind, *bounds)
        where = None if kind == "upsert" else data.draw(st.sampled_from(model.conditions()))
        if ranges is None:
            return None
        key_range, span = ranges
        try:
            begun = branch.begin_replace(key_range=key_range, where=where)
        except InvalidInput:
            assert "any" in str(where)
            return None
        assert isinstance(begun, PendingReplace)
        return Begun(kind, begun.load, self.suits(kind, records, span, where), begun.spec, span, where)

    def finish(self, one: Begun) -> None:
        kind, job, erasure = one.kind, one.job, one.erasure
        branch, model = self.pool(kind).branch(), self.models[kind]
        builder = branch.builder(job)
        if one.records:
            builder.add(Block(table_of(one.records)))
        written = builder.finish()
        started = (job.read_version, job.origin.transaction_id)

        def commit() -> int:
            done = branch.commit(
                job,
                objects=[w.action for w in written],
                schemas=[w.schema for w in written],
                replaced=erasure,
            )
            assert done.version is not None
            self.tips[kind] = done.version
            return done.version

        if job.read_version < self.forgotten(kind):
            with pytest.raises(Conflict, match="whose tombstone is retired"):
                commit()
            return
        if one.span is None:
            model.land(commit(), one.records, started)
            return
        others = [e for e in model.erased if e.replaces and e.version > job.read_version]
        if any(e.span.meets(one.span) for e in others):
            with pytest.raises(Conflict, match="overlapping range"):
                commit()
            return
        n = commit()
        model.loads[n] = one.records
        model.erased.append(Erased(n, one.span, CONDITIONS[one.where], True, started))

    @precondition(lambda self: len(self.waiting) < 3)
    @rule(kind=st.sampled_from(KINDS), records=LOADS, bounds=st.none() | BOUNDS, data=st.data())
    def begin_load_or_replace(
        self, kind: str, records: list[Record], bounds: Bounds | None, data: st.DataObject
    ) -> None:
        begun = self.begin(kind, records, bounds, data)
        self.waiting += [begun] if begun is not None else []

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def finish_load_or_replace(self, data: st.DataObject) -> None:
        self.finish(self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1))))

    @rule(
        both=st.tuples(st.tuples(LOADS, st.none() | BOUNDS), st.tuples(LOADS, st.none() | BOUNDS)),
        overtakes=st.booleans(),
        between=st.booleans(),
        data=st.data(),
    )
    def two_at_once(self, both: Any, overtakes: bool, between: bool, data: st.DataObject) -> None:
        """Two loads or replaces begin one after the other and end in either order."""
        for kind in KINDS:
            self.two_on(kind, both, overtakes, between, data)

    def two_on(self, kind: str, both: Any, overtakes: bool, between: bool, data: st.DataObject) -> None:
        begun = []
        for records, bounds in both:
            begun.append(self.begin(kind, records, bounds, data))
            if between and len(begun) == 1:
                done = self.pool(kind).branch().append(table_of(records[:1]))
                assert done.version is not None
                self.models[kind].loads[done.version] = records[:1]
                self.tips[kind] = done.version
        for one in reversed(begun) if overtakes else begun:
            if one is not None:
                self.finish(one)

    def forgotten(self, kind: str) -> int:
        return self.pool(kind).history.load().state.branches["main"].replaced

    @rule(later=st.booleans())
    def apply_tombstones(self, later: bool) -> None:
        for kind in KINDS:
            self.apply_to(kind, later)

    def apply_to(self, kind: str, later: bool) -> None:
        branch = self.pool(kind).branch()
        done = tombstones.apply(branch, now=NOW + (1e6 if later else 0), at_once=True)
        self.tips[kind] = branch.history.load().version
        held = self.pool(kind).at().tombstones
        assert len(held) == done.left
        assert done.covered == 0
        assert all(t.replaces and not later for t in held)

    def choose(self, kind: str, data: st.DataObject) -> list[Reference]:
        held = self.pool(kind).at().references
        places = st.sets(st.integers(0, max(0, len(held) - 1)), min_size=min(2, len(held)))
        if not held:
            return []
        return [held[place] for place in sorted(data.draw(places))]

    def begin_job(self, kind: str, chosen: list[Reference], *, outputs: int = 1) -> Rewriting:
        """A job for what was chosen; where an aggregate pool refuses, for all that lies between as well."""
        branch = self.pool(kind).branch()
        try:
            return begin_compaction(branch, chosen, outputs=outputs, message="a job")
        except Conflict:
            assert kind == "aggregate"
            wider = contiguous(self.pool(kind).at().references, chosen)
            return begin_compaction(branch, wider, outputs=outputs, message="a job")

    @rule(kind=st.sampled_from(KINDS), outputs=st.integers(1, 3), data=st.data())
    def compact(self, kind: str, outputs: int, data: st.DataObject) -> None:
        if chosen := self.choose(kind, data):
            self.end_compaction(kind, self.begin_job(kind, chosen, outputs=outputs))

    @precondition(lambda self: len(self.begun) < 3)
    @rule(kind=st.sampled_from(KINDS), outputs=st.integers(1, 3), data=st.data())
    def begin_compaction(self, kind: str, outputs: int, data: st.DataObject) -> None:
        if chosen := self.choose(kind, data):
            self.begun.append((kind, self.begin_job(kind, chosen, outputs=outputs)))

    @rule(
        bounds=BOUNDS,
        where=st.sampled_from(ANY_CONDITIONS),
        of_key=st.sampled_from(OF_KEY),
        data=st.data(),
    )
    def delete_while_compacting(
        self, bounds: Bounds, where: str | None, of_key: str | None, data: st.DataObject
    ) -> None:
        for kind in KINDS:
            chosen = self.choose(kind, data)
            if not chosen:
                continue
            work = self.begin_job(kind, chosen)
            self.delete_from(kind, bounds, of_key if kind == "aggregate" else where)
            self.end_compaction(kind, work)

    @precondition(lambda self: self.begun)
    @rule(data=st.data())
    def finish_compaction(self, data: st.DataObject) -> None:
        self.end_compaction(*self.begun.pop(data.draw(st.integers(0, len(self.begun) - 1))))

    def end_compaction(self, kind: str, work: Rewriting) -> None:
        branch = self.pool(kind).branch()
        held = {(r.object, r.low) for r in self.pool(kind).at().references}
        made = [
            write_piece(work, Worker(lambda: self.lake.store, self.lake.context.ids.new), p)
            for p in range(len(work.pieces))
        ]
        written = [w for w in made if w is not None]
        if all((r.object, r.low) in held for r in work.inputs):
            self.tips[kind] = committed(branch, work, written).version
        else:
            assert "another compaction" in str(lost(branch, work, written))

    @rule(kind=st.sampled_from(KINDS), keys=st.sets(st.integers(-1, 4), min_size=1), joins=st.booleans())
    def split(self, kind: str, keys: set[int], joins: bool) -> None:
        """Split points change no answer; those of the pool are those of the model."""
        pool, points = self.pool(kind), self.points[kind]
        done = pool.unsplit(at=sorted(keys)) if joins else pool.split(at=sorted(keys))
        after = points - keys if joins else points | keys
        assert (done.version is None, done.points) == (after == points, len(points ^ after))
        self.tips[kind] = done.version or self.tips[kind]
        self.points[kind] = after
        bounds = [one.low for one in pool.ranges()][1:]
        assert bounds == sorted(after, key=self.models[kind].order.place)

    @rule(kind=st.sampled_from(KINDS))
    def checkpoint(self, kind: str) -> None:
        journal = self.pool(kind).history.journal
        write_state(journal, journal.load(), id=self.lake.context.ids.new(), now=NOW)

    @rule()
    def open_anew(self) -> None:
        self.lake = Lake.open_on(self.store, ids=self.ids, limits=self.lake.limits)

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
        ranges = self.range_of(kind, low, high, at=str(n))
        if ranges is None:
            return
        key_range, span = ranges
        expected = [{name: r[name] for name in columns} for r in model.at(n) if model.inside(r, span)]
        assert rows_of(view.to_table(key_range=key_range, columns=columns)) == as_rows(expected)

    @invariant()
    def every_pool_reads_as_the_model_says(self) -> None:
        for kind in getattr(self, "models", {}):
            view = self.pool(kind).at()
            assert view.version == self.tips[kind]
            assert rows_of(view.to_table(columns=SCHEMA.names)) == as_rows(self.models[kind].at(view.version))


def test_the_model_shares_no_code_with_what_it_checks() -> None:
    tree = ast.parse(Path(lake_model.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {str(name).partition(".")[0] for name in imported} <= {*sys.stdlib_module_names, "__future__"}


def lives(count: int) -> settings:
    """So many lives of a lake, of fifteen steps each; one takes half a second."""
    return settings(
        max_examples=count, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
    )


class TestLake(LakeMachine.TestCase):
    settings = lives(20)


@pytest.mark.slow
class TestLakeAtLength(LakeMachine.TestCase):
    settings = lives(50)


def hours(seconds: float, run: Callable[[], None]) -> None:
    """Runs over and over for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run()


@pytest.mark.timeout(0)
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
