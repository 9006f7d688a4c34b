"""Records and their codec: what cannot be made, and what a reader does with bytes it does not know."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lake_core.errors import Corrupt, InvalidInput
from lake_core.keys import PoolKey
from lake_core.records import ConfigurePool, CreatePool, Entry, PoolsEntry, Transaction
from lake_core.records.codec import MAGIC, VERSION, Codec, frame, unframe
from lake_core.records.pools import PoolConfig
from lake_core.records.transactions import MAX_TRANSACTIONS, Source, sequence
from log_lake.loading.source_files import SourceFile
from tests.support.records import KNOWN, add, an_id, entry, transaction

CODEC = Codec(Entry)


def altered(change: Any, made: Any = None) -> bytes:
    """The bytes of an entry whose plain form `change` has altered."""
    plain = msgspec.msgpack.decode(unframe(CODEC.encode(made or entry(transaction(KNOWN, add(1)))), name="x"))
    change(plain)
    return frame(msgspec.msgpack.encode(plain))


def test_records_written_later_have_the_greater_sequence() -> None:
    assert sequence(1) == 65_536
    assert sequence(1, MAX_TRANSACTIONS - 1) < sequence(2, 0)
    assert sequence(2, 1) == sequence(2) + 1


def test_an_entry_comes_back_as_it_was() -> None:
    made = entry(transaction(KNOWN, add(1), token="t", message="m"), transaction(add(2), parent=1))
    assert CODEC.decode(CODEC.encode(made), name="x") == made


@pytest.mark.parametrize(
    "changed",
    [
        {"token": 5},
        {"message": None},
        {"author": b"me"},
        {"metadata": {"a": 1}},
        {"token": {1}},
    ],
    ids=repr,
)
def test_what_no_reader_would_accept_is_not_written(changed: dict[str, Any]) -> None:
    made = entry(msgspec.structs.replace(transaction(KNOWN, add(1)), **changed))
    with pytest.raises(InvalidInput, match="cannot be stored, because no reader would accept it"):
        CODEC.encode(made)


def test_equal_entries_have_equal_bytes_whatever_the_order_of_their_maps() -> None:
    codec = Codec(PoolsEntry)
    one, other = ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})
    made = [PoolsEntry(an_id(9), 1, "me", (ConfigurePool("p", settings),)) for settings in (one, other)]
    assert codec.encode(made[0]) == codec.encode(made[1])


@pytest.mark.parametrize("data", [b"", b"L", b"LKJ", b"PAR1....", b"\x00" * 20], ids=repr)
def test_bytes_that_are_no_entry_are_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt, match="NAME: not a journal entry"):
        CODEC.decode(data, name="NAME")


def test_a_newer_format_is_refused_with_its_version() -> None:
    with pytest.raises(Corrupt, match=r"newer version \(format 3\)"):
        CODEC.decode(MAGIC + bytes((VERSION + 1,)) + b"whatever it may be", name="NAME")


def test_an_unknown_action_was_written_by_a_newer_version() -> None:
    def change(plain: Any) -> None:
        plain["transactions"][0]["actions"][0]["type"] = "split_atom"

    with pytest.raises(Corrupt, match=r"newer version .*split_atom"):
        CODEC.decode(altered(change), name="NAME")


def test_an_unknown_optional_field_is_passed_by() -> None:
    def change(plain: Any) -> None:
        plain["mood"] = "good"
        plain["transactions"][0]["mood"] = "good"
        plain["transactions"][0]["actions"][0]["mood"] = "good"

    assert CODEC.decode(altered(change), name="x") == entry(transaction(KNOWN, add(1)))


@pytest.mark.parametrize("cut", [5, 40, -1])
def test_a_truncated_entry_is_corrupt(cut: int) -> None:
    with pytest.raises(Corrupt, match="NAME"):
        CODEC.decode(CODEC.encode(entry(transaction(KNOWN)))[:cut], name="NAME")


def test_an_entry_of_which_a_bit_is_flipped_is_corrupt() -> None:
    stored = CODEC.encode(entry(transaction(KNOWN, add(1), token="t", message="m")))
    for position in range(len(stored)):
        for bit in range(8):
            flipped = bytearray(stored)
            flipped[position] ^= 1 << bit
            with pytest.raises(Corrupt, match="NAME"):
                CODEC.decode(bytes(flipped), name="NAME")


def test_an_entry_of_version_1_that_is_damaged_is_corrupt_if_it_cannot_be_read() -> None:
    codec = Codec(Entry, version=1)
    stored = codec.encode(entry(transaction(KNOWN, add(1), token="t", message="m")))
    assert codec.decode(stored, name="x") == CODEC.decode(stored, name="x")
    refused = 0
    for position in range(len(stored)):
        flipped = bytearray(stored)
        flipped[position] ^= 0x80  # a text is not UTF-8 any more
        try:
            codec.decode(bytes(flipped), name="NAME")
        except Corrupt:
            refused += 1
    assert refused > len(stored) // 2


def test_a_stored_record_that_breaks_its_guarantee_is_corrupt_and_named() -> None:
    def change(plain: Any) -> None:
        plain["transactions"][0]["actions"][1]["records"] = 0

    with pytest.raises(Corrupt, match=r"NAME: add_object"):
        CODEC.decode(altered(change), name="NAME")


def test_a_stored_pool_with_an_impossible_name_or_key_is_corrupt() -> None:
    codec = Codec(PoolsEntry)
    made = PoolsEntry(an_id(9), 1, "me", (CreatePool(PoolConfig(an_id(1), "p", PoolKey.parse("k"))),))
    for field, value in (("name", "a/b"), ("key", {"fields": [{"name": "a"}, {"name": "a"}]})):
        plain = msgspec.msgpack.decode(unframe(codec.encode(made), name="x"))
        plain["actions"][0]["pool"][field] = value
        with pytest.raises(Corrupt, match="NAME"):
            codec.decode(frame(msgspec.msgpack.encode(plain)), name="NAME")


@pytest.mark.parametrize(
    "fields", [{"records": 0}, {"size": 0}, {"low": 10, "high": 10}, {"low": 11, "high": 10}], ids=str
)
def test_an_object_has_records_a_size_and_a_range(fields: dict[str, Any]) -> None:
    with pytest.raises(Corrupt):
        add(1, **fields)


@pytest.mark.parametrize(
    "fields", [{"id": "x"}, {"branch": ""}, {"read_version": -1}, {"parent": -1}], ids=str
)
def test_a_transaction_has_an_id_a_branch_and_where_it_began(fields: dict[str, Any]) -> None:
    with pytest.raises(Corrupt):
        transaction(KNOWN, **fields)


def test_a_transaction_has_actions_and_an_entry_transactions() -> None:
    with pytest.raises(Corrupt):
        transaction()
    with pytest.raises(Corrupt):
        entry()
    one: Transaction = transaction(KNOWN)
    with pytest.raises(Corrupt):
        Entry(an_id(1), (one,) * MAX_TRANSACTIONS)


def test_a_landed_file_is_recorded_by_name_size_and_etag() -> None:
    assert SourceFile("s3://b/f", 7, "etag", modified=5.0).source == Source("s3://b/f", 7, "etag")


class Nested(msgspec.Struct):
    """An entry that may hold another."""

    of: Nested | None = None


def test_an_entry_nested_without_end_is_corrupt() -> None:
    endless = b"\x81\xa2of" * 100_000 + b"\xc0"
    with pytest.raises(Corrupt, match="NAME"):
        Codec(Nested).decode(frame(endless), name="NAME")
