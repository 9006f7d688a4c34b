"""A pool: reads it at a revision, writes to a branch, follows a branch, shows its history.

`lake.pool("logs")` is the pool, `lake.pool("logs.$nokey")` the view of a sub-pool of it: the same journal,
other objects.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lake_core.errors import Conflict, Denied, InvalidInput, NotFound
from lake_core.history import PoolState
from lake_core.history.state import Closing, Tag
from lake_core.journal import LoadedState
from lake_core.naming import MAIN
from lake_core.phrases import did_you_mean, human_duration
from lake_core.records import Close, Reopen, Transaction
from log_lake.lake import branches, field_edits, ranges, tags
from log_lake.lake.branch import Branch
from log_lake.lake.branches import BranchResult, planned
from log_lake.lake.feed import Feed
from log_lake.lake.field_edits import FieldResult, PoolField
from log_lake.lake.journaled import Journaled
from log_lake.lake.named import resolve_revision
from log_lake.lake.ranges import PoolRange, SplitResult
from log_lake.lake.tags import TagResult
from log_lake.lake.view import FAIL, WARN, View
from log_lake.leases import HeldLease, LeaseNote, Leases
from log_lake.leases.lease import MAX_TTL, READ
from log_lake.presence.absence import planning_again
from log_lake.presence.lease_list import list_leases
from log_lake.texts.is_text import require_text

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pool(Journaled):
    """A pool of the lake.  It remembers the newest state, so keep it to make later commits cheap.

    It stays the same pool even if it is renamed.  While the pool is dropped, `branch`, `at` and `feed` raise
    NotFound; views that were opened before can still be read.
    """

    def branch(self, name: str = MAIN, *, to_delete: bool = False) -> Branch:
        """Returns a branch to write to. Raises NotFound.

        A branch of a sub-pool can only be used to delete.  For such a branch `to_delete` must be true,
        otherwise InvalidInput is raised.
        """
        if self.sub_pool and not to_delete:
            raise InvalidInput(f"the sub-pool {self.sub_pool} is read-only: load into the pool itself")
        self._loaded(require_text(name, "branch", example="'main'"))
        return self.known_branch(name)

    def known_branch(self, name: str) -> Branch:
        """Returns a branch that the caller has just seen."""
        return Branch(self.context, self.config, name, self.history, self.limits, self.sub_pool)

    def at(
        self,
        revision: str = MAIN,
        *,
        on_missing: str = FAIL,
        newest: LoadedState[PoolState] | None = None,
    ) -> View:
        """Returns the pool at a version, a transaction id, a branch, a tag, or BRANCH@TIME.

        `newest`: the state that counts as the newest, for reads of several pools at one moment (`moment`).
        `on_missing`: `fail`, or `warn` to read an old revision without the objects that a vacuum took.  Raises
        NotFound, InvalidInput.
        """
        if on_missing not in (FAIL, WARN):
            raise InvalidInput(f"on_missing={on_missing!r}: use {FAIL} or {WARN}")
        require_text(revision, "revision", example="'12', 'main' or 'main@2026-11-20T12:00:00Z'")
        loaded, branch = resolve_revision(self.history, revision, newest)
        return self._view(loaded, branch, on_missing=on_missing)

    def at_branch(self, name: str = MAIN) -> View:
        """Returns the newest revision of a branch.  Unlike `at`, it takes the name of a branch only.  Raises
        NotFound."""
        return self._view(self._loaded(name), name, on_missing=FAIL)

    def at_version(self, version: int, *, branch: str = MAIN) -> View:
        """Returns the state of a branch after an entry, whichever branch the entry changed.  Raises
        NotFound."""
        return self._view(self.history.load_version(version), branch, on_missing=FAIL)

    def _view(self, loaded: LoadedState[PoolState], branch: str, *, on_missing: str) -> View:
        return View(
            config=self.config,
            version=loaded.version,
            branch=branch,
            state=loaded.state,
            now=self.context.now(),
            sub_pool=self.sub_pool,
            limits=self.limits,
            store=self.store,
            history=self.history,
            on_missing=on_missing,
        )

    @contextlib.contextmanager
    def leased(
        self,
        revision: str = MAIN,
        *,
        why: str = "",
        on_missing: str = FAIL,
        newest: LoadedState[PoolState] | None = None,
    ) -> Iterator[View]:
        """Returns a context with a view whose objects no vacuum deletes while the block runs: a lease is held and
        renewed.

        Raises what `at` raises, and ObjectVacuumed if a vacuum has begun to take objects of the revision (not
        with `on_missing=warn`).
        """
        view = self.at(revision, on_missing=on_missing, newest=newest)
        with self.read_lease(view.version, why=why):
            self._check_whole(view)
            yield view

    def leave_lease(self, view: View, *, duration: float, why: str = "") -> None:
        """Writes a lease that keeps the view's objects for `duration` seconds, and does not renew it.

        For a reader that cannot report its end.  Raises InvalidInput (longer than a lease can live), and what
        `leased` raises.
        """
        if not 0 < duration <= MAX_TTL:
            raise InvalidInput(
                f"a lease of {human_duration(duration)}: it may be up to {human_duration(MAX_TTL)}"
            )
        try:
            self.read_lease(view.version, why=why, ttl=duration).take()
        except Denied as error:
            log.info("reads without a lease: %s", error)
        self._check_whole(view)

    def read_lease(
        self, version: int, *, why: str, ttl: float | None = None, optional: bool | None = None
    ) -> HeldLease:
        """Returns a lease for a reader of a version.  It lives for `ttl` seconds, by default for the pool's
        `lease.ttl`.  `optional=False`: the reader must not continue without the lease."""
        context = self.context
        ttl = self.settings["lease.ttl"] if ttl is None else ttl
        note = LeaseNote(READ, version, context.author, ttl, why, metadata=dict(context.metadata))
        return HeldLease(self.store, self.config.id, context.ids.new(), note, optional=optional)

    def _check_whole(self, view: View) -> None:
        """Raises ObjectVacuumed if a vacuum may take objects of the view, because it began before the lease was
        there."""
        # a vacuum that begins from here on finds the lease; one that began before is in the newest state, and so is
        # a drop, which `warn` does not excuse
        view.check_whole(() if view.on_missing == WARN else None)

    def leases(self) -> Leases:
        """Returns the leases of the pool, also those that have expired.  Raises Unavailable."""
        context, ttl = self.context, self.settings["lease.ttl"]
        return list_leases(
            self.store,
            self.config.id,
            id=context.ids.new(),
            holder=context.author,
            ttl=ttl,
            why="list leases",
            now=context.now(),
        )

    def create_branch(self, name: str, *, at: str = MAIN) -> BranchResult:
        """Creates a branch on a revision; on the tag `NAME@N` it restores the deleted branch NAME.

        Raises AlreadyExists, NotFound, InvalidInput (an impossible name), Conflict, OutcomeUnknown,
        Unavailable.
        """
        return branches.create(self, name, at=at)

    def delete_branch(self, name: str) -> BranchResult:
        """Deletes a branch; `create_branch(name, at=result.root)` restores it.

        Raises NotFound, InvalidInput (main, or a branch on which others began), Conflict, OutcomeUnknown,
        Unavailable.
        """
        return branches.delete(self, name)

    def tag(self, name: str, *, at: str = MAIN, reason: str = "", expires: float | None = None) -> TagResult:
        """Gives a revision a name, and keeps it; `expires` is in seconds since 1970, None: never.

        Raises AlreadyExists (a tag does not move), NotFound, InvalidInput, OutcomeUnknown, Unavailable.
        """
        return tags.set_tag(self, name, at=at, reason=reason, expires=expires)

    def delete_tag(self, name: str) -> TagResult:
        """Deletes a tag.  Raises NotFound, OutcomeUnknown, Unavailable."""
        return tags.delete_tag(self, name)

    @property
    def tags(self) -> dict[str, Tag]:
        """Returns the tags by name, including expired ones and those of deleted branches (`NAME@N`)."""
        return tags.tags(self)

    def tag_costs(self) -> dict[str, int]:
        """Returns for each live tag, by name, the bytes of the objects that only this tag keeps."""
        return tags.costs(self)

    def split(self, *, at: Sequence[Any] = (), into: int | None = None) -> SplitResult:
        """Splits the ranges at these keys, or into so many ranges of about equal bytes (docs/ranges.md).

        A key is a value of its field, or a list of values in the order of the key; a text is read by the type
        of the field.  Existing points stay.  `into` reads the samples in the objects' footers.

        Raises InvalidInput, Conflict, OutcomeUnknown, Unavailable.
        """
        return planned(lambda: self._split(at, into))

    def _split(self, at: Sequence[Any], into: int | None) -> SplitResult:
        view = self._splittable()
        if bool(at) == (into is not None):
            raise InvalidInput(
                "split: name the keys to split at, or into how many ranges, and not both: --at KEY or --into N"
            )
        with planning_again(self.history):
            points = ranges.points_at(view, at) if into is None else ranges.points_into(view, into)
        return ranges.split(self, view, points)

    def _splittable(self) -> View:
        """Returns the newest view of a pool whose keys can be split.  Raises InvalidInput for a sub-pool."""
        if self.sub_pool:
            raise InvalidInput(
                f"the sub-pool {self.sub_pool} keeps the order of arrival and has no ranges: split the pool itself"
            )
        return self.at_branch()

    def unsplit(self, *, at: Sequence[Any] | None = None) -> SplitResult:
        """Removes the split points at these keys; None: all.  Keys that are not split points are ignored.

        Raises InvalidInput, Conflict, OutcomeUnknown, Unavailable.
        """
        view = self._splittable()
        return ranges.unsplit(self, view, view.points if at is None else ranges.points_at(view, at))

    def ranges(self, revision: str = MAIN) -> list[PoolRange]:
        """Returns the ranges between the split points, with the figures of a revision in each.  Raises NotFound,
        InvalidInput."""
        return ranges.ranges_of(self.at(revision))

    def fields(self, revision: str = MAIN) -> list[PoolField]:
        """Returns the fields of a revision, with their types and stored names.  Raises NotFound, InvalidInput."""
        return field_edits.fields_of(self.at(revision))

    def rename_field(self, *, old: str, new: str) -> FieldResult:
        """Gives a field another name, for all branches, by one small transaction (docs/fields.md).

        Raises NotFound, InvalidInput (a field of the key, one that a setting names, a name that is taken),
        OutcomeUnknown, Unavailable.
        """
        return field_edits.edit(self, self.at_branch(), old, new)

    def add_field(self, name: str, type_name: str) -> FieldResult:
        """Adds a field, which is null in all records until a load brings it, by one small transaction.

        `type_name` is a type as in the setting `type.FIELD`, such as `bigint`.  Raises InvalidInput (an unknown
        type, a name that is taken, or that a setting or a derived pool names), OutcomeUnknown, Unavailable.
        """
        return field_edits.add(self, self.at_branch(), name, type_name)

    def drop_field(self, name: str) -> FieldResult:
        """Hides a field from the readers of all later versions; nothing is deleted.  Raises what `rename_field`
        raises."""
        return field_edits.edit(self, self.at_branch(), name, None)

    def feed(self, branch: str = MAIN) -> Feed:
        """Returns a feed of the branch's transactions.  Raises NotFound."""
        self._loaded(branch)
        return Feed(self.history, branch, self.sub_pool)

    def close(self) -> None:
        """Ends the history of a pool that is being dropped; does nothing if it has ended.

        A pool that was restored before is closed once more.  Otherwise a restore that is still running, and has
        read the previous closing, could open it (decision 78).  Raises Corrupt, Unavailable, OutcomeUnknown.
        """
        loaded = self.history.load()
        if loaded.state.closed is None or self.config.restored:
            with contextlib.suppress(NotFound):  # another process closed it first
                self.commit_actions((Close(),), branch=MAIN, on=loaded.version, message="drop")

    def reopen(self, closed: Closing) -> None:
        """Opens the history of a pool that is listed again; `closed` was read before it was listed.

        Does nothing if another process opened it.  Raises Conflict if the pool was dropped again meanwhile,
        Corrupt, Unavailable, OutcomeUnknown.
        """
        loaded = self.history.load()
        if loaded.state.closed is None:
            return
        try:
            reopen = Reopen(closed.version)
            self.commit_actions((reopen,), branch=MAIN, on=loaded.version, message="restore")
        except Conflict:
            if self.history.load().state.closed is not None:
                raise

    def log(self, *, branch: str | None = None) -> Iterator[tuple[int, Transaction]]:
        """Yields the transactions with their versions, newest first.  Raises NotFound for an unknown branch."""
        if branch is not None:
            self._loaded(branch)
        return self.history.read_transactions(branch=branch)

    def _loaded(self, branch: str) -> LoadedState[PoolState]:
        """Returns the newest state.  Raises NotFound if it has no such branch."""
        loaded = self.history.load_open()
        if branch not in loaded.state.branches:
            near = did_you_mean(branch, loaded.state.branches)
            raise NotFound(f"pool {self.name!r}: branch {branch!r} does not exist; {near}")
        return loaded
