"""`fsck` on Spark: tasks read the objects; the findings are those of the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.repair.fsck import Fsck
from spark_apps.fsck import fsck
from tests.spark.conftest import Landing

pytestmark = pytest.mark.spark


def test_what_tasks_find_is_what_one_process_finds(spark: Any, landing: Landing) -> None:
    pool = landing.lake.create_pool("p", key="k")
    for n in range(69):  # two units
        pool.branch().append(pa.table({"k": [n], "v": [str(n)]}))
    pool.branch().append(pa.table({"k": range(69, 5_069)}))  # a tiny file is decoded when it is opened
    assert list(fsck(spark, landing.lake, data=True)) == []
    objects = sorted(Path(landing.uri).glob("*/data/*.parquet"))
    objects[3].unlink()
    objects[50].write_bytes(b"PAR1 but no longer")
    data = bytearray(objects[69].read_bytes())
    data[6] ^= 1
    objects[69].write_bytes(bytes(data))
    for read_all, count in ((False, 2), (True, 3)):
        found = list(fsck(spark, landing.lake, ["p"], data=read_all))
        assert found == list(Fsck(landing.lake.context, ["p"], data=read_all).run())
        assert len(found) == count
