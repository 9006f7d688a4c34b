"""The process that `tests/unit/rights/test_watched.py` watches: it reads and maintains a pool that others have
changed.

    python -m tests.support.watched_work FOLDER COUNT [SEED]

In FOLDER it makes a lake, and beside it a folder of files that do not belong to the lake. Then it changes
things of each kind below the folder of one pool, COUNT times in all: names and ids in them become names of
other places, and other parts change at random. After each change all readers and agents of the pool work on it.
The files that it asks the system for between two marks must be that pool's alone. After the second mark it
opens files of other places on purpose, so that the test knows that the watcher would have seen that.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from lake_core.errors import LakeError
from lake_core.records.codec import frame, unframe
from log_lake.lake import Lake
from log_lake.stores.local import LocalStore
from tests.support.crafted import crafted, rows_of
from tests.support.mutations import _places
from tests.support.records import an_id
from tests.support.stored_kinds import KINDS
from tests.support.stored_things import World, asks_of_pool, build, relinked, upkeep

BEGIN, END = "/the-watch-begins", "/the-watch-ends"
"""Names of files that do not exist; asking for them sets the marks."""

LAKE, CANARY = "lake", "canary"


class WatchedLake:
    """The lake, with a pool that is restored after each change."""

    def __init__(self, folder: Path) -> None:
        for name in ("data", "journal"):
            (folder / CANARY / name).mkdir(parents=True)
        for number in range(3):
            (folder / CANARY / f"{number}.parquet").write_text("a file of no lake\n")
        self.store = LocalStore(folder / LAKE)
        self.world = build(self.store)
        self.own = {name: data for name, data in self.world.objects.items() if name.startswith(self.world.a)}
        others = [name for name in self.world.objects if "/data/" in name and name not in self.own]
        other = others[0].partition("/")[0]
        self.names = (
            *(f"../../{others[0]}", f"../../{other}", other, Path(others[0]).stem, "../../lake.json"),
            *(f"../../../{CANARY}/0.parquet", f"../../../{CANARY}/1", str(folder / CANARY / "2.parquet")),
            *("..", f"../../../{CANARY}", f"{'9' * 27}/../../../../{CANARY}/0"),
        )

    @contextlib.contextmanager
    def changed(self, writes: dict[str, bytes | None]) -> Iterator[None]:
        """Within the block these objects are changed."""
        for name, data in writes.items():
            if data is None:
                self.store.delete(name)
            else:
                self.store.put(name, data)
        try:
            yield
        finally:
            for info in list(self.store.list(self.world.a)):
                if info.name not in self.own:
                    self.store.delete(info.name)
            for name, data in self.own.items():
                if self.store.get(name) != data:
                    self.store.put(name, data)

    def work(self) -> None:
        """Runs all readers of the pool, and all its maintenance."""
        for asks in (asks_of_pool, upkeep):
            with contextlib.suppress(LakeError):
                for what, ask in asks(self.world):
                    if what != "drop":  # which writes to the list of pools
                        with contextlib.suppress(LakeError):
                            ask()


def with_name(value: Any, names: tuple[str, ...], rng: random.Random) -> Any:
    """Returns the value, in which one of its texts, mostly an id, is replaced by the name of another place."""
    places = [(holder, at) for holder, at in _places(value) if isinstance(holder[at], str)]
    ids = [(holder, at) for holder, at in places if len(holder[at]) >= 27]
    if places:
        holder, at = rng.choice(ids if ids and rng.random() < 0.7 else places)
        holder[at] = rng.choice(names)
    return value


def renamed(lake: WatchedLake, seen: World, name: str, rng: random.Random) -> dict[str, bytes | None] | None:
    """Returns the thing with a name in it that leads to another place; None if it has no names."""
    data = seen.objects[name]
    if "/marks/" in name:
        journal = Lake.open_on(lake.store).pool("a").history.journal
        rows = rows_of(journal)
        row = rng.choice([one for one in rows if one["object"] or one["value"]])
        if row["object"] and rng.random() < 0.8:
            row["object"] = rng.choice(lake.names)
        elif row["value"] and row["section"] not in ("schema", "lift"):
            value = with_name(msgspec.msgpack.decode(row["value"]), lake.names, rng)
            row["value"] = msgspec.msgpack.encode(value)
        with contextlib.suppress(ValueError, TypeError, LakeError):
            new, changed = crafted(journal, rows, id=an_id(77))
            return {name: None, new: changed}
        return None
    if data.startswith(b"LKJ"):
        value = with_name(msgspec.msgpack.decode(unframe(data, name=name)), lake.names, rng)
        entry = frame(msgspec.msgpack.encode(value))
        return dict(relinked(seen, name, entry)) if "/requests/" not in name else {name: entry}
    if data.startswith(b"{"):
        return {name: json.dumps(with_name(json.loads(data), lake.names, rng)).encode()}
    return None


def main(folder: Path, count: int, seed: str) -> None:
    """Makes the lake, changes it between the marks, and then strays."""
    logging.disable(logging.CRITICAL)
    lake = WatchedLake(folder)
    lake.work()  # so that what is imported late is there
    with lake.changed({}):
        pass
    with contextlib.suppress(OSError):
        os.stat(BEGIN)
    for kind, of in KINDS.items():
        if not of.alone:
            continue
        seen = of.of(lake.world)
        names = seen.names_like(of.pattern)
        lacking: dict[str, bytes | None] = {n: None for n in lake.own if n not in seen.objects}
        lacking |= {n: data for n, data in seen.objects.items() if n.startswith(lake.world.a)}
        for number in range(count):
            rng = random.Random(f"{seed} {kind} {number}")
            name = rng.choice(names)
            writes = renamed(lake, seen, name, rng) if number % 2 == 0 else None
            writes = writes or of.change(seen, name, rng)
            if writes:
                with lake.changed(lacking | dict(writes)):
                    lake.work()
    with contextlib.suppress(OSError):
        os.stat(END)
    stray(folder, lake)


def stray(folder: Path, lake: WatchedLake) -> None:
    """Reads, writes and deletes files that the watcher must notice."""
    pool = folder / LAKE / lake.world.a
    (pool / "../../canary/0.parquet").read_text()
    os.chdir(pool)
    Path("../../canary/1.parquet").unlink()
    descriptor = os.open(folder / CANARY, os.O_RDONLY)
    os.rename("2.parquet", "3.parquet", src_dir_fd=descriptor, dst_dir_fd=descriptor)
    Path("/etc/hostname").exists()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
