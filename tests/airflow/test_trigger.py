"""The trigger's loop, without a triggerer: what it says, what it shares, and where it begins again.

A watcher's place for what it has seen is Airflow's; here a dictionary stands for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake

pytestmark = pytest.mark.airflow

BEFORE = """
import asyncio, json, sys
import pyarrow as pa
from airflow_lake.triggers import transactions
from airflow_lake.triggers.transactions import TransactionTrigger
from log_lake.lake import Lake

lake = Lake.create(sys.argv[1])
for name in ("a", "b", "c"):
    lake.create_pool(name, key="k")

def load(name):
    lake.pool(name).branch().append(pa.table({"k": [1]}))

def trigger(*pools, **how):
    return TransactionTrigger(pools=list(pools), lake=sys.argv[1], pause=0.05, **how)

class Kept(dict):
    async def aget(self, key, default=None):
        return self.get(key, default)

    async def aset(self, key, value):
        self[key] = value

def looked_at(trigger):
    loop = trigger._alone or transactions._LOOPS.get(trigger.shared_stream_key())
    return set(loop.interest.positions) if loop else set()

async def begun(*triggers):
    # Wait until the loop looks at all pools of the triggers: what is committed then is new to them.
    while not all(looked_at(one) >= set(one.pools) for one in triggers):
        await asyncio.sleep(0.01)

async def events(trigger, count, then=None):
    stream, got = trigger.run(), []

    async def act():
        await begun(trigger)
        then()

    acting = asyncio.create_task(act()) if then else None
    try:
        async for event in stream:
            got.append((event.payload["pool"], event.payload["version"], event.payload["entries"]))
            if len(got) == count:
                return got
    finally:
        await stream.aclose()
