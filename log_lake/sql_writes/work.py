"""What all statements that change a pool share: the pool, the branch, the arguments beside the SQL, and the
result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lake_core.conditions import may_hold
from lake_core.errors import InvalidInput
from lake_core.naming import MAIN
from lake_core.records.conditions import And, Or
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.delete_spec import DeleteSpec
from log_lake.lake.pool import Pool
from log_lake.lake.results import LoadResult
from log_lake.lake.view import View
from log_lake.reading.plan import plan_scan
from log_lake.sql_writes.text import ChangeTarget
from log_lake.system_tables.engine import SqlLimits
from log_lake.system_tables.stopping import QueryStop


@dataclass(frozen=True)
class MergedRecords:
    """How many records a MERGE inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        """How many records the MERGE changed in all."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement; `version` and `transaction_id` are None in a dry run, or if it found no record.

    `verb`: inserted, deleted, updated, merged or created.  `records`: how many records it changed, or would
    change in a dry run; None if that is not known, an upper bound unless `is_exact`.  `repeated`: the token
    stands for an earlier commit, and nothing was written now.  `new_fields`: the fields that an INSERT or a
    MERGE adds to a pool with records.  `merged`: the parts of what a MERGE did; None for other statements, and
    for a commit that is repeated.
    """

    pool: str
    branch: str
    verb: str
    version: int | None
    transaction_id: str | None
    records: int | None
    is_exact: bool = True
    repeated: bool = False
    new_fields: tuple[str, ...] = ()
    merged: MergedRecords | None = None


@dataclass
class StatementWork:
    """One statement that is being run on a pool."""

    lake: Lake
    target: ChangeTarget
    token: str
    message: str
    files: Sequence[str]
    limits: SqlLimits
    stop: QueryStop
    deletes: bool
    transaction: str = ""

    def __post_init__(self) -> None:
        self.pool: Pool = self.lake.pool(self.target.pool)
        self.branch: Branch = self.pool.branch(self.target.branch, to_delete=self.deletes)
        self.new_fields: tuple[str, ...] = ()

    def would(self, verb: str, records: int) -> StatementResult:
        return StatementResult(
            self.target.pool, self.target.branch, verb, None, None, records, new_fields=self.new_fields
        )

    def loaded(self, done: LoadResult, verb: str) -> StatementResult:
        return self.written(verb, done, done.records + done.nokey + done.rejected)

    def written(self, verb: str, done: Any, records: int | None, *, is_exact: bool = True) -> StatementResult:
        return StatementResult(
            self.target.pool,
            self.target.branch,
            verb,
            done.version,
            done.transaction_id,
            records,
            is_exact,
            done.repeated,
            self.new_fields,
        )

    def check_changed(self, sets: Iterable[str], *, verb: str) -> None:
        """Raises InvalidInput if an UPDATE or a MERGE cannot change a pool of this kind, or set these fields."""
        rule, key = self.branch.rule, self.branch.key
        if self.branch.name != MAIN:
            raise InvalidInput(
                f"{verb}: works on the branch {MAIN} only, because a merge could not tell what it read; on "
                f"{self.branch.name!r} use lake replace"
            )
        if self.pool.settings["format"] in ("zng", "zst"):
            raise InvalidInput(
                f"{verb}: the records of pool {self.target.pool!r} have types of their own (format="
                f"{self.pool.settings['format']}), which SQL does not keep; use lake replace"
            )
        paths = [name for name in key.names if "." in name]
        for name in sets:
            if any(name in (path, path.partition(".")[0]) for path in paths):
                raise InvalidInput(
                    f"{verb}: SET {name}: the key is a path into records, which SQL does not set"
                )
        if rule.kind == "aggregate":
            raise InvalidInput(
                f"{verb}: pool {self.target.pool!r} is an aggregate pool, which combines many records; "
                "INSERT records that correct the values"
            )
        keys = [name for name in sets if name in key.names]
        if keys and not rule.keeps_all:
            raise InvalidInput(
                f"{verb}: {keys[0]!r} is a key of an upsert pool: a record with another key is another record; "
                "INSERT it, then DELETE the old one"
            )


def matching(view: View, spec: DeleteSpec) -> Iterable[pa.Table]:
    """Returns the records that readers see and that a tombstone of the condition would hide."""
    return view.run(plan_scan(view, key_range=spec.key_range, where=spec.condition))


def filtered(view: View, spec: DeleteSpec) -> Iterator[pa.Table]:
    """Yields the records of an append pool that filters hide from readers, and that the tombstone would hide too.

    A statement that replaces records writes these again as they are: they come back if the setting changes.
    """
    hiding = tuple(one.condition for one in view.filters if one.condition is not None)
    if not hiding:
        return
    plan = plan_scan(view, key_range=spec.key_range, where=spec.condition, filtered=False)
    hidden = Or(hiding) if len(hiding) > 1 else hiding[0]
    where = hidden if plan.where is None else And((plan.where, hidden))
    references = tuple(
        one
        for one in plan.references
        if may_hold(where, plan.schemas[one.schema], one.columns, records=one.records)
    )
    # the conditions of filters compare fields with values of several classes, which no check allows
    yield from view.run(replace(plan, where=where, references=references))
