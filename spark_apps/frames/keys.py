"""Records deleted by a condition, or deleted or replaced by the keys in a frame: `pyspark_lake.delete`, `merge`.

An upsert pool takes frames of any size: tasks write delete markers and records, and the driver commits them.  In
append and aggregate pools the keys become one condition, so their number is limited; the driver collects the frame
once, and the lake does the rest (`log_lake.lake.by_keys`).  A frame is evaluated only once, because a second
evaluation might give other records, which do not fit the keys.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import types as T

from lake_core.errors import InvalidInput
from lake_core.schemas.hidden import DELETED
from log_lake.lake.branch import Branch
from log_lake.lake.by_keys import key_fields
from log_lake.lake.results import DeleteResult, LoadResult, repeated_line
from log_lake.loading.key_paths import cuts
from log_lake.texts.keytext import RangeText
from log_lake.where.of_keys import MAX_KEYS, check_keys, too_many_keys
from spark_apps.datasource import options as opts
from spark_apps.datasource.from_spark import check_storable, stored_schema
from spark_apps.datasource.names import check_apart
from spark_apps.datasource.writer import check_case
from spark_apps.frames.collect import check_frame, collected
from spark_apps.frames.write import write
from spark_apps.native.predicates import quoted

log = logging.getLogger(__name__)

Done = TypeVar("Done", DeleteResult, LoadResult, DeleteResult | LoadResult)


def delete(frame: Any, options: opts.Options) -> DeleteResult | LoadResult:
    """Deletes the records that have the keys of the frame, in one transaction.

    Raises InvalidInput (nothing is committed), NotFound, Conflict, OutcomeUnknown, Unavailable.
    """
    both = next((name for name in opts.REPLACE if name in options), None)
    if both is not None:
        raise InvalidInput(
            f"the delete has keys and {both}: give a data frame of keys, or a range and a condition"
        )
    opts.check_names(options, opts.WRITE, what="a delete")
    if isinstance(frame, str):
        raise InvalidInput(f"the keys are the text {frame!r}: a condition goes into where=")
    check_frame(frame, what="the keys")
    branch = opts.open_branch(options)
    frame = _with_key_paths(frame, branch.key.names)
    check_keys(stored_schema(frame.schema).empty_table(), branch.key)
    folded = {name.lower() for name in branch.key.names}  # the other columns are not read
    like_keys = T.StructType([field for field in frame.schema if field.name.lower() in folded])
    check_apart(like_keys, options, what="the data frame")
    keys = frame.select([quoted((name,)) for name in branch.key.names])
    if branch.rule.kind == "upsert":
        fields = key_fields(branch)
        return DeleteResult(None) if fields is None else write(keys, options, keyed=True, markers=fields)
    done = branch.delete_keys(
        _collected(keys.distinct()), reason=options.get("message", ""), token=options.get("token", "")
    )
    return _told(branch, done, options)


def delete_selected(options: opts.Options) -> DeleteResult:
    """Deletes the records of a key range that fulfil a condition, in one transaction; Spark runs no job.

    Raises as `delete` does.
    """
    opts.check_names(options, (*opts.WRITE, *opts.REPLACE), what="a delete")
    if not any(options.get(name) for name in opts.REPLACE):
        raise InvalidInput(
            "the delete names no records: give a data frame with their keys, or where='CONDITION', or from_ and to"
        )
    branch = opts.open_branch(options)
    done = branch.delete(
        key_range=RangeText(low=options.get("from"), high=options.get("to")),
        where=options.get("where"),
        reason=options.get("message", ""),
        token=options.get("token", ""),
    )
    return _told(branch, done, options)


def merge(frame: Any, options: opts.Options, *, deleted: str = "") -> LoadResult:
    """Replaces the records that have the keys of the frame by its rows, in one transaction.

    If the boolean column `deleted` of a row is true, the record of its key is deleted.  Raises as `delete`
    does.
    """
    opts.check_names(options, opts.WRITE, what="a merge")
    check_frame(frame, what="the records")
    check_storable(frame.schema)
    check_apart(frame.schema, options, what="the data frame")
    branch = opts.open_branch(options)
    frame = _with_key_paths(frame, branch.key.names)
    check_keys(stored_schema(frame.schema).empty_table(), branch.key)
    if deleted:
        _check_flag(frame.schema, deleted)
    if branch.rule.kind == "upsert":
        return write(frame.withColumnRenamed(deleted, DELETED) if deleted else frame, options, keyed=True)
    check_case(branch, frame.schema, options)  # as `write` does
    return _merged(branch, frame, options, deleted=deleted)


def _merged(branch: Branch, frame: Any, options: opts.Options, *, deleted: str) -> LoadResult:
    done = branch.replace_keys(
        _collected(frame),
        deleted=deleted,
        token=options.get("token", ""),
        message=options.get("message", ""),
    )
    return _told(branch, done, options)


def _told(branch: Branch, done: Done, options: opts.Options) -> Done:
    """Returns the result; logs if it is that of an earlier call."""
    if done.repeated:
        log.warning(repeated_line(done, pool_name=branch.config.name, token=options["token"]))
    return done


def _check_flag(schema: T.StructType, name: str) -> None:
    if name not in schema.names or not isinstance(schema[name].dataType, T.BooleanType):
        raise InvalidInput(f"deleted={name!r}: the data frame has no boolean column of that name")


def _with_key_paths(frame: Any, names: Iterable[str]) -> Any:
    """Returns the frame, in which each name of the key that leads into records is a column too
    (`loading.key_paths`)."""
    from pyspark.sql import functions as F

    for name in names:
        path = None if name in frame.schema.names else _path(frame.schema, name)
        if path is not None:
            frame = frame.withColumn(name, F.col(quoted(path)))
    return frame


def _path(schema: T.StructType, name: str) -> tuple[str, ...] | None:
    """Returns the names from record to record that the name of a key joins; None if there are no such
    fields."""
    if name in schema.names:
        return (name,)
    for head, rest in cuts(name):
        if head in schema.names and isinstance(inner := schema[head].dataType, T.StructType):
            below = _path(inner, rest)
            if below is not None:
                return (head, *below)
    return None


def _collected(frame: Any) -> pa.Table:
    """Returns all rows in the lake's types.  Raises InvalidInput for more than a condition on keys can name."""
    table = collected(frame, most=MAX_KEYS)
    if table is None:
        raise too_many_keys()
    return table
