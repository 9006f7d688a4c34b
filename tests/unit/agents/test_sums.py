"""Stored content sums: a rewriting compares them and reads no input again, and so does each reader of its entry."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.errors import Corrupt, NotConserved
from lake_core.history import fold, rebase
from lake_core.history.conserved import sums_of
from lake_core.records import AddObject, Conserve, RemoveReference
from lake_core.records.sums import age_sum, unpacked_sums
from lake_core.schemas.hidden import ORDER
from log_lake.agents.checkpoint.run import write_checkpoint
from log_lake.content.content import ObjectSums, content_of
from log_lake.erasure.run import erase
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.containers.parquet_sink import ParquetSink
from log_lake.repair.fsck import Fsck
from log_lake.rewriting import pieces, work
from log_lake.rewriting.compaction import compact
from log_lake.rewriting.ordering import InOrder
from log_lake.stores.memory import MemoryStore
from log_lake.texts.keytext import RangeText
from tests.unit.agents.test_conserving import FAULTS, column, filled, refused, with_fault

OF_ORDER = {
    "two versions in the wrong order",
    "the oldest version last",
    "keys out of order",
}
"""Faults that change no sum: only the writer sees them."""


def sums(pool: Pool) -> list[bytes]:
    return [reference.content for reference in pool.at().references]


def stated(pool: Pool) -> list[Conserve]:
    """What the newest transaction states."""
    return stated_in(pool, pool.at().version)


def stated_in(pool: Pool, version: int) -> list[Conserve]:
    stored = pool.history.journal.read(version)
    transactions = [] if stored is None else stored.transactions
    return [action for t in transactions for action in t.actions if isinstance(action, Conserve)]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_merge_is_refused_before_the_commit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = filled(verify="counts", sums="on")
    content = pool.at().content()
    with monkeypatch.context() as patch:
        with_fault(patch, FAULTS[name])
        patch.setattr(work, "check_counts", lambda *_: None)
        assert refused(pool).startswith("pool 'p', branch 'main': 3 inputs of a rewriting (")
    compact(pool.branch(), pool.at().references)
    assert (len(pool.at().references), pool.at().content()) == (1, content)
    assert stated(pool) == [Conserve()]


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in OF_ORDER])
def test_a_reader_refuses_the_entry_of_a_program_that_did_not_look(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = filled(verify="counts", sums="on")
    with monkeypatch.context() as patch:
        with_fault(patch, FAULTS[name])
        patch.setattr(work, "check_counts", lambda *_: None)
        patch.setattr(InOrder, "see", lambda *_: None)
        for room in (pieces, rebase, fold):
            patch.setattr(room, "imbalance", lambda *_: "")
        compact(pool.branch(), pool.at().references)
    with pytest.raises(Corrupt, match="the inputs of a rewriting hold 9 records, content sum"):
        Lake.open_on(pool.store).pool("p").at()


def test_twenty_faults_are_seen_by_a_reader() -> None:
    assert len(FAULTS.keys() - OF_ORDER) == 20


def test_the_commit_refuses_a_draft_that_does_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled(verify="counts", sums="on")
    with_fault(monkeypatch, FAULTS["swaps two values"])
    monkeypatch.setattr(pieces, "imbalance", lambda *_: "")
    assert "the inputs of a rewriting hold 9 records" in refused(pool)


def test_without_the_setting_no_reference_has_a_sum_and_nothing_is_stated() -> None:
    pool = filled(verify="counts")
    compact(pool.branch(), pool.at().references)
    assert (sums(pool), stated(pool)) == ([b""], [])


def test_a_lake_of_an_older_format_has_no_sums() -> None:
    pool = filled(verify="counts", sums="on")
    old = Lake(pool.store, pool.context.lake_id, format_version=2).pool("p")
    old.branch().append(pa.table({"k": [9]}))
    compact(old.branch(), old.at().references)
    assert sums(old) == [b""]


def test_inputs_without_a_sum_get_one_when_they_are_rewritten() -> None:
    pool = filled(verify="counts")
    Lake.open_on(pool.store).configure_pool("p", {"content.sums": "on"})
    pool = Lake.open_on(pool.store).pool("p")
    pool.branch().append(pa.table({"k": [9], "v": ["z"]}))
    content = content_of(pool.at().to_table())
    compact(pool.branch(), pool.at().references)
    assert (len(*sums(pool)), stated(pool)) == (16, [])
    assert pool.at().stored_content() == content
    compact(pool.branch(), pool.at().references)
    assert stated(pool) == [Conserve()]


def test_what_a_delete_took_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled(verify="counts", sums="on")
    branch = pool.branch()
    before = pool.at().content()
    branch.delete(where="v = 'f' or v = 'a'")
    branch.delete(key_range=RangeText(low="5", high="6"))
    assert pool.at().stored_content() is None
    content = pool.at().content()
    with monkeypatch.context() as patch:
        with_fault(patch, lambda table: table.slice(1))
        refused(pool)
    compact(branch, pool.at().references)
    (one,) = stated(pool)
    assert one.records == 3
    assert unpacked_sums(one.sums)[0] == (before - content).total
    assert pool.at().content() == pool.at().stored_content() == content


def test_what_a_delete_hides_whole_is_not_read_and_stated_by_its_sum() -> None:
    pool = filled(verify="counts", sums="on")
    pool.branch().append(pa.table({"k": [20, 21], "v": ["x", "y"]}))
    pool.branch().delete(key_range=RangeText(low="20"))
    content = pool.at().content()
    compact(pool.branch(), pool.at().references)
    assert [one.records for one in stated(pool)] == [2]
    assert pool.at().stored_content() == content


def test_an_erasure_compares_and_states_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled(verify="counts", sums="on")
    with monkeypatch.context() as patch:
        with_fault(patch, lambda table: table.slice(1))
        with pytest.raises(NotConserved):
            erase(pool, where="v = 'b'")
    receipt = erase(pool, where="v = 'b'")
    assert not any(stated_in(pool, version) for version in range(1, pool.at().version + 1))
    stored = pool.at().stored_content()
    assert stored is not None
    assert stored == content_of(pool.at().to_table())
    assert receipt.content == str(stored)


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_records_keep_their_sums_through_branches_reverts_and_checkpoints(kind: str) -> None:
    pool = filled(kind, verify="counts", sums="on")
    pool.create_branch("dev")
    dev = pool.branch("dev")
    dev.append(pa.table({"k": [7, 8], "v": ["p", "q"]}))
    dev.append(pa.table({"k": [7, 9], "v": ["r", "s"]}))
    compact(dev, pool.at("dev").references[-2:])
    merged = pool.branch().merge("dev")
    assert all(sums(pool))
    lake = Lake.open_on(pool.store)
    write_checkpoint(lake, "p", now=lake.context.now())
    pool = Lake.open_on(pool.store).pool("p")
    assert all(sums(pool))
    content = pool.at().content()
    compact(pool.branch(), pool.at().references)
    assert pool.at().content() == content
    assert len(stated(pool)) == (1 if kind == "append" else 0)
    undone = pool.branch().undo(str(pool.at().version))
    assert undone.content == ("" if kind == "upsert" else str(content))
    assert all(sums(pool))
    assert pool.at().content() == content
    assert merged


def test_a_reference_without_a_sum_is_not_checked_from_the_entry() -> None:
    """A program that knows no sums may have written the checkpoint below."""
    pool = filled(verify="counts", sums="on")
    reference = pool.at().references[0]
    bare = msgspec.structs.replace(reference, content=b"")
    assert sums_of(bare) is None
    names = ("object", "records", "size", "schema", "low", "high", "columns")
    pool.commit_actions(
        (
            RemoveReference(reference.object, reference.low),
            AddObject(**{name: getattr(bare, name) for name in names}),
        ),
        branch="main",
        message="bare",
    )
    compact(pool.branch(), pool.at().references)
    assert (len(*sums(pool)), stated(pool)) == (16, [])


@given(st.lists(st.tuples(st.integers(1, 2**62), st.integers(0, 2**31 - 1)), max_size=9))
def test_ages_add_up_as_those_of_one_transaction_do(ages: list[tuple[int, int]]) -> None:
    columns = [[seq for seq, _ in ages], [ordinal for _, ordinal in ages]]
    added = ObjectSums()
    added.add(pa.table([pa.array(c, f.type) for c, f in zip(columns, ORDER, strict=True)], schema=ORDER))
    assert added.ages == sum(age_sum(seq, ordinal, records=1) for seq, ordinal in ages) % 2**64


def test_all_formats_have_one_sum() -> None:
    table = pa.table({"k": [1, 2, 3], "v": [{"a": 1}, None, {"a": 2}], "w": np.arange(3) / 3})
    found: set[Any] = set()
    for format in ("parquet", "zng", "zst"):
        lake = Lake.create_on(MemoryStore())
        pool = lake.create_pool("p", key="k", settings={"format": format, "content.sums": "on"})
        pool.branch().append(table)
        pool.branch().append(table)
        before = pool.at().stored_content()
        assert before == content_of(pool.at().to_table())
        compact(pool.branch(), pool.at().references)
        assert pool.at().stored_content() == before
        found.add(before)
    assert len(found) == 1


def test_fsck_finds_an_object_that_holds_other_records_than_were_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = filled(verify="counts", sums="on")
    assert list(Fsck(pool.context, content=True).run()) == []
    write = ParquetSink.write
    with monkeypatch.context() as patch:
        fault = column("v", lambda values: values[::-1])
        patch.setattr(ParquetSink, "write", lambda self, table, groups: write(self, fault(table), groups))
        pool.branch().append(pa.table({"k": [1, 2], "v": ["p", "q"]}))
    newest = max(pool.at().references, key=lambda r: r.seq)
    assert list(Fsck(pool.context, data=True).run()) == []
    (found,) = Fsck(pool.context, content=True).run()
    assert (found.kind, found.severity) == ("content_lies", "damage")
    assert newest.object in found.where


@pytest.mark.parametrize("format", ["parquet", "zng"])
@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_fsck_proves_the_objects_of_each_kind(kind: str, format: str) -> None:
    lake = Lake.create_on(MemoryStore())
    aggregates = {"n": "sum"} if kind == "aggregate" else None
    settings = {"format": format, "content.sums": "on", "nokey": "accept"}
    pool = lake.create_pool("p", key="k", kind=kind, aggregates=aggregates, settings=settings)
    for number in range(3):
        pool.branch().append(pa.table({"k": [1, 2, 2, None], "n": [number, 5, 6, 7]}))
    if kind == "upsert":
        pool.branch().append(pa.table({"k": [2], "_deleted": [True]}))
    compact(pool.branch(), pool.at().references[:2])
    check = Fsck(pool.context, content=True)
    assert list(check.run()) == []
    assert (check.counts["objects"] > 3, check.counts["without_sum"]) == (True, 0)
