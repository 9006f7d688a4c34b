"""A pool as an asset of Airflow: `lake://LAKE/POOL`.

The URI is that of DAG files: LAKE is the id of the connection, so no store is asked while a file is parsed,
and a lake may move without its assets changing.  A lake that is named by its URI is an asset below the scheme
of its store, as in `lake://s3/bucket/prefix/POOL`.  DAGs that write a pool and DAGs that wait for it must name
its lake in the same way.

    schedule=[lake_asset("flights")]                           runs when a load of flights is committed
    schedule=PartitionedAssetTimetable(assets=lake_asset(...)) runs once for each partition that a replace writes

An interval's partitions are its days, or its hours if it does not begin and end at midnight, in the zone of the
DAG's schedule.  A key is the time there at which the partition begins, as Airflow's partition mappers read it:
`2026-01-31T00:00:00`.  `{{ ds }}` gives midnights in UTC.  If these are not midnights in the zone of the schedule,
the partitions are the days of UTC.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from airflow_lake import DEFAULT
from lake_core.naming import MAIN, check_pool_name, split_pool
from log_lake.view.addresses import is_uri

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from log_lake.lake.results import LoadResult

SCHEME = "lake"
KEY_FORMAT = "%Y-%m-%dT%H:%M:%S"
MAX_PARTITIONS = 1_000
"""Partitions that one replace may write: Airflow stores an event and starts a run for each."""


LONGEST_KEY = 250
"""The most characters of a partition's key that Airflow stores."""


def asset_uri(pool: str, *, lake: str = "", branch: str = MAIN) -> str:
    """Returns the URI of a pool's asset; `lake` is the id of a connection (empty: lake_default) or a URI."""
    name = lake or DEFAULT
    if is_uri(name):
        parts = urlsplit(name)
        place = f"{parts.scheme or 'file'}/{parts.netloc}/{parts.path}".replace("//", "/").strip("/")
        place = place.replace("//", "/")
    else:
        place = name
    query = "" if branch in ("", MAIN) else f"?branch={quote(branch, safe='')}"
    return f"{SCHEME}://{quote(place)}/{quote(pool, safe='$')}{query}"


def check_uri(uri: SplitResult) -> SplitResult:
    """Returns the URI of an asset in the form that Airflow stores.  Raises ValueError if it names no pool.
    Airflow calls this for the scheme."""
    path = uri.path.strip("/")
    if not uri.netloc or not path:
        raise ValueError(
            f"asset {uri.geturl()!r}: names no pool; write {SCHEME}://LAKE/POOL; LAKE is the id of a connection"
        )
    return uri._replace(path=f"/{path}", fragment="")


def lake_asset(pool: str, *, lake: str = "", branch: str = MAIN) -> Any:
    """Returns the asset of a pool.  Raises ValueError for a text that is not the name of a pool, because such an
    asset would never have an event."""
    from airflow.sdk import Asset

    from lake_core.errors import InvalidInput

    try:
        check_pool_name(split_pool(pool)[0])
    except InvalidInput as error:
        how = "; name the branch apart: lake_asset(POOL, branch=...)" if "@" in pool else ""
        raise ValueError(f"asset: {error}{how}") from error
    return Asset(asset_uri(pool, lake=lake, branch=branch))


def lake_alias(lake: str = "") -> Any:
    """Returns the outlet of tasks that learn only at run time which pools they write; its events become events of
    those pools."""
    from airflow.sdk import AssetAlias

    return AssetAlias(f"{SCHEME}:{lake or DEFAULT}")


def is_pool(outlet: Any) -> bool:
    """Whether an outlet of a task is the asset of a pool."""
    return str(getattr(outlet, "uri", "")).startswith(f"{SCHEME}://")


def is_other_pool(outlet: Any, own: Any) -> bool:
    """Whether an asset belongs to another pool or branch of the lake; a sub-pool of the pool `own` does not count
    as another.

    A lake with another name may be the same lake, so its pools do not count as others.
    """
    (lake, name, branch), (own_lake, own_name, own_branch) = map(_parts, (outlet.uri, own.uri))
    is_own = name == own_name or name.startswith(f"{own_name}.$")
    return lake == own_lake and not (is_own and branch == own_branch)


