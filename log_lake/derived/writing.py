"""Writes a step: one transaction that replaces the records of some groups, and moves to a version of the source.

A tombstone hides the groups, by a condition that names their values.  If there are too many for a condition, it
hides all groups whose first value lies between the least and the greatest, and these are computed anew.  If
that is impossible, all groups are.
"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import Conflict, InvalidInput, PlanAgain
from lake_core.history import PoolState
from lake_core.keys.encoding import encode_value, from_array
from lake_core.keys.ranges import EVERYTHING
from lake_core.phrases import counted
from lake_core.records.conditions import And, Compare, Condition, IsNull, Or
from log_lake.derived.engine import Computing, is_named
from log_lake.derived.settings import DerivePolicy
from log_lake.derived.standing import moved_to
from log_lake.lake.branch import Branch
from log_lake.lake.delete_spec import DeleteSpec, check_delete
from log_lake.lake.loads import begin_load, builder_of, commit_load, lease_of
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.lake.write import WriteArguments
from log_lake.loading.misfits import summed
from log_lake.where.of_keys import MAX_KEYS, of_values

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StepResult:
    """What a step did in a derived pool.

    `version` is the pool's new version; None if the step wrote nothing, as in a dry run.  The step took the
    pool from version `since` of the source to `upto`; the newest version of the source was `newest`.  `groups`:
    how many groups were computed; None if all were, for the reason `why`.  `records`: how many records the
    transaction brought.
    """

    pool: str
    source: str
    version: int | None
    since: int
    upto: int
    newest: int
    groups: int | None = 0
    records: int = 0
    why: str = ""

    @property
    def line(self) -> str:
        """The result as one line for people."""
        if self.since == self.upto or (self.version is None and self.groups == 0):
            return f"{self.pool}: up to date with version {self.upto:,} of {self.source}"
        what = "all groups" if self.groups is None else counted(self.groups, "group")
        why = f" ({self.why})" if self.why else ""
        span = f"{self.source}@{self.since:,} to {self.upto:,}"
        if self.version is None:
            return f"{self.pool}: would compute {what} anew, {span}{why}"
        records = counted(self.records, "record")
        return f"{self.pool}: version {self.version:,} has {what} anew, {records}, {span}{why}"


@dataclass(frozen=True)
class StepWrite:
    """What a step needs to write; `state` is the state of the derived pool on which the step began."""

    pool: Pool
    source: Pool
    branch: Branch
    state: PoolState
    policy: DerivePolicy
    since: int
    upto: int
    newest: int
    dry_run: bool = False

    def nothing(self) -> StepResult:
        """The result of a step that finds nothing to do."""
        return StepResult(self.pool.name, self.source.name, None, self.since, self.newest, self.newest)

    def passed(self) -> StepResult:
        """Moves to the newer version, which has the same records."""
        return self._result(0) if self.dry_run else self._commit(None, None, 0)

    def emptied(self, why: str) -> StepResult:
        """Removes all records, because the source has none."""
        return self._result(None, why=why) if self.dry_run else self._commit(None, self._all(), None, why)

    def whole(self, query: Computing, why: str) -> StepResult:
        """Replaces all records."""
        if self.dry_run:
            return self._result(None, why=why)
        return self._commit(query.answer(), self._all(), None, why)

    def groups(self, query: Computing) -> StepResult:
        """Replaces the records of the touched groups."""
        touched = query.touched()
        if self.dry_run or not touched.num_rows:
            return self._result(touched.num_rows) if self.dry_run else self.passed()
        for groups, between in ((touched, False), (None, True)):
            condition = _values(groups) if groups is not None else _between(query, touched)
            if condition is None:
                continue
            try:
                spec = check_delete(
                    self.branch.revision(), key_range=EVERYTHING, where=condition, narrow=True
                )
            except InvalidInput as error:  # the groups have values of another class than before
                log.info("%s: %s", self.pool.name, error)
                continue
            answer = query.answer_of_touched(between=between)
            return self._commit(answer, spec, touched.num_rows)
        return self.whole(query, f"{counted(touched.num_rows, 'group')} are too many to name")

    def _all(self) -> DeleteSpec | None:
        return DeleteSpec(EVERYTHING, None) if self.branch.revision().references else None

    def _result(self, groups: int | None, why: str = "") -> StepResult:
        names = (self.pool.name, self.source.name)
        return StepResult(*names, None, self.since, self.upto, self.newest, groups, why=why)

    def _commit(
        self, answer: pa.RecordBatchReader | None, spec: DeleteSpec | None, groups: int | None, why: str = ""
    ) -> StepResult:
        message = f"derive {self.source.name}@{self.upto}"
        write = WriteArguments(message=message, bulk=groups is None, derives=True)
        pending = begin_load(self.branch, write)
        assert isinstance(pending, PendingLoad)  # only a token has a first result
        with (
            builder_of(self.branch, pending, alone=True) as builder,
            lease_of(self.branch, pending, why="derive"),
        ):
            if answer is not None:
                with closing(answer):
                    for batch in answer:
                        builder.add(self.branch.block(pa.Table.from_batches([batch])))
            written = builder.finish()
            if lost := sum(one.action.records for one in written if one.action.sub_pool):
                raise InvalidInput(
                    f"pool {self.pool.name!r}: {counted(lost, 'record')} of the query would have no key: "
                    f"{self.branch.key.names[0]!r} is NULL. Use coalesce(...) in the query, or begin the key with "
                    "another column (--key)"
                )
            records = sum(one.action.records for one in written)
            id = pending.origin.transaction_id
            try:
                done = commit_load(
                    self.branch,
                    pending,
                    objects=[one.action for one in written],
                    schemas=[one.schema for one in written],
                    sources=list(moved_to(self.state, self.policy, self.upto, id=id, records=records)),
                    replaced=spec,
                    misfits=summed(one.misfits for one in written),
                )
            except Conflict as error:
                raise PlanAgain(f"pool {self.pool.name!r}: another step was faster: {error}") from error
        result = self._result(groups, why)
        return StepResult(**{**vars(result), "version": done.version, "records": records})


def _values(groups: pa.Table) -> Condition | None:
    """The condition that names the groups; None if they are too many, or if one has no value to compare."""
    if groups.num_rows > MAX_KEYS or not all(map(is_named, groups.schema)):
        return None
    if any(_has_nan(column) for column in groups.columns):
        return None
    try:
        return of_values(groups, groups.schema.names)
    except InvalidInput as error:  # of several fields, and too many
        log.debug("groups by their values: %s", error)
        return None


def _between(query: Computing, touched: pa.Table) -> Condition | None:
    """The condition that the first value of a group is between the least and the greatest; None if it has none."""
    name, column = touched.schema.names[0], touched.column(0)
    if not is_named(touched.schema.field(0)) or _has_nan(column):
        return None
    query.touch_between()
    bounds = [encode_value(from_array(one)[0]) for one in query.touched_between() if one[0].is_valid]
    parts: list[Condition] = [IsNull((name,))] if column.null_count else []
    if bounds:
        low, high = bounds
        parts.append(And((Compare((name,), ">=", low), Compare((name,), "<=", high))))
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _has_nan(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py())
