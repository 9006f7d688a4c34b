"""A frame as one transaction: `pyspark_lake.write(df, "logs", lake=URI)`.

The same as `df.write.format("lake")`: tasks sort and write objects, the driver commits once, under a token.
But the driver is the caller's own Python.  So no process is started to plan and to commit, the session of the
thread does not matter, the result is returned, and a lease holds the objects while a long write lasts.  A
killed job leaves objects that no transaction names: orphans, which the vacuum removes.  Nothing is staged
(decision 115).

A small frame comes to the driver, which writes it itself: a job that hands records to Python workers takes
longer than all the rest (decision 121).  Spark's estimate decides whether a frame is small.  The frame is read
with a limit, and Spark may then return its records in another order.  So this is done only in append pools, in
which the order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import pyarrow as pa

from lake_core.errors import InvalidInput
from log_lake.agents.load_files import ORDINALS_PER_UNIT
from log_lake.lake.branch import Branch
from log_lake.lake.bulk import Divider
from log_lake.lake.loads import lease_of
from log_lake.lake.results import LoadResult
from log_lake.loading.misfits import summed
from log_lake.objects.write import WrittenObject
from spark_apps.datasource import options as opts
from spark_apps.datasource.writer import WriteWork, begin, built, commit_objects, repeat
from spark_apps.frames.bulk import imported
from spark_apps.frames.collect import check_frame, is_flat
from spark_apps.spread import parallelism, passing_errors, spread_frame

SMALL_BYTES, SMALL_RECORDS = 1 << 20, 10_000
"""A frame that Spark estimates at most this large is collected on the driver; if it has more records than this,
tasks write it after all."""


def write(
    frame: Any,
    options: opts.Options,
    *,
    overwrite: bool = False,
    keyed: bool = False,
    markers: pa.Schema | None = None,
) -> LoadResult:
    """Writes the frame as the options of the data source say, and returns what was written.

    `overwrite`: its records replace those that the options name.  `keyed`: a record without the key is refused.
    `markers`: each record becomes a delete marker, whose key is in these fields.  Raises InvalidInput (nothing
    is committed), NotFound, Conflict, OutcomeUnknown, Unavailable.
    """
    check_frame(frame, what="the data frame")
    bulk = opts.flag(options, "bulk")
    ranges = _ranges(options, bulk=bulk, overwrite=overwrite)
    branch, work = begin(options, frame.schema, accepted=opts.BULK, overwrite=overwrite)
    if isinstance(work, LoadResult):
        repeat(branch, work, token=options["token"], records=frame.count())
        return work
    work = WriteWork(work.store, work.config, work.job, work.replaces, keyed, markers)
    small = _collected(frame) if branch.rule.keeps_all and ranges is None else None
    if small is not None:
        return _committed(branch, work, built(work, small.to_batches()))
    with lease_of(branch, work.job, why="write by Spark"):
        if bulk:
            division = Divider(branch, work.job, workers=parallelism(frame.sparkSession), ranges=ranges)
            written = imported(frame, work, division)
            division.split()
            return _committed(branch, work, written)
        return _committed(branch, work, spread_frame(frame, partial(_build, work)))


def _ranges(options: opts.Options, *, bulk: bool, overwrite: bool) -> int | None:
    """Returns the number of ranges that a bulk import shall make.  Raises InvalidInput."""
    if bulk and overwrite:
        raise InvalidInput("bulk: an overwrite is no bulk import; write to an empty pool, or leave bulk out")
    ranges = opts.count(options, "ranges")
    if ranges is not None and not bulk:
        raise InvalidInput(f"ranges={ranges}: only a bulk import makes ranges; add bulk=True")
    return ranges


def _collected(frame: Any) -> pa.Table | None:
    """Returns the records of a small frame; None if tasks must write it.

    Tasks also write it over Spark Connect, which gives no estimate, and if a column has records, lists, maps or
    variants: `toArrow` refuses some of these.
    """
    if not hasattr(frame, "_jdf") or not is_flat(frame.schema):
        return None
    estimate = frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    if int(str(estimate)) > SMALL_BYTES:  # py4j gives an int, or an object if it is too large for one
        return None
    with passing_errors():
        table = frame.limit(SMALL_RECORDS + 1).toArrow()
    return table if table.num_rows <= SMALL_RECORDS else None


def _build(work: WriteWork, partition: int, batches: Iterable[pa.RecordBatch]) -> list[WrittenObject]:
    """Runs in a worker: builds objects; records count as arrived in the order of the partitions."""
    return built(work, batches, first_ordinal=partition * ORDINALS_PER_UNIT)


def _committed(branch: Branch, work: WriteWork, written: list[WrittenObject]) -> LoadResult:
    return commit_objects(
        branch,
        work.job,
        objects=[w.action for w in written],
        schemas=list({w.action.schema: w.schema for w in written}.values()),
        replaces=work.replaces,
        misfits=summed(w.misfits for w in written),
    )