def _parts(uri: str) -> tuple[str, str, str]:
    """Returns the lake, the pool and the branch of an asset."""
    lake, _, rest = uri.rpartition("/")
    name, _, branch = rest.partition("?")
    return lake, name, branch


def check_partitions(keys: Sequence[str], *, task: str) -> None:
    """Raises InvalidInput for keys that Airflow would refuse; call it before anything is committed."""
    from lake_core.errors import InvalidInput

    if len(keys) > MAX_PARTITIONS:
        raise InvalidInput(f"{task}: {len(keys):,} partitions; at most {MAX_PARTITIONS:,} are allowed")
    for key in keys:
        if len(key) > LONGEST_KEY:
            raise InvalidInput(
                f"{task}: the partition {key[:40] + '...'!r} has {len(key):,} characters; at most {LONGEST_KEY} "
                "are allowed"
            )


def withhold(task: Any, assets: Collection[Any]) -> None:
    """Prevents the events that Airflow emits for each of these outlets when the running task succeeds."""
    task.outlets = [outlet for outlet in task.outlets or () if outlet not in assets]


class PoolEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The event of a pool's asset: what a load or a replace committed.  Tasks hand it on as plain values."""

    pool: str
    version: int
    transaction_id: str | None = None
    records: int | None = None
    objects: int | None = None
    size: int | None = None

    @classmethod
    def of(cls, pool: str, result: LoadResult) -> PoolEvent | None:
        """Returns the event of this result; None if nothing was committed."""
        if result.version is None:
            return None
        return cls(
            pool=pool,
            version=result.version,
            transaction_id=result.transaction_id,
            records=result.records,
            objects=result.objects,
            size=result.size,
        )

    @property
    def values(self) -> dict[str, Any]:
        """Returns those fields of the event that are known, as plain values."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        return values

    @property
    def extra(self) -> dict[str, Any]:
        """Returns what Airflow stores with the event; the pool is left out, because the asset names it."""
        return {name: value for name, value in self.values.items() if name != "pool"}


def partition_keys(begin: dt.datetime, end: dt.datetime, *, zone: Any = "UTC") -> list[str]:
    """Returns the keys of the partitions in the time from `begin` to before `end`.

    If both instants are midnights of the zone, the partitions are the days of the zone; otherwise, if they are
    midnights of UTC, the days of UTC.  If they are whole hours, in the zone or in UTC, the partitions are
    hours; otherwise there is one partition.  `zone` is the name of a zone or an object of pendulum, as in
    `interval.zone_of`.  Keys are times in that zone, like those of Airflow's own CronPartitionTimetable
    (decision 206); keys for days of UTC are times in UTC.  An hour that occurs twice on a clock has one key.

    Raises InvalidInput if there would be more than `MAX_PARTITIONS`, or none.
    """
    import pendulum

    from lake_core.errors import InvalidInput
    from log_lake.coverage.key_ranges import empty_interval

    if begin >= end:
        raise InvalidInput(empty_interval(begin, end))
    spans = [[pendulum.instance(moment).in_timezone(one) for moment in (begin, end)] for one in (zone, "UTC")]
    first = spans[0][0]
    if days := next((span for span in spans if all(map(_begins_day, span))), None):
        first_day, last_day = (moment.date() for moment in days)
        count = (last_day - first_day).days
        moments = (first_day.add(days=index) for index in range(count))
    elif any(all(map(_begins_hour, span)) for span in spans):
        count = int(pendulum.instance(begin).diff(pendulum.instance(end)).total_hours())
        moments = (first.add(hours=index) for index in range(count))
    else:
        return [first.strftime(KEY_FORMAT)]
    if count > MAX_PARTITIONS:
        raise InvalidInput(
            f"the interval from {begin.isoformat()} to {end.isoformat()} has {count:,} partitions; at most "
            f"{MAX_PARTITIONS:,} are allowed: replace less at once"
        )
    return list(dict.fromkeys(moment.strftime(KEY_FORMAT) for moment in moments))


def _begins_day(moment: Any) -> bool:
    """Whether a day begins at this moment: in some zones one day of the year begins at one o'clock."""
    return bool(moment.subtract(microseconds=1).date() != moment.date())


def _begins_hour(moment: Any) -> bool:
    """Whether an hour begins at this moment."""
    return not (moment.minute or moment.second or moment.microsecond)
