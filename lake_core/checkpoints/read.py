"""Reads a checkpoint: the footer first, then only the row groups that may have the wanted rows.

A file stays open as long as a state uses it.  A few decoded groups stay in memory, because look-ups come in key
order.  Page checksums are verified, so that damage is noticed and not folded.  If the checkpoint was purged
meanwhile, reading raises `CheckpointGone`: load the journal again.

Damage may be found only when a row group is read, long after the state was loaded, in the middle of a query.
Then the file calls `on_damage`, and the journal ignores this checkpoint from then on.  The file then calls
`rebuild`, which folds the same state from an older checkpoint and entries.  So the read continues and only
takes longer.  If that is impossible, the read raises `CheckpointDamaged` (decision 27).
"""

from __future__ import annotations

import errno
import logging
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake_core.checkpoints.content import TEXTS, most_content, read_group
from lake_core.checkpoints.layout import (
    ROW,
    CheckpointFooter,
    LazyColumn,
    RowGroup,
    SectionPart,
    complete,
    decode_footer,
)
from lake_core.checkpoints.limits import CHECKPOINT_LIMITS, CheckpointLimits
from lake_core.errors import (
    CheckpointDamaged,
    CheckpointGone,
    Conflict,
    Corrupt,
    LakeError,
    NotFound,
    Unavailable,
    words,
)
from lake_core.keys import KeyRange
from lake_core.phrases import human_size
from lake_core.records.decoding import decoding
from lake_core.store import Store, planned

log = logging.getLogger(__name__)

_FEW = 2_048
"""If there are at most this many rows, one thread decodes as fast as several, and uses less processor time."""
_EMPTY = pa.Table.from_batches([], schema=ROW)

_ADVICE = "load again: the journal then reads older checkpoints or entries if there are any"

T = TypeVar("T")


RowCheck = Callable[[pa.Table, str, int], str | None]
"""A function that returns what is wrong with the rows of a section in a checkpoint of a version; None if nothing
is."""


def _ignore(name: str) -> None:
    return None


def _any_rows(table: pa.Table, section: str, version: int) -> None:
    return None


