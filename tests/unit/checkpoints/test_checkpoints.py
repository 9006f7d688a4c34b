"""Checkpoint files: rows that are found again without reading the rest, and damage that is never folded."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.checkpoints import CheckpointFile, CheckpointFooter, SectionPart, write_checkpoint
from lake_core.checkpoints.content import FREE, TEXTS, most_content
from lake_core.checkpoints.layout import NEWEST, ROW, VERSION, RowGroup, encode_footer, rows
from lake_core.checkpoints.limits import CHECKPOINT_LIMITS
from lake_core.checkpoints.read import _rows_of
from lake_core.checkpoints.write import write_rows
from lake_core.errors import CheckpointDamaged, CheckpointGone, Corrupt, Unavailable
from lake_core.keys import KeyRange
from lake_core.store import Store
from log_lake.stores.memory import MemoryStore
from tests.support.stores import ALWAYS, InPlaceStore, ScriptedStore, unavailable

NAME = "j/marks/some.checkpoint"
HEAD = CheckpointFooter(VERSION, "j", 7, "id")
GROUP_ROWS = CHECKPOINT_LIMITS.group_rows
MANY = 10 * GROUP_ROWS


def number(n: int) -> bytes:
    return n.to_bytes(4, "big")


def references(numbers: range, *, width: int = 1) -> pa.Table:
    return rows(
        key=[number(n) for n in numbers],
        high=[number(n + width) for n in numbers],
        object=[f"object {n}" for n in numbers],
        seq=list(numbers),
    )


def part(
    *tables: pa.Table, section: str = "reference", branch: str = "main", sub_pool: str = ""
) -> SectionPart:
    return SectionPart(section, branch, sub_pool, tables)


def written(*parts: SectionPart, store: Store | None = None) -> CheckpointFile:
    store = store or MemoryStore()
    write_checkpoint(store, NAME, HEAD, parts)
    return CheckpointFile(store, NAME)


def objects(table: pa.Table) -> list[str]:
    return table["object"].to_pylist()


@pytest.fixture(scope="module")
def many() -> bytes:
    """Ten row groups of references, and three small parts."""
    store = MemoryStore()
    tokens = rows(key=[b"a", b"b"], value=[b"1", b"2"])
    dev, nokey = references(range(5)), references(range(3))
    parts = [
        part(tokens, section="token", branch=""),
        part(references(range(MANY))),
        part(nokey, sub_pool="$nokey"),
        part(dev, branch="dev"),
    ]
    write_checkpoint(store, NAME, HEAD, parts)
    return store.get(NAME) or b""


@pytest.fixture
def file(many: bytes) -> CheckpointFile:
    store = MemoryStore()
    store.put(NAME, many)
    return CheckpointFile(store, NAME)


# ---------------------------------------------------------------- finding rows


def test_a_checkpoint_says_whose_state_it_holds(file: CheckpointFile) -> None:
    assert (file.footer.format_version, file.footer.journal, file.footer.version, file.footer.id) == (
        1,
        "j",
        7,
        "id",
    )


def test_a_part_is_read_back_in_order_and_apart_from_others(file: CheckpointFile) -> None:
    read = [key for table in file.scan("reference", branch="main") for key in table["key"].to_pylist()]
    assert read == [number(n) for n in range(MANY)]
    (dev,) = file.scan("reference", branch="dev")
    assert objects(dev) == [f"object {n}" for n in range(5)]
    assert list(file.scan("reference", branch="other")) == []


def test_opening_counting_and_listing_parts_read_no_row_group(file: CheckpointFile) -> None:
    assert file.count("reference", branch="main") == MANY
    assert file.count("reference", branch="main", sub_pool="$nokey") == 3
    assert file.branches("reference") == [("dev", ""), ("main", ""), ("main", "$nokey")]
    assert file.groups_read == 0


@pytest.mark.parametrize("low", [0, GROUP_ROWS - 1, GROUP_ROWS, MANY - 1], ids=str)
def test_a_point_read_of_a_big_checkpoint_reads_the_one_row_group_that_holds_it(
    file: CheckpointFile, low: int
) -> None:
    found = file.overlapping(KeyRange(number(low), number(low + 1)), branch="main", sub_pool="")
    assert objects(found) == [f"object {low}"]
    assert file.groups_read == 1


def test_a_range_reads_the_row_groups_that_it_touches(file: CheckpointFile) -> None:
    span = KeyRange(number(GROUP_ROWS - 2), number(GROUP_ROWS + 1))
    assert objects(file.overlapping(span, branch="main", sub_pool="")) == [
        f"object {n}" for n in (GROUP_ROWS - 2, GROUP_ROWS - 1, GROUP_ROWS)
    ]
    assert file.groups_read == 2


def test_an_open_range_finds_everything_and_an_empty_one_nothing(file: CheckpointFile) -> None:
    assert file.overlapping(KeyRange(), branch="main", sub_pool="").num_rows == MANY
    beyond = KeyRange(number(MANY), None)
    before = file.groups_read
    assert file.overlapping(beyond, branch="main", sub_pool="").num_rows == 0
    assert file.groups_read == before


def test_a_wide_reference_of_an_early_row_group_is_found_by_a_late_key() -> None:
    wide = rows(key=[number(0)], high=[number(MANY)], object=["wide"], seq=[0])
    file = written(part(wide, references(range(1, 3 * GROUP_ROWS))))
    late = 3 * GROUP_ROWS - 5
    found = file.overlapping(KeyRange(number(late), number(late + 1)), branch="main", sub_pool="")
    assert objects(found) == ["wide", f"object {late}"]
    assert file.groups_read == 2


def test_a_key_is_looked_up_in_its_row_group_only(file: CheckpointFile) -> None:
    assert file.at_key("token", b"b")["value"].to_pylist() == [b"2"]
    assert file.groups_read == 1
    assert file.at_key("token", b"c").num_rows == 0
    assert file.at_key("reference", number(77), branch="main")["object"].to_pylist() == ["object 77"]
    assert file.groups_read == 2


def test_rows_of_one_key_are_found_across_row_groups() -> None:
    count = 2 * GROUP_ROWS + 1
    file = written(part(rows(key=[b"k"] * count, high=[b"z"] * count, seq=list(range(count)))))
    assert file.at_key("reference", b"k", branch="main")["seq"].to_pylist() == list(range(count))
    assert file.at_key("reference", b"j", branch="main").num_rows == 0


def test_the_same_question_again_reads_nothing(file: CheckpointFile) -> None:
    for _ in range(3):
        file.at_key("reference", number(77), branch="main")
    assert file.groups_read == 1


# ---------------------------------------------------------------- writing


def test_rows_are_written_as_they_come_and_never_all_at_once() -> None:
    asked: list[int] = []
    file = io.BytesIO()

    def tables() -> Iterator[pa.Table]:
        for start in range(0, MANY, 1000):
            asked.append(file.tell())
            yield references(range(start, start + 1000))

    write_rows(file, HEAD, [SectionPart("reference", "main", "", tables())])
    assert asked[-1] > file.tell() * 0.8, "what came before was in the file when the last rows were asked for"


def test_a_row_group_holds_one_part_and_at_most_so_many_rows(file: CheckpointFile) -> None:
    groups = [g for g in file.footer.groups if (g.branch, g.sub_pool) == ("main", "")]
    assert [g.rows for g in groups] == [GROUP_ROWS] * 10
    assert [g.rows for g in file.footer.groups if g not in groups] == [2, 3, 5]


def test_a_part_without_rows_leaves_no_trace() -> None:
    file = written(part(), part(references(range(0))), part(section="token"))
    assert file.footer.groups == ()
    file.verify()


def test_a_checkpoint_whose_writing_fails_does_not_appear() -> None:
    store = MemoryStore()

    def broken() -> Iterator[pa.Table]:
        yield references(range(10))
        raise Unavailable("gone")

    with pytest.raises(Unavailable):
        write_checkpoint(store, NAME, HEAD, [SectionPart("reference", "main", "", broken())])
    assert store.get(NAME) is None


# ---------------------------------------------------------------- what is gone, damaged or not there now


def test_a_checkpoint_that_is_gone_says_load_again() -> None:
    with pytest.raises(CheckpointGone, match=f"{NAME}.*load again"):
        CheckpointFile(MemoryStore(), NAME)


def test_a_checkpoint_that_is_purged_while_it_is_open_says_load_again() -> None:
    store = InPlaceStore()
    file = written(part(references(range(10))), store=store)
    store.delete(NAME)
    with pytest.raises(CheckpointGone, match=f"{NAME}.*load again"):
        file.verify()


def test_a_store_that_does_not_answer_is_unavailable_and_nothing_is_called_damaged() -> None:
    store = ScriptedStore()
    written(part(references(range(10))), store=store)
    store.on("open_input", NAME, instead=unavailable, times=ALWAYS)
    with pytest.raises(Unavailable):
        CheckpointFile(store, NAME)


def test_a_checkpoint_of_a_newer_version_is_not_read() -> None:
    store = MemoryStore()
    write_checkpoint(store, NAME, CheckpointFooter(NEWEST + 1, "j", 7, "id"), [])
    with pytest.raises(Corrupt, match="newer version"):
        CheckpointFile(store, NAME)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"garbage" * 100, b"PAR1" * 100], ids=repr)
def test_what_is_no_checkpoint_is_corrupt(data: bytes) -> None:
    store = MemoryStore()
    store.put(NAME, data)
    with pytest.raises(Corrupt, match=NAME):
        CheckpointFile(store, NAME)


def test_some_other_parquet_file_is_corrupt() -> None:
    store, other = MemoryStore(), io.BytesIO()
    pq.write_table(pa.table({"k": [1]}), other)
    store.put(NAME, other.getvalue())
    with pytest.raises(Corrupt, match="not a checkpoint"):
        CheckpointFile(store, NAME)


def content(store: Store, damaged: list[str] | None = None) -> Any:
    """All that a checkpoint says."""
    file = CheckpointFile(store, NAME, on_damage=([] if damaged is None else damaged).append)
    tables = [
        t
        for g in dict.fromkeys((g.section, g.branch, g.sub_pool) for g in file.footer.groups)
        for t in _all(file, g)
    ]
    return file.footer, tables


def _all(file: CheckpointFile, group: tuple[str, str, str]) -> list[Any]:
    section, branch, sub = group
    return [table.to_pylist() for table in file.scan(section, branch=branch, sub_pool=sub)]


@pytest.fixture(scope="module")
def small() -> bytes:
    store = MemoryStore()
    tokens = rows(key=[b"a", b"b"], value=[b"1", b"2"])
    write_checkpoint(store, NAME, HEAD, [part(tokens, section="token"), part(references(range(9)))])
    return store.get(NAME) or b""


def test_half_a_checkpoint_is_corrupt_wherever_it_ends(small: bytes) -> None:
    store = MemoryStore()
    for end in range(0, len(small), 5):
        store.put(NAME, small[:end])
        with pytest.raises(Corrupt):
            content(store)


def test_one_turned_bit_is_seen_or_changes_nothing(small: bytes) -> None:
    store = MemoryStore()
    store.put(NAME, small)
    whole, seen = content(store), 0
    for at in range(len(small)):
        store.put(NAME, small[:at] + bytes((small[at] ^ (1 << at % 8),)) + small[at + 1 :])
        try:
            assert content(store) == whole, f"byte {at}"
        except Corrupt:
            seen += 1
    assert seen > len(small) / 2


def test_damage_in_a_row_group_is_told_when_it_is_read(small: bytes) -> None:
    at = small.index(b"PAR1", 0) + 40
    store, damaged = MemoryStore(), list[str]()
    store.put(NAME, small[:at] + bytes((small[at] ^ 0xFF,)) + small[at + 1 :])
    with pytest.raises(CheckpointDamaged, match=rf"{NAME}: row group \d+ of this checkpoint is damaged"):
        content(store, damaged)
    assert damaged == [NAME]


# ---------------------------------------------------------------- content


def bomb(column: str, *, count: int = 1_000, groups: int = 1, section: str = "token") -> bytes:
    """A checkpoint of a few KB, one value of which stands in so many rows of each row group: 1 GB."""
    dictionary = {
        name: pa.dictionary(pa.int32(), kind) for name, kind in zip(ROW.names, ROW.types, strict=True)
    }
    schema = pa.schema(
        [(name, dictionary[name] if name in TEXTS else ROW.field(name).type) for name in ROW.names]
    )
    values = {"section": section, "branch": "", "sub": "", "key": b"k"} | {
        column: b"x" * 1_000_000 if pa.types.is_binary(ROW.field(column).type) else "x" * 1_000_000
    }
    arrays = []
    for field in ROW:
        if field.name in TEXTS:
            there = pa.array([0] * count if field.name in values else [None] * count, pa.int32())
            dense = pa.array(
                [values.get(field.name, b"" if pa.types.is_binary(field.type) else "")], field.type
            )
            arrays.append(pa.DictionaryArray.from_arrays(there, dense))
        else:
            arrays.append(pa.nulls(count, field.type))
    group = RowGroup(section, "", "", first=b"k", last=b"k", reach=b"", rows=count)
    file = io.BytesIO()
    with pq.ParquetWriter(
        file, schema, store_schema=False, compression="zstd", dictionary_pagesize_limit=1 << 30
    ) as writer:
        for _ in range(groups):
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=count)
        writer.add_key_value_metadata(encode_footer(msgspec.structs.replace(HEAD, groups=(group,) * groups)))
    return file.getvalue()


@pytest.mark.parametrize("column", ["value", "key", "schema"])
def test_a_small_checkpoint_whose_rows_hold_a_gigabyte_is_damaged(column: str) -> None:
    store, damaged = MemoryStore(), list[str]()
    store.put(NAME, bomb(column))
    assert len(store.get(NAME) or b"") < 64 << 10
    file = CheckpointFile(store, NAME, on_damage=damaged.append)
    before = pa.total_allocated_bytes()
    with pytest.raises(CheckpointDamaged, match=r"the rows up to it hold more than 268.4 MB"):
        list(file.scan("token"))
    assert damaged == [NAME]
    assert pa.total_allocated_bytes() - before < 1 << 28


def test_small_row_groups_that_hold_much_together_are_damage() -> None:
    """Tags of 1 MB in 178 KB of row groups took 2.4 GB, for the bound was one of each row group."""
    store = MemoryStore()
    store.put(NAME, bomb("value", count=80, groups=4))
    file = CheckpointFile(store, NAME)
    for _ in range(2):  # a group that is read again counts once
        assert [next(file.scan("token")).num_rows for _ in range(3)] == [80] * 3
    with pytest.raises(CheckpointDamaged, match=r"row group 3 .* the rows up to it hold more than 268.4 MB"):
        list(file.scan("token"))


def test_references_of_a_large_pool_hold_much_more_than_the_bound_of_one_row_group() -> None:
    """A reader keeps a few of their row groups, and those of wide records hold 30 times their bytes in the file."""
    store = MemoryStore()
    store.put(NAME, bomb("value", count=200, groups=4, section="reference"))
    file = CheckpointFile(store, NAME)
    for number in range(4):
        assert file._read(number, keep=False).num_rows == 200


@pytest.mark.parametrize(("size", "most"), [(1_000, FREE), (1 << 20, 1_000 << 20), (10 << 20, 1 << 30)])
def test_a_large_checkpoint_may_hold_more_but_not_a_thousand_times_its_bytes(size: int, most: int) -> None:
    assert most_content(size) == most
    assert most_content(10**10) == 2 * 10**11


def test_a_value_that_stands_in_many_rows_is_read_whole() -> None:
    recurring = rows(key=[number(n) for n in range(20_000)], value=[b"x" * 500] * 20_000)
    file = written(part(recurring, section="token", branch=""))
    assert sum(t["value"].to_pylist().count(b"x" * 500) for t in file.scan("token")) == 20_000


def test_a_row_without_a_key_is_damage() -> None:
    keys = [number(1), None, number(3)]
    file = written(part(rows(key=keys, high=keys, object=["a", "b", "c"])))
    with pytest.raises(CheckpointDamaged, match="does not have the rows that the footer lists"):
        file.verify()


@pytest.mark.parametrize(("keys", "fits"), [("abc", True), ("abbc", True), ("ac", False), ("", False)])
def test_rows_that_were_folded_again_replace_a_group_only_if_all_its_keys_are_there(
    keys: str, fits: bool
) -> None:
    group = RowGroup("token", "", "", b"a", b"c", b"", 3)
    table = rows(key=[key.encode() for key in keys])
    parts = {("token", "", ""): table}
    if fits:
        assert _rows_of(0, (group,), parts)["key"].to_pylist() == [key.encode() for key in keys]
        return
    with pytest.raises(Corrupt, match="neither an older checkpoint nor the entries"):
        _rows_of(0, (group,), parts)
