"""Taking landed files into a pool, spread over Spark tasks: the ingest agent's application.

    spark-submit spark_apps/ingest.py --lake URI --pool POOL [--token T] FILE...

The driver cuts the batch into units; each unit is one task, in which a Python worker reads its files, sorts
them within bounded memory and writes finished objects straight to their final names.  What comes back to
the driver are only descriptions of objects (`spread`).  The driver commits once, under a token: run again after a
crash at any point, the batch is committed exactly once, and what a dead run had written is left to the vacuum.
"""

from __future__ import annotations

import datetime as dt
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from lake_core import errors
from lake_core.agents.ingest.units import Part, Unit, plan_units, split_row_groups
from lake_core.agents.intervals.policy import interval_range
from lake_core.cli.parser import Parser
from lake_core.errors import Conflict, InvalidInput
from lake_core.keys.encoding import key_class
from lake_core.lake import Lake
from lake_core.lake.branch import Branch
from lake_core.lake.delete_spec import DeleteSpec
from lake_core.lake.loads import builder
from lake_core.lake.replace_checks import check_inside
from lake_core.lake.results import LoadResult, PendingLoad, repeated_line
from lake_core.loading.block import Reading
from lake_core.loading.detect import format_of, read_blocks, read_row_groups
from lake_core.loading.formats.parquet import row_group_sizes
from lake_core.loading.opening import is_stream
from lake_core.loading.sources import find_files
from lake_core.naming import IdSource
from lake_core.objects.write import WrittenObject
from lake_core.records.pools import PoolConfig
from lake_core.records.source_files import SourceFile
from lake_core.store import open_store
from spark_apps import spread as spreading
from spark_apps.session import spark_session

log = logging.getLogger(__name__)

SMALLEST_UNIT = 8 << 20
ORDINALS_PER_UNIT = 100_000


@dataclass(frozen=True)
class IngestWork:
    """All that a task needs; plain values, so that it can be shipped to any worker."""

    store: str
    config: PoolConfig
    job: PendingLoad
    format: str
    readings: dict[str, Reading]
    units: tuple[Unit, ...]


def ingest(
    spark: Any,
    lake: Lake,
    *,
    pool: str,
    files: list[SourceFile],
    branch: str = "main",
    format: str = "auto",
    options: Mapping[str, str] | None = None,
    token: str = "",
    message: str = "",
    consume: bool = True,
    parallelism: int = 0,
    interval: tuple[dt.datetime, dt.datetime] | None = None,
) -> LoadResult:
    """Take in the files as one transaction; `consume` records them as taken.

    With an interval they replace what the pool holds of it; an interval that was empty and stays so is no
    transaction.  `parallelism` is the number of tasks aimed at (0: twice the session's default).  Raises what
    `Branch.commit` raises, InvalidInput for bad records, and Conflict for a file that was changed meanwhile.
    """
    target = lake.pool(pool).branch(branch)
    job = target.begin_load(token=token, message=message, options=options)
    if isinstance(job, LoadResult):
        log.warning(repeated_line(job, pool_name=pool, token=token))
        return job
    readings = target.readings([f.uri for f in files], options=options)
    units = _units(files, readings, format, parallelism or 2 * spreading.parallelism(spark))
    work = work_of(lake, target, job, units, format, readings)
    written = spreading.spread(spark, partial(build_unit, work), len(units))
    if consume or interval:
        check_unchanged(files)
    replaced = _replaced(target, written, interval) if interval else None
    if interval and not written and (replaced is None or not target.may_delete(replaced)):
        return LoadResult(None)
    result = target.commit(
        job,
        objects=[w.action for w in written],
        replaced=replaced,
        schemas=list({w.action.schema: w.schema for w in written}.values()),
        sources=[f.source for f in files] if consume else None,
    )
    if result.repeated:
        log.warning(repeated_line(result, pool_name=pool, token=token))
    return result


def _replaced(
    branch: Branch, written: list[WrittenObject], interval: tuple[dt.datetime, dt.datetime]
) -> DeleteSpec | None:
    """The keys of the interval; None where neither the pool nor what is new tells what its key is."""
    key = branch.config.key
    known = branch.revision().key_classes.get(key.names[0]) or next(
        (key_class(w.schema.field(key.names[0]).type) for w in written if not w.action.sub_pool), None
    )
    if known is None:
        return None
    key_range = interval_range(*interval, key=key, key_class=known)
    check_inside([w.action for w in written], key_range, key)
    return DeleteSpec(key_range, None)


def check_unchanged(files: list[SourceFile]) -> None:
    """What is recorded as taken is what was read: a file that grew on the way would be taken in twice."""
    now = {f.uri: f.source for f in find_files([f.uri for f in files])}
    changed = [f.uri for f in files if now.get(f.uri) != f.source]
    if changed:
        raise Conflict(f"{changed[0]} was changed while it was read; the next run takes it in as it is then")


