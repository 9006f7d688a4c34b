"""A data object is damaged anywhere: whoever reads it gets the right answer or one error of the lake in one line.

Each case is a seed.  The pool is small enough to be damaged in every part (pages, page index, footer), and is read
by everything that reads: scan, get, SQL, explain, compaction, the tombstones agent, inspection.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import Corrupt, LakeError
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.lake.feed import read_object
from log_lake.lake.pool import Pool
from log_lake.objects import checksums, metadata
from log_lake.objects.located import Located
from log_lake.reading.limits import ScanLimits
from log_lake.rewriting.compaction import compact
from log_lake.system_tables.inspection import inspect_object
from log_lake.system_tables.sql import query

ROWS = 9_000  # two row groups
SEEDS = 40
NATIVE = ScanLimits(min_datafusion_rows=1)
"""Everything that DataFusion can merge is merged by it."""

Records = list[tuple[int, str]]


def content(number: int) -> pa.Table:
    keys = list(range(number, 3 * ROWS, 3))
    return pa.table({"k": keys, "v": [f"{(k * 2654435761) % 2**32:x}" for k in keys]})


def rows(table: pa.Table) -> Records:
    return list(zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True))


EXPECTED: Records = sorted(
    (row for number in range(3) for row in rows(content(number))), key=lambda row: row[0]
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a pool of three objects that overlap, and a delete that is not applied."""
    folder = tmp_path_factory.mktemp("sound")
    pool = Lake.create(str(folder), author="test").create_pool("p", key="k")
    for number in range(3):
        pool.branch().append(content(number))
    return folder


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "lake"))


def opened(folder: Path, limits: ScanLimits | None = None) -> Pool:
    lake = Lake.open(str(folder), author="test")
    return Lake(lake.store, lake.id, author="test", limits=limits or ScanLimits()).pool("p")


