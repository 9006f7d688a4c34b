"""The state of a pool: what each action does to it, and that nothing that does not fit is skipped."""

from __future__ import annotations

import msgspec
import pytest

from lake_core.errors import Corrupt
from lake_core.history.fold import fold_entry
from lake_core.history.snapshot.snapshot import Snapshot
from lake_core.history.state import PoolState, Remembered, Tag
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.records import Consume, Entry, RemoveReference, SetSchema, Source, Transaction
from lake_core.records.branching import SetTag
from lake_core.records.decoding import LAST_TIME
from lake_core.records.transactions import sequence
from tests.support.records import KNOWN, SCHEMA, SCHEMA_ID, add, an_id, entry, transaction

FILE = Source("landing/a", 7, "etag")


def folded(*entries: Entry) -> PoolState:
    state = PoolState()
    for n, one in enumerate(entries, start=1):
        state = fold_entry(state, n, one)
    return state


def held(state: PoolState, *, sub_pool: str = "") -> list[str]:
    return [r.object for r in state.branches["main"].snapshot.overlapping(sub_pool=sub_pool)]


BEFORE = entry(transaction(KNOWN, add(1), Consume((FILE,)), token="used"))


def test_a_new_pool_has_an_empty_main_branch() -> None:
    branch = PoolState().branches["main"]
    assert (branch.tip, len(branch.snapshot)) == (0, 0)


def test_a_load_is_in_the_snapshot_with_its_totals() -> None:
    state = folded(entry(transaction(KNOWN, add(1, records=3, size=50), add(2, 5, 15, records=4, size=60))))
    snapshot = state.branches["main"].snapshot
    assert held(state) == [an_id(1), an_id(2)]
    assert (len(snapshot), snapshot.records, snapshot.size) == (2, 7, 110)
    assert state.schema(SCHEMA_ID) == SCHEMA


def test_records_count_as_written_at_the_entry_and_the_place_in_it() -> None:
    state = folded(
        BEFORE,
        entry(transaction(add(2), parent=1), transaction(add(3, ordinal=4), parent=2, id=an_id(901))),
    )
    found = state.branches["main"].snapshot.overlapping()
    assert [(r.object, r.seq, r.ordinal) for r in found] == [
        (an_id(1), sequence(1), 0),
        (an_id(2), sequence(2, 0), 0),
        (an_id(3), sequence(2, 1), 4),
    ]
    assert state.branches["main"].tip == 2


def test_references_of_equal_low_bound_are_in_order_of_arrival() -> None:
    state = folded(BEFORE, entry(transaction(add(5, ordinal=1), add(4, ordinal=0), parent=1)))
    assert held(state) == [an_id(1), an_id(4), an_id(5)]


def test_a_removed_reference_is_gone_and_may_come_back() -> None:
    gone = RemoveReference(an_id(1), encode_value(0))
    state = folded(BEFORE, entry(transaction(gone, parent=1)))
    assert held(state) == []
    assert state.branches["main"].snapshot.records == 0
    assert held(fold_entry(state, 3, entry(transaction(add(1), parent=2)))) == [an_id(1)]


def test_an_object_of_a_sub_pool_is_found_there_alone() -> None:
    state = folded(entry(transaction(KNOWN, add(1), add(2, sub_pool="$nokey"))))
    assert (held(state), held(state, sub_pool="$nokey")) == ([an_id(1)], [an_id(2)])
    assert state.branches["main"].snapshot.sub_pools() == ["$nokey"]


def test_a_token_is_remembered_with_its_transaction() -> None:
    assert dict(folded(BEFORE).tokens.items()) == {"used": Remembered(1, an_id(900), 1, 1, 100, 1, 0, 0)}


def test_a_token_that_somebody_had_forgotten_stands_for_its_newest_use() -> None:
    again = entry(transaction(add(2, records=5), parent=1, token="used", id=an_id(901)))
    state = fold_entry(folded(BEFORE), 2, again)
    assert state.tokens.get("used") == Remembered(2, an_id(901), 1, 1, 100, 5, 0, 0)


