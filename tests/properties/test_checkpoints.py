"""The fold of a checkpoint and what follows is the fold of everything, whatever happened, wherever it was cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.checkpoints import CheckpointFile, CheckpointLimits
from lake_core.errors import Corrupt
from lake_core.history import HISTORY_LIMITS, History, HistoryLimits, PoolState, Snapshot
from lake_core.history.snapshot.fixed import CheckpointReferences
from lake_core.journal import JournalLimits, LoadedState, purge, write_state
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import encode_value
from lake_core.naming import SUB_POOLS
from lake_core.records import (
    Action,
    AddField,
    AddInlined,
    Column,
    Consume,
    Entry,
    Join,
    RemoveReference,
    RenameField,
    SetSchema,
    Source,
    Split,
)
from log_lake.stores.memory import MemoryStore
from tests.support.histories import history
from tests.support.records import KNOWN, add, an_id, transaction
from tests.support.stores import InPlaceStore

KEYS = st.integers(0, 6)
SPANS = st.sampled_from([(low, high) for low in range(7) for high in range(low + 1, 7)])
SUBS = st.sampled_from(["", "", *SUB_POOLS])
OTHER = SetSchema("other", pa.schema([("other", pa.string())]).serialize().to_pybytes())


@st.composite
def additions(draw: st.DrawFn) -> Action:
    number, (low, high) = draw(st.integers(1, 6)), draw(SPANS)
    one = add(
        number,
        low,
        high,
        sub_pool=draw(SUBS),
        ordinal=draw(st.integers(0, 2)),
        records=number,
        size=low + 1,
        schema=draw(st.sampled_from([KNOWN.schema, OTHER.schema])),
        columns=draw(st.sampled_from([(), (Column("k", 1, b"\x01", None),)])),
    )
    if not draw(st.booleans()):
        return one
    return AddInlined(**msgspec.structs.asdict(one) | {"data": bytes(one.size)})


REMOVALS = st.builds(
    lambda number, low: RemoveReference(an_id(number), encode_value(low)), st.integers(1, 6), KEYS
)
SOURCES = st.builds(
    lambda file, form: Consume((Source(f"s{file}", 1, form),)), st.integers(1, 4), st.sampled_from("ab")
)
ACTIONS = st.one_of(additions(), additions(), additions(), REMOVALS, SOURCES)
TOKENS = st.one_of(st.just(""), st.integers(1, 8).map(lambda n: f"t{n}"))
POINTS = st.sets(st.integers(1, 5).map(encode_value), min_size=1, max_size=3).map(lambda p: tuple(sorted(p)))
NAMES = st.sampled_from(["a", "b", "c"])
RENAMES = st.one_of(
    st.builds(RenameField, NAMES, st.one_of(st.just("d"), st.none())),
    st.builds(AddField, NAMES, st.sampled_from(["bigint", "string"])),
)
POINTING = st.lists(st.one_of(st.builds(Split, POINTS), st.builds(Join, POINTS)), min_size=1, max_size=2)
STEPS = st.one_of(
    *[st.tuples(st.lists(ACTIONS, min_size=1, max_size=3), TOKENS, st.integers(0, 9))] * 3,
    st.tuples(POINTING, st.just(""), st.integers(0, 9)),
    st.tuples(st.lists(RENAMES, min_size=1, max_size=2), st.just(""), st.integers(0, 9)),
)
HISTORIES = st.lists(STEPS, max_size=20)
CUTS = st.sets(st.integers(0, 12), max_size=4)


def grown(
    store: MemoryStore, steps: Iterable[Any], cuts: set[int], *, limits: HistoryLimits = HISTORY_LIMITS
) -> tuple[list[int], int]:
    """Writes a history of what fits, two transactions an entry where they do, and a checkpoint at each of `cuts`,
    by a writer that starts anew after each: so checkpoints rest on checkpoints.  The checkpoints' entries, and the
    newest entry."""
    writer, made = history(store, limits=limits), []
    numbers = iter(range(1000, 9999))

    def append(*changes: Any) -> int | None:
        def propose(head: LoadedState[PoolState]) -> Entry:
            parent = head.state.branches["main"].tip
            transactions = []
            for actions, token, time in changes:
                of_none = isinstance(actions[0], Split | Join | RenameField | AddField)
                at: dict[str, Any] = {"branch": "", "parent": 0} if of_none else {"parent": parent}
                one = transaction(*actions, id=an_id(next(numbers)), token=token, time=time * 1_000_000, **at)
                transactions.append(one)
                parent = parent if of_none else head.version + 1
            return Entry(transactions[0].id, tuple(transactions))

        try:
            appended = writer.journal.append(propose, id=f"never {next(numbers)}")
        except Corrupt:
            return None
        assert appended is not None
        return appended.version

    n = append(([KNOWN, OTHER], "", 0)) or 0
    steps = list(steps)
    while steps:
        pair, steps = steps[:2], steps[2:]
        n = append(*pair) or append(pair[0]) or n
        if n in cuts and n not in made:
            write_state(writer.journal, writer.load(), id=an_id(n), now=0.0)
            writer = history(store, limits=limits)
            made.append(n)
    return made, n


def said(state: PoolState, spans: Iterable[tuple[int, int]]) -> Any:
    """All that can be asked of a state."""
    found: Snapshot = state.branches["main"].snapshot
    subs = ("", *SUB_POOLS)
    ranges = [KeyRange(), *(KeyRange(encode_value(a), encode_value(b)) for a, b in spans)]
    return {
        "tip": state.branches["main"].tip,
        "references": {(sub, span): found.overlapping(span, sub_pool=sub) for sub in subs for span in ranges},
        "totals": {sub: found.totals(sub) for sub in subs},
        "len": (len(found), found.records, found.size),
        "used": {sub: found.schemas(sub) for sub in subs},
        "subs": found.sub_pools(),
        "shapes": dict(found.shapes),
        "schemas": dict(state.schemas),
        "own": set(state.pool_schemas),
        "tokens": dict(state.tokens.items()),
        "token": [state.tokens.get(f"t{n}") for n in range(9)],
        "sources": dict(state.sources.items()),
        "points": state.points,
        "stored": dict(state.stored.items()),
        "added": dict(state.added.items()),
        "inlines": state.inlines,
        "inlined": {name: branch.snapshot.inlined for name, branch in state.branches.items()},
        "source": [state.sources.get(("main", f"s{n}")) for n in range(5)],
    }


def small(rows: int, min_changes: int) -> HistoryLimits:
    """Small row groups, none kept in memory, and changes that are soon merged into the columns."""
    checkpoints = CheckpointLimits(group_rows=rows, kept_groups=0)
    return HistoryLimits(min_changes=min_changes, journal=JournalLimits(checkpoints=checkpoints))


def alike(one: Any, other: Any) -> None:
    for what in one:
        assert one[what] == other[what], what


@pytest.mark.parametrize(("rows", "min_changes"), [(1, 0), (3, 2)])
@settings(max_examples=100)
@given(HISTORIES, CUTS, st.lists(SPANS, max_size=3))
def test_a_checkpoint_and_what_follows_fold_into_the_same_as_everything(
    rows: int, min_changes: int, steps: list[Any], cuts: set[int], spans: list[tuple[int, int]]
) -> None:
    limits = small(rows, min_changes)
    store = InPlaceStore()
    made, n = grown(store, steps, cuts, limits=limits)
    bare = MemoryStore()
    for name in [o.name for o in store.list("") if o.name.endswith(".txn")]:
        bare.create(name, store.get(name) or b"")
    whole, rested = history(bare, limits=limits).load(), history(store, limits=limits).load()
    assert whole.version == rested.version == n
    assert isinstance(rested.state.branches["main"].snapshot.checkpoint, CheckpointReferences) == bool(made)
    alike(said(whole.state, spans), said(rested.state, spans))
    assert sorted(whole.recent.items()) == sorted(rested.recent.items())
    for at in made:
        alike(
            said(history(bare, limits=limits).load_version(at).state, spans),
            said(history(store, limits=limits).load_version(at).state, spans),
        )


@settings(max_examples=60)
@given(HISTORIES, CUTS)
def test_a_checkpoint_of_a_checkpointed_state_has_the_rows_of_one_of_the_folded_state(
    steps: list[Any], cuts: set[int]
) -> None:
    limits = small(2, 2)
    store = InPlaceStore()
    grown(store, steps, cuts, limits=limits)
    bare = MemoryStore()
    for name in [o.name for o in store.list("") if o.name.endswith(".txn")]:
        bare.create(name, store.get(name) or b"")
    assert checkpointed(store, limits=limits) == checkpointed(bare, limits=limits)


def checkpointed(store: MemoryStore, *, limits: HistoryLimits) -> list[tuple[Any, list[Any]]]:
    """The rows of a checkpoint of the newest state, by part."""
    ours = history(store, limits=limits)
    file = CheckpointFile(store, write_state(ours.journal, ours.load(), id=an_id(1), now=0.0).name)
    parts = sorted({(g.section, g.branch, g.sub_pool) for g in file.footer.groups})
    return [
        (part, [row for t in file.scan(part[0], branch=part[1], sub_pool=part[2]) for row in t.to_pylist()])
        for part in parts
    ]


@settings(max_examples=60)
@given(HISTORIES, CUTS)
def test_a_purged_history_goes_on_as_the_whole_one(steps: list[Any], cuts: set[int]) -> None:
    limits = small(2, 2)
    store = InPlaceStore()
    made, n = grown(store, steps, cuts, limits=limits)
    before = said(history(store, limits=limits).load().state, [(1, 3)])
    fence = purge(history(store, limits=limits).journal, until=n).fence
    assert fence == max(made, default=0)
    alike(before, said(history(store, limits=limits).load().state, [(1, 3)]))


@settings(max_examples=60)
@given(HISTORIES, st.integers(0, 10))
def test_a_checkpoint_forgets_the_tokens_that_are_too_old_and_nothing_else(
    steps: list[Any], now: int
) -> None:
    store = MemoryStore()
    grown(store, steps, set())
    ours = History(store, pool_id="P", key=PoolKey.parse("k"), clock=lambda: 0.0, token_keep=3.0)
    head = ours.load()
    mark = write_state(ours.journal, head, id=an_id(1), now=float(now), forget=head.version)
    folded, kept = said(head.state, []), said(ours.journal.restore(mark).state, [])
    latest, used = (
        0,
        {},
    )  # a token is no older than what came before it, by the clock of who writes the checkpoint
    for _, one in reversed(list(ours.read_transactions())):
        latest = max(latest, one.time)
        used[one.token] = max(one.time, min(latest, now * 1_000_000))
    dated = {t: msgspec.structs.replace(r, time=used[t]) for t, r in folded["tokens"].items()}
    assert kept["tokens"] == {t: r for t, r in dated.items() if r.time >= (now - 3) * 1_000_000}
    alike({k: v for k, v in folded.items() if not k.startswith("token")}, kept)
