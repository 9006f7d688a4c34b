"""For every kind of stored thing: how it is changed at random, with right checksums or without, and which readers
read it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from lake_core import naming
from lake_core.errors import LakeError
from lake_core.history.group_commit.requests import Requests
from lake_core.history.transactions.decisions import Decisions
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import encode_value
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.codec import frame, unframe
from log_lake.agents.ingest.parking import parked_files
from log_lake.agents.packs import read_outcome, read_packs
from log_lake.agents.put_off_jobs import WAY
from log_lake.agents.put_off_jobs import _read as _said
from log_lake.agents.quiet import Quiet
from log_lake.agents.request import Request as Asked
from log_lake.erasure import receipt as receipts
from log_lake.lake.given_up import read_given_up
from log_lake.lake.open_transactions import transactions
from log_lake.leases import read_leases
from log_lake.objects.facts import read_content, read_facts
from log_lake.objects.read import DataObject
from log_lake.stores.guard import GuardedStore
from log_lake.vacuum.execute import read_plan
from tests.support.changed_objects import changed_parquet, changed_typed
from tests.support.crafted import crafted, rows_of
from tests.support.mutations import (
    changed_hint,
    changed_json,
    changed_msgpack,
    flipped,
    mutated,
    turned,
    with_pairs,
)
from tests.support.records import an_id
from tests.support.stored_things import URI, Asks, World, asks_of_list, asks_of_pool, bare, purged, relinked

Change = Callable[[World, str, random.Random], "Mapping[str, bytes | None] | None"]
"""A function that returns the objects to write in place of the valid one; None if none can be made."""

Ask = Callable[[World, str], Asks]


def whole(world: World) -> World:
    return world


@dataclass(frozen=True)
class Kind:
    """A kind of stored thing: its objects, how they are changed, and which readers read them.

    `exact`: a checksum or a rule should detect the change, so an answer must be the right one. `of`: prepares
    the lake as the readers find it. `alone`: the object is below one pool's folder.
    """

    pattern: str
    change: Change
    ask: Ask
    exact: bool = False
    of: Callable[[World], World] = whole
    alone: bool = True


# --- changes


def one(change: Callable[[bytes, random.Random], bytes]) -> Change:
    """Returns a change of the object's own bytes."""
    return lambda world, name, rng: {name: change(world.objects[name], rng) or b" "}


def entry(world: World, name: str, rng: random.Random) -> Mapping[str, bytes | None]:
    payload = changed_msgpack(bytes(unframe(world.objects[name], name=name)), rng)
    return relinked(world, name, frame(payload))


Part = dict[str, Any]
"""An action of an entry, or the value of a row, as plain values."""


def any_part(part: Part, rng: random.Random) -> Part | None:
    changed = mutated(part, rng)
    return changed if isinstance(changed, dict) else None


def inlined(change: Callable[[bytes, random.Random], bytes]) -> Callable[[Part, random.Random], Part]:
    """Returns a change of the bytes of an inlined object alone; their size stays right."""

    def of(part: Part, rng: random.Random) -> Part:
        data = change(part["data"], rng) or b" "
        return part | {"data": data} | ({"size": len(data)} if "size" in part else {})

    return of


def columns(part: Part, rng: random.Random) -> Part:
    """Changes what an object's action says about its fields."""
    return part | {"columns": mutated(part.get("columns", []), rng)}


def actions_of(*tags: str, by: Callable[[Part, random.Random], Part | None] = any_part) -> Change:
    """Returns a change that only changes actions of these types."""

    def change(world: World, name: str, rng: random.Random) -> Mapping[str, bytes | None] | None:
        plain = msgspec.msgpack.decode(unframe(world.objects[name], name=name))
        actions = [action for part in plain["transactions"] for action in part["actions"]]
        sought = [action for action in actions if action["type"] in tags]
        if not sought:
            return None
        action = rng.choice(sought)
        changed = by(dict(action), rng)
        if changed is None:
            return None
        action.clear()
        action.update(changed)
        try:
            return relinked(world, name, frame(msgspec.msgpack.encode(plain)))
        except (RecursionError, msgspec.MsgspecError, OverflowError):
            return None

    return change


def framed(data: bytes, rng: random.Random) -> bytes:
    return frame(changed_msgpack(bytes(unframe(data, name="x")), rng))


