"""The table of a pool: its main branch, or a named branch or tag, published first if it lags behind.

A table is never older than the pool when the request came, but records that age hid may show some minutes
longer (`ages`).  If the lake may only be read, nothing can be published: the client gets the newest published
table, and the answer says how far it is behind.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

import msgspec

from lake_core.errors import Denied, InvalidInput, NotFound
from lake_core.naming import MAIN, is_own
from log_lake.agents.compact.publication import publish
from log_lake.fields.names import digest_of
from log_lake.iceberg_catalog.ages import PublicationAges
from log_lake.iceberg_catalog.refusals import Refusal
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.publish.lag import lag_of
from log_lake.publish.place import BESIDE, place_of
from log_lake.publish.published import Published, published_at
from log_lake.publish.run import is_publication
from log_lake.stores.guard import guarded
from log_lake.stores.read_only import ReadOnlyStore

log = logging.getLogger(__name__)

BEHIND_TRANSACTIONS, BEHIND_SECONDS = "lake.behind-transactions", "lake.behind-seconds"
"""In the `config` of an answer, if the lake may only be read: how far the table lags behind its branch."""


@dataclass(frozen=True)
class PoolTable:
    """A pool's branch or tag, which a client names POOL, POOL@NAME or POOL:NAME."""

    pool: Pool
    ref: str

    @property
    def to(self) -> str:
        """The place to which the table is published."""
        return (self.pool.settings["publish.iceberg"] if self.ref == MAIN else "") or BESIDE

    @property
    def is_read_only(self) -> bool:
        """Whether this process may not change the lake; then it writes no table outside of the lake either."""
        return isinstance(guarded(self.pool.store).behind, ReadOnlyStore)

    @property
    def name(self) -> str:
        """The name of the table, as a person reads it."""
        return self.pool.name if self.ref == MAIN else f"{self.pool.name}@{self.ref}"


@dataclass(frozen=True)
class Loaded:
    """A published table, as a client gets it.  `behind`: settings that say how far it lags behind."""

    location: str
    text: bytes
    behind: dict[str, str]


def parts_of_name(name: str) -> tuple[str, str]:
    """Returns the pool and the branch or tag that a client names; POOL is POOL@main.

    `POOL:NAME` is the same as `POOL@NAME`: Trino keeps `@` for itself, and no pool has either sign.
    """
    pool, ref = re.fullmatch(r"([^@:]*)(?:[@:](.*))?", name, re.DOTALL).groups()  # type: ignore[union-attr]
    return pool, MAIN if ref is None else ref


def table_of(lake: Lake, name: str) -> PoolTable:
    """Returns the table of that name.  Raises Refusal if there is none, Corrupt, Unavailable."""
    pool_name, ref = parts_of_name(name)
    try:
        pool = lake.pool(pool_name)
        if pool.sub_pool or is_own(pool_name):
            raise NotFound(f"pool {pool_name!r} is no table; name a pool that a user made")
        state = pool.at_branch().state
    except (NotFound, InvalidInput) as error:
        raise Refusal.no_table(str(error)) from error
    if ref == MAIN:
        return PoolTable(pool, MAIN)
    tag = state.tags.get(ref)
    if ref not in state.branches and (tag is None or is_publication(tag)):
        raise Refusal.no_table(
            f"pool {pool_name!r} has no branch or tag {ref!r}; to read a version, tag it first: "
            f"lake tag {pool_name} NAME --at VERSION"
        )
    return PoolTable(pool, ref)


def table_names(lake: Lake) -> list[str]:
    """Returns the names of the lake's pools, without those that the lake makes itself."""
    return [config.name for config in lake.pools() if not is_own(config.name)]


def loaded(table: PoolTable, ages: PublicationAges) -> Loaded:
    """Returns the table.  It is published first if it lags behind and the lake may be written.

    If only more records have aged off since, it is published again only after some minutes (`ages`).

    Raises Refusal, InvalidInput (what Iceberg cannot express, and what to do), Corrupt, Unavailable.
    """
    if table.is_read_only:  # its place may be on another store, which is not
        return _newest_published(table)
    view = table.pool.at(table.ref)
    policy, now = view.settings["age_off"], table.pool.context.now()
    id, version = table.pool.config.id, view.held.tip
    if policy and ages.are_shown(id, table.ref, version=version, policy=policy, now=now):
        before = published_at(place_of(table.pool, branch=table.ref, to=table.to))
        is_newest = before is not None and (before.version, before.fields) == (version, digest_of(view.state))
        if before is not None and is_newest and before.tag in table.pool.tags:
            return _loaded(table, before, {})
    try:
        done = publish(table.pool, branch=table.ref, to=table.to)
    except Denied as error:
        log.info("%s: not published: %s", table.name, error)
        return _newest_published(table)
    published = published_at(place_of(table.pool, branch=table.ref, to=table.to))
    if published is None:
        raise Refusal.no_table(f"{table.name}: its published table was deleted just now; ask again")
    if policy:
        ages.note(id, table.ref, version=done.version, policy=policy, now=now)
    return _loaded(table, published, {})


def _newest_published(table: PoolTable) -> Loaded:
    published = published_at(place_of(table.pool, branch=table.ref, to=table.to))
    if published is None or published.tag not in table.pool.tags:
        raise Refusal.no_table(
            f"{table.name} is not published, and this server may only read the lake; let a process that may write "
            f"it run: lake publish {table.name}"
        )
    lag = lag_of(table.pool, published, branch=table.ref)
    if not lag.transactions and not lag.edited:
        return _loaded(table, published, {})
    behind = {BEHIND_TRANSACTIONS: str(lag.transactions), BEHIND_SECONDS: f"{lag.seconds:.3f}"}
    return _loaded(table, published, behind)


def _loaded(table: PoolTable, published: Published, behind: dict[str, str]) -> Loaded:
    place = place_of(table.pool, branch=table.ref, to=table.to)
    return Loaded(
        place.location_of(f"metadata/v{published.number}.metadata.json"),
        msgspec.json.encode(
            msgspec.json.decode(published.text)
        ),  # of a name that comes twice, what was checked
        behind,
    )