def objects(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/data/*.parquet"))


def flip(data: bytes, chance: random.Random) -> bytes:
    at, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
    return data[:at] + bytes((data[at] ^ bit,)) + data[at + 1 :]


def flip_in_the_footer(data: bytes, chance: random.Random) -> bytes:
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:begin] + flip(data[begin:], chance)


def truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def zero(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    size = min(4096, len(data) - at)
    return data[:at] + b"\0" * size + data[at + size :]


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "a bit flipped": flip,
    "a bit of the footer flipped": flip_in_the_footer,
    "cut off": truncate,
    "a page of zeros": zero,
}


def scanned(pool: Pool) -> Records:
    return rows(pool.at().to_table())


def of_feed(pool: Pool) -> Records:
    found = []
    for reference in pool.at().references:
        for table in read_object(
            pool.store,
            pool_id=pool.config.id,
            located=Located.of(reference),
            key=pool.config.key,
            columns=["k", "v"],
        ):
            found += rows(table)
    return sorted(found, key=lambda row: row[0])


def compacted(pool: Pool) -> Records:
    branch = pool.branch()
    compact(branch, pool.at().references)
    return scanned(pool)


def one_by_one(pool: Pool) -> Records:
    view = pool.at()
    for key in range(0, 3 * ROWS, 5_000):
        wanted = [row for row in EXPECTED if row[0] == key]
        assert rows(view.get(key)) == wanted
        explained = view.explain(view.key_range(low=key, high=key + 1))
        assert [(r["k"], r["v"]) for r in (json.loads(v.record) for v in explained)] == wanted
    return EXPECTED


def by_sql(pool: Pool) -> Records:
    return rows(query(Lake.open_on(pool.store, author="test"), "SELECT k, v FROM p ORDER BY k").read_all())


def applied(pool: Pool) -> Records:
    branch = pool.branch()
    branch.delete(where="v = 'ffffffff' or v = 'none'")
    tombstones.apply(branch, now=branch.context.now(), at_once=True)
    return scanned(pool)


READS: dict[str, Callable[[Pool], Records]] = {
    "scan": scanned,
    "feed": of_feed,
    "get and explain": one_by_one,
    "SQL": by_sql,
    "compact": compacted,
    "apply tombstones": applied,
}


def one_line(error: LakeError) -> str:
    """The class of an error whose message is one line."""
    assert "\n" not in str(error), error
    return type(error).__name__


def outcome(read: Callable[[Pool], Records], folder: Path, limits: ScanLimits | None = None) -> str:
    """The class of the error, or "right"; anything else fails."""
    try:
        found = read(opened(folder, limits))
    except LakeError as error:
        return one_line(error)
    assert found == EXPECTED, f"{len(found)} records, and no error"
    return "right"


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
@pytest.mark.parametrize("limits", [None, NATIVE], ids=["Arrow", "DataFusion"])
def test_a_sound_pool_is_read(copy: Path, read: Callable[[Pool], Records], limits: ScanLimits | None) -> None:
    assert outcome(read, copy, limits) == "right"


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_object_is_an_error_or_does_not_matter(
    sound: Path, tmp_path: Path, damage: Callable[..., bytes]
) -> None:
    seen = Counter[str]()
    for seed in range(SEEDS):
        chance = random.Random(seed)
        folder = Path(shutil.copytree(sound, tmp_path / str(seed)))
        victim = objects(folder)[chance.randrange(3)]
        victim.write_bytes(damage(victim.read_bytes(), chance))
        limits = chance.choice((None, NATIVE))
        name = chance.choice(list(READS))
        seen[outcome(READS[name], folder, limits)] += 1
        _inspect(folder, victim)
        shutil.rmtree(folder)
    assert seen.keys() <= {"right", "Corrupt"}
    assert seen["Corrupt"] > SEEDS / 2


def _inspect(folder: Path, victim: Path) -> None:
    with contextlib.suppress(Corrupt):
        inspect_object(Lake.open(str(folder)).store, str(victim.relative_to(folder)))


@pytest.mark.parametrize("limits", [None, NATIVE], ids=["Arrow", "DataFusion"])
@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_an_object_in_the_place_of_another_is_noticed(
    copy: Path, read: Callable[[Pool], Records], limits: ScanLimits | None
) -> None:
    first, second, _ = objects(copy)
    first_bytes = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(first_bytes)
    assert outcome(read, copy, limits) == "Corrupt"


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_file_of_another_schema_in_the_place_of_an_object_is_noticed(
    copy: Path, read: Callable[[Pool], Records]
) -> None:
    pq.write_table(pa.table({"other": [1, 2, 3]}), objects(copy)[1])
    assert outcome(read, copy) == "Corrupt"


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_an_object_that_is_gone_is_missing(copy: Path, read: Callable[[Pool], Records]) -> None:
    objects(copy)[1].unlink()
    assert outcome(read, copy) == "ObjectMissing"


def test_every_bit_of_a_small_object_counts_whoever_reads_it(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path), author="test")
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1, 2], "v": ["x", "y"]}))
    (victim,) = objects(tmp_path)
    whole = victim.read_bytes()
    right = 0
    for at in range(0, len(whole)):
        victim.write_bytes(whole[:at] + bytes((whole[at] ^ 1 << at % 8,)) + whole[at + 1 :])
        for limits in (None, NATIVE):
            try:
                found = rows(opened(tmp_path, limits).at().to_table())
            except LakeError as error:
                one_line(error)
            else:
                right += 1
                assert found == [(1, "x"), (2, "y")]
    assert right < 0.1 * 2 * len(whole)


def test_an_object_of_a_time_without_checksums_is_read(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path), author="test")
    lake.create_pool("p", key="k").branch().append(content(0))
    (path,) = objects(tmp_path)
    write_without_checksums(path)
    for limits in (None, NATIVE):
        assert rows(opened(tmp_path, limits).at().to_table()) == rows(content(0))


def write_without_checksums(path: Path) -> None:
    """The object as a program wrote it that knew no checksums."""
    with pq.ParquetFile(path) as file:
        table, pairs = file.read().replace_schema_metadata(None), dict(file.metadata.metadata)
        sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert pairs.pop(checksums.KEY)
    described = metadata.decode(pairs[metadata.KEY], name=str(path))
    pairs[metadata.KEY] = metadata.encode(msgspec.structs.replace(described, data_end=0, blocks=()))
    size = path.stat().st_size
    padding = 0
    for _ in range(3):  # the reference says how many bytes the object has
        with pq.ParquetWriter(
            path,
            table.schema,
            compression="zstd",
            compression_level=19,
            use_dictionary=False,
            column_encoding={"k": "DELTA_BINARY_PACKED", "v": "PLAIN"},
            store_schema=False,
            write_page_index=True,
            write_page_checksum=True,
        ) as writer:
            writer.write_table(table, row_group_size=sizes[0])
            writer.add_key_value_metadata({**pairs, b"padding": b"-" * padding})
        padding += size - path.stat().st_size
        assert padding > 0
    assert path.stat().st_size == size
