"""Loads files into a pool, spread over workers; the ingest and intervals agents use it.

The files are cut into units.  A worker reads the files of its unit, sorts them within bounded memory, and writes
finished objects under their final names.  It returns only descriptions of the objects.  The caller commits once,
under a token.  If it crashes at any point and runs again, the files are committed exactly once, and no
transaction names the objects of the first run.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from lake_core.errors import Conflict, InvalidInput
from lake_core.history.covered import interval_source
from lake_core.keys.encoding import key_class
from lake_core.phrases import counted, human_size
from lake_core.records import Source
from lake_core.records.pools import PoolConfig
from lake_core.store import Address, address_of
from log_lake.agents.ingest.plan import FilePart, Unit, plan_units, split_row_groups
from log_lake.coverage.key_ranges import interval_range, possible_ranges
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.bulk import Built, Bulk, Divider, whole
from log_lake.lake.delete_spec import DeleteSpec
from log_lake.lake.loads import builder, lease_of
from log_lake.lake.replace_checks import check_inside
from log_lake.lake.results import LoadResult, PendingLoad, repeated_line
from log_lake.lake.token_kinds import TokenKind
from log_lake.loading.block import Block, Reading
from log_lake.loading.builder import ObjectBuilder
from log_lake.loading.contract import LostValues, lost_line
from log_lake.loading.detect import format_of, read_blocks, read_row_groups
from log_lake.loading.formats.parquet import row_group_sizes
from log_lake.loading.misfits import summed
from log_lake.loading.opening import is_stream
from log_lake.loading.source_files import SourceFile
from log_lake.loading.sources import find_files
from log_lake.objects.write import WrittenObject
from log_lake.workers import Exchanging, SortedPiece, Worker, Workers, exchange

log = logging.getLogger(__name__)

SMALLEST_UNIT = 8 << 20
"""Bytes.  No unit is made smaller than this to keep more workers busy."""

ORDINALS_PER_UNIT = 100_000
"""Objects of one unit have ordinals in a range of their own, so that objects keep the order of the files."""


@dataclass(frozen=True)
class LoadWork:
    """Everything that a task of a load needs besides its unit, as plain values that can be sent to workers."""

    config: PoolConfig
    job: PendingLoad
    format: str
    readings: dict[str, Reading]


def load_files(
    workers: Workers,
    lake: Lake,
    *,
    pool_name: str,
    files: list[SourceFile],
    branch: str = "main",
    format: str = "auto",
    options: Mapping[str, str] | None = None,
    token: str = "",
    message: str = "",
    consume: bool = True,
    parallelism: int = 0,
    smallest_unit: int = SMALLEST_UNIT,
    interval: tuple[dt.datetime, dt.datetime] | None = None,
    bulk: bool = False,
    ranges: int | None = None,
) -> LoadResult:
    """Loads the files as one transaction; with `consume` it records them as ingested.

    With an interval, the files replace the pool's records in that interval.  If the interval was empty and
    stays empty, only its coverage is committed.  If the branch already covers it, nothing is committed.
    `parallelism` is the intended number of tasks; 0 means twice the size of the workers.  A task gets at least
    `smallest_unit` bytes.  `bulk` and `ranges`: as in `lake.bulk`.

    Raises what `Branch.commit` raises, InvalidInput for bad records, and Conflict if a file changed meanwhile.
    """
    target = lake.pool(pool_name).branch(branch)
    kinds = (
        () if interval else (TokenKind.LOAD,)
    )  # an interval may bring records, replace some, or only be marked
    job = target.begin_load(token=token, message=message, options=options, bulk=bulk, kinds=kinds)
    if isinstance(job, LoadResult):
        log.warning(repeated_line(job, pool_name=pool_name, token=token))
        return job
    readings = target.readings([f.uri for f in files], options=options, fields=job.fields)
    tasks = parallelism or 2 * workers.size
    units = _units(files, readings, format, tasks, smallest=smallest_unit)
    log.info(
        "%s: %s, %s, in %s",
        pool_name,
        counted(len(files), "file"),
        human_size(sum(f.size for f in files)),
        counted(len(units), "task"),
    )
    work = LoadWork(target.config, job, format, readings)
    with lease_of(target, job, why="load on Spark"):
        dividing = None
        if bulk:
            alone = not isinstance(workers, Exchanging)
            dividing = Divider(target, job, workers=workers.size, ranges=ranges, alone=alone)
            importing = FileBulk(target.config, job, work)
            built = exchange(workers, importing, units, divide=dividing, bounds=dividing.known)
            written = whole(built)
        else:
            parts = workers.map(partial(build_unit, work), units)
            written = sorted((one for part in parts for one in part), key=lambda one: one.action.ordinal)
        if consume or interval:
            check_unchanged(files, access=address_of(lake.store))
        replaced = _replaced(target, written, interval) if interval else None
        if interval and not written and (replaced is None or not target.may_delete(replaced)):
            marks = _marks(target, job, interval, replaced)
            return target.commit(job, objects=[], schemas=[], sources=marks) if marks else LoadResult(None)
        if dividing is not None:
            dividing.split()
        result = target.commit(
            job,
            objects=[w.action for w in written],
            replaced=replaced,
            schemas=list({w.action.schema: w.schema for w in written}.values()),
            sources=[f.source for f in files] if consume else None,
            misfits=summed(one.misfits for one in written),
        )
    if result.repeated:
        log.warning(repeated_line(result, pool_name=pool_name, token=token))
    return with_lost(result, written, pool_name=pool_name)


def with_lost(result: LoadResult, written: Iterable[WrittenObject], *, pool_name: str) -> LoadResult:
    """Returns the result with a note of what the contract left out of its records; also logs the note."""
    lost = LostValues()
    for one in written:
        lost.update(one.lost)
    line = lost_line(lost)
    if result.repeated or not line:
        return result
    log.warning("%s: %s", pool_name, line)
    return replace(result, notes=(*result.notes, line))


def _replaced(
    branch: Branch, written: list[WrittenObject], interval: tuple[dt.datetime, dt.datetime]
) -> DeleteSpec | None:
    """Returns the keys of the interval; None if neither the pool nor the new objects show the class of the
    key."""
    key = branch.config.key
    class_name = branch.revision().key_classes.get(key.names[0]) or next(
        (key_class(w.schema.field(key.names[0]).type) for w in written if not w.action.sub_pool), None
    )
    if class_name is None:
        return None
    key_range = interval_range(*interval, key=key, key_class=class_name)
    check_inside([w.action for w in written], key_range, key)
    return DeleteSpec(key_range, None)


def _marks(
    branch: Branch,
    job: PendingLoad,
    interval: tuple[dt.datetime, dt.datetime],
    replaced: DeleteSpec | None,
) -> list[Source]:
    """Returns the sources that say that an empty interval is covered; none if the branch already covers it.

    If no record shows the class of the key yet, returns the sources for each class, because one of them will be
    right.
    """
    begin, end = interval
    state, key = branch.revision().state, branch.config.key
    ranges = [replaced.key_range] if replaced else possible_ranges(begin, end, key=key, key_class=None)
    marks = [interval_source(span, id=job.origin.transaction_id) for span in ranges]
    before = [state.ingested(branch.name, mark.uri) for mark in marks if mark is not None]
    if all(one is not None and one.size for one in before):
        return []
    return [mark for mark in marks if mark is not None]


def check_unchanged(files: list[SourceFile], *, access: Address) -> None:
    """Raises Conflict if a file changed since it was found: the transaction would record another file than
    the one read."""
    now = {f.uri: f.source for f in find_files([f.uri for f in files], access=access)}
    changed = [f.uri for f in files if now.get(f.uri) != f.source]
    if changed:
        raise Conflict(
            f"file {changed[0]!r} changed since it was found; nothing was committed. Run the load again, and an "
            "agent from its task `find` on: that finds the file as it is now"
        )


def _units(
    files: list[SourceFile], readings: dict[str, Reading], format: str, parallelism: int, *, smallest: int
) -> list[Unit]:
    parts: list[FilePart] = []
    total = sum(f.size for f in files)
    for file in files:
        if is_stream(file.uri):
            raise InvalidInput(f"{file.uri}: Spark tasks cannot read it; use lake load")
        large = file.size > max(smallest, total // parallelism)
        if large and format_of(readings[file.uri], format) == "parquet":
            sizes = row_group_sizes(readings[file.uri])
            parts += split_row_groups(file.uri, sizes, target=max(smallest, sum(sizes) // parallelism))
        elif file.size:
            parts.append(FilePart(file.uri, file.size))
    return plan_units(parts, parallelism=parallelism, smallest=smallest)


def build_unit(work: LoadWork, worker: Worker, unit: Unit) -> list[WrittenObject]:
    """Reads the records of a unit's files, sorts them, writes them as objects, and returns the objects."""
    first_ordinal = unit.number * ORDINALS_PER_UNIT
    building = builder(
        ObjectBuilder, worker.store, work.config, work.job, worker.new_id, first_ordinal=first_ordinal
    )
    lost = LostValues()
    with building:
        for block in _blocks(work, unit, lost):
            building.add(block)
        written = building.finish()
    return [replace(one, lost=dict(lost)) for one in written[:1]] + written[1:]


def _blocks(work: LoadWork, unit: Unit, lost: LostValues) -> Iterator[Block]:
    """Yields the records of a unit; what the contract leaves out of them is counted in `lost`."""
    for part in unit.parts:
        reading = replace(work.readings[part.file], lost=lost)  # those of the work may have another unit's
        if part.row_groups is None:
            yield from read_blocks(reading, format=work.format)
        else:
            yield from read_row_groups(reading, list(range(*part.row_groups)))


@dataclass(frozen=True)
class FileBulk(Bulk):
    """A bulk import of files, in units that workers read."""

    work: LoadWork

    def give(
        self, worker: Worker, number: int, unit: Unit, bounds: tuple[bytes, ...]
    ) -> Iterator[SortedPiece | Built]:
        """Yields the pieces of unit `number`, then the objects that its worker wrote."""
        lost = LostValues()
        for one in self.pieces(worker, _blocks(self.work, unit, lost), bounds):
            yield one if isinstance(one, SortedPiece) else Built(one, dict(lost))
