"""A refusal is final: no combiner commits a draft after its writer reported that it is refused.

The store does not let the writers here withdraw their requests.  Then something happens after which a draft fits
again: its branch is restored, its source file is given back, what left it no room is gone.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Conflict, InvalidInput, LakeError, NotFound
from lake_core.history import Committed, Draft, History
from lake_core.history.create import restored
from lake_core.journal import write_state
from lake_core.keys.encoding import encode_value
from lake_core.naming import REJECTED
from lake_core.records import (
    Action,
    AddTombstone,
    Column,
    Consume,
    CreateBranch,
    DeleteBranch,
    Release,
    RemoveReference,
    RemoveTombstone,
    Source,
)
from lake_core.schemas import Rule
from lake_core.schemas.limits import MAX_COLUMNS
from lake_core.schemas.schema import schema_id
from tests.support import histories
from tests.support.histories import transaction_ids
from tests.support.records import SCHEMA, add, an_id, draft
from tests.support.stores import ALWAYS, ScriptedStore, unavailable

JOURNAL = naming.pool_journal("P")
FILE = Source("landing/a", 7, "etag")
SUMS = Rule("aggregate", (("n", "sum"),))


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


def crowded(store: ScriptedStore, *, rule: Rule = SUMS) -> History:
    """A writer that posts its draft, and looks for the requests of others."""
    ours = histories.history(store, rule=rule)
    ours._contended = 1
    return ours


def commit(
    store: ScriptedStore, n: int, *actions: Action, branch: str = "main", **fields: object
) -> Committed:
    """What another writer commits on the newest version."""
    other = histories.history(store.behind, rule=SUMS)
    return other.commit(draft(n, *actions, branch=branch, **{"read_version": other.load().version, **fields}))


def refused(store: ScriptedStore, one: Draft, error: type[LakeError]) -> None:
    """The writer posts its draft and is refused, and its request stays."""
    store.on("delete", naming.request(JOURNAL, one.id), instead=unavailable, times=ALWAYS)
    with pytest.raises(error):
        crowded(store).commit(one)


def combine(store: ScriptedStore) -> None:
    """The next entry takes in all requests that fit, and one of them surely does."""
    crowded(store.behind).commit(draft(900, add(900)))


def is_committed(store: ScriptedStore, n: int) -> bool:
    return an_id(n) in transaction_ids(store.behind)


def delete_branch(store: ScriptedStore, name: str) -> partial[Committed]:
    """Deletes the branch; returns what restores it."""
    state = histories.history(store.behind).load().state
    fork = state.branches[name].fork
    assert fork is not None
    tip = state.branches[name].tip
    commit(store, 800 + tip, DeleteBranch(f"{name}@{tip}", tip), branch=name)
    back = CreateBranch("main", state.branches["main"].tip, fork.at, restored(fork))
    return partial(commit, store, 850 + tip, back, branch=name)


def test_a_branch_is_restored(store: ScriptedStore) -> None:
    begun = commit(store, 1, CreateBranch("main"), branch="dev").version
    restore = delete_branch(store, "dev")
    refused(store, draft(2, add(2), branch="dev", read_version=begun), NotFound)
    restore()
    combine(store)
    assert not is_committed(store, 2)


def test_a_namesake_is_deleted_and_the_branch_restored(store: ScriptedStore) -> None:
    begun = commit(store, 1, CreateBranch("main"), branch="dev").version
    restore = delete_branch(store, "dev")
    commit(store, 3, CreateBranch("main"), branch="dev")
    refused(store, draft(2, AddTombstone("t"), branch="dev", read_version=begun), NotFound)
    delete_branch(store, "dev")
    restore()
    combine(store)
    assert not is_committed(store, 2)


def test_work_on_a_restored_branch_that_began_before_is_refused_for_good(store: ScriptedStore) -> None:
    """Also after a checkpoint: a writer may read no entry of the past."""
    begun = commit(store, 1, CreateBranch("main"), branch="dev").version
    back = delete_branch(store, "dev")().version
    journal = histories.history(store.behind).journal
    write_state(journal, journal.load(), id=an_id(700), now=histories.NOW)
    for read_version in (begun, back - 1):
        with pytest.raises(Conflict, match=rf"'dev' was deleted and restored \(version {back}\) since"):
            histories.history(store).commit(draft(2, add(2), branch="dev", read_version=read_version))
    assert commit(store, 3, add(3), branch="dev").version == back + 1


def test_a_restored_branch_has_forgotten_which_replaces_overtook_a_load(store: ScriptedStore) -> None:
    """A retired replace is known by its version alone, which the deleted branch took with it."""
    begun = commit(store, 1, CreateBranch("main"), branch="dev").version
    commit(store, 3, AddTombstone("r", replaces=True), branch="dev")
    commit(store, 4, RemoveTombstone("r"), branch="dev")
    delete_branch(store, "dev")()
    with pytest.raises(Conflict):
        histories.history(store).commit(draft(2, add(2), branch="dev", read_version=begun))


def test_a_source_file_is_given_back(store: ScriptedStore) -> None:
    begun = commit(store, 1, Consume((FILE,)), add(1)).version
    refused(store, draft(2, Consume((FILE,)), add(2)), Conflict)
    commit(store, 3, Release((FILE,)))
    combine(store)
    assert not is_committed(store, 2)
    assert begun == 1
    post_and_combine = draft(4, Consume((FILE,)), add(4), read_version=3)
    assert crowded(store.behind).commit(post_and_combine).version == 4, "a load that began later is committed"


def test_the_parent_ingests_a_newer_version_of_a_source_file(store: ScriptedStore) -> None:
    """A child knows what its parent had ingested when it began, but a parent keeps one version of each file."""
    commit(store, 1, Consume((FILE,)), add(1))
    begun = commit(store, 3, CreateBranch("main"), branch="dev").version
    refused(store, draft(2, Consume((FILE,)), add(2), branch="dev", read_version=begun), Conflict)
    commit(store, 4, Consume((Source(FILE.uri, 8, "newer"),)), add(4))
    combine(store)
    assert not is_committed(store, 2)


def wide(n: int) -> pa.Schema:
    """A schema of more than half of the fields that a sub-pool may have."""
    return pa.schema([(f"{n}.{i}", pa.int64()) for i in range(MAX_COLUMNS // 2 + 1)])


def rejects(n: int) -> Draft:
    schema = wide(n)
    action = add(n, 0, 1, schema=schema_id(schema), sub_pool=REJECTED)
    return draft(n, add(n + 100), action, schemas=(SCHEMA, schema))


def test_fields_of_a_sub_pool_are_gone(store: ScriptedStore) -> None:
    first = rejects(1)
    commit(store, 1, *first.actions, schemas=first.schemas)
    refused(store, rejects(2), InvalidInput)
    commit(store, 3, RemoveReference(an_id(1), add(1).low))
    combine(store)
    assert not is_committed(store, 2)


def decimals(n: int, scale: int, largest: int) -> Draft:
    schema = pa.schema([("k", pa.int64()), ("n", pa.decimal128(25 + scale, scale))])
    value = encode_value(Decimal(largest))
    column = Column("n", 0, value, value)
    return draft(n, add(n, schema=schema_id(schema), columns=(column,)), schemas=(schema,))


@pytest.mark.parametrize("more", [False, True], ids=["", "others bring the digits"])
def test_values_that_left_no_room_for_digits_are_gone(store: ScriptedStore, more: bool) -> None:
    first = decimals(1, 0, 10**24)
    commit(store, 1, *first.actions, schemas=first.schemas)
    refused(store, decimals(2, 4, 1), InvalidInput)
    commit(store, 3, RemoveReference(an_id(1), add(1).low))
    if more:
        other = decimals(4, 4, 1)
        commit(store, 4, *other.actions, schemas=other.schemas)
    combine(store)
    assert not is_committed(store, 2)


def test_what_only_takes_something_away_is_no_request(store: ScriptedStore) -> None:
    """It is refused if another took it before, and may fit again after a revert."""
    commit(store, 1, add(1), AddTombstone("t"))
    taken = RemoveReference(an_id(1), add(1).low)
    retired = RemoveTombstone("t", forced=True)
    for number, action in enumerate((taken, retired), start=2):
        assert crowded(store).commit(draft(number, action, read_version=1)).version == number
        assert store.asked("put", naming.request(JOURNAL, an_id(number))) == 0
