"""`lake fsck`: find the faults of a lake or of one pool.  It reads, and never writes.

    fsck(lake)                    the list of pools, the folders of the lake, every pool
    fsck(lake, pools=["logs"])    one pool

Findings come one after another, as they are found.  `Fsck.counts` says afterwards how much was looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lake_core import naming
from lake_core.catalog import Catalog
from lake_core.catalog.state import PoolsState
from lake_core.checkpoints import CheckpointFile
from lake_core.context import Context
from lake_core.errors import CheckpointGone, Corrupt, Denied, JournalLost, NotFound, Unavailable
from lake_core.history import History
from lake_core.history.rows import HOME
from lake_core.ids import id_seconds, is_id
from lake_core.keys.spec import ARRIVAL
from lake_core.records.pools import PoolConfig
from lake_core.store import Store
from log_lake.lake.given_up import read_given_up
from log_lake.lake.isolated import isolated
from log_lake.lake.rekey import REKEY
from log_lake.leases.lease import WRITE, read_leases
from log_lake.objects.read import DataObject
from log_lake.repair.check_journal import JournalCheck
from log_lake.repair.check_objects import MAX_REFUSALS, CheckObjects, in_threads
from log_lake.repair.check_pool import CheckProgress, PoolCheck
from log_lake.repair.finding import UNSEEN, Finding, finding
from log_lake.repair.history_left import has_history
from log_lake.settings.settings import check_pool
from log_lake.stores.guard import GuardedStore

LAKE_POOLS = "lake:pools"
"""The list of pools, as the command names it."""

OLDER_THAN = 86_400.0
"""Seconds: a younger object that nothing refers to may belong to a load under way."""

LAKE_NAMES = (
    naming.LAKE_FILE,
    naming.POOLS_JOURNAL,
    naming.begun(naming.POOLS_JOURNAL),
    naming.gates(naming.POOLS_JOURNAL),
    naming.PACKS,
    naming.ACTIVITY,
    naming.QUIET,
    naming.TRANSACTIONS,
)
POOL_FOLDERS = (
    "journal",
    naming.begun("journal"),
    naming.gates("journal"),
    "data",
    "parked",
    "index",
    "leases",
    "plans",
    "erasures",
    "published",
    "given-up",
)


@dataclass
class Fsck:
    """One check of a lake.  `data`: read every record.  `content`: compare their content sums too.

    `pools`: names, which may include `lake:pools`; empty: everything.

    `older_than`: the age in seconds at which an unused object becomes a finding.
    """

    context: Context
    pools: Sequence[str] = ()
    data: bool = False
    content: bool = False
    older_than: float = OLDER_THAN
    check_objects: CheckObjects | None = None
    progress: CheckProgress = lambda what, count: None
    counts: Counter[str] = field(default_factory=Counter)
    _refusals: int = 0

    def __post_init__(self) -> None:
        # another guard around the same store: no footer that was kept before is taken for what is there now
        self.context = Context(
            GuardedStore(self.context.store),
            self.context.lake_id,
            self.context.ids,
            self.context.author,
            gated=False,  # it looks once
        )

    def run(self) -> Iterator[Finding]:
        """Yields all faults.

        An object that the store does not give is a finding, too.  Raises NotFound and Denied.  Raises
        Unavailable if the store gives no list of pools, or refuses more than MAX_REFUSALS things.  Raises
        Corrupt if the list of pools cannot be read and pools are named.
        """
        catalog = Catalog(self.context, check=check_pool)
        everything = not self.pools
        if everything or LAKE_POOLS in self.pools:
            check = JournalCheck(catalog.journal, LAKE_POOLS, progress=self.progress)
            yield from self._seen(check.run(), pool=LAKE_POOLS, where=naming.POOLS_JOURNAL)
            self._count(check)
        if set(self.pools) == {LAKE_POOLS}:
            return
        try:
            state = catalog.load().state
        except JournalLost:  # which the check of the journal has found
            if not everything:
                raise
            yield from self._folders(PoolsState())
            return
        except Corrupt as error:
            if not everything:
                raise
            yield finding("no_state", pool=LAKE_POOLS, where=naming.POOLS_JOURNAL, what=str(error))
            return
        if everything:
            yield from self._folders(state)
        names = (
            sorted(state.names)
            if everything
            else [name for name in dict.fromkeys(self.pools) if name != LAKE_POOLS]
        )
        for name in names:
            if naming.split_pool(name)[1]:
                raise NotFound(f"pool {name!r} is a sub-pool; name the pool that it belongs to")
            pool = PoolCheck(
                self.context,
                state.named(name),
                self.check_objects
                or in_threads(self.context.store, data=self.data or self.content, content=self.content),
                self.older_than,
                self.progress,
                listed=(*state.pools, *state.dropped),
            )
            try:
                with isolated(name):
                    yield from self._seen(pool.run(), pool=name, where=f"{pool.config.id}/")
            except Corrupt as error:  # what no check foresees; the other pools are looked at
                where = naming.pool_journal(pool.config.id)
                yield finding("no_state", pool=name, where=where, what=str(error))
            self._count(pool.journal)
            self.counts.update(pools=1, references=pool.references, objects=pool.objects)
            self.counts.update(without_sum=pool.without_sum)

    def _seen(self, findings: Iterator[Finding], *, pool: str, where: str) -> Iterator[Finding]:
        """Yields the findings; if the store refuses something, a last one says that the rest was not looked at."""
        try:
            for one in findings:
                self._refusals += one.severity == UNSEEN
                yield one
        except Denied:
            raise
        except Unavailable as error:
            self._refusals += 1
            if self._refusals > MAX_REFUSALS:
                raise
            yield finding("unread", pool=pool, where=where, what=f"not looked at to its end: {error}")

    def _count(self, check: JournalCheck) -> None:
        self.counts.update(entries=check.entries, checkpoints=check.checkpoints)

    def _folders(self, state: PoolsState) -> Iterator[Finding]:
        """Folders of pools that are not in the list, and names that are not the lake's."""
        for name in top_names(self.context.store, ""):
            if name.rstrip("/") in LAKE_NAMES:
                continue
            id = name.removesuffix("/")
            if not name.endswith("/") or not is_id(id):
                yield finding("object_unknown", pool="", where=name, what="not an object of the lake")
            else:
                config = state.pools.get(id)
                inside = self._unlisted(id, state) if config is None else self._inside(config)
                yield from self._seen(inside, pool=id if config is None else config.name, where=f"{id}/")

    def _inside(self, config: PoolConfig) -> Iterator[Finding]:
        for inner in top_names(self.context.store, config.id):
            if inner.removesuffix("/") not in POOL_FOLDERS:
                what, where = "not a folder of a pool", f"{config.id}/{inner}"
                yield finding("object_unknown", pool=config.name, where=where, what=what)

    def _unlisted(self, id: str, state: PoolsState) -> Iterator[Finding]:
        if (one := self._unlisted_folder(id, state)) is not None:
            yield one

    def _unlisted_folder(self, id: str, state: PoolsState) -> Finding | None:
        note = read_given_up(self.context.store, id)
        if note is not None:
            what = f"a folder that {note.author} gave up: {note.why}"
            return finding("folder_given_up", pool=id, where=f"{id}/", what=what, id=id)
        dropped = state.dropped.get(id)
        if dropped is not None:
            what = f"the pool {dropped.pool.name!r}, which {dropped.author} dropped"
            if dropped.is_deleted:
                what += "; its objects are being deleted"
            return finding("pool_dropped", pool=id, where=f"{id}/", what=what, id=id)
        history = History(self.context.store, pool_id=id, key=ARRIVAL, clock=self.context.clock, gated=False)
        if not self._is_listed_now(id) and is_clone(history):
            what = "a clone that the list of pools does not have: it is being made, or its maker died"
            return finding("clone_unlisted", pool=id, where=f"{id}/", what=what, id=id)
        try:
            closed = history.load().state.closed
        except Corrupt:
            closed = None
        if closed is not None:
            what = f"a pool that {closed.author} dropped"
            return finding("pool_dropped", pool=id, where=f"{id}/", what=what, id=id)
        if (source := self._copied_from(id)) is not None:
            what = f"copies of objects of {source}, of a rebuild or a copy that did not end"
            return finding("rebuild_interrupted", pool=id, where=f"{id}/", what=what, id=id)
        if self._is_listed_now(id):
            return None
        if (why := self._is_filled_now(id)) is not None:
            what = f"a pool that the list of pools does not have yet: {why}"
            return finding("pool_in_flight", pool=id, where=f"{id}/", what=what, id=id)
        what = "a pool that the list of pools does not have"
        return finding("pool_unlisted", pool=id, where=f"{id}/", what=what, id=id)

    def _is_listed_now(self, id: str) -> bool:
        """Whether the pool was listed since the check began."""
        try:
            return id in Catalog(self.context, check=check_pool).load().state.pools
        except Corrupt:  # which is a finding of its own
            return False

    def _is_filled_now(self, id: str) -> str | None:
        """Returns why a process may still be copying into the folder of a pool that is not listed yet; None if no
        process seems to be.

        `lake rekey` fills a new pool's folder first, and lists the pool at the end.
        """
        if self.older_than <= 0:
            return None
        leases = read_leases(self.context.store, id, own="", now=self.context.now())
        fills = (one for one in leases.live if one.note.kind == WRITE and one.note.why == REKEY)
        if (lease := next(fills, None)) is not None:
            return f"{lease.note.holder} is at work there ({lease.note.why})"
        is_young = id_seconds(id) >= self.context.now() - self.older_than
        if is_young and not has_history(self.context.store, id):
            return "it is young, and nothing was committed there"
        return None

    def _copied_from(self, id: str) -> str | None:
        """Returns the folder that the objects were copied from, if nothing but a rebuild that died has written
        here."""
        if has_history(self.context.store, id):
            return None
        first = next(iter(self.context.store.list(naming.data(id))), None)
        object_id = None if first is None else naming.data_id(first.name)
        if object_id is None:
            return None
        try:
            with DataObject(self.context.store, pool_id=id, object_id=object_id) as data:
                source = data.metadata.origin.pool_id
        except Corrupt:
            return None
        return source if source != id else None


def is_clone(history: History) -> bool:
    """Whether the newest checkpoint is one of a clone.  Raises Unavailable."""
    marks = history.journal.marks().checkpoints
    try:
        groups = CheckpointFile(history.journal.store, marks[0].name).footer.groups if marks else ()
    except (Corrupt, CheckpointGone):
        return False
    return any(group.section == HOME for group in groups)


def top_names(store: Store, folder: str) -> Iterator[str]:
    """Yields the names directly below a folder; those of folders end with a slash.

    If a store can list from a given name on, this takes one request for each name, and does not list everything
    below.
    """
    prefix = f"{folder}/" if folder else ""
    after = ""
    seen = set()
    while True:  # bounded by the names right below the folder
        skipped = False
        for info in store.list(folder, after=after):
            first, slash, _ = info.name.removeprefix(prefix).partition("/")
            if first + slash not in seen:
                seen.add(first + slash)
                yield first + slash
            if slash and store.lists_from_name:
                after = f"{prefix}{first}/{chr(0x10FFFF)}"  # behind everything in that folder
                skipped = True
                break
        if not skipped:
            return
