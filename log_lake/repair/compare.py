"""Compares a checkpoint with the state that the fold of the entries gives: two streams of rows, a piece at a time.

Both sides come in the order of their keys; references of equal low bounds may be in any order.  So the rows up
to a common key are cut from both, sorted, and compared as columns.  Few tables are in memory, whatever the
state's size.

Two sections follow their own rules.  A checkpoint forgets old tokens and may date them anew.  So its tokens
must be among those of the fold, except tokens that are older than the state at which the fold began.  `newest`
of a branch may be any id that is not below the branch's objects.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

import msgspec
import pyarrow as pa

from lake_core.checkpoints import SectionPart
from lake_core.checkpoints.layout import LazyColumn
from lake_core.history.below import TOKEN
from lake_core.history.checkpoint import BRANCH, BranchRow
from lake_core.history.snapshot.fixed import REFERENCE, by_key
from lake_core.history.snapshot.reference import from_rows
from lake_core.history.state import Remembered
from lake_core.records.decoders import MSGPACK

ComparedPlace = tuple[str, str, str]
"""Section, branch and sub-pool of a part."""


def first_difference(fold: Iterable[SectionPart], stored: Iterable[SectionPart], *, since: int) -> str | None:
    """Returns the first difference, in words; None if both sides are equal.  The fold began at version
    `since`."""
    folded = {(p.section, p.branch, p.sub_pool): p.tables for p in fold}
    kept = {(p.section, p.branch, p.sub_pool): p.tables for p in stored}
    for place in sorted(folded.keys() | kept.keys()):
        for pair in aligned(folded.get(place, ()), kept.get(place, ())):
            if (what := _RULES.get(place[0], _same)(*pair, since)) is not None:
                return f"{_called(place)}: {what}"
    return None


def aligned(one: Iterable[pa.Table], two: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yields both streams, cut at the same keys: each piece has all rows of its keys."""
    streams = [_Stream(one), _Stream(two)]
    while lasts := [stream.last for stream in streams if stream.fill()]:  # bounded by the rows of both
        limit = min(lasts)
        yield streams[0].cut(limit), streams[1].cut(limit)


class _Stream:
    """Joins tables in the order of their keys, so that `cut` can take all rows up to a key."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self._tables = iter(tables)
        self._held: list[pa.Table] = []

    @property
    def last(self) -> bytes:
        last: bytes = self._held[-1]["key"][-1].as_py()
        return last

    def fill(self) -> bool:
        """Whether the stream has more rows; reads the next table if no rows are waiting."""
        while not self._held:
            table = next(self._tables, None)
            if table is None:
                return False
            self._add(table)
        return True

    def _add(self, table: pa.Table) -> None:
        if table.num_rows:
            self._held.append(table)

    def cut(self, limit: bytes) -> pa.Table:
        """Returns all rows with keys up to `limit` (inclusive), and removes them from the stream."""
        while self._held and self.last <= limit:  # the key may go on in the next table
            table = next(self._tables, None)
            if table is None:
                break
            self._add(table)
        if not self._held:
            return None
        whole = pa.concat_tables(self._held)
        end = bisect_right(LazyColumn(whole, "key"), limit)
        rest = whole.slice(end)
        self._held = [rest] if rest.num_rows else []
        return whole.slice(0, end)


def _same(fold: pa.Table | None, stored: pa.Table | None, since: int) -> str | None:
    return _of_values(fold, stored, lambda value: value)


def _of_values(
    fold: pa.Table | None, stored: pa.Table | None, normal: Callable[[bytes], bytes]
) -> str | None:
    if fold is not None and stored is not None and fold.equals(stored.select(fold.column_names)):
        return None
    one, two = _by_key(fold, normal), _by_key(stored, normal)
    for key in sorted(one.keys() | two.keys()):
        if one.get(key) != two.get(key):
            return f"{key.decode(errors='replace')!r} {_where(key in one, key in two)}"
    return None


def _by_key(table: pa.Table | None, normal: Callable[[bytes], bytes]) -> dict[bytes, tuple[bytes, object]]:
    rows = [] if table is None else table.select(["key", "value", "seq"]).to_pylist()
    return {row["key"]: (normal(row["value"] or b""), row["seq"]) for row in rows}


def _where(in_fold: bool, in_checkpoint: bool) -> str:
    if in_fold and in_checkpoint:
        return "differs"
    return "is only in " + ("the entries" if in_fold else "the checkpoint")


def _references(fold: pa.Table | None, stored: pa.Table | None, since: int) -> str | None:
    if (
        fold is not None
        and stored is not None
        and by_key(fold).equals(by_key(stored.select(fold.column_names)))
    ):
        return None  # the rule; rows as Python values are for the one that differs
    one, two = _by_identity(fold), _by_identity(stored)
    for identity in sorted(one.keys() | two.keys()):
        if not _are_alike(one.get(identity), two.get(identity)):
            return f"the reference to object {identity[0]} {_where(identity in one, identity in two)}"
    rows = sum(table.num_rows for table in (fold, stored) if table is not None)
    return "a reference is there twice" if len(one) + len(two) < rows else None


def _are_alike(one: dict[str, object] | None, two: dict[str, object] | None) -> bool:
    """Whether two rows are of the same reference.  A program that does not know buckets leaves them out."""
    if one is None or two is None or one == two:
        return one == two
    (first, has), (second, has_too) = _plain(one), _plain(two)
    return has != has_too and first == second


def _plain(row: dict[str, object]) -> tuple[dict[str, object], bool]:
    """Returns the row without buckets, and whether it had one."""
    (reference,) = from_rows(pa.Table.from_pylist([row]), sub_pool="")
    columns = tuple(msgspec.structs.replace(column, bucket=None) for column in reference.columns)
    value = msgspec.structs.replace(reference, columns=columns)
    return {**row, "value": value}, columns != reference.columns


def _by_identity(table: pa.Table | None) -> dict[tuple[str, bytes], dict[str, object]]:
    rows = [] if table is None else table.to_pylist()
    return {(row["object"], row["key"]): row for row in rows}


def _tokens(fold: pa.Table | None, stored: pa.Table | None, since: int) -> str | None:
    tokens = {row["key"]: _undated(row["value"]) for row in (fold.to_pylist() if fold is not None else ())}
    for row in stored.to_pylist() if stored is not None else ():
        token = _undated(row["value"])
        if row["key"] not in tokens and token.version <= since:
            continue  # the fold began with a checkpoint that had forgotten it
        if tokens.get(row["key"]) != token:
            return f"the token {row['key'].decode()!r} is not as the entries give it"
    return None


def _undated(value: bytes) -> Remembered:
    return msgspec.structs.replace(MSGPACK.of(Remembered).decode(value), time=0)


def _branches(fold: pa.Table | None, stored: pa.Table | None, since: int) -> str | None:
    def normal(value: bytes) -> bytes:
        row = MSGPACK.of(BranchRow).decode(value)
        return msgspec.msgpack.encode(msgspec.structs.replace(row, newest=""))

    return _of_values(fold, stored, normal)


_RULES: dict[str, Callable[[pa.Table | None, pa.Table | None, int], str | None]] = {
    REFERENCE: _references,
    TOKEN: _tokens,
    BRANCH: _branches,
}


def _called(place: ComparedPlace) -> str:
    return place[0] + "".join(f" of {name}" for name in place[1:] if name)
