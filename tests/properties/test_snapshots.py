"""The fold: whatever happens to a pool, its snapshot is what a plain dictionary says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.errors import Corrupt
from lake_core.history import PoolState, Reference
from lake_core.history.fold import fold_entry
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.records import Action, AddObject, Column, RemoveReference
from lake_core.records.transactions import sequence
from tests.support.records import KNOWN, add, entry, transaction

SPANS = st.sampled_from([(low, high) for low in range(4) for high in range(low + 1, 4)])
SUBS = st.sampled_from(["", "$nokey"])
COLUMN = Column("k", 1, b"\x01", None)


@st.composite
def actions(draw: st.DrawFn) -> Action:
    number, (low, high) = draw(st.integers(1, 4)), draw(SPANS)
    if draw(st.booleans()):
        return RemoveReference(add(number).object, encode_value(low))
    sub, place = draw(SUBS), draw(st.integers(0, 3))
    seqs = draw(st.sampled_from([None, (7, 7), (1, 9)]))
    shape = {"records": number, "size": low + 1, "columns": (COLUMN,)}
    return add(number, low, high, sub_pool=sub, ordinal=place, seqs=seqs, **shape)


HISTORIES = st.lists(st.lists(actions(), min_size=1, max_size=2), max_size=25)
FIRST: list[Action] = [add(number, low, 4) for number in (1, 2, 3, 4) for low in (0, 1)]
Model = dict[tuple[str, bytes], Reference]


def apply(model: Model, done: list[Action], n: int) -> Model | None:
    """The dictionary after one transaction, None where some action does not fit."""
    model = dict(model)
    for action in done:
        if isinstance(action, AddObject):
            identity = (action.object, action.low)
            if identity in model:
                return None
            fields: dict[str, Any] = {f: getattr(action, f) for f in AddObject.__struct_fields__}
            oldest, newest = fields.pop("seqs") or (None, sequence(n))
            model[identity] = Reference(seq=newest, oldest=oldest, **fields)
        else:
            assert isinstance(action, RemoveReference)
            if (action.object, action.low) not in model:
                return None
            del model[action.object, action.low]
    return model


@pytest.mark.parametrize("min_changes", [0, 3, 1024])
@given(HISTORIES, SPANS)
def test_a_snapshot_is_what_a_dictionary_holds(
    min_changes: int, history: list[list[Action]], asked: tuple[int, int]
) -> None:
    state, n = fold_entry(PoolState.empty(min_changes=min_changes), 1, entry(transaction(KNOWN, *FIRST))), 1
    model = apply({}, FIRST, n)
    assert model is not None
    for done in history:
        step = entry(transaction(*done, parent=n))
        expected = apply(model, done, n + 1)
        if expected is None:
            with pytest.raises(Corrupt):
                fold_entry(state, n + 1, step)
            continue
        n, model = n + 1, expected
        state = fold_entry(state, n, step)
    found = state.branches["main"].snapshot
    assert (len(found), found.records, found.size) == (
        len(model),
        sum(r.records for r in model.values()),
        sum(r.size for r in model.values()),
    )
    span = KeyRange(encode_value(asked[0]), encode_value(asked[1]))
    for sub in ("", "$nokey"):
        held = [r for r in model.values() if r.sub_pool == sub]
        by_order = sorted(held, key=lambda r: r.order)
        assert found.overlapping(sub_pool=sub) == by_order
        assert found.overlapping(span, sub_pool=sub) == [r for r in by_order if r.key_range.overlaps(span)]
    assert found.sub_pools() == sorted({r.sub_pool for r in model.values()} - {""})
