"""Tags: what becomes of a draft that sets or deletes them on the newest state; pure.

A tag names the state of a branch at a version, and does not move: delete it to set it elsewhere.  Its transaction
belongs to no branch, so loads and streams never meet it.  A live tag keeps the checkpoint of its version from the
purge (`PoolState.kept`), and the objects of its branch from whatever deletes objects.
"""

from __future__ import annotations

from lake_core.errors import AlreadyExists, NotFound
from lake_core.history.draft import Draft
from lake_core.history.state import PoolState
from lake_core.phrases import did_you_mean
from lake_core.records import Action, DeleteTag, SetTag


def tagging(state: PoolState, draft: Draft) -> tuple[Action, ...]:
    """The actions of a draft of tags.  Raises AlreadyExists, NotFound."""
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
