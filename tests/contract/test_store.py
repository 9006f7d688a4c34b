"""What every store promises (lake_core.store.port), held against each of them alike."""

from __future__ import annotations

import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lake_core.errors import Corrupt, InvalidInput, NotFound
from lake_core.naming import SMALL
from lake_core.store import Created, Store
from lake_core.store.probe import probe_create
from log_lake.lake import Lake
from log_lake.stores import open_store
from log_lake.stores.listing import PAGE
from tests.contract.conftest import LOCKED, PLACES, Place
from tests.support.racers import race_processes, race_threads

NAMES = ["a/1", "a/2", "a/10", "a/b/1", "ab/1", "b.c/$d/\u00e9 e"]


def listed(store: Store, prefix: str, *, after: str = "") -> list[str]:
    return [found.name for found in store.list(prefix, after=after)]


# ---------------------------------------------------------------- create-only


def test_a_name_is_created_once_and_keeps_what_was_first_there(store: Store) -> None:
    assert store.create("j/1", b"first") is Created.YES
    assert store.create("j/1", b"second") is Created.EXISTS
    assert store.get("j/1") == b"first"


def test_what_is_created_is_seen_by_every_other_client(store: Store, place: Place) -> None:
    other = place.open()
    assert other.get("j/1") is None
    assert listed(other, "j") == []
    store.create("j/1", b"x")
    assert other.get("j/1") == b"x"
    assert listed(other, "j") == ["j/1"]
    assert other.create("j/1", b"y") is Created.EXISTS


def test_a_name_that_was_deleted_can_be_created_again(store: Store) -> None:
    store.create("j/1", b"x")
    store.delete("j/1")
    assert store.get("j/1") is None
    assert store.create("j/1", b"y") is Created.YES


def test_bytes_come_back_as_they_went_in(store: Store) -> None:
    for name, data in [("zeros", b"\0" * 10), ("all", bytes(range(256))), ("large", b"0123456789" * 300_000)]:
        assert store.create(name, data) is Created.YES
        assert store.get(name) == data


def test_a_create_does_not_overwrite_what_was_put_or_streamed(store: Store) -> None:
    store.put("hint", b"put")
    with store.open_output("data/1") as file:
        file.write(b"streamed")
    assert store.create("hint", b"x") is Created.EXISTS
    assert store.create("data/1", b"x") is Created.EXISTS


@pytest.mark.slow
def test_of_16_threads_that_race_for_a_name_one_wins(store: Store) -> None:
    names = [f"race/{n:03d}" for n in range(25)]
    racers = [f"thread {t}" for t in range(16)]
    won = race_threads(store, names, racers=racers, start=threading.Barrier(1))
    assert {name: len(winners) for name, winners in won.items()} == dict.fromkeys(names, 1)
    assert {name: store.get(name) for name in names} == {name: won[name][0].encode() for name in names}


@pytest.mark.parametrize("place", [kind for kind in PLACES if kind != "memory"], indirect=True)
@pytest.mark.slow
def test_of_16_racers_in_2_processes_one_wins(place: Place) -> None:
    names = [f"race/{n:03d}" for n in range(25)]
    won = race_processes(place.uri, place.options, names, processes=2, threads=8)
    assert {name: len(winners) for name, winners in won.items()} == dict.fromkeys(names, 1)
    store = place.open()
    assert {name: store.get(name) for name in names} == {name: won[name][0].encode() for name in names}


def test_a_store_that_keeps_the_promise_may_hold_a_lake(place: Place) -> None:
    lake = Lake.create(place.uri, options=place.options)
    assert Lake.open(place.uri, options=place.options).id == lake.id
    assert listed(place.open(), "") == ["lake.json"]


def test_the_probe_leaves_nothing_behind(store: Store) -> None:
    probe_create(store, name="probe")
    assert store.get("probe") is None


def test_where_nothing_was_made_there_is_no_lake(place: Place) -> None:
    with pytest.raises(NotFound):
        Lake.open(place.uri, options=place.options)


# ---------------------------------------------------------------- hints


def test_a_put_overwrites_what_was_there(store: Store) -> None:
    for text in (b"1", b"22", b"3"):
        store.put("j/HEAD", text)
        assert store.get("j/HEAD") == text


# ---------------------------------------------------------------- listing


def test_a_folder_is_listed_by_name_with_sizes_and_all_that_is_below(store: Store) -> None:
    for size, name in enumerate(NAMES, start=1):
        store.create(name, b"x" * size)
    assert [(found.name, found.size) for found in store.list("a")] == [
        ("a/1", 1),
        ("a/10", 3),
        ("a/2", 2),
        ("a/b/1", 4),
    ]
    assert list(store.list("a/")) == list(store.list("a"))
    assert listed(store, "") == sorted(NAMES)
    assert listed(store, "b.c") == [NAMES[-1]]


def test_a_listing_begins_after_a_name_which_need_not_be_there(store: Store) -> None:
    for n in (1, 2, 3, 5):
        store.create(f"j/{n}", b"x")
    assert listed(store, "j", after="j/2") == ["j/3", "j/5"]
    assert listed(store, "j", after="j/4") == ["j/5"]
    assert listed(store, "j", after="j/5") == []
    assert listed(store, "j", after="a") == ["j/1", "j/2", "j/3", "j/5"]


@pytest.mark.slow
@pytest.mark.parametrize("place", [kind for kind in PLACES if kind not in LOCKED], indirect=True)
def test_a_listing_of_more_names_than_an_answer_holds_is_whole_and_begins_anywhere(place: Place) -> None:
    store = place.open()
    names = [f"j/{n:04d}" for n in range(PAGE + 5)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: store.put(name, b"x"), names))
    assert listed(store, "j") == names
    assert listed(store, "j", after=names[2]) == names[3:]
    assert listed(store, "j", after=names[-3]) == names[-2:]


