"""Decides the columns of a stream and of changes, and the schema in which the records of a batch are read
(decision 125).

A stream may deliver records that are older than the pool's newest state: a load that was reverted, or whose
records are removed by now, and the state at the beginning of a history.  Such records may have columns and
kinds of values that the newest state does not have any more, or fewer kinds.

    a stream        has the columns of the newest state, as a batch read has: Spark asks a source for its columns
                    without saying that it wants a stream.  Columns that this state lacks are left out, with a
                    warning
    changes         have the columns of all records in them: by the option `changes` the source knows what is
                    requested, and a delete may name any of these columns in its condition
    .schema(...)    has the user's columns, chosen among all that the batch has

In the first two cases a transaction that changes the columns of the newest state stops the stream with an
error.  A stream that is started again has the new columns.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.types import StructType

from lake_core.errors import InvalidInput
from lake_core.schemas.hidden import DELETED
from lake_core.schemas.schema import unite_fields, unite_schemas
from lake_core.values.types import is_json
from log_lake.columns.cast import cast_table
from log_lake.lake.feed import Feed
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from spark_apps.datasource import options as opts
from spark_apps.datasource.names import check_known
from spark_apps.datasource.to_spark import check_readable
from spark_apps.datasource.types import arrow_schema, spark_schema

log = logging.getLogger(__name__)


def state_at(pool: Pool, feed: Feed, version: int) -> View:
    """Returns the state of the pool at a version, on the feed's branch.  A reader begins with it if the
    transactions up to that version are purged."""
    return replace(pool.at(str(version)), branch=feed.branch)


def shown_schemas(view: View, ids: Iterable[str]) -> list[pa.Schema]:
    """Returns the schemas with these ids as readers of the view see them."""
    return [view.names.shown(view.state.schema(id)) for id in ids]


def check_names(state: View, newest: View) -> None:
    """Raises InvalidInput if a field was renamed or dropped between the state with which a reader begins and the
    newest version, because all records of a stream must have the newest names."""
    if state.names != newest.names:
        raise InvalidInput(
            f"pool {newest.config.name!r}: a field was renamed or dropped since version {state.version}, with "
            "which the history begins; begin the stream at a newer version (startingTransaction)"
        )


def schema_of_changes(options: opts.Options, pool: Pool, *, after: int, until: int) -> pa.Schema:
    """Returns the columns of the changes after version `after` up to version `until`, limited to those that the
    options choose.

    They include the columns of the newest state.  `after` 0 means the beginning of the history.  Raises
    InvalidInput for an unknown column.
    """
    feed = pool.feed(opts.branch_name(options))
    view = pool.at(feed.branch)
    return _chosen(_ever_given(pool, feed, view, after=after, until=until), options, kind=view.rule.kind)


def _ever_given(pool: Pool, feed: Feed, view: View, *, after: int, until: int) -> pa.Schema:
    """Returns the united schema of the newest state and of all records in the changes.  It reads the journal only
    if the branch ever had more columns than its newest state."""
    ever = shown_schemas(view, view.snapshot.schemas_ever(view.sub_pool))
    if unite_schemas([view.schema, *ever]).equals(view.schema, check_metadata=True):
        return view.schema
    begin = after or feed.start()
    state = []
    if begin and not after:
        beginning = state_at(pool, feed, begin)
        check_names(beginning, view)
        state.append(beginning.schema)
    brought = dict.fromkeys(action.schema for _, action in feed.between(begin, until))
    return unite_schemas([view.schema, *state, *shown_schemas(view, brought)])


def _chosen(schema: pa.Schema, options: opts.Options, *, kind: str) -> pa.Schema:
    """Returns the columns that the options choose; delete markers of an upsert pool only if they are named."""
    if opts.columns(options) is None and kind == "upsert":
        schema = pa.schema([field for field in schema if field.name != DELETED])
    return opts.selected(schema, options)


@dataclass(frozen=True)
class StreamColumns:
    """The columns of a stream that Spark knows.

    `told`: the types of these columns in the lake when the stream was started; None if the user chose the
    columns and types.
    """

    options: opts.Options
    schema: StructType
    told: pa.Schema | None

    def of_batch(self, view: View, schemas: Sequence[pa.Schema]) -> pa.Schema:
        """Returns the schema in which records with these schemas are read; `view` is the newest state.

        Raises InvalidInput if the columns now differ from those that Spark knows, or if records do not fit a
        user's schema.
        """
        if self.told is None:
            united = unite_schemas([view.schema, *schemas])
            check_known(self.schema.names, united.names, self.options, pool_name=view.config.name)
            check_readable(united, arrow_schema(self.schema))
            return pa.schema([united.field(name) for name in self.schema.names if name in united.names])
        gives_all = opts.flag(self.options, "changes")
        now = unite_schemas([self.told, view.schema, *(schemas if gives_all else ())])
        now = _chosen(now, self.options, kind=view.rule.kind)
        self._check_unchanged(now, pool_name=view.config.name)
        return now if gives_all else self._with_what_fits(now, view, schemas)

    def _check_unchanged(self, now: pa.Schema, *, pool_name: str) -> None:
        types = {field.name: field.dataType for field in self.schema}
        for field in spark_schema(now):
            if types.get(field.name) != field.dataType:
                was = types[field.name].simpleString() if field.name in types else "not there"
                raise InvalidInput(
                    f"column {field.name!r} of pool {pool_name!r} was {was} when the stream was started, "
                    f"and is {field.dataType.simpleString()} now; start the query again to read it, or choose "
                    "columns and types yourself (.schema)"
                )

    def _with_what_fits(self, now: pa.Schema, view: View, schemas: Sequence[pa.Schema]) -> pa.Schema:
        """Returns the stream's columns, each in the type of the lake that holds as much of the records as the
        column's type in Spark allows.  Logs which values are left out."""
        fields, left_out = {field.name: field for field in now}, {}
        for field in (field for schema in schemas for field in schema):
            mine = fields.get(field.name)
            if mine is None:
                if opts.columns(self.options) is None and field.name != DELETED:
                    left_out[field.name] = field
                continue
            united = unite_fields(mine, field)
            if _in_spark(united) == _in_spark(mine):
                fields[field.name] = united
            elif not _is_held(mine, field):
                left_out[field.name] = united
        for name, field in left_out.items():
            log.warning(
                "stream of %s: left out values of column %r, of a kind that no record of the pool has any more; to "
                "have them, choose the columns: .schema(..., %s %s)",
                view.config.name,
                name,
                name,
                _in_spark(field),
            )
        return pa.schema(list(fields.values()))


