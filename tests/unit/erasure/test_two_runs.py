"""Two runs of one erasure at once: what only the other one knows is kept in the receipt, and looked at."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from lake_core.history import PoolState
from log_lake.erasure import receipt as receipts
from log_lake.erasure.begin import begin
from log_lake.erasure.hiding import OwnTombstones
from log_lake.erasure.holders import ANOTHER_RUN
from log_lake.erasure.noting import Notes
from log_lake.erasure.receipt import PENDING, Held, Receipt, ReceiptTransaction
from log_lake.erasure.run import go_on
from log_lake.objects.located import Located
from log_lake.workers import Here
from tests.unit.erasure.conftest import World

ANN = "who = 'ann'"


def noted_by_another(world: World, receipt: Receipt, object_id: str) -> Receipt:
    """Another run names an object in the stored receipt."""
    pool = world.reopened()
    one = receipts.summed(pool.store, pool.config.id, Located(object_id))
    stored = receipts.read(pool, receipt.id)
    named = msgspec.structs.replace(stored, erased=(*stored.erased, one))
    receipts.write(pool, named)
    return named


def test_what_another_run_has_written_stays_in_the_receipt(world: World) -> None:
    world.people("ann", "bob")
    world.people("cid", first=9)
    pending = begin(world.pool, where=ANN)
    first, second = sorted(world.objects)
    notes = Notes(world.pool, pending, Here.of(world.pool.context))
    notes.add([Located(first)])
    other = noted_by_another(world, pending, second)
    transaction = ReceiptTransaction(7, "t" * 27, 1, "main", "rewrite")
    receipts.write(
        world.pool,
        msgspec.structs.replace(
            other, transactions=(transaction,), written=other.erased, keeps_history=True, until=5
        ),
    )
    for kept in (notes.write(), receipts.read(world.pool, pending.id)):
        assert {one.object for one in kept.erased} == {first, second}
        assert (kept.transactions, kept.written) == ((transaction,), other.erased)
        assert (kept.keeps_history, kept.until) == (True, 5)


def test_an_object_that_another_run_names_while_this_one_ends_holds_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named after the first look at the receipt, and before the last word."""
    world.people("ann", "bob")
    world.people("cid", first=9)
    pending = begin(world.pool, where=ANN)
    forget = OwnTombstones.forget
    named: list[str] = []

    def meanwhile(
        self: OwnTombstones, brought_back: Callable[[PoolState], tuple[Held, ...]]
    ) -> tuple[Held, ...]:
        back = forget(self, brought_back)
        (one, *_) = sorted(world.objects)
        noted_by_another(world, pending, one)
        named.append(one)
        return back

    monkeypatch.setattr(OwnTombstones, "forget", meanwhile)
    left = go_on(world.pool, pending)
    monkeypatch.undo()
    assert (left.status, receipts.read(world.pool, pending.id).status) == (PENDING, PENDING)
    assert [(one.object, one.by) for one in left.held] == [(named[0], ANOTHER_RUN)]
