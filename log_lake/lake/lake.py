"""The lake: the class that a user opens first.

    lake = Lake.create("s3://bucket/lake")          or Lake.open(...)
    pool = lake.create_pool("flights", key="time_hour,carrier")
    pool.branch().load(["incoming/*.csv.gz"])
    for table in pool.at("main").scan(): ...

Called by the `lake` command, the Spark applications and the DAGs. `Lake` chooses the clock, the random numbers
and the author; lower rooms use those that it passes on.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec

from lake_core import naming
from lake_core.catalog import Catalog
from lake_core.context import FORMAT_VERSION, Context
from lake_core.errors import AlreadyExists, Conflict, Corrupt, InvalidInput, NotFound, Unavailable
from lake_core.history import History
from lake_core.ids import IdSource, check_id
from lake_core.keys import PoolKey
from lake_core.records.decoding import decoded_json
from lake_core.records.metadata import check_metadata
from lake_core.records.pools import DroppedPool, PoolConfig
from lake_core.store import Address, Created, Store
from lake_core.store.probe import ONLY_THE_LOCK, creates_once, probe_create
from log_lake.combine.declared import check_rule
from log_lake.lake import clones, copies
from log_lake.lake.author import default_author, default_metadata
from log_lake.lake.branches import planned
from log_lake.lake.given_up import give_up_unlisted
from log_lake.lake.histories import history_of
from log_lake.lake.holds import check_held, holding
from log_lake.lake.moment import views_at_one_moment
from log_lake.lake.named import pool_to_restore
from log_lake.lake.open_transactions import OPEN_FOR, begin
from log_lake.lake.pool import Pool
from log_lake.lake.transactions import PoolsTransaction
from log_lake.lake.view import View
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.settings import Settings
from log_lake.settings.settings import pool_check
from log_lake.stores import open_store
from log_lake.stores.guard import guarded
from log_lake.stores.locked import LockedStore, NoLock
from log_lake.stores.read_only import ReadOnlyStore
from log_lake.texts.is_text import require_text

log = logging.getLogger(__name__)

_MAGIC = "lake"

_LOOKING = 16
"""How many journals of pools are read at the same time; such reads mostly wait for the store."""


class Head(msgspec.Struct, frozen=True):
    """What `lake.json` says.  `upgraded`: programs of an older version may still have the lake open."""

    magic: str
    version: int
    id: str
    lock: str = ""
    upgraded: bool = False

    def __post_init__(self) -> None:
        check_id(self.id, what="the lake's id")
        if self.version < 1:
            raise Corrupt(f"there is no format {self.version} of a lake")


class Lake:
    """An open lake.  `clients`: settings for clients such as Kafka's, by the servers from which pools load; they
    may contain passwords."""

    def __init__(
        self,
        store: Store,
        lake_id: str,
        *,
        ids: IdSource | None = None,
        author: str = "",
        limits: ScanLimits = LIMITS,
        format_version: int = FORMAT_VERSION,
        metadata: Mapping[str, str] | None = None,
        gated: bool = True,
    ) -> None:
        if metadata and format_version < 2:
            raise InvalidInput(
                f"{store.uri}: this lake has format version {format_version}, which has no metadata: run lake "
                "upgrade"
            )
        all_metadata = {**default_metadata(), **(metadata or {})} if format_version >= 2 else {}
        self.context = Context(
            guarded(store),
            lake_id,
            ids or IdSource(),
            author or default_author(),
            format_version,
            check_metadata(all_metadata),
            gated,
        )
        self.catalog = Catalog(self.context, check=pool_check(self.context.format_version))
        self.limits = limits
        self.clients: Mapping[str, Mapping[str, str]] = {}
        self._histories: dict[str, History] = {}

    @property
    def store(self) -> Store:
        """The store that holds the lake."""
        return self.context.store

    @property
    def id(self) -> str:
        """The id that the lake got when it was created."""
        return self.context.lake_id

    @classmethod
    def create(
        cls,
        uri: str,
        *,
        options: Mapping[str, Any] | None = None,
        ids: IdSource | None = None,
        author: str = "",
    ) -> Lake:
        """Makes a lake at `uri`.  Raises AlreadyExists, InvalidInput (a store that overwrites), Conflict,
        Unavailable."""
        return cls.create_on(open_store(uri, options), ids=ids, author=author)

    @classmethod
    def create_on(
        cls, store: Store, *, ids: IdSource | None = None, author: str = "", limits: ScanLimits = LIMITS
    ) -> Lake:
        """Makes a lake on a store; `limits` bound the memory of merges."""
        ids = ids or IdSource()
        store = guarded(store)
        if store.get(naming.LAKE_FILE) is not None:
            raise AlreadyExists(f"{store.uri}: there is a lake already")
        lake_id = ids.new()
        probe_create(store, name=f"probe-{lake_id}")
        head = {"magic": _MAGIC, "version": FORMAT_VERSION, "id": lake_id}
        if isinstance(store.behind, LockedStore):
            head["lock"] = store.behind.lock.kind
            if not creates_once(store.behind.behind, name=f"probe-{lake_id}-unlocked"):
                log.warning("%s: %s", store.uri, ONLY_THE_LOCK)
        data = _encoded(head)
        created = store.create(naming.LAKE_FILE, data)
        if created is Created.UNKNOWN:  # only a second attempt tells whether it is there and durable
            created = store.create(naming.LAKE_FILE, data)
        if created is Created.UNKNOWN:
            raise Unavailable(f"{store.uri}: the store does not say whether the lake was made; try again")
        if created is Created.EXISTS and (there := store.get(naming.LAKE_FILE)) != data:
            if there is None:
                raise Unavailable(f"{store.uri}: the store does not say whether the lake was made; try again")
            raise Conflict(f"{store.uri}: another process made a lake here just now; open that one")
        return cls(store, lake_id, ids=ids, author=author, limits=limits)

    @classmethod
    def open(
        cls,
        uri: str | os.PathLike[str] | Address,
        *,
        options: Mapping[str, Any] | None = None,
        ids: IdSource | None = None,
        author: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> Lake:
        """Opens the lake at a URI or an address; every transaction on its pools carries `metadata`.

        Raises NotFound, Corrupt, Unavailable, InvalidInput (the URI names no store; too much metadata).
        """
        return cls.open_on(open_store(uri, options), ids=ids, author=author, metadata=metadata)

    @classmethod
    def open_on(
        cls,
        store: Store,
        *,
        ids: IdSource | None = None,
        author: str = "",
        metadata: Mapping[str, str] | None = None,
        limits: ScanLimits = LIMITS,
    ) -> Lake:
        """Opens the lake on a store; `limits` bound the memory of merges."""
        store = guarded(store)
        data = store.get(naming.LAKE_FILE)
        if data is None:
            raise NotFound(f"{store.uri}: there is no lake; make one with: lake init")
        what = f"not the file of a lake: it begins with {data[:60]!r}"
        head: Head = decoded_json(data, Head, name=f"{store.uri}/{naming.LAKE_FILE}", what=what)
        if head.magic != _MAGIC or head.version > FORMAT_VERSION:
            raise Corrupt(
                f"{store.uri}: written by a newer version (format {head.version}); upgrade this program"
            )
        lock = head.lock
        behind = store.behind
        locked = isinstance(behind, LockedStore) and behind.lock.kind == lock
        if lock and not locked and not isinstance(behind, ReadOnlyStore):
            store = guarded(LockedStore(behind, NoLock(lock)))
        return cls(
            store,
            head.id,
            ids=ids,
            author=author,
            limits=limits,
            format_version=head.version,
            metadata=metadata,
            gated=not head.upgraded,
        )

    def upgrade(self) -> tuple[int, int]:
        """Raises the lake to the newest format version; returns the versions before and after.

        From then on, programs that know only the older version refuse the lake.  Nothing else is rewritten.
        Pools that are already open stay at the older version until they are opened again.  Raises Unavailable.
        """
        before = self.context.format_version
        if before < FORMAT_VERSION:
            head = json.loads(self.store.get(naming.LAKE_FILE) or b"{}") | {
                "version": FORMAT_VERSION,
                "upgraded": True,
            }
            self.store.put(naming.LAKE_FILE, _encoded(head), durable=True)
            self.context = replace(self.context, format_version=FORMAT_VERSION, gated=False)
            self.catalog = Catalog(self.context, check=pool_check(self.context.format_version))
            self._histories.clear()
        return before, FORMAT_VERSION

    def pools(self) -> list[PoolConfig]:
        """Returns the configurations of all pools, by name."""
        return sorted(self.catalog.load().state.pools.values(), key=lambda p: p.name)

    def create_pool(
        self,
        name: str,
        *,
        key: str | PoolKey,
        kind: str = "append",
        settings: Mapping[str, str] | None = None,
        aggregates: Mapping[str, str] | None = None,
    ) -> Pool:
        """Makes a pool.  Raises AlreadyExists, InvalidInput."""
        config = self.new_pool(name, key=key, kind=kind, settings=settings, aggregates=aggregates)
        self.catalog.create(config)
        return self._pool(config, "")

    def clone(self, name: str, new: str, *, at: str = naming.MAIN, to: Lake | None = None) -> Pool:
        """Makes a pool `new` that begins with a revision of the pool `name`. It shares the objects; only a pool in
        another lake (`to`) gets copies.

        Raises AlreadyExists, NotFound, InvalidInput, ObjectVacuumed, Conflict, OutcomeUnknown, Unavailable.
        """
        if to is None or to.id == self.id:
            return clones.clone(self.pool(name), new, at=at, catalog=self.catalog, unlisted=self.unlisted)
        return copies.copy_pool(self.pool(name), new, at=at, target=to)

    def unlisted(self, config: PoolConfig) -> Pool:
        """Returns a pool that is not in the list yet. It can be filled, and `catalog.create` then makes it visible
        at once."""
        return self._pool(config, "")

    def own_pool(self, name: str, *, key: str, kind: str, settings: Mapping[str, str]) -> Pool:
        """Returns one of the lake's own pools (`naming.OWN_POOLS`); makes it if it does not exist yet.

        Raises InvalidInput, Unavailable.
        """
        with contextlib.suppress(NotFound):
            return self.pool(name)
        config = PoolConfig(self.context.ids.new(), name, PoolKey.parse(key), kind, dict(settings), {})
        with contextlib.suppress(AlreadyExists):  # another process was faster
            self.catalog.create(config, own=True)
        return self.pool(name)

    def new_pool(
        self,
        name: str,
        *,
        key: str | PoolKey,
        kind: str = "append",
        settings: Mapping[str, str] | None = None,
        aggregates: Mapping[str, str] | None = None,
    ) -> PoolConfig:
        """Returns a pool with a new id, not listed yet.  Raises InvalidInput (impossible key, kind, setting)."""
        if not isinstance(key, str | PoolKey):
            raise InvalidInput(f"key={key!r}: give the fields as one text, as 'FIELD' or 'FIELD,FIELD:desc'")
        parsed = key if isinstance(key, PoolKey) else PoolKey.parse(key)
        check_rule(kind, aggregates or {}, parsed)
        return PoolConfig(
            self.context.ids.new(), name, parsed, kind, dict(settings or {}), dict(aggregates or {})
        )

    def change_pools(
        self,
        *,
        created: Sequence[PoolConfig] = (),
        changed: Sequence[tuple[PoolConfig, Mapping[str, str]]] = (),
    ) -> int:
        """Adds new pools to the list and changes settings of others, all or none. Returns the version of the list.

        Raises PlanAgain if the list was changed after this was planned, NotFound if a drop of one of the pools
        to change was interrupted, InvalidInput.
        """
        with ThreadPoolExecutor(max_workers=_LOOKING) as threads:
            list(threads.map(self._check_not_closed, (pool.name for pool, _ in changed)))
        return self.catalog.change(created=created, changed=changed)

    def drop_pool(self, name: str, *, id: str = "") -> int:
        """Moves a pool to the dropped ones; nothing is deleted.  Returns the version of the list.

        First an entry closes the pool's own journal: a writer that still has the pool open loses the race to
        that entry, and all its later commits are refused.  If a drop is interrupted, the pool stays listed;
        drop it, or restore it, again.  A warning names the clones that need its objects, which stay.  `id`, if
        given, must be the pool's.  Raises NotFound, Unavailable, OutcomeUnknown; Conflict if others restore it.
        """
        return planned(lambda: self._drop_pool(name, id))

    def _drop_pool(self, name: str, id: str) -> int:
        pool = self._pool(self.catalog.load().state.named(name), "")
        if id and pool.config.id != id:
            raise Conflict(f"pool {name!r} is another one now: pools were renamed meanwhile; look again")
        needed_by = self.clones_of(name)
        # no writer can read a damaged journal to its end, so none can add to it
        with contextlib.suppress(Corrupt):
            pool.close()
        version = self.catalog.drop(pool.config)
        if needed_by:
            log.warning("%s is dropped; its objects stay for its clones: %s", name, ", ".join(needed_by))
        return version

    def clones_of(self, name: str) -> list[str]:
        """The names of clones that need objects of a pool, also of dropped ones.  Raises NotFound, Unavailable."""
        listed = self.catalog.load().state
        return sorted(clone.name for clone in holding(self, listed, listed.named(name).id))

    def transaction(
        self, id: str = "", *, token: str = "", message: str = "", open_for: float = OPEN_FOR
    ) -> PoolsTransaction:
        """Begins a transaction over several pools (docs/transactions.md); with `id` it continues that transaction.

        A second transaction with the same `token` changes nothing.  The transaction may stay open for
        `open_for` seconds. Raises InvalidInput, Unavailable.
        """
        if id:
            return PoolsTransaction(self, id)
        return begin(self, token=token, message=message, open_for=open_for)

    def dropped_pools(self) -> list[DroppedPool]:
        """Returns the dropped pools that are still on the store, the last dropped first."""
        return sorted(self.catalog.load().state.dropped.values(), key=lambda d: -d.version)

    def restore_pool(self, name: str, *, new_name: str = "") -> Pool:
        """Restores a dropped pool: NAME, or NAME#ID if several had the name; as `new_name`, if that is given.

        The pool has everything that it had.  If a restore is interrupted, the pool is listed and refuses all
        work; then restore it again, or drop it.  Raises NotFound (no such pool, or its grace time is over),
        AlreadyExists (the name), InvalidInput (several pools fit, or it was never dropped), Conflict (dropped
        again meanwhile), Unavailable, OutcomeUnknown.
        """
        state = self.catalog.load().state
        config = pool_to_restore(state, name)
        closed = self._pool(config, "").history.load().state.closed
        if closed is None and config.id in state.pools:
            raise InvalidInput(f"pool {config.name!r} is not dropped; there is nothing to restore")
        if new_name:
            naming.check_chosen_name(new_name, what="pool")
        check_held(self, config)
        self.catalog.restore(config.id, name=new_name or config.name)
        pool = self._pool(msgspec.structs.replace(config, name=new_name or config.name), "")
        if closed is not None:  # otherwise its journal was damaged when it was dropped
            pool.reopen(closed)
        return self.pool(pool.name)

    def give_up_folder(self, pool_id: str) -> None:
        """Writes a note into a folder that the list of pools does not have: it is not needed.  Nothing is deleted.

        Raises NotFound, InvalidInput (the list has the pool, or had it until it was dropped), Unavailable.
        """
        give_up_unlisted(self.context, self.catalog.load().state, pool_id)

    def rename_pool(self, name: str, new: str) -> int:
        """Gives a pool another name; returns the version of the list.

        Raises NotFound (also if a drop of it was interrupted), AlreadyExists, InvalidInput.
        """
        self._check_not_closed(name)
        return self.catalog.rename(name, new)

    def configure_pool(self, name: str, settings: dict[str, str]) -> int:
        """Changes settings of a pool; returns the version of the list.

        Raises NotFound (also if a drop of the pool was interrupted), InvalidInput.
        """
        self._check_not_closed(name)
        return self.catalog.configure(name, settings)

    def _check_not_closed(self, name: str) -> None:
        pool = self._pool(self.catalog.load().state.named(name), "")
        with contextlib.suppress(Corrupt):  # the list of pools does not depend on the pool's journal
            pool.history.load_open()

    def pool(self, name: str, *, id: str = "") -> Pool:
        """Returns a pool by name, or a sub-pool (`logs.$nokey`).  Raises NotFound.

        If `id` is given, the pool with this id is returned, even if it has been renamed since.
        """
        base, sub_pool = naming.split_pool(require_text(name, "pool", example="'logs'"))
        state = self.catalog.load().state
        return self._pool(state.still(id, name=base) if id else state.named(base), sub_pool)

    def at(self, *names: str, time: str = "") -> dict[str, View]:
        """Returns views of several pools by name, all of one moment (docs/transactions.md): now, or an ISO time.

        Raises NotFound, InvalidInput, Conflict, Unavailable.
        """
        return views_at_one_moment({name: self.pool(name) for name in names}, time=time)

    def pools_of(self, names: Sequence[str]) -> dict[str, Pool]:
        """Returns by name the pools that exist; reads the list of pools once.  Raises Unavailable."""
        state = self.catalog.load().state
        split = {name: naming.split_pool(name) for name in names}
        return {
            name: self._pool(state.pools[state.names[base]], sub_pool)
            for name, (base, sub_pool) in split.items()
            if base in state.names
        }

    def _pool(self, config: PoolConfig, sub_pool: str) -> Pool:
        history = self._histories.get(config.id)
        if history is None:
            history = self._histories[config.id] = history_of(self.context, config)
        history.pool_name = config.name
        with contextlib.suppress(InvalidInput):  # a setting that a newer program wrote; the default is kept
            history.keep_tokens(Settings(config.settings)["token.keep"])
        return Pool(self.context, config, history, sub_pool, self.limits)


def _encoded(head: Mapping[str, Any]) -> bytes:
    """Returns the bytes of `lake.json` for this content."""
    return json.dumps(head, indent=1).encode() + b"\n"
