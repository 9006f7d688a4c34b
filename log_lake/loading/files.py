"""Reads several files as one load: yields their records, collects notes on detected options, and applies the limit
of bad records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from lake_core.errors import InvalidInput
from lake_core.naming import REJECTED
from lake_core.phrases import counted
from lake_core.records import AddObject
from lake_core.schemas.limits import Fields
from log_lake.loading.block import Block, Reading, Rejected
from log_lake.loading.options import Limit


class FileSource:
    """Reads files one after another.  `notes` are complete once all blocks were read."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings
        self._files_by_note: dict[str, list[str]] = {}

    def blocks(self, format: str, *, limit: Limit | None = None) -> Iterator[Block]:
        """Yields the records of all files, in blocks.

        Raises InvalidInput for a file that cannot be read.  Also raises it if `limit` has a count and the files
        have more bad records than that.
        """
        from log_lake.loading.detect import read_blocks  # the readers of all formats load slowly

        rejected, first, fields = 0, "", Fields()
        for reading in self._readings:
            reading.fields = fields
            reading.tell = partial(self._tell, reading.file)
            for block in read_blocks(reading, format=format):
                if block.rejected:
                    first = first or _shown(block.rejected[0])
                    if limit is not None and limit.count is not None:
                        _check_count(block.rejected, rejected, limit.count, first)
                    rejected += len(block.rejected)
                yield block

    def _tell(self, file: str, note: str) -> None:
        files = self._files_by_note.setdefault(note, [])
        if file not in files:
            files.append(file)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the readers detected, such as a delimiter: a note for each finding, with the files that it is
        about."""
        return tuple(f"{_named(files)}: {note}" for note, files in self._files_by_note.items())


def _check_count(bad: Sequence[Rejected], before: int, most: int, first: str) -> None:
    if before + len(bad) <= most:
        return
    one_more = _shown(bad[most - before])
    more = f", the first is {first}" if first != one_more else ""
    raise InvalidInput(
        f"more than {counted(most, 'record')} (bad_records.max) cannot be read: one more is {one_more}{more}"
    )


def _shown(rejected: Rejected) -> str:
    return f"{rejected.file}, line {rejected.line}: {rejected.reason}"


def _named(files: list[str]) -> str:
    name = files[0].rpartition("/")[2]
    return name if len(files) == 1 else f"{name} and {counted(len(files) - 1, 'more file')}"


def check_rejected(objects: Sequence[AddObject], limit: Limit | None) -> None:
    """Raises InvalidInput if a load rejected more records than the limit allows."""
    if fault := rejected_fault(objects, limit):
        raise InvalidInput(fault)


def rejected_fault(objects: Sequence[AddObject], limit: Limit | None) -> str:
    """Returns the error text if a load rejected more records than the limit allows; otherwise ""."""
    rejected = sum(o.records for o in objects if o.sub_pool == REJECTED)
    records = sum(o.records for o in objects)
    if limit is None or limit.allows(rejected, records):
        return ""
    return (
        f"{rejected:,} of {counted(records, 'record')} cannot be read; bad_records.max allows {limit}; "
        "lake load --dry-run shows them"
    )