def checkpoint_footer(data: bytes, rng: random.Random) -> bytes:
    return with_pairs(data, lambda pair: changed_json(pair, rng), checksum=True)


Rows = list[dict[str, Any]]


class CheckpointRows:
    """A change of rows of a checkpoint of the newest version."""

    def __init__(self, by: Callable[[Rows, random.Random], Rows] | None = None) -> None:
        self._by = by or changed_rows
        self._of: dict[str, tuple[Any, Rows]] = {}

    def __call__(self, world: World, name: str, rng: random.Random) -> Mapping[str, bytes | None] | None:
        if name not in self._of:
            lake = world.lake()
            journal = lake.catalog.journal if name.startswith("pools/") else lake.pool("a").history.journal
            self._of[name] = journal, rows_of(journal)
        journal, rows = self._of[name]
        try:
            new, data = crafted(journal, self._by(rows, rng), id=an_id(77))
        except (ValueError, TypeError, OverflowError, LakeError):  # no column holds such a value
            return None
        return {name: None, new: data}


def changed_rows(rows: Rows, rng: random.Random, of: Collection[str] = ()) -> Rows:
    """Returns the rows with a change: of a column, or of parts of a value; or one row is removed, or doubled.

    If sections are given, only their rows are changed.
    """
    changed = [dict(one) for one in rows]
    one = rng.choice([one for one in changed if not of or one["section"] in of])
    column = rng.choice([name for name in one if one[name] is not None or rng.random() < 0.1])
    what = rng.random()
    if what < 0.1:
        changed.append(dict(one))
    elif what < 0.15:
        changed.remove(one)
    if column == "value" and one["value"] and one["section"] not in ("schema", "lift") and rng.random() < 0.8:
        one["value"] = changed_msgpack(one["value"], rng)
    elif isinstance(one[column], bytes) and rng.random() < 0.5:
        one[column] = flipped(one[column], rng)
    else:
        (one[column],) = mutated([one[column]], rng) or [None]
    return changed


def changed_inlined(rows: Rows, rng: random.Random) -> Rows:
    """Returns the rows with other bytes of one inlined object."""
    changed = [dict(one) for one in rows]
    change = rng.choice((changed_parquet, flipped))
    one = rng.choice([one for one in changed if one["section"] == "reference" and b"PAR1" in one["value"]])
    value = inlined(change)(msgspec.msgpack.decode(one["value"]), rng)
    one["value"], one["size"] = msgspec.msgpack.encode(value), len(value["data"])
    return changed


# --- readers


def alone(ask: Callable[[World, str], object]) -> Ask:
    """Returns a reader with only one question."""

    def asks(world: World, name: str) -> Asks:
        yield "it", lambda: ask(world, name)

    return asks


def pool(world: World, name: str) -> Asks:
    return asks_of_pool(world)


def scans(world: World, name: str) -> Asks:
    """Returns readers of the records of `a`."""
    for branch in ("main", "dev"):
        yield branch, lambda branch=branch: world.lake().pool("a").at(branch).to_table().to_pylist()


def pools(world: World, name: str) -> Asks:
    return asks_of_list(world)


def requests_of(world: World, name: str) -> object:
    requests = Requests(world.store, naming.pool_journal(world.a))
    return [request.draft for request in requests.read(requests.queue())]


def commits(world: World, name: str) -> Asks:
    """Returns readers of requests, and writers who commit these together with their own."""
    yield "requests", lambda: requests_of(world, name)
    branch = world.lake().pool("a").branch()
    for number in range(8):  # one of them collects requests
        yield f"append {number}", lambda number=number: branch.delete(where=f"k = {700 + number}").covers
    yield "after", lambda: world.lake().pool("a").at().to_table().to_pylist()


def leases_of(world: World, name: str) -> object:
    leases = read_leases(world.store, world.a, own=an_id(20))
    assert leases.oldest_version is None or leases.oldest_version >= 0
    return [lease.until() >= 0 or lease.is_live(leases.now) for lease in leases.all]


def quiet_of(world: World, name: str) -> object:
    lake = world.lake()
    _said(lake, naming.quiet("compact", WAY))  # to record more would let the jobs grow with each change
    return Quiet.of(lake, Asked(URI), agent="compact").others(["a", "b"])