class CheckpointFile:
    """One open checkpoint; a part of it is the rows of one section, branch and sub-pool.  Safe to use from several
    threads."""

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        size: int | None = None,
        on_damage: Callable[[str], None] = _ignore,
        check: RowCheck = _any_rows,
        limits: CheckpointLimits = CHECKPOINT_LIMITS,
    ) -> None:
        """`size`: the bytes that a listing shows.  `check` is called for each row group that is decoded.
        Raises CheckpointGone, Corrupt, Unavailable."""
        self.name = name
        self._on_damage, self._check = on_damage, check
        self._limits = limits
        self._lock = threading.Lock()
        self._decoded: OrderedDict[int, pa.Table] = OrderedDict()
        self._contents, self._content = dict[int, int](), 0
        self._rebuilt: dict[tuple[str, str, str], pa.Table] | None = None
        self.rebuild: Callable[[], Iterable[SectionPart]] | None = None
        """Returns the rows of the same state from other objects, in the same order; called when damage is found."""
        self.groups_read = 0
        try:
            file = self._source = store.open_input(name, size=size)
            planned.fetch_tail(file)
            self._most = most_content(file.size())
            plain = pq.ParquetFile(file)
            metadata, schema = plain.metadata, plain.schema_arrow
        except FileNotFoundError as error:
            raise CheckpointGone(
                f"{store.uri}/{name}: a purge deleted this checkpoint; load again"
            ) from error
        except LakeError:
            raise
        except Exception as error:  # damaged bytes make Arrow raise errors of many classes
            if _is_of_the_store(error):
                raise Unavailable(f"{name}: {words(error)}") from error
            raise Corrupt(f"{store.uri}/{name}: not a readable checkpoint: {words(error)}") from error
        self.footer: CheckpointFooter = decode_footer(metadata.metadata or {}, name=name)
        rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        if not schema.equals(ROW) or rows != [group.rows for group in self.footer.groups]:
            raise Corrupt(
                f"{store.uri}/{name}: this checkpoint does not have the row groups that its footer lists"
            )
        self._parts: dict[tuple[str, str, str], list[tuple[int, RowGroup]]] = {}
        for number, group in enumerate(self.footer.groups):
            part = (group.section, group.branch, group.sub_pool)
            self._parts.setdefault(part, []).append((number, group))
        self._file = pq.ParquetFile(
            file, metadata=metadata, page_checksum_verification=True, read_dictionary=TEXTS
        )

    def count(self, section: str, *, branch: str = "", sub_pool: str = "") -> int:
        """Returns the number of rows of a part, from the footer."""
        return sum(g.rows for _, g in self._groups(section, branch, sub_pool))

    def span(self, section: str, *, branch: str = "", sub_pool: str = "") -> KeyRange | None:
        """Returns the range from the first key of a part to its greatest high bound, from the footer; None if it
        has no rows."""
        groups = [group for _, group in self._groups(section, branch, sub_pool)]
        return KeyRange(groups[0].first, max(group.reach for group in groups)) if groups else None

    def branches(self, section: str) -> list[tuple[str, str]]:
        """Returns the pairs of branch and sub-pool that have rows in the section, from the footer."""
        return sorted((branch, sub_pool) for of, branch, sub_pool in self._parts if of == section)

    def scan(
        self,
        section: str,
        *,
        branch: str = "",
        sub_pool: str = "",
        columns: tuple[str, ...] = tuple(ROW.names),
    ) -> Iterator[pa.Table]:
        """Yields all rows of a part in key order, a row group at a time, with these `columns` and the key."""
        for number, _ in self._groups(section, branch, sub_pool):
            yield self._read(number, keep=False, columns=columns)

    def greater(
        self, section: str, column: str, value: int, *, branch: str = "", sub_pool: str = ""
    ) -> Iterator[pa.Table]:
        """Yields the rows of a part that have a value greater than `value` in the column.  If a row group has no
        such row, its other columns are not read."""
        for number, _ in self._groups(section, branch, sub_pool):
            few = self._read(number, keep=False, columns=("key", column))
            if pc.any(pc.greater(few[column], value)).as_py():
                table = self._read(number, keep=False)
                yield table.filter(pc.greater(table[column], value))

    def overlapping(self, key_range: KeyRange, *, branch: str, sub_pool: str) -> pa.Table:
        """Returns the rows of the references whose range (from key to before high) overlaps the key range."""
        tables = [_EMPTY]
        for number, group in self._groups("reference", branch, sub_pool):
            if group.reach > key_range.low and (key_range.high is None or group.first < key_range.high):
                table = self._read(number)
                if key_range.high is not None and group.last >= key_range.high:
                    table = table.slice(0, bisect_left(LazyColumn(table, "key"), key_range.high))
                tables += _runs(table, [high > key_range.low for high in table["high"].to_pylist()])
        return pa.concat_tables(tables)

    def at_key(self, section: str, key: bytes, *, branch: str = "", sub_pool: str = "") -> pa.Table:
        """Returns the rows of a part that have exactly this key."""
        tables = [_EMPTY]
        for number, group in self._groups(section, branch, sub_pool):
            if group.first <= key <= group.last:
                table = self._read(number)
                keys = LazyColumn(table, "key")
                begin = bisect_left(keys, key)
                tables.append(table.slice(begin, bisect_right(keys, key, lo=begin) - begin))
        return pa.concat_tables(tables)

    def at_keys(
        self, section: str, keys: Collection[bytes], *, branch: str = "", sub_pool: str = ""
    ) -> pa.Table:
        """Returns the rows of a part that have one of these keys, in key order; each row group is read and
        searched once."""
        tables = [_EMPTY]
        sought = sorted(keys)
        for number, group in self._groups(section, branch, sub_pool):
            here = sought[bisect_left(sought, group.first) : bisect_right(sought, group.last)]
            if here:
                table = self._read(number)
                tables.append(table.filter(pc.is_in(table["key"], pa.array(here, pa.binary()))))
        return pa.concat_tables(tables)

    def between(
        self, section: str, first: bytes, end: bytes, *, branch: str = "", sub_pool: str = ""
    ) -> pa.Table:
        """Returns the rows with keys from `first` to before `end`, in key order; reads no other row groups."""
        tables = [_EMPTY]
        for number, group in self._groups(section, branch, sub_pool):
            if group.last >= first and group.first < end:
                table = self._read(number)
                keys = LazyColumn(table, "key")
                begin = bisect_left(keys, first)
                tables.append(table.slice(begin, bisect_left(keys, end, lo=begin) - begin))
        return pa.concat_tables(tables)

    def decoded(self, find: Callable[[], T]) -> T:
        """Returns what `find` returns for rows of this file. If a value cannot be decoded, calls `find` again with
        the rebuilt rows.

        Raises CheckpointDamaged if the rows cannot be rebuilt, Corrupt if a rebuilt value cannot be decoded
        either, and Unavailable.
        """
        try:
            with decoding(self.name, "a row of this checkpoint is damaged"):
                return find()
        except CheckpointDamaged:
            raise
        except Corrupt as error:
            self._on_damage(self.name)
            with self._lock:
                if self._rebuilt is None:
                    self._rebuild(CheckpointDamaged(f"{error}; {_ADVICE}"))
        with decoding(self.name, "a row of the state, read from older checkpoints and entries"):
            return find()

    def rows_of(self, table: pa.Table, decode: Callable[[pa.Table], Iterable[T]]) -> list[T]:
        """Decodes each row of a scanned table.  Raises CheckpointDamaged if a value cannot be decoded; the next
        load then ignores this checkpoint."""
        try:
            with decoding(self.name, "a row of this checkpoint is damaged"):
                return list(decode(table))
        except CheckpointDamaged:
            raise
        except Corrupt as error:
            self._on_damage(self.name)
            raise CheckpointDamaged(f"{error}; {_ADVICE}") from error

    def verify(self) -> None:
        """Reads every row group.  Raises CheckpointDamaged if one of them is damaged."""
        for number in range(len(self.footer.groups)):
            self._read(number, keep=False)

    def _groups(self, section: str, branch: str, sub_pool: str) -> Iterator[tuple[int, RowGroup]]:
        yield from self._parts.get((section, branch, sub_pool), ())

    def _read(
        self, number: int, *, keep: bool = True, columns: tuple[str, ...] = tuple(ROW.names)
    ) -> pa.Table:
        with self._lock:
            if number in self._decoded:
                self._decoded.move_to_end(number)
                return self._decoded[number]
            if self._rebuilt is not None:  # for sound groups too: each file has its own order of equal keys
                return _rows_of(number, self.footer.groups, self._rebuilt)
            try:
                table = self._decode(number, columns)
            except CheckpointDamaged as damage:
                self._on_damage(self.name)
                return self._rebuilt_rows(number, damage)
            if keep:
                self._decoded[number] = table
                if len(self._decoded) > self._limits.kept_groups:
                    self._decoded.popitem(last=False)
            return table

    def _decode(self, number: int, columns: tuple[str, ...]) -> pa.Table:
        self.groups_read += 1
        log.debug("%s: reads row group %d of %d", self.name, number, len(self.footer.groups))
        try:
            many = self.footer.groups[number].rows > _FEW
            planned.plan(self._source, lambda: self._chunks(number, columns), keeps=True)
            kept = self.footer.groups[number].section != "reference"  # of references only few groups are kept
            before = self._contents.get(number, 0)
            left = self._most - self._content + before if kept else self._most
            read = read_group(self._file, number, columns, most=left, use_threads=many)
        except FileNotFoundError as error:
            raise CheckpointGone(f"{self.name}: a purge deleted this checkpoint; load again") from error
        except LakeError:
            raise
        except Exception as error:  # damaged bytes make Arrow raise errors of many classes
            if _is_of_the_store(error):
                raise Unavailable(f"{self.name}: {words(error)}") from error
            raise self._damaged(number, str(error)) from error
        finally:
            planned.drop_planned(self._source)
        if read is None:
            raise self._damaged(number, f"the rows up to it hold more than {human_size(self._most)}")
        table, content = read
        if kept and content > before:
            self._contents[number], self._content = content, self._content + content - before
        if table.num_rows != self.footer.groups[number].rows or table["key"].null_count:
            raise self._damaged(number, "it does not have the rows that the footer lists")
        with decoding(self.name, "a row is damaged"):
            fault = self._check(table, self.footer.groups[number].section, self.footer.version)
        if fault is not None:
            raise self._damaged(number, fault)
        return table

    def _chunks(self, number: int, columns: tuple[str, ...]) -> list[planned.Range]:
        """Returns where the columns of a row group are in the file."""
        group = self._file.metadata.row_group(number)
        chunks = map(group.column, range(group.num_columns))
        return [planned.chunk_range(chunk) for chunk in chunks if chunk.path_in_schema in columns]

    def _rebuilt_rows(self, number: int, damage: CheckpointDamaged) -> pa.Table:
        """Returns the rows of a damaged group, folded again.  Raises `damage` if they cannot be, Unavailable."""
        rebuilt = self._rebuild(damage)
        try:
            return _rows_of(number, self.footer.groups, rebuilt)
        except Corrupt as error:
            self._rebuilt = None
            raise damage from error

    def _rebuild(self, damage: CheckpointDamaged) -> dict[tuple[str, str, str], pa.Table]:
        """Folds the rows of all parts again, and uses them from now on in place of the file's.  Raises `damage`
        if they cannot be folded, Unavailable."""
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
        except (Corrupt, Conflict, NotFound) as error:
            raise damage from error
        self._rebuilt = rebuilt
        self._decoded.clear()
        return rebuilt

    def _damaged(self, number: int, reason: str) -> CheckpointDamaged:
        return CheckpointDamaged(
            f"{self.name}: row group {number} of this checkpoint is damaged: {' '.join(reason.split())}; {_ADVICE}"
        )


