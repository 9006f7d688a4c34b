"""What a pool should hold after loads, deletes, merges and reverts: plain lists, evaluated anew for each question.

It imports nothing of the project.  A branch is a list of changes in the order of their commits.  A revert
switches a change off and leaves it in its place; the revert of the revert switches it on again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]
Content = Counter[tuple[int, int, str]]
"""For each record (key, id and value), how often it is there."""


@dataclass
class Load:
    """A load of records into a branch. Copies of the change in other branches share the list of records."""

    records: list[Record]


@dataclass(frozen=True)
class Delete:
    """A delete of all earlier records with keys from `low` to before `high`, of one group or of all."""

    low: int
    high: int
    group: int | None = None

    def covers(self, record: Record) -> bool:
        return self.low <= record["k"] < self.high and self.group in (None, record["g"])


Step = Load | Delete


@dataclass
class Change:
    """One commit: its steps, or the change that it reverts; `merges` are the merges that came after it on its
    branch."""

    op: str
    steps: list[Step] = field(default_factory=list)
    target: Change | None = None
    version: int = 0
    counts: bool = True
    merges: list[Change] = field(default_factory=list)

    @property
    def merged(self) -> bool:
        """Whether the parent has it. It has not if the merge was reverted; the merge may then be repeated."""
        return any(merge.counts for merge in self.merges)

    def flip(self) -> None:
        """Switches this change off, or on again, because a commit reverts it, or reverts its revert."""
        self.counts = not self.counts
        if self.target is not None:
            self.target.flip()


@dataclass
class Line:
    """A branch: the changes with which it began, and its own."""

    parent: str
    base: list[Step]
    changes: list[Change] = field(default_factory=list)

    def steps(self) -> list[Step]:
        """Returns all steps that count, oldest first."""
        own = [step for change in self.changes if change.counts for step in change.steps]
        return [*self.base, *own]

    def unmerged(self) -> list[Change]:
        """Returns what a merge would bring next."""
        return [c for c in self.changes if c.counts and c.steps and not c.merged]


class Model:
    """What one pool should hold. `kind` is append or upsert."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.lines = {"main": Line("", [])}
        self.deleted: dict[str, tuple[str, Line]] = {}
        """By the tag that a deleted branch leaves: the branch's name, and the branch."""
        self.tags: dict[str, Content] = {}
        self.versions: dict[int, Content] = {}
        self.erased: set[int] = set()

    def apply(self, branch: str, change: Change, version: int) -> None:
        """Adds a change that was committed."""
        change.version = version
        if change.target is not None:
            change.target.flip()
        self.lines[branch].changes.append(change)

    def merge(self, op: str, child: str) -> tuple[str, Change]:
        """Returns the branch that a merge of the child would change, and the change."""
        line = self.lines[child]
        return line.parent, Change(op, [step for c in line.unmerged() for step in c.steps])

    def branch(self, name: str, parent: str) -> None:
        self.lines[name] = Line(parent, self.lines[parent].steps())

    def erase(self, ids: set[int]) -> None:
        """Removes the records with these ids from all branches and all versions."""
        self.erased |= ids

    def content(self, branch: str = "main", *, also: Change | None = None) -> Content:
        """Returns what a reader of the branch sees, or would see after the change `also`."""
        if also is None:
            return self.fold(self.lines[branch].steps())
        if also.target is None:
            return self.fold([*self.lines[branch].steps(), *also.steps])
        also.target.flip()
        try:
            return self.fold(self.lines[branch].steps())
        finally:
            also.target.flip()

    def fold(self, steps: list[Step]) -> Content:
        """Returns the records after these steps."""
        records: list[Record] = []
        for step in steps:
            if isinstance(step, Load):
                records += step.records
            else:
                records = [record for record in records if not step.covers(record)]
        records = [record for record in records if record["id"] not in self.erased]
        if self.kind == "upsert":
            newest = {record["k"]: record for record in records}
            records = [record for record in newest.values() if not record.get("_deleted")]
        return content_of(records)

    def without_erased(self, content: Content) -> Content:
        """Returns what a reader may see, after an erasure, of a content from before it."""
        return Counter({key: n for key, n in content.items() if key[1] not in self.erased})


def content_of(records: list[Record]) -> Content:
    """Counts the records of a scan."""
    return Counter((record["k"], record["id"], record["v"]) for record in records)
