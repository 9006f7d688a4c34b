"""The lake's own tables: `lake:pools`, `lake:transactions`, `POOL:actions`, `POOL:branches`, `POOL:log`,
`POOL:objects`, `POOL:ranges`, `POOL:references`, `POOL:tags`, `POOL:tombstones`, `POOL:types`.  The room `coverage`
makes `POOL:coverage`.

Each is an Arrow table made from a state, so that SQL and Spark query it like any other data.  Bounds are shown
decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from lake_core.errors import Corrupt
from lake_core.history import PoolState, Reference
from lake_core.history.rebase import still_covered
from lake_core.keys import PoolKey
from lake_core.keys.spec import ARRIVAL
from lake_core.records import Action, AddObject, Transaction
from lake_core.records.pools import PoolConfig
from log_lake.fields.names import names_at
from log_lake.lake.by_type import TypeCount
from log_lake.lake.counting import removed_records
from log_lake.lake.open_transactions import TransactionRow
from log_lake.lake.ranges import PoolRange
from log_lake.reading.live import LiveCount
from log_lake.texts.keytext import show_key

_TIME = pa.timestamp("us", "UTC")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def pools_table(pools: Iterable[PoolConfig]) -> pa.Table:
    """`lake:pools`: a row for each pool; `clone_of` is what a clone began with, as NAME@VERSION."""
    rows = [
        {
            "name": p.name,
            "id": p.id,
            "key": str(p.key),
            "kind": p.kind,
            "settings": _json(p.settings),
            "clone_of": None if p.clone is None else p.clone.text,
        }
        for p in pools
    ]
    names = ("name", "id", "key", "kind", "settings", "clone_of")
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in names]))


_TRANSACTION = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "state")),
        ("pools", pa.list_(pa.string())),
        ("author", pa.string()),
        *((name, _TIME) for name in ("since", "until", "renewed")),
        *((name, pa.string()) for name in ("token", "message")),
    ]
)


def transactions_table(rows: Iterable[TransactionRow]) -> pa.Table:
    """`lake:transactions`: a row for each transaction over several pools, oldest first; columns as in
    `TransactionRow`.

    `until`: the time up to which it may stay open.
    """
    dicts = [
        {"since": row.begun, "until": row.expires, **vars(row), "pools": list(row.pools)} for row in rows
    ]
    return pa.Table.from_pylist(dicts, schema=_TRANSACTION)


BRANCHES = pa.schema(
    [
        ("name", pa.string()),
        *((name, pa.int64()) for name in ("tip", "references", "records")),
        ("is_exact", pa.bool_()),
        ("stored", pa.int64()),
        ("parent", pa.string()),
        *((name, pa.int64()) for name in ("at", "merged", "unmerged")),
    ]
)
"""The columns of `branches_table`."""


def branches_table(state: PoolState, live: Mapping[str, LiveCount]) -> pa.Table:
    """`POOL:branches`: a row for each branch; `live` counts the records that its readers see.

    `records`: the records that readers see, an upper bound unless `is_exact`; `stored`: the records in objects.
    `at`: the parent's version on which the branch began; `merged`: its own version up to which it was merged;
    `unmerged`: the number of writes after that, null if they were too many to be merged.
    """
    rows = [
        {
            "name": name,
            "tip": b.tip,
            "references": len(b.snapshot),
            "records": live[name].records,
            "is_exact": live[name].is_exact,
            "stored": live[name].stored,
            "parent": b.fork.parent if b.fork else None,
            "at": b.fork.at if b.fork else None,
            "merged": b.fork.merged if b.fork else None,
            "unmerged": len(b.fork.writes) if b.fork and b.fork.writes is not None else None,
        }
        for name, b in sorted(state.branches.items())
    ]
    return _counted(rows, BRANCHES)


def _counted(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Makes a table of the rows. Raises Corrupt if a sum of counts does not fit into 64 bits."""
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except OverflowError as error:
        raise Corrupt(
            "the references have more records or bytes in all than a pool can have; lake fsck POOL says more"
        ) from error


_TAG = pa.schema(
    [
        ("name", pa.string()),
        ("version", pa.int64()),
        ("branch", pa.string()),
        ("owner", pa.string()),
        ("time", _TIME),
        ("reason", pa.string()),
        ("expires", _TIME),
        ("deleted", pa.bool_()),
    ]
)


