"""Histories of transactions over several pools have an order; the checker sees what has none."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.histories.checking import check
from tests.simulation.histories.recorded import History, Operation, Read, Seen
from tests.simulation.histories.world import simulate_history
from tests.simulation.truth import Violation

SEEDS = 24
CHUNK = 8

pytestmark = pytest.mark.usefixtures("without_warnings")


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_an_order_explains_what_was_seen(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        seen += simulate_history(seed)
    assert seen["transactions seen"] > 0
    assert seen["dependencies"] > 0


def test_a_history_is_replayed_exactly() -> None:
    assert [simulate_history(seed) for seed in range(3)] == [simulate_history(seed) for seed in range(3)]


# ---------------------------------------------------------------- the checker, with histories made by hand


@pytest.fixture
def history() -> History:
    return History(initial={"a": {901}, "b": {902}})


def adding(history: History, pool: str, value: int, *others: tuple[str, int]) -> Operation:
    """An operation that adds records, and is acknowledged."""
    operation = history.begin(is_transaction=bool(others))
    for name, one in ((pool, value), *others):
        operation.part(name).adds.add(one)
    return operation


def seen_by(history: History, reader: str, *, begun: int = 0, **pools: list[int]) -> None:
    """A read of pools; those given have their first records too."""
    first = {"a": 901, "b": 902}
    seen = {name: Seen([first[name], *values], {}) for name, values in pools.items()}
    begun = begun or history.now()
    history.reads.append(Read(reader, begun, history.now(), seen))


def test_half_of_a_transaction_is_seen(history: History) -> None:
    adding(history, "a", 1, ("b", 2))
    seen_by(history, "r", a=[1], b=[])
    with pytest.raises(Violation, match=r"r sees half of operation 0: .*a has 1.*True.*b has 2.*False"):
        check(history)


def test_two_readers_that_see_two_writes_in_two_orders_are_a_cycle(history: History) -> None:
    adding(history, "a", 1)
    adding(history, "a", 2)
    begun = history.now()
    seen_by(history, "r", begun=begun, a=[1])
    seen_by(history, "s", begun=begun, a=[2])
    with pytest.raises(Violation, match="a cycle: operation 0 -> read 0 of a -> operation 1 -> read 1 of a"):
        check(history)


def test_two_transactions_that_win_over_each_other_are_a_cycle(history: History) -> None:
    """Each pool shows the value of another one as the newest."""
    for number in (1, 2):
        operation = adding(history, "a", number, ("b", number))
        operation.part("a").registers[100] = 10 + number
        operation.part("b").registers[100] = 20 + number
    both = {"a": Seen([901, 1, 2], {100: [11]}), "b": Seen([902, 1, 2], {100: [22]})}
    history.reads.append(Read("r", history.now(), history.now(), both))
    with pytest.raises(Violation, match="a cycle: operation 0 -> operation 1 -> operation 0"):
        check(history)


def test_what_was_acknowledged_is_seen_afterwards(history: History) -> None:
    history.acknowledge(adding(history, "a", 1))
    seen_by(history, "r", a=[])
    with pytest.raises(Violation, match="does not see operation 0, which was acknowledged before"):
        check(history)


def test_a_read_under_way_may_miss_what_was_acknowledged_during_it(history: History) -> None:
    operation, begun = adding(history, "a", 1), history.now()
    history.acknowledge(operation)
    seen_by(history, "r", begun=begun, a=[])
    assert check(history)["reads"] == 1


def test_what_was_refused_is_never_seen(history: History) -> None:
    history.refuse(adding(history, "a", 1), "no")
    seen_by(history, "r", a=[1])
    with pytest.raises(Violation, match="sees operation 0, which was refused"):
        check(history)


def test_nobody_is_told_both(history: History) -> None:
    operation = adding(history, "a", 1)
    history.acknowledge(operation)
    history.refuse(operation, "no")
    with pytest.raises(Violation, match="operation 0 was acknowledged, and refused"):
        check(history)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([901, 1, 1], r"sees \[1\] of a twice"),
        ([901, 7], r"sees \[7\] in a, which nobody wrote"),
        ([], r"does not see \[901\] in a, which nobody removed"),
    ],
)
def test_records_are_there_once_and_were_written(history: History, records: list[int], said: str) -> None:
    adding(history, "a", 1)
    history.reads.append(Read("r", history.now(), history.now(), {"a": Seen(records, {})}))
    with pytest.raises(Violation, match=said):
        check(history)


def test_a_register_shows_one_of_its_visible_writers(history: History) -> None:
    adding(history, "a", 1).part("a").registers[100] = 11
    history.reads.append(Read("r", history.now(), history.now(), {"a": Seen([901, 1], {})}))
    with pytest.raises(Violation, match=r"sees \[\] in key 100 of a, which operations \[0\] wrote"):
        check(history)


def test_a_token_counts_once_in_a_pool(history: History) -> None:
    for number in (1, 2):
        operation = history.begin(is_transaction=True, token="run")
        operation.part("a").adds.add(number)
    seen_by(history, "r", a=[1, 2])
    with pytest.raises(Violation, match="operations 0 and 1 have the token 'run', and both are in a"):
        check(history)
