"""fsck finds the receipt of an erasure that is lost or damaged: nobody would finish that erasure."""

from __future__ import annotations

import pytest

from lake_core import naming
from log_lake.erasure.receipt import DONE, PENDING
from log_lake.erasure.run import erase
from log_lake.repair.finding import DAMAGE, Finding
from log_lake.repair.fsck import Fsck
from tests.unit.erasure.conftest import World

ANN = "who = 'ann'"


def damage(world: World) -> list[Finding]:
    return [one for one in Fsck(world.pool.context).run() if one.severity == DAMAGE]


@pytest.mark.parametrize("keeps_history", [False, True])
def test_receipts_that_are_there_are_no_finding(world: World, keeps_history: bool) -> None:
    world.people("ann", "bob")
    world.pool.tag("keep")
    assert erase(world.pool, where=ANN, keeps_history=keeps_history).status == PENDING
    assert damage(world) == []
    world.pool.delete_tag("keep")
    assert erase(world.pool, where=ANN).status == DONE
    assert damage(world) == []


def test_the_receipt_of_a_pending_erasure_that_is_lost_is_found(world: World) -> None:
    world.people("ann", "bob")
    world.pool.tag("keep")
    pending = erase(world.pool, where=ANN)
    name = naming.erasure(world.pool.config.id, pending.id)
    world.store.delete(name)
    (found,) = damage(world)
    assert (found.kind, found.where) == ("receipt_missing", name)
    assert "erase the records again" in found.do


def test_the_receipt_of_one_that_is_done_is_found_while_its_entries_are_there(world: World) -> None:
    world.people("ann", "bob")
    done = erase(world.pool, where=ANN, keeps_history=True)
    assert done.status == DONE
    world.store.delete(naming.erasure(world.pool.config.id, done.id))
    assert [one.kind for one in damage(world)] == ["receipt_missing"]


@pytest.mark.parametrize("data", [b"{", b"[]", bytes([255, 254]), b'{"format": 1}'])
def test_a_receipt_that_cannot_be_read_is_found_once(world: World, data: bytes) -> None:
    world.people("ann", "bob")
    world.pool.tag("keep")
    pending = erase(world.pool, where=ANN)
    world.store.put(naming.erasure(world.pool.config.id, pending.id), data)
    assert [one.kind for one in damage(world)] == ["receipt_unreadable"]


def test_a_reason_that_a_person_wrote_names_no_erasure(world: World) -> None:
    world.people("ann", "bob")
    world.pool.branch().delete(where=ANN, reason="erasure of a customer")
    assert damage(world) == []
