"""What becomes of finished work when it meets the branch: decided here, purely.

A writer prepares a `Draft` (objects are on the store already) knowing some older state.  `land` looks at the
newest state and answers with the transaction to write, or with what happened already:

- the pool was dropped: NotFound, whatever it is;
- the token was used: the first outcome stands, nothing is written;
- loads and deletes never conflict: they are rebased onto the tip as they are; but a load that a replace overtook
  (which began later, and landed first) carries a tombstone for its own records in the range of the replace;
- a replace whose range another replace took meanwhile is a Conflict;
- a landed file that somebody took in meanwhile is a Conflict: the batch must be planned again;
- a compaction whose input another one took meanwhile is a Conflict: its work is dropped, without harm;
- a tombstone that still covers something, or is retired already, is not retired: Conflict;
- schemas that are known by now are not announced again.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pyarrow as pa

from lake_core.commits.reference import Reference
from lake_core.commits.state import BranchState, PoolState, Remembered
from lake_core.commits.tombstone import Tombstone
from lake_core.errors import Conflict, InvalidInput, NotFound
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import key_class
from lake_core.objects.schema import schema_id, unite_fields
from lake_core.records import (
    Action,
    AddObject,
    AddTombstone,
    Consume,
    MarkApplied,
    RemoveReference,
    RemoveTombstone,
    SetSchema,
    Transaction,
)
from lake_core.values.types import is_json, show_type


@dataclass(frozen=True)
class Draft:
    """Work to be committed: `id` stays the same however often it is tried; `base` is what it began on."""

    id: str
    branch: str
    base: int
    author: str
    actions: tuple[Action, ...]
    schemas: tuple[pa.Schema, ...] = ()
    message: str = ""
    token: str = ""

    @property
    def new_objects(self) -> list[AddObject]:
        """Objects of the pool itself whose records count as written when this lands."""
        return [a for a in self.actions if isinstance(a, AddObject) and a.seqs is None and not a.sub]


@dataclass(frozen=True)
class Landed:
    """The outcome: transaction `id` is in entry `n`; `repeated` is what the first commit under the token was."""

    n: int
    id: str
    repeated: Remembered | None = None


def land(state: PoolState, draft: Draft, *, key: PoolKey, time: int) -> Transaction | Remembered:
    """The transaction that puts the draft onto the branch's tip, or the one that did so before.

    `time` is microseconds since 1970.  Raises NotFound (the pool was dropped, no such branch), Conflict (a source,
    an input or a range was taken meanwhile), InvalidInput (a key field that cannot be ordered with the pool's other
    objects).
    """
    check_open(state)
    branch = state.branches.get(draft.branch)
    if branch is None:
        raise NotFound(
            f"branch {draft.branch!r} does not exist; there are: {', '.join(sorted(state.branches))}"
        )
    if draft.token and (remembered := state.tokens.get(draft.token)) is not None:
        return remembered
    for action in draft.actions:
        if isinstance(action, Consume):
            taken = [s.uri for s in action.sources if state.sources.get((draft.branch, s.uri)) == s]
            if taken:
                raise Conflict(
                    f"{taken[0]} and {len(taken) - 1} more were taken in by somebody else meanwhile"
                )
        if isinstance(action, RemoveReference | MarkApplied):
            check_held(branch, action.object, action.low)
        if isinstance(action, RemoveTombstone):
            _check_retired(state, branch, action.tombstone)
    overtaken = _overtaken(branch, draft)
    _check_key(state, draft, key)
    return Transaction(
        id=draft.id,
        branch=draft.branch,
        parent=branch.tip,
        base=draft.base,
        time=time,
        author=draft.author,
        actions=(*_news(state, draft), *draft.actions, *overtaken),
        message=draft.message,
        token=draft.token,
    )


def _overtaken(branch: BranchState, draft: Draft) -> list[AddTombstone]:
    """Tombstones for what replaces that landed meanwhile would have covered, had the draft landed when it began.

    Raises Conflict where the draft is a replace itself and overlaps one of them.
    """
    replaces = [a.range for a in draft.actions if isinstance(a, AddTombstone) and a.replaces]
    added = [KeyRange(a.low, a.high) for a in draft.new_objects]
    if (replaces or added) and draft.base < branch.replaced:
        raise Conflict("replaces that landed since this began are no longer remembered; begin again")
    since = [t for t in branch.tombstones.values() if t.replaces and t.n > draft.base]
    taken = [t for t in since if any(t.span.overlaps(span) for span in replaces)]
    if taken:
        raise Conflict(f"a replace of an overlapping range landed meanwhile: transaction {taken[0].n}")
    later = [t for t in since if t.started > (draft.base, draft.id)]
    covering = [t for t in later if any(t.span.overlaps(span) for span in added)]
    return [
        AddTombstone(
            f"{draft.id}-overtaken-{number}",
            t.low,
            t.high,
            t.condition,
            reason=f"overtaken by the replace of transaction {t.n}",
            own=True,
        )
        for number, t in enumerate(sorted(covering, key=lambda t: t.seq), 1)
    ]


def check_open(state: PoolState) -> None:
    """Raises NotFound if the pool was dropped."""
    if state.closed is not None:
        moment = dt.datetime.fromtimestamp(state.closed.time / 1e6, dt.UTC)
        raise NotFound(
            f"the pool was dropped by {state.closed.author} at {moment:%Y-%m-%dT%H:%M:%SZ} (transaction "
            f"{state.closed.n}). If a new pool has its name, open that one; if lake ls still lists this one, the "
            "drop was interrupted: run lake drop again"
        )


def check_held(branch: BranchState, object_id: str, low: bytes) -> None:
    """Raises Conflict where the branch does not refer to the object's range any more."""
    if not branch.snapshot.holds(object_id, low):
        raise Conflict(f"object {object_id} was taken by another compaction meanwhile")


