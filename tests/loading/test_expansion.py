"""A file whose content is far larger than the file is refused, in bounded memory, whatever its format."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lake_core.errors import InvalidInput
from log_lake.cli.main import main
from log_lake.loading.block import Reading
from log_lake.loading.detect import read_blocks, read_row_groups
from log_lake.loading.expansion import Expansion, content_of, least_bytes
from log_lake.loading.formats.parquet import BATCH_BYTES, batches
from tests.support.command import Command

LIMIT = 1 << 20
RECORDS = 40_000
LINES = b'{"k":1,"s":"abc"}\n' * 80_000
TABLE = pa.table({"k": pa.array([1] * RECORDS), "s": pa.array(["abc" * 20] * RECORDS)})


def parquet(table: pa.Table, **options: object) -> bytes:
    target = io.BytesIO()
    pq.write_table(table, target, **options)
    return target.getvalue()


def in_orc() -> bytes:
    target = io.BytesIO()
    orc.write_table(TABLE, target, compression="zstd")
    return target.getvalue()


def in_avro() -> bytes:
    import fastavro

    target = io.BytesIO()
    fields = [{"name": "k", "type": "long"}, {"name": "s", "type": "string"}]
    fastavro.writer(
        target, {"type": "record", "name": "r", "fields": fields}, TABLE.to_pylist(), codec="deflate"
    )
    return target.getvalue()


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


CATEGORIES = pa.DictionaryArray.from_arrays(pa.array([0] * 400, pa.int32()), pa.array(["x" * 100_000]))
LISTS = pa.ListArray.from_arrays(pa.array(range(401), pa.int32()), CATEGORIES)

FILES: dict[str, Callable[[], bytes]] = {
    "a.ndjson.gz": lambda: gzip.compress(LINES),
    "a.ndjson.bz2": lambda: bz2.compress(LINES),
    "a.ndjson.xz": lambda: lzma.compress(LINES),
    "a.ndjson.zst": lambda: zstd(LINES),
    "a.json.gz": lambda: gzip.compress(b"[" + b",".join(LINES.splitlines()) + b"]"),
    "a.csv.gz": lambda: gzip.compress(b"k,s\n" + b"1,abc\n" * 300_000),
    "a.zson.gz": lambda: gzip.compress(b'{k:1,s:"abc"}\n' * 100_000),
    "a.parquet": lambda: parquet(TABLE),
    "nulls.parquet": lambda: parquet(pa.table({"k": pa.nulls(2_000_000, pa.int64())})),
    "null.parquet": lambda: parquet(pa.table({"k": pa.nulls(2_000_000)})),
    "text.parquet": lambda: parquet(pa.table({"k": range(400), "s": CATEGORIES}), store_schema=False),
    "categories.parquet": lambda: parquet(pa.table({"k": range(400), "s": CATEGORIES})),
    "lists.parquet": lambda: parquet(pa.table({"k": range(400), "s": LISTS}), store_schema=False),
    "a.parquet.gz": lambda: gzip.compress(parquet(TABLE, compression="none", use_dictionary=False)),
    "a.orc": in_orc,
    "a.avro": in_avro,
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_too_much_content_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(FILES[name]())
    assert file.stat().st_size < LIMIT // 10
    with pytest.raises(InvalidInput) as refused:
        for _ in read_blocks(Reading(str(file), expansion=Expansion(most=2, free=LIMIT))):
            pass
    said = str(refused.value)
    assert said.startswith(f"{file}: ")
    assert "hold more than 1.0 MB of content" in said
    assert "allow more than 2 times its size (expansion.max)" in said
    assert "\n" not in said


@pytest.mark.parametrize("name", FILES)
def test_the_same_file_is_read_if_its_content_may_be_as_large(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(FILES[name]())
    most = 100 * (1 << 20) // file.stat().st_size
    blocks = list(read_blocks(Reading(str(file), expansion=Expansion(most=most, free=0))))
    assert sum(block.table.num_rows for block in blocks) >= 400


def test_a_part_of_a_file_is_held_to_the_same_bound(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(parquet(pa.table({"k": range(400), "s": CATEGORIES}), row_group_size=100))
    with pytest.raises(InvalidInput, match=r"hold more than 1\.0 MB of content"):
        list(read_row_groups(Reading(str(file), expansion=Expansion(most=2, free=LIMIT)), [1, 2]))


def test_a_load_and_a_pool_say_how_large_the_content_may_be(lake: Command) -> None:
    lake.pool("p")
    schema = pa.schema([("k", pa.int64())])
    file = lake.folder / "constant.parquet"
    with pq.ParquetWriter(file, schema) as writer:
        for _ in range(30):
            writer.write_table(pa.table({"k": pa.array([1] * 5_000_000)}))
    said = lake.refuses("p", str(file))
    assert "hold more than 1.1 GB of content" in said
    assert "allow more than 1,000 times its size (expansion.max)" in said
    assert "allow more than 7 times" in lake.fails(9, "load", "p", str(file), "--expansion-max", "7")
    lake("set", "p", "expansion.max=8")
    assert "allow more than 8 times" in lake.fails(9, "load", "p", str(file))
    assert "use a whole number" in lake.fails(9, "set", "p", "expansion.max=0")


def test_a_long_text_of_a_dictionary_is_decoded_for_few_records_at_once(tmp_path: Path) -> None:
    file = tmp_path / "long.parquet"
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * 600_000]))
    pq.write_table(pa.table({"s": long}), file, store_schema=False)
    with pq.ParquetFile(file) as parquet_file, pa.OSFile(str(file)) as source:
        first = next(batches(parquet_file, source, [0]))
        assert 0.5 * BATCH_BYTES < first.nbytes < 1.1 * BATCH_BYTES


@pytest.mark.parametrize("stored", ["True", "False"])
def test_a_load_of_such_a_file_ends_in_bounded_memory(tmp_path: Path, stored: str) -> None:
    """12 GB of content in 150 kB: the load takes less than 2 GB."""
    program = f"""
