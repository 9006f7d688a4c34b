"""The frame of a native read: opens the revision, decides which objects Spark's own Parquet reader reads and which
the data source reads (`plan`), and unites both.

Spark's reader is told everything that could change an answer: the schema, so that it infers none; not to skip
missing or damaged files; not to rebase old dates; not to read names of folders as columns or patterns.  To
prevent patterns, a path has a backslash before each character that Hadoop would read as one.  Spark's own
switch (`__globPaths__`) does not help: with it, if several paths have such characters, each is read as often as
there are paths.

Spark first looks whether the objects are there, and lists them after that.  If a vacuum deletes an object in
between, Spark leaves it out without a word.  So after Spark has listed the objects, this module asks the
history whether a vacuum has begun to delete one.  Over Spark Connect this check would come too early: the
server lists the objects only at the frame's first action.  So over Spark Connect, if the version has objects
that no branch refers to any more, the data source reads it, unless a lease holds them.

To find out whether the JVM can read the store, this module asks for the frame's schema of the first object;
Spark then looks for the object.  If the JVM cannot read it (no connector, credentials that only Python has, a
server on another machine), the data source reads everything, and a warning says so once for each store.  But
first Python opens the object: if it is gone, the read fails with the error that says so, instead of a warning
about the JVM.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from lake_core.errors import InvalidInput
from lake_core.history import Reference
from lake_core.keys import KeyRange
from lake_core.store import Store
from log_lake.lake.view import View
from log_lake.objects.read import DataObject
from log_lake.reading.plan import ScanPlan
from log_lake.reading.scan import result_schema
from log_lake.texts.keytext import RangeText
from spark_apps.datasource import options as opts
from spark_apps.datasource.names import check_apart
from spark_apps.datasource.part import Part
from spark_apps.datasource.types import spark_schema
from spark_apps.native.plan import (
    LIMITS,
    NativeLimits,
    NativePlan,
    ParquetRead,
    SourceRead,
    alive,
    decide,
    unclear,
)
from spark_apps.native.predicates import TRUE, sql

log = logging.getLogger(__name__)

SETTINGS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "mergeSchema": "false",
}
"""What Spark's Parquet reader is told, whatever the session says."""

_OF_PATTERNS = "{}[]*?\\"
"""The characters by which Spark recognizes a path as a pattern."""

_HADOOP = {"s3": "s3a"}
"""The scheme by which Hadoop knows a store, if it is another than the lake's."""


@dataclass(frozen=True)
class Opened:
    """A native read that is opened and decided: the revision, the plan, and how its records are read."""

    view: View
    plan: ScanPlan
    native: NativePlan
    schema: StructType


def frame(spark: Any, options: opts.Options, *, limits: NativeLimits = LIMITS) -> Any:
    """Returns the records that the options of the data source name, as a DataFrame.

    Raises what the data source raises.
    """
    if opts.names_system_table(options) or opts.shape(options):
        return _source(spark, options)
    opened = open_read(spark, options, limits=limits)
    parts = _by_parquet(spark, opened)
    if opened.native.source is not None:
        parts.append(_rest(spark, options, opened, opened.native.source))
    if not parts:
        return spark.createDataFrame([], opened.schema)
    return reduce(lambda above, below: above.union(below), parts)


def open_read(spark: Any, options: opts.Options, *, limits: NativeLimits = LIMITS) -> Opened:
    """Opens the revision that the options name, and decides how it is read.  Raises what the data source
    raises."""
    if opts.PART in options:
        raise InvalidInput("part: an option of the data source alone; use from_, to and where")
    opts.check_names(options, opts.READ, what="a read")
    opts.count(options, "tasks")
    view = opts.leased_view(options)
    asked = RangeText(low=options.get("from"), high=options.get("to")).read(view.key, view.key_classes)
    plan = alive(view.plan(key_range=asked, columns=opts.columns(options), where=options.get("where")))
    schema = spark_schema(result_schema(plan))
    check_apart(schema, options, what=f"pool {view.config.name!r}")
    blocked = _why_blocked(spark, view, plan, options) if plan.references else ""
    whole: Mapping[str, KeyRange] = {}
    if not blocked:
        with view.absence_explained():
            whole = key_ranges(unclear(plan), view.store, pool_id=view.config.id)
    native = decide(plan, asked=asked, whole=whole, blocked=blocked, limits=limits)
    _refuse_links(view, native)
    return Opened(view, plan, native, schema)


def _refuse_links(view: View, native: NativePlan) -> None:
    """Raises Corrupt if an object that Spark's reader would open in a local lake is a link, or behind one.

    The lake itself follows no link; Spark would give the records of another pool, or of any file (decision 423).
    """
    for read in native.parquet:
        for reference in read.references:
            view.store.local_path(view.object_name(reference))


