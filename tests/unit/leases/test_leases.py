"""A lease is live while its holder writes it again; its age is counted on the store's clock."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import ClassVar

import pytest

from lake_core import naming
from lake_core.errors import Unavailable
from lake_core.ids import IdSource
from lake_core.store import Created
from log_lake.leases import HeldLease, LeaseNote, read_leases, remove_dead
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import DAY, Clock
from tests.support.stores import ALWAYS, ScriptedStore, lost, unavailable

IDS = IdSource()


def held(store: object, version: int = 3, ttl: float = 600.0, *, renewing: bool = False) -> HeldLease:
    note = LeaseNote("read", version, "vera", ttl, "a long query")
    return HeldLease(store, "pool", IDS.new(), note, renewing=renewing)  # type: ignore[arg-type]


def test_a_lease_is_live_until_its_ttl_is_over_and_gone_at_the_end() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    with held(store) as lease:
        clock.now += 599
        with held(store, 9) as other:
            leases = read_leases(store, "pool", own=other.id)
            assert leases.now == clock.now
            assert leases.oldest_version == 3
            clock.now += 2
            other.renew()
            leases = read_leases(store, "pool", own=other.id)
            assert leases.oldest_version == 9
            assert [dead.id for dead in leases.dead] == [lease.id]
    assert list(store.list("pool/leases")) == []


def test_a_lease_that_cannot_be_read_holds_everything() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    store.put(naming.lease("pool", IDS.new()), b'{"kind"')
    with held(store) as own:
        assert read_leases(store, "pool", own=own.id).oldest_version == 0
        assert read_leases(store, "pool", own=own.id).oldest_object == ""
        clock.now += DAY + 1
        own.renew()
        assert read_leases(store, "pool", own=own.id).oldest_version == 3


def test_a_lease_is_renewed_while_work_goes_on() -> None:
    """A machine that stalls for a ttl loses it; without such a stall it is held for twice as long."""
    ttl = 0.3

    class Counting(MemoryStore):
        renewed = threading.Event()
        times: ClassVar[list[float]] = []

        def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
            super().put(name, data)
            self.times.append(time.monotonic())
            if self.times[-1] - self.times[0] > 2 * ttl:
                self.renewed.set()

    store = Counting()
    store.times.append(time.monotonic())
    with held(store, ttl=ttl, renewing=True) as lease:
        assert store.renewed.wait(600)
        is_lost = lease.is_lost
        longest = max(after - before for before, after in pairwise([*store.times, time.monotonic()]))
    assert not is_lost or longest > ttl / 2, "it is renewed each third of its ttl"
    assert list(store.list("pool/leases")) == []


def test_a_renewal_that_fails_is_tried_again() -> None:
    store = ScriptedStore()
    store.on("put", ".lease", instead=unavailable, times=2)
    with held(store, ttl=0.3, renewing=True):
        for _ in range(60_000):
            if store.asked("put") > 2:
                break
            threading.Event().wait(0.01)
    assert store.asked("put") > 2


def test_a_lease_whose_answer_is_lost_is_created_again() -> None:
    store = ScriptedStore()
    store.on("create", ".lease", answer=lost)
    with held(store) as lease:
        assert store.get(lease.name) is not None


def test_a_lease_that_the_store_says_exists_and_does_not_have_is_not_held() -> None:
    """A false 412: a vacuum would delete what the holder needs."""
    store = ScriptedStore()
    store.on("create", ".lease", instead=lambda: Created.EXISTS, times=ALWAYS)
    with pytest.raises(Unavailable, match="does not show that it has this lease"), held(store):
        raise AssertionError("the block must not begin")


def test_a_lease_that_the_lister_did_not_write_is_no_clock() -> None:
    with pytest.raises(Unavailable, match="removed its lease as a dead one"):
        read_leases(MemoryStore(), "pool", own=IDS.new())


def test_dead_leases_are_deleted_and_live_ones_stay() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    with held(store, ttl=10.0) as dead, held(store) as live:
        store.put(naming.lease("pool", IDS.new()), b"{")
        clock.now += 20
        with held(store) as own:
            leases = read_leases(store, "pool", own=own.id)
            assert [lease.id for lease in remove_dead(store, "pool", leases)] == [dead.id]
            assert len(list(store.list("pool/leases"))) == 3
            clock.now += DAY
            live.renew()
            own.renew()
            leases = read_leases(store, "pool", own=own.id)
            assert [lease.note.kind for lease in remove_dead(store, "pool", leases)] == ["unreadable"]


def test_a_lease_that_died_stays_lost_though_its_holder_writes_it_again() -> None:
    store = MemoryStore()
    with held(store, ttl=0.01) as lease:
        threading.Event().wait(0.05)
        lease.renew()
        assert lease.is_lost
