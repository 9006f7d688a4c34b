"""Tags of a pool: sets, deletes and lists them, with the bytes that each one keeps.  Called by `Pool`.

The objects of a deleted branch are not on the list of removed objects while the tag `NAME@N` keeps them.  If
that tag is deleted, those that no branch refers to are put onto the list.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput, NotFound
from lake_core.history import Draft, PoolState
from lake_core.history.branch_state import BranchState
from lake_core.history.create import branch_of
from lake_core.history.state import Tag
from lake_core.history.vacuuming import held_objects, unlisted_objects
from lake_core.journal import LoadedState
from lake_core.records import DeleteTag, Discard, SetTag
from lake_core.records.decoding import LAST_TIME
from log_lake.lake.branches import keeping, planned
from log_lake.lake.journaled import Journaled
from log_lake.lake.named import resolve_revision

log = logging.getLogger(__name__)

TagAt = Callable[[], tuple[LoadedState[PoolState], str]]

CHUNK = 10_000
"""How many objects one transaction puts onto the list of removed objects; their ids take about 300 KB."""


@dataclass(frozen=True)
class TagResult:
    """A tag that was set or deleted, with the version and the branch to which it points."""

    version: int
    transaction_id: str
    tag: str
    tagged: int
    branch: str


def set_tag(pool: Journaled, name: str, *, at: str, reason: str, expires: float | None) -> TagResult:
    """Gives a revision a name; `expires` is in seconds since 1970."""
    return set_tag_on(pool, name, lambda: resolve_revision(pool.history, at), reason=reason, expires=expires)


def set_tag_on(
    pool: Journaled,
    name: str,
    resolve: TagAt,
    *,
    reason: str,
    expires: float | None,
    new_id: Callable[[], str] | None = None,
) -> TagResult:
    """Gives a name to the state and branch that `resolve` returns; calls it again if the pool has changed
    meanwhile.

    `new_id` gives the id of each transaction that is tried.
    """
    naming.check_chosen_name(naming.check_branch_name(name, what="tag"), what="tag")
    if expires is not None and expires <= pool.context.now():
        raise InvalidInput(f"tag {name!r}: its time of expiry has passed already")
    if expires is not None and not expires * 1e6 <= LAST_TIME:
        raise InvalidInput(f"tag {name!r}: its time of expiry is after the year 9999; leave it out")
    id_of = new_id or pool.context.ids.new
    return planned(lambda: _set(pool, name, *resolve(), id=id_of(), reason=reason, expires=expires))


def keep_for(pool: Journaled, name: str, resolve: TagAt, *, reason: str) -> TagResult:
    """Sets one of the tags that the lake itself uses, for a clone, on the state and branch that `resolve`
    returns."""
    ids = pool.context.ids
    return planned(lambda: _set(pool, name, *resolve(), id=ids.new(), reason=reason, expires=None))


def _set(
    pool: Journaled,
    name: str,
    loaded: LoadedState[PoolState],
    branch: str,
    *,
    id: str,
    reason: str,
    expires: float | None,
) -> TagResult:
    branch_of(loaded.state, branch)
    if not loaded.version:
        raise InvalidInput(f"pool {pool.name!r} has no transaction yet, so there is nothing to tag")
    until = None if expires is None else int(expires * 1_000_000)
    action = SetTag(name, loaded.version, branch, reason, until)
    newest = pool.history.load_open().version
    draft = Draft(
        id,
        "",
        newest,
        pool.context.author,
        (action,),
        message=f"tag {branch} at version {loaded.version} as {name}",
    )
    done = keeping(pool, loaded, draft)
    return TagResult(done.version, done.transaction_id, name, loaded.version, branch)


def is_set_by(pool: Journaled, name: str, ids: Collection[str]) -> bool:
    """Whether the pool has the tag, and a transaction with one of these ids set it."""
    tag = pool.history.load_open().state.tags.get(name)
    entry = None if tag is None else pool.history.journal.read(tag.set_at)
    return entry is not None and any(
        transaction.id in ids and isinstance(action, SetTag) and action.tag == name
        for transaction in entry.transactions
        for action in transaction.actions
    )


def delete_tag(pool: Journaled, name: str, *, chunk: int = CHUNK) -> TagResult:
    """Deletes a tag; if it keeps a deleted branch, the objects that only it keeps go onto the list of removed
    objects."""
    if naming.clone_of(name):
        raise InvalidInput(
            f"tag {name!r} keeps what a clone of pool {pool.name!r} needs: drop the clone, or compact it whole and "
            "vacuum it; then the agent retention deletes the tag"
        )
    return let_go(pool, name, chunk=chunk)


def let_go(pool: Journaled, name: str, *, chunk: int = CHUNK) -> TagResult:
    """Deletes a tag, even one that the lake itself has set."""
    return planned(lambda: _delete(pool, name, chunk))


def _delete(pool: Journaled, name: str, chunk: int) -> TagResult:
    loaded = pool.history.load_open()
    tag = loaded.state.tags.get(name)
    unkept = sorted(_unkept(pool, loaded.state, tag).items()) if tag is not None and tag.deleted else []
    chunks = [unkept[start : start + chunk] for start in range(0, len(unkept), chunk)]
    for early in chunks[:-1]:  # while the tag is there, they are kept; after a kill the next try skips them
        pool.commit_actions((_discard(early),), on=loaded.version, message=f"delete tag {name}")
    last = (_discard(chunks[-1]),) if chunks else ()
    done = pool.commit_actions((DeleteTag(name), *last), on=loaded.version, message=f"delete tag {name}")
    tagged, branch = (tag.version, tag.branch) if tag is not None else (0, "")
    return TagResult(done.version, done.transaction_id, name, tagged, branch)


def _discard(chunk: list[tuple[str, int]]) -> Discard:
    return Discard(tuple(id for id, _ in chunk), tuple(size for _, size in chunk))


def _unkept(pool: Journaled, state: PoolState, tag: Tag) -> dict[str, int]:
    """Returns the objects, with their sizes, to put onto the list of removed objects once the tag is gone.

    No branch refers to them. They are not on the list, or they came onto it before the branch was deleted, when
    the branch still needed them.  Other tags may keep some of them; the planner of a vacuum subtracts these.
    """
    try:
        objects = _objects(branch_of(pool.history.load_version(tag.version).state, tag.branch))
    except (NotFound, Corrupt) as error:  # a damaged tag must be deletable; what it kept is unknown
        log.warning(
            "%s: objects of the deleted branch %s stay on the store: %s", pool.name, tag.branch, error
        )
        return {}
    unknown = unlisted_objects(state, objects) - state.removed.vacuumed()
    listed = state.removed.get_many(objects).items()
    early = {id for id, removal in listed if removal.version < tag.set_at}
    return {id: objects[id] for id in unknown | (early - held_objects(state, early))}


def tags(pool: Journaled) -> dict[str, Tag]:
    """Returns the tags of a pool by name, also those that have expired."""
    return dict(sorted(pool.history.load_open().state.tags.items()))


def costs(pool: Journaled) -> dict[str, int]:
    """Returns for each live tag, by name, the bytes of the objects to which no branch and no other live tag
    refers."""
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
    """Returns the sizes of the objects on the store that the branch refers to, by id."""
    return {reference.object: reference.size for reference in branch.snapshot.all() if not reference.data}
