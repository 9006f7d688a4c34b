"""The account of processes that are killed while they transact: what they noted, against what the pools hold.

It is plain Python over notes and counts, so that no code of the lake judges itself.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROWS = 3
"""Records of a transaction in each of its pools."""

FIRST = "first"
"""The write that each pool begins with."""


@dataclass(frozen=True)
class Notes:
    """A file of what a process did, a line each; the last line may be half of one."""

    path: Path

    def add(self, **what: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(what | {"at": time.time()}) + "\n")

    def all(self) -> Iterator[dict[str, Any]]:
        if self.path.exists():
            for line in self.path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    yield json.loads(line)


@dataclass
class Account:
    """What the notes say; times are seconds since 1970."""

    pools: dict[str, set[str]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    committing: dict[str, float] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    taken_over: int = 0
    loads: dict[str, str] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)
    deleting: set[str] = field(default_factory=set)
    reads: int = 0
    seen: dict[str, tuple[float, float, set[str]]] = field(default_factory=dict)
    """When a write was first seen by a reader (its begin and end), and in which pools."""
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path) -> Account:
        account = cls()
        for path in sorted(folder.iterdir()):
            for line in Notes(path).all():
                account.take(line)
        for path in sorted(folder.glob("read-*")):
            account.take_reads(list(Notes(path).all()))
        return account

    def take(self, line: dict[str, Any]) -> None:
        match line:
            case {"begun": name, "id": id, "pools": pools}:
                self.pools[name], self.ids[name] = set(pools), id
            case {"committing": name, "at": at}:
                self.committing[name] = min(at, self.committing.get(name, at))
            case {"acknowledged": name}:
                self.acknowledged.add(name)
            case {"refused": name}:
                self.refused.add(name)
            case {"again": _}:
                self.taken_over += 1
            case {"loading": name, "pool": pool}:
                self.loads[name] = pool
            case {"loaded": name}:
                self.loaded.add(name)
            case {"deleting": name}:
                self.deleting.add(name)
            case {"wrong": what}:
                self.wrong.append(what)

    def take_reads(self, lines: list[dict[str, Any]]) -> None:
        """Of one reader, in order."""
        for line in lines:
            for name, pools in line.get("new", {}).items():
                if name in self.pools and set(pools) != self.pools[name]:
                    self.wrong.append(f"{name} over {sorted(self.pools[name])} is seen in {pools}")
                if name in self.pools and not self.committing.get(name, 1e18) <= line["ended"]:
                    self.wrong.append(f"{name} is seen before its commit began")
                first = self.seen.get(name)
                if first is None or line["ended"] < first[1]:
                    self.seen[name] = line["began"], line["ended"], set(pools)
            self.reads += "new" in line
            if lost := [name for name in line.get("gone", ()) if name not in self.deleting]:
                self.wrong.append(f"seen, and then not any more: {lost}")

    def check_decisions(self, decided: dict[str, tuple[float, bool]]) -> None:
        """Nobody saw a transaction before its decision, whose time the store tells."""
        for name, (_, ended, _) in self.seen.items():
            if name not in self.ids:
                continue
            made, committed = decided.get(self.ids[name], (1e18, False))
            if not committed or made > ended:
                self.wrong.append(f"{name} is seen at {ended}, and its decision is of {made}: {committed}")

    def check_end(self, found: dict[str, Counter[str]]) -> None:
        """The pools, when nobody acts any more."""
        where: dict[str, set[str]] = {}
        for pool, writes in found.items():
            for name, times in writes.items():
                where.setdefault(name, set()).add(pool)
                if times != ROWS:
                    self.wrong.append(f"{name} has {times} records in {pool}")
        for name, pools in self.pools.items():
            there = where.pop(name, set())
            if there not in (set(), pools):
                self.wrong.append(f"half: {name} over {sorted(pools)} is in {sorted(there)}")
            if name in self.acknowledged and not there:
                self.wrong.append(f"lost: {name} was acknowledged")
            if name in self.refused and there:
                self.wrong.append(f"{name} was refused, and is there")
            if there and name not in self.committing:
                self.wrong.append(f"{name} is there, and nobody committed it")
            if name in self.seen and not there:
                self.wrong.append(f"{name} was seen, and is not there")
        for name, pool in self.loads.items():
            there = where.pop(name, set())
            if there not in (set(), {pool}):
                self.wrong.append(f"{name} was loaded into {pool}, and is in {there}")
            if name in self.loaded - self.deleting and not there:
                self.wrong.append(f"lost: {name} was loaded into {pool}")
        if where.keys() - {FIRST}:
            self.wrong.append(f"nobody wrote {sorted(where)}")