def test_a_source_is_remembered_in_the_form_last_taken() -> None:
    changed = Source(FILE.uri, 8, "other")
    state = folded(BEFORE, entry(transaction(Consume((changed,)), parent=1)))
    assert state.ingested("main", FILE.uri) == changed


def test_a_state_is_not_changed_by_what_is_folded_onto_it() -> None:
    before = folded(BEFORE)
    fold_entry(before, 2, entry(transaction(RemoveReference(an_id(1), encode_value(0)), add(2), parent=1)))
    assert held(before) == [an_id(1)]


@pytest.mark.parametrize(
    ("misfit", "message"),
    [
        (transaction(add(2), parent=1, branch="other"), "branch 'other' does not exist"),
        (transaction(add(2), parent=0), "is at 1, not at 0"),
        (transaction(add(2), parent=2), "is at 1, not at 2"),
        (transaction(add(1), parent=1), "added, but the branch has it already"),
        (transaction(add(2), add(2), parent=1), "added, but the branch has it already"),
        (transaction(add(2, schema="unknown"), parent=1), "schema unknown was not announced"),
        (
            transaction(RemoveReference(an_id(9), encode_value(0)), parent=1),
            "removed, but the branch does not have it",
        ),
        (
            transaction(RemoveReference(an_id(1), encode_value(1)), parent=1),
            "removed, but the branch does not have it",
        ),
        (
            transaction(*[RemoveReference(an_id(1), encode_value(0))] * 2, parent=1),
            "removed, but the branch does not have it",
        ),
        (transaction(KNOWN, parent=1), "announced twice"),
        (transaction(Consume((FILE,)), parent=1), "ingested twice"),
        (transaction(Consume((Source("b", 1), Source("b", 1))), parent=1), "ingested twice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_action_that_does_not_fit_is_corrupt_and_says_where(misfit: Transaction, message: str) -> None:
    with pytest.raises(Corrupt, match=f"entry 2, transaction {an_id(900)}: .*{message}"):
        fold_entry(folded(BEFORE), 2, entry(misfit))


def test_one_misfit_makes_the_whole_entry_corrupt() -> None:
    with pytest.raises(Corrupt):
        fold_entry(folded(BEFORE), 2, entry(transaction(add(2), parent=1), transaction(add(1), parent=2)))


def test_a_schema_that_was_never_announced_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="nowhere"):
        PoolState().schema("nowhere")


def test_a_schema_is_known_once_announced() -> None:
    assert list(folded(entry(transaction(SetSchema("s", b"x")))).schemas) == ["s"]


def test_a_range_finds_the_references_that_may_hold_keys_of_it() -> None:
    state = folded(entry(transaction(KNOWN, add(1, 0, 10), add(2, 10, 20), add(3, 5, 15))))
    snapshot: Snapshot = state.branches["main"].snapshot

    def found(low: int, high: int) -> list[str]:
        span = KeyRange(encode_value(low), encode_value(high))
        return [r.object for r in snapshot.overlapping(span)]

    assert found(0, 5) == [an_id(1)]
    assert found(0, 6) == [an_id(1), an_id(3)]
    assert found(10, 11) == [an_id(3), an_id(2)]
    assert found(20, 30) == []


def test_a_tag_that_an_earlier_program_let_expire_after_the_year_9999_is_read_and_expires_then() -> None:
    stored = msgspec.msgpack.decode(
        msgspec.msgpack.encode(SetTag("t", 1, "main", expires=2**62)), type=SetTag
    )
    assert stored.expires == 2**62
    assert Tag(1, "main", "o", 5, 1, expires=2**62).expires == LAST_TIME
    with pytest.raises(Corrupt, match="time is"):
        Tag(1, "main", "o", 2**62, 1)


def test_a_crafted_tag_that_expired_before_1970_is_damage() -> None:
    """`lake tags` wrote its time of expiry, and ended with an error of Python."""
    with pytest.raises(Corrupt, match="tag: expires is -"):
        Tag(1, "main", "o", 5, 1, expires=-(2**62))
