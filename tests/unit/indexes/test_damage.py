"""A damaged, cut, foreign or missing index never says that a value is absent which is there."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from lake_core.errors import Corrupt
from lake_core.keys.encoding import encode_value
from log_lake.indexes.hashes import number_of
from log_lake.indexes.layout import PAGE, check_whole
from log_lake.indexes.lookup import IndexAnswer, IndexQuestion, ask
from log_lake.indexes.names import index_name
from log_lake.indexes.rule import IndexRule, parse_rule
from log_lake.indexes.writing import IndexWriter
from log_lake.stores.memory import MemoryStore
from tests.support.records import an_id
from tests.support.stores import ScriptedStore, unavailable

RULE, OTHER = parse_rule("index.a", "bloom(f)"), parse_rule("index.b", "bloom(g)")
POOL, OBJECT = an_id(1), an_id(2)
VALUES = range(5_000)
NAME = index_name(POOL, OBJECT, RULE.digest)


def an_index(rule: IndexRule = RULE, object_id: str = OBJECT) -> bytes:
    store = MemoryStore("memory://index")
    writer = IndexWriter([rule])
    writer.add(pa.table({"f": list(VALUES), "g": list(VALUES)}), [len(VALUES)])
    assert writer.write(store, POOL, object_id)
    data = store.get(index_name(POOL, object_id, rule.digest))
    assert data is not None
    return data


def answer(data: bytes | None, value: int) -> IndexAnswer:
    store = MemoryStore("memory://damaged")
    if data:
        store.create(NAME, data)
    return ask(store, POOL, IndexQuestion(OBJECT, RULE, (number_of(encode_value(value)),))).answer


def test_a_whole_index_answers() -> None:
    data = an_index()
    assert len(data) > PAGE
    assert {answer(data, value) for value in VALUES[::100]} == {IndexAnswer.MAY}
    answers = [answer(data, value) for value in range(10_000, 10_200)]
    assert answers.count(IndexAnswer.NO) > 190
    assert check_whole(data, RULE.digest, OBJECT).values == len(VALUES)


def test_flipped_bits_hide_no_value() -> None:
    data, chance = np.frombuffer(an_index(), np.uint8), random.Random(7)
    told = []
    for _ in range(5_000):
        damaged = data.copy()
        for _ in range(chance.choice((1, 1, 1, 3))):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        told.append(answer(damaged.tobytes(), chance.choice(VALUES)))
    assert IndexAnswer.NO not in told
    assert {IndexAnswer.DAMAGED, IndexAnswer.MAY} == set(told)


@pytest.mark.parametrize("seed", range(20))
def test_cut_and_random_bytes_hide_no_value(seed: int) -> None:
    data, chance = an_index(), random.Random(seed)
    cut = data[: chance.randrange(len(data))]
    moved = data[:64] + data[64 + PAGE :] + data[64 : 64 + PAGE]  # pages in another order
    for bad in (cut, chance.randbytes(5_000), data[:64] + chance.randbytes(5_000), moved, b"LKIX"):
        assert answer(bad, chance.choice(VALUES)) is not IndexAnswer.NO


@pytest.mark.parametrize("data", [an_index(OTHER), an_index(RULE, an_id(3))])
def test_the_index_of_another_rule_or_object_says_nothing(data: bytes) -> None:
    assert answer(data, -1) is IndexAnswer.DAMAGED
    with pytest.raises(Corrupt, match="another rule or data object"):
        check_whole(data, RULE.digest, OBJECT)


def test_a_missing_index_says_nothing() -> None:
    assert answer(None, -1) is IndexAnswer.MISSING


def test_an_index_that_the_store_does_not_give_says_nothing() -> None:
    store = ScriptedStore(MemoryStore("memory://silent"))
    store.on("open_input", NAME, instead=unavailable)
    question = IndexQuestion(OBJECT, RULE, (1,))
    assert ask(store, POOL, question).answer is IndexAnswer.UNREADABLE
