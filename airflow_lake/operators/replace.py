"""Replaces an interval of time, or a range of keys, of a pool by files, in one transaction.

LakeReplaceOperator(task_id="day", pool_name="flights", files="s3://in/{{ ds }}/*.csv",
                    begin="{{ data_interval_start }}", end="{{ data_interval_end }}")

The schedule of such a DAG must cut time into intervals (CronDataIntervalTimetable): with schedule="@daily" an
interval of Airflow 3 is empty, and the task refuses it.  A run that is started by hand has an interval that is
not the one of its date, and is refused unless the task says `by_hand=True` (`airflow_lake.interval`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lake import given
from airflow_lake.assets import partition_keys
from airflow_lake.effects import OVERWRITE
from airflow_lake.given import LEFT_OUT, LeftOut
from airflow_lake.interval import Interval, in_zone, zone_of
from airflow_lake.operators.base import plain
from airflow_lake.operators.files import EMPTY, FAIL, SKIP, LakeFilesOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class LakeReplaceOperator(LakeFilesOperator):
    """Replaces the records of a pool in an interval or a range; if `files` is left out, removes them.

    With `missing="empty"` they are also removed if no file exists, as the intervals agent does.

    Give either `begin` and `end` (ISO 8601 with a zone), for a key that begins with a time: then Spark reads
    the files.  Or give `low` (inclusive), `high` (exclusive) and `where`, as for `lake replace`: then the task
    itself reads them.

    In a run that was not started by a schedule, a backfill or an asset, bounds or files of the run's interval
    are refused unless `by_hand=True`.

    If something was committed, the task emits an event of the pool's asset for each of `partitions`.  By
    default these are the days or hours of the interval, in the zone of the schedule (`assets.partition_keys`).
    If the pool, the lake or the branch is a template, it is one event without a partition: Airflow does not
    know the asset when it parses the file.
    """

    ways_of_missing: ClassVar[tuple[str, ...]] = (FAIL, SKIP, EMPTY)
    template_fields: Sequence[str] = (
        *LakeFilesOperator.template_fields,
        "begin",
        "end",
        "low",
        "high",
        "where",
    )

    def __init__(
        self,
        *,
        files: Sequence[str] | str | LeftOut = LEFT_OUT,
        begin: str | LeftOut = LEFT_OUT,
        end: str | LeftOut = LEFT_OUT,
        low: str | LeftOut = LEFT_OUT,
        high: str | LeftOut = LEFT_OUT,
        where: str | LeftOut = LEFT_OUT,
        by_hand: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(files=files, **kwargs)
        bounds = given.bounds(who=self.task_id, begin=begin, end=end, low=low, high=high, where=where)
        self.begin, self.end, self.low, self.high, self.where = bounds.values()
        has_range = any(bounds[name] is not None for name in ("low", "high", "where"))
        if (self.begin is None) != (self.end is None) or (self.begin is not None) == has_range:
            raise ValueError(
                f"{self.task_id}: give either begin and end, or one or more of low, high and where"
            )
        self.asked |= bounds
        self.by_hand = given.fixed_flag(by_hand, "by_hand", who=self.task_id)
        self.add_outlets(is_known=not self.has_template)

    def act(self, context: Context) -> dict[str, Any]:
        """Returns the result: version, transaction_id, records, objects, ..."""
        from log_lake.texts.keytext import RangeText

        zone = zone_of(context.get("dag"))
        interval = _interval(self.begin, self.end, zone=zone) if self.begin and self.end else None
        self.refuse_given_interval(context, by_hand=self.by_hand, interval=interval, also=self.asked_files)
        lake = self.get_lake()
        keys: list[str] = list(self.partitions or (partition_keys(*interval, zone=zone) if interval else ()))
        files, manner = self.source_files(lake, context), self.manner(context)
        result: Any
        if not isinstance(files, list):
            result, files = files, []
        elif interval is not None:
            result = self.load_on_spark(lake, files, title="replace", interval=interval, **manner)
        else:
            result = (
                lake.pool(self.pool_name)
                .branch(self.branch)
                .replace(
                    [file.uri for file in files],
                    key_range=RangeText(low=self.low, high=self.high),
                    where=self.where,
                    count=True,
                    **manner,
                )
            )
        self.warn_if_repeated(result)
        values = plain(result, pool=self.pool_name)
        uris = tuple(file.uri for file in files)
        self.effects = (self.done_effect(values, change=OVERWRITE, files=uris),)
        self.announce(result, keys, context)
        self.log.info("%s", values)
        return values


def _interval(begin: str, end: str, *, zone: Any) -> Interval:
    """Returns the interval; a time without a zone is in UTC.

    Airflow gives the times of a run in UTC; these are converted to `zone`, for keys that are days.

    Raises InvalidInput.
    """
    from lake_core.errors import InvalidInput

    times = []
    for name, text in (("begin", begin), ("end", end)):
        try:
            time = dt.datetime.fromisoformat(text)
        except ValueError as error:
            raise InvalidInput(
                f"{name}={text!r}: must be a time of ISO 8601, as 2026-01-31T00:00:00Z"
            ) from error
        times.append(time if time.tzinfo else time.replace(tzinfo=dt.UTC))
    interval = (times[0], times[1])
    is_given = not any(time.utcoffset() for time in times)
    return in_zone(interval, zone) if is_given else interval
