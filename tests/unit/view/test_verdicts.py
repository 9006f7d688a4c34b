"""The doctor's answer for the page."""

from __future__ import annotations

from log_lake.lake import Lake
from log_lake.view.verdicts import FRESH_SECONDS, Verdicts
from tests.support.clocks import Clock
from tests.support.stores import ScriptedStore

WRITES = ("create", "put", "delete", "delete_all", "open_output")


def test_the_page_gets_the_verdict_the_counts_and_the_findings() -> None:
    lake = Lake.create_on(ScriptedStore())
    lake.create_pool("well", key="k")
    lake.create_pool("fights", key="k", settings={"compact.max_bytes": "10MiB"})
    shown = Verdicts(Clock()).shown(lake)
    assert (shown.verdict, shown.counts) == ("attention", {"well": 1, "attention": 1, "ill": 0})
    assert [(one.severity, one.pool, one.kind) for one in shown.findings] == [
        ("attention", "fights", "fight"),
        ("note", "", "unseen"),
    ]
    assert shown.total == 2


def test_many_pages_cost_one_look_and_write_nothing() -> None:
    store, clock = ScriptedStore(), Clock()
    lake = Lake.create_on(store)
    lake.create_pool("well", key="k")
    verdicts = Verdicts(clock)
    store.requests.clear()
    first = verdicts.shown(lake)
    asked = len(store.requests)
    assert verdicts.shown(lake) is first
    assert len(store.requests) == asked
    clock.now += FRESH_SECONDS
    assert verdicts.shown(lake) is not first
    assert [request for request, _ in store.requests if request in WRITES] == []