def _rows_of(
    number: int, groups: tuple[RowGroup, ...], parts: dict[tuple[str, str, str], pa.Table]
) -> pa.Table:
    """Returns the rows of a group, cut from the whole part.  Raises Corrupt if the part does not have them.

    References are cut by position, which is the same however the state was folded.  Other sections have each
    key once and are cut by key, because the part may hold tokens that the checkpoint has forgotten.
    """
    group = groups[number]
    of_part = [
        g
        for g in groups
        if (g.section, g.branch, g.sub_pool) == (group.section, group.branch, group.sub_pool)
    ]
    part = parts.get((group.section, group.branch, group.sub_pool), _EMPTY)
    if group.section == "reference":
        index = next(i for i, g in enumerate(of_part) if g is group)
        begin, rows = sum(g.rows for g in of_part[:index]), group.rows
        is_whole = part.num_rows == sum(g.rows for g in of_part)
    else:
        keys = LazyColumn(part, "key")
        begin = bisect_left(keys, group.first)
        rows = bisect_right(keys, group.last, lo=begin) - begin
        is_whole = rows >= group.rows
    if not is_whole:
        raise Corrupt(
            f"neither an older checkpoint nor the entries give the {group.section} rows of this state"
        )
    return part.slice(begin, rows)


def _runs(table: pa.Table, mask: list[bool]) -> list[pa.Table]:
    """Returns the rows that the mask selects, as slices.  Arrow's own kernels would load pandas first, if it is
    installed; a cold plan would take four times as long."""
    runs, begin = [], 0
    for is_selected, rows in groupby(mask):
        count = sum(1 for _ in rows)
        if is_selected:
            runs.append(table.slice(begin, count))
        begin += count
    return runs


def _is_of_the_store(error: Exception) -> bool:
    """Whether the error comes from the store, and not from the content of the file.  Parquet's own errors are
    OSErrors too.  An OSError without an errno is about the content, and so is one about an impossible position."""
    return isinstance(error, OSError) and error.errno not in (None, errno.EINVAL, errno.EOVERFLOW)