def tags_table(state: PoolState) -> pa.Table:
    """`POOL:tags`: a row for each tag; `deleted`: the tag keeps a deleted branch."""
    rows = [
        {
            "name": name,
            "version": tag.version,
            "branch": tag.branch,
            "owner": tag.owner,
            "time": tag.time,
            "reason": tag.reason,
            "expires": tag.expires,
            "deleted": tag.deleted,
        }
        for name, tag in sorted(state.tags.items())
    ]
    return pa.Table.from_pylist(rows, schema=_TAG)


def log_table(transactions: Iterable[tuple[int, Transaction]]) -> pa.Table:
    """`POOL:log`: a row for each transaction, newest first.

    `metadata` is JSON: `metadata ->> 'dag'` in SQL.  `removed` is null if the transaction removed no records,
    or if their number is not known.
    """
    rows = [
        {
            "version": version,
            "transaction_id": t.id,
            "branch": t.branch,
            "parent": t.parent,
            "read_version": t.read_version,
            "time": t.time,
            "author": t.author,
            "message": t.message,
            "metadata": _json(t.metadata),
            "token": t.token,
            "actions": len(t.actions),
            "added": added_records(t),
            "removed": removed_records(t),
        }
        for version, t in transactions
    ]
    schema = pa.schema(
        [
            ("version", pa.int64()),
            ("transaction_id", pa.string()),
            ("branch", pa.string()),
            ("parent", pa.int64()),
            ("read_version", pa.int64()),
            ("time", _TIME),
            ("author", pa.string()),
            ("message", pa.string()),
            ("metadata", pa.string()),
            ("token", pa.string()),
            ("actions", pa.int64()),
            ("added", pa.int64()),
            ("removed", pa.int64()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


_ACTION = pa.schema(
    [
        ("version", pa.int64()),
        ("transaction_id", pa.string()),
        ("number", pa.int64()),
        ("time", _TIME),
        ("author", pa.string()),
        ("branch", pa.string()),
        ("action", pa.string()),
        ("object", pa.string()),
        ("sub_pool", pa.string()),
        ("records", pa.int64()),
        ("size", pa.int64()),
        ("details", pa.string()),
    ]
)


def actions_table(transactions: Iterable[tuple[int, Transaction]]) -> pa.Table:
    """`POOL:actions`: a row for each action, in the order of its transaction; the newest transaction first.

    `action` is its kind, as docs/format.md names it.  `details` has its other texts, numbers and booleans as
    JSON: names of branches, tags and deletes.  Keys and conditions are left out.
    """
    rows = [
        {
            "version": version,
            "transaction_id": t.id,
            "number": number,
            "time": t.time,
            "author": t.author,
            "branch": t.branch,
            "action": action.__struct_config__.tag,
            **_plain_fields(action),
        }
        for version, t in transactions
        for number, action in enumerate(t.actions)
    ]
    return pa.Table.from_pylist(rows, schema=_ACTION)


def _plain_fields(action: Action) -> dict[str, object]:
    fields = {name: getattr(action, name) for name in action.__struct_fields__}
    of_columns = {name: fields.pop(name, None) for name in ("object", "sub_pool", "records", "size")}
    plain = {name: value for name, value in fields.items() if isinstance(value, str | int) and value != ""}
    return {**of_columns, "details": msgspec.json.encode(plain, order="sorted").decode()}


def added_records(transaction: Transaction) -> int:
    """Returns the records that a load or replace brought to the pool itself; 0 for other transactions."""
    added = (a for a in transaction.actions if isinstance(a, AddObject) and a.seqs is None)
    return sum(a.records for a in added if not a.sub_pool)


_REFERENCE = pa.schema(
    [
        ("object", pa.string()),
        ("sub_pool", pa.string()),
        ("low", pa.string()),
        ("high", pa.string()),
        ("version", pa.int64()),
        ("seq", pa.int64()),
        ("ordinal", pa.int64()),
        ("records", pa.int64()),
        ("size", pa.int64()),
        ("schema", pa.string()),
    ]
)


def references_table(
    references: Iterable[Reference], key: PoolKey, transaction_of: Callable[[int], int]
) -> pa.Table:
    """`POOL:references`: a row for each reference, by low bound; bounds as JSON."""
    rows = []
    for r in references:
        shown = ARRIVAL if r.sub_pool else key
        rows.append(
            {
                "object": r.object,
                "sub_pool": r.sub_pool,
                "low": _json(show_key(r.low, shown)),
                "high": _json(show_key(r.high, shown)),
                "version": transaction_of(r.seq),
                "seq": r.seq,
                "ordinal": r.ordinal,
                "records": r.records,
                "size": r.size,
                "schema": r.schema,
            }
        )
    return pa.Table.from_pylist(rows, schema=_REFERENCE)


_TOMBSTONE = pa.schema(
    [
        ("tombstone", pa.string()),
        ("sub_pool", pa.string()),
        ("version", pa.int64()),
        ("seq", pa.int64()),
        ("time", _TIME),
        ("low", pa.string()),
        ("high", pa.string()),
        ("condition", pa.string()),
        ("replaces", pa.bool_()),
        ("own", pa.bool_()),
        ("reason", pa.string()),
        ("references", pa.int64()),
        ("records", pa.int64()),
        ("size", pa.int64()),
    ]
)


def tombstones_table(state: PoolState, *, branch: str, key: PoolKey) -> pa.Table:
    """`POOL:tombstones`: a row for each tombstone that is not retired, oldest first.

    Bounds are JSON, null where open; `references`, `records` and `size` (bytes) count what it may still hide.
    """
    if branch not in state.branches:
        return _TOMBSTONE.empty_table()
    branch_now = state.branches[branch]
    rows = []
    for t in sorted(branch_now.tombstones.values(), key=lambda t: t.seq):
        covered = still_covered(state, branch_now, t)
        rows.append(
            {
                "tombstone": t.id,
                "sub_pool": t.sub_pool,
                "version": t.version,
                "seq": t.seq,
                "time": t.time,
                "low": _json(show_key(t.low, key)) if t.low else None,
                "high": None if t.high is None else _json(show_key(t.high, key)),
                "condition": None
                if t.condition is None
                else names_at(state, t.sub_pool).text_of(t.condition),
                "replaces": t.replaces,
                "own": t.self_only,
                "reason": t.reason,
                "references": len(covered),
                "records": sum(r.records for r in covered),
                "size": sum(r.size for r in covered),
            }
        )
    return pa.Table.from_pylist(rows, schema=_TOMBSTONE)


def objects_table(references: pa.Table) -> pa.Table:
    """`POOL:objects`: a row for each data object, by id."""
    if not references.num_rows:
        return references.select(["object", "sub_pool", "records", "size", "schema"])
    first = references.group_by("object", use_threads=False).aggregate(
        [("sub_pool", "first"), ("records", "max"), ("size", "max"), ("schema", "first")]
    )
    return first.rename_columns(["object", "sub_pool", "records", "size", "schema"]).sort_by("object")


_RANGE = pa.schema(
    [
        *((name, pa.string()) for name in ("low", "high")),
        *((name, pa.int64()) for name in ("records", "size", "objects", "straddling", "depth", "runs")),
        ("compacted", _TIME),
    ]
)


def ranges_table(ranges: Iterable[PoolRange]) -> pa.Table:
    """`POOL:ranges`: a row for each range between split points, in order; columns as in `lake.ranges.PoolRange`.

    Bounds are JSON, null where open.
    """
    rows = [
        vars(r)
        | {
            name: None if bound is None else _json(bound)
            for name, bound in (("low", r.low), ("high", r.high))
        }
        for r in ranges
    ]
    return _counted(rows, _RANGE)


_TYPE = pa.schema(
    [("id", pa.string()), ("name", pa.string()), ("records", pa.int64()), ("type", pa.string())]
)


def types_table(types: Iterable[TypeCount]) -> pa.Table:
    """`POOL:types`: a row for each type of records, most frequent first; `name` is null unless the type is
    named."""
    rows = [{"id": t.id, "name": t.name or None, "records": t.records, "type": t.text} for t in types]
    return pa.Table.from_pylist(rows, schema=_TYPE)
