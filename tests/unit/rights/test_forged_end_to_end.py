"""A forged thing of one pool, with right checksums, before every agent and command: only that pool is affected.

The other pool is worked on as in a sound lake.  Who works on the forged pool alone asks the store for nothing of
another one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import LakeError
from lake_core.store import ObjectInfo
from local.rights import Operation
from log_lake.agents.roster import AGENTS
from log_lake.console.logged import error_text
from log_lake.erasure.begin import begin
from log_lake.lake import Lake
from log_lake.stores import memory
from log_lake.stores.memory import MemoryStore
from log_lake.view.overview import Overview
from spark_apps.command import run_agent
from tests.support.command import DONE, Command
from tests.support.forged import EMPTY_PLAN, FORGERIES, OTHER_PLAN, RECEIPT, Target
from tests.support.rights import RightsStore

each_forgery = pytest.mark.parametrize("what", FORGERIES)
AGENTS_OF_ALL = [name for name in AGENTS if name != "intervals"]
"""The agents that look for work in all pools."""

SEEN: dict[str, tuple[str, ...]] = {
    "ls": ("ls", "--json"),
    "dropped": ("ls", "--dropped", "--json"),
    "scan": ("scan", "b", "--format", "json"),
    "log": ("log", "b", "--json"),
    "query": ("query", "SELECT count(*) AS n FROM b", "--format", "json"),
    "references": ("query", 'SELECT count(*) AS n FROM "b:references"', "--format", "json"),
    "export": ("export", "b"),
    "erasures": ("erasures", "b", "--json"),
    "leases": ("leases", "b", "--json"),
    "tags": ("tags", "b", "--json"),
}
"""What a person sees of the other pool."""

OF_ALL: tuple[tuple[str, ...], ...] = (
    ("ls",),
    ("fsck",),
    ("tags",),
    ("tags", "--cost"),
    ("leases",),
    ("erasures",),
    ("jobs",),
    ("export",),
    ("vacuum", "--dropped", "--dry-run"),
    ("query", "SELECT count(*) FROM a"),
)
"""Commands that look at all pools, or at the forged one in SQL."""

OF_ONE: tuple[tuple[str, ...], ...] = (
    ("show", "a"),
    ("log", "a"),
    ("tags", "a", "--cost"),
    ("branch", "a"),
    ("scan", "a"),
    ("get", "a", "1"),
    ("explain", "a", "1"),
    ("leases", "a"),
    ("parked", "a"),
    ("erasures", "a"),
    ("publish", "a", "--status"),
    ("fsck", "a", "--data"),
    ("rebuild", "a", "--name", "rebuilt", "--dry-run"),
    ("repair", "a", "--transaction", "9" * 27, "--dry-run"),
    ("vacuum", "a", "--dry-run"),
    ("vacuum", "a", "--plan", OTHER_PLAN),
    ("vacuum", "a", "--plan", EMPTY_PLAN),
    ("erase", "a", "--where", "k = 3", "--dry-run"),
    ("erase", "a", "--resume", RECEIPT, "--yes"),
    ("delete", "a", "--where", "k = 2"),
    ("tag", "a", "new"),
    ("branch", "a", "dev"),
    ("merge", "a", "dev"),
    ("revert", "a", "2"),
    ("compact", "a"),
    ("tombstones", "a", "--at-once"),
    ("checkpoint", "a"),
    ("expire", "a"),
    ("erase", "a", "--where", "k = 3", "--yes"),
    ("vacuum", "a", "--grace", "0s", "--every-name"),
    ("purge", "a", "--keep", "0s"),
    ("publish", "a"),
    ("set", "a", "compact.depth=3"),
    ("rename", "a", "c"),
    ("drop", "c", "--yes"),
    ("restore", "c"),
    ("scan", "c"),
)
"""Everything that a person can do to the forged pool."""


def build(store: MemoryStore, landing: Path) -> None:
    """Two pools in which every agent finds work."""
    lake = Lake.create_on(store)
    for name in ("a", "b"):
        (landing / name).mkdir()
        (landing / name / "1.ndjson").write_text('{"k": 20}\n')
        settings = {
            "ingest.source": str(landing / name),
            "compact.depth": "2",
            "tombstones.apply": "0s",
            "checkpoint.entries": "2",
            "expire.records": "1000",
            "history.keep": "0s",
            "vacuum.grace": "0s",
        }
        pool = lake.create_pool(name, key="k", settings=settings)
        for n in range(5):
            pool.branch().append(pa.table({"k": [1, 2, n + 3]}))
        pool.branch().delete(where="k = 2")
    lake.pool("a").tag("kept", at="main")
    begin(lake.pool("b"), where="k = 4")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    store = MemoryStore("memory://sound")
    build(store, tmp_path_factory.mktemp("landing"))
    return store


def copied(store: MemoryStore, uri: str) -> MemoryStore:
    copy = MemoryStore(uri)
    for info in store.list(""):
        copy.put(info.name, store.get(info.name) or b"")
    return copy


def forged(sound: MemoryStore, what: str, uri: str) -> MemoryStore:
    """A copy of the lake with what is forged."""
    store = copied(sound, uri)
    for name, data in FORGERIES[what](Target.of(sound)).items():
        if data is None:
            store.delete(name)
        else:
            store.put(name, data)
    return store


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    """Commands on a lake in memory, of a URI of its own."""
    uri = f"memory://{tmp_path.name}"
    yield Command(uri, tmp_path)
    memory._NAMED.pop(uri, None)


def objects_of(store: MemoryStore, pool: str) -> Mapping[str, bytes]:
    return {info.name: store.get(info.name) or b"" for info in store.list(pool)}


def failure_of(agent: str, lake: Lake, **request: Any) -> str:
    """What a run of the agent says that failed; nothing if all was done.  It may raise errors of the lake alone."""
    try:
        run_agent(agent, request, lake=lake)
    except LakeError as error:
        return error_text(error)
    return ""


def work_on_all(store: MemoryStore, command: Command) -> dict[str, Any]:
    """What becomes of the pool `b`, and is seen of it, if all agents and commands work on the lake."""
    memory._NAMED[store.uri] = store
    seen: dict[str, Any] = {}

    for words in OF_ALL:
        command.run(*words)  # asserts that an error is one line
    for agent in AGENTS_OF_ALL:
        assert " b:" not in f" {failure_of(agent, Lake.open_on(store))}", "it failed in the other pool"
    (row,) = (row for row in Overview(time.monotonic).table(Lake.open_on(store)).pools if row.pool == "b")
    assert not row.error
    b = Lake.open_on(store).pool("b")
    seen["figures"] = (b.at().depth, len(b.at().references), sorted(b.at().to_table()["k"].to_pylist()))
    seen["objects"] = len(list(store.list(naming.data(b.config.id))))
    for what, words in SEEN.items():
        ran = command.run(*words) if what == "ls" else command(*words)
        lines = [line for line in ran.out.splitlines() if what != "ls" or '"pool":"b"' in line]
        seen[what] = lines if what in ("scan", "query", "references", "export") else len(lines)
    return seen


@pytest.fixture(scope="module")
def expected(sound: MemoryStore, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What becomes of the pool `b` in a sound lake."""
    store = copied(sound, "memory://expected")
    done = work_on_all(store, Command(store.uri, tmp_path_factory.mktemp("expected")))
    assert done["figures"][0] == 1, "the agents have done their work"
    assert 4 not in done["figures"][2]
    assert 20 in done["figures"][2]
    return done