def _in_spark(field: pa.Field) -> str:
    return spark_schema(pa.schema([field]))[0].dataType.simpleString()


def fitted(table: pa.Table, schema: pa.Schema, *, what: str) -> pa.Table:
    """Returns the records in the schema of a batch: by field name; null for fields that they lack.

    `what` names the object for messages.  Raises Corrupt.
    """
    for index, field in enumerate(table.schema):
        if field.name in schema.names and not _is_held(schema.field(field.name), field):
            table = table.set_column(index, field.name, pa.nulls(table.num_rows))
    return cast_table(table, schema, what=what)


def _is_held(target: pa.Field, field: pa.Field) -> bool:
    """Whether the target's type holds every value of the field, apart from fields of records that it lacks."""
    ours, theirs = target.type, field.type
    if is_json(target) or is_json(field):
        return is_json(target)
    if pa.types.is_struct(ours) and pa.types.is_struct(theirs):
        shared = [child for child in theirs if ours.get_field_index(child.name) >= 0]
        return all(_is_held(ours.field(child.name), child) for child in shared)
    if pa.types.is_list(ours) and pa.types.is_list(theirs):
        return _is_held(ours.value_field, theirs.value_field)
    if pa.types.is_map(ours) and pa.types.is_map(theirs):
        keys_fit = _is_held(ours.key_field, theirs.key_field)
        return keys_fit and _is_held(ours.item_field, theirs.item_field)
    united = unite_fields(target, field)
    return united.type == ours and not is_json(united)