"""


def answer(folder: Path, program: str) -> Any:
    """What a program says, whose `main` is a coroutine function."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "LAKE"))}
    after = "\nprint('ANSWER ' + json.dumps(asyncio.run(asyncio.wait_for(main(), 900))))"
    done = subprocess.run(
        [sys.executable, "-c", BEFORE + program + after, str(folder / "lake")],
        env={**clean, "AIRFLOW_HOME": str(folder / "airflow")},
        capture_output=True,
        text=True,
        timeout=1_200,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert lines, done.stderr
    return json.loads(lines[-1].removeprefix("ANSWER "))


def test_a_trigger_says_each_pool_with_something_new_and_not_what_was_there(tmp_path: Path) -> None:
    program = """
load("a")
async def main():
    return await events(trigger("a", "b"), 2, then=lambda: (load("a"), load("b"), load("c")))
"""
    assert sorted(answer(tmp_path, program)) == [["a", 2, 1], ["b", 1, 1]]


WATCHER = """
kept = Kept()

def watcher():
    one = trigger("a")
    one.asset_state_store = kept
    return one
"""


def test_a_watcher_that_begins_again_says_what_was_committed_meanwhile(tmp_path: Path) -> None:
    program = f"""{WATCHER}
async def main():
    async def watch():
        async for event in watcher().run():
            pass

    first = asyncio.create_task(watch())
    while "lake_seen:a" not in kept:
        await asyncio.sleep(0.01)
    load("a")
    while kept["lake_seen:a"][1] == 0:
        await asyncio.sleep(0.01)
    first.cancel()
    load("a")
    load("a")
    return await events(watcher(), 1)
"""
    assert answer(tmp_path, program) == [["a", 3, 2]]


def test_an_event_comes_again_if_airflow_may_not_have_kept_it(tmp_path: Path) -> None:
    program = f"""{WATCHER}
async def main():
    said = await events(watcher(), 1, then=lambda: load("a"))
    return said + await events(watcher(), 1)
"""
    assert answer(tmp_path, program) == [["a", 1, 1], ["a", 1, 1]]


SHARED = """
import itertools
from airflow.triggers.shared_stream import SharedStreamManager

streams, ids, heard = SharedStreamManager(), itertools.count(), []

async def shared(trigger, count):
    \"""The first events of a trigger as the triggerer runs it, each with the number that says it is stored.\"""
    id, key, got = next(ids), trigger.shared_stream_key(), []
    stream = trigger.filter_shared_stream(streams.subscribe(trigger_id=id, trigger=trigger, key=key))
    try:
        async for event in stream:
            number = streams.bind_pending_event(trigger_id=id, key=key)
            got.append((event.payload["pool"], event.payload["version"], event.payload["entries"]))
            heard.append(number)
            if len(got) == count:
                return sorted(got)
    finally:
        await streams.unsubscribe(id, key)

async def stored(said):
    \"""What is kept of the pool a before and after Airflow has stored its first event; then all that is said.\"""
    while not heard:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)  # in which it would be kept if it did not wait
    before = kept["lake_seen:a"][1]
    streams.confirm_persisted(heard[:1])
    while (after := kept["lake_seen:a"][1]) == before:
        await asyncio.sleep(0.01)
    load("a")
    return [before, after, await said]
"""


def test_triggers_of_one_lake_share_a_loop_and_each_says_its_own(tmp_path: Path) -> None:
    program = f"""{SHARED}
async def main():
    one, two = trigger("a", "b"), trigger("b", "c")
    assert one.shared_stream_key() == two.shared_stream_key()
    assert one.shared_stream_key() != TransactionTrigger(pools=["a"], lake="/other").shared_stream_key()
    said = asyncio.gather(shared(one, 2), shared(two, 2))
    await begun(one, two)
    for name in "abc":
        load(name)
    said = await said
    (loop,) = transactions._LOOPS.values()
    await asyncio.sleep(0)
    return said + [sorted(loop.interest.positions)]
"""
    assert answer(tmp_path, program) == [[["a", 1, 1], ["b", 1, 1]], [["b", 1, 1], ["c", 1, 1]], []]


def test_what_was_seen_is_kept_once_airflow_has_stored_the_event_and_not_before(tmp_path: Path) -> None:
    """A triggerer that is killed between the two says the event again."""
    program = f"""{WATCHER}{SHARED}
async def main():
    said = asyncio.create_task(shared(watcher(), 2))
    while "lake_seen:a" not in kept:
        await asyncio.sleep(0.01)
    load("a")
    return await stored(said)
"""
    assert answer(tmp_path, program) == [0, 1, [["a", 1, 1], ["a", 2, 1]]]


def test_what_is_no_event_is_kept_too_so_that_a_purge_of_it_makes_none(tmp_path: Path) -> None:
    program = f"""{WATCHER}{SHARED}
lake.pool("a").create_branch("dev")
async def main():
    said = asyncio.create_task(shared(watcher(), 1))
    while "lake_seen:a" not in kept:
        await asyncio.sleep(0.01)
    before = kept["lake_seen:a"][1]
    lake.pool("a").branch("dev").append(pa.table({{"k": [1]}}))
    while kept["lake_seen:a"][1] == before:
        await asyncio.sleep(0.01)
    said.cancel()
    return kept["lake_seen:a"][1] - before
"""
    assert answer(tmp_path, program) == 1


def test_what_was_purged_unseen_is_one_event_and_kept_as_any_other(tmp_path: Path) -> None:
    program = f"""{WATCHER}{SHARED}
import time
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
kept["lake_seen:a"] = [lake.pool("a").config.id, 1]
for _ in range(3):
    load("a")
write_checkpoint(lake, "a", now=time.time())
assert purge_pool(lake, "a", keep=0, now=time.time() + 60).fence == 3
async def main():
    return await stored(asyncio.create_task(shared(watcher(), 2)))
"""
    assert answer(tmp_path, program) == [1, 3, [["a", 3, 1], ["a", 4, 1]]]


def test_a_trigger_misses_nothing_that_the_loop_passed_before_it_was_added(tmp_path: Path) -> None:
    """The loop has seen version 1 for another trigger, and finds a compaction while the new one begins."""
    program = f"""{SHARED}
from log_lake.rewriting.compaction import compact
pool = lake.pool("a")
id = pool.config.id
async def main():
    other = trigger("a")
    first = asyncio.create_task(shared(other, 9))
    await begun(other)
    (loop,) = transactions._LOOPS.values()

    async def passed(version):
        while loop.interest.positions["a"].version < version:
            await asyncio.sleep(0.01)

    load("a")
    load("a")
    await passed(2)
    late, begin = trigger("a", after={{"a": [id, 0]}}), TransactionTrigger._begin

    async def slow(self, loop):
        compact(pool.branch(), pool.at().references)
        await passed(3)
        return await begin(self, loop)

    late._begin = slow.__get__(late)
    said = await shared(late, 1)
    first.cancel()
    return said
"""
    assert answer(tmp_path, program) == [["a", 2, 2]]


def test_compaction_is_an_event_only_if_it_is_asked_for(tmp_path: Path) -> None:
    program = """
from log_lake.rewriting.compaction import compact
for _ in range(2):
    load("a")
branch = lake.pool("a").branch()
async def main():
    def merge():
        compact(branch, lake.pool("a").at().references)

    (quiet,) = await events(trigger("a"), 1, then=lambda: (merge(), load("a")))
    (loud,) = await events(trigger("a", maintenance=True), 1, then=merge)
    return [quiet, loud]
"""
    assert answer(tmp_path, program) == [["a", 4, 1], ["a", 5, 1]]


def test_a_trigger_that_starts_while_the_store_is_away_waits_for_it(tmp_path: Path) -> None:
    program = """
import os
id = lake.pool("a").config.id
load("a")
os.rename(sys.argv[1], sys.argv[1] + "_")
async def main():
    asyncio.get_running_loop().call_later(0.4, os.rename, sys.argv[1] + "_", sys.argv[1])
    return await events(trigger("a", after={"a": [id, 0]}), 1)
"""
    assert answer(tmp_path, program) == [["a", 1, 1]]


def test_a_lake_that_cannot_be_read_is_opened_again_by_what_its_connection_says_then(tmp_path: Path) -> None:
    """The lake moves, and a loop of links is where it was: it cannot be read there."""
    program = """
import os
place, elsewhere = sys.argv[1], sys.argv[1] + "_"

def connect(host):
    os.environ["AIRFLOW_CONN_MOVING"] = json.dumps({"conn_type": "lake", "host": host})

async def main():
    connect(place)
    watcher = TransactionTrigger(pools=["a"], lake="moving", pause=0.05)
    watcher.asset_state_store = kept = Kept()
    said = asyncio.create_task(events(watcher, 1))
    while "lake_seen:a" not in kept:
        await asyncio.sleep(0.01)
    os.rename(place, elsewhere)
    os.symlink(place, place)
    connect(elsewhere)
    Lake.open(elsewhere).pool("a").branch().append(pa.table({"k": [1]}))
    return await said
"""
    assert answer(tmp_path, program) == [["a", 1, 1]]


def test_a_trigger_of_a_deferred_task_says_nothing_before_it_has_rested(tmp_path: Path) -> None:
    program = """
import time
id = lake.pool("a").config.id
load("a")
async def main():
    begun = time.monotonic()
    said = await events(trigger("a", after={"a": [id, 0]}, rest=1.5), 1)
    return said, time.monotonic() - begun >= 1.5
"""
    assert answer(tmp_path, program) == [[["a", 1, 1]], True]


def test_a_trigger_that_could_only_wait_in_vain_is_refused_when_it_is_made(tmp_path: Path) -> None:
    program = """
wrong = [
    {"pools": [1]}, {"pools": [["a"]]}, {"pools": None}, {"lake": 5}, {"branch": ""}, {"branch": None},
    {"after": "x"}, {"after": {"a": 5}}, {"after": {"a": [1]}}, {"after": {"a": ["id", "7"]}},
    {"pause": float("inf")},
]
async def main():
    said = []
    for how in wrong:
        try:
            TransactionTrigger(**{"pools": ["a"], **how})
        except ValueError as error:
            said.append(str(error).split()[1])
    return said
"""
    assert answer(tmp_path, program) == ["pools"] * 3 + ["lake"] + ["branch"] * 2 + ["after"] * 4 + ["pause"]


def test_a_name_that_means_no_lake_ends_the_trigger_with_an_error(tmp_path: Path) -> None:
    program = """
async def main():
    try:
        return await events(TransactionTrigger(pools=["a"], lake="foo://x", pause=0.05), 1)
    except Exception as error:
        return type(error).__name__
"""
    assert answer(tmp_path, program) == "InvalidInput"


SLOW = """
import asyncio, json, logging, sys, threading
threads, said = set(), []

class Spy:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith(("lake_core", "log_lake", "pyarrow")):
            threads.add(threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Spy)
from airflow_lake.triggers.transactions import TransactionTrigger

class Hears(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())

logging.getLogger("airflow_lake.triggers.transactions").addHandler(Hears())

async def main():
    stream = TransactionTrigger(pools=["a"], lake=sys.argv[1], pause=0.05).run()
    waiting = asyncio.create_task(anext(stream))
    while not said:  # there is no lake: it looked, and looks again
        await asyncio.sleep(0.01)
    waiting.cancel()

asyncio.run(asyncio.wait_for(main(), 900))
print(json.dumps([sorted(threads), "log_lake.lake.watch" in sys.modules]))
"""


def test_what_takes_long_to_import_is_imported_beside_the_loop_of_the_triggerer(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOW, str(tmp_path / "nowhere")],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path / "airflow")},
        capture_output=True,
        text=True,
        timeout=1_200,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["[[false], true]"], done.stderr


