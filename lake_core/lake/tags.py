"""Tags of a pool: set, delete, list, and what each one keeps.  Called by `Pool`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake_core import naming
from lake_core.errors import InvalidInput
from lake_core.history import Draft
from lake_core.history.branch_state import BranchState
from lake_core.history.create import branch_of
from lake_core.history.state import Tag
from lake_core.lake.branches import keeping, planned
from lake_core.records import DeleteTag, SetTag

if TYPE_CHECKING:
    from lake_core.lake.pool import Pool


@dataclass(frozen=True)
class TagResult:
    """A tag that was set or deleted, and the version and branch that it names."""

    version: int
    transaction_id: str
    tag: str
    tagged: int
    branch: str


def set_tag(pool: Pool, name: str, *, at: str, reason: str, expires: float | None) -> TagResult:
    """Name a revision; `expires` is in seconds since 1970."""
    naming.check_branch_name(name, what="tag")
    if expires is not None and expires <= pool.context.now():
        raise InvalidInput(f"tag {name!r}: its time of expiry has passed already")
    return planned(lambda: _set(pool, name, at=at, reason=reason, expires=expires))


def _set(pool: Pool, name: str, *, at: str, reason: str, expires: float | None) -> TagResult:
    loaded, branch = pool.history.resolve_revision(at)
    branch_of(loaded.state, branch)
    if not loaded.version:
        raise InvalidInput(f"pool {pool.name!r} has no transaction yet, so there is nothing to tag")
    until = None if expires is None else int(expires * 1_000_000)
    action = SetTag(name, loaded.version, branch, reason, until)
    newest = pool.history.load_open().version
    draft = Draft(
        pool.context.ids.new(), "", newest, pool.context.author, (action,), message=f"tag {at} as {name}"
    )
    done = keeping(pool, loaded, draft)
    return TagResult(done.version, done.transaction_id, name, loaded.version, branch)


def delete_tag(pool: Pool, name: str) -> TagResult:
    """Delete a tag, also one that keeps a deleted branch."""
    loaded = pool.history.load_open()
    draft = Draft(
        pool.context.ids.new(),
        "",
        loaded.version,
        pool.context.author,
        (DeleteTag(name),),
        message=f"delete tag {name}",
    )
    done = pool.history.commit(draft)  # raises NotFound if there is none
    tag = loaded.state.tags.get(name)
    tagged, branch = (tag.version, tag.branch) if tag is not None else (0, "")
    return TagResult(done.version, done.transaction_id, name, tagged, branch)


def tags(pool: Pool) -> dict[str, Tag]:
    """The tags by name, expired ones too."""
    return dict(sorted(pool.history.load_open().state.tags.items()))


def costs(pool: Pool) -> dict[str, int]:
    """The bytes that each live tag alone keeps: objects that no branch and no other live tag refers to."""
    state, now = pool.history.load_open().state, int(pool.context.now() * 1_000_000)
    referenced = {id for branch in state.branches.values() for id in _objects(branch)}
    kept = {
        name: {
            id: size
            for id, size in _objects(
                branch_of(pool.history.load_version(tag.version).state, tag.branch)
            ).items()
            if id not in referenced
        }
        for name, tag in sorted(state.tags.items())
        if tag.is_live(now)
    }
    times = Counter(id for objects in kept.values() for id in objects)
    return {
        name: sum(size for id, size in objects.items() if times[id] == 1) for name, objects in kept.items()
    }


def _objects(branch: BranchState) -> dict[str, int]:
    """The sizes of the objects that the branch refers to, by id."""
    return {reference.object: reference.size for reference in branch.snapshot.all()}