def object_of(world: World, name: str) -> Asks:
    """Returns readers of one data object, in part and as a whole."""
    pool_id, _, _ = name.partition("/")

    def opened(read: Callable[[DataObject], object]) -> Callable[[], object]:
        def ask() -> object:
            store = GuardedStore(world.store)  # another one each time: no footer is kept from before
            with DataObject(store, pool_id=pool_id, object_id=naming.data_id(name) or "") as data:
                return read(data)

        return ask

    yield "facts", opened(read_facts)
    yield "content", opened(lambda data: read_content(data, key=PoolKey.parse("k")))
    for key_range in (EVERYTHING, KeyRange(encode_value(1), encode_value(2))):
        yield f"weight {key_range}", opened(partial(_weight, key_range=key_range))
        yield f"records {key_range}", opened(partial(_records, key_range=key_range))
    of = next(one.name for one in world.lake().pools() if one.id == pool_id)
    yield "scan", lambda: world.lake().pool(of).at().to_table().to_pylist()


def _weight(data: DataObject, *, key_range: KeyRange) -> object:
    return data.weigh(key_range, ["k"])


def _records(data: DataObject, *, key_range: KeyRange) -> object:
    batches = data.batches(key_range, key=PoolKey.parse("k"), columns=None)
    return [record for batch in batches for record in batch.to_pylist()]


def transactions_of(world: World, name: str) -> object:
    decisions = Decisions(world.store, lambda: 0.0)
    dead = decisions.is_dead(an_id(22))
    return dead, decisions.joined(an_id(22), world.a), transactions(world.lake())


def plan_of(world: World, name: str) -> object:
    return read_plan(world.lake().pool("a"), an_id(21))


def receipts_of(world: World, name: str) -> object:
    return list(receipts.read_all(world.lake().pool("a")))


def parked_of(world: World, name: str) -> object:
    return parked_files(world.lake().pool("a"))


CHECKPOINT = "{a}/journal/marks/*.00000005.checkpoint"

TAGS = actions_of("set_tag", "delete_tag")
BRANCHES = actions_of("create_branch", "delete_branch", "merge", "put_reference", "put_tombstone")
ADDED = ("add_object", "add_inlined", "put_reference", "put_inlined")
STATISTICS = actions_of(*ADDED, by=columns)
SPLITS = actions_of("split", "join")
INLINED = actions_of("add_inlined", "put_inlined")
INLINED_BYTES = actions_of("add_inlined", "put_inlined", by=inlined(changed_parquet))
INLINED_DAMAGED = actions_of("add_inlined", "put_inlined", by=inlined(turned))
NEWER_ROWS = CheckpointRows(partial(changed_rows, of=("point", "inlined")))
VACUUMS = actions_of("begin_vacuum", "confirm_vacuum", "end_vacuum", "scan_orphans", "discard")

