"""Names of fields: decides how a draft that edits a field fits the newest state, and folds it; pure.

A state maps each name that differs from its stored name to that stored name.  After `a` was renamed to `b`, the
name `b` is stored as `a`, and the name `a` under a fresh name that no record has.  The fresh name follows from
the sequence of the edit, so all writers choose the same.  A stored name that has no name any more is hidden.

A load whose writer did not know the edit is still right, because it wrote stored names.  One case is refused
(`check_overlooked`): it brings the new field `b`, which was still free when `a` was renamed to `b`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rpds import HashTrieMap

from lake_core.errors import Conflict, InvalidInput, NotFound
from lake_core.history.draft import Draft
from lake_core.history.state import PoolState
from lake_core.keys import PoolKey
from lake_core.naming import REJECTED
from lake_core.phrases import did_you_mean
from lake_core.records import Action, AddObject
from lake_core.records.renaming import MAX_RENAMED, AddField, RenameField
from lake_core.schemas import Rule
from lake_core.schemas.hidden import DELETED, check_names
from lake_core.schemas.limits import name_fault
from lake_core.schemas.schema import schema_id


def edited(state: PoolState, seq: int, actions: Iterable[Action]) -> PoolState:
    """Returns the state with the names and added fields after a transaction with this sequence."""
    stored, added = state.stored, state.added
    for action in actions:
        if isinstance(action, AddField):
            added = added.insert(stored.get(action.name, action.name), action.type_name)
        if isinstance(action, RenameField):
            moved = stored.get(action.name, action.name)
            left = [moved] if action.new is None else [stored.get(action.new, action.new)]
            stored = stored.insert(action.name, f"{action.name}~{seq}")
            if action.new is not None:
                stored = stored.insert(action.new, moved)
            for one in left:  # else a name that is not in the map would be stored under it
                if one not in stored:
                    stored = stored.insert(one, f"{one}~{seq}")
    return replace(state, stored=stored, added=added)


def shown_names(stored: Mapping[str, str] | HashTrieMap[str, str]) -> dict[str, str]:
    """Returns the map from stored names to names.  A stored name that is a key of `stored`, but not of the
    result, is hidden."""
    return {under: name for name, under in stored.items()}


def check_renames(state: PoolState, draft: Draft, key: PoolKey, rule: Rule) -> None:
    """Raises NotFound for a field that no record has, InvalidInput for one that cannot be changed, or a new name
    that is taken or impossible."""
    renames = [action for action in draft.actions if isinstance(action, RenameField | AddField)]
    if not renames:
        return
    if len(state.stored) + len(state.added) + 3 * len(renames) > MAX_RENAMED:
        raise InvalidInput(f"a pool has at most {MAX_RENAMED:,} names of fields that were changed")
    fixed = {**{DELETED: "marks deletes"}, **dict.fromkeys(key.names, "is a field of the key")}
    fixed |= {name.partition(".")[0]: "has a field of the key" for name in key.names if "." in name}
    fixed |= {name: f"is aggregated ({function})" for name, function in rule.aggregates}
    for action in renames:
        names = sorted(_names(state))
        new = action.name if isinstance(action, AddField) else action.new
        if action.name not in names and action.name != new:
            raise NotFound(f"field {action.name!r} does not exist; {did_you_mean(action.name, names)}")
        for name in (action.name, new):
            if name in fixed:
                raise InvalidInput(f"field {name!r} {fixed[name]}: it keeps its name, and cannot be dropped")
        if new is None:
            continue
        if fault := name_fault(new):
            raise InvalidInput(fault)
        check_names([new])
        if new in names:
            raise InvalidInput(
                f"field {new!r} exists already: drop it first (lake fields POOL drop FIELD), or use another "
                "name"
            )


def check_overlooked(state: PoolState, draft: Draft) -> None:
    """Raises Conflict if the draft brings a new field under a stored name that an edit has hidden meanwhile.  A
    field that was dropped is no reason: the load counts as committed before the drop."""
    if not state.stored:
        return
    added = {a.schema for a in draft.actions if isinstance(a, AddObject) and a.sub_pool != REJECTED}
    ids = {schema_id(schema): schema for schema in draft.schemas}
    new = {name for id in added if id in ids and id not in state.schemas for name in ids[id].names}
    shown = shown_names(state.stored)
    hidden = {name for name in new if name in state.stored and name not in shown}
    if hidden and (lost := hidden - _stored_fields(state)):
        raise Conflict(
            f"field {min(lost)!r}: a field was renamed to this name since version {draft.read_version}, on which "
            "this load began; start the load again"
        )


def _names(state: PoolState) -> Iterator[str]:
    """Yields the names of the fields that records of the pool have, or had."""
    shown = shown_names(state.stored)
    for name in _stored_fields(state):
        if name in shown or name not in state.stored:
            yield shown.get(name, name)


def _stored_fields(state: PoolState) -> set[str]:
    return {name for id in state.schemas for name in state.schema(id).names} | set(state.added)
