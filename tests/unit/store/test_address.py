"""Another process opens the same store by its address: with the credentials and the lock that it was given."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from lake_core.store import Address, address_of
from log_lake.lake import Lake
from log_lake.stores import open_store
from log_lake.stores.guard import guarded
from log_lake.stores.locked import LockedStore
from log_lake.stores.memory import MemoryStore

OPTIONS = {"key": "AKIA", "secret": "hush", "client_kwargs": {"region_name": "eu-north-1"}}


def test_the_address_of_a_bucket_carries_the_options_and_does_not_show_them() -> None:
    address = address_of(guarded(open_store("s3://bucket/lake", OPTIONS)))
    assert address == Address("s3://bucket/lake", OPTIONS)
    assert "hush" not in repr(address)
    assert address_of(open_store(pickle.loads(pickle.dumps(address)))) == address


def test_a_lock_that_was_an_option_travels_and_one_of_the_environment_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = f"file://{tmp_path}/locks"
    address = address_of(guarded(open_store(str(tmp_path / "lake"), {"lock": lock})))
    assert address.options == {"lock": lock}
    assert isinstance(open_store(address), LockedStore)
    monkeypatch.setenv("LAKE_LOCK", lock)
    assert address_of(open_store(str(tmp_path / "lake"))).options == {}


def test_a_lake_opens_by_the_address_of_its_store(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    assert Lake.open(address_of(lake.store)).id == lake.id


def test_a_store_of_the_users_own_has_its_uri_for_an_address() -> None:
    store = MemoryStore()
    assert address_of(store) == Address(store.uri)
