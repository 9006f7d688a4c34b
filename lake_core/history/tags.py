"""Tags: decides how a draft that sets or deletes them fits the newest state, and folds them; pure.

A tag names the state of a branch at a version, and does not move: delete it to set it elsewhere.  Its
transaction belongs to no branch, so loads and streams are not affected by it.  A live tag protects the
checkpoint of its version from the purge (`PoolState.kept`), and the objects of its branch from deletion.
"""

from __future__ import annotations

from rpds import HashTrieMap

from lake_core.errors import AlreadyExists, Corrupt, NotFound
from lake_core.history.branch_state import Fork, Roots
from lake_core.history.draft import Draft
from lake_core.history.state import PoolState, Tag
from lake_core.phrases import did_you_mean
from lake_core.records import Action, DeleteBranch, DeleteTag, SetTag, Transaction


def tagging(state: PoolState, draft: Draft) -> tuple[Action, ...]:
    """Returns the actions of a draft that sets or deletes tags, on the newest state.  Raises AlreadyExists,
    NotFound."""
    for action in draft.actions:
        if isinstance(action, SetTag):
            if action.tag in state.tags:
                there = state.tags[action.tag]
                raise AlreadyExists(
                    f"tag {action.tag!r} names version {there.version} of {there.branch!r} already; delete it "
                    "first (lake tag POOL -d NAME)"
                )
            if action.tag in state.branches:
                raise AlreadyExists(f"a branch {action.tag!r} exists; a tag needs another name")
        if isinstance(action, DeleteTag) and action.tag not in state.tags:
            raise NotFound(f"tag {action.tag!r} does not exist; {did_you_mean(action.tag, state.tags)}")
    return draft.actions


def tagged(state: PoolState, version: int, transaction: Transaction) -> HashTrieMap[str, Tag]:
    """Returns the tags after a transaction that sets or deletes tags."""
    tags = state.tags
    for action in transaction.actions:
        if isinstance(action, SetTag):
            if action.tag in tags:
                raise Corrupt(f"tag {action.tag!r}: set, but it is there already")
            tags = tags.insert(
                action.tag,
                Tag(
                    action.version,
                    action.branch,
                    transaction.author,
                    transaction.time,
                    version,
                    action.reason,
                    action.expires,
                ),
            )
        elif isinstance(action, DeleteTag):
            if action.tag not in tags:
                raise Corrupt(f"tag {action.tag!r}: deleted, but it does not exist")
            tags = tags.remove(action.tag)
    return tags


def roots_of(tags: HashTrieMap[str, Tag]) -> Roots:
    """Returns the relations of deleted branches to their parents, by the tags that keep them."""
    return [(tag.parent, tag.boundary) for tag in tags.values() if tag.deleted]


def root_of(action: DeleteBranch, version: int, transaction: Transaction, fork: Fork | None) -> Tag:
    """Returns the tag that keeps a branch which the transaction deletes."""
    return Tag(
        action.version,
        transaction.branch,
        transaction.author,
        transaction.time,
        version,
        transaction.message,
        deleted=True,
        parent="" if fork is None else fork.parent,
        boundary=0 if fork is None else fork.parent_boundary,
    )


def parents_of_deleted_tags(
    before: HashTrieMap[str, Tag], after: HashTrieMap[str, Tag], transaction: Transaction
) -> set[str]:
    """Returns the parents of deleted branches that no tag keeps any more because of this transaction."""
    names = [action.tag for action in transaction.actions if isinstance(action, DeleteTag)]
    gone = (before[name] for name in names if name in before and name not in after)
    return {tag.parent for tag in gone if tag.deleted}
