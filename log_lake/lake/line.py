"""A line of transactions: the base of `Branch`, for the functions that write to it.

`Branch` calls the functions of `loads`, `replaces`, `deletes`, `by_keys`, `merges` and `reverts`, so they cannot
import `Branch`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from lake_core.context import Context
from lake_core.errors import Conflict, InvalidInput, LakeError, NotFound
from lake_core.history import Committed, Draft, History, PoolState
from lake_core.journal import LoadedState
from lake_core.journal.store_time import surely_past
from lake_core.naming import MAIN, transaction_of
from lake_core.phrases import counted
from lake_core.records import AddObject, Discard
from lake_core.records.pools import PoolConfig
from lake_core.store import Store, address_of
from log_lake.lake import files as pool_files
from log_lake.lake.results import DeleteResult, LoadResult
from log_lake.lake.write import WriteArguments
from log_lake.leases import HeldLease, LeaseNote
from log_lake.leases.lease import WRITE
from log_lake.loading.files import FileSource
from log_lake.loading.options import ON
from log_lake.measuring import measured
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.reading.revision import PoolPart, Revision

log = logging.getLogger(__name__)


W = TypeVar("W", LoadResult, DeleteResult, LoadResult | DeleteResult)

_SUMS_SINCE = 3
"""The version of a lake from which on a transaction may state what a rewriting conserves."""


@dataclass(frozen=True)
class Line(PoolPart):
    """A branch of a pool or sub-pool: its newest state, and how a draft is committed to it."""

    context: Context
    config: PoolConfig
    name: str
    history: History
    limits: ScanLimits = LIMITS
    sub_pool: str = ""

    @property
    def store(self) -> Store:
        """The store that holds the lake."""
        return self.context.store

    @property
    def has_sums(self) -> bool:
        """Whether new objects get content sums; always False in a lake of an older format."""
        is_on = self.settings["content.sums"] == ON
        return is_on and self.context.format_version >= _SUMS_SINCE

    def revision(
        self,
        *,
        now: float | None = None,
        recent: bool = False,
        believed: LoadedState[PoolState] | None = None,
    ) -> Revision:
        """Returns the newest revision at the time `now` (seconds since 1970, default: the clock). Raises NotFound,
        Unavailable.

        With `recent`, a revision that was the newest a moment ago suffices, such as that of a commit that just
        ended.  `believed`: a state that is used as the newest one, without a request.
        """
        loaded = believed or (self.history.load_recent() if recent else self.history.load_open())
        time = self.context.now() if now is None else now
        return Revision(
            self.config, loaded.version, self.name, loaded.state, time, self.sub_pool, self.limits
        )

    def revision_to_rewrite(self, *, now: float | None = None) -> Revision:
        """Returns the newest revision at `now`, in seconds since 1970 by this machine (default: its clock), for a
        rewrite.

        In it `age_off` hides only records that are also old by the store's clock, because a rewrite drops
        hidden records for good.  Raises InvalidInput if the pool has `age_off` and this machine's clock is far
        from the store's.  Raises NotFound, Unavailable.
        """
        own = self.context.now() if now is None else now
        return self.revision(
            now=surely_past(self.history.journal, own=own) if self.settings["age_off"] else own
        )

    def open_files(
        self, files: list[str], write: WriteArguments, *, fields: pa.Schema | None = None
    ) -> AbstractContextManager[FileSource]:
        """Returns a context with the records of files, as `files.open_files` does."""
        return pool_files.open_files(
            self.config,
            files,
            options=write.options,
            access=address_of(self.store),
            progress=write.progress,
            fields=fields,
            paths=write.paths,
        )

    def write_lease(self, id: str, *, read_version: int, first: str, why: str) -> HeldLease:
        """Returns a lease that keeps objects while the branch is written to; `id` is the id of the work's
        transaction.

        No new object of the work has a smaller id than `first`.  The lease is taken once the work has lasted
        for `lease.after`, and is held while the block runs.
        """
        context, settings = self.context, self.settings
        note = LeaseNote(
            WRITE, read_version, context.author, settings["lease.ttl"], why, first, dict(context.metadata)
        )
        return HeldLease(self.store, self.config.id, id, note, after=settings["lease.after"])

    def believing(self, write: Callable[[LoadedState[PoolState] | None], W]) -> W:
        """Tries `write` with the state in memory, if that is allowed.  If this does not commit, calls `write`
        again with None, so that it reads the newest state.  Returns the result.

        The first attempt must be `is_exact`: it is committed only if no other writer changed the branch.  If it
        is refused, has nothing to do, or finds its token used, the reason may be that the state was old.
        """
        believed = self.history.believed()
        if believed is not None:
            with contextlib.suppress(Conflict, InvalidInput, NotFound):
                done = write(believed)
                if done.version is not None and not done.repeated:
                    return done
        return write(None)

    def commit_draft(self, draft: Draft, *, does: str) -> Committed:
        """Commits a draft; logs what the draft does (`does`) and what other writers wrote.  Raises what
        `History.commit` raises."""
        try:
            with measured(self.store, "commit", pool=self.config.name, branch=self.name) as work:
                committed = self.history.commit(draft)
                work.note(version=committed.version)
        except Conflict:
            discard_refused(self.context, self.history, draft)
            raise
        name, version = self.config.name, committed.version
        if committed.repeated:
            log.info("%s: nothing was written: version %d used the token", name, version)
        else:
            others = counted(max(0, version - draft.read_version - 1), "entry", "entries")
            log.info("%s: version %d %s; others wrote %s since it began", name, version, does, others)
        for reason in committed.overtaken:
            log.warning("%s: version %d was %s, which hides its records in that range", name, version, reason)
        return committed

    def token_of(self, token: str) -> str:
        """Returns the token in its stored form. On the branch of a transaction over pools, this form has the
        transaction's id, so that the token counts within that transaction only."""
        over = transaction_of(self.name)
        return f"{over}:{token}" if over and token else token

    def own_metadata(self, metadata: Mapping[str, str]) -> dict[str, str]:
        """Returns the lake's own metadata without the names that the user's metadata has."""
        return {name: text for name, text in metadata.items() if name not in self.context.metadata}

    def check_writable(self) -> None:
        """Raises InvalidInput for a sub-pool."""
        if self.sub_pool:
            raise InvalidInput(f"the sub-pool {self.sub_pool} is read-only: load into the pool itself")

    def check_not_derived(self) -> None:
        """Raises InvalidInput for a branch of a derived pool into which only the pool's query writes."""
        shown = self.name == MAIN or transaction_of(self.name)
        if shown and self.settings["derive.from"] and self.settings["derive.query"]:
            raise InvalidInput(
                f"pool {self.config.name!r} is derived from another one, so nothing else changes it: change its "
                f"source, or end that with lake set {self.config.name} derive.from="
            )


def discard_refused(context: Context, history: History, refused: Draft) -> None:
    """Puts those new objects of a refused draft whose ids are below the floor onto the list of removed objects.

    A scan for orphans has passed the ids of these objects, because the writer paused for a long time, or its
    clock is behind.  No later scan checks such names.  So the writer itself puts its objects on the list, and a
    vacuum deletes them. If that fails, they stay on the store.  The draft is refused for good, and no version
    ever referred to them.
    """
    try:
        loaded = history.load_open()
        floor = loaded.state.removed.floor
        late = [a for a in refused.actions if isinstance(a, AddObject) and a.object < floor]
        if not late:
            return
        discard = Discard(tuple(a.object for a in late), tuple(a.size for a in late), never_read=True)
        message = f"discard {counted(len(late), 'object')} of a refused write"
        draft = Draft(context.ids.new(), "", loaded.version, context.author, (discard,), message=message)
        history.commit(draft)
    except LakeError as error:
        log.info("%s: objects of a refused write are not listed: %s", history.pool_name, error)