def _by_parquet(spark: Any, opened: Opened) -> list[Any]:
    """Returns the reads by Spark's reader.  Raises ObjectVacuumed if Spark may have missed an object."""
    references = [reference for read in opened.native.parquet for reference in read.references]
    try:
        return [_parquet(spark, opened, read) for read in opened.native.parquet]
    finally:
        if references:
            opened.view.check_whole(references)


def _parquet(spark: Any, opened: Opened, read: ParquetRead) -> Any:
    names = [opened.view.object_name(reference) for reference in read.references]
    paths = [path_of(opened.view.store.uri, name) for name in names]
    stored = _reader(spark, read.columns).parquet(*paths)
    if read.predicate != TRUE:
        stored = stored.where(sql(read.predicate))
    records = stored.selectExpr(*read.projection)
    return records.toDF(*opened.schema.names) if opened.plan.names else records


def _reader(spark: Any, columns: pa.Schema) -> Any:
    return spark.read.schema(spark_schema(columns)).options(**SETTINGS)


def path_of(store_uri: str, name: str) -> str:
    """Returns the path at which Hadoop finds an object of the store, as a pattern that matches only this
    path."""
    scheme, sign, rest = store_uri.partition("://")
    place = f"{_HADOOP.get(scheme, scheme)}{sign}{rest}"  # a folder here has no scheme
    return "".join(f"\\{c}" if c in _OF_PATTERNS else c for c in place) + f"/{name}"


def _rest(spark: Any, options: opts.Options, opened: Opened, source: SourceRead) -> Any:
    part = Part.of(opened.view, source.key_ranges, source.references)
    pinned = {
        **{name: options[name] for name in ("where", "tasks", "casesensitive") if name in options},
        "lake": opened.view.store.uri,
        "path": opts.table_name(options).partition("@")[0],
        "onmissing": opened.view.on_missing,
        opts.PART: part.encode(),
    }
    return _source(spark, pinned, opened.schema)


def _source(spark: Any, options: opts.Options, schema: StructType | None = None) -> Any:
    reader = spark.read.format("lake")
    if schema is not None:
        reader = reader.schema(schema)
    return reader.options(**{k: v for k, v in options.items() if k != "path"}).load(options["path"])


def _why_blocked(spark: Any, view: View, plan: ScanPlan, options: opts.Options) -> str:
    """Returns why Spark's own reader reads nothing; "" if it may."""
    if _is_connect(spark) and not opts.flag(options, "lease") and view.may_lose(plan.references):
        return (
            "a vacuum may take objects of this version, which Spark Connect would leave out: add lease=true"
        )
    probed = next((reference for reference in plan.references if not reference.data), None)
    if probed is None:
        return "all objects lie in the journal"
    path = path_of(view.store.uri, view.object_name(probed))
    try:
        _reader(spark, pa.schema([])).parquet(path).schema  # noqa: B018 (over Connect only this asks the server)
    except Exception as error:  # of Spark, of Py4J, or of gRPC: any means that Spark's reader has no object
        with view.absence_explained():
            key_ranges([probed], view.store, pool_id=view.config.id)
        reason = _first_line(error)
        _warn_once(view.store.uri, reason)
        return f"the JVM cannot read {view.store.uri}: {reason}"
    return ""


def _is_connect(spark: Any) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect.")


_WARNED: set[str] = set()
"""The stores that this process has warned of."""


def _warn_once(uri: str, reason: str) -> None:
    if uri in _WARNED:
        return
    _WARNED.add(uri)
    log.warning(
        "Spark's own reader cannot read %s (%s): all records come by the data source, which is slower; give Spark "
        "a connector and credentials for the store",
        uri,
        reason,
    )


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    java = [line for line in lines if "Exception" in line or line.startswith("[")]
    return (java or lines or [type(error).__name__])[0].removeprefix(": ")[:200]


MAX_FOOTERS = 4_096
"""Footers to read for one frame, at most: each is a request of the store.  Spark reads the same ones once more."""

_AT_ONCE = 16


def key_ranges(
    references: Sequence[Reference], store: Store, *, pool_id: str, most: int = MAX_FOOTERS
) -> dict[str, KeyRange]:
    """Returns the key range of each object, from its footer; the largest objects first, at most `most`.

    Called for references if the state does not show whether they are clipped (`plan.unclear`), that is,
    show only a part of their object.  Raises ObjectMissing, Corrupt, Unavailable.
    """
    by_size = {r.object: r for r in sorted(references, key=lambda r: r.size)}
    objects = list(by_size)[::-1][:most]
    if not objects:
        return {}

    def own(object_id: str) -> KeyRange:
        with DataObject.at(store, by_size[object_id], pool_id=pool_id) as data:
            return KeyRange(data.metadata.low, data.metadata.high)

    with ThreadPoolExecutor(min(len(objects), _AT_ONCE)) as threads:
        return dict(zip(objects, threads.map(own, objects), strict=True))
