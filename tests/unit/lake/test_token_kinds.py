"""A token stands for one kind of work: other work under it is refused, and the same work counts once."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.history.state import Remembered
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import AddTombstone
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.results import PendingLoad
from log_lake.lake.token_kinds import TokenKind, check_kind
from log_lake.sql_writes import execute
from log_lake.stores.memory import MemoryStore
from tests.support.records import add, an_id, entry, transaction

NEW = pa.table({"k": [1], "v": ["new"]})
MERGE = "MERGE INTO p USING (SELECT 1 AS k, 'new' AS v) s ON p.k = s.k "
SAME = MERGE + "WHEN MATCHED THEN UPDATE SET v = s.v"

Work = Callable[[Lake, Branch, str], Any]

WORK: dict[str, Work] = {
    "load": lambda lake, branch, token: branch.append(NEW, token=token),
    "insert": lambda lake, branch, token: execute(
        lake, "INSERT INTO p (k, v) VALUES (1, 'new')", token=token
    ),
    "replace": lambda lake, branch, token: branch.replace_with(NEW, key_range=EVERYTHING, token=token),
    "delete": lambda lake, branch, token: branch.delete(where="k = 1", token=token),
    "delete by SQL": lambda lake, branch, token: execute(lake, "DELETE FROM p WHERE k = 1", token=token),
    "update": lambda lake, branch, token: execute(lake, "UPDATE p SET v = 'new' WHERE k = 1", token=token),
    "merge": lambda lake, branch, token: execute(lake, SAME, token=token),
}
ALIKE = [{"load", "insert"}, {"replace"}, {"delete", "delete by SQL"}, {"update", "merge"}]
"""Work of the same kind in an append pool."""


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore())
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1, 2], "v": ["a", "b"]}))
    return lake


def alike(first: str, second: str) -> bool:
    # a MERGE may insert alone, or delete alone
    return (second == "merge" and first != "replace") or any({first, second} <= kinds for kinds in ALIKE)


@pytest.mark.parametrize("second", WORK)
@pytest.mark.parametrize("first", WORK)
def test_a_token_is_refused_for_another_kind_of_work(lake: Lake, first: str, second: str) -> None:
    pool = lake.pool("p")
    WORK[first](lake, pool.branch(), "t")
    before, version = pool.at().to_table(), pool.at().version
    if alike(first, second):
        assert WORK[second](lake, pool.branch(), "t").repeated
    else:
        with pytest.raises(InvalidInput, match=r"token 't' stands for version 2, .*; use another token"):
            WORK[second](lake, pool.branch(), "t")
    assert (pool.at().to_table(), pool.at().version) == (before, version)


@pytest.mark.parametrize("first", ["delete", "delete by SQL"])
@pytest.mark.parametrize("second", ["load", "insert", "replace", "update"])
def test_the_token_of_a_delete_whose_entry_is_purged_is_refused_for_work_that_brings_records(
    lake: Lake, first: str, second: str
) -> None:
    pool = lake.pool("p")
    WORK[first](lake, pool.branch(), "t")
    pool.branch().append(NEW)
    purge_all(lake)
    before = lake.pool("p").at().to_table()
    with pytest.raises(
        InvalidInput, match=r"token 't' stands for version 2, which brought no records.*another"
    ):
        WORK[second](lake, lake.pool("p").branch(), "t")
    assert lake.pool("p").at().to_table() == before


def test_a_replace_without_records_whose_entry_is_purged_is_repeated_under_its_token(lake: Lake) -> None:
    for _ in range(2):
        done = lake.pool("p").branch().replace_with(NEW.slice(0, 0), key_range=EVERYTHING, token="t")
        assert done.version == 2
        lake.pool("p").branch().append(NEW)
        purge_all(lake)


def purge_all(lake: Lake) -> None:
    now = lake.context.now()
    write_checkpoint(lake, "p", now=now)
    purge_pool(lake, "p", keep=0, now=now)


def test_the_error_names_both_kinds(lake: Lake) -> None:
    branch = lake.pool("p").branch()
    branch.append(NEW, token="t")
    with pytest.raises(
        InvalidInput, match="version 2, which was a load and not a replace, so nothing was written"
    ):
        branch.replace_with(NEW, key_range=EVERYTHING, token="t")
    branch.replace_with(NEW, key_range=EVERYTHING, token="r")
    with pytest.raises(
        InvalidInput, match="version 3, which was a replace and not a load, so nothing was written"
    ):
        branch.append(NEW, token="r")


def test_a_token_that_another_writer_uses_meanwhile_is_checked_when_it_commits(lake: Lake) -> None:
    branch, other = lake.pool("p").branch(), lake.pool("p").branch()
    pending = branch.begin_load(token="t")
    assert isinstance(pending, PendingLoad)
    with branch.builder(pending) as builder:
        builder.add(branch.block(NEW))
        written = builder.finish()
    other.replace_with(NEW, key_range=EVERYTHING, token="t")
    with pytest.raises(InvalidInput, match="was a replace and not a load"):
        branch.commit(
            pending, objects=[one.action for one in written], schemas=[one.schema for one in written]
        )


def test_merges_that_only_insert_or_only_delete_are_repeated_under_their_tokens(lake: Lake) -> None:
    for token, clause in (
        ("insert", "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)"),
        ("delete", "WHEN MATCHED THEN DELETE"),
    ):
        sql = MERGE.replace("SELECT 1", "SELECT 5") + clause
        assert not execute(lake, sql, token=token).repeated
        assert execute(lake, sql, token=token).repeated


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_updates_of_every_kind_of_pool_are_repeated_under_their_tokens(kind: str) -> None:
    lake = Lake.create_on(MemoryStore())
    lake.create_pool("p", key="k", kind=kind).branch().append(pa.table({"k": [1], "v": ["a"]}))
    for sql in ("UPDATE p SET v = 'b' WHERE k = 1", SAME):
        assert not execute(lake, sql, token=sql).repeated
        assert execute(lake, sql, token=sql).repeated


def test_the_kind_is_that_of_the_tokens_own_transaction_in_an_entry_of_several() -> None:
    load = transaction(add(1), id=an_id(1))
    delete = transaction(AddTombstone("t"), id=an_id(2))
    journal = SimpleNamespace(read=lambda version: entry(load, delete))
    history: Any = SimpleNamespace(journal=journal)
    for one, kind, other in (
        (load, TokenKind.LOAD, TokenKind.DELETE),
        (delete, TokenKind.DELETE, TokenKind.LOAD),
    ):
        first = Remembered(1, one.id, 0, 0, 0, 0, 0, 0)
        check_kind(history, first, (kind,), token="t")
        with pytest.raises(InvalidInput, match="stands for version 1"):
            check_kind(history, first, (other,), token="t")
