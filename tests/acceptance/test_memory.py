"""No scan and no compaction takes more than 512 MB beside its largest record, whatever lies in the pool.

Each runs in a process of its own, whose highest resident set (VmHWM: Python, its libraries, mapped files) is asked
of Linux at the end.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.loading.checks import MAX_VALUE_BYTES
from log_lake.stores.local import LocalStore

pytestmark = pytest.mark.slow

LIMIT = 512 << 20
LARGEST = MAX_VALUE_BYTES

READER = """
import re, sys
from log_lake.rewriting.compaction import compact
from log_lake.lake import Lake
from log_lake.stores.local import LocalStore

pool = Lake.open_on(LocalStore(sys.argv[1])).pool("p")
if sys.argv[2] == "scan":
    records = sum(table.num_rows for table in pool.at().scan())
else:
    records = compact(pool.branch(), pool.at().references).records
with open("/proc/self/status") as status:
    print(records, int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) << 10)
"""

random = np.random.default_rng(7)


def texts(count: int, size: int) -> pa.Array:
    """Letters that do not compress to nothing."""
    letters = random.integers(97, 123, count * size, dtype=np.uint8).tobytes().decode()
    return pa.array([letters[at : at + size] for at in range(0, len(letters), size)])


def spread(count: int) -> pa.Array:
    return pa.array(random.integers(0, 1 << 40, count))


def many_wide_objects() -> Iterator[pa.Table]:
    """64 objects that overlap, of records of 2 KB: 1 GiB."""
    for _ in range(64):
        yield pa.table({"k": spread(8_192), "v": texts(8_192, 2_000)})


def few_texts_again_and_again() -> Iterator[pa.Table]:
    """Records of 2 KB that a dictionary makes tiny: the footer says little of what they take."""
    for _ in range(64):
        yield pa.table({"k": spread(10_000), "v": ["x" * 2_000, "y" * 2_000] * 5_000})


def one_key_far_behind() -> Iterator[pa.Table]:
    """A bulk whose last key is far behind the others, and all newer records before it."""
    yield pa.table({"k": [*range(2_400_000), 1 << 50], "v": [0] * 2_400_001})
    for _ in range(12):
        yield pa.table({"k": spread(20_000), "s": texts(20_000, 2_000)})


def many_small_objects() -> Iterator[pa.Table]:
    """More overlapping loads than a merge has streams."""
    for _ in range(400):
        yield pa.table({"k": spread(500), "v": texts(500, 1_000)})


def a_large_record() -> Iterator[pa.Table]:
    for number in range(8):
        values = ["y" * 1_000] * 2_000
        if number == 3:
            values[777] = texts(1, LARGEST)[0].as_py()
        yield pa.table({"k": spread(2_000), "v": values})


CASES = [many_wide_objects, few_texts_again_and_again, one_key_far_behind, many_small_objects, a_large_record]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_scan_and_a_compaction_stay_below_512_mb(tmp_path: Path, case: object) -> None:
    assert callable(case)
    pool = Lake.create_on(LocalStore(tmp_path)).create_pool("p", key="k")
    count = 0
    for table in case():
        count += pool.branch().append(table).records
    largest = LARGEST if case is a_large_record else 0
    for what in ("scan", "compact"):
        done = subprocess.run(
            [sys.executable, "-c", READER, str(tmp_path), what], capture_output=True, text=True, check=True
        )
        records, highest = map(int, done.stdout.split())
        assert records == count
        print(what, highest >> 20)
        assert highest < LIMIT + largest, f"{what}: {highest >> 20} MB"
