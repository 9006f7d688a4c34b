"""HEAD is a hint: whatever it holds, it is read as a version or as none."""

from __future__ import annotations

import pytest

from lake_core import naming
from lake_core.journal.hints import MAX_DIGITS, read_head_hint
from log_lake.stores.memory import MemoryStore


@pytest.mark.parametrize(
    ("content", "version"),
    [
        (b"7", 7),
        (b"0" * MAX_DIGITS, 0),
        (b"9" * MAX_DIGITS, 10**MAX_DIGITS - 1),
        (b"9" * (MAX_DIGITS + 1), 0),
        (b"9" * 5_000, 0),  # Python refuses to make an integer of so many digits
        (b"", 0),
        (b"-1", 0),
        (b" 7", 0),
        ("²".encode(), 0),
    ],
)
def test_a_hint_is_a_version_of_at_most_twenty_digits(content: bytes, version: int) -> None:
    store = MemoryStore()
    store.put(naming.head("j"), content)
    assert read_head_hint(store, "j") == version


def test_no_hint_names_no_version() -> None:
    assert read_head_hint(MemoryStore(), "j") == 0
