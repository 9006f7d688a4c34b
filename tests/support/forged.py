"""Makes things that a writer of one pool's folder can forge: their checksums are right, but their content is
wrong.

`FORGERIES` has what is written for each. Most of their values can be decoded, but lead to another place.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from lake_core import naming
from lake_core.keys.encoding import encode_value
from lake_core.records.codec import checksum_of, frame
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.crafted import Row, crafted, row, rows_of
from tests.support.records import an_id

Writes = Mapping[str, bytes | None]
"""By name, the objects that are written; None for one that is deleted."""

OTHER_PLAN, EMPTY_PLAN, RECEIPT = an_id(31), an_id(32), an_id(33)
"""The ids of forged plans, and of a forged receipt."""

ESCAPE = "ann\n\x1b[2Jb: this pool is damaged\u202e"
"""A text that would change the line in which it is printed unescaped."""


@dataclass(frozen=True)
class Target:
    """A lake that is attacked: `a` and `b` are ids of pools, `own` and `other` objects of these. The forger may
    write below `a`."""

    store: MemoryStore
    a: str
    b: str
    own: str
    other: str

    @classmethod
    def of(cls, store: MemoryStore) -> Target:
        """Returns the target for the lake on the store, which has the pools `a` and `b`."""
        lake = Lake.open_on(store)
        a, b = lake.pool("a"), lake.pool("b")
        first = [pool.at().references[0].object for pool in (a, b)]
        return cls(store, a.config.id, b.config.id, *first)

    @property
    def journal(self) -> str:
        """The attacked pool's journal."""
        return naming.pool_journal(self.a)

    @property
    def newest(self) -> int:
        """The version of its newest entry."""
        versions = (naming.entry_version(info.name) for info in self.store.list(self.journal))
        return max(version for version in versions if version is not None)

    @property
    def tip(self) -> int:
        """The version of the newest transaction on its branch `main`."""
        return Lake.open_on(self.store).pool("a").at().held.tip

    @property
    def schema(self) -> str:
        """The id of the attacked pool's schema."""
        return Lake.open_on(self.store).pool("a").at().references[0].schema


Forge = Callable[[Target], Writes]


