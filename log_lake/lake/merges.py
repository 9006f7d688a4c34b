"""Merges a branch's writes into its parent.  Called by `Branch`."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.history import Draft
from lake_core.history.branching import split_writes
from lake_core.history.merge import mergeable
from lake_core.phrases import counted
from lake_core.records import Merge
from log_lake.lake.branches import planned
from log_lake.lake.line import Line


@dataclass(frozen=True)
class MergeResult:
    """What a merge of a branch did; `version` and `transaction_id` are None if the branch had nothing new.

    `writes`: how many loads, deletes and replaces of `branch` it brought, up to that branch's version `upto`.
    """

    version: int | None
    transaction_id: str | None
    branch: str
    into: str
    upto: int
    writes: int = 0


def merge(target: Line, name: str, *, message: str) -> MergeResult:
    """Merges the branch `name` into `target`, as `Branch.merge` says."""
    target.check_writable()
    target.check_not_derived()
    return planned(lambda: _merge(target, name, message=message))


def _merge(target: Line, name: str, *, message: str) -> MergeResult:
    loaded = target.history.load_open()
    child, fork = mergeable(loaded.state, name, into=target.name)
    new, _ = split_writes(fork, child.tip)
    if not new:
        return MergeResult(None, None, name, target.name, fork.merged)
    draft = Draft(
        target.context.ids.new(),
        target.name,
        loaded.version,
        target.context.author,
        (Merge(name, child.tip),),
        message=message or f"merge branch {name}",
    )
    done = target.commit_draft(draft, does=f"merges {counted(len(new), 'write')} of branch {name}")
    return MergeResult(done.version, done.transaction_id, name, target.name, child.tip, len(new))