@pytest.mark.slow
@each_forgery
def test_agents_and_commands_do_to_the_other_pool_what_they_do_in_a_sound_lake(
    sound: MemoryStore, expected: dict[str, Any], command: Command, what: str
) -> None:
    assert work_on_all(forged(sound, what, command.uri), command) == expected


class Watching(RightsStore):
    """A store that denies what is below the folders of pools beside one, listings too."""

    def __init__(self, behind: MemoryStore, others: frozenset[str]) -> None:
        super().__init__(behind, lambda operation, name: not self.is_others(name))
        self.others = others

    def is_others(self, name: str) -> bool:
        return name.partition("/")[0] in self.others

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        if self.is_others(prefix):
            self.denied.add((Operation.LIST, prefix))
        return super().list(prefix, after=after)


@pytest.mark.slow
@each_forgery
def test_who_works_on_the_forged_pool_asks_for_nothing_of_another(
    sound: MemoryStore, command: Command, what: str
) -> None:
    store = forged(sound, what, command.uri)
    target = Target.of(sound)
    before = objects_of(store, target.b)
    watching = Watching(store, frozenset({target.b}))
    memory._NAMED[command.uri] = cast(Any, watching)
    for words in OF_ONE:
        command.run(*words)  # asserts that an error is one line
    for agent in AGENTS_OF_ALL:
        failure_of(agent, Lake.open_on(watching), pools=["a"])
    assert watching.denied == set()
    assert objects_of(store, target.b) == before


def test_the_commands_on_a_sound_pool_do_something(sound: MemoryStore, command: Command) -> None:
    store = copied(sound, command.uri)
    memory._NAMED[command.uri] = store
    failed = {words: ran for words in OF_ONE if (ran := command.run(*words).status) != DONE}
    assert {words[0] for words in failed} <= {"repair", "vacuum", "erase", "merge", "revert", "publish"}, (
        failed
    )
