"""Random histories of a pool from which others are derived, and the oracle: the query over the version it names."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lake_core.errors import InvalidInput, LakeError, NotFound
from lake_core.ids import IdSource
from lake_core.journal import write_state
from log_lake.agents.checkpoint.run import purge_pool
from log_lake.agents.retention.expire import expire
from log_lake.agents.tombstones import run as tombstones
from log_lake.derived.create import derive
from log_lake.derived.settings import derive_policy_of
from log_lake.derived.standing import version_of_source
from log_lake.derived.step import keep
from log_lake.erasure.run import erase
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.system_tables.sql import query
from log_lake.vacuum.execute import vacuum
from tests.support.clocks import Clock
from tests.support.stores import MemoryStore

KEYS, NAMES = 24, ("ann", "bob", "cid", None)

QUERIES = {
    "by a prefix": "SELECT k // 4 AS b, who, count(*) AS n, sum(v) AS s, min(v) AS low, max(v) AS high, "
    "count(DISTINCT v) AS d, avg(v) AS mean FROM p GROUP BY ALL",
    "by another field": "SELECT coalesce(who, '-') AS w, count(*) AS n, sum(v) AS s FROM p WHERE v > 2 "
    "GROUP BY w HAVING count(*) > 1",
    "by NULL": "SELECT count(*) AS n, who FROM p GROUP BY who",
    "without groups": "SELECT k, upper(who) AS who, v + 1 AS v FROM p WHERE v % 2 = 0",
    "everything": "SELECT * FROM p",
}
OF_AGGREGATES = {
    "by a prefix": "SELECT k // 4 AS b, count(*) AS n, sum(v) AS s FROM p GROUP BY b",
    "by the sum": "SELECT v % 3 AS m, count(*) AS n, max(v) AS high FROM p GROUP BY m",
    "everything": "SELECT * FROM p WHERE v > 3",
}
CHAIN = "SELECT b, sum(n) AS n, max(s) AS s FROM d0 GROUP BY b"

STEPS = (
    ["load"] * 6
    + ["delete_keys", "delete_where", "delete_range", "replace", "replace_keys", "compact", "apply", "branch"]
    + ["merge", "merge", "revert", "revert", "checkpoint", "purge", "vacuum", "expire", "erase", "wide"]
)


@dataclass
class History:
    """What happens to the pool `p`, by chance, and the pools that are derived from it."""

    kind: str
    chance: random.Random
    counts: dict[str, int] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore("memory://derived", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        inline = self.chance.choice(["0", "64KiB"])
        aggregates = {"v": "sum"} if self.kind == "aggregate" else {}
        own = {"load.inline": inline, "vacuum.grace": "1h"}
        self.pool = self.lake.create_pool("p", key="k", kind=self.kind, aggregates=aggregates, settings=own)
        first = {
            "k": list(range(0, KEYS, 5)),
            "v": [1, 4, 2, 6, 5],
            "who": ["ann", "bob", None, "cid", "ann"],
        }
        names = [name for name in self.schema().names if name in first]
        self.pool.branch().append(pa.table({name: first[name] for name in names}))
        queries = OF_AGGREGATES if self.kind == "aggregate" else QUERIES
        self.derived: dict[str, str] = {}
        for at, sql in enumerate(queries.values()):
            entries = self.chance.choice(["1", "2", "1000"])
            key = "n" if sql == QUERIES["by NULL"] else ""
            derive(self.lake, f"d{at}", source="p", query=sql, key=key, settings={"derive.entries": entries})
            self.derived[f"d{at}"] = sql
        derive(self.lake, "chain", source="d0", query=CHAIN)
        self.derived["chain"] = CHAIN

    def step(self, what: str) -> None:
        """One step; what is refused is left out."""
        self.clock.now += 1
        self.number += 1
        branches = sorted(self.pool.history.load().state.branches)
        branch = "main" if self.chance.random() < 0.6 else self.chance.choice(branches)
        try:
            getattr(self, what)(branch)
        except LakeError:
            what = f"{what}, refused"
        self.counts[what] = self.counts.get(what, 0) + 1

    def rows(self) -> pa.Table:
        rows: list[dict[str, Any]] = []
        near = self.chance.randrange(KEYS)
        for _ in range(self.chance.randint(1, 8)):
            wide = self.chance.random() < 0.3
            key = self.chance.randrange(KEYS) if wide else (near + self.chance.randrange(3)) % KEYS
            row: dict[str, Any] = {"k": key, "v": self.chance.randrange(9)}
            if self.kind != "aggregate":
                row["who"] = self.chance.choice(NAMES)
            if self.kind == "upsert":
                row["_deleted"] = self.chance.random() < 0.15
            rows.append(row)
        return pa.Table.from_pylist(rows).cast(self.schema())

    def schema(self) -> pa.Schema:
        fields = [("k", pa.int64()), ("v", pa.int64())]
        fields += [] if self.kind == "aggregate" else [("who", pa.string())]
        return pa.schema(fields + ([("_deleted", pa.bool_())] if self.kind == "upsert" else []))

    def load(self, branch: str) -> None:
        self.pool.branch(branch).append(self.rows())

    def wide(self, branch: str) -> None:
        """More keys than a condition of a pair of fields can name."""
        rows = [{"k": n % KEYS, "v": n % 7, "who": f"w{n}"} for n in range(300)]
        if self.kind == "append" and self.chance.random() < 0.2:
            self.pool.branch(branch).append(pa.Table.from_pylist(rows))

    def delete_keys(self, branch: str) -> None:
        keys = pa.table({"k": [self.chance.randrange(KEYS) for _ in range(3)]})
        self.pool.branch(branch).delete_keys(keys)

    def delete_where(self, branch: str) -> None:
        on_key = self.kind == "aggregate" or self.chance.random() < 0.4
        self.pool.branch(branch).delete(where="k in (3, 7)" if on_key else "who = 'ann'")

    def span(self) -> Any:
        low = self.chance.randrange(KEYS)
        return self.pool.at().key_range(low=low, high=low + self.chance.randint(1, 6))

    def delete_range(self, branch: str) -> None:
        self.pool.branch(branch).delete(key_range=self.span())

    def replace(self, branch: str) -> None:
        low = self.chance.randrange(KEYS)
        table = pa.table({"k": [low], "v": [self.chance.randrange(9)]})
        self.pool.branch(branch).replace_with(
            table, key_range=self.pool.at().key_range(low=low, high=low + 3)
        )

    def replace_keys(self, branch: str) -> None:
        self.pool.branch(branch).replace_keys(self.rows())

    def compact(self, branch: str) -> None:
        held = self.pool.at(branch).references
        if not held:
            return
        chosen = (
            held if self.kind == "aggregate" else self.chance.sample(held, self.chance.randint(1, len(held)))
        )
        compact(self.pool.branch(branch), chosen)

    def apply(self, branch: str) -> None:
        tombstones.apply(self.pool.branch(branch), now=self.clock.now, at_once=True)

    def branch(self, branch: str) -> None:
        self.pool.create_branch(f"b{self.number}", at=branch)

    def merge(self, branch: str) -> None:
        forks = {name: one.fork for name, one in self.pool.history.load().state.branches.items()}
        name = self.chance.choice(
            sorted(name for name, fork in forks.items() if fork is not None) or ["none"]
        )
        fork = forks.get(name)
        if fork is not None:
            self.pool.branch(fork.parent).merge(name)

    def revert(self, branch: str) -> None:
        newest = self.pool.history.load().version
        self.pool.branch(branch).revert(str(max(1, newest - self.chance.randrange(4))))

    def checkpoint(self, branch: str) -> None:
        history = self.pool.history
        write_state(history.journal, history.load(), id=self.pool.context.ids.new(), now=self.clock.now)

    def purge(self, branch: str) -> None:
        if self.chance.random() < 0.5:
            self.checkpoint(branch)
            self.clock.now += 86_400
            purge_pool(self.lake, "p", keep=0.0, now=self.clock.now)

    def vacuum(self, branch: str) -> None:
        if self.chance.random() < 0.5:
            vacuum(self.pool)
            self.clock.now += 86_400
            vacuum(self.pool)

    def expire(self, branch: str) -> None:
        records = str(self.chance.randint(10, 60))
        self.lake.catalog.configure("p", {"expire.records": records})
        self.pool = self.lake.pool("p")
        expire(self.pool, branch="main")

    def erase(self, branch: str) -> None:
        where = "k = 5" if self.kind == "aggregate" else "who = 'bob'"
        if self.chance.random() < 0.4:
            erase(self.lake.pool("p"), where=where)

    # --- the oracle

    def check(self, name: str) -> None:
        """One step of a derived pool; then it holds what its query has over the version that it names."""
        pool = self.lake.pool(name)
        try:
            done = keep(self.lake, pool)
            computed = "all" if done.groups is None else "some" if done.groups else "none"
        except InvalidInput as error:  # no record has the field any more, and so says the query itself
            if "Binder Error" not in str(error):
                raise
            computed = "nothing: no such field"
        self.counts[f"computed {computed}"] = self.counts.get(f"computed {computed}", 0) + 1
        expected = self.expected(pool)
        assert expected is None or self.held(name) == expected, (name, computed)

    def held(self, name: str) -> list[str]:
        return _sorted(self.lake, f"SELECT * FROM {name}") if self.lake.pool(name).at().references else []

    def expected(self, pool: Pool) -> list[str] | None:
        """What the query has; None if it does not fit the fields of that version, and so the pool stays."""
        policy = derive_policy_of(pool.settings)
        assert policy is not None
        version = version_of_source(pool.at().state, policy)
        source = "d0" if pool.name == "chain" else "p"
        try:
            loaded = self.lake.pool(source).history.load_version(version)
            if version in {one.tip for one in loaded.state.branches.values()}:  # it may mean another branch
                version = loaded.state.branches["main"].tip
            view = self.lake.pool(source).at(str(version))
        except NotFound:  # purged: SQL cannot name the records of main
            return None
        if not any(table.num_rows for table in view.scan()):
            return []
        sql = self.derived[pool.name].replace(f" FROM {source}", f' FROM "{source}@{version}"')
        try:
            return _sorted(self.lake, sql)
        except InvalidInput as error:
            if "Binder Error" not in str(error):
                raise
            return None


def _sorted(lake: Lake, sql: str) -> list[str]:
    """The records, without NULL: of a star, fields that no record has any more stay in the derived pool."""
    rows = query(lake, sql).read_all().to_pylist()
    return sorted(repr(sorted((k, v) for k, v in row.items() if v is not None)) for row in rows)


def run(kind: str, seed: int, *, steps: int) -> dict[str, int]:
    """One history; after each few steps some derived pool takes a step, and is compared."""
    chance = random.Random(seed)
    history = History(kind, chance)
    for _ in range(steps):
        history.step(chance.choice(STEPS))
        for name in history.derived:
            if chance.random() < 0.35:
                history.check(name)
    for name in history.derived:
        history.check(name)
    return history.counts