KINDS: dict[str, Kind] = {
    "entries": Kind("{a}/journal/0*.txn", entry, pool, of=bare),
    "entries, damaged": Kind("{a}/journal/0*.txn", one(flipped), pool, exact=True, of=bare),
    "tags": Kind("{a}/journal/0*.txn", TAGS, pool, of=bare),
    "branches": Kind("{a}/journal/0*.txn", BRANCHES, pool, of=bare),
    "vacuums": Kind("{a}/journal/0*.txn", VACUUMS, pool, of=bare),
    "splits": Kind("{a}/journal/0*.txn", SPLITS, pool, of=bare),
    "statistics": Kind("{a}/journal/0*.txn", STATISTICS, pool, of=bare),
    "inlined objects": Kind("{a}/journal/0*.txn", INLINED, pool, of=bare),
    "inlined objects, bytes": Kind("{a}/journal/0*.txn", INLINED_BYTES, pool, of=bare),
    "inlined objects, damaged": Kind("{a}/journal/0*.txn", INLINED_DAMAGED, scans, exact=True, of=bare),
    "requests": Kind("{a}/journal/requests/*", one(framed), commits),
    "requests, damaged": Kind("{a}/journal/requests/*", one(flipped), alone(requests_of)),
    "heads": Kind("{a}/journal/HEAD", one(changed_hint), pool, exact=True),
    "tails": Kind("{a}/journal/TAIL", one(changed_hint), pool, exact=True),
    "signs": Kind("{a}/journal-begun", one(changed_hint), pool, exact=True),
    "gates": Kind("{a}/journal-gates/*.gate", one(changed_hint), pool, exact=True, of=purged),
    "checkpoints": Kind(CHECKPOINT, CheckpointRows(), pool),
    "checkpoint footers": Kind(CHECKPOINT, one(checkpoint_footer), pool),
    "checkpoints, damaged": Kind(CHECKPOINT, one(flipped), pool, exact=True),
    "checkpoints, purged": Kind(CHECKPOINT, CheckpointRows(), pool, of=purged),
    "checkpoint footers, purged": Kind(CHECKPOINT, one(checkpoint_footer), pool, of=purged),
    "checkpoints, damaged, purged": Kind(CHECKPOINT, one(flipped), pool, exact=True, of=purged),
    "checkpoints, points and sums": Kind(CHECKPOINT, NEWER_ROWS, pool, of=purged),
    "checkpoints, inlined objects": Kind(CHECKPOINT, CheckpointRows(changed_inlined), pool, of=purged),
    "fences": Kind("{a}/journal/marks/*.fence", one(changed_hint), pool, exact=True, of=purged),
    "leases": Kind("{a}/leases/*", one(changed_json), alone(leases_of)),
    "plans": Kind("{a}/plans/*", one(changed_json), alone(plan_of)),
    "receipts": Kind("{a}/erasures/*", one(changed_json), alone(receipts_of)),
    "parked": Kind("{a}/parked/*", one(changed_json), alone(parked_of)),
    "given up": Kind("{a}/given-up", one(changed_json), alone(lambda w, n: read_given_up(w.store, w.a))),
    "objects in parquet": Kind("{a}/data/*.parquet", one(changed_parquet), object_of),
    "objects in parquet, damaged": Kind("{a}/data/*.parquet", one(flipped), object_of, exact=True),
    "indexes, damaged": Kind("{a}/data/index/*", one(flipped), pool, exact=True),
    "objects in zng": Kind("*/data/*.zng", one(changed_typed), object_of, alone=False),
    "objects in zng, damaged": Kind("*/data/*.zng", one(flipped), object_of, exact=True, alone=False),
    "objects in zst": Kind("*/data/*.zst", one(changed_typed), object_of, alone=False),
    "objects in zst, damaged": Kind("*/data/*.zst", one(flipped), object_of, exact=True, alone=False),
    "list of pools": Kind("pools/0*.txn", entry, pools, of=bare, alone=False),
    "list of pools, damaged": Kind("pools/0*.txn", one(flipped), pools, exact=True, of=bare, alone=False),
    "list of pools, heads": Kind("pools/HEAD", one(changed_hint), pools, exact=True, alone=False),
    "list of pools, tails": Kind("pools/TAIL", one(changed_hint), pools, exact=True, alone=False),
    "list of pools, signs": Kind("pools-begun", one(changed_hint), pools, exact=True, alone=False),
    "list of pools, gates": Kind(
        "pools-gates/*.gate", one(changed_hint), pools, exact=True, of=purged, alone=False
    ),
    "list of pools, fences": Kind(
        "pools/marks/*.fence", one(changed_hint), pools, exact=True, of=purged, alone=False
    ),
    "list of pools, checkpoints": Kind("pools/marks/*.checkpoint", CheckpointRows(), pools, alone=False),
    "list of pools, footers": Kind("pools/marks/*.checkpoint", one(checkpoint_footer), pools, alone=False),
    "lake.json": Kind("lake.json", one(changed_json), pools, alone=False),
    "packs": Kind(
        "packs/*.??.*.json", one(changed_json), alone(lambda w, n: read_packs(w.lake(), [n])), alone=False
    ),
    "results of packs": Kind(
        "packs/*.??.json", one(changed_json), alone(lambda w, n: read_outcome(w.lake(), n)), alone=False
    ),
    "transactions": Kind("transactions/*/*", one(changed_json), alone(transactions_of), alone=False),
    "quiet": Kind("quiet/*", one(changed_json), alone(quiet_of), alone=False),
    "activity": Kind("activity/*", one(changed_hint), alone(quiet_of), exact=True, alone=False),
}
