"""Messages become records as the lines of a file do; a bad one is named by its place."""

from __future__ import annotations

import json
import resource
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import InvalidInput, Unavailable
from log_lake.kafka.broker import Message
from log_lake.kafka.messages import MessageReading, blocks_of
from log_lake.kafka.plan import Partition
from log_lake.kafka.settings import kafka_policy
from log_lake.loading.block import QUARANTINE, Rejected
from log_lake.settings import Settings

HERE = Partition("t", 3, "cluster", "id")
PARTS = "key,headers,timestamp,topic,partition,offset"


def message(offset: int, value: bytes | None, key: bytes | None = None, **other: Any) -> Message:
    return Message(HERE, offset, value, key, other.get("time"), other.get("headers", ()))


def read(
    messages: Sequence[Message], *, bad: str = QUARANTINE, key: str = "id", **how: str
) -> tuple[list[dict[str, Any]], list[Rejected]]:
    """The records, and the bad ones."""
    policy = kafka_policy(Settings({f"kafka.{name}": text for name, text in how.items()}))
    reading = MessageReading("kafka://h:1", key=(key,), bad_records=bad)
    blocks = list(blocks_of(messages, policy, reading))
    rows = [row for block in blocks for row in block.table.to_pylist()]
    return rows, [one for block in blocks for one in block.rejected]


def test_a_value_is_a_record_whatever_its_lines() -> None:
    rows, bad = read(
        [message(0, b'{"id": 1}'), message(1, b'\n{\r\n"id":\n2}\n'), message(2, b'\xef\xbb\xbf{"id": 3}')]
    )
    assert ([row["id"] for row in rows], bad) == ([1, 2, 3], [])


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"[1]", "no JSON object"),
        (b"", "empty"),
        (b"   ", "no JSON object"),
        (b'"text"', "no JSON object"),
        (b'\xff\xfe{\0"\0i\0d\0"\0:\x001\0}\0', "no JSON object"),
        (b"\x1f\x8b\x08", "no JSON object"),
        (b"\0\0\0\1\2data", r"schema registry \(schema 258\)"),
        (b'{"id": 1', "malformed JSON"),
        (b'{"id": 1}\n{"id": 2}', "records where one should be"),
        (b'{"id": "a\nb"}', "malformed JSON"),
        (b'{"id": 1, "id": 2}', "id"),
        (None, "no value"),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_bad_message_is_named_and_spoils_no_other(value: bytes | None, why: str, at: int) -> None:
    good = [message(10 + n, b'{"id": %d}' % n) for n in range(2)]
    messages = [*good[:at], message(99, value, b"key"), *good[at:]]
    rows, (bad,) = read(messages, fields="offset")
    assert [(row["id"], row["kafka_offset"]) for row in rows] == [(0, 10), (1, 11)]
    assert (bad.file, bad.line) == ("kafka:t/3", 99)
    assert value is None or bad.raw_bytes == value or bad.raw == value.decode().rstrip("\r\n")
    with pytest.raises(InvalidInput, match=rf"^kafka:t/3, offset 99: .*{why}"):
        read(messages, bad="fail")


def test_parts_are_beside_each_record() -> None:
    headers = (("a", b"1"), ("a", None))
    (row,), _ = read([message(7, b"x", b"k", time=1_500, headers=headers)], value="text", fields=PARTS)
    assert row["value"] == "x"
    assert (row["kafka_key"], row["kafka_topic"], row["kafka_partition"], row["kafka_offset"]) == (
        "k",
        "t",
        3,
        7,
    )
    assert row["kafka_headers"] == [{"name": "a", "value": "1"}, {"name": "a", "value": None}]
    assert row["kafka_timestamp"].timestamp() == 1.5


def test_parts_that_are_no_text_are_bad_records_and_unasked_ones_are_not_looked_at() -> None:
    messages = [message(0, b'{"id": 1}', b"\xff"), message(1, b'{"id": 2}', headers=(("h", b"\xfe"),))]
    assert [one.line for one in read(messages, fields="key,headers")[1]] == [0, 1]
    assert len(read(messages)[0]) == 2


def test_a_time_outside_of_the_years_that_a_field_holds_is_a_bad_record() -> None:
    nanoseconds = message(0, b'{"id": 1}', time=1_700_000_000_000_000_000)
    rows, bad = read([nanoseconds, message(1, b'{"id": 2}', time=5)], fields="timestamp")
    assert [row["id"] for row in rows] == [2]
    assert "is outside of the years 1 to 9999" in bad[0].reason
    assert len(read([nanoseconds])[0]) == 1


def test_a_record_with_a_field_of_the_name_of_a_part_is_bad_and_spoils_no_other() -> None:
    own = b'{"id": 2, "kafka_offset": 7}'
    messages = [message(0, b'{"id": 1}'), message(1, own), message(2, b'{"id": 3, "kafka_offset": null}')]
    rows, (bad,) = read(messages, fields="offset")
    assert [(row["id"], row["kafka_offset"]) for row in rows] == [(1, 0), (3, 2)]
    assert (bad.file, bad.line, bad.raw) == ("kafka:t/3", 1, own.decode())
    with pytest.raises(InvalidInput, match=r"^kafka:t/3, offset 1: .*leave offset out of kafka\.fields"):
        read(messages, fields="offset", bad="fail")


def test_a_full_disk_is_said_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    kept = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))  # as a full disk does, a write fails midway
    try:
        with pytest.raises(Unavailable, match="messages cannot be written"):
            read([message(0, b'{"id": "%s"}' % (b"x" * 5_000))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, kept)
    assert list(tmp_path.iterdir()) == []


def test_headers_count_as_bytes_of_a_message() -> None:
    assert message(0, b"abc", b"k", headers=(("name", b"value"), ("none", None))).size == 3 + 1 + 9 + 4


def test_messages_without_a_value_are_what_the_setting_says() -> None:
    messages = [
        message(0, b'{"id": 1}', b'{"id": 1}'),
        message(1, None, b' {"id": 2}\n'),
        message(2, None, b"2"),
    ]
    assert read(messages[:2], nulls="skip") == ([{"id": 1}], [])
    rows, (bad,) = read(messages, nulls="delete")
    assert rows == [{"id": 1, "_deleted": None}, {"id": 2, "_deleted": True}]
    assert "no JSON object with the pool's key (id)" in bad.reason


def test_a_delete_of_text_has_the_key_of_its_message() -> None:
    messages = [message(0, b"a", b"k"), message(1, None, b"k"), message(2, None)]
    rows, (bad,) = read(messages, key="kafka_key", value="text", nulls="delete", fields="key")
    assert [(row["kafka_key"], row["_deleted"]) for row in rows] == [("k", False), ("k", True)]
    assert "neither a key nor a value" in bad.reason


VALUES = st.one_of(
    st.none(),
    st.binary(max_size=12),
    st.fixed_dictionaries(
        {"id": st.integers(0, 9), "x": st.one_of(st.text(max_size=4), st.floats(-9, 9))}
    ).map(lambda record: json.dumps(record).encode()),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(VALUES, max_size=12))
def test_every_message_is_a_record_or_a_bad_one_in_order(values: list[bytes | None]) -> None:
    rows, bad = read([message(n, value) for n, value in enumerate(values)], fields="offset")
    offsets = [row["kafka_offset"] for row in rows]
    assert offsets == sorted(offsets)
    assert sorted([*offsets, *(one.line for one in bad)]) == list(range(len(values)))
    for row in rows:
        value = values[row["kafka_offset"]]
        assert value is not None
        assert json.loads(value)["id"] == row["id"]
