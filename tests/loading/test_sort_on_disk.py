"""Loads larger than load.memory: their memory and disk, where they are cut, and what a full disk does."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Unavailable
from lake_core.keys.encoding import encode_key
from log_lake.lake import Lake
from log_lake.lake.loads import load_blocks
from log_lake.lake.pool import Pool
from log_lake.lake.write import WriteArguments
from log_lake.loading.block import Block
from log_lake.stores.memory import MemoryStore
from tests.support.pools import keys

ROWS = 200_000


def blocks(rows: int = ROWS, *, each: int = 10_000, wide: int = 0) -> Iterator[Block]:
    random = np.random.default_rng(7)
    for at in range(0, rows, each):
        columns: dict[str, Any] = {
            "k": random.integers(0, 1 << 40, each),
            "n": np.arange(at, at + each),
            "text": [f"record {n}" for n in random.integers(0, 1 << 40, each)],
        }
        yield Block(pa.table(columns | {f"f{i}": columns["n"] for i in range(wide)}))


def a_pool(store: MemoryStore | None = None, *, kind: str = "append", **sets: str) -> Pool:
    lake = Lake.create_on(store or MemoryStore())
    return lake.create_pool(
        "p", key="k", kind=kind, settings={k.replace("_", ".", 1): v for k, v in sets.items()}
    )


def load(pool: Pool, some: Iterator[Block], **arguments: Any) -> int:
    return load_blocks(pool.branch(), some, WriteArguments(**arguments)).objects


def test_a_large_load_is_one_run_cut_at_the_size_of_objects() -> None:
    pool = a_pool(load_memory="1MiB", compact_target_size="1MiB")
    objects = load(pool, blocks())
    held = sorted(pool.at().references, key=lambda r: r.low)
    assert len(held) == objects > 2
    assert all(one.high <= other.low for one, other in pairwise(held))
    assert max(r.size for r in held) < 1.5 * (1 << 20)
    assert min(r.size for r in held) > (1 << 20) / 4
    found = keys(pool)
    assert found == sorted(found)
    assert len(found) == ROWS


def test_a_load_in_memory_is_cut_at_the_size_too() -> None:
    pool = a_pool(compact_target_size="1MiB")
    assert load(pool, blocks()) > 1
    found = keys(pool)
    assert found == sorted(found)
    assert len(found) == ROWS


def test_records_of_one_key_stay_in_one_object_however_many_they_are() -> None:
    pool = a_pool(load_memory="256KiB", compact_target_size="1MiB")
    random = np.random.default_rng(7)
    same = (Block(pa.table({"k": [5] * 10_000, "v": random.random(10_000)})) for _ in range(40))
    assert load(pool, same) == 1
    assert pool.at().references[0].size > 2 << 20


def test_a_dry_run_of_a_load_on_disk_counts_what_the_load_brings(tmp_path: Path) -> None:
    pool = a_pool(load_memory="10kB")
    file = tmp_path / "a.csv"
    numbers = np.random.default_rng(7).integers(0, 1_000, 20_000)
    file.write_text("k,a\n" + "".join(f"{n},{n}\n" for n in numbers) + ",5\n")
    preview = pool.branch().preview([str(file)])
    assert pool.at().version == 0
    result = pool.branch().load([str(file)])
    assert (preview.records, preview.nokey) == (result.records, result.nokey) == (20_000, 1)
    assert keys(pool) == sorted(numbers.tolist())


class Watched(MemoryStore):
    """A store that looks at the memory and the temporary folder whenever an object is written."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.names, self.most = folder, set[str](), 0
        self.before = pa.total_allocated_bytes()

    def look(self) -> None:
        self.names |= set(os.listdir(self.folder))
        self.most = max(self.most, pa.total_allocated_bytes() - self.before)

    def open_output(self, name: str) -> Any:
        self.look()
        return super().open_output(name)


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_memory_stays_within_the_setting_however_large_the_load(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = Watched(tmp_path)
    pool = a_pool(store, kind=kind, load_memory="4MiB", compact_target_size="1MiB")

    def watched() -> Iterator[Block]:
        for block in blocks(1_000_000):
            store.look()
            yield block

    assert load(pool, watched()) > 10  # 45 MB of records
    assert store.most < 5 << 20
    assert store.names == set()  # the file has no name: nothing is left of a killed load


def test_wide_records_are_sorted_on_disk_in_pieces_of_several_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A piece of one record would take twenty times the space of its values."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pool = a_pool(load_memory="1MiB")
    with caplog.at_level("INFO", logger="log_lake.objects.spool"):
        assert load(pool, blocks(1_000, each=50, wide=1_000)) == 1  # 8 MB
    (message,) = [r.getMessage() for r in caplog.records if "wrote" in r.getMessage()]
    assert float(message.split()[3]) < 30, message  # megabytes, each record twice
    assert message.split()[4] == "MB"
    assert keys(pool) == sorted(keys(pool))


@pytest.mark.parametrize("allowed", [0, 1, 7])
def test_a_full_disk_is_one_clear_error_and_leaves_nothing(
    allowed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = os.pwrite, [allowed]

    def pwrite(file: int, data: Any, at: int) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        return write(file, data, at)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = MemoryStore()
    pool = a_pool(store, load_memory="256KiB")
    open_files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(Unavailable) as raised:
        load(pool, blocks(), token="t")
    assert str(raised.value) == (
        f"{tmp_path}: the load cannot use its temporary file: [Errno 28] No space left on device; "
        "free space, or set TMPDIR to another folder"
    )
    assert len(os.listdir("/proc/self/fd")) == open_files
    assert not [name for name in store.list("") if "/data/" in str(name)]
    assert os.listdir(tmp_path) == []
    monkeypatch.undo()
    assert load(pool, blocks(), token="t") == 1
    assert pool.at().records == ROWS


def test_a_run_that_does_not_fit_the_format_goes_on_in_a_plainer_one() -> None:
    """ZST has no form for a null array inside of an array."""
    pool = a_pool(load_memory="256KiB", compact_target_size="1MiB", format="zst")

    def some() -> Iterator[Block]:
        for number, block in enumerate(blocks(100_000)):
            lists: list[Any] = [[[1]]] * 10_000
            if number == 5:
                lists[5_000] = [[1], None]
            yield Block(block.table.append_column("a", pa.array(lists, pa.list_(pa.list_(pa.int64())))))

    assert load(pool, some()) > 1
    held = sorted(pool.at().references, key=lambda r: r.low)
    formats = [naming.format_of(r.object) for r in held]
    assert formats == sorted(formats, reverse=True)
    assert formats[-1] == "zng"
    assert all(one.high <= other.low for one, other in pairwise(held))
    found = pool.at().to_table()
    assert found["k"].to_pylist() == sorted(found["k"].to_pylist())
    assert sorted(found["n"].to_pylist()) == list(range(100_000))


def test_the_points_of_the_pool_cut_a_load_on_disk() -> None:
    pool = a_pool(load_memory="256KiB")
    branch = pool.branch()
    points = tuple(encode_key([key], pool.config.key) for key in (1 << 38, 1 << 39))
    pending = replace(branch.begin_load(), points=points)  # type: ignore[type-var]
    with branch.builder(pending) as building:  # type: ignore[arg-type]
        for block in blocks():
            building.add(block)
        written = building.finish()
    assert [w.action.low >= points[0] for w in written] == [False, True, True]
    assert [w.action.high > points[1] for w in written] == [False, False, True]
