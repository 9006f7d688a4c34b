"""Where each partition is read on: by the journal alone, and an error wherever that is in doubt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from lake_core.history.offsets import offsets_source
from lake_core.records import Source
from log_lake.kafka.plan import Partition, SeenPartition, Span, partition_of, plan_reads
from log_lake.kafka.positions import left_in_doubt, settled, wish_of

ZERO, ONE = (Partition("t", number, "cluster", "id") for number in (0, 1))
AGAIN, AGAIN_ONE = (Partition("t", number, "cluster", "other") for number in (0, 1))
MOVED = Partition("t", 0, "other cluster", "id")
OTHER = Partition("u", 0, "cluster", "id of u")


def held(**at: int) -> dict[str, Source]:
    by_name = {"zero": ZERO, "one": ONE, "again": AGAIN}
    return {by_name[name].stream: offsets_source("", 0, next, id="x") for name, next in at.items()}


def test_an_empty_pool_begins_with_the_first_message_that_is_there() -> None:
    plan = plan_reads([SeenPartition(ONE, 0, 0), SeenPartition(ZERO, 7, 9)], {}, is_empty=True)
    assert (plan.spans, plan.faults) == ((Span(ZERO, 7, 9),), ())
    assert plan.offsets == 2


def test_a_partition_goes_on_where_the_journal_ends() -> None:
    seen = [SeenPartition(ZERO, 0, 9), SeenPartition(ONE, 0, 4)]
    assert plan_reads(seen, held(zero=5, one=4), is_empty=False).spans == (Span(ZERO, 5, 9),)


@pytest.mark.parametrize(
    ("seen", "next", "why", "position"),
    [
        (SeenPartition(ZERO, 8, 20), 5, "the offsets 5 to 7 are deleted", "t:0=8"),
        (SeenPartition(ZERO, 0, 3), 5, "ends before offset 3, but offsets up to 4 were read", "t:0=3"),
        (SeenPartition(AGAIN, 0, 9), 5, "deleted and created again", "t=earliest"),
        (SeenPartition(MOVED, 0, 9), 5, "another cluster id", "t=earliest"),
    ],
)
def test_a_doubt_is_a_fault_that_names_the_command(
    seen: SeenPartition, next: int, why: str, position: str
) -> None:
    plan = plan_reads([seen, SeenPartition(ONE, 0, 3)], held(zero=next, one=1), is_empty=False)
    (fault,) = plan.faults
    assert why in fault.line("logs")
    assert fault.line("logs").endswith(f"lake offsets logs --set {position}")
    assert plan.spans == (Span(ONE, 1, 3),), "the others are read"


def test_a_pool_with_records_and_no_offsets_asks_first() -> None:
    plan = plan_reads([SeenPartition(ZERO, 0, 9)], {}, is_empty=False)
    assert "no offsets" in plan.faults[0].why
    assert not plan.spans


def test_new_partitions_and_new_topics_begin_at_their_beginning() -> None:
    plan = plan_reads(
        [SeenPartition(ZERO, 0, 5), SeenPartition(ONE, 0, 3), SeenPartition(OTHER, 2, 4)],
        held(zero=5),
        is_empty=False,
    )
    assert plan.spans == (Span(ONE, 0, 3), Span(OTHER, 2, 4))
    lost = plan_reads([SeenPartition(ONE, 2, 3)], held(zero=5), is_empty=False)
    assert "the offsets 0 to 1 are deleted" in lost.faults[0].why


def test_a_topic_that_was_set_after_it_was_created_again_goes_on() -> None:
    plan = plan_reads([SeenPartition(AGAIN, 0, 9)], held(zero=5, again=2), is_empty=False)
    assert plan.spans == (Span(AGAIN, 2, 9),)


def test_a_token_stands_for_the_places_where_a_batch_begins() -> None:
    first = plan_reads([SeenPartition(ZERO, 0, 9)], held(zero=5), is_empty=False).token
    longer = plan_reads([SeenPartition(ZERO, 0, 99)], held(zero=5), is_empty=False).token
    further = plan_reads([SeenPartition(ZERO, 0, 99)], held(zero=6), is_empty=False).token
    again = {ZERO.stream: offsets_source("", 9, 5, id="y")}
    assert first == longer != further
    assert plan_reads([SeenPartition(ZERO, 0, 9)], again, is_empty=False).token != first, (
        "set back, they are read again"
    )


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(NAMES, st.integers(0, 10**6), NAMES, NAMES)
def test_a_partition_has_a_name_in_the_journal_and_back(
    topic: str, number: int, cluster: str, id: str
) -> None:
    partition = Partition(topic, number, cluster, id)
    assert partition_of(partition.stream) == partition
    assert partition.stream.isascii()


def test_other_streams_are_none_of_kafka() -> None:
    assert [partition_of(name) for name in ("", "s3/a/b/c/1", "kafka/a/b/1", "kafka/a/b/c/x")] == [None] * 4


def test_a_person_sets_offsets_that_are_there() -> None:
    seen = [SeenPartition(ZERO, 2, 9), SeenPartition(ONE, 0, 4)]
    assert settled([wish_of("t=earliest"), wish_of("t:1=latest")], seen) == {ZERO: 2, ONE: 4}
    assert settled([wish_of("t:0=5")], seen) == {ZERO: 5}
    for text, why in (
        ("t:0=1", "offsets from 2 to 9"),
        ("t:7=1", "no partition 7"),
        ("u=1", "'u' is not one"),
    ):
        with pytest.raises(InvalidInput, match=why):
            settled([wish_of(text)], seen)
    for text in ("t", "t:0", "t:0=x", "t:-1=0", "t:0=1 ", "=1"):
        with pytest.raises(InvalidInput, match="--set"):
            wish_of(text)


@pytest.mark.parametrize(
    ("seen", "positions", "is_empty", "named", "left"),
    [
        ([ZERO, ONE], {}, False, [ZERO], [ONE]),  # a rebuilt pool
        ([ZERO, OTHER], {}, False, [ZERO], [OTHER]),
        ([ZERO, ONE], {}, False, [ZERO, ONE], []),
        ([ZERO, ONE], {}, True, [ZERO], []),  # all is new
        (
            [AGAIN, AGAIN_ONE],
            {"zero": 5, "one": 1},
            False,
            [AGAIN],
            [AGAIN_ONE],
        ),  # a topic that was created again
        ([AGAIN, OTHER], {"zero": 5}, False, [OTHER], []),  # stays in doubt, so it is not read
        ([ZERO, ONE], {"zero": 5}, False, [ZERO], []),  # a new partition of a topic that is read
    ],
)
def test_no_partition_in_doubt_is_read_because_another_was_set(
    seen: list[Partition],
    positions: dict[str, int],
    is_empty: bool,
    named: list[Partition],
    left: list[Partition],
) -> None:
    there = [SeenPartition(one, 0, 9) for one in seen]
    offsets = dict.fromkeys(named, 3)
    assert left_in_doubt(there, held(**positions), offsets, is_empty=is_empty) == left
