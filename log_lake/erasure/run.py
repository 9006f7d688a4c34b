"""The steps of an erasure.  Each may be repeated, because the pool itself shows what is left to do.

    receipt   is written first, so that another process finds the erasure and resumes it
    hide      a tombstone on every branch that may hold matching records; from now on readers do not see these
    rewrite   each reference whose object holds a matching record, and no other, each in its own transaction
    vacuum    exactly the objects that hold matching records, without a grace time: those that this erasure or
              another writer removed, and orphans that are old enough
    look      at all branches once more; if a writer brought matching records back, repeat the steps, a few times
    forget    split points that may be erased keys, and the tombstones, which hold the condition; then a checkpoint,
              and the purge of the older entries

If a tag, a deleted branch, a lease or an uncommitted writer may still need an object, it is not deleted.  The
receipt names it as held, the tombstones stay, and the erasure stays pending: release the object, and run the
erasure again.  Once nothing is held, no writer can bring matching records back, because a writer cannot refer
to an object again after a vacuum took it.

The tombstone comes first for another reason too: in an upsert pool an older version must not become visible
when the newest one is gone.

A rewrite also applies the branch's own deletes, as a compaction does.  The new object is written for all keys,
not for the range of the old one, because the old bounds may be erased keys.  If another writer takes the
reference first, nothing is committed; the next round finds what that writer wrote.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import msgspec

from lake_core import naming
from lake_core.errors import ClocksApart, Conflict, NotFound, PlanAgain
from lake_core.history import PoolState, Reference
from lake_core.history.vacuuming import unlisted_objects
from lake_core.ids import first_id, home_of
from lake_core.journal.purge import purge, write_newest
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.phrases import counted
from lake_core.records import Discard, Join
from lake_core.store import ObjectInfo
from log_lake.erasure import receipt as receipts
from log_lake.erasure.begin import begin, receipt_target
from log_lake.erasure.copies import held_copies
from log_lake.erasure.hiding import HIDES, OwnTombstones
from log_lake.erasure.holders import (
    BROUGHT_BACK,
    CLOCK,
    CLONE,
    DELETED_BRANCH,
    JOURNAL,
    LOAD,
    TAG,
    Holders,
    file_words,
    in_journal_words,
    tagged_by_object,
)
from log_lake.erasure.in_journal import Inlined, inlined_objects, withdraw_expired
from log_lake.erasure.noting import Notes
from log_lake.erasure.receipt import DONE, PENDING, Held, Receipt
from log_lake.erasure.search import Search, chunks, foreign, known_id, left_indexes
from log_lake.erasure.target import Target
from log_lake.lake.branch import Branch
from log_lake.lake.pool import Pool
from log_lake.lake.transaction_branch import end_committed
from log_lake.objects.located import Located
from log_lake.presence.absence import planning_again
from log_lake.presence.roots import tagged_objects
from log_lake.reading.revision import Revision
from log_lake.reading.stored_sums import quoted_content
from log_lake.rewriting.exchange import commit
from log_lake.rewriting.rewriting import Rewriting
from log_lake.rewriting.work import begin_rewriting, write_whole
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import PURGE, WRITE, Scanned, scan_orphans
from log_lake.vacuum.plan import exact_plan
from log_lake.workers import Here, Workers

log = logging.getLogger(__name__)

ROUNDS = 16
"""How often the steps are repeated because writers bring matching records back, or replace objects that are to be
rewritten."""

REWRITES = 64
"""How many objects are rewritten before the first of them is committed; each has its own transaction.  A kill
before that loses the work on up to this many objects."""

ALONE_BYTES = 64 << 20
"""If the objects to rewrite have at most this many bytes together, this process rewrites them without a task,
because starting Spark takes longer."""


def erase(
    pool: Pool,
    *,
    key_range: KeyRange = EVERYTHING,
    where: str | None = None,
    grace: float | None = None,
    keeps_history: bool = False,
    workers: Workers | None = None,
) -> Receipt:
    """Erases the records of a key range that fulfil a condition from every object of the pool, on all branches.

    If an erasure of the same records is pending, it is resumed.  `grace`: for this many seconds an object that
    was never committed may belong to a load that still runs (None: `vacuum.grace`).  `keeps_history`: do not
    purge the journal, also not in later runs of the erasure.  `workers` read and write the objects (default: in
    this process).

    Raises InvalidInput (nothing is changed), NotFound, Conflict (writers keep bringing matching records back),
    Corrupt, OutcomeUnknown, Unavailable; then run it again.
    """
    receipt = begin(pool, key_range=key_range, where=where, keeps_history=keeps_history)
    return go_on(pool, receipt, grace=grace, keeps_history=keeps_history, workers=workers)


def go_on(
    pool: Pool,
    receipt: Receipt,
    *,
    grace: float | None = None,
    keeps_history: bool = False,
    workers: Workers | None = None,
) -> Receipt:
    """Resumes an erasure; returns its receipt.  Does nothing if it is done.  Raises what `erase` raises."""
    receipts.check_pool(receipt, pool)
    if receipt.status == DONE:
        return receipt
    if keeps_history:
        receipt = msgspec.structs.replace(receipt, keeps_history=True)
    run = _Run(
        replace(pool, sub_pool=receipt.sub_pool), receipt, workers or Here.of(pool.context), grace=grace
    )
    run.remove()
    return run.end()


class _Run:
    """One run of an erasure."""

    def __init__(self, pool: Pool, receipt: Receipt, workers: Workers, *, grace: float | None) -> None:
        self.pool, self.workers, self.notes = pool, workers, Notes(pool, receipt, workers)
        self.grace: float = pool.settings["vacuum.grace"] if grace is None else grace
        self.own = OwnTombstones(pool, receipt.id, receipt.records)
        self.reason, self.metadata = self.own.reason, self.own.metadata
        self.held: tuple[Held, ...] = ()
        self.waits_for = ""
        self.in_journal: list[Inlined] = []  # what the entries up to there have of such records
        self.looked_at = 0  # the version in which no branch held such a record
        self.search = Search(pool, Target(pool.config), workers)  # `remove` begins with the fields of now

    def remove(self) -> None:
        """Changes the pool until no branch holds a matching record, and deletes the objects that may be deleted.

        Raises Conflict if writers keep bringing matching records back.
        """
        for _ in range(ROUNDS):
            try:
                with planning_again(self.pool.history):
                    if self._round():
                        return
            except PlanAgain as error:  # another writer took an object that was to be read
                self._log(str(error))
        raise Conflict(
            f"{self.reason}: in {ROUNDS} rounds other writers brought such records back, or took the objects that "
            f"hold them; stop them, then: lake erase {self.pool.name} --resume {self.receipt.id}"
        )

    def _round(self) -> bool:
        """Does the steps once; returns whether nothing is left to be done.  Raises PlanAgain, ObjectMissing."""
        self._look_at_fields()
        end_committed(self.pool)
        self.own.hide(self.search)
        self._log("the records are hidden on every branch")
        if self._rewrite():
            return False  # look again: a writer may have been faster
        self._vacuum()
        return self._is_clean()

    def end(self) -> Receipt:
        """Writes the results; if no object is held, retires the tombstones, purges, and marks it as done."""
        self.held += self.notes.held_by_others()
        self.held += held_copies(self.pool, self.receipt, self.search.on_store)
        if self.held:
            return self._end_held()
        withdraw_expired(self.pool)
        inlined = self.in_journal
        self.notes.add(one.located for one in inlined)
        self._forget_points()
        self.held = self.own.forget(self._brought_back)
        if self.held:
            return self._end_held()
        self.notes.gather(self.target)
        self.notes.write(held=())
        purged = self.receipt.purged
        if self.receipt.erased and not self.receipt.keeps_history:
            self._log("purges the journal")
            context, journal = self.pool.context, self.pool.history.journal
            _, at = write_newest(journal, new_id=context.ids.new, now=context.now(), forgets=False)
            purged = purge(journal, until=at).fence
            inlined = self._inlined(until=at)
        loaded = self.pool.history.load_open()
        self.held = self.notes.held_by_others() + self._brought_back(loaded.state)  # since then
        self.held += tuple(Held(one.located.object, in_journal_words(one.place)) for one in inlined)
        if self.held:
            return self._end_held()
        which = f" of version {self.receipt.until} or older" if self.receipt.until else ""
        statement = (
            f"At version {loaded.version} no object in reach of any branch, tag or lease of the pool holds such a "
            f"record{which}; the {counted(len(self.receipt.erased), 'object')} that held some are deleted. "
            "Names of fields are no records: they stay in the pool's schemas"
        )
        return self.notes.write(
            status=DONE,
            version=loaded.version,
            purged=purged,
            ended=_microseconds(self.pool),
            statement=statement,
            content=quoted_content(self.pool.at()) if self.pool.branch(to_delete=True).has_sums else "",
        )

    def _brought_back(self, state: PoolState) -> tuple[Held, ...]:
        """Returns erased objects that a branch has again, with their bytes; others are found on the store."""
        erased = {one.object for one in self.receipt.erased}
        inlined = [there.snapshot for _, there in state.branches.items() if there.snapshot.inlined]
        back = {one.object for snapshot in inlined for one in snapshot.all() if one.data} & erased
        return tuple(Held(id, BROUGHT_BACK) for id in sorted(back))

    def _forget_points(self) -> None:
        """Removes the split points that may be keys of erased records, because they were taken from keys of
        objects."""
        keys, loaded = self.target.range_in(""), self.pool.history.load_open()
        points = tuple(point for point in loaded.state.points if keys.contains(point))
        if points and self.receipt.erased and not self.receipt.sub_pool:
            self._log(f"removes {counted(len(points), 'split point')}")
            self.pool.commit_actions((Join(points),), on=loaded.version, message=self.reason)

    def _inlined(self, *, until: int) -> list[Inlined]:
        """Returns the inlined objects with matching records that the journal still has."""
        return list(self.search.inlined(inlined_objects(self.pool, self.target, until=until)))

    def _end_held(self) -> Receipt:
        """Writes into the receipt which objects with matching records are held, and by whom."""
        by = ", ".join(dict.fromkeys(one.by for one in self.held))
        count = len({one.object for one in self.held if one.object})
        statement = (
            f"{counted(count, 'object')} with such records may not be deleted yet, because of {by}; release "
            "that, and run the erasure again"
        )
        until = self.receipt.until or self.looked_at
        return self.notes.write(status=PENDING, held=self.held, statement=statement, until=until)

    def _log(self, what: str) -> None:
        log.info("%s: %s: %s", self.pool.name, self.reason, what)

    @property
    def receipt(self) -> Receipt:
        """The receipt with what is known so far."""
        return self.notes.receipt

    @property
    def target(self) -> Target:
        """The records that the erasure removes."""
        return self.search.target

    def _look_at_fields(self) -> None:
        """Checks the condition against the newest fields, because a load may have brought values of another
        class."""
        state = self.pool.history.load_open().state
        target = replace(receipt_target(self.pool, state, self.receipt), until=self.receipt.until)
        if target != self.search.target:  # what was answered for other fields is no answer
            named = frozenset(one.object for one in self.receipt.erased)
            self.search = Search(self.pool, target, self.workers, named)

    def _rewrite(self) -> bool:
        """Rewrites each reference whose object holds a matching record; returns False if there is none."""
        state = self.pool.history.load_open().state
        by_branch = self.search.in_branches(state)
        for name, references in by_branch.items():
            self._log(f"rewrites {counted(len(references), 'object')} of branch {name}")
            # a branch that was deleted meanwhile is a tag by the next round
            with contextlib.suppress(NotFound):
                branch = self.pool.branch(name, to_delete=True)
                for chunk in chunks(references, REWRITES):
                    self.notes.add(map(Located.of, chunk))
                    self._rewrite_chunk(branch, chunk)
        return bool(by_branch)

    def _rewrite_chunk(self, branch: Branch, references: Sequence[Reference]) -> None:
        """Rewrite references of a branch, and commit each."""
        revision = branch.revision()
        still_there = [r for r in references if revision.snapshot.holds(r.object, r.low)]
        all_work = [self._without(branch, revision, r) for r in still_there]
        if not all_work:
            return
        id, first = self.pool.context.ids.new(), min(work.first for work in all_work)
        with branch.write_lease(id, read_version=revision.version, first=first, why=self.reason):
            small = sum(work.size for work in all_work) <= ALONE_BYTES
            alone = len(all_work) if small else 1
            pieces = self.workers.map(write_whole, all_work, alone=alone)
            for work, piece in zip(all_work, pieces, strict=True):
                commit(branch, work, [piece], does="erases")

    def _without(self, branch: Branch, revision: Revision, reference: Reference) -> Rewriting:
        """Returns the task that rewrites a reference of a branch without matching records."""
        sub_pool, target = reference.sub_pool, self.target
        work = begin_rewriting(
            branch,
            revision,
            (reference,),
            hiding=revision.of_sub_pool(sub_pool).tombstones,  # what filters hide stays
            format=naming.format_of(reference.object),
            message=f"{self.reason}: rewrite",
            leaves_markers=target.leaves_markers(sub_pool),
        )
        if reference.oldest is None or reference.lifts:
            target = target.of_all_versions()  # all its records are of one version; or a merge moved them
        keeps = partial(target.without, sub_pool=sub_pool)
        return replace(work, keeps=keeps, bounded=False, metadata=self.metadata)

    def _vacuum(self) -> None:
        """Deletes the objects with matching records, except those that something may need."""
        self._log("looks for removed objects that hold such records")
        names = self.search.on_store()
        if left := left_indexes(names):
            self.pool.store.delete_all(left)
        state = self.pool.history.load_open().state
        if uncommitted := self.search.uncommitted(state, names):
            try:
                self._scan(state, uncommitted)
            except ClocksApart as error:  # the records are hidden, so "nothing was changed" would be false
                self._log(str(error))
                self.waits_for = CLOCK
        self._discard()
        loaded = self.pool.history.load_open()
        now = self.pool.leases().now
        removed, begun = self.search.removed(loaded.state, now=now), self.search.begun(loaded.state)
        uncommitted = self.search.uncommitted(loaded.state, names)
        tagged = self._tagged(loaded.state, names, now=now)
        self.notes.add([*map(Located, [*removed, *begun, *map(known_id, uncommitted)]), *tagged])
        self.notes.write()  # checksums must be known before an object is deleted
        if removed or len(loaded.state.removed.vacuums):  # one that was killed is ended first
            self._log(f"deletes {counted(len(removed), 'object')}")
            plan = exact_plan(
                loaded, removed, id=self.receipt.id, pool_id=self.pool.config.id, now=self.pool.context.now()
            )
            vacuum(self.pool, plan=plan, grace=0.0, workers=self.workers)

    def _scan(self, state: PoolState, uncommitted: Sequence[ObjectInfo]) -> None:
        """Scans for orphans.  If the scan must wait for a write, makes one and scans again.

        The scan leaves alone objects that are newer than the newest write, because the entry that committed
        them may be lost.  Without a new write, the erasure of such objects would wait forever (decision 84).
        Usually a scan begins after the names that an earlier scan saw.  It looks at every name if one of
        `uncommitted` lies before these, or is ahead of the clock (decision 155).
        """
        now, passed = first_id(self.pool.context.now()), state.removed.scanned
        every = any(not passed <= known_id(info) < now for info in uncommitted)

        def scan() -> Scanned:
            return scan_orphans(self.pool, grace=self.grace, every_name=every, workers=self.workers)

        scanned = scan()
        if scanned.waits_for == WRITE and self.own.write_once_more(self.target):
            scanned = scan()
        self.waits_for = scanned.waits_for

    def _is_clean(self) -> bool:
        """Returns whether no branch holds a matching record, and every object with one is held; notes these in
        `held`.

        Another writer may have moved a matching record since the vacuum, so all places are looked at in one
        state.
        """
        names = self.search.on_store()  # before the state, which knows what was committed meanwhile
        loaded, leases = self.pool.history.load_open(), self.pool.leases()
        state, self.looked_at = loaded.state, loaded.version
        if self.search.in_branches(state):
            return False
        removed, begun = self.search.removed(state, now=leases.now), self.search.begun(state)
        why = {PURGE: JOURNAL, CLOCK: CLOCK}.get(self.waits_for, LOAD)
        uncommitted = {known_id(info): why for info in self.search.uncommitted(state, names)}
        in_tags = list(self.search.in_tags(state, names, now=leases.now))
        tagged = tagged_by_object(state, in_tags)
        holders = Holders(state, leases, tagged, uncommitted)
        of_tags = [Located.of(reference) for _, reference in in_tags]
        self.notes.add([*map(Located, [*removed, *begun, *uncommitted]), *of_tags])
        # what is not an object of this pool's folder is gone when nothing of the pool refers to it
        kept = {one.object for one in of_tags if one.data or home_of(one.object)}
        kept |= {id for id in (*removed, *begun) if home_of(id)}
        self.notes.gather(self.target)
        all_held: list[Held] = []
        for one in self.receipt.erased:
            if one.object in kept or self._exists(one.object):
                if not (by_all := holders.of(one.object)):  # it was removed, or another vacuum began, since
                    return False
                all_held += [Held(one.object, by) for by in by_all]
        all_held += [Held("", by) for by in holders.writers_before(self._clean_since())]
        all_held += [Held(name, file_words(name)) for name in foreign(names)]
        self.in_journal = self._inlined(until=self.looked_at)
        ids = dict.fromkeys(one.located.object for one in self.in_journal)
        readers = holders.readers_before(self._clean_since() or self.looked_at)
        all_held += [Held(id, by) for id in ids for by in readers]
        self.held = tuple(all_held)
        return True

    def _discard(self) -> None:
        """Puts objects that were kept only by a tag, which is deleted now, onto the list of removed objects, so
        that they can be vacuumed."""
        loaded = self.pool.history.load_open()
        state = loaded.state
        ids = {one.object for one in self.receipt.erased if self._exists(one.object)}
        lost = unlisted_objects(state, ids) - state.removed.vacuumed()
        lost -= tagged_objects(self.pool.history, state, lost, now=None)
        below = sorted(id for id in lost if id < state.removed.floor or self._was_committed(id))
        if below:
            sizes = {one.object: one.size for one in self.receipt.erased}
            discard = Discard(tuple(below), tuple(sizes[id] for id in below))
            self.pool.commit_actions((discard,), on=loaded.version, message=f"{self.reason}: released")

    def _was_committed(self, id: str) -> bool:
        """Returns whether a branch, a tag or a clone held the object in an earlier run.  Then no writer can commit
        it anew."""
        kinds = (TAG, DELETED_BRANCH, CLONE)
        return any(one.object == id and one.by.startswith(kinds) for one in self.receipt.held)

    def _tagged(self, state: PoolState, names: list[ObjectInfo], *, now: float) -> list[Located]:
        return [Located.of(reference) for _, reference in self.search.in_tags(state, names, now=now)]

    def _clean_since(self) -> int:
        """Returns the version after which no branch shows matching records.  A writer that begins later can hold
        none."""
        changes = [one.version for one in self.receipt.transactions if one.branch and one.removed]
        hides = [one.version for one in self.receipt.transactions if one.what.endswith(HIDES)]
        return max([*changes, *hides], default=0)

    def _exists(self, id: str) -> bool:
        return receipts.exists(self.pool.store, self.pool.config.id, id)


def _microseconds(pool: Pool) -> int:
    return int(pool.context.now() * 1_000_000)