def _check_retired(state: PoolState, branch: BranchState, name: str) -> None:
    """Raises Conflict where the tombstone is gone already, or may still cover something."""
    tombstone = branch.tombstones.get(name)
    if tombstone is None:
        raise Conflict(f"tombstone {name} was retired meanwhile")
    if still_covered(state, branch, tombstone):
        raise Conflict(f"tombstone {name} may still cover records")


def still_covered(state: PoolState, branch: BranchState, tombstone: Tombstone) -> list[Reference]:
    """References of which the tombstone may still cover records."""
    held = branch.snapshot.find(tombstone.span)
    return [r for r in held if tombstone.may_cover(r, state.schema)]


def _news(state: PoolState, draft: Draft) -> list[Action]:
    """The schemas that the state does not know yet, each once."""
    news = {schema_id(schema): schema for schema in draft.schemas}
    return [
        SetSchema(id, s.serialize().to_pybytes()) for id, s in sorted(news.items()) if id not in state.schemas
    ]


def _check_key(state: PoolState, draft: Draft, key: PoolKey) -> None:
    """All objects of the pool must order their keys alike; only schemas that are new have to be looked at."""
    incoming = {schema_id(schema): schema for schema in draft.schemas}
    objects = [a for a in draft.actions if isinstance(a, AddObject) and not a.sub and a.schema in incoming]
    new = {a.schema: incoming[a.schema] for a in objects if a.schema not in state.own_schemas}
    if not new:
        return
    known = key_classes(state, key)
    fields = {name: [s.field(name) for s in _own_schemas(state)] for name in key.names}
    for schema in new.values():
        for name in key.names:
            ours = key_class(schema.field(name).type)
            if ours != "null" and known.setdefault(name, ours) != ours:
                raise InvalidInput(
                    f"key field {name!r}: a {ours} here, a {known[name]} in the pool's other records; "
                    f"declare it (lake set POOL type.{name}=TYPE) or load these records into another pool"
                )
            for other in fields[name]:  # every two must unite: a scan may meet any of them in any order
                if is_json(unite_fields(other, schema.field(name))):
                    here, there = show_type(schema.field(name)), show_type(other)
                    raise InvalidInput(
                        f"key field {name!r}: {here} here, {there} in the pool's other records, and no type "
                        f"holds both exactly; declare it (lake set POOL type.{name}=TYPE)"
                    )
            fields[name].append(schema.field(name))


def key_classes(state: PoolState, key: PoolKey) -> dict[str, str]:
    """The class of each key field that the pool's schemas agree on; fields only ever null are left out."""
    classes: dict[str, str] = {}
    for schema in _own_schemas(state):
        for name in key.names:
            found = key_class(schema.field(name).type)
            if found != "null":
                classes[name] = found
    return classes


def _own_schemas(state: PoolState) -> list[pa.Schema]:
    """The schemas of the pool's own objects, which all have the key."""
    return [state.schema(id) for id in state.own_schemas]
