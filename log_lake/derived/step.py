"""One step of keeping a derived pool: from the version of the source that it shows, to a newer one.

1. The transactions between both versions say what is touched (`touches`).
2. The touched records, of both versions, say which groups are touched.
3. The query runs on the newer version, over the records of these groups.
4. One transaction removes the records of these groups from the derived pool, brings the new ones, and records
   the newer version.  It is refused if another step was faster.

If the older version cannot be read any more, or if fields got another type, the query runs over all records.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lake_core.errors import Corrupt, InvalidInput, NotFound, ObjectVacuumed
from lake_core.naming import MAIN
from lake_core.records import AddObject
from log_lake.derived.engine import Computing, computing
from log_lake.derived.settings import DerivePolicy, own_policy
from log_lake.derived.standing import source_of, version_of_source
from log_lake.derived.touches import HiddenRecords, LoadedObjects, Touch, touches_of
from log_lake.derived.writing import StepResult, StepWrite
from log_lake.lake import Lake
from log_lake.lake.branches import planned
from log_lake.lake.feed import read_object
from log_lake.lake.pool import Pool
from log_lake.lake.reverts import changes_of
from log_lake.lake.view import View, among
from log_lake.objects.located import Located
from log_lake.reading.plan import plan_scan

log = logging.getLogger(__name__)

IDLE_ENTRIES = 100
"""Each look reads the entries of the source again that changed nothing.  Once there are this many, a step moves
past them."""


def keep(lake: Lake, pool: Pool, *, dry_run: bool = False) -> StepResult:
    """Does one step.  Raises InvalidInput (not derived, a query that cannot be kept), NotFound, and what reads and
    loads raise."""
    policy = own_policy(pool.config)
    try:
        source = source_of(lake, pool.config, policy)
    except (NotFound, InvalidInput) as error:
        raise type(error)(f"pool {pool.name!r} is not kept: {error}") from error
    return planned(lambda: _Step(pool, source, policy).run(dry_run=dry_run))


def keep_all(lake: Lake, pool: Pool) -> Iterator[StepResult]:
    """Yields the results of steps until the pool shows the version that its source had at the first step.

    Raises what `keep` raises; steps that were committed before stay.
    """
    aim = 0
    while True:  # each step goes on, or finds that another process did
        done = keep(lake, pool)
        aim = aim or done.newest
        if done.version is not None:
            yield done
        if done.upto >= aim:
            return


@dataclass
class _Step:
    """One step of a pool and its source."""

    pool: Pool
    source: Pool
    policy: DerivePolicy

    def run(self, *, dry_run: bool) -> StepResult:
        branch = self.pool.branch(MAIN)
        state = branch.revision().state
        since = version_of_source(state, self.policy)
        newest = self.source.history.load_open().version
        write = StepWrite(self.pool, self.source, branch, state, self.policy, since, newest, newest, dry_run)
        if since == newest:
            return write.nothing()
        upto = min(newest, since + self.policy.entries) if 0 < since < newest else newest
        with self.source.read_lease(upto, why=f"derive {self.pool.name}"):
            try:
                return self._between(replace(write, upto=upto))
            except (ObjectVacuumed, NotFound):
                if upto == newest:
                    raise
                return self._between(write)  # a version between the two cannot be read any more

    def _between(self, write: StepWrite) -> StepResult:
        since, upto = write.since, write.upto
        lost = f"version {since:,} of {self.source.name} cannot be read any more"
        try:
            touches, why = self._touches(since, upto)
        except (NotFound, Corrupt) as error:
            log.info("%s: %s: %s", self.pool.name, lost, error)
            touches, why = [], lost
        if not touches and not why:
            return write.passed() if upto < write.newest or upto - since >= IDLE_ENTRIES else write.nothing()
        view = self.source.at_version(upto)
        if not _has_records(view, self.policy.query):
            return write.emptied(why or f"{self.source.name} has no record")
        with computing(view, self.policy.query) as query:
            if not why:
                try:
                    why = self._touch(query, touches, self.source.at_version(since))
                except (NotFound, ObjectVacuumed, Corrupt) as error:
                    log.info("%s: %s: %s", self.pool.name, lost, error)
                    why = lost
            return write.whole(query, why) if why else write.groups(query)

    def _touches(self, since: int, upto: int) -> tuple[list[Touch], str]:
        """Returns what was touched between the versions, or why all must be computed."""
        if not since:
            return [], "it is computed for the first time"
        if since > upto:
            return [], f"{self.source.name} has no version {since:,} any more"
        return touches_of(changes_of(self.source.history, MAIN, since=since + 1, until=upto)), ""

    def _touch(self, query: Computing, touches: Sequence[Touch], older: View) -> str:
        """Finds the touched groups, for `query`.  Returns why all must be computed, or ""."""
        if name := _retyped(query, older):
            return f"field {name!r} of {self.source.name} has another type"
        newer, by_keys = query.view, not older.rule.keeps_all
        if by_keys and not query.has_keys:
            return f"the key of {self.source.name} lies inside of records"
        for touch in touches:
            match touch:
                case LoadedObjects(_, objects) if by_keys:
                    for one in objects:
                        query.note_keys(self._keys_of(one, query))
                case LoadedObjects(version, objects):
                    view = self.source.at_version(version)
                    plan = view.plan(columns=query.fields_of(view))
                    chosen = among(plan.references, {(one.object, one.low) for one in objects})
                    query.touch(view.run(replace(plan, references=tuple(chosen))))
                case HiddenRecords(key_range, condition):
                    if older.references:
                        plan = plan_scan(older, key_range=key_range, columns=query.fields_of(older))
                        query.touch(older.run(replace(plan, where=condition)))
                case _:
                    for view in (older, newer):
                        if view.references:
                            plan = view.plan(columns=query.fields_of(view), key_range=touch.key_range)
                            query.touch(view.run(plan))
        if by_keys:
            query.touch_keys([view for view in (older, newer) if view.references])
        return ""

    def _keys_of(self, one: AddObject, query: Computing) -> Iterator[pa.Table]:
        """Yields the keys of a loaded object, also those of its delete markers."""
        view = query.view
        yield from read_object(
            self.source.store,
            pool_id=self.source.config.id,
            located=Located.of(one),
            key=view.key,
            columns=list(view.key.names),
        )


def _has_records(view: View, query: str) -> bool:
    """Whether a version of the source has records.

    If the query fits the fields of the version, this is not looked up, and the answer is True: a version
    without records may lack the fields that its records had.
    """
    if not view.references:
        return False
    try:
        with computing(view, query):
            return True
    except InvalidInput:
        if any(table.num_rows for table in view.scan(columns=[view.key.names[0]])):
            raise
        return False


def _retyped(query: Computing, older: View) -> str:
    """The first field that the query uses and that has another type now; "" if there is none."""
    before = older.schema
    for name in query.fields:
        if name in before.names:
            old, new = before.field(name).type, query.schema.field(name).type
            if not (old.equals(new) or pa.types.is_null(old)):
                return name
    return ""
