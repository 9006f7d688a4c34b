"""The list of pools and what can be set on them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.catalog import Catalog, PoolsState
from lake_core.catalog.pools import fold_pools
from lake_core.context import Context
from lake_core.errors import AlreadyExists, Corrupt, InvalidInput, NotFound
from lake_core.keys import PoolKey
from lake_core.keys.spec import KeyField
from lake_core.records import ConfigurePool, CreatePool, DropPool, PoolAction, PoolsEntry, RenamePool
from lake_core.records.pools import PoolConfig
from lake_core.store import Store
from log_lake.settings import Settings
from log_lake.settings.settings import KNOWN, check_pool, check_settings
from tests.support.records import an_id, fixed_ids
from tests.support.stores import ScriptedStore

KEY = PoolKey.parse("k")
FIRST = naming.entry("pools", 1)


def pool(n: int, name: str, **settings: str) -> PoolConfig:
    return PoolConfig(an_id(n), name, KEY, settings=settings)


def catalog(store: Store, second: float = 1_700_000_000.0) -> Catalog:
    return Catalog(Context(store, "", fixed_ids(second), "test"), check=check_pool)


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


def names(store: Store) -> dict[str, str]:
    return dict(catalog(store).load().state.names.items())


def test_pools_are_found_by_name(store: ScriptedStore) -> None:
    ours = catalog(store)
    assert ours.create(pool(1, "a")) == 1
    assert ours.create(pool(2, "b")) == 2
    assert catalog(store).load().state.named("b") == pool(2, "b")
    with pytest.raises(NotFound, match="there are: a, b"):
        ours.load().state.named("c")


def test_a_name_is_taken_once(store: ScriptedStore) -> None:
    catalog(store).create(pool(1, "a"))
    with pytest.raises(AlreadyExists, match="'a'"):
        catalog(store, 1_800_000_000.0).create(pool(2, "a"))
    assert names(store) == {"a": an_id(1)}


@pytest.mark.parametrize("name", ["_seq", "a\0b", "x" * 1025, "\ud800"])
def test_a_pool_whose_key_no_record_can_have_is_not_made(store: ScriptedStore, name: str) -> None:
    with pytest.raises(InvalidInput, match="field"):
        catalog(store).create(PoolConfig(an_id(1), "a", PoolKey((KeyField(name),))))
    summed = PoolConfig(an_id(1), "a", KEY, "aggregate", aggregates={name: "sum"})
    with pytest.raises(InvalidInput, match="field"):
        catalog(store).create(summed)
    assert names(store) == {}


def test_of_two_who_create_a_name_at_once_one_is_told_that_it_exists(store: ScriptedStore) -> None:
    store.on("create", FIRST, before=lambda: catalog(store.behind, 1_800_000_000.0).create(pool(2, "a")))
    with pytest.raises(AlreadyExists):
        catalog(store).create(pool(1, "a"))
    assert names(store) == {"a": an_id(2)}


def test_two_who_create_different_names_at_once_both_do(store: ScriptedStore) -> None:
    store.on("create", FIRST, before=lambda: catalog(store.behind, 1_800_000_000.0).create(pool(2, "b")))
    assert catalog(store).create(pool(1, "a")) == 2
    assert names(store) == {"a": an_id(1), "b": an_id(2)}


def test_a_rename_moves_the_label_and_keeps_the_pool(store: ScriptedStore) -> None:
    ours = catalog(store)
    ours.create(pool(1, "a", description="x"))
    ours.rename("a", "b")
    assert ours.load().state.named("b") == pool(1, "b", description="x")
    assert names(store) == {"b": an_id(1)}


def test_a_rename_to_a_taken_or_impossible_name_is_refused(store: ScriptedStore) -> None:
    ours = catalog(store)
    ours.create(pool(1, "a"))
    ours.create(pool(2, "b"))
    with pytest.raises(AlreadyExists):
        ours.rename("a", "b")
    with pytest.raises(InvalidInput):
        ours.rename("a", "b/c")
    with pytest.raises(NotFound):
        ours.rename("c", "d")


def test_a_dropped_name_is_free_again(store: ScriptedStore) -> None:
    ours = catalog(store)
    ours.create(pool(1, "a"))
    ours.drop(pool(1, "a"))
    assert names(store) == {}
    ours.create(pool(2, "a"))
    assert names(store) == {"a": an_id(2)}
    with pytest.raises(NotFound, match="another command dropped it"):
        ours.drop(pool(1, "a"))
    assert names(store) == {"a": an_id(2)}


def test_a_pool_is_dropped_whatever_its_name_became_meanwhile(store: ScriptedStore) -> None:
    ours = catalog(store)
    ours.create(pool(1, "a"))
    store.on("create", "2.txn", before=lambda: catalog(store.behind, 1_700_000_001.0).rename("a", "b"))
    ours.drop(pool(1, "a"))
    assert names(store) == {}


def test_settings_change_one_by_one_and_an_empty_value_goes_back_to_the_default(store: ScriptedStore) -> None:
    ours = catalog(store)
    ours.create(pool(1, "a", description="x"))
    ours.configure("a", {"bad_records": "quarantine", "load.memory": "1GiB"})
    ours.configure("a", {"description": "", "load.memory": "2GiB"})
    assert ours.load().state.named("a").settings == {"bad_records": "quarantine", "load.memory": "2GiB"}


def test_an_unknown_setting_changes_nothing(store: ScriptedStore) -> None:
    ours = catalog(store)
    with pytest.raises(InvalidInput, match="color"):
        ours.create(pool(1, "a", color="red"))
    ours.create(pool(1, "a"))
    with pytest.raises(InvalidInput, match="there are: age_off"):
        ours.configure("a", {"description": "x", "color": "red"})
    assert ours.load().state.named("a") == pool(1, "a")


# ---------------------------------------------------------------- the fold is total

EXISTING = (CreatePool(pool(1, "a")), CreatePool(pool(2, "b")))


@pytest.mark.parametrize(
    "action",
    [
        CreatePool(pool(3, "a")),
        CreatePool(pool(1, "c")),
        RenamePool(an_id(1), "b"),
        RenamePool(an_id(9), "c"),
        DropPool(an_id(9)),
        ConfigurePool(an_id(9), {}),
    ],
    ids=repr,
)
def test_an_action_that_does_not_fit_the_list_is_corrupt(action: PoolAction) -> None:
    state = fold_pools(PoolsState(), 1, PoolsEntry(an_id(7), 0, "test", EXISTING))
    with pytest.raises(Corrupt, match="entry 2"):
        fold_pools(state, 2, PoolsEntry(an_id(8), 0, "test", (action,)))


def test_a_state_is_not_changed_by_what_is_folded_onto_it() -> None:
    state = fold_pools(PoolsState(), 1, PoolsEntry(an_id(7), 0, "test", EXISTING))
    fold_pools(state, 2, PoolsEntry(an_id(8), 0, "test", (DropPool(an_id(1)), RenamePool(an_id(2), "c"))))
    assert dict(state.names.items()) == {"a": an_id(1), "b": an_id(2)}


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("load.memory", "1GiB", 2**30),
        ("load.memory", "500 MB", 500_000_000),
        ("load.memory", "64k", 64_000),
        ("load.memory", "7", 7),
        ("ingest.batch_files", "3", 3),
        ("ingest.batch_age", "90s", 90.0),
        ("ingest.batch_age", "1.5h", 5400.0),
        ("ingest.batch_age", "7d", 604_800.0),
        ("bad_records", "quarantine", "quarantine"),
        ("ingest.format", "csv", "csv"),
        ("csv.date_format", "%d.%m.%y", "%d.%m.%y"),
        ("csv.date_format", "%a %d %B %Y", "%a %d %B %Y"),
        ("csv.date_format", "%Y-%j", "%Y-%j"),
        ("csv.date_format", "100%% %Y%m%d", "100%% %Y%m%d"),
        ("csv.time_format", "%Y%m%dT%H%M%S.%f%z", "%Y%m%dT%H%M%S.%f%z"),
        ("csv.time_format", "%Y-%m-%d %H", "%Y-%m-%d %H"),
        ("csv.time_format", "%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M:%S %p"),
        ("intervals.source", "/landing/%Y-%m-%d/*.csv", "/landing/%Y-%m-%d/*.csv"),
        ("history.keep", "365000d", 365_000 * 86_400.0),
        ("csv.encoding", "UTF-16", "utf-16"),
        ("csv.encoding", "shift_jis", "shift_jis"),
        ("csv.encoding", "cp037", "cp037"),
    ],
)
def test_a_setting_is_read_as(name: str, text: str, value: Any) -> None:
    check_settings({name: text}, kind="append", key=PoolKey.parse("k"))
    assert Settings({name: text})[name] == value
    assert Settings({name: text}).text(name) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("load.memory", "0"),
        ("load.memory", "-1MB"),
        ("load.memory", "much"),
        ("ingest.batch_files", "0"),
        ("ingest.batch_files", "\u00b2"),
        ("ingest.batch_age", "soon"),
        ("ingest.batch_age", "5"),
        ("bad_records", "ignore"),
        ("ingest.format", "xml"),
        ("type.a", "blob"),
        ("type.a", "decimal(39,0)"),
        ("type.a", "decimal(5,6)"),
        ("Description", "x"),
        ("description", "\udcff"),
        ("type.\udcff", "int"),
        ("type.a\0b", "int"),
        ("type._seq", "int"),
        ("type.k", "json"),
        ("compact.max_inputs", "1"),
        ("compact.window", "0s"),
        ("compact.window", "0.001s"),
        ("compact.target_size", "1"),
        ("compact.ratio", "nan"),
        ("history.keep", "9" * 30 + "d"),
        ("history.keep", "366001d"),
        ("load.memory", "9" * 5000),
        ("checkpoint.entries", "9" * 5000),
        ("bad_records.max", "9" * 5000),
        ("bad_records.max", "\u0661\u0660"),
        ("bad_records.max", " "),
        ("bad_records.max", "101%"),
        ("bad_records.max", "-1"),
        ("intervals.source", "/landing/all.csv"),
        ("intervals.source", "/landing/%%Y.csv"),
        ("csv.encoding", "idna"),
        ("csv.encoding", "punycode"),
        ("csv.encoding", "rot13"),
        ("csv.encoding", "unicode_escape"),
        ("csv.encoding", "undefined"),
        ("csv.date_format", "%Y%Y"),
        ("csv.date_format", "%d.%m"),
        ("csv.date_format", "%Y-%m"),
        ("csv.date_format", "%d.%m.%Y %H:%M"),
        ("csv.date_format", "%d.%m.%Y %z"),
        ("csv.date_format", "today"),
        ("csv.date_format", "%d.%m.%Y%"),
        ("csv.date_format", "%Q"),
        ("csv.time_format", "%%z"),
        ("csv.time_format", "%d.%m.%Y"),
        ("csv.time_format", "%H:%M"),
        ("csv.time_format", "%Y-%m-%d %I:%M"),
        ("csv.time_format", "%Y-%m-%d %H:%M %p"),
        ("csv.time_format", "%Y-%m-%d %H:%S"),
        ("csv.time_format", "%Y-%m-%d %M:%S"),
        ("csv.time_format", "%Y-%m-%d %H:%M %Z"),
        ("csv.time_format", "%Y-%m-%d %H:%M %H"),
    ],
)
def test_a_setting_of_unknown_name_or_impossible_value_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidInput):
        check_settings({name: text}, kind="append", key=PoolKey.parse("k"))


@pytest.mark.parametrize(
    ("kind", "aggregates", "name", "text"),
    [
        ("upsert", {}, "type._deleted", "string"),
        ("aggregate", {"n": "sum"}, "type.n", "string"),
        ("aggregate", {"n": "sum"}, "type.n", "json"),
        ("aggregate", {"n": "max"}, "type.n", "json"),
    ],
)
def test_a_type_that_no_load_could_fulfil_cannot_be_declared(
    kind: str, aggregates: dict[str, str], name: str, text: str
) -> None:
    with pytest.raises(InvalidInput, match=name.removeprefix("type.")):
        check_settings({name: text}, kind=kind, key=PoolKey.parse("k"), aggregates=aggregates)


def test_a_stored_text_that_is_not_accepted_any_more_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"setting compact\.window=0s: use a duration of at least 1s"):
        Settings({"compact.window": "0s"})["compact.window"]


@pytest.mark.parametrize("name", KNOWN)
def test_every_default_can_be_read_and_is_explained(name: str) -> None:
    Settings({})[name]
    assert KNOWN[name].meaning


def test_declared_types_are_fields_by_name() -> None:
    declared = Settings({"type.id.orig_h": "string", "type.d": "Decimal(9, 2)", "description": "x"}).declared
    assert declared == {
        "id.orig_h": pa.field("id.orig_h", pa.string()),
        "d": pa.field("d", pa.decimal128(9, 2)),
    }
