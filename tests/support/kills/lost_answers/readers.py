"""Checks that every reader finds what the model says: each branch and tag by a scan, and some in all other
ways."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from lake_core.errors import NotFound, ObjectVacuumed
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.system_tables import query
from tests.support.command import Command
from tests.support.kills.lost_answers.model import Content, Model, Record, content_of

KEYS = 40
"""All keys of records are below this number."""


def span(chance: random.Random) -> tuple[int, int]:
    """Draws some neighbouring keys: the first, and the one after the last."""
    low = chance.randrange(KEYS)
    return low, min(KEYS, low + chance.randint(1, 8))


@dataclass
class Report:
    """Counts what happened, to be shown at the end."""

    kills: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    committed_though_killed: int = 0
    compared: int = 0
    old_versions: int = 0
    longest: float = 0.0


class Readers:
    """Readers of the lake at its own address; `scan` reads a branch by the command, through the proxy."""

    def __init__(
        self,
        lake: Command,
        models: dict[str, Model],
        chance: random.Random,
        report: Report,
        *,
        scan: Callable[[str, str], list[Record]],
    ) -> None:
        self.lake, self.models, self.chance, self.report = lake, models, chance, report
        self.scan = scan

    def branches(self, pool: str) -> set[str]:
        """The names of the pool's branches."""
        return {each["name"] for each in self.lake("branch", pool, "--json").records}

    def tags(self, pool: str) -> set[str]:
        """The names of the pool's tags."""
        return {each["name"] for each in self.lake("tags", pool, "--json").records}

    def compare(self, pool: str) -> None:
        """Compares every branch and tag by scans, and one of them in all other ways to read."""
        model = self.models[pool]
        lake = Lake.open(self.lake.uri)
        opened = lake.pool(pool)
        assert self.branches(pool) == set(model.lines)
        for name in model.lines:
            self.same(pool, name, content_of(opened.at(name).to_table().to_pylist()), model.content(name))
        for name, content in model.tags.items():
            found = content_of(opened.at(name).to_table().to_pylist())
            self.same(pool, name, found, model.without_erased(content))
        newest = opened.at().version
        if self.chance.random() < 0.3:
            self.read_every_way(lake, pool, self.chance.choice(list(model.lines)))
        model.versions[newest] = model.content()
        self.read_back(opened, pool)

    def read_every_way(self, lake: Lake, pool: str, name: str) -> None:
        """Reads ranges, keys, conditions and SQL, and by the command through the proxy."""
        expected = self.models[pool].content(name)
        view = lake.pool(pool).at(name)
        low, high = span(self.chance)
        some = Counter({r: n for r, n in expected.items() if low <= r[0] < high})
        if view.records:
            tables = list(view.scan(key_range=view.key_range(low=low, high=high)))
            found = content_of([r for t in tables for r in t.to_pylist()])
            self.same(pool, f"{name} {low}-{high}", found, some)
            one = Counter({r: n for r, n in expected.items() if r[0] == low})
            self.same(pool, f"{name} {low}", content_of(view.get(low).to_pylist()), one)
            words = f"k >= {low} and k < {high}"
            self.same(pool, words, content_of(view.to_table(where=words).to_pylist()), some)
            (count,) = query(lake, f'SELECT count(*) AS n FROM "{pool}@{name}"').read_all().to_pylist()
            assert count["n"] == expected.total(), (
                f"{pool}@{name}: count {count['n']}, not {expected.total()}"
            )
        self.same(pool, f"{name} by the command", content_of(self.scan(pool, name)), expected)

    def read_back(self, opened: Pool, pool: str) -> None:
        """Checks that an older version holds what it held, except what was erased, or that the lake says that it
        is gone."""
        model = self.models[pool]
        version = self.chance.choice(list(model.versions))
        try:
            found = content_of(opened.at(str(version)).to_table().to_pylist())
        except (NotFound, ObjectVacuumed):
            return
        self.report.old_versions += 1
        # a version may be one of another branch: then it says nothing of main
        log = {entry["version"]: entry["branch"] for entry in self.lake("log", pool, "--json").records}
        if log.get(version) == "main":
            self.same(pool, f"version {version}", found, model.without_erased(model.versions[version]))

    def same(self, pool: str, what: str, found: Content, expected: Content) -> None:
        """Raises AssertionError if they differ; the message shows what is missing and what is too much."""
        self.report.compared += 1
        assert found == expected, (
            f"{pool} {what}: missing {dict(expected - found)}, too much {dict(found - expected)}"
        )
