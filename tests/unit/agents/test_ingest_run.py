"""The ingest agent before and after Spark: what has landed and was not taken, and the report."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest

from lake_core import naming
from lake_core.errors import Incomplete, InvalidInput, NotFound
from lake_core.ids import IdSource
from lake_core.records import Consume, Source
from lake_core.records.pools import PoolConfig
from log_lake.agents.ingest import parking
from log_lake.agents.ingest.plan import plan_batches
from log_lake.agents.ingest.policy import policy_of
from log_lake.agents.ingest.report import LATE
from log_lake.agents.ingest.sources import look, pools_that_ingest
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.loading.source_files import SourceFile
from tests.support.agents import finder, reporter
from tests.support.records import draft

report = reporter("ingest")
find = finder("ingest")
report_intervals = reporter("intervals")

NOW = 2_000_000_000.0


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    return folder


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(str(tmp_path / "lake"), author="test")


@pytest.fixture
def pool(lake: Lake, landing: Path) -> Pool:
    settings = {"ingest.source": str(landing), "ingest.batch_files": "2", "ingest.batch_age": "10s"}
    return lake.create_pool("p", key="k", settings=settings)


def land(folder: Path, name: str, text: str = '{"k": 1}\n', *, age: float = 0.0) -> SourceFile:
    path = folder / name
    path.write_text(text)
    os.utime(path, (NOW - age, NOW - age))
    return SourceFile(str(path), len(text), f"{int((NOW - age) * 10**9):x}", NOW - age)


def take(pool: Pool, *files: SourceFile, number: int = 1) -> None:
    pool.history.commit(draft(number, Consume(tuple(f.source for f in files)), schemas=()))


def waiting(lake: Lake) -> list[SourceFile]:
    """The source files that are to be ingested."""
    return list(look(lake.pool("p")).waiting)


def names(files: list[SourceFile]) -> list[str]:
    return [Path(f.uri).name for f in files]


def test_only_pools_with_a_landing_place_ingest(lake: Lake, pool: Pool) -> None:
    lake.create_pool("other", key="k")
    assert pools_that_ingest(lake) == ["p"]
    assert pools_that_ingest(lake, ["p", "p"]) == ["p"]


def test_a_pool_that_is_named_must_exist_and_have_a_landing_place(lake: Lake, pool: Pool) -> None:
    lake.create_pool("other", key="k")
    with pytest.raises(NotFound):
        pools_that_ingest(lake, ["nothing"])
    with pytest.raises(InvalidInput, match=r"lake set other ingest\.source"):
        pools_that_ingest(lake, ["other"])


def test_what_was_taken_waits_no_longer(lake: Lake, pool: Pool, landing: Path) -> None:
    a, b = land(landing, "a.ndjson"), land(landing, "b.ndjson")
    assert waiting(lake) == [a, b]
    take(pool, a)
    assert waiting(lake) == [b]


def test_a_file_that_changed_after_it_was_taken_waits_again(lake: Lake, pool: Pool, landing: Path) -> None:
    take(pool, land(landing, "a.ndjson"))
    changed = land(landing, "a.ndjson", '{"k": 1}\n{"k": 2}\n')
    assert waiting(lake) == [changed]


def test_empty_hidden_and_unfinished_files_do_not_wait(lake: Lake, pool: Pool, landing: Path) -> None:
    land(landing, "empty.ndjson", "")
    for name in (".hidden.ndjson", "_part.ndjson", "a.ndjson.tmp"):
        land(landing, name)
    assert waiting(lake) == []


def test_batches_follow_the_policy_of_the_pool(lake: Lake, pool: Pool, landing: Path) -> None:
    for name in ("a.ndjson", "b.ndjson", "c.ndjson"):
        land(landing, name)
    batches = [plan_batches(look(pool).waiting, policy_of(pool.settings), now=now) for now in (NOW, NOW + 10)]
    assert [names(list(batch.files)) for batch in batches[0]] == [["a.ndjson", "b.ndjson"]]
    assert [names(list(batch.files)) for batch in batches[1]] == [["a.ndjson", "b.ndjson"], ["c.ndjson"]]
    at_once = policy_of(pool.settings, wait=False)
    assert plan_batches(look(pool).waiting, at_once, now=NOW) == batches[1]


def test_a_run_hands_over_plain_values_and_a_dry_run_nothing(
    lake: Lake, pool: Pool, landing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "log_lake.agents")
    a = land(landing, "a.ndjson", age=60)
    params: dict[str, Any] = {"lake": lake.store.uri, "pools": ["p"], "wait": False}
    (found,) = find(params)
    assert list(found["files"]) == [{"uri": a.uri, "size": a.size, "etag": a.etag, "modified": a.modified}]
    assert (found["lake"], found["pool"], found["branch"]) == (lake.store.uri, "p", "main")
    assert found["title"] == "p: 1 file"
    caplog.clear()
    assert find(params | {"dry_run": True}) == []
    assert caplog.messages == [
        "p: 1 new file, 9 B, in 1 batch of at most 2 files or 1.1 GB",
        f"  batch of 1 file, 9 B, token {found['token']}",
        "dry run: nothing is ingested",
    ]
    caplog.clear()
    soon = land(landing, "b.ndjson")
    os.utime(soon.uri)
    Path(a.uri).unlink()
    assert find(params | {"wait": True}) == []
    assert caplog.messages == [
        "p: 1 file waits, 9 B: the batch is not full, and its oldest file is younger than ingest.batch_age (10 s)",
        "no batch is due",
    ]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"pols": ["p"]}, "unknown parameter 'pols': did you mean 'pools'?"),
        ({"dryrun": True}, "unknown parameter 'dryrun': did you mean 'dry_run'?"),
        ({"branch": "main"}, "The parameters are lake, pools, dry_run, wait, bulk, limit; nothing was done"),
        ({"pools": "p"}, r"parameter 'pools' must be a list of texts \(got 'p'\)"),
        ({"dry_run": "yes"}, "parameter 'dry_run' must be true or false"),
        ({"lake": ""}, "no lake: set the parameter `lake` of the run, or the variable LAKE"),
    ],
)
def test_a_run_with_a_parameter_that_cannot_be_is_refused(
    lake: Lake, pool: Pool, landing: Path, params: dict[str, Any], says: str
) -> None:
    land(landing, "a.ndjson", age=60)
    with pytest.raises(InvalidInput, match=says):
        find({"lake": lake.store.uri} | params)


# ---------------------------------------------------------------- parked files


def test_a_parked_file_waits_no_longer_until_it_changes(lake: Lake, pool: Pool, landing: Path) -> None:
    a, b = land(landing, "a.ndjson", "bad\n"), land(landing, "b.ndjson")
    parking.park(pool, a, why="line 1: not JSON", now=NOW)
    assert waiting(lake) == [b]
    (parked,) = parking.parked_files(pool)
    assert (parked.file, parked.size, parked.etag, parked.why, parked.time) == (
        a.uri, a.size, a.etag, "line 1: not JSON", NOW,
    )  # fmt: skip
    changed = land(landing, "a.ndjson", '{"k": 7}\n')
    assert waiting(lake) == [changed, b]
    touched = land(landing, "a.ndjson", "bad\n", age=-5)
    assert waiting(lake) == [touched, b], "of the same size, but written anew"


def test_a_parked_file_is_tried_again_where_a_setting_that_reads_it_changes(
    lake: Lake, pool: Pool, landing: Path
) -> None:
    a = land(landing, "a.ndjson", "bad\n")
    parking.park(pool, a, why="bad", now=NOW)
    lake.catalog.configure("p", {"compact.depth": "4", "description": "x", "ingest.batch_files": "9"})
    assert waiting(lake) == []
    lake.catalog.configure("p", {"bad_records": "quarantine"})
    assert waiting(lake) == [a]


def test_a_released_file_waits_again(lake: Lake, pool: Pool, landing: Path) -> None:
    a = land(landing, "a.ndjson")
    parking.park(pool, a, why="bad", now=NOW)
    parking.release(pool, parking.parked_files(pool))
    assert (waiting(lake), parking.parked_files(pool)) == ([a], [])


def test_a_note_that_is_damaged_costs_a_try_and_nothing_else(lake: Lake, pool: Pool, landing: Path) -> None:
    a = land(landing, "a.ndjson")
    parking.park(pool, a, why="bad", now=NOW)
    (note,) = [o.name for o in lake.store.list(naming.parked_folder(pool.config.id))]
    lake.store.put(note, b"{half")
    assert waiting(lake) == [a]


def test_the_note_of_a_file_that_is_gone_or_has_changed_is_forgotten_by_a_run(
    lake: Lake, pool: Pool, landing: Path
) -> None:
    gone, changed, same = (land(landing, f"{n}.ndjson") for n in "abc")
    for file in (gone, changed, same):
        parking.park(pool, file, why="bad", now=NOW)
    Path(gone.uri).unlink()
    land(landing, "b.ndjson", '{"k": 22}\n', age=60)
    find({"lake": lake.store.uri, "wait": False, "dry_run": True})
    assert len(parking.parked_files(pool)) == 3
    assert [f["uri"] for f in find({"lake": lake.store.uri, "wait": False})[0]["files"]] == [changed.uri]
    assert [parked.file for parked in parking.parked_files(pool)] == [same.uri]


def test_a_pool_whose_landing_place_is_gone_does_not_hold_back_the_others(
    lake: Lake, pool: Pool, landing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "log_lake.agents")
    lake.create_pool("gone", key="k", settings={"ingest.source": str(landing / "nowhere")})
    land(landing, "a.ndjson", age=60)
    found, gone = find({"lake": lake.store.uri, "wait": False})
    assert (found["pool"], gone["pool"], gone["put_off"]) == ("p", "gone", "it cannot be read")
    assert any("nowhere" in m and m.startswith("gone: ") for m in caplog.messages)
    done = [DONE | {"token": found["token"]}]
    with pytest.raises(Incomplete, match=r"^1 failure: gone: .*nowhere.*All else was ingested"):
        report([found, gone], done)
    (landing / "nowhere").mkdir()
    assert [work["pool"] for work in find({"lake": lake.store.uri, "wait": False})] == ["p"]


def test_a_pool_that_changes_while_its_files_are_listed_is_looked_at_as_it_is_then(
    lake: Lake, pool: Pool, landing: Path, tmp_path: Path
) -> None:
    land(landing, "old.ndjson", age=60)
    (tmp_path / "new").mkdir()
    new = land(tmp_path / "new", "new.ndjson", age=60)
    stale = lake.pools()

    class Stale(Lake):
        def pools(self) -> list[PoolConfig]:
            return list(stale)

    lake.configure_pool("p", {"ingest.source": str(tmp_path / "new")})
    opened = Stale.open(lake.store.uri)
    (work,) = find({"lake": lake.store.uri, "wait": False}, open_lake=lambda name: opened)
    assert [file["uri"] for file in work["files"]] == [new.uri]
    lake.drop_pool("p")
    assert (
        find({"lake": lake.store.uri, "wait": False}, open_lake=lambda name: Stale.open(lake.store.uri)) == []
    )


def test_a_pool_whose_files_are_as_they_were_is_not_looked_at_again(
    lake: Lake, pool: Pool, landing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    looked_at: list[str] = []

    class Watched(Lake):
        def pool(self, name: str) -> Pool:
            looked_at.append(name)
            return super().pool(name)

    def found(after: float = 2_000.0, **asked: Any) -> int:
        """How much the agent finds so long after now; a note counts for 20 minutes (`history.activity`)."""
        looked_at.clear()
        opened = Watched.open(lake.store.uri, ids=IdSource(clock=lambda: time.time() + after))
        return len(find({"lake": lake.store.uri, "wait": False, **asked}, open_lake=lambda name: opened))

    a = land(landing, "a.ndjson", age=60)
    assert (found(), found()) == (1, 1), "what waits is found again"
    take(pool, a)
    assert (found(), looked_at) == (0, ["p"])
    assert (found(), looked_at) == (0, [])
    b = land(landing, "b.ndjson", age=60)
    assert (found(), looked_at) == (1, ["p"])
    take(pool, b, number=2)
    assert (found(0.0), looked_at) == (0, ["p"])
    assert (found(10.0), looked_at) == (0, ["p"]), "a load may have been taken back meanwhile"
    assert (found(), looked_at) == (0, ["p"])
    assert (found(), looked_at) == (0, [])
    lake.configure_pool("p", {"include": "b*"})
    assert (found(), looked_at) == (0, ["p"])
    assert (found(pools=["p"]), looked_at) == (0, ["p", "p"]), "a person names the pool"
    assert (found(90_000.0), looked_at) == (0, ["p"]), "a look is forgotten after a day"
    parking.park(pool, land(landing, "b2.ndjson", "bad\n", age=60), why="bad", now=NOW)
    assert (found(), found(), looked_at) == (1, 1, ["p"]), "of a parked file each run says something"


# ---------------------------------------------------------------- reports

DONE: dict[str, Any] = {
    "pool": "p",
    "token": "t",
    "version": 3,
    "records": 1000,
    "objects": 2,
    "nokey": 1,
    "rejected": 0,
    "repeated": False,
    "parked": [],
    "parked_files": 0,
}
FOUND = [{"pool": "p", "token": token, "files": []} for token in ("t", "u", "v")]


def test_a_report_sums_the_batches(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "log_lake.agents")
    nothing = {"token": "v", "version": None, "records": 0, "objects": 0, "nokey": 0}
    totals = report(FOUND, [DONE, DONE | {"token": "u", "repeated": True}, DONE | nothing])
    assert totals == {
        "batches": 3, "records": 1000, "objects": 2, "nokey": 1, "rejected": 0, "retyped": 0, "repeated": 1,
        "parked": 0, "late": 0,
    }  # fmt: skip
    assert caplog.messages == [
        "p: version 3, 1,000 records in 2 objects, 1 without the key",
        "p: version 3, 1,000 records in 2 objects, 1 without the key (committed before)",
        "p: nothing to commit",
        "3 batches, 1 of them committed before: 1,000 records in 2 objects, 1 without the key",
    ]
    caplog.clear()
    assert report([], [])["batches"] == 0
    assert caplog.messages == ["nothing was ingested"]


def test_a_report_says_what_was_done_also_where_a_batch_failed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "log_lake.agents")
    with pytest.raises(Incomplete, match=r"^2 failures: p: run\[1\] failed; its log says why; p: run\[2\]"):
        report(FOUND, [DONE])
    assert caplog.messages[0].startswith("p: version 3, 1,000 records")
    with pytest.raises(Incomplete, match="the task `find` failed"):
        report(None, [])


def test_a_report_says_that_the_agent_lags_behind_what_arrives(
    lake: Lake, pool: Pool, landing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def found(**asked: Any) -> list[dict[str, Any]]:
        opened = Lake.open(lake.store.uri, ids=IdSource(clock=lambda: NOW))
        return find({"lake": lake.store.uri, **asked}, open_lake=lambda name: opened)

    young = land(landing, "young.ndjson", age=LATE + 5)  # it may wait for ingest.batch_age more
    (work,) = found()
    with pytest.raises(Incomplete):
        report([work], [])
    assert not any("lags" in message for message in caplog.messages)
    Path(young.uri).unlink()
    for number in range(4):
        land(landing, f"{number}.ndjson", age=(2 + number) * LATE)
    said = (
        "p: the agent lags: 2 files still wait, the oldest for {} h; ingest.batch_age is 10 s. If this stays, "
        "run it more often, or give it more slots"
    )
    first, second = found()
    caplog.clear()
    with pytest.raises(Incomplete, match=r"run\[1\] failed"):
        report([first, second], [DONE | {"token": first["token"]}])
    assert said.format(5) in caplog.messages, "a batch that failed waits on"
    caplog.clear()
    caplog.set_level(logging.INFO, "log_lake.agents")
    first, beyond, left = found(limit=1)
    assert (beyond["left"], left["late"], left["put_off"]) == (1, 2, "the agent lags behind what arrives")
    assert report([first, beyond, left], [DONE | {"token": first["token"]}])["late"] == 2
    waits = 5 if first["files"][0]["uri"].endswith("0.ndjson") else 3
    assert said.format(waits) in caplog.messages


def test_the_run_that_parks_a_file_fails_and_later_runs_mention_it(
    lake: Lake, pool: Pool, landing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a = land(landing, "a.ndjson", "bad\n")
    parking.park(pool, a, why="line 1: not JSON", now=NOW)
    parked = DONE | {"parked": [[a.uri, "line 1: not JSON"]], "parked_files": 1}
    with pytest.raises(Incomplete, match=rf"^1 failure: p: parked {a.uri}: line 1: not JSON\. All else"):
        report(FOUND[:1], [parked])
    caplog.clear()
    caplog.set_level(logging.INFO, "log_lake.agents")
    (left,) = find({"lake": lake.store.uri})
    assert (left["put_off"], left["parked"]) == ("1 file is parked (lake parked p)", 1)
    assert report([left], [])["parked"] == 1
    mention = f"p: 1 file is parked until it changes or is released (lake parked p): {a.uri}"
    assert caplog.messages == [mention, "no batch is due", mention, "nothing was ingested"]


def test_an_interval_without_files_changes_nothing_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "log_lake.agents")
    empty = DONE | {"version": None, "records": 0, "objects": 0, "nokey": 0, "begin": "2026-11-21"}
    report_intervals([{"pool": "p"}], [empty])
    assert caplog.messages[0] == "p: no files for 2026-11-21: nothing changed"
    with pytest.raises(Incomplete, match=r"q: run\[1\] failed.*What failed changed nothing"):
        report_intervals([{"pool": "p"}, {"pool": "q"}], [empty])


def test_a_source_is_what_a_transaction_remembers(pool: Pool, landing: Path) -> None:
    a = land(landing, "a.ndjson")
    take(pool, a)
    assert pool.at().state.ingested("main", a.uri) == Source(a.uri, a.size, a.etag)


def test_the_first_task_opens_the_lake_as_it_is_told(lake: Lake, pool: Pool, landing: Path) -> None:
    land(landing, "a.ndjson", age=60.0)
    opened = []

    def open_lake(name: str) -> Lake:
        opened.append(name)
        return lake

    (work,) = find({"lake": "a_connection", "wait": False}, open_lake=open_lake)
    assert work["lake"] == "a_connection", "no address and no secret goes between tasks"
    assert opened == ["a_connection"]
