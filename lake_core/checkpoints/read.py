"""Reading a checkpoint: the footer first, then only the row groups that can hold what is asked for.

A file is open as long as somebody uses it.  A few decoded groups are kept, since questions come in key order.
Page checksums are verified, so that damage is seen and not folded.  A checkpoint that was purged meanwhile is a
`CheckpointGone`: load the journal again.

Damage may be found only when a row group is read, long after the state was loaded, in the middle of a query.  Then
`on_damage` hears of it, so that the journal passes that checkpoint over from then on, and `rebuild` gives the same
state once more, from an older checkpoint and entries: who reads notices nothing but the time.  Only where that is
impossible is it a `CheckpointDamaged`.
"""

from __future__ import annotations

import errno
import logging
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.checkpoints.layout import ROW, CheckpointFooter, Column, Group, Part, complete, decode_footer
from lake_core.errors import (
    CheckpointDamaged,
    CheckpointGone,
    Conflict,
    Corrupt,
    LakeError,
    NotFound,
    Unavailable,
)
from lake_core.keys import KeyRange
from lake_core.store import Store
from lake_core.store.failures import words

log = logging.getLogger(__name__)

_KEPT_GROUPS = 4
_EMPTY = pa.Table.from_batches([], schema=ROW)


def _tell_nobody(name: str) -> None:
    return None


class CheckpointFile:
    """One checkpoint, open.  Safe to use from several threads."""

    def __init__(self, store: Store, name: str, *, on_damage: Callable[[str], None] = _tell_nobody) -> None:
        """Raises CheckpointGone, Corrupt, Unavailable."""
        self.name = name
        self._on_damage = on_damage
        self._lock = threading.Lock()
        self._decoded: OrderedDict[int, pa.Table] = OrderedDict()
        self._rebuilt: dict[tuple[str, str, str], pa.Table] | None = None
        self.rebuild: Callable[[], Iterable[Part]] | None = None
        """The rows of the same state from elsewhere, in the same order; asked for once damage is found."""
        self.groups_read = 0
        try:
            self._file = pq.ParquetFile(store.open_input(name), page_checksum_verification=True)
            metadata, schema = self._file.metadata, self._file.schema_arrow
        except FileNotFoundError as error:
            raise CheckpointGone(f"{store.uri}/{name}: this checkpoint is gone; load again") from error
        except LakeError:
            raise
        except Exception as error:  # Arrow raises what the bytes lead it to
            if _is_of_the_store(error):
                raise Unavailable(f"{name}: {words(error)}") from error
            raise Corrupt(f"{store.uri}/{name}: not a readable checkpoint: {words(error)}") from error
        self.footer: CheckpointFooter = decode_footer(metadata.metadata or {}, name=name)
        if not schema.equals(ROW) or metadata.num_row_groups != len(self.footer.groups):
            raise Corrupt(f"{store.uri}/{name}: the checkpoint does not have the groups that it lists")

    def count(self, section: str, *, branch: str = "", sub_pool: str = "") -> int:
        """Rows of a part; reads nothing."""
        return sum(g.rows for _, g in self._groups(section, branch, sub_pool))

    def branches(self, section: str) -> list[tuple[str, str]]:
        """The (branch, sub-pool) pairs that have rows in the section; reads nothing."""
        return sorted({(g.branch, g.sub_pool) for g in self.footer.groups if g.section == section})

    def scan(self, section: str, *, branch: str = "", sub_pool: str = "") -> Iterator[pa.Table]:
        """All rows of a part, a row group at a time, in key order."""
        for number, _ in self._groups(section, branch, sub_pool):
            yield self._read(number, keep=False)

    def overlapping(self, key_range: KeyRange, *, branch: str, sub_pool: str) -> pa.Table:
        """References of which [key, high) overlaps the range."""
        found = [_EMPTY]
        for number, group in self._groups("reference", branch, sub_pool):
            if group.reach > key_range.low and (key_range.high is None or group.first < key_range.high):
                table = self._read(number)
                if key_range.high is not None and group.last >= key_range.high:
                    table = table.slice(0, bisect_left(Column(table, "key"), key_range.high))
                found += _runs(table, [high > key_range.low for high in table["high"].to_pylist()])
        return pa.concat_tables(found)

    def at_key(self, section: str, key: bytes, *, branch: str = "", sub_pool: str = "") -> pa.Table:
        """Rows of exactly this key."""
        found = [_EMPTY]
        for number, group in self._groups(section, branch, sub_pool):
            if group.first <= key <= group.last:
                table = self._read(number)
                keys = Column(table, "key")
                begin = bisect_left(keys, key)
                found.append(table.slice(begin, bisect_right(keys, key, lo=begin) - begin))
        return pa.concat_tables(found)

    def verify(self) -> None:
        """Read everything; raises CheckpointDamaged where anything is damaged."""
        for number in range(len(self.footer.groups)):
            self._read(number, keep=False)

    def _groups(self, section: str, branch: str, sub_pool: str) -> Iterator[tuple[int, Group]]:
        for number, group in enumerate(self.footer.groups):
            if group.section == section and group.branch == branch and group.sub_pool == sub_pool:
                yield number, group

    def _read(self, number: int, *, keep: bool = True) -> pa.Table:
        with self._lock:
            if number in self._decoded:
                self._decoded.move_to_end(number)
                return self._decoded[number]
            if (
                self._rebuilt is not None
            ):  # also groups that are sound: the order of equal keys is one file's own
                return _rows_of(number, self.footer.groups, self._rebuilt)
            try:
                table = self._decode(number)
            except CheckpointDamaged as damage:
                self._on_damage(self.name)
                return self._from_elsewhere(number, damage)
            if keep:
                self._decoded[number] = table
                if len(self._decoded) > _KEPT_GROUPS:
                    self._decoded.popitem(last=False)
            return table

    def _decode(self, number: int) -> pa.Table:
        self.groups_read += 1
        try:
            table = self._file.read_row_group(number)
        except FileNotFoundError as error:
            raise CheckpointGone(f"{self.name}: this checkpoint was purged meanwhile; load again") from error
        except LakeError:
            raise
        except Exception as error:  # Arrow raises what the bytes lead it to
            if _is_of_the_store(error):
                raise Unavailable(f"{self.name}: {words(error)}") from error
            raise self._damaged(number, str(error)) from error
        if table.num_rows != self.footer.groups[number].rows or table["key"].null_count:
            raise self._damaged(number, "it does not have the rows that the footer lists")
        return table

    def _from_elsewhere(self, number: int, damage: CheckpointDamaged) -> pa.Table:
        """The rows of a damaged group.  Raises the damage where they cannot be had, Unavailable."""
        if self.rebuild is None:
            raise damage
        log.warning("%s; older checkpoints and entries are read instead", str(damage).partition(";")[0])
        try:
            rebuilt = {
                (part.section, part.branch, part.sub_pool): pa.concat_tables(
                    [_EMPTY, *(complete(table, part) for table in part.tables)]
                )
                for part in self.rebuild()
            }
            rows = _rows_of(number, self.footer.groups, rebuilt)
        except (Corrupt, Conflict, NotFound) as error:
            raise damage from error
        self._rebuilt = rebuilt
        return rows

    def _damaged(self, number: int, reason: str) -> CheckpointDamaged:
        return CheckpointDamaged(
            f"{self.name}: row group {number} of this checkpoint is damaged: {' '.join(reason.split())}; "
            "load again: it is passed over where older checkpoints or entries are left"
        )


