"""Names and ids: spelled and parsed in one place."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lake_core import naming
from lake_core.errors import InvalidInput
from lake_core.ids import EPOCH, TICK, IdSource, id_time, is_id
from lake_core.naming import check_pool_name, entry_version, split_pool


def test_every_object_of_a_lake_has_the_name_that_the_format_gives_it() -> None:
    assert naming.LAKE_FILE == "lake.json"
    assert naming.entry(naming.POOLS_JOURNAL, 7) == "pools/00000000000000000007.txn"
    assert naming.pool_journal("ID") == "ID/journal"
    assert naming.head("ID/journal") == "ID/journal/HEAD"
    assert naming.tail("ID/journal") == "ID/journal/TAIL"
    assert naming.data_object("ID", "OBJECT") == "ID/data/OBJECT.parquet"
    assert naming.data_object("ID", "OBJECT.zst") == "ID/data/OBJECT.zst"
    assert naming.published("ID", "iceberg", "main") == "ID/published/iceberg/main"
    assert naming.pack("PLAN", 7) == "packs/PLAN.07.json"


def test_a_branch_of_any_name_is_a_folder_of_plain_letters() -> None:
    names = ["main", "v1.2_a-b", "a~b", "ä#?%", ".", "..", "~2e", "\udcff"]
    folders = [naming.published("ID", "iceberg", name).rpartition("/")[2] for name in names]
    assert folders == ["main", "v1.2_a-b", "a~7eb", "~c3~a4~23~3f~25", "~2e", "~2e~2e", "~7e2e", "~ed~b3~bf"]


def test_names_of_entries_sort_as_their_numbers() -> None:
    numbers = [1, 9, 10, 99, 100, 10**15, 10**19]
    names = [naming.entry("j", n) for n in numbers]
    assert names == sorted(names)
    assert [entry_version(name) for name in names] == numbers


@pytest.mark.parametrize(
    "name",
    [
        "",
        "j/HEAD",
        "j/1.txn",
        "j/00000000000000000001",
        "j/00000000000000000001.txn.tmp",
        "j/" + "\u00b2" * 20 + ".txn",
    ],
)
def test_what_is_no_entry_has_no_number(name: str) -> None:
    assert entry_version(name) is None


def test_ids_are_27_letters_that_sort_by_the_second_in_which_they_were_made() -> None:
    early = [IdSource(clock=lambda: 1_700_000_000.9).new() for _ in range(3)]
    late = [IdSource(clock=lambda: 1_700_000_001.0).new() for _ in range(3)]
    assert max(early) < min(late)
    assert all(is_id(id) for id in early + late)
    assert id_time(early[0]) == datetime.fromtimestamp(1_700_000_000, UTC)


def test_an_id_is_what_segments_ksuid_tool_makes_of_the_same_second_and_chance() -> None:
    chance = bytes.fromhex("B5A1CD34B5F99D1154FB6853345C9735")  # the example of its README
    fraction = int.from_bytes(chance[:2], "big") * TICK
    id = IdSource(clock=lambda: EPOCH + 107_608_047 + fraction, entropy=lambda size: chance).new()
    assert id == "0ujtsYcgvSTl8PAuAdqWYSMnLOv"
    assert id_time(id) == datetime(2017, 10, 10, 4, 0, 47, tzinfo=UTC)


@pytest.mark.parametrize("second", [EPOCH, EPOCH + 2**32 - 1])
@pytest.mark.parametrize("chance", [b"\0", b"\xff"], ids=["least", "greatest"])
def test_the_first_and_the_last_id_have_27_letters_and_their_second(second: int, chance: bytes) -> None:
    id = IdSource(clock=lambda: second, entropy=lambda size: chance * size).new()
    assert is_id(id)
    assert id_time(id) == datetime.fromtimestamp(second, UTC)


def test_ids_of_one_clock_sort_by_fractions_of_a_second() -> None:
    ids = [IdSource(clock=lambda at=n: 1_700_000_000.0 + at * 2 * TICK).new() for n in range(1000)]  # type: ignore[misc]
    assert ids == sorted(ids)


def test_ids_of_one_second_differ() -> None:
    source = IdSource(clock=lambda: 1_700_000_000.0)
    assert len({source.new() for _ in range(1000)}) == 1000


def test_an_id_is_a_function_of_clock_and_entropy() -> None:
    source = IdSource(clock=lambda: 1_700_000_000.0, entropy=lambda size: b"\x07" * size)
    assert source.new() == source.new()


@pytest.mark.parametrize("text", ["", "a" * 26, "a" * 28, "a" * 26 + "-", "a" * 26 + "\u00e9"])
def test_a_text_of_another_form_is_no_id(text: str) -> None:
    assert not is_id(text)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("logs", ("logs", "")),
        ("logs.$nokey", ("logs", "$nokey")),
        ("a.b.$rejected", ("a.b", "$rejected")),
        ("a.b", ("a.b", "")),
        ("$nokey", ("$nokey", "")),
    ],
)
def test_a_sub_pool_is_named_behind_its_pool(name: str, parts: tuple[str, str]) -> None:
    assert split_pool(name) == parts


@pytest.mark.parametrize("name", ["flights", "a.b-c_d", "\u65e5\u672c", "x" * 255, "1", "-a"])
def test_a_stored_pool_may_be_called(name: str) -> None:
    assert check_pool_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "x" * 256, "a b", "a\n", "a@1", "a:log", "a.$nokey", "a/b", 'a"b', "a'b", "a\x00b"]
)
def test_a_stored_pool_may_not_be_called(name: str) -> None:
    with pytest.raises(InvalidInput, match="pool name"):
        check_pool_name(name)


def test_nobody_gives_a_name_that_reads_as_an_option() -> None:
    assert naming.check_chosen_name("a-", what="pool") == "a-"
    with pytest.raises(InvalidInput, match="takes it for an option"):
        naming.check_chosen_name("-a", what="pool")


def test_a_branch_named_parked_publishes_files_of_any_size() -> None:
    metadata = f"{naming.published('pool', 'iceberg', 'parked')}/metadata/v1.metadata.json"
    assert naming.most_bytes(metadata) == naming.LARGEST
    assert naming.most_bytes(naming.parked("pool", "digest")) == naming.SMALL
