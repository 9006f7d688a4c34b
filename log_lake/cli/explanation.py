"""lake explain: every stored version of a key in words: its transaction, and why it is or is not visible."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import msgspec

from lake_core.errors import NotFound
from lake_core.history.tombstone import Tombstone
from lake_core.keys import PoolKey
from lake_core.phrases import counted, printable
from log_lake.cli.data import span_of
from log_lake.cli.opening import open_lake
from log_lake.console.output import json_of, print_json
from log_lake.console.sink import print_text
from log_lake.reading.explain import StoredRecord
from log_lake.texts.keytext import range_words, show_key
from log_lake.where import show


def explain(args: Namespace) -> None:
    """Print the versions of a key, and the deletes that decide which one is visible."""
    view = open_lake(args).pool(args.pool).at(args.at)
    key_range = span_of(view, args)
    versions = view.explain(key_range)
    over = [view.names.shown_delete(t) for t in view.tombstones if t.key_range.overlaps(key_range)]
    if not versions and not over:
        raise NotFound(
            f"pool {args.pool!r}: no object of version {view.version} has a record with key {args.key}; "
            f"lake head {args.pool} shows the first ones"
        )
    if args.json:
        print_json(
            {
                "pool": args.pool,
                "revision": view.version,
                "versions": [_version(v, view.key) for v in versions],
                "tombstones": [_tombstone(t, view.key) for t in over],
            }
        )
        return
    for line in tell(args.pool, view.version, versions, over, key=view.key):
        print_text(printable(line) + "\n")


def _version(version: StoredRecord, key: PoolKey) -> dict[str, Any]:
    return {
        "key": show_key(version.key, key),
        "version": version.transaction_version,
        "place": version.ordinal,
        "object": version.object,
        "fate": version.fate,
        "by": version.by,
        "record": msgspec.Raw(version.record.encode()),
    }


def _tombstone(tombstone: Tombstone, key: PoolKey) -> dict[str, Any]:
    return {
        "version": tombstone.version,
        "tombstone": tombstone.id,
        "from": show_key(tombstone.low, key) if tombstone.low else None,
        "to": show_key(tombstone.high, key),
        "where": show(tombstone.condition) if tombstone.condition is not None else None,
        "covers": "this transaction" if tombstone.self_only else "older records",
        "reason": tombstone.reason,
    }


def tell(
    pool_name: str,
    revision: int,
    versions: Sequence[StoredRecord],
    over: Sequence[Tombstone],
    *,
    key: PoolKey,
) -> list[str]:
    """Returns the explanation in lines: a heading, one paragraph per version from old to new, then the deletes in
    the range."""
    answer = sum(v.fate in ("visible", "combined") for v in versions)
    heading = (
        f"{pool_name} at version {revision:,}: {counted(len(versions), 'stored version')}, {answer:,} of them in "
        "the answer"
    )
    lines = [heading]
    for number, version in enumerate(versions, 1):
        lines += [
            "",
            f"{number}. key {json_of(show_key(version.key, key))}: version {version.transaction_version:,} "
            f"wrote it, "
            f"object {version.object} holds it.",
            f"   {_fate(version, versions, over)}",
            f"   The record: {version.record}",
        ]
    lines += [""] if over else []
    lines += [_tombstone_line(t, key) for t in over]
    return lines


def _fate(version: StoredRecord, versions: Sequence[StoredRecord], over: Sequence[Tombstone]) -> str:
    match version.fate:
        case "visible":
            return "Visible: no delete covers it, and no newer version replaces it."
        case "combined":
            others = sum(v.fate == "combined" and v.key == version.key for v in versions) - 1
            return f"Part of the answer: it is combined with {counted(others, 'other version')} of its key."
        case "superseded":
            return f"Not visible: version {int(version.by):,} wrote a newer version of its key."
        case "marker":
            return "Not visible: its field _deleted is true, so it deletes its key."
        case _:
            named = {t.id: t for t in over}.get(version.by)
            if named is not None and named.self_only:
                return f"Not visible: its load was {named.reason}."
            reason = _delete(named) if named is not None else f"Tombstone {version.by}"
            return f"Not visible: {reason[0].lower()}{reason[1:]} covers it."


def _tombstone_line(tombstone: Tombstone, key: PoolKey) -> str:
    where = f" where {show(tombstone.condition)}" if tombstone.condition is not None else ""
    if tombstone.self_only:
        return (
            f"The load of version {tombstone.version:,} was {tombstone.reason}, which hides its records "
            f"of {_range(tombstone, key)}{where}."
        )
    return f"{_delete(tombstone)} reaches {_range(tombstone, key)}: records written before it{where}."


def _delete(tombstone: Tombstone) -> str:
    kind = "The replace" if tombstone.replaces else "The delete"
    why = f" ({tombstone.reason})" if tombstone.reason else ""
    return f"{kind} of version {tombstone.version:,}{why}"


def _range(tombstone: Tombstone, key: PoolKey) -> str:
    words = range_words(
        tombstone.low, tombstone.high, key, text=lambda bound, key: json_of(show_key(bound, key))
    )
    return words or "all keys"
