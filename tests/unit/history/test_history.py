"""What becomes of finished work: landing on a tip that moved, tokens, sources, and looking back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Conflict, Corrupt, InvalidInput, NotFound, OutcomeUnknown
from lake_core.history import Committed, Draft, History, PoolState
from lake_core.history.rebase import rebase
from lake_core.history.state import Remembered
from lake_core.keys.encoding import encode_value
from lake_core.records import Consume, RemoveReference, SetSchema, Source, Transaction
from lake_core.schemas.schema import schema_id
from lake_core.store import Store
from lake_core.values.types import WIDE_MARK
from log_lake.lake.named import resolve_revision
from log_lake.stores.memory import MemoryStore
from tests.support.histories import KEY, NOW, history, transaction_ids
from tests.support.records import add, an_id, draft
from tests.support.stores import ALWAYS, ScriptedStore, lost, unavailable

FIRST = naming.entry("P/journal", 1)
FILE = Source("landing/a", 7, "etag")


def committed(store: Store, n: int) -> Transaction:
    """The transaction of entry `n`."""
    return next(t for at, t in history(store).read_transactions() if at == n)


def repeated(n: int, transaction: int) -> Committed:
    """The answer to a token that `transaction` used first, in entry `n`; it brought one object of `add`."""
    first = Remembered(n, an_id(transaction), int(NOW * 1e6), 1, 100, 1, 0, 0)
    return Committed(n, an_id(transaction), repeated=first)


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


# ---------------------------------------------------------------- landing


def test_a_load_that_began_on_an_older_state_is_rebased_as_it_is() -> None:
    store = MemoryStore()
    history(store).commit(draft(1, add(1)))
    assert history(store).commit(draft(2, add(2), read_version=0)) == Committed(2, an_id(2))
    landed = committed(store, 2)
    assert (landed.parent, landed.read_version, landed.actions) == (1, 0, (add(2),))


def test_who_loses_a_race_lands_behind_the_winner(store: ScriptedStore) -> None:
    store.on("create", FIRST, before=lambda: history(store.behind).commit(draft(2, add(2))))
    assert history(store).commit(draft(1, add(1))) == Committed(2, an_id(1))
    assert transaction_ids(store) == [an_id(2), an_id(1)]
    actions = [type(a) for a in committed(store, 2).actions]
    assert SetSchema not in actions, "the winner has announced the schema"


def test_the_time_of_a_transaction_is_the_writers_clock_in_microseconds(store: ScriptedStore) -> None:
    history(store, clock=1_700_000_000.25).commit(draft(1, add(1)))
    assert committed(store, 1).time == 1_700_000_000_250_000


def test_work_for_a_branch_that_does_not_exist_is_not_found(store: ScriptedStore) -> None:
    with pytest.raises(NotFound, match="there are: main"):
        history(store).commit(draft(1, add(1), branch="dev"))


def test_work_that_does_not_fit_is_refused_and_the_history_stays_usable(store: ScriptedStore) -> None:
    for misfit in (
        draft(1, add(1), RemoveReference(an_id(1), encode_value(1))),
        draft(1, add(1, schema="never announced")),
        draft(1, Consume((FILE, FILE))),
    ):
        with pytest.raises((Corrupt, Conflict)):
            history(store).commit(misfit)
    assert history(store).commit(draft(2, add(2))).version == 1


# ---------------------------------------------------------------- tokens


def test_a_token_that_was_used_gives_the_first_outcome_and_writes_nothing(store: ScriptedStore) -> None:
    history(store).commit(draft(1, add(1), token="t"))
    for other in (history(store), history(store)):
        assert other.commit(draft(2, add(2), token="t")) == repeated(1, 1)
    assert transaction_ids(store) == [an_id(1)]
    assert history(store).load().state.tokens.get("t") == repeated(1, 1).repeated
    assert history(store).load().state.tokens.get("u") is None


def test_of_two_with_one_token_at_once_one_lands_and_both_hear_of_it(store: ScriptedStore) -> None:
    store.on("create", FIRST, before=lambda: history(store.behind).commit(draft(2, add(2), token="t")))
    assert history(store).commit(draft(1, add(1), token="t")) == repeated(1, 2)
    assert transaction_ids(store) == [an_id(2)]


def test_a_repeat_after_an_unknown_outcome_changes_nothing(store: ScriptedStore) -> None:
    ours = history(store)
    ours.load()
    store.on("create", FIRST, answer=lost, times=ALWAYS)
    store.on("get", FIRST, instead=unavailable, times=4)
    with pytest.raises(OutcomeUnknown):
        ours.commit(draft(1, add(1), token="t"))
    assert history(store).commit(draft(2, add(2), token="t")) == repeated(1, 1)
    assert transaction_ids(store) == [an_id(1)]


def test_a_token_used_meanwhile_is_seen_though_the_work_would_conflict(store: ScriptedStore) -> None:
    def batch(n: int) -> Draft:
        return draft(n, Consume((FILE,)), add(n), token="batch")

    stale = history(store)
    stale.load()
    history(store).commit(batch(1))
    assert stale.commit(batch(2)) == repeated(1, 1)


# ---------------------------------------------------------------- sources


def test_a_file_that_somebody_took_meanwhile_is_a_conflict(store: ScriptedStore) -> None:
    store.on("create", FIRST, before=lambda: history(store.behind).commit(draft(2, Consume((FILE,)))))
    with pytest.raises(Conflict, match=FILE.uri):
        history(store).commit(draft(1, Consume((Source("landing/b", 1), FILE)), add(1)))
    assert transaction_ids(store) == [an_id(2)]


def test_a_file_that_changed_since_is_another_file(store: ScriptedStore) -> None:
    history(store).commit(draft(1, Consume((FILE,))))
    assert history(store).commit(draft(2, Consume((Source(FILE.uri, 7, "changed"),)))).version == 2


def test_16_threads_commit_16_transactions(store: ScriptedStore) -> None:
    shared = history(store.behind)
    with ThreadPoolExecutor(16) as pool:
        landed = list(pool.map(lambda n: shared.commit(draft(n, add(n))), range(1, 17)))
    assert sorted(transaction_ids(store)) == [an_id(n) for n in range(1, 17)]
    found = {t.id: n for n, t in history(store).read_transactions()}
    assert found == {one.transaction_id: one.version for one in landed}
    assert shared.load().state.branches["main"].snapshot.records == 16


# ---------------------------------------------------------------- keys that must be ordered together


def keyed(n: int, kind: pa.DataType, *, wide: bool = False) -> Draft:
    """A load whose key field is of this type."""
    schema = pa.schema([pa.field("k", kind, metadata=WIDE_MARK if wide else None)])
    return draft(n, add(n, schema=schema_id(schema)), schemas=(schema,))


def test_objects_whose_keys_are_of_different_classes_do_not_land(store: ScriptedStore) -> None:
    history(store).commit(keyed(1, pa.int64()))
    with pytest.raises(
        InvalidInput, match="key field 'k': a string here, a number in the pool's other records"
    ):
        history(store).commit(keyed(2, pa.string()))
    assert transaction_ids(store) == [an_id(1)]


@pytest.mark.parametrize(
    "kinds",
    [
        [pa.int64(), pa.float64(), pa.int8()],
        [pa.uint8(), pa.uint32(), pa.uint64()],
        [pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC")],
        [pa.null(), pa.string(), pa.null()],
        [pa.decimal128(9, 2), pa.decimal128(20, 5)],
    ],
    ids=str,
)
def test_objects_whose_keys_widen_to_one_type_land(store: ScriptedStore, kinds: list[pa.DataType]) -> None:
    for n, kind in enumerate(kinds, start=1):
        assert history(store).commit(keyed(n, kind)).version == n


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (keyed(1, pa.int64(), wide=True), keyed(2, pa.float64())),
        (keyed(1, pa.float64()), keyed(2, pa.int64(), wide=True)),
        (keyed(1, pa.uint64(), wide=True), keyed(2, pa.int64())),
        (keyed(1, pa.decimal128(38, 0)), keyed(2, pa.decimal128(38, 30))),
    ],
    ids=["wide integers, doubles", "doubles, wide integers", "wide unsigned, signed", "decimals"],
)
def test_objects_whose_keys_have_no_common_exact_type_do_not_land(
    store: ScriptedStore, first: Draft, second: Draft
) -> None:
    history(store).commit(first)
    with pytest.raises(InvalidInput, match=r"key field 'k': .*no type holds both exactly"):
        history(store).commit(second)


def test_only_the_key_must_be_of_one_class(store: ScriptedStore) -> None:
    for n, kind in enumerate([pa.int64(), pa.string()], start=1):
        schema = pa.schema([("k", pa.int64()), ("v", kind)])
        history(store).commit(draft(n, add(n, schema=schema_id(schema)), schemas=(schema,)))
    nokey = pa.schema([("other", pa.string())])
    history(store).commit(draft(3, add(3, sub_pool="$nokey", schema=schema_id(nokey)), schemas=(nokey,)))
    assert len(transaction_ids(store)) == 3


def test_a_sub_pool_may_have_a_field_of_the_name_of_the_key(store: ScriptedStore) -> None:
    rejected = pa.schema([("k", pa.string())])
    in_sub_pool = draft(1, add(1, sub_pool="$rejected", schema=schema_id(rejected)), schemas=(rejected,))
    history(store).commit(in_sub_pool)
    history(store).commit(keyed(2, pa.int64()))
    with pytest.raises(InvalidInput, match="a string here, a number"):
        history(store).commit(keyed(3, pa.string()))
    assert len(transaction_ids(store)) == 2


def test_landing_is_a_pure_function_of_state_draft_and_time() -> None:
    state = PoolState()
    one, two = (rebase(state, draft(1, add(1)), key=KEY, time=5) for _ in range(2))
    assert one == two
    assert isinstance(one, Transaction)
    assert not isinstance(one, Remembered)


# ---------------------------------------------------------------- looking back


@pytest.fixture
def three(store: ScriptedStore) -> History:
    """Transactions 1, 2 and 3, at the seconds 10, 20 and 30."""
    for n in (1, 2, 3):
        history(store, clock=10.0 * n).commit(draft(n, add(n)))
    return history(store)


@pytest.mark.parametrize(
    ("revision", "n"),
    [
        ("main", 3),
        ("1", 1),
        ("3", 3),
        (an_id(2), 2),
        ("main@1970-01-01T00:00:20Z", 2),
        ("main@1970-01-01T00:00:29.999999", 2),
        ("main@1970-01-01T02:00:30+02:00", 3),
        ("main@2100-01-01", 3),
    ],
)
def test_a_revision_names_a_state(three: History, revision: str, n: int) -> None:
    head, branch = resolve_revision(three, revision)
    assert (head.version, branch) == (n, "main")
    assert len(head.state.branches["main"].snapshot) == n


@pytest.mark.parametrize(
    "revision", ["0", "4", "99999999999999999999", an_id(9), "dev", "main@1970-01-01", "\u00b2", ""]
)
def test_a_revision_that_is_not_there_is_not_found(three: History, revision: str) -> None:
    with pytest.raises(NotFound):
        resolve_revision(three, revision)


def test_a_time_that_cannot_be_read_is_invalid(three: History) -> None:
    with pytest.raises(InvalidInput, match="ISO 8601"):
        resolve_revision(three, "main@yesterday")


def test_the_history_is_told_newest_first_and_by_branch(three: History) -> None:
    assert [n for n, _ in three.read_transactions()] == [3, 2, 1]
    assert [n for n, _ in three.read_transactions(branch="main")] == [3, 2, 1]
    assert list(three.read_transactions(branch="dev")) == []
