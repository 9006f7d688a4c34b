"""The erasure agent: what a run names is begun, what is pending is gone on with, and a report names what holds."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Corrupt, Incomplete, InvalidInput, NotFound
from lake_core.keys import KeyRange
from lake_core.phrases import counted, human_size
from log_lake.agents.driver import agent_of
from log_lake.agents.erasure.plan import named_records, plan_erasures
from log_lake.agents.erasure.run import begin_handed_out, erase_pending, plan
from log_lake.agents.work import PutOff
from log_lake.erasure.receipt import DONE, PENDING, read_all
from log_lake.erasure.run import erase
from log_lake.lake import Lake
from tests.support.agents import finder, plain, reporter, work_of
from tests.unit.erasure.conftest import World

report = reporter("erasure")
find = finder("erasure")

ANN = "who = 'ann'"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two pools of people, in which `ann` is."""
    lake = Lake.create(str(tmp_path / "lake"))
    for name in ("people", "guests"):
        pool = lake.create_pool(name, key="k")
        pool.branch().append(pa.table({"k": [1, 2], "who": ["ann", "bob"]}))
        pool.branch().append(pa.table({"k": [3], "who": ["cid"]}))
    return lake


def names(lake: Lake, pool: str) -> list[str]:
    return Lake.open(lake.store.uri).pool(pool).at().to_table()["who"].to_pylist()  # type: ignore[no-any-return]


def stored(lake: Lake) -> dict[str, bytes | None]:
    """All that is on the store."""
    return {info.name: lake.store.get(info.name) for info in lake.store.list("")}


def params(lake: Lake, *pools: str, **values: Any) -> dict[str, Any]:
    return {"lake": lake.store.uri, "pools": list(pools), **values}