def _rows_of(number: int, groups: tuple[Group, ...], parts: dict[tuple[str, str, str], pa.Table]) -> pa.Table:
    """The rows that a group holds, from the whole part.

    By place, which is the same wherever the state comes from; but where a key comes once, by key: the part may hold
    tokens that the checkpoint has forgotten.  Raises Corrupt where the part does not have the rows.
    """
    group = groups[number]
    of_part = [
        g
        for g in groups
        if (g.section, g.branch, g.sub_pool) == (group.section, group.branch, group.sub_pool)
    ]
    part = parts.get((group.section, group.branch, group.sub_pool), _EMPTY)
    if group.section == "reference":
        at = next(n for n, g in enumerate(of_part) if g is group)
        begin, rows = sum(g.rows for g in of_part[:at]), group.rows
        is_whole = part.num_rows == sum(g.rows for g in of_part)
    else:
        keys = Column(part, "key")
        begin = bisect_left(keys, group.first)
        rows = bisect_right(keys, group.last, lo=begin) - begin
        is_whole = rows >= group.rows
    if not is_whole:
        raise Corrupt(f"the {group.section}s of this state cannot be had from elsewhere")
    return part.slice(begin, rows)


def _runs(table: pa.Table, wanted: list[bool]) -> list[pa.Table]:
    """The wanted rows, as slices: Arrow's own kernels would load pandas first, if it is installed, and a cold
    plan would take four times as long."""
    runs, begin = [], 0
    for is_wanted, rows in groupby(wanted):
        count = sum(1 for _ in rows)
        if is_wanted:
            runs.append(table.slice(begin, count))
        begin += count
    return runs


def _is_of_the_store(error: Exception) -> bool:
    """Parquet's own errors are OSErrors too: those without an errno tell of the content, and so does a position
    that no file has."""
    return isinstance(error, OSError) and error.errno not in (None, errno.EINVAL, errno.EOVERFLOW)