def test_a_folder_of_nothing_lists_nothing(store: Store) -> None:
    store.create("a/1", b"x")
    assert listed(store, "b") == []
    assert listed(store, "a/1") == []
    assert listed(store, "a/1/2") == []


def test_a_listing_sees_what_was_created_and_deleted_since_the_last(store: Store) -> None:
    for n in range(3):
        store.create(f"j/{n}", b"x")
        assert listed(store, "j") == [f"j/{i}" for i in range(n + 1)]
    store.delete("j/1")
    assert listed(store, "j") == ["j/0", "j/2"]


@pytest.mark.parametrize("name", ["p/journal/HEAD", "p/leases/x.lease", "p/given-up", "p/parked/x.json"])
def test_an_object_that_is_too_large_to_be_read_whole_is_corrupt(store: Store, name: str) -> None:
    store.put(name, b"1" * SMALL)
    assert store.get(name) == b"1" * SMALL
    store.put(name, b"1" * (SMALL + 1))
    with pytest.raises(Corrupt, match=f"{name}: 1,048,577 bytes; such an object has at most 1,048,576"):
        store.get(name)
    store.put(name, b"")
    assert store.get(name) == b""


def test_a_listing_says_when_each_object_was_written_by_the_clock_of_the_store(store: Store) -> None:
    def modified(name: str) -> float:
        return next(found.modified for found in store.list("a") if found.name == name)

    store.create("a/1", b"x")
    first = modified("a/1")
    assert abs(first - time.time()) < 3600  # seconds since 1970, of this hour
    time.sleep(1.1)  # clocks of stores tell seconds
    store.create("a/2", b"x")
    assert modified("a/2") > first == modified("a/1")
    store.put("a/1", b"y")
    assert modified("a/1") >= modified("a/2")


# ---------------------------------------------------------------- many deletions


def test_many_objects_are_deleted_at_once_and_those_that_are_missing_are_skipped(store: Store) -> None:
    for name in NAMES:
        store.create(name, b"x")
    store.delete_all([NAMES[0], "no/such/object", NAMES[-1], NAMES[3]])
    assert listed(store, "") == sorted([NAMES[1], NAMES[2], NAMES[4]])
    store.delete_all([])
    store.delete_all(NAMES)
    assert listed(store, "") == []


@pytest.mark.slow
@pytest.mark.parametrize("place", [kind for kind in PLACES if kind not in LOCKED], indirect=True)
def test_more_objects_than_a_request_may_name_are_deleted(place: Place) -> None:
    store = place.open()
    names = [f"j/{n:04d}" for n in range(PAGE + 5)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: store.put(name, b"x"), names))
    store.delete_all(names[:-1])
    assert listed(store, "j") == names[-1:]


# ---------------------------------------------------------------- missing objects


def test_what_is_missing_is_none_and_to_delete_it_is_nothing(store: Store) -> None:
    assert store.get("nothing") is None
    assert store.get("no/such/folder/nothing") is None
    store.delete("nothing")
    store.delete("no/such/folder/nothing")


def test_a_folder_is_not_an_object(store: Store) -> None:
    store.create("a/b", b"x")
    assert store.get("a") is None


def test_to_open_what_is_missing_is_file_not_found(store: Store) -> None:
    with pytest.raises(FileNotFoundError):
        store.open_input("data/nothing")


# ---------------------------------------------------------------- streams


def test_an_object_is_read_at_any_position(store: Store) -> None:
    data = bytes(range(256)) * 20_000
    store.create("data/1", data)
    with store.open_input("data/1") as file:
        assert file.size() == len(data)
        for position, length in [
            (0, 4),
            (len(data) - 8, 8),
            (3_000_001, 70_000),
            (5, 0),
            (len(data) - 2, 100),
        ]:
            file.seek(position)
            assert file.read(length) == data[position : position + length]


def test_a_written_object_appears_whole_when_its_block_ends(store: Store, place: Place) -> None:
    with store.open_output("data/1") as file:
        for _ in range(7):
            file.write(b"0123456789" * 100_000)
        assert place.open().get("data/1") is None
        assert listed(place.open(), "data") == []
    assert store.get("data/1") == b"0123456789" * 700_000
    assert listed(place.open(), "data") == ["data/1"]


@pytest.mark.parametrize("size", [10, 60 << 20], ids=["small", "of several parts"])
def test_an_object_whose_block_raised_never_appears(
    store: Store, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    def write() -> None:
        with store.open_output("data/1") as file:
            file.write(b"x" * size)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    gc.collect()  # what a collected file may still do to finish itself
    assert complaints == []
    assert store.get("data/1") is None
    assert listed(store, "") == []


def test_a_name_that_leads_out_of_the_store_is_refused(store: Store) -> None:
    for name in ("../a", "/a", "a/../b", "a//b", "a/.", ""):
        for call in (
            lambda name: store.get(name),
            lambda name: store.create(name, b"x"),
            lambda name: store.put(name, b"x"),
            lambda name: store.delete(name),
            lambda name: store.delete_all([name]),
            lambda name: store.open_input(name),
            lambda name: store.open_output(name).__enter__(),
        ):
            with pytest.raises(Corrupt, match="lead out"):
                call(name)
    with pytest.raises(Corrupt, match="lead out"):
        listed(store, "../a")
    assert listed(store, "") == []


def test_a_uri_that_names_no_store_is_refused() -> None:
    for uri in ("", "ftp://host/lake", "s3:///lake"):
        with pytest.raises(InvalidInput):
            open_store(uri)