LEAN = """
import asyncio, json, sys
from airflow_lake.triggers.transactions import TransactionTrigger

async def main():
    watching = TransactionTrigger(pools=["a"], lake=sys.argv[1], after={"a": [sys.argv[2], 0]}, pause=0.05)
    async for event in watching.run():
        return event.payload["version"]

print(json.dumps([asyncio.run(asyncio.wait_for(main(), 900)), "pandas" in sys.modules]))
"""


def test_a_triggerer_does_not_import_pandas_to_watch_pools(tmp_path: Path) -> None:
    """It would take 40 MB: Arrow imports it at the first value that it takes from Python."""
    pytest.importorskip("pandas")
    pool = Lake.create(str(tmp_path / "lake")).create_pool("a", key="k,s")
    pool.branch().append(pa.table({"k": [1], "s": ["x"], "t": [[{"u": 1.5}]]}))
    pool.branch().delete(where="k = 1")
    done = subprocess.run(
        [sys.executable, "-c", LEAN, str(tmp_path / "lake"), pool.config.id],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path / "airflow")},
        capture_output=True,
        text=True,
        timeout=1_200,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["[2, false]"], done.stderr


def test_a_trigger_is_made_again_from_what_airflow_keeps_of_it(tmp_path: Path) -> None:
    program = """
async def main():
    path, kwargs = trigger("b", "a", after={"a": ["id", 3]}).serialize()
    again = TransactionTrigger(**json.loads(json.dumps(kwargs)))
    return [path, again.serialize() == (path, kwargs), again.pools]
"""
    path = "airflow_lake.triggers.transactions.TransactionTrigger"
    assert answer(tmp_path, program) == [path, True, ["a", "b"]]