def _units(
    files: list[SourceFile], readings: dict[str, Reading], format: str, parallelism: int
) -> list[Unit]:
    parts: list[Part] = []
    total = sum(f.size for f in files)
    for file in files:
        if is_stream(file.uri):
            raise InvalidInput(f"{file.uri}: Spark tasks cannot read it; use lake load")
        large = file.size > max(SMALLEST_UNIT, total // parallelism)
        if large and format_of(readings[file.uri], format) == "parquet":
            sizes = row_group_sizes(readings[file.uri])
            parts += split_row_groups(file.uri, sizes, target=max(SMALLEST_UNIT, sum(sizes) // parallelism))
        elif file.size:
            parts.append(Part(file.uri, file.size))
    return plan_units(parts, parallelism=parallelism, smallest=SMALLEST_UNIT)


def work_of(
    lake: Lake,
    branch: Branch,
    job: PendingLoad,
    units: list[Unit],
    format: str,
    readings: dict[str, Reading] | None = None,
) -> IngestWork:
    """What the tasks of a job do; `readings` are by the pool's settings unless they are given."""
    names = dict.fromkeys(part.file for unit in units for part in unit.parts)
    return IngestWork(
        store=lake.store.uri,
        config=branch.config,
        job=job,
        format=format,
        readings=branch.readings(list(names)) if readings is None else readings,
        units=tuple(units),
    )


def build_unit(work: IngestWork, number: int) -> list[WrittenObject]:
    """In a worker: read, sort, write."""
    unit = work.units[number]
    first_ordinal = unit.number * ORDINALS_PER_UNIT
    building = builder(
        open_store(work.store), work.config, work.job, IdSource().new, first_ordinal=first_ordinal
    )
    for part in unit.parts:
        reading = work.readings[part.file]
        if part.row_groups is None:
            blocks = read_blocks(reading, format=work.format)
        else:
            blocks = read_row_groups(reading, list(range(*part.row_groups)))
        for block in blocks:
            building.add(block)
    return building.finish()


def ingest_interval(work: dict[str, Any]) -> dict[str, Any]:
    """The agent's mapped task: one pool as `agents.intervals.plan.find` gave it.

    With an interval it is replaced; without, the files are appended, once for each run.  An interval is replaced
    as a whole or not at all, so a file that is refused fails the task.
    """
    lake = Lake.open(work["lake"])
    pool = lake.pool(work["pool"])
    interval = None
    if work["begin"]:
        interval = dt.datetime.fromisoformat(work["begin"]), dt.datetime.fromisoformat(work["end"])
    did = f"replaced {work['begin']} to {work['end']}" if interval else "appended by hand"
    with spark_session(f"lake interval {work['pool']}") as spark:
        result = ingest(
            spark,
            lake,
            pool=work["pool"],
            files=msgspec.convert(work["files"], list[SourceFile]),
            branch=work["branch"],
            format=pool.settings["ingest.format"],
            token=work["token"],
            message=did,
            consume=False,
            interval=interval,
        )
    return {"pool": work["pool"], "begin": work["begin"]} | vars(result)


def main(argv: list[str] | None = None) -> int:
    """As a submitted application: one JSON line on standard output, an exit status as `lake load` has."""
    from lake_core.cli.data import report_load
    from lake_core.cli.options import add_read_options, read_options
    from lake_core.cli.reading import files_to_read

    parser = Parser(description="Take landed files into a pool, on Spark.")
    parser.add_argument("--lake", required=True, metavar="URI")
    parser.add_argument("--pool", required=True)
    parser.add_argument("--branch", default="main")
    add_read_options(parser)
    parser.add_argument("--token", default="", help="load once under this token, however often it runs")
    parser.add_argument("--message", default="")
    parser.add_argument("--remote", default=None, metavar="sc://HOST:PORT", help="a Spark Connect server")
    parser.add_argument("files", nargs="+", metavar="FILE")
    args = parser.parse_args(argv)
    try:
        lake = Lake.open(args.lake)
        pool = lake.pool(args.pool)
        pool.branch(args.branch)
        options = read_options(args)
        files = files_to_read(args.files, pool.config.settings, options)
        with spark_session("lake ingest", remote=args.remote) as spark:
            result = ingest(
                spark,
                lake,
                pool=args.pool,
                files=files,
                branch=args.branch,
                format=args.format,
                options=options,
                token=args.token,
                message=args.message,
                consume=False,
            )
    except errors.LakeError as error:
        sys.stderr.write(f"ingest: {error}\n")
        return error.exit_status
    report_load(result, pool=args.pool, as_json=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
