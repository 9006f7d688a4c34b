"""Reading a checkpoint: the footer first, then only the row groups that can hold what is asked for.

A file is open as long as somebody uses it.  A few decoded groups are kept, since questions come in key order.
Page checksums are verified, so that damage is seen and not folded.  A checkpoint that was purged meanwhile is a
`CheckpointGone`: load the journal again.  Damage that is found only when a row group is read, long after the
state was loaded, is a `CheckpointDamaged`, and `on_damage` hears of it: the journal passes that checkpoint over
from then on.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import groupby

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.checkpoints.layout import ROW, CheckpointHead, Column, Group, decode_head
from lake_core.errors import CheckpointDamaged, CheckpointGone, Corrupt, Unavailable
from lake_core.keys import KeyRange
from lake_core.store import Store

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
        self.groups_read = 0
        try:
            self._file = pq.ParquetFile(store.open_input(name), page_checksum_verification=True)
        except FileNotFoundError as error:
            raise CheckpointGone(f"{store.uri}/{name}: this checkpoint is gone; load again") from error
        except (pa.ArrowException, ValueError) as error:
            raise Corrupt(f"{store.uri}/{name}: not a readable checkpoint: {error}") from error
        except OSError as error:
            raise _unreadable(name, error) from error
        metadata = self._file.metadata
        self.head: CheckpointHead = decode_head(metadata.metadata or {}, name=name)
        if not self._file.schema_arrow.equals(ROW) or metadata.num_row_groups != len(self.head.groups):
            raise Corrupt(f"{store.uri}/{name}: the checkpoint does not have the groups that it lists")

    def count(self, section: str, *, branch: str = "", sub: str = "") -> int:
        """Rows of a part; reads nothing."""
        return sum(g.rows for _, g in self._groups(section, branch, sub))

    def branches(self, section: str) -> list[tuple[str, str]]:
        """The (branch, sub-pool) pairs that have rows in the section; reads nothing."""
        return sorted({(g.branch, g.sub) for g in self.head.groups if g.section == section})

    def scan(self, section: str, *, branch: str = "", sub: str = "") -> Iterator[pa.Table]:
        """All rows of a part, a row group at a time, in key order."""
        for number, _ in self._groups(section, branch, sub):
            yield self._read(number, keep=False)

    def overlapping(self, span: KeyRange, *, branch: str, sub: str) -> pa.Table:
        """References of which [key, high) overlaps the range."""
        found = [_EMPTY]
        for number, group in self._groups("reference", branch, sub):
            if group.reach > span.low and (span.high is None or group.first < span.high):
                table = self._read(number)
                if span.high is not None and group.last >= span.high:
                    table = table.slice(0, bisect_left(Column(table, "key"), span.high))
                found += _runs(table, [high > span.low for high in table["high"].to_pylist()])
        return pa.concat_tables(found)

    def at_key(self, section: str, key: bytes, *, branch: str = "", sub: str = "") -> pa.Table:
        """Rows of exactly this key."""
        found = [_EMPTY]
        for number, group in self._groups(section, branch, sub):
            if group.first <= key <= group.last:
                table = self._read(number)
                keys = Column(table, "key")
                begin = bisect_left(keys, key)
                found.append(table.slice(begin, bisect_right(keys, key, lo=begin) - begin))
        return pa.concat_tables(found)

    def verify(self) -> None:
        """Read everything; raises CheckpointDamaged where anything is damaged."""
        for number in range(len(self.head.groups)):
            self._read(number, keep=False)

    def _groups(self, section: str, branch: str, sub: str) -> Iterator[tuple[int, Group]]:
        for number, group in enumerate(self.head.groups):
            if group.section == section and group.branch == branch and group.sub == sub:
                yield number, group

    def _read(self, number: int, *, keep: bool = True) -> pa.Table:
        with self._lock:
            if number in self._decoded:
                self._decoded.move_to_end(number)
                return self._decoded[number]
            self.groups_read += 1
            try:
                table = self._file.read_row_group(number)
            except FileNotFoundError as error:
                raise CheckpointGone(
                    f"{self.name}: this checkpoint was purged meanwhile; load again"
                ) from error
            except (OSError, pa.ArrowException, ValueError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise Unavailable(f"{self.name}: {error}") from error
                raise self._damaged(number, str(error)) from error
            if table.num_rows != self.head.groups[number].rows or table["key"].null_count:
                raise self._damaged(number, "it does not have the rows that the footer lists")
            if keep:
                self._decoded[number] = table
                if len(self._decoded) > _KEPT_GROUPS:
                    self._decoded.popitem(last=False)
            return table

    def _damaged(self, number: int, reason: str) -> CheckpointDamaged:
        self._on_damage(self.name)
        return CheckpointDamaged(
            f"{self.name}: row group {number} of this checkpoint is damaged: {' '.join(reason.split())}; "
            "load again: it is passed over where older checkpoints or entries are left"
        )


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


def _unreadable(name: str, error: OSError) -> Corrupt | Unavailable:
    """Parquet's own errors are OSErrors too: those without an errno tell of the content."""
    if error.errno is None:
        return Corrupt(f"{name}: not a readable checkpoint: {error}")
    return Unavailable(f"{name}: {error}")