import pyarrow as pa, pyarrow.parquet as pq
from lake_core.errors import InvalidInput
from log_lake.lake import Lake
long = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * 600_000]))
table = pa.table({{"k": range(20_000), "s": long}})
pq.write_table(table, {str(tmp_path / "bomb.parquet")!r}, store_schema={stored})
pool = Lake.create({str(tmp_path / "lake")!r}).create_pool("p", key="k")
try:
    pool.branch().load([{str(tmp_path / "bomb.parquet")!r}])
except InvalidInput as error:
    with open("/proc/self/status") as status:  # getrusage counts what the process was before it became this one
        print(next(line.split()[1] for line in status if line.startswith("VmHWM:")), error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True
    )
    size, _, said = done.stdout.partition(" ")
    assert "hold more than 1.1 GB of content" in said
    assert int(size) < 2_000_000


def test_a_decompressor_of_xz_takes_no_more_memory_than_is_allowed(tmp_path: Path) -> None:
    data = bytearray(lzma.compress(LINES[:10_000]))
    begin, end = 12, 12 + (data[12] + 1) * 4 - 4  # the header of the block, without its checksum
    assert data[begin + 2 : begin + 4] == b"\x21\x01"
    data[begin + 4] = 38  # a dictionary of 2 GiB
    data[end : end + 4] = zlib.crc32(data[begin:end]).to_bytes(4, "little")
    file = tmp_path / "a.ndjson.xz"
    file.write_bytes(bytes(data))
    with pytest.raises(
        InvalidInput, match=r"a.ndjson.xz: the xz file is damaged or truncated: Memory usage limit"
    ):
        list(read_blocks(Reading(str(file))))


@pytest.mark.parametrize("ending", ["zng", "zst"])
def test_values_of_zng_and_zst_are_held_to_it_too(tmp_path: Path, ending: str) -> None:
    lines, file = tmp_path / "a.ndjson", tmp_path / f"a.{ending}"
    lines.write_bytes(LINES)
    assert main(["convert", str(lines), str(file)]) == 0
    assert file.stat().st_size < LIMIT
    with pytest.raises(InvalidInput, match=r"hold more than 1\.0 MB of content"):
        list(read_blocks(Reading(str(file), expansion=Expansion(most=1, free=LIMIT))))


def test_content_counts_texts_of_dictionaries_as_often_as_they_occur() -> None:
    table = pa.table({"s": CATEGORIES, "l": LISTS, "n": pa.nulls(400)})
    assert content_of(table) >= 2 * 400 * 100_000
    assert content_of(pa.table({"n": pa.nulls(400)})) == 400
    assert least_bytes(pa.schema([("a", pa.int64()), ("s", pa.string()), ("n", pa.null())])) == 12