def transaction(t: Target, *actions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Returns a transaction with these actions, which follows the newest one on `main`."""
    made = {"id": an_id(900), "branch": "main", "parent": t.tip, "base": t.newest}
    return made | {"time": int(time.time() * 1e6), "author": "mallory", "actions": list(actions)} | fields


def entry(t: Target, *transactions: Mapping[str, Any], previous: int | None = None) -> Writes:
    """Returns the next entry of the journal."""
    before = t.store.get(naming.entry(t.journal, t.newest)) or b""
    made = {"id": an_id(900), "transactions": list(transactions)}
    made["previous"] = checksum_of(before) if previous is None else previous
    return {naming.entry(t.journal, t.newest + 1): frame(msgspec.msgpack.encode(made))}


def acts(*actions: Callable[[Target], dict[str, Any]] | dict[str, Any], **fields: Any) -> Forge:
    """Forges an entry with a transaction of these actions."""

    def forge(t: Target) -> Writes:
        plain = [action(t) if callable(action) else action for action in actions]
        return entry(t, transaction(t, *plain, **fields))

    return forge


def added(object: Callable[[Target], str] | str, **fields: Any) -> Callable[[Target], dict[str, Any]]:
    """Returns a function that makes an action which adds an object."""

    def action(t: Target) -> dict[str, Any]:
        named = object(t) if callable(object) else object
        low, high = encode_value(1), encode_value(9)
        made = {"type": "add_object", "object": named, "records": 1, "size": 900, "schema": t.schema}
        return made | {"low": low, "high": high} | fields

    return action


def vacuum(t: Target) -> Writes:
    """Forges a confirmed vacuum of another pool's object: a process that continues it deletes the object."""
    seq = (t.newest + 2) << 16
    actions = (
        {"type": "discard", "objects": [t.other], "never_read": True},
        {"type": "begin_vacuum", "objects": [t.other]},
        {"type": "confirm_vacuum", "vacuum": seq},
    )
    writes: dict[str, bytes | None] = {}
    previous = checksum_of(t.store.get(naming.entry(t.journal, t.newest)) or b"")
    for number, action in enumerate(actions):
        one = transaction(t, action, branch="", parent=0, base=t.newest + number, id=an_id(900 + number))
        data = frame(
            msgspec.msgpack.encode({"id": an_id(900 + number), "transactions": [one], "previous": previous})
        )
        writes[naming.entry(t.journal, t.newest + 1 + number)] = data
        previous = checksum_of(data)
    return writes


def request(*actions: Callable[[Target], dict[str, Any]] | dict[str, Any], **fields: Any) -> Forge:
    """Forges a request of another writer; the next writer that collects requests commits it."""

    def forge(t: Target) -> Writes:
        plain = [action(t) if callable(action) else action for action in actions]
        made = {"id": an_id(22), "seen": t.newest, "time": int(time.time() * 1e6), "branch": "main"}
        made |= {"base": t.newest, "author": ESCAPE, "actions": plain} | fields
        return {naming.request(t.journal, an_id(22)): frame(msgspec.msgpack.encode(made))}

    return forge


def checkpoint(change: Callable[[Target, list[Row]], list[Row]]) -> Forge:
    """Forges a checkpoint of the newest version with other rows."""

    def forge(t: Target) -> Writes:
        journal = Lake.open_on(t.store).pool("a").history.journal
        name, data = crafted(journal, change(t, rows_of(journal)), id=an_id(77))
        return {name: data}

    return forge


def with_objects(rows: list[Row], object: str) -> list[Row]:
    return [one | {"object": object} if one["section"] == "reference" else one for one in rows]


def vacuum_row(t: Target, rows: list[Row]) -> list[Row]:
    value = {
        "objects": [t.other],
        "removals": [[1, 0]],
        "transaction_id": an_id(3),
        "time": 0,
        "confirmed": True,
    }
    begun = row("vacuum", f"{65_536:020d}".encode(), value=msgspec.msgpack.encode(value))
    return [*rows, begun, row("vacuuming", b"", value=msgspec.msgpack.encode({"horizon": 1}))]


def as_json(name: Callable[[Target], str], **fields: Callable[[Target], Any] | Any) -> Forge:
    """Forges an object in JSON."""

    def forge(t: Target) -> Writes:
        plain = {key: value(t) if callable(value) else value for key, value in fields.items()}
        return {name(t): json.dumps(plain).encode()}

    return forge


def receipt(**fields: Callable[[Target], Any] | Any) -> Forge:
    """Forges the receipt of a pending erasure, under the name `RECEIPT`."""
    sound: dict[str, Any] = {
        "format": 1,
        "id": RECEIPT,
        "lake": lambda t: Lake.open_on(t.store).id,
        "pool_id": lambda t: t.a,
        "pool": "a",
        "sub_pool": "",
        "low": "",
        "high": None,
        "where": "k = 1",
        "author": "mallory",
        "began": 1,
        "begun": 1,
    }
    return as_json(lambda t: naming.erasure(t.a, RECEIPT), **sound | fields)


def plan(id: str, **fields: Callable[[Target], Any] | Any) -> Forge:
    """Forges the plan of a vacuum of another pool's object."""
    sound: dict[str, Any] = {
        "id": id,
        "pool": lambda t: t.a,
        "version": 1,
        "time": 0.0,
        "objects": lambda t: [[t.other, 1, 0, 1]],
        "held": {},
        "begun": lambda t: [[t.other, 1, 0, 1]],
    }
    return as_json(lambda t: naming.plan(t.a, id), **sound | fields)


def lease(**fields: Any) -> Forge:
    """Forges the lease of a writer."""
    sound = {"kind": "write", "version": 1, "holder": ESCAPE, "ttl": 600.0, "why": ESCAPE}
    return as_json(lambda t: naming.lease(t.a, an_id(20)), **sound | fields)


def written(name: Callable[[Target], str], data: bytes) -> Forge:
    return lambda t: {name(t): data}


def _copied(t: Target) -> Writes:
    """Forges an object: the bytes of another pool's object under the name of an own one."""
    return {naming.data_object(t.a, t.own): t.store.get(naming.data_object(t.b, t.other))}


def _schema(arrow: bytes) -> dict[str, Any]:
    return {"type": "set_schema", "schema": "0" * 20, "arrow": arrow}


WIDE = pa.schema([(f"f{n}", pa.int64()) for n in range(20_000)]).serialize().to_pybytes()
NOBODY: dict[str, Any] = {"branch": "", "parent": 0}
HIDES = {"type": "add_tombstone", "tombstone": an_id(40)}

FORGERIES: dict[str, Forge] = {
    "an entry with another pool's object": acts(added(lambda t: t.other)),
    "an entry with an object that is not there": acts(added(an_id(5))),
    "an entry with an object twice": acts(added(lambda t: t.own)),
    "an entry that leads elsewhere": acts(added("../../x")),
    "an entry with an object of no end": acts(added(lambda t: t.own, high=b"\xff" * 9)),
    "an entry of the last sequence": acts(added(lambda t: t.other, seqs=[1, 2**63 - 1], applied=2**62)),
    "an entry that removes another pool's object": acts(
        lambda t: {"type": "remove_reference", "object": t.other, "low": encode_value(1)}
    ),
    "an entry that hides all": acts(HIDES),
    "an entry that hides the records of its end": acts({**HIDES, "only": [2**62, 2**63 - 1]}),
    "an entry with a schema that is none": acts(_schema(b"no schema")),
    "an entry with 20,000 fields": acts(_schema(WIDE)),
    "an entry that closes the pool": acts({"type": "close"}),
    "an entry that opens the pool": acts({"type": "reopen", "closed": 10**12}),
    "an entry of hostile files": acts(
        {"type": "consume", "sources": [{"uri": "file:///etc/passwd", "size": 2**62}]}
    ),
    "an entry of the last year": acts(HIDES, time=253_402_300_799_999_999),
    "an entry of the first year": acts(HIDES, time=-62_135_596_800_000_000),
    "an entry with an author of two lines": acts(HIDES, author=ESCAPE, message=ESCAPE),
    "an entry with a message of 5 MB": acts(HIDES, message="x" * 5_000_000),
    "an entry behind another one": lambda t: entry(t, transaction(t, HIDES), previous=12_345),
    "an entry of nothing": lambda t: entry(t),
    "an entry of the last version": written(lambda t: naming.entry(t.journal, 10**20 - 1), b"x"),
    "an entry that is repeated": lambda t: entry(t, transaction(t, HIDES), transaction(t, HIDES)),
    "a vacuum of another pool's object": vacuum,
    "a scan that has seen all": acts({"type": "scan_orphans", "upto": "z" * 27, "now": "z" * 27}, **NOBODY),
    "a tag of no version": acts({"type": "set_tag", "tag": "t", "n": 10**12, "branch": "main"}, **NOBODY),
    "a tag of no branch": acts({"type": "set_tag", "tag": "t", "n": 1, "branch": "none"}, **NOBODY),
    "a tag that leads elsewhere": acts(
        {"type": "set_tag", "tag": "../x", "n": 1, "branch": "main"}, **NOBODY
    ),
    "a branch of itself": acts({"type": "create_branch", "parent": "x", "tip": 1, "at": 1}, branch="x"),
    "a branch of no version": acts(
        {"type": "create_branch", "parent": "main", "tip": 10**12, "at": 10**12}, branch="x"
    ),
    "a merge of itself": acts({"type": "merge", "branch": "main", "upto": 10**12, "writes": b"\0" * 8}),
    "a request for another pool's object": request(added(lambda t: t.other)),
    "a request that hides all": request(HIDES),
    "a request that closes the pool": request({"type": "close"}),
    "a request for no branch": request(HIDES, branch="none"),
    "a request from the future": request(HIDES, seen=2**62, base=2**62, time=2**62),
    "a checkpoint of another pool's objects": checkpoint(lambda t, rows: with_objects(rows, t.other)),
    "a checkpoint that leads elsewhere": checkpoint(lambda t, rows: with_objects(rows, "../../x")),
    "a checkpoint with a vacuum of another pool's object": checkpoint(vacuum_row),
    "a head of the last version": written(lambda t: naming.head(t.journal), b"9" * 18),
    "a head without end": written(lambda t: naming.head(t.journal), b"9" * (naming.SMALL + 1)),
    "a tail of the last version": written(lambda t: naming.tail(t.journal), b"9" * 18),
    "a fence of the last version": written(lambda t: naming.fence(t.journal, 10**19), b"9" * 19),
    "a journal that has not begun": lambda t: {naming.begun(t.journal): None},
    "a journal that is gone": lambda t: {info.name: None for info in t.store.list(t.journal)},
    "a plan of another pool's object": plan(OTHER_PLAN),
    "a plan of another pool": plan(OTHER_PLAN, pool=lambda t: t.b),
    "a receipt of all records": receipt(where=None),
    "a receipt of a condition without end": receipt(where="k = 1 or " * 20_000 + "k = 1"),
    "a receipt of no condition": receipt(where=ESCAPE, author=ESCAPE, pool=ESCAPE),
    "a receipt of another pool": receipt(pool_id=lambda t: t.b, pool="b"),
    "a receipt of another lake": receipt(lake=an_id(1)),
    "a receipt that names another pool's object": receipt(
        erased=lambda t: [{"object": t.other, "size": 1, "sha256": "0"}],
        held=lambda t: [{"object": t.other, "by": ESCAPE}],
        until=1,
    ),
    "a receipt from the future": receipt(began=2**62, begun=2**62, version=2**62, purged=2**62, until=2**62),
    "a lease of no end": lease(version=2**62, ttl=1e308, first="z" * 27),
    "a lease of the first version": lease(version=0, first="0" * 27),
    "a lease of 2 MB": lease(why="x" * 2_000_000),
    "a note about another pool's file": as_json(
        lambda t: naming.parked(t.a, "0" * 32),
        file=ESCAPE,
        size=1,
        etag="",
        branch="main",
        why=ESCAPE,
        time=1e300,
        settings="",
    ),
    "a folder that is given up": as_json(lambda t: naming.given_up(t.a), author=ESCAPE, time=1e300, why=""),
    "another pool's object under an own name": _copied,
    "a published table of elsewhere": as_json(
        lambda t: f"{naming.published(t.a, 'iceberg', 'main')}/metadata/v1.metadata.json",
        **{
            "format-version": 2,
            "location": "file:///etc",
            "current-snapshot-id": 1,
            "snapshots": [
                {"snapshot-id": 1, "manifest-list": "file:///etc/passwd", "summary": {"lake.pool": "x"}}
            ],
            "properties": {"lake.without": "[]"},
        },
    ),
}
