"""Describes a transaction in words and counts, as one person would tell another what it did; pure.

A message of the writer says why, and the actions say what: the log of the web view shows both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lake_core.history.covered import is_interval
from lake_core.history.offsets import is_offsets
from lake_core.keys import PoolKey
from lake_core.keys.spec import ARRIVAL
from lake_core.phrases import counted, listed
from lake_core.records import (
    Action,
    AddField,
    AddObject,
    AddTombstone,
    BeginVacuum,
    Close,
    ConfirmVacuum,
    Consume,
    CreateBranch,
    DeleteBranch,
    DeleteTag,
    Discard,
    EndBranch,
    EndVacuum,
    Join,
    MarkApplied,
    Merge,
    Prepare,
    PutReference,
    RemoveReference,
    RemoveTombstone,
    RenameField,
    Reopen,
    ScanOrphans,
    SetTag,
    Settle,
    Split,
    Transaction,
)
from log_lake.fields.names import SAME, FieldNames
from log_lake.lake.counting import removed_records
from log_lake.texts.keytext import key_text, range_words
from log_lake.where import show

MAX_CONDITION = 200
"""The most characters of a condition, or of a bound, that are shown."""


def says(transaction: Transaction, key: PoolKey, names: FieldNames = SAME) -> str:
    """Says what the transaction did, such as `loaded 140 records`. If it did several things, the one that most
    people ask for comes first.  Conditions have the `names` that readers see."""
    actions = [names.shown_delete(a) if isinstance(a, AddTombstone) else a for a in transaction.actions]
    parts = list(_parts(actions, key))
    if (removed := removed_records(transaction)) is not None:
        parts.append(f"removed {counted(removed, 'record')}")
    return "; ".join(parts) if parts else listed(list(transaction.action_counts))


def _parts(actions: Sequence[Action], key: PoolKey) -> Iterator[str]:
    added = [a for a in actions if isinstance(a, AddObject)]
    new = [a for a in added if a.seqs is None]
    removed = [a for a in actions if isinstance(a, RemoveReference)]
    outputs = [a for a in added if a.seqs is not None]
    brought = [a for a in actions if isinstance(a, PutReference)]
    merges = [a for a in actions if isinstance(a, Merge)]
    for merge in merges:
        yield f"merged {merge.branch} up to version {merge.upto:,}"
    deletes = [a for a in actions if isinstance(a, AddTombstone) and not a.self_only]
    if new:
        replaces = any(delete.replaces for delete in deletes)
        yield _loaded(new, "wrote" if replaces else "loaded")
    for delete in deletes:
        yield f"{'replaced' if delete.replaces else 'deleted'} {_covered(delete, key)}"
    if outputs or removed:
        yield _exchanged(removed, outputs)
    if brought:
        records = counted(sum(one.records for one in brought), "record")
        objects = counted(len(brought), "object")
        yield f"brought {records} in {objects}" if merges else f"put back {objects} with {records}"
    marked = [a for a in actions if isinstance(a, MarkApplied)]
    if marked:
        yield f"found nothing to remove in {counted(len(marked), 'object')}"
    retired = [a for a in actions if isinstance(a, RemoveTombstone)]
    if retired:
        yield f"retired {counted(len(retired), 'delete')} with nothing left to hide"
    consumed = [source for a in actions if isinstance(a, Consume) for source in a.sources]
    if len(actions) == 1 and consumed and all(is_interval(source) and source.size for source in consumed):
        yield "says that an interval is held, and empty"
    if len(actions) == 1 and consumed and all(map(is_offsets, consumed)):
        yield f"says where readers of {counted(len(consumed), 'partition')} of a stream go on"
    for action in actions:
        if text := _other(action):
            yield text


def _loaded(new: Sequence[AddObject], verb: str) -> str:
    """Returns words such as `loaded 140 records, and 2 into $nokey`."""
    by_pool: dict[str, int] = {}
    for one in new:
        by_pool[one.sub_pool] = by_pool.get(one.sub_pool, 0) + one.records
    words = [
        counted(records, "record") if not name else f"{counted(records, 'record')} into {name}"
        for name, records in sorted(by_pool.items())
    ]
    return f"{verb} {' and '.join(words)}"


def _exchanged(removed: Sequence[RemoveReference], outputs: Sequence[AddObject]) -> str:
    if not outputs:
        return f"removed {counted(len(removed), 'object')}"
    records = counted(sum(one.records for one in outputs), "record")
    return f"rewrote {counted(len(removed), 'object')} into {len(outputs):,} with {records}"


def _covered(delete: AddTombstone, key: PoolKey) -> str:
    """Says which records a tombstone covers, such as `keys from 200 to below 260 where carrier = 'AA'`."""
    key = ARRIVAL if delete.sub_pool else key
    covered = range_words(delete.low, delete.high, key, text=lambda bound, key: _cut(key_text(bound, key)))
    words = [covered] if covered else []
    if delete.condition is not None:
        words.append(f"{'' if words else 'records '}where {_cut(show(delete.condition))}")
    if delete.sub_pool:
        words.append(f"in {delete.sub_pool}")
    return " ".join(words) or "all records"


def _other(action: Action) -> str:
    """Says what an action did that changes no records; "" for an action that changes records."""
    match action:
        case CreateBranch():
            return f"created the branch from {action.parent} at version {action.at:,}" if action.at else ""
        case DeleteBranch():
            return "deleted the branch"
        case EndBranch():
            return "removed the branch of a transaction over pools"
        case Prepare():
            return f"prepared the transaction {action.over} over pools"
        case Settle():
            return (
                f"{'committed' if action.committed else 'aborted'} the transaction {action.over} over pools"
            )
        case SetTag():
            return f"set the tag {action.tag}"
        case DeleteTag():
            return f"deleted the tag {action.tag}"
        case Close():
            return "closed the pool: it was dropped"
        case Reopen():
            return "opened the pool again: it was restored"
        case AddField():
            return f"added the field {_cut(action.name)} ({action.type_name[:80]})"
        case RenameField(new=None):
            return f"dropped the field {_cut(action.name)}"
        case RenameField():
            return f"renamed the field {_cut(action.name)} to {_cut(action.new or '')}"
        case Split():
            return f"added {counted(len(action.points), 'split point')}"
        case Join():
            return f"removed {counted(len(action.points), 'split point')}"
        case ScanOrphans():
            return "looked for objects that nothing refers to"
        case Discard():
            return f"put {counted(len(action.objects), 'object')} on the list of the removed"
        case BeginVacuum():
            return f"began a vacuum of {counted(len(action.objects), 'object')}"
        case ConfirmVacuum():
            return f"confirmed the vacuum of version {action.vacuum:,}"
        case EndVacuum():
            return f"ended the vacuum of version {action.vacuum:,}"
    return ""


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CONDITION else text[: MAX_CONDITION - 1] + "…"
