"""Names of fields in the state of a pool: the fold, what a draft may change, checkpoints, older lakes."""

from __future__ import annotations

import pytest

from lake_core.errors import Corrupt, InvalidInput
from lake_core.history import PoolState
from lake_core.history.renaming import edited, shown_names
from lake_core.records import AddField, RenameField
from log_lake.fields.names import FieldNames


def after(*edits: tuple[str, str | None]) -> dict[str, str]:
    state = PoolState()
    for number, (name, new) in enumerate(edits, 1):
        state = edited(state, number, [RenameField(name, new)])
    return dict(state.stored.items())


@pytest.mark.parametrize(
    ("edits", "stored"),
    [
        ([("a", "b")], {"b": "a", "a": "a~1"}),
        ([("a", None)], {"a": "a~1"}),
        ([("a", "b"), ("b", "a")], {"a": "a", "b": "b~2", "a~1": "a~1~2"}),
        ([("a", None), ("b", "a")], {"a": "b", "b": "b~2", "a~1": "a~1~2"}),
        ([("a", "b"), ("b", None)], {"b": "b~2", "a": "a~1"}),
    ],
)
def test_an_edit_moves_a_stored_name(edits: list[tuple[str, str | None]], stored: dict[str, str]) -> None:
    assert after(*edits) == stored


def test_a_stored_name_without_a_name_is_hidden_for_ever() -> None:
    names = FieldNames(after(("a", None), ("c", "a"), ("a", "d")))
    assert [names.of_stored(one) for one in ("a", "a~1", "c", "x")] == [None, None, "d", "x"]
    assert shown_names(names.stored)["c"] == "d"
    assert names.stored_name("a") == "a~3"


def test_a_name_that_is_the_new_one_already_is_no_edit() -> None:
    with pytest.raises(Corrupt, match="the new name is the old one"):
        RenameField("a", "a")


def test_a_record_may_not_have_the_stored_name_of_another_field() -> None:
    import pyarrow as pa

    names = FieldNames(after(("a", None)))
    with pytest.raises(InvalidInput, match="'a~1': the pool stores another field under this name"):
        names.to_store(pa.table({"a~1": [1], "a": [2]}))
    with pytest.raises(InvalidInput, match="'a~1': the pool stores another field under this name"):
        names.to_store(pa.table({"a~1": [1]}))


def test_an_added_field_is_kept_by_its_stored_name() -> None:
    edits = [AddField("a", "bigint"), RenameField("a", "b"), AddField("a", "string"), RenameField("a")]
    state = PoolState()
    for number, edit in enumerate(edits, 1):
        state = edited(state, number, [edit])
    assert dict(state.added.items()) == {"a": "bigint", "a~2": "string"}
    assert dict(state.stored.items())["b"] == "a"
