"""What somebody who may write below one pool's folder can do to other pools: nothing."""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Corrupt
from lake_core.history.removal import Removal
from log_lake.cli.main import main
from log_lake.lake import Lake
from log_lake.view.overview import Overview
from tests.support.agents import finder
from tests.support.crafted import Row, craft, row
from tests.support.records import an_id

find_compact = finder("compact")
find_retention = finder("retention")
find_tombstones = finder("tombstones")

SEQ = f"{65_536:020d}"
PACK = msgspec.msgpack.encode


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two pools, and a file outside of the lake."""
    (tmp_path / "outside.txt").write_text("a file of no lake\n")
    made = Lake.create(str(tmp_path / "lake"))
    for name in ("a", "b"):
        pool = made.create_pool(name, key="k")
        for _ in range(9):
            pool.branch().append(pa.table({"k": [1, 2]}))
    return made


def vacuum_of(names: list[str]) -> Row:
    """The row of a confirmed vacuum of these objects."""
    plain = {
        "objects": names,
        "removals": [[1, 0] for _ in names],
        "transaction_id": "3" * 27,
        "time": 0,
        "confirmed": True,
    }
    return row("vacuum", SEQ.encode(), value=PACK(plain))


def test_a_vacuum_deletes_nothing_but_objects_of_its_pool(lake: Lake, tmp_path: Path) -> None:
    a, b = lake.pool("a"), lake.pool("b")
    victim = b.at().references[0].object
    names = [f"../../{b.config.id}/data/{victim}.parquet", "../../../outside.txt"]
    vacuuming = row("vacuuming", b"", value=PACK({"horizon": 1}))
    craft(a.history.journal, lambda rows: [*rows, vacuum_of(names), vacuuming], id=an_id(7))
    before = files(tmp_path)
    for command in (["vacuum", "a"], ["vacuum", "a", "--dry-run"], ["expire", "a"], ["fsck"]):
        run(lake, *command)
    assert files(tmp_path).keys() >= before.keys(), "nothing that was there is gone"
    assert (tmp_path / "outside.txt").read_text() == "a file of no lake\n"
    assert Lake.open(lake.store.uri).pool("b").at().snapshot.records == 18


def test_such_a_vacuum_of_an_object_of_the_pool_is_done(lake: Lake) -> None:
    """So the test above holds by the names, and not because nobody reads such a row."""
    a = lake.pool("a")
    object_id = a.at().references[0].object
    vacuuming = row("vacuuming", b"", value=PACK({"horizon": 1}))
    craft(a.history.journal, lambda rows: [*rows, vacuum_of([object_id]), vacuuming], id=an_id(7))
    assert run(lake, "vacuum", "a")[1] == 0
    assert a.store.get(naming.data_object(a.config.id, object_id)) is None


@pytest.mark.parametrize(
    "id", ["", ".", "..", "../x", "a/b", "/etc", "x\0", "a" * 26 + "/", "é" * 27], ids=repr
)
def test_no_name_leads_out_of_its_folder(id: str) -> None:
    pool = an_id(1)
    for spelled in (
        lambda: naming.data_object(pool, id),
        lambda: naming.lease(pool, id),
        lambda: naming.plan(pool, id),
        lambda: naming.erasure(pool, id),
        lambda: naming.pool_journal(id),
        lambda: naming.data(id),
        lambda: naming.request(f"{pool}/journal", id),
        lambda: naming.activity(id),
        lambda: naming.pack(id, 1),
    ):
        with pytest.raises(Corrupt):
            spelled()


def rows_with(section: str, column: str, value: object) -> Callable[[list[Row]], list[Row]]:
    """A change of one column of all rows of a section."""
    return lambda rows: [one | {column: value} if one["section"] == section else one for one in rows]


def added(one: Row) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [*rows, one]


CRAFTED = {
    "a vacuum's key": added(row("vacuum", b"abc", value=PACK({}))),
    "a vacuum's value": added(row("vacuum", SEQ.encode(), value=b"\xc1\xc1")),
    "a tombstone": added(row("tombstone", b"x", branch="main", value=b"\xc1\xc1")),
    "an object": rows_with("reference", "object", "../x.parquet"),
    "a reference's statistics": rows_with("reference", "value", b"\xc1garbage"),
    "a reference's range": rows_with("reference", "high", b""),
    "a reference's records": rows_with("reference", "records", -5),
    "a reference that is newer": rows_with("reference", "seq", 10**15),
    "the branch's name": rows_with("branch", "key", b"nomain"),
    "no branch": lambda rows: [one for one in rows if one["section"] != "branch"],
    "a branch that begins on itself": added(
        row("fork", b"main", value=PACK({"parent": "main", "at": 1, "created": 1}))
    ),
    "a schema": rows_with("schema", "value", b"no schema"),
    "a schema's id": rows_with("schema", "key", b"\xff\xfe"),
    "a source": added(row("source", b"s3://x", branch="main", value=b"\x93", seq=1)),
    "a token": added(row("token", b"t", value=b"\xc1")),
    "a tag": added(
        row("tag", b"t", value=PACK({"n": 10**9, "branch": "x", "owner": "", "time": 0, "set": 1}))
    ),
    "a removed object": lambda rows: [
        *rows,
        row("removed", b"../x", seq=1, applied=0, size=1),
        row("vacuuming", b"", value=PACK({})),
    ],
    "the recent ids": rows_with("recent", "seq", None),
    "a deep value": added(row("tombstone", b"x", branch="main", value=b"\x91" * 100_000)),
}


@pytest.mark.parametrize("how", CRAFTED)
def test_a_crafted_checkpoint_of_one_pool_touches_no_other(lake: Lake, how: str) -> None:
    a = lake.pool("a")
    craft(a.history.journal, CRAFTED[how], id=an_id(7))
    lake = Lake.open(lake.store.uri)
    table = Overview(time.monotonic).table(lake)
    assert [(shown.pool, bool(shown.error)) for shown in table.pools][1] == ("b", False)
    listed, _ = run(lake, "ls", "--json")
    assert '"pool":"b","key":"k","kind":"append","records":18' in listed.replace(" ", "")
    for find in (find_compact, find_retention, find_tombstones):
        found = [work["pool"] for work in find({"lake": lake.store.uri})]
        assert find is not find_compact or "b" in found
    _, status = run(lake, "fsck")
    assert status == Corrupt.exit_status
    assert run(lake, "scan", "b")[1] == 0
    # the entries are there: a reader of the pool passes the checkpoint over
    records, status = run(lake, "scan", "a")
    assert records.count("\n") == 18 or (how, status) == ("a schema", Corrupt.exit_status)


@pytest.mark.parametrize(
    ("column", "value", "command"),
    [
        *(("records", 2**62, ("query", f'select * from "a:{table}"')) for table in ("branches", "ranges")),
        ("size", 2**62, ("query", 'select * from "a:ranges"')),
        ("records", 2**62, ("branch", "a")),
        ("schema", "another", ("erase", "a", "--where", "k = 1", "--yes", "--grace", "0s")),
    ],
)
def test_a_reference_that_is_untrue_is_corrupt_where_it_is_used(
    lake: Lake, column: str, value: object, command: tuple[str, ...]
) -> None:
    """Its rows can be decoded, and so nothing but what uses the value can find it."""
    craft(lake.pool("a").history.journal, rows_with("reference", column, value), id=an_id(7))
    out, status = run(lake, *command)
    assert (out, status) == ("", Corrupt.exit_status)


def test_a_checkpoint_that_cannot_be_decoded_is_no_ground_for_a_purge(lake: Lake) -> None:
    a = lake.pool("a")
    for number, how in enumerate(("a reference's statistics", "a token", "a source", "a schema")):
        craft(a.history.journal, CRAFTED[how], id=an_id(7 + number))
        run(lake, "purge", "a", "--keep", "0s")
        assert Lake.open(lake.store.uri).pool("a").at().snapshot.records == 18
        assert not a.history.journal.marks().fence


@pytest.mark.parametrize(
    "removal", [{"version": -2, "time": 0}, {"version": 1, "time": 0, "size": -1}], ids=str
)
def test_a_removal_cannot_be_negative(removal: dict[str, int]) -> None:
    with pytest.raises(Corrupt):
        Removal(**removal)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(lake: Lake, *words: str) -> tuple[str, int]:
    """What a command prints, and its status."""
    out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["--lake", lake.store.uri, *words])
    assert "Traceback" not in err.getvalue()
    out.seek(0)
    return out.read(), status


@pytest.mark.parametrize("place", ["journal/HEAD", "journal/TAIL", f"journal/{9:020d}.txn", "journal-begun"])
def test_a_pipe_in_the_place_of_an_object_keeps_no_other_pool_waiting(lake: Lake, place: str) -> None:
    path = Path(lake.store.uri, lake.pool("a").config.id, place)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    lake = Lake.open(lake.store.uri)
    table = Overview(time.monotonic).table(lake)
    assert [(shown.pool, bool(shown.error)) for shown in table.pools][1] == ("b", False)
    assert "b" in [work["pool"] for work in find_compact({"lake": lake.store.uri})]
    assert run(lake, "scan", "b")[1] == 0
    run(lake, "fsck")  # ends