def erased(lake: Lake, all_work: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the task `run` would hand to `report`, without Spark."""
    results = []
    for work in all_work:
        how = {"grace": work["grace"], "keeps_history": work["keep_history"]}
        done = erase_pending(lake, work["pool"], begin_handed_out(lake, work_of("erasure", work)), **how)
        results.append({"pool": work["pool"], "erasures": [vars(one) for one in done]})
    return results


def test_what_a_run_names_is_erased_in_each_pool_that_it_names(lake: Lake) -> None:
    all_work = find(params(lake, "people", "guests", where=ANN))
    assert [work["title"] for work in all_work] == ["people: 1 erasure", "guests: 1 erasure"]
    results = erased(lake, all_work)
    assert report(all_work, results)["done"] == 2
    assert names(lake, "people") == names(lake, "guests") == ["bob", "cid"]
    assert find(params(lake)) == []


def test_a_key_and_a_range_are_read_as_the_command_reads_them(lake: Lake) -> None:
    assert report(work := find(params(lake, "people", key="2")), erased(lake, work))["done"] == 1
    assert names(lake, "people") == ["ann", "cid"]
    work = find(params(lake, "people", **{"from": "1", "to": "3"}))
    assert report(work, erased(lake, work))["done"] == 1
    assert names(lake, "people") == ["cid"]


def test_a_dry_run_says_what_it_would_find_and_writes_nothing(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "log_lake.agents")
    lake.pool("people").tag("yearly")
    before = stored(lake)
    assert find(params(lake, "people", where=ANN, dry_run=True)) == []
    assert stored(lake) == before
    said, end = caplog.messages
    assert said.startswith("people: would rewrite 1 object (")
    assert said.endswith("; 1 object would stay, because of tag yearly")
    assert end == "dry run: nothing is erased"


def test_a_dry_run_looks_at_pending_erasures_too(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.pool("people").tag("yearly")
    pending = erase(lake.pool("people"), where=ANN)
    before = stored(lake)
    caplog.set_level(logging.INFO, "log_lake.agents")
    assert find(params(lake, dry_run=True)) == []
    assert stored(lake) == before
    assert caplog.messages[0].startswith(f"people: pending erasure {pending.id}: would rewrite 0 objects")
    assert caplog.messages[0].endswith("because of tag yearly")


def test_what_a_tag_held_is_erased_by_the_first_run_after_it_was_deleted(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.pool("people").tag("yearly")
    first = find(params(lake, "people", where=ANN))
    results = erased(lake, first)
    id = results[0]["erasures"][0]["erasure"]
    caplog.set_level(logging.INFO)
    with pytest.raises(
        Incomplete, match=r"held by tag yearly: delete it: lake tag people -d yearly\. What was"
    ):
        report(first, results)
    assert names(lake, "people") == ["bob", "cid"]
    lake.pool("people").delete_tag("yearly")
    later = find(params(lake))  # as the schedule does: no pool, no records
    assert [(work["pool"], work["erasures"]) for work in later] == [("people", [id])]
    totals = report(later, erased(lake, later))
    assert (totals["done"], totals["deleted"], totals["held"]) == (1, 1, 0)
    assert [one.status for one in read_all(lake.pool("people"))] == [DONE]


def test_a_run_that_names_pools_leaves_the_erasures_of_others_alone(lake: Lake) -> None:
    for name in ("people", "guests"):
        lake.pool(name).tag("yearly")
        erase(lake.pool(name), where=ANN)
    assert [work["pool"] for work in find(params(lake, "guests"))] == ["guests"]
    assert [work["pool"] for work in find(params(lake))] == ["guests", "people"]


def test_the_same_records_named_again_are_the_erasure_that_is_pending(lake: Lake) -> None:
    lake.pool("people").tag("yearly")
    (one,) = find(params(lake, "people", where=ANN))
    (again,) = find(params(lake, "people", where=ANN))
    assert one["erasures"] == again["erasures"]
    (both,) = find(params(lake, "people", where="who = 'bob'"))
    assert len(both["erasures"]) == 2


def test_the_history_is_kept_by_later_runs_too(lake: Lake) -> None:
    lake.pool("people").tag("yearly")
    (work,) = find(params(lake, "people", where=ANN, keep_history=True))
    erased(lake, [work])
    lake.pool("people").delete_tag("yearly")
    ((result,),) = (one["erasures"] for one in erased(lake, find(params(lake))))
    assert (result["status"], result["purged"]) == (DONE, 0)
    lake.pool("guests").tag("yearly")
    erase(lake.pool("guests"), where=ANN)
    lake.pool("guests").delete_tag("yearly")
    ((result,),) = (one["erasures"] for one in erased(lake, find(params(lake, keep_history=True))))
    assert (result["pool"], result["status"], result["purged"]) == ("guests", DONE, 0)
    assert sum(1 for _ in Lake.open(lake.store.uri).pool("people").log()) > 5


def bound(lake: Lake, name: str, records: int) -> str:
    (size,) = {r.size for r in lake.pool(name).at().references if r.records == records}
    return f"up to 1 object of {counted(records, 'record')}, {human_size(size)}"


def test_what_a_person_must_approve_is_begun_by_the_task_that_does_it(lake: Lake) -> None:
    before = stored(lake)
    all_work = find(params(lake, "people", "guests", where=ANN), begins=False)
    assert stored(lake) == before, "what is refused must not be pending"
    assert [work["says"] for work in all_work] == [
        [f"{name}: begin an erasure of the records that this run names: {bound(lake, name, count)}"]
        for name, count in (("people", 2), ("guests", 2))
    ]
    refused = [plain(PutOff.of(work_of("erasure", work), "ann refused")) for work in all_work]
    assert report(refused, [])["erasures"] == 0
    (first,) = begin_handed_out(lake, work_of("erasure", all_work[0]))
    assert begin_handed_out(lake, work_of("erasure", all_work[0])) == [first], (
        "a task that is tried again goes on with it"
    )
    assert report(all_work, erased(lake, all_work))["done"] == 2
    assert names(lake, "people") == names(lake, "guests") == ["bob", "cid"]


def test_a_pending_erasure_that_a_person_refuses_stays_pending_and_the_report_fails(lake: Lake) -> None:
    find(params(lake, "people", where=ANN))
    (work,) = find(params(lake, "people", key="3"), begins=False)
    pending, new = work["says"]
    assert pending.startswith(f"people: go on with erasure {work['erasures'][0]}, which ")
    assert new == f"people: begin an erasure of the records that this run names: {bound(lake, 'people', 1)}"
    refused = plain(PutOff.of(work_of("erasure", work), "ann refused"))
    with pytest.raises(Incomplete, match="people: put off: ann refused: an erasure is pending"):
        report([refused], [])


def test_what_goes_between_tasks_and_into_logs_does_not_say_which_records(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    all_work = find(params(lake, "people", where=ANN))
    results = erased(lake, all_work)
    report(all_work, results)
    assert "ann" not in repr((all_work, results)) + caplog.text


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"wher": ANN}, "unknown parameter 'wher': did you mean 'where'?"),
        ({"keep_histroy": True}, "did you mean 'keep_history'?"),
        (
            {"branch": "main"},
            "The parameters are lake, pools, dry_run, where, key, from, to, grace, keep_history;",
        ),
        ({"key": 7}, r"parameter 'key' must be a text \(got 7\)"),
        ({"key": "1", "to": "2"}, "either the parameter 'key', or 'from' and 'to'"),
        ({"pools": [], "where": ANN}, "names records and no pool"),
        ({"where": ANN, "grace": "soon"}, "parameter 'grace': 'soon': use a duration"),
        ({"where": "whom = 'ann'"}, "no such field"),
        ({"from": "3", "to": "1"}, "is empty"),
        ({"key": "ann"}, "key k=.*ann"),
    ],
)
def test_a_run_with_a_parameter_that_cannot_be_is_refused_and_begins_nothing(
    lake: Lake, values: dict[str, Any], says: str
) -> None:
    before = stored(lake)
    with pytest.raises(InvalidInput, match=says):
        find(params(lake, "guests", "people") | values)
    assert stored(lake) == before


def test_a_condition_that_one_pool_cannot_have_is_begun_in_none(lake: Lake) -> None:
    lake.create_pool("other", key="k").branch().append(pa.table({"k": [1], "name": ["ann"]}))
    with pytest.raises(InvalidInput, match="no such field"):
        find(params(lake, "people", "other", where=ANN))
    assert not list(read_all(lake.pool("people")))
    with pytest.raises(NotFound):
        find(params(lake, "people", "nobody", where=ANN))
    assert not list(read_all(lake.pool("people")))


def test_a_sub_pool_can_be_named(lake: Lake) -> None:
    lake.pool("people").branch().append(pa.table({"who": ["ann", "tim"]}))
    (work,) = find(params(lake, "people.$nokey", where=ANN))
    assert work["pool"] == "people"
    ((result,),) = (one["erasures"] for one in erased(lake, [work]))
    assert result["status"] == DONE
    assert Lake.open(lake.store.uri).pool("people.$nokey").at().to_table()["who"].to_pylist() == ["tim"]
    assert names(lake, "people") == ["ann", "bob", "cid"]


def test_a_pool_that_cannot_be_read_is_handed_out_and_holds_back_no_other(lake: Lake) -> None:
    for name in ("people", "guests"):
        lake.pool(name).tag("yearly")
        erase(lake.pool(name), where=ANN)
        lake.pool(name).delete_tag("yearly")
    (receipt,) = lake.store.list(f"{lake.pool('guests').config.id}/erasures")
    lake.store.put(receipt.name, b"garbage")
    all_work = find(params(lake))
    assert [work["title"] for work in all_work] == ["guests: cannot be read", "people: 1 erasure"]
    with pytest.raises(Corrupt, match="not the receipt"):
        erased(lake, all_work[:1])
    results = erased(lake, all_work[1:])
    with pytest.raises(Incomplete, match=r"^1 failure: guests: run\[0\] failed"):
        report(all_work, results)


def test_an_erasure_that_fails_does_not_hold_back_the_others_of_its_pool(lake: Lake) -> None:
    pool = lake.pool("people")
    pool.tag("yearly")
    for where in (ANN, "who = 'bob'"):
        erase(pool, where=where)
    first, second = plan(pool).pending
    damaged = {"where": "nothing = 1"}
    lake.store.put(
        f"{pool.config.id}/erasures/{first.id}.json",
        first.encode().replace(b"\"who = 'ann'\"", f'"{damaged["where"]}"'.encode()),
    )
    pool.delete_tag("yearly")
    with pytest.raises(InvalidInput, match="no such field"):
        erase_pending(lake, "people")
    assert {one.id: one.status for one in read_all(pool)} == {first.id: PENDING, second.id: DONE}


def test_a_report_says_what_was_done_and_how_to_release_what_is_held(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    done: dict[str, Any] = {
        "pool": "p",
        "version": 3,
        "erasure": "A",
        "status": "done",
        "deleted": 3,
        "freed": 3_000,
        "written": 2,
        "size_written": 1_000,
        "purged": 7,
        "held": 0,
        "by": [],
        "not_searched": {"$rejected": 2},
    }
    by = ["tag t", "deleted branch b@3", "lease L of ann (report)", "a load that has not committed"]
    pending = done | {
        "erasure": "B",
        "status": "pending",
        "purged": 0,
        "held": 2,
        "by": by,
        "not_searched": {},
    }
    all_work = [{"pool": "p", "erasures": ["A", "B"]}, {"pool": "q", "erasures": ["C"]}]
    with pytest.raises(
        Incomplete, match=r"^5 failures: q: run\[1\] failed; its log says why; p: erasure B is held"
    ):
        report(all_work, [{"pool": "p", "erasures": [done, pending]}])
    assert caplog.messages == [
        "p: erasure A is done: deleted 3 objects (3.0 kB), wrote 2 (1.0 kB), purged the journal up to version 7; "
        "p.$rejected with 2 records was not searched",
        "p: erasure B is pending: deleted 3 objects (3.0 kB), wrote 2 (1.0 kB); 2 objects with such records may "
        "not be deleted yet",
        "2 erasures, 1 done: deleted 6 objects (6.0 kB)",
        "q: run[1] failed; its log says why",
        "p: erasure B is held by tag t: delete it: lake tag p -d t",
        "p: erasure B is held by deleted branch b@3: delete it: lake tag p -d b@3",
        "p: erasure B is held by lease L of ann (report): it ends by itself; until when, says: lake leases p",
        "p: erasure B is held by a load that has not committed: wait until vacuum.grace is over; if no load is "
        "under way: lake erase p --resume B --grace 0s --yes",
    ]
    with pytest.raises(Incomplete, match="the task `find` failed"):
        report(None, [])
    assert report([], [])["erasures"] == 0


def test_a_plan_names_the_pending_ones_oldest_first_and_whether_the_records_are_new() -> None:
    world = World()
    world.people("ann", "bob")
    world.pool.tag("keep")
    ids = []
    for where in (ANN, "who = 'bob'"):
        ids.append(erase(world.pool, where=where).id)
        world.clock.now += 1
    receipts = list(read_all(world.pool))
    for span, where, is_new in (
        (None, None, False),
        (KeyRange(), ANN, False),
        (KeyRange(), "who = 'eve'", True),
        (KeyRange(b"\x01"), ANN, True),
    ):
        work = plan_erasures(reversed(receipts), sub_pool="", span=span, where=where)
        assert ([one.id for one in work.pending], work.is_new) == (ids, is_new)
    assert plan_erasures(receipts, sub_pool="$nokey").idle
    assert named_records(where=None, key=None, low=None, high=None, pools=()) is None


def test_a_pool_that_cannot_be_read_is_put_off_if_a_person_is_asked(lake: Lake) -> None:
    pool = lake.pool("guests")
    pool.tag("yearly")
    erase(pool, where=ANN)
    pool.delete_tag("yearly")
    (receipt,) = lake.store.list(f"{pool.config.id}/erasures")
    lake.store.put(receipt.name, b"garbage")
    (work,) = find(params(lake), begins=False)
    assert (work["title"], work["put_off"]) == ("guests: put off: it cannot be read", "it cannot be read")
    with pytest.raises(Incomplete, match="an erasure is pending"):
        report([work], [])


def test_no_erasure_is_not_all_erasures(lake: Lake) -> None:
    pool = lake.pool("people")
    pool.tag("yearly")
    erase(pool, where=ANN)
    pool.delete_tag("yearly")
    assert erase_pending(lake, "people", []) == []
    assert [one.status for one in read_all(pool)] == [PENDING]
    assert [one.status for one in erase_pending(lake, "people")] == [DONE]


def test_work_that_names_no_erasures_is_not_taken_for_all_that_are_pending() -> None:
    with pytest.raises(Corrupt, match=r"not a piece of work of this agent: .*erasures"):
        agent_of("erasure").decoded_work({"lake": "l", "pool": "people"})
